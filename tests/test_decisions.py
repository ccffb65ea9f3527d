import math
from dataclasses import FrozenInstanceError, dataclass

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from agra.decisions import MultilabelRule, Rule
from agra.gradients.engine import Products
from agra.labels import IGNORE_LABEL

NAN = math.nan
repeatable = settings(max_examples=150, deadline=None, derandomize=True)


# the paper's rule, sample by sample


def similarity(dot, norm, comparison_norm, eps):
    """Eq. (1); a zero gradient is similar to nothing."""
    return 0.0 if dot == 0 else dot / (norm * comparison_norm + eps)


def algorithm_1(given_score, alternatives, threshold):
    """Lines 8 to 16 for one sample.

    Args:
        given_score: None without a given label.
        alternatives: {y': score}, those that the sample may take.
        threshold: 0 in the paper.
    """
    given_passes = given_score is not None and given_score > threshold
    if not alternatives:
        return "keep" if given_passes else "drop"
    best = max(alternatives.values())
    if not given_passes and best <= threshold:
        return "drop"
    if best > threshold and (given_score is None or best > given_score):
        return {label for label, score in alternatives.items() if score == best}
    return "keep"


@dataclass
class Case:
    """A batch: labels, what may become of them, and the geometry of the gradients."""

    rule: Rule
    num_classes: int
    labels: list
    mask: list | None
    dots: dict  # (sample, class) to dot product; class None is the given label
    norms: dict
    comparison_norm: float

    def tensors(self):
        labels = torch.tensor(self.labels)
        mask = None if self.mask is None else torch.tensor(self.mask)
        return labels, self.rule.candidates(labels, self.num_classes, mask)

    def products(self, candidates, wanted=None):
        columns = [None, *candidates.classes.tolist()]
        size = range(len(self.labels))
        dots = torch.tensor([[self.dots[n, y] for y in columns] for n in size]).double()
        norms = torch.tensor([[self.norms[n, y] for y in columns] for n in size]).double()
        squares = norms.square()
        if wanted is not None:
            squares = squares.masked_fill(~wanted, NAN)
        return Products(dots, squares, torch.tensor(self.comparison_norm).double().square())

    def has_label(self, n):
        label = self.labels[n]
        return label[0] >= 0 if isinstance(label, list) else label != -100

    def score(self, n, label):
        return similarity(
            self.dots[n, label], self.norms[n, label], self.comparison_norm, self.rule.eps
        )

    def expected(self, n):
        """The verdict on sample n: "keep", "drop", or the labels one of which it takes."""
        rule, given_label = self.rule, self.labels[n]
        if rule.alternative_label == "any":
            tried = list(range(self.num_classes))
        else:
            tried = [] if rule.alternative_label is None else [rule.alternative_label]
        alternatives = {
            y: self.score(n, y)
            for y in tried
            if y != given_label and (self.mask is None or self.mask[n][y])
        }
        given_score = self.score(n, None) if self.has_label(n) else None
        return algorithm_1(given_score, alternatives, rule.threshold)

    def check(self, decisions):
        for n, given_label in enumerate(self.labels):
            expected = self.expected(n)
            found = {
                "keep": decisions.kept[n].item(),
                "drop": decisions.dropped[n].item(),
                "relabel": decisions.relabelled[n].item(),
            }
            verdict = "relabel" if isinstance(expected, set) else expected
            assert found == {name: name == verdict for name in found}, n
            label = decisions.labels[n].tolist()
            soft = isinstance(given_label, list)
            if verdict == "keep":
                assert label == given_label
            elif verdict == "drop":
                assert label == ([-100] * self.num_classes if soft else -100)
            else:
                classes = range(self.num_classes)
                rows = [[float(y == k) for k in classes] if soft else y for y in expected]
                assert label in rows


