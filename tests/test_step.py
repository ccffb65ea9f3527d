"""Judging leaves the model as found, shares the update's forward pass, and refuses bad input."""

import copy
import functools
import random

import numpy as np
import pytest
import torch
from torch import nn

from agra import (
    IGNORE_LABEL,
    Rule,
    batch_gradient,
    choose_engine,
    decide,
    decide_multilabel,
    label_gradients,
)
from agra.decisions import Decisions
from agra.gradients.as_found import depends_on_mode, judging
from agra.gradients.parameters import select_parameters
from agra.losses import cross_entropy
from agra.step import Batch, Step, learn
from cases import CASES, cnn_batch_norm

ENGINES_OF = {
    "cnn-batch-norm": ["forward", "perturbed", "per-sample"],
    "cnn-group-norm": ["forward", "perturbed", "ghost", "per-sample"],
    "torch-encoder": ["forward", "perturbed", "per-sample"],
    "lstm": ["forward", "perturbed", "per-sample"],
}
LEFT = [(name, engine) for name, engines in ENGINES_OF.items() for engine in engines]


def case_of(name):
    return next(case for case in CASES if str(case) == name)


def problem(name, size=6):
    case = case_of(name)
    generator = torch.Generator().manual_seed(0)
    model = case.model(3)
    inputs = case.inputs(size, generator)
    labels = torch.randint(0, 3, (size,), generator=generator)
    return model, inputs, labels


@pytest.mark.parametrize(("name", "engine"), LEFT)
def test_the_model_is_left_as_found(name, engine):
    model, inputs, labels = problem(name)
    model.train()
    list(model.modules())[-1].eval()  # a mixture of modes
    for p in model.parameters():
        p.grad = torch.full_like(p, 0.5)
    fired = []
    for p in model.parameters():
        p.register_hook(lambda g: fired.append(1) or g)
    hooks = [len(m._forward_hooks) + len(m._backward_hooks) for m in model.modules()]
    modes = [m.training for m in model.modules()]
    state = copy.deepcopy(model.state_dict())
    flags = torch.backends.mha.get_fastpath_enabled(), torch.backends.mkldnn.enabled
    sdp = torch.backends.cuda.flash_sdp_enabled(), torch.backends.cuda.math_sdp_enabled()
    random.seed(0)
    np.random.seed(0)
    randoms = torch.get_rng_state(), random.getstate(), np.random.get_state()[1].copy()

    gradient = batch_gradient(model, inputs, labels)
    decide(model, inputs, labels, gradient, rule=Rule("any", scores=True), engine=engine)
    multi = torch.nn.functional.one_hot(labels, 3)
    gradients = label_gradients(model, inputs, multi)
    decide_multilabel(model, inputs, multi, gradients, engine=engine)

    assert all(torch.equal(p.grad, torch.full_like(p, 0.5)) for p in model.parameters())
    assert not fired
    assert [len(m._forward_hooks) + len(m._backward_hooks) for m in model.modules()] == hooks
    assert [m.training for m in model.modules()] == modes
    after = model.state_dict()
    assert all(torch.equal(state[name], after[name]) for name in state)
    assert (torch.backends.mha.get_fastpath_enabled(), torch.backends.mkldnn.enabled) == flags
    assert (torch.backends.cuda.flash_sdp_enabled(), torch.backends.cuda.math_sdp_enabled()) == sdp
    assert torch.equal(torch.get_rng_state(), randoms[0])
    assert random.getstate() == randoms[1]
    assert (np.random.get_state()[1] == randoms[2]).all()


def test_an_error_while_judging_leaves_modes_and_hooks():
    model, inputs, labels = problem("cnn-group-norm")
    gradient = batch_gradient(model, inputs, labels)
    engine = choose_engine("ghost", model, inputs, list(gradient))
    broken = Step(lambda *_: 1 / 0, Rule(), engine)
    model.train()
    with pytest.raises(ZeroDivisionError):
        broken.judge(model, Batch(inputs, labels), gradient)
    assert all(m.training for m in model.modules())
    assert not any(m._forward_hooks for m in model.modules())


