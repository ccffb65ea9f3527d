"""Label issues: exact columns, honest counts, one row per label."""

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.exceptions import NotFittedError
from sklearn.metrics import roc_auc_score

from agra import IGNORE_LABEL, AgraClassifier, AgraMultilabelClassifier, Ledger
from agra.decisions import Decisions
from agra.issues import LabelIssues, label_quality

COLUMNS = [
    "is_label_issue",
    "label_quality",
    "given_label",
    "predicted_label",
    "drop_rate",
    "mean_score",
    "suggested_label",
    "confidence",
]


def noisy(size=600, seed=0, share=0.2):
    generator = np.random.default_rng(seed)
    truth = generator.integers(0, 3, size)
    x = generator.normal(size=(size, 6)) + 4 * np.eye(3, 6)[truth]
    given, wrong = truth.copy(), generator.permutation(size)[: int(share * size)]
    given[wrong] = (given[wrong] + 1) % 3
    return x, given, truth


def recorded():
    """Three samples, judged twice by hand."""
    ledger = Ledger(3)
    for probability in (0.2, 0.4):
        kept = torch.tensor([False, True])
        ledger.record(
            torch.tensor([0, 2]),
            Decisions(
                torch.tensor([-100, 1]), torch.tensor([-0.5, 0.5]), kept, ~kept, ~kept & kept
            ),
            torch.tensor([probability, 0.9]),
        )
    return ledger


def test_quality_is_the_mean_probability_of_the_given_label():
    quality = label_quality(recorded())
    torch.testing.assert_close(quality[[0, 2]], torch.tensor([0.3, 0.9]))
    assert quality[1].isnan()


def test_a_frame_by_hand():
    issues = LabelIssues.of(
        torch.tensor([0, 1, IGNORE_LABEL, 1]),
        (torch.tensor([1, 1, 0, 1]), torch.tensor([0.8, 0.7, 0.6, 0.5])),
        recorded(),
        torch.tensor([0, 1, 3]),
    )
    frame = issues.to_frame(np.array(["ham", "spam"]), pd.Index(list("abcd")))
    assert list(frame.columns) == COLUMNS
    assert frame["is_label_issue"].tolist() == [True, False, False, False]
    assert frame["given_label"].isna().tolist() == [False, False, True, False]
    assert frame.loc["a", ["given_label", "predicted_label", "suggested_label"]].tolist() == [
        *("ham", "spam", "spam")
    ]
    np.testing.assert_allclose(frame["confidence"], [0.8, np.nan, np.nan, np.nan], rtol=1e-6)
    np.testing.assert_allclose(frame["label_quality"], [0.3, np.nan, np.nan, 0.9], rtol=1e-6)
    np.testing.assert_allclose(frame["drop_rate"], [1, np.nan, np.nan, 0])
    np.testing.assert_allclose(frame["mean_score"], [-0.5, np.nan, np.nan, 0.5])
    classes, confusion = issues.summary(np.array(["ham", "spam"]))
    assert classes["samples"].tolist() == [1, 2]
    assert classes["issues"].tolist() == [1, 0]
    assert confusion.loc["ham", "spam"] == 1
    assert confusion.to_numpy().sum() == 1


def test_wrong_labels_come_first():
    x, given, truth = noisy()
    model = AgraClassifier(random_state=0).fit(x, given)
    wrong = given != truth
    issues = model.find_label_issues()
    assert roc_auc_score(wrong, -model.label_quality_) > 0.95
    found = issues["is_label_issue"].to_numpy()
    assert (found & wrong).sum() / wrong.sum() > 0.85
    assert (found & wrong).sum() / found.sum() > 0.85
    right = issues["suggested_label"][found & wrong].to_numpy(int) == truth[found & wrong]
    assert right.mean() > 0.9
    np.testing.assert_array_equal(issues["predicted_label"], model.predict(x))
    summary = model.issues_summary()
    assert summary.classes["issues"].sum() == found.sum() == summary.confusion.to_numpy().sum()
    assert summary.classes["samples"].tolist() == np.bincount(given).tolist()


def test_issues_are_indexed_like_the_input():
    x, given, _ = noisy()
    index = pd.Index([f"row {i}" for i in range(len(x))], name="id")
    frame = pd.DataFrame(x, index=index)
    names = pd.Series(np.array(["a", "b", "c"])[given], index=index)
    issues = AgraClassifier(random_state=0).fit(frame, names).find_label_issues()
    pd.testing.assert_index_equal(issues.index, index)
    assert issues["given_label"].tolist() == names.tolist()


def test_several_labels_have_one_row_per_entry():
    generator = np.random.default_rng(0)
    x = generator.normal(size=(300, 5))
    truth = (x[:, :3] > 0).astype(float)
    given = truth.copy()
    wrong = generator.random(given.shape) < 0.1
    given[wrong] = 1 - given[wrong]
    given[:4, 0] = np.nan
    frame = pd.DataFrame(given, columns=["red", "round", "ripe"])
    model = AgraMultilabelClassifier(random_state=0, epochs=30).fit(x, frame)
    issues = model.find_label_issues()
    assert list(issues.columns) == COLUMNS
    assert issues.index.names == ["sample", "label"]
    assert len(issues) == 900
    assert issues.loc[(0, "red")].isna()[["given_label", "label_quality"]].all()
    assert issues.loc[(7, "ripe"), "given_label"] == given[7, 2]
    quality = model.label_quality_
    assert quality.shape == (300, 3)
    known = ~np.isnan(given)
    assert roc_auc_score(wrong[known], -quality[known]) > 0.9
    summary = model.issues_summary()
    assert summary.classes["issues"].sum() == issues["is_label_issue"].sum()
    assert summary.classes.index.names == ["label", "given"]
    assert summary.classes["samples"].sum() == known.sum()


def test_without_judging_there_are_none():
    x, given, _ = noisy()
    model = AgraClassifier(judging=False)
    with pytest.raises(NotFittedError):
        model.find_label_issues()
    with pytest.raises(ValueError, match="Expected a fit with judging=True to tell label issues"):
        model.fit(x, given).find_label_issues()
