"""What labelling functions reach: as plain loops, on real votes, and refusals."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agra.label_models import Coverage, coverage_summary, function_table
from test_majority import vote_matrices
from text_sets import load


def plain_row(votes, truth, column):
    cast = [row for row in votes if row[column] >= 0]
    others = [[v for f, v in enumerate(row) if f != column and v >= 0] for row in cast]
    shared = sum(bool(other) for other in others)
    contradicted = sum(
        any(v != row[column] for v in other) for row, other in zip(cast, others, strict=True)
    )
    judged = [
        row[column] == label
        for row, label in zip(votes, truth, strict=True)
        if row[column] >= 0 and label >= 0
    ]
    size = max(1, len(votes))
    return {
        "classes": tuple(f"class {k}" for k in sorted({row[column] for row in cast})),
        "coverage": len(cast) / size,
        "overlap": shared / size,
        "conflict": contradicted / size,
        "accuracy": sum(judged) / len(judged) if judged else float("nan"),
    }


@given(vote_matrices(), st.integers(0, 99))
@settings(deadline=None)
def test_tables_are_those_of_plain_loops(case, seed):
    votes, num_classes = case
    truth = np.random.default_rng(seed).integers(-1, num_classes, len(votes))
    classes = [f"class {k}" for k in range(num_classes)]
    table = function_table(votes, classes, true_labels=truth)
    rows = [plain_row(votes.tolist(), truth.tolist(), f) for f in range(votes.shape[1])]
    assert list(table.index) == [str(f) for f in range(votes.shape[1])]
    assert list(table["classes"]) == [row["classes"] for row in rows]
    for name in ("coverage", "overlap", "conflict", "accuracy"):
        np.testing.assert_allclose(
            np.array(table[name], dtype=float), [row[name] for row in rows], err_msg=name
        )
    given_votes = [[v for v in row if v >= 0] for row in votes.tolist()]
    size = max(1, len(votes))
    summary = coverage_summary(votes, num_classes)
    assert summary.covered == sum(map(bool, given_votes)) / size
    assert summary.conflicting == sum(len(set(row)) > 1 for row in given_votes) / size
    assert summary.votes_per_row == pytest.approx(sum(map(len, given_votes)) / size)


def test_no_true_labels_no_accuracy():
    table = function_table([[0, 1]], ("ham", "spam"), functions=("link", "short"))
    assert list(table.columns) == ["classes", "coverage", "overlap", "conflict"]
    assert list(table.index) == ["link", "short"]
    assert coverage_summary([[0, 1]], 2) == Coverage(1.0, 1.0, 2.0)


def test_rows_without_a_vote_of_real_sets():
    _, _, votes = load("yoruba", "train")
    assert round((1 - coverage_summary(votes, 7).covered) * len(votes)) == 90


def test_refusals():
    with pytest.raises(
        ValueError, match=r"Expected `functions` to name each column of `votes` \(2"
    ):
        function_table([[0, 1]], ("ham", "spam"), functions=("link",))
    for truth in ([0], [0.0, 1.0], [[0, 1]]):
        with pytest.raises(
            ValueError, match="Expected `true_labels` to be one class index per row"
        ):
            function_table([[0, 1], [1, 1]], ("ham", "spam"), true_labels=truth)