@pytest.mark.parametrize("engine", ["forward", "perturbed", "ghost", "per-sample"])
@pytest.mark.parametrize("name", ["mlp", "cnn-group-norm", "transformer-block", "bag-of-words"])
def test_the_update_equals_training_on_what_was_kept(name, engine):
    model, inputs, labels = problem(name, size=9)
    twin = copy.deepcopy(model)
    gradient = batch_gradient(model, inputs, labels.flip(0))
    found = choose_engine(engine, model, inputs, list(gradient))
    step = Step(cross_entropy, Rule(), found)
    found = step.update(model, Batch(inputs, labels), gradient, update_loss=cross_entropy)
    loss, outputs, decisions = found.loss, found.outputs, found.decisions
    loss.backward()
    assert decisions.kept.any()
    expected = cross_entropy(twin(inputs)[decisions.kept], labels[decisions.kept])
    expected.backward()
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(outputs, twin(inputs))
    for p, q in zip(model.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(p.grad, q.grad, rtol=1e-9, atol=1e-12)


def count_forwards(model):
    calls = []
    model.register_forward_hook(lambda *_: calls.append(1))
    return calls


@pytest.mark.parametrize(("engine", "expected"), [("perturbed", 2), ("ghost", 1)])
def test_the_forward_pass_is_shared_where_train_and_eval_agree(engine, expected):
    model, inputs, labels = problem("mlp")
    gradient = batch_gradient(model, inputs, labels)
    step = Step(cross_entropy, Rule(), choose_engine(engine, model, inputs, list(gradient)))
    calls = count_forwards(model)
    step.update(model, Batch(inputs, labels), gradient, update_loss=cross_entropy)
    assert len(calls) == expected


def test_with_dropout_the_update_runs_in_train_mode():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 400), nn.Dropout(0.5), nn.Linear(400, 3))
    inputs, labels = torch.randn(8, 5), torch.randint(0, 3, (8,))
    gradient = batch_gradient(model, inputs, labels)
    step = Step(cross_entropy, Rule(), choose_engine("ghost", model, inputs, list(gradient)))
    batch = Batch(inputs, labels)
    outputs = step.update(model, batch, gradient, update_loss=cross_entropy).outputs
    model.eval()
    assert not torch.allclose(outputs, model(inputs))


def test_batch_norm_statistics_move_by_the_update_alone():
    model = cnn_batch_norm(3)
    twin = copy.deepcopy(model)
    inputs, labels = torch.randn(6, 2, 6, 6), torch.randint(0, 3, (6,))
    gradient = batch_gradient(model, inputs, labels)
    step = Step(cross_entropy, Rule(), choose_engine("auto", model, inputs, list(gradient)))
    step.update(model, Batch(inputs, labels), gradient, update_loss=cross_entropy)
    twin(inputs)
    torch.testing.assert_close(model[1].running_mean, twin[1].running_mean)
    assert int(model[1].num_batches_tracked) == 1


def test_who_depends_on_the_mode():
    class Stochastic(nn.Module):
        def noisy(self, x):
            return x + torch.randn_like(x) if self.training else x

        def forward(self, x):
            return self.noisy(x)

    def depends(*layers):
        return depends_on_mode(nn.Sequential(*layers))

    assert not depends(nn.Linear(2, 2), nn.LayerNorm(2), nn.Dropout(0.0))
    assert depends(nn.Dropout(0.1))
    assert not depends(nn.Dropout(0.1).eval())
    assert depends(nn.BatchNorm1d(2))
    assert depends(nn.BatchNorm1d(2, track_running_stats=False))
    assert not depends(nn.InstanceNorm1d(2))
    assert depends(nn.InstanceNorm1d(2, track_running_stats=True))
    assert depends(nn.LSTM(2, 2, num_layers=2, dropout=0.5))
    assert not depends(nn.GRU(2, 2))
    assert not depends(nn.TransformerEncoderLayer(4, 2, dropout=0.0))
    assert depends(nn.TransformerEncoderLayer(4, 2, dropout=0.1))
    assert depends(nn.MultiheadAttention(4, 2, dropout=0.1))
    assert depends(Stochastic())


def test_judging_restores_the_mode_of_every_module():
    model = nn.Sequential(nn.Dropout(0.5), nn.Sequential(nn.Dropout(0.5), nn.Linear(2, 2)))
    model[1].eval()
    with judging(model):
        assert not any(m.training for m in model.modules())
    assert model[0].training
    assert not model[1][0].training