@st.composite
def cases(draw, rule=None):
    """Dots are small integers and norms powers of two, so that scores are exact and often tie."""
    num_classes = draw(st.integers(2, 4))
    if rule is None:
        rule = Rule(
            draw(st.sampled_from([None, "any", 0, num_classes - 1])),
            draw(st.sampled_from([0.0, 0.0, 0.25, -0.25, 1.0, -1.0])),
            draw(st.sampled_from([0.0, 0.0, 0.5])),
            draw(st.booleans()),
        )
    size = draw(st.integers(1, 5))
    soft = draw(st.booleans())
    flags = st.lists(st.booleans(), min_size=num_classes, max_size=num_classes)
    mask = draw(st.one_of(st.none(), st.lists(flags, min_size=size, max_size=size)))
    if soft:
        rows = st.sampled_from(
            [
                [0.5, 0.5] + [0.0] * (num_classes - 2),
                [0.75, 0.25] + [0.0] * (num_classes - 2),
                [-100.0] * num_classes,
            ]
        )
    else:
        rows = st.sampled_from([*range(num_classes), -100])
    labels = draw(st.lists(rows, min_size=size, max_size=size))
    keys = [(n, y) for n in range(size) for y in (None, *range(num_classes))]
    dots = {key: draw(st.integers(-4, 4)) for key in keys}
    norms = {key: 0.0 if dots[key] == 0 else draw(st.sampled_from([1.0, 2.0, 4.0])) for key in keys}
    return Case(rule, num_classes, labels, mask, dots, norms, draw(st.sampled_from([1.0, 4.0])))


# Algorithm 1


@repeatable
@given(cases())
def test_every_verdict_is_that_of_the_papers_rule(case):
    _, candidates = case.tensors()
    case.check(case.rule.decide(candidates, case.products(candidates)))


@repeatable
@given(cases())
def test_norms_where_they_are_wanted_give_the_same_verdicts_as_norms_everywhere(case):
    _, candidates = case.tensors()
    before = case.rule.norms_wanted(candidates)
    wanted = case.rule.norms_wanted(candidates, case.products(candidates).dots)
    nowhere = torch.zeros_like(candidates.allowed)
    filled = nowhere if wanted is None else wanted
    if before is not None:  # what is asked for in advance is asked for in the end
        assert (before & ~filled).sum() == 0
    decisions = case.rule.decide(candidates, case.products(candidates, filled))
    case.check(decisions)
    everywhere = case.rule.decide(candidates, case.products(candidates))
    assert torch.equal(decisions.kept, everywhere.kept)
    assert torch.equal(decisions.labels, everywhere.labels)


@repeatable
@given(cases())
def test_scores_are_the_cosines_under_the_given_label_where_there_is_one(case):
    _, candidates = case.tensors()
    scores = case.rule.decide(candidates, case.products(candidates)).scores
    for n in range(len(case.labels)):
        if case.has_label(n):
            assert scores[n].item() == pytest.approx(case.score(n, None), rel=1e-12)
        else:
            assert scores[n].isnan()


@repeatable
@given(cases(Rule("any", scores=True)))
def test_asking_for_scores_gives_one_to_every_sample_with_a_label(case):
    _, candidates = case.tensors()
    wanted = case.rule.norms_wanted(candidates, case.products(candidates).dots)
    filled = torch.zeros_like(candidates.allowed) if wanted is None else wanted
    scores = case.rule.decide(candidates, case.products(candidates, filled)).scores
    assert (~scores.isnan()).tolist() == [case.has_label(n) for n in range(len(case.labels))]


def hard(labels, dots, norms=None, *, rule=None, num_classes=3, mask=None):
    """The verdicts on hard labels; a norm of None is one that nobody asked for."""
    rule = rule or Rule()
    candidates = rule.candidates(torch.tensor(labels), num_classes, mask)
    dots = torch.tensor(dots, dtype=torch.float64)
    norms = torch.full_like(dots, NAN) if norms is None else torch.tensor(norms).double()
    return rule.decide(candidates, Products(dots, norms.square(), torch.tensor(1.0).double()))


