"""Majority vote: as plain loops, the paper's noise rates, ties, memory, and refusals."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import agra.label_models.majority as module
from agra import IGNORE_LABEL
from agra.label_models import majority_vote, vote_counts, vote_shares
from text_sets import TEXT_SETS, data_home, load, majority

# Table 4 of the paper, in percent; SPAM and HAM of YouTube and SMS change places there
SHARES = {
    "youtube": {"HAM": 52.3, "SPAM": 47.7},
    "sms": {"ham": 63.8, "spam": 36.2},
    "trec": {"DESC": 56.6, "ENTY": 8.0, "HUM": 12.8, "ABBR": 1.0, "LOC": 8.0, "NUM": 13.6},
    "yoruba": {
        "africa": 6.1,
        "entertainment": 25.2,
        "health": 6.5,
        "nigeria": 10.3,
        "politics": 26.2,
        "sport": 6.8,
        "world": 18.9,
    },
    "hausa": {"Africa": 19.6, "Health": 10.1, "Nigeria": 8.6, "Politics": 7.9, "World": 53.7},
}


@st.composite
def vote_matrices(draw):
    num_classes = draw(st.integers(1, 5))
    rows, functions = draw(st.integers(0, 12)), draw(st.integers(0, 6))
    cells = st.integers(-1, num_classes - 1)
    votes = draw(
        st.lists(
            st.lists(cells, min_size=functions, max_size=functions), min_size=rows, max_size=rows
        )
    )
    return np.array(votes, dtype=np.int64).reshape(rows, functions), num_classes


@given(vote_matrices())
@settings(deadline=None)
def test_votes_fall_as_in_plain_loops(case):
    votes, num_classes = case
    expected = majority(votes.tolist(), num_classes)
    assert majority_vote(votes, num_classes).tolist() == expected.tolist()
    counts = [[row.count(k) for k in range(num_classes)] for row in votes.tolist()]
    assert vote_counts(votes, num_classes).tolist() == counts
    shares = vote_shares(votes, num_classes)
    assert shares.shape == (len(votes), num_classes)
    for row, share in zip(counts, shares, strict=True):
        plain = [count / sum(row) if sum(row) else 1 / num_classes for count in row]
        np.testing.assert_allclose(share, plain)


@given(vote_matrices(), st.integers(0, 12), st.integers(1, 20))
@settings(deadline=None)
def test_blocks_and_chunks_change_nothing(case, cut, cells):
    votes, num_classes = case
    whole = majority_vote(votes, num_classes)
    parts = [
        majority_vote(votes[:cut], num_classes),
        majority_vote(votes[cut:], num_classes, first_row=cut),
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_CELLS", cells)
        blocks = majority_vote(votes, num_classes)
    assert whole.tolist() == np.concatenate(parts).tolist() == blocks.tolist()


@pytest.mark.parametrize("text_set", TEXT_SETS, ids=lambda text_set: text_set.name)
def test_noise_rates_and_class_shares_are_the_papers(text_set):
    _, truth, votes = load(text_set.name, "train")
    names = json.loads((data_home() / "text" / text_set.name / "label.json").read_text("utf-8"))
    labels = majority_vote(votes, len(names))
    assert round(100 * (labels != truth).mean(), 1) == text_set.noise
    for code, name in names.items():
        share = 100 * (labels == int(code)).mean()
        assert share == pytest.approx(SHARES[text_set.name][name], abs=0.1), name


def test_random_ties_are_even_and_by_seed():
    votes = np.tile([[0, 2, 2, 0, 1]], (20_000, 1))
    labels, again, other = (majority_vote(votes, 3, ties="random", seed=seed) for seed in (0, 0, 1))
    assert (labels == again).all()
    assert (labels != other).any()
    counts = np.bincount(labels, minlength=3)
    assert counts[1] == 0
    assert abs(counts[0] - 10_000) < 400  # more than five standard deviations
    assert majority_vote([[1, 1, 0]], 2, ties="random").tolist() == [1]


def test_uncovered_rows_may_stay_without_a_label():
    votes = [[-1, -1], [-1, 1], [0, 1]]
    labels = majority_vote(votes, 2, uncovered="unlabelled")
    assert labels.tolist()[:2] == [IGNORE_LABEL, 1]
    assert labels[2] >= 0
    assert (majority_vote(votes, 2) >= 0).all()


def test_refusals():
    with pytest.raises(ValueError, match=r"`ties` to be one of \['random', 'row-hash'\]"):
        majority_vote([[0]], 1, ties="row_hash")
    with pytest.raises(ValueError, match="did you mean 'unlabelled'"):
        majority_vote([[0]], 1, uncovered="unlabeled")
    with pytest.raises(ValueError, match="Expected `num_classes` to be at least 1, got 0"):
        majority_vote([[0]], 0)
    with pytest.raises(ValueError, match=r"as many votes in every row, got 2 in row 0 and 1 in ro"):
        majority_vote([[0, 1], [0]], 2)
    for votes in ([[0.0, 1.0]], [0, 1], [["0", "1"]], [[True]], []):
        with pytest.raises(ValueError, match="to be a matrix of whole numbers"):
            majority_vote(votes, 2)
    for votes in ([[0, 0], [0, 2]], [[0, 0], [0, -2]], np.array([[0, 0], [0, 255]], dtype="u1")):
        with pytest.raises(
            ValueError, match=r"`votes` to be class indices in \[0, 1\].*in row 1, function 1"
        ):
            vote_shares(votes, 2)