def test_a_batch_dropped_whole_has_loss_zero_and_zero_gradients():
    model = nn.Linear(2, 3)
    outputs = model(torch.randn(4, 2))
    nothing = torch.zeros(4, dtype=torch.bool)
    labels = torch.full((4,), IGNORE_LABEL)
    decisions = Decisions(labels, torch.zeros(4), nothing, ~nothing, nothing)
    loss = learn(outputs, decisions, cross_entropy)
    loss.backward()
    assert float(loss.detach()) == 0
    assert all(not p.grad.any() for p in model.parameters())


def test_a_sample_learned_perfectly_has_score_zero_and_is_dropped():
    model = nn.Linear(1, 2, bias=False)
    with torch.no_grad():
        model.weight.copy_(torch.tensor([[-1.0], [1.0]]))
    inputs, labels = torch.tensor([[1e4], [1.0]]), torch.tensor([1, 1])
    gradient = batch_gradient(model, inputs[1:], labels[1:])
    for engine in ("linear", "forward", "perturbed", "ghost", "per-sample"):
        found = decide(model, inputs, labels, gradient, rule=Rule(scores=True), engine=engine)
        assert float(found.scores[0]) == 0
        assert found.dropped.tolist() == [True, False]
        assert not found.scores.isnan().any()


def test_a_zero_comparison_gradient_drops_all():
    model, inputs, labels = problem("mlp")
    gradient = {name: torch.zeros_like(p) for name, p in model.named_parameters()}
    for engine in ("forward", "perturbed", "ghost", "per-sample"):
        found = decide(
            model, inputs, labels, gradient, rule=Rule("any", scores=True), engine=engine
        )
        assert found.dropped.all()
        assert not found.scores.isnan().any()


class TestParameters:
    def test_default_leaves_the_bias_of_a_linear_model_out(self):
        assert list(select_parameters(nn.Linear(2, 3))) == ["weight"]
        front = nn.Sequential(nn.Flatten(), nn.Dropout(0.1), nn.Linear(2, 3))
        assert list(select_parameters(front)) == ["2.weight"]
        deep = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 2))
        assert len(select_parameters(deep)) == 4

    def test_patterns_and_predicates(self):
        model = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 2))
        assert list(select_parameters(model, "2.*")) == ["2.weight", "2.bias"]
        assert list(select_parameters(model, "!*.bias")) == ["0.weight", "2.weight"]
        assert list(select_parameters(model, lambda name, p: p.ndim == 1)) == ["0.bias", "2.bias"]
        model[0].requires_grad_(False)
        assert list(select_parameters(model)) == ["2.weight", "2.bias"]

    def test_nothing_left_to_compare(self):
        with pytest.raises(ValueError, match="Expected `parameters` to leave something to compare"):
            select_parameters(nn.Linear(2, 3), "head.*")
        with pytest.raises(ValueError, match="to have a parameter that can be trained, got none"):
            select_parameters(nn.ReLU())
        with pytest.raises(TypeError, match="to be a pattern of names, a predicate"):
            select_parameters(nn.Linear(2, 3), 3)