def test_without_norms_at_threshold_zero_the_sign_decides_and_a_tie_drops():
    found = hard([0, 1, 2, 0], [[1e-30], [-1e-30], [0.0], [5.0]])
    assert found.kept.tolist() == [True, False, False, True]
    assert found.dropped.tolist() == [False, True, True, False]
    assert found.labels.tolist() == [0, -100, -100, 0]
    assert found.scores.isnan().tolist() == [True, True, False, True]


@pytest.mark.parametrize("norms", [None, [[0.0, 0.0]]], ids=["unknown-norms", "zero-norms"])
@pytest.mark.parametrize("threshold", [0.0, 0.5])
def test_a_zero_gradient_scores_zero_and_is_dropped(norms, threshold):
    found = hard([1], [[0.0, 0.0]], norms, rule=Rule(0, threshold))
    assert found.dropped.tolist() == [True]
    assert found.scores.tolist() == [0.0]


def test_against_a_zero_comparison_gradient_everything_is_dropped():
    candidates = Rule("any").candidates(torch.tensor([0, 1]), 2)
    zero = torch.zeros(2, 3)
    found = Rule("any").decide(candidates, Products(zero, torch.ones(2, 3), torch.tensor(0.0)))
    assert found.dropped.all()
    assert found.scores.tolist() == [0, 0]


def test_a_zero_gradient_passes_a_threshold_below_zero():
    assert hard([0], [[0.0]], [[0.0]], rule=Rule(threshold=-0.5)).kept.tolist() == [True]


@pytest.mark.parametrize(("dot", "kept"), [(0.5, False), (0.5000001, True), (0.49, False)])
def test_a_score_must_be_above_the_threshold(dot, kept):
    found = hard([0], [[dot]], [[1.0]], rule=Rule(threshold=0.5))
    assert found.kept.tolist() == [kept]


def test_the_given_label_stays_when_the_alternative_scores_the_same():
    found = hard([1], [[1.0, 2.0]], [[1.0, 2.0]], rule=Rule(0))
    assert found.kept.tolist() == [True]
    assert found.labels.tolist() == [1]


def test_the_cosine_and_not_the_dot_product_ranks_the_labels():
    found = hard([1, 1], [[1.0, 2.0], [2.0, 1.0]], [[1.0, 4.0], [4.0, 1.0]], rule=Rule(0))
    assert found.kept.tolist() == [True, False]
    assert found.labels.tolist() == [1, 0]


def test_a_sample_of_the_alternative_class_cannot_be_relabelled():
    found = hard([0], [[-1.0, 1.0]], [[1.0, 1.0]], rule=Rule(0))
    assert found.dropped.tolist() == [True]


def test_a_soft_row_that_is_the_alternative_class_cannot_be_relabelled_either():
    labels = torch.tensor([[1.0, 0.0], [0.5, 0.5]])
    rule = Rule(0)
    candidates = rule.candidates(labels, 2)
    products = Products(torch.tensor([[-1.0, 1.0]] * 2), torch.ones(2, 2), torch.tensor(1.0))
    found = rule.decide(candidates, products)
    assert found.dropped.tolist() == [True, False]
    assert found.relabelled.tolist() == [False, True]


def test_a_sample_without_a_label_may_be_given_the_alternative_but_is_never_kept():
    found = hard([-100, -100], [[9.0, 1.0], [9.0, -1.0]], rule=Rule(2))
    assert found.relabelled.tolist() == [True, False]
    assert found.labels.tolist() == [2, -100]
    assert not found.kept.any()
    assert found.scores.isnan().all()


def test_any_takes_the_best_of_all_classes():
    norms = [[1.0] * 4] * 2
    found = hard([1, 1], [[0.5, 0.25, 9.0, 0.75], [0.5, 0.25, 9.0, 0.5]], norms, rule=Rule("any"))
    assert found.labels.tolist() == [2, 1]  # the dot product of class 1 itself counts once


