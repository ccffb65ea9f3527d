"""Every engine equals the reference on the matrix of cases, in float64 to 1e-9."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import reference
from agra import (
    ENGINES,
    IGNORE_LABEL,
    Rule,
    batch_gradient,
    choose_engine,
    decide,
    decide_multilabel,
    label_gradients,
    refusals,
)
from agra.decisions import MultilabelRule
from agra.gradients import PerSampleEngine
from agra.gradients.as_found import judging
from agra.gradients.parameters import select_parameters
from agra.inputs import call
from agra.losses import (
    binary_cross_entropy,
    cross_entropy,
    multilabel_f1,
    soft_f1,
)
from agra.output_gradients import output_gradients
from cases import CASES

# asked for by name, per-sample serves every model: where torch cannot vectorise, one by one
WITH_ENGINE = [(case, name) for case in CASES for name in sorted(case.engines | {"per-sample"})]


def batch(case, num_samples, num_classes, seed=1):
    generator = torch.Generator().manual_seed(seed)
    inputs = case.inputs(num_samples, generator)
    return inputs, torch.randint(0, num_classes, (num_samples,), generator=generator)


def engine_of(name, model, inputs, names):
    return choose_engine(name, model, inputs, names)


def expected_products(case, model, inputs, columns, g, criterion, parameters):
    """Dot products and squared norms by plain loops."""
    model.eval()
    outputs = reference.run(model, inputs).detach()
    dots = torch.zeros(len(outputs), len(columns), dtype=outputs.dtype)
    norms = torch.zeros_like(dots)
    for t in range(len(outputs)):
        for c, column in enumerate(columns):
            own = reference.sample_gradient(
                model, inputs, column, t, criterion, parameters, outputs
            )
            dots[t, c], norms[t, c] = own @ g, own @ own
    return dots, norms


@pytest.mark.parametrize("num_classes", [2, 10])
@pytest.mark.parametrize(("case", "name"), WITH_ENGINE, ids=str)
def test_products_equal_the_plain_loops(case, name, num_classes):
    model = case.model(num_classes)
    inputs, labels = batch(case, 5, num_classes)
    other_inputs, other_labels = batch(case, 6, num_classes, seed=2)
    chosen = select_parameters(model, case.parameters)
    for criterion in (cross_entropy, soft_f1):
        gradient = batch_gradient(
            model, other_inputs, other_labels, criterion, parameters=case.parameters
        )
        g = reference.comparison_gradient(
            model, other_inputs, other_labels, criterion, list(chosen.values())
        )
        torch.testing.assert_close(reference.flat(gradient.values()), g, rtol=1e-9, atol=1e-15)
        columns = [labels, torch.zeros_like(labels), torch.ones_like(labels)]
        dots, norms = expected_products(
            case, model, inputs, columns, g, criterion, list(chosen.values())
        )
        engine = engine_of(name, model, inputs, list(gradient))
        with judging(model.train()):
            trace = engine.trace(model, inputs, gradient, graph=False)
            derivatives = output_gradients(criterion, trace.outputs, columns)
            found = trace.compare(derivatives, torch.ones(5, 3, dtype=torch.bool))
        scale = (norms.sqrt() * g.norm()).clamp(min=1e-300)
        tolerance = 1e-9 if engine.exact else 1e-5
        assert float(((found.dots - dots) / scale).abs().max()) < tolerance
        if engine.has_norms:
            torch.testing.assert_close(found.comparison_squared_norm, g @ g, rtol=1e-9, atol=0)
            torch.testing.assert_close(found.squared_norms, norms, rtol=1e-9, atol=1e-30)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_engines_that_serve_a_model_are_those_in_the_table(case):
    model = case.model(3)
    inputs, _ = batch(case, 4, 3)
    reasons = refusals(model, inputs, list(select_parameters(model, case.parameters)))
    assert set(reasons) == set(ENGINES)
    assert {name for name, reason in reasons.items() if reason is None} == case.engines
    assert all(reason is None or len(reason) > 10 for reason in reasons.values())


RULES = [
    Rule(),
    Rule(scores=True),
    Rule(alternative_label=1),
    Rule(alternative_label="any"),
    Rule(alternative_label=0, threshold=0.05),
    Rule(alternative_label="any", threshold=-0.1),
]


@pytest.mark.parametrize("criterion", [cross_entropy, soft_f1])
@pytest.mark.parametrize(("case", "name"), WITH_ENGINE, ids=str)
def test_verdicts_equal_the_plain_loops(case, name, criterion):
    num_classes, size = 3, 5
    model = case.model(num_classes)
    inputs, labels = batch(case, size, num_classes)
    labels[2] = IGNORE_LABEL
    other = batch(case, 6, num_classes, seed=2)
    gradient = batch_gradient(model, *other, criterion, parameters=case.parameters)
    chosen = list(select_parameters(model, case.parameters).values())
    g = reference.flat(gradient.values())
    for rule in RULES:
        label = rule.alternative_label
        others = range(num_classes) if label == "any" else () if label is None else (label,)
        expected = reference.judge(
            model, inputs, labels, g, criterion, chosen, others=others, threshold=rule.threshold
        )
        found = decide(model, inputs, labels, gradient, criterion=criterion, rule=rule, engine=name)
        for t, (new_label, verdict, scores) in enumerate(expected):
            close = min(abs(float(score) - rule.threshold) for score in scores) < 1e-4
            if name == "perturbed" and close:
                continue
            assert getattr(found, verdict)[t]
            assert int(found.labels[t]) == int(new_label)
            if not found.scores[t].isnan():
                assert float(found.scores[t]) == pytest.approx(
                    float(scores[0]), abs=1e-9 if name != "perturbed" else 1e-4
                )
        assert not rule.scores or not found.scores[labels != IGNORE_LABEL].isnan().any()


@pytest.mark.parametrize("criterion", [binary_cross_entropy, multilabel_f1])
@pytest.mark.parametrize(("case", "name"), WITH_ENGINE, ids=str)
def test_entries_equal_the_plain_loops(case, name, criterion):
    model = case.model(3)
    generator = torch.Generator().manual_seed(3)
    inputs, other_inputs = case.inputs(4, generator), case.inputs(5, generator)
    labels, other_labels = (
        torch.randint(0, 2, (n, 3), generator=generator).double() for n in (4, 5)
    )
    labels[1, 2], other_labels[0, 0] = torch.nan, torch.nan
    chosen = list(select_parameters(model, case.parameters).values())
    kept, scores = reference.judge_multilabel(
        model, inputs, labels, (other_inputs, other_labels), criterion, chosen
    )
    gradients = label_gradients(
        model, other_inputs, other_labels, criterion, parameters=case.parameters
    )
    found = decide_multilabel(
        model,
        inputs,
        labels,
        gradients,
        criterion=criterion,
        rule=MultilabelRule(scores=True),
        engine=name,
    )
    sure = scores.abs() > (1e-4 if name == "perturbed" else 1e-12)
    assert torch.equal(found.kept[sure], kept[sure])
    known = ~labels.isnan()
    tolerance = 1e-4 if name == "perturbed" else 1e-9
    torch.testing.assert_close(found.scores[known], scores[known], rtol=0, atol=tolerance)


@pytest.mark.parametrize("size", [0, 1])
@pytest.mark.parametrize(("case", "name"), WITH_ENGINE, ids=str)
def test_batches_of_none_and_of_one(case, name, size):
    model = case.model(3)
    full, labels = batch(case, 4, 3)
    gradient = batch_gradient(model, full, labels, parameters=case.parameters)
    engine = choose_engine(name, model, full, list(gradient), norms=True)
    inputs, labels = batch(case, size, 3)
    found = decide(model, inputs, labels, gradient, rule=Rule("any", scores=True), engine=engine)
    assert len(found.labels) == len(found.scores) == size
    assert not found.scores.isnan().any()


@pytest.mark.parametrize("name", sorted(ENGINES))
def test_float32_agrees_with_float64(name):
    case = next(case for case in CASES if str(case) == ("linear" if name == "linear" else "mlp"))
    verdicts = {}
    for dtype in (torch.float32, torch.float64):
        model = case.model(4, dtype)
        inputs, labels = batch(case, 64, 4)
        other = batch(case, 64, 4, seed=2)
        gradient = batch_gradient(model, other[0].to(dtype), other[1])
        verdicts[dtype] = decide(
            model, inputs.to(dtype), labels, gradient, rule=Rule(scores=True), engine=name
        )
    sure = verdicts[torch.float64].scores.abs() > 1e-2
    assert sure.sum() > 32
    assert torch.equal(verdicts[torch.float32].kept[sure], verdicts[torch.float64].kept[sure])


@settings(max_examples=25, deadline=None)
@given(
    size=st.integers(1, 7),
    width=st.integers(1, 5),
    length=st.integers(1, 4),
    num_classes=st.integers(2, 5),
    seed=st.integers(0, 2**20),
)
def test_any_shape_on_sequences(size, width, length, num_classes, seed):
    torch.manual_seed(seed)

    class Sequence(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(nn.Linear(width, 3), nn.Tanh(), nn.LayerNorm(3))
            self.head = nn.Linear(3, num_classes)

        def forward(self, x):
            return self.head(self.body(x)).mean(dim=1)

    model = Sequence().double()
    inputs = torch.randn(size, length, width, dtype=torch.float64)
    labels = torch.randint(0, num_classes, (size,))
    soft = torch.rand(size, num_classes, dtype=torch.float64).softmax(dim=1)
    gradient = batch_gradient(model, inputs.flip(0), soft)
    chosen = list(model.parameters())
    for given_labels in (labels, soft):
        expected = reference.judge(
            model, inputs, given_labels, reference.flat(gradient.values()), cross_entropy, chosen
        )
        for name in ("forward", "ghost", "per-sample"):
            rule = Rule(scores=True)
            found = decide(model, inputs, given_labels, gradient, rule=rule, engine=name)
            for t, (_, verdict, scores) in enumerate(expected):
                assert float(found.scores[t]) == pytest.approx(float(scores[0]), abs=1e-9)
                if abs(float(scores[0])) > 1e-12:
                    assert getattr(found, verdict)[t]


def test_per_sample_falls_back_to_one_by_one():
    case = next(case for case in CASES if str(case) == "linear-csr")
    model = case.model(3)
    inputs, labels = batch(case, 4, 3)
    gradient = batch_gradient(model, inputs, labels)
    engine = choose_engine("per-sample", model, inputs, list(gradient))
    assert isinstance(engine, PerSampleEngine)
    assert not engine.vectorised
    assert engine.refusal(model, inputs, list(gradient)) is None
    rule = Rule("any", scores=True)
    slow = decide(model, inputs, labels, gradient, rule=rule, engine=engine)
    fast = decide(model, inputs, labels, gradient, rule=rule, engine="linear")
    torch.testing.assert_close(slow.scores, fast.scores, rtol=1e-9, atol=1e-12)


def test_shared_outputs_carry_the_models_graph():
    case = next(case for case in CASES if str(case) == "mlp")
    model = case.model(3)
    inputs, labels = batch(case, 4, 3)
    gradient = batch_gradient(model, inputs, labels)
    for name in ("forward", "perturbed", "ghost", "per-sample"):
        engine = choose_engine(name, model, inputs, list(gradient))
        outputs = engine.trace(model, inputs, gradient, graph=True).outputs
        torch.testing.assert_close(outputs, call(model, inputs))
        outputs.sum().backward()
        assert all(p.grad is not None for p in model.parameters())
        model.zero_grad()