class TestBadInput:
    def setup_method(self):
        self.model, self.inputs, self.labels = problem("mlp")
        self.gradient = batch_gradient(self.model, self.inputs, self.labels)

    def decide(self, **changes):
        arguments = {
            "model": self.model,
            "inputs": self.inputs,
            "labels": self.labels,
            "comparison_gradient": self.gradient,
            **changes,
        }
        return decide(**arguments)

    @pytest.mark.parametrize("entry", [torch.nan, torch.inf])
    def test_inputs_that_are_not_finite(self, entry):
        self.inputs[0, 0] = entry
        with pytest.raises(ValueError, match="Expected `inputs` to be finite, got NaN or inf"):
            self.decide()
        with pytest.raises(ValueError, match="Expected `inputs` to be finite"):
            batch_gradient(self.model, self.inputs, self.labels)

    def test_weights_that_are_not_finite(self):
        with torch.no_grad():
            self.model[3].bias[1] = torch.nan
        with pytest.raises(ValueError, match=r"NaN or infinity in parameter '3.bias'"):
            self.decide()
        with pytest.raises(ValueError, match=r"NaN or infinity in parameter '3.bias'"):
            batch_gradient(self.model, self.inputs, self.labels)

    def test_labels_out_of_range(self):
        with pytest.raises(ValueError, match=r"to be in \[0, 2\], one class per output.*got 3"):
            self.decide(labels=self.labels.clone().fill_(3))
        with pytest.raises(ValueError, match=r"to be in \[0, 2\].*got -1"):
            batch_gradient(self.model, self.inputs, self.labels.clone().fill_(-1))

    def test_floating_labels(self):
        with pytest.raises(
            ValueError, match=r"of a single-label criterion to be class indices.*torch.float32"
        ):
            self.decide(labels=self.labels.float())

    def test_another_number_of_labels(self):
        with pytest.raises(ValueError, match=r"to have one entry per sample \(6\)"):
            self.decide(labels=self.labels[:4])

    def test_other_types_and_devices(self):
        with pytest.raises(ValueError, match=r"type of the model's parameters .torch.float64"):
            self.decide(inputs=self.inputs.float())
        with pytest.raises(ValueError, match=r"`inputs` on the device of the model"):
            self.decide(inputs=self.inputs.long().to("meta"))
        with pytest.raises(ValueError, match="`labels` on the device of `inputs`"):
            self.decide(labels=self.labels.to("meta"))
        gradient = {name: part.to("meta") for name, part in self.gradient.items()}
        with pytest.raises(ValueError, match="`comparison_gradient` on the device of the model"):
            self.decide(comparison_gradient=gradient)

    def test_a_gradient_of_another_model(self):
        with pytest.raises(ValueError, match="to be named as the model's parameters, got 'x'"):
            self.decide(comparison_gradient={"x": torch.zeros(2)})
        with pytest.raises(ValueError, match="Expected `comparison_gradient` to name a parameter"):
            self.decide(comparison_gradient={})
        labels = torch.nn.functional.one_hot(self.labels, 3)
        per_label = label_gradients(self.model, self.inputs, labels)
        text = r"`comparison_gradient` as batch_gradient gives it \('0.weight': \(6, 5\), "
        with pytest.raises(ValueError, match=text + r"torch.float64\), got \(3, 6, 5\)"):
            self.decide(comparison_gradient=per_label)
        single = {name: part.float() for name, part in self.gradient.items()}
        with pytest.raises(ValueError, match=text + r"torch.float64\), got .*torch.float32"):
            self.decide(comparison_gradient=single)
        text = "as label_gradients gives it .'0.weight': one per label, each"
        with pytest.raises(ValueError, match=text):
            decide_multilabel(self.model, self.inputs, labels, self.gradient)
        two = {name: part[:2] for name, part in per_label.items()}
        with pytest.raises(ValueError, match=r"to hold one gradient per label \(3\), got 2"):
            decide_multilabel(self.model, self.inputs, labels, two)

    def test_unknown_names(self):
        with pytest.raises(ValueError, match=r"`engine` to be one of.*did you mean 'forward'"):
            self.decide(engine="foward")
        with pytest.raises(ValueError, match=r"`criterion` to be one of.*did you mean 'cross-entr"):
            self.decide(criterion="crossentropy")

    def test_an_engine_that_refuses_says_why(self):
        with pytest.raises(ValueError, match=r"but 'linear' refuses: Sequential is not a single"):
            self.decide(engine="linear")
        model, inputs, labels = problem("lstm")
        gradient = batch_gradient(model, inputs, labels)
        with pytest.raises(ValueError, match=r"'ghost' refuses: .* belongs to a LSTM"):
            decide(model, inputs, labels, gradient, engine="ghost")

    def test_outputs_of_a_wrong_shape(self):
        class Flat(nn.Module):
            def __init__(self, function):
                super().__init__()
                self.layer, self.function = nn.Linear(5, 3), function

            def forward(self, x):
                return self.function(self.layer(x.float()))

        for function in (lambda z: z[:, 0], lambda z: (z, z), lambda z: z[:2]):
            with pytest.raises(ValueError, match="Expected `model` to return outputs of shape"):
                batch_gradient(Flat(function), self.inputs.float(), self.labels)

    def test_a_criterion_without_a_finite_derivative(self):
        def root(outputs, labels):
            return (outputs * 0).sum().sqrt()

        gradient = batch_gradient(self.model, self.inputs, self.labels, root)
        with pytest.raises(ValueError, match="Expected finite gradients, got NaN or infinity from"):
            self.decide(comparison_gradient=gradient)
        with pytest.raises(ValueError, match="Expected finite gradients, got NaN or infinity from"):
            self.decide(criterion=root)

    def test_outputs_that_overflow(self):
        class Overflow(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(5, 3)

            def forward(self, x):
                return self.layer(x) / 0

        with pytest.raises(ValueError, match="NaN or infinity from finite weights and inputs"):
            batch_gradient(Overflow().double(), self.inputs, self.labels)


def test_refusals_of_layers_that_ghost_cannot_see_through():
    model = nn.Sequential(nn.Embedding(5, 4, max_norm=1.0), nn.Flatten(), nn.Linear(8, 2))
    inputs, labels = torch.tensor([[0, 1], [2, 3]]), torch.tensor([0, 1])
    gradient = batch_gradient(model, inputs, labels)
    with pytest.raises(ValueError, match="Embedding with max_norm, scale_grad_by_freq or sparse"):
        decide(model, inputs, labels, gradient, engine="ghost")


def test_perturbed_refuses_half_precision_and_chance():
    class Chance(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 2)

        def forward(self, x):
            return self.layer(x) + torch.rand(1)

    inputs, labels = torch.randn(4, 4), torch.tensor([0, 1, 0, 1])
    gradient = batch_gradient(Chance(), inputs, labels)
    with pytest.raises(ValueError, match="outputs differ from call to call"):
        decide(Chance(), inputs, labels, gradient, engine="perturbed")
    model = nn.Linear(4, 2).bfloat16()
    inputs = inputs.bfloat16()
    gradient = batch_gradient(model, inputs, labels)
    with pytest.raises(ValueError, match="a small step would be rounded off"):
        decide(model, inputs, labels, gradient, engine="perturbed")
    assert not decide(model, inputs, labels, gradient).scores.isnan().any()


class Counting(nn.Module):
    """A module that moves its buffers in eval mode too, in place and by another tensor."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(5, 3)
        self.register_buffer("calls", torch.zeros(()))
        self.register_buffer("rows", torch.zeros(()))

    def forward(self, x):
        self.calls += 1
        self.rows = self.rows + len(x)
        return self.layer(x)


@pytest.mark.parametrize("engine", ["auto", "ghost", "forward", "perturbed", "per-sample"])
def test_buffers_that_move_in_eval_mode_move_by_the_update_alone(engine):
    torch.manual_seed(0)
    model, inputs, labels = Counting(), torch.randn(6, 5), torch.tensor([0, 1, 2] * 2)
    buffers = dict(model.named_buffers())
    gradient = batch_gradient(model, inputs, labels)
    decide(model, inputs, labels, gradient, rule=Rule(scores=True), engine=engine)
    assert all(model.get_buffer(name) is buffer for name, buffer in buffers.items())
    assert float(model.calls) == float(model.rows) == 0
    found = choose_engine(engine, model, inputs, list(gradient), norms=True)
    step = Step(cross_entropy, Rule(scores=True), found)
    batch = Batch(inputs, labels)
    step.update(model, batch, gradient, update_loss=cross_entropy).loss.backward()
    assert (float(model.calls), float(model.rows)) == (1, 6)


def test_backward_hooks_are_still_there_after_an_error():
    model, inputs, labels = problem("mlp")
    handle = model[0].register_full_backward_hook(lambda *_: None)
    hooks = model[0]._backward_hooks
    with pytest.raises(ZeroDivisionError):
        batch_gradient(model, inputs, labels, lambda *_: 1 / 0)
    assert model[0]._backward_hooks is hooks
    assert len(hooks) == 1
    handle.remove()
    assert not hooks


def test_a_decorated_forward_that_reads_the_mode_is_seen():
    def decorated(function):
        @functools.wraps(function)
        def wrapper(*args):
            return function(*args)

        return wrapper

    class Noisy(nn.Module):
        @decorated
        def forward(self, x):
            return x + torch.randn_like(x) if self.training else x

    assert depends_on_mode(Noisy())


def test_inference_mode_is_refused_by_every_function():
    model, inputs, labels = problem("mlp")
    gradient = batch_gradient(model, inputs, labels)
    with torch.inference_mode():
        for call in (
            lambda: batch_gradient(model, inputs, labels),
            lambda: label_gradients(model, inputs, labels),
            lambda: decide(model, inputs, labels, gradient),
            lambda: decide_multilabel(model, inputs, labels, gradient),
        ):
            with pytest.raises(
                ValueError, match=r"Expected judging to happen outside of torch.inf"
            ):
                call()