def test_the_mask_says_which_classes_a_sample_may_take():
    mask = torch.tensor([[True, True, False], [True, True, True], [False, False, False]])
    dots = [[-1.0, 0.5, 0.0, 0.75]] * 3
    found = hard([1, 1, 1], dots, [[1.0] * 4] * 3, rule=Rule("any"), mask=mask)
    assert found.labels.tolist() == [0, 2, -100]


def test_the_mask_never_takes_the_given_label_away():
    found = hard([1], [[0.5, 0.25]], rule=Rule(0), mask=torch.zeros(1, 3, dtype=torch.bool))
    assert found.kept.tolist() == [True]


def test_the_given_labels_are_not_written_to():
    labels = torch.tensor([0, 1])
    candidates = Rule(0).candidates(labels, 2)
    products = Products(-torch.ones(2, 2), torch.ones(2, 2), torch.tensor(1.0))
    Rule(0).decide(candidates, products)
    assert labels.tolist() == [0, 1]


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int16, torch.int32])
def test_labels_of_any_integer_type_can_be_dropped_and_relabelled(dtype):
    labels = torch.tensor([1, 1, 1]).to(dtype)
    candidates = Rule(0).candidates(labels, 2)
    dots = torch.tensor([[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0]])
    found = Rule(0).decide(candidates, Products(dots, torch.ones(3, 2), torch.tensor(1.0)))
    assert found.labels.tolist() == [IGNORE_LABEL, 0, 1]


def test_an_empty_batch_has_no_verdicts():
    labels = torch.empty(0, dtype=torch.int64)
    rule = Rule("any")
    candidates = rule.candidates(labels, 3)
    empty = torch.empty(0, 4)
    assert rule.norms_wanted(candidates, empty) is None
    found = rule.decide(candidates, Products(empty, empty, torch.tensor(1.0)))
    assert found.labels.shape == found.kept.shape == (0,)


# candidates and norms


def test_candidates_label_the_whole_batch_the_given_labels_first():
    labels = torch.tensor([2, 0])
    columns = Rule("any").candidates(labels, 3).columns()
    assert [column.tolist() for column in columns] == [[2, 0], [0, 0], [1, 1], [2, 2]]
    assert [column.tolist() for column in Rule(1).candidates(labels, 3).columns()] == [
        [2, 0],
        [1, 1],
    ]
    assert [column.tolist() for column in Rule().candidates(labels, 3).columns()] == [[2, 0]]


def test_soft_candidates_keep_the_given_rows():
    labels = torch.tensor([[0.5, 0.5]])
    columns = Rule(1).candidates(labels, 2).columns()
    assert columns[0] is labels
    assert columns[1].tolist() == [1]


def test_at_threshold_zero_norms_are_wanted_only_to_rank_several_positive_candidates():
    rule = Rule("any")
    candidates = rule.candidates(torch.tensor([0, 0, 0, -100]), 2)
    dots = torch.tensor([[1.0, 9.0, 1.0], [1.0, 9.0, -1.0], [-1.0, 9.0, 1.0], [9.0, 1.0, 1.0]])
    assert rule.norms_wanted(candidates) is None
    assert rule.norms_wanted(candidates, dots).tolist() == [
        [True, False, True],  # the given label's own class is no alternative
        [False, False, False],
        [False, False, False],
        [False, True, True],
    ]
    assert rule.norms_wanted(candidates, dots.clamp(max=0)) is None


def test_scores_want_the_norm_of_the_given_label():
    rule = Rule(0, scores=True)
    candidates = rule.candidates(torch.tensor([0, 1, -100]), 2)
    expected = [[True, False], [True, False], [False, False]]
    assert rule.norms_wanted(candidates).tolist() == expected
    assert rule.norms_wanted(candidates, -torch.ones(3, 2)).tolist() == expected


@pytest.mark.parametrize("threshold", [0.25, -0.25])
def test_another_threshold_wants_every_norm_of_what_is_allowed(threshold):
    rule = Rule(0, threshold)
    candidates = rule.candidates(torch.tensor([0, 1, -100]), 2)
    for dots in (None, -torch.ones(3, 2)):
        assert rule.norms_wanted(candidates, dots).tolist() == [
            [True, False],
            [True, True],
            [False, True],
        ]


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (Rule(), False),
        (Rule(eps=1e-6), False),
        (Rule(0), True),
        (Rule("any"), True),
        (Rule(threshold=-0.1), True),
        (Rule(scores=True), True),
        (MultilabelRule(), False),
        (MultilabelRule(eps=1e-6), False),
        (MultilabelRule(threshold=0.1), True),
        (MultilabelRule(scores=True), True),
    ],
)
def test_rules_know_whether_they_may_need_norms(rule, expected):
    assert rule.may_need_norms is expected


# Algorithm 2


@st.composite
def matrices(draw):
    size, classes = draw(st.integers(1, 4)), draw(st.integers(1, 3))

    def matrix(entries):
        row = st.lists(entries, min_size=classes, max_size=classes)
        return draw(st.lists(row, min_size=size, max_size=size))

    labels = matrix(st.sampled_from([0.0, 1.0, NAN, -100.0]))
    dots = matrix(st.integers(-4, 4))
    norms = matrix(st.sampled_from([1.0, 2.0, 4.0]))
    comparison = draw(st.lists(st.sampled_from([1.0, 2.0]), min_size=classes, max_size=classes))
    return labels, dots, norms, comparison


@repeatable
@given(matrices(), st.sampled_from([0.0, 0.25, -0.25]), st.sampled_from([0.0, 0.5]), st.booleans())
def test_every_entry_is_kept_or_dropped_as_algorithm_2_says(matrix, threshold, eps, with_norms):
    labels, dots, norms, comparison = matrix
    rule = MultilabelRule(threshold, eps)
    with_norms |= rule.may_need_norms
    squares = torch.tensor(norms).double().square()
    products = Products(
        torch.tensor(dots).double(),
        squares if with_norms else torch.full_like(squares, NAN),
        torch.tensor(comparison).double().square(),
    )
    found = rule.decide(torch.tensor(labels), products)
    for t, row in enumerate(labels):
        for k, label in enumerate(row):
            known = not math.isnan(label) and label != -100
            score = similarity(dots[t][k], norms[t][k], comparison[k], eps)
            corrected = -100
            if known and not score <= threshold:
                corrected = label
            assert found.labels[t, k].item() == corrected
            assert found.kept[t, k].item() is (corrected != -100)
            assert found.dropped[t, k].item() is (corrected == -100)
            assert not found.relabelled[t, k]
            if known and (with_norms or score == 0):
                assert found.scores[t, k].item() == pytest.approx(score, rel=1e-12)
            else:
                assert found.scores[t, k].isnan()


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int64, torch.float16])
def test_entries_of_any_type_can_be_dropped(dtype):
    labels = torch.tensor([[1, 0]]).to(dtype)
    products = Products(torch.tensor([[-1.0, 1.0]]), torch.ones(1, 2), torch.ones(2))
    found = MultilabelRule().decide(labels, products)
    assert found.labels.tolist() == [[IGNORE_LABEL, 0]]
    assert labels.tolist() == [[1, 0]]


# Eq. (1)


def test_the_cosine_is_the_dot_product_over_the_norms():
    generator = torch.Generator().manual_seed(0)
    gradients = torch.randn(4, 3, 5, generator=generator, dtype=torch.float64)
    comparison = torch.randn(5, generator=generator, dtype=torch.float64)
    products = Products(
        gradients @ comparison, gradients.square().sum(dim=2), comparison.square().sum()
    )
    expected = torch.nn.functional.cosine_similarity(gradients, comparison, dim=2)
    torch.testing.assert_close(products.cosine(), expected)


def test_several_labels_have_a_comparison_norm_each():
    products = Products(
        torch.tensor([[4.0, 4.0]]), torch.full((1, 2), 4.0), torch.tensor([4, 16.0])
    )
    assert products.cosine().tolist() == [[1, 0.5]]


def test_eps_is_added_to_the_product_of_the_norms():
    products = Products(torch.tensor([[3.0, -3.0]]), torch.full((1, 2), 4.0), torch.tensor(4.0))
    assert products.cosine(2.0).tolist() == [[0.5, -0.5]]  # 3 / (2 * 2 + 2)


def test_the_cosine_is_unknown_where_a_norm_is_unless_the_dot_product_is_zero():
    products = Products(torch.tensor([[3.0, 0.0]]), torch.full((1, 2), NAN), torch.tensor(4.0))
    assert products.cosine().isnan().tolist() == [[True, False]]
    assert products.cosine()[0, 1] == 0
    assert products.cosine(0.5)[0, 1] == 0


@pytest.mark.parametrize("scale", [1e-15, 1e-12, 1e12, 1e15])
def test_the_cosine_of_very_small_and_very_large_gradients_is_exact(scale):
    products = Products(
        torch.tensor([[0.5 * scale**2]]), torch.tensor([[scale**2]]), torch.tensor(scale**2)
    )
    torch.testing.assert_close(products.cosine(), torch.tensor([[0.5]]))


# refusals


@pytest.mark.parametrize("rule", [Rule, MultilabelRule])
@pytest.mark.parametrize("threshold", [1.5, -1.01, NAN, math.inf])
def test_a_threshold_that_no_cosine_can_meet_is_refused(rule, threshold):
    with pytest.raises(ValueError, match=rf"`threshold` to be in \[-1, 1\], got {threshold}\."):
        rule(threshold=threshold)


@pytest.mark.parametrize("rule", [Rule, MultilabelRule])
@pytest.mark.parametrize("eps", [-1e-6, NAN])
def test_a_negative_eps_is_refused(rule, eps):
    with pytest.raises(ValueError, match=rf"`eps` to be at least 0, got {eps}\."):
        rule(eps=eps)


@pytest.mark.parametrize("label", [-1, 1.0, "all", True, False])
def test_an_alternative_label_that_is_no_class_is_refused(label):
    text = rf'`alternative_label` to be a class index, "any" or None, got {label!r}\.'
    with pytest.raises(ValueError, match=text):
        Rule(label)


def test_an_alternative_label_that_the_model_does_not_have_is_refused():
    text = r"`alternative_label` to be in \[0, 2\], one class per output of the model, got 3\."
    with pytest.raises(ValueError, match=text):
        Rule(3).candidates(torch.tensor([0]), 3)


@pytest.mark.parametrize(
    ("mask", "given_text"),
    [
        (torch.ones(2, 3), r"got torch.float32 of shape \(2, 3\)\."),
        (torch.ones(2, 2, dtype=torch.bool), r"got torch.bool of shape \(2, 2\)\."),
        (torch.ones(3, dtype=torch.bool), r"got torch.bool of shape \(3,\)\."),
    ],
)
def test_a_mask_that_does_not_fit_is_refused(mask, given_text):
    text = r"`mask` to be booleans of shape \(2, 3\), one per sample and class, " + given_text
    with pytest.raises(ValueError, match=text):
        Rule("any").candidates(torch.tensor([0, 1]), 3, mask)


def test_rules_do_not_change():
    with pytest.raises(FrozenInstanceError, match="threshold"):
        Rule().threshold = 0.5


def test_an_alternative_label_may_be_a_numpy_integer():
    rule = Rule(np.int64(1))
    assert rule.candidates(torch.tensor([0]), num_classes=2).classes.tolist() == [1]
    with pytest.raises(ValueError, match=r"`alternative_label` to be in \[0, 1\].*got 2"):
        Rule(np.int64(2)).candidates(torch.tensor([0]), num_classes=2)
