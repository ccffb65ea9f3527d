"""Answers of many annotators, as a NumPy archive."""

from pathlib import Path

import numpy as np

from agra.data.dataset import NoisyDataset
from agra.data.readers.npz import read_arrays, read_from
from agra.label_models.majority import majority_vote


def read_crowd(path: str | Path, *, name: str = "") -> dict[str, NoisyDataset]:
    """The training split, labelled by the majority of its annotators, and the test split.

    Args:
        path: A NumPy archive of ``x_train``, ``y_train`` (right labels), ``answers`` (a column per
            annotator, -1 where there is none), ``x_test``, ``y_test`` and ``classes``.
        name: Of the data set; by default the file's.

    Raises:
        FileNotFoundError: No such file.
        ValueError: Arrays that are missing or do not fit together.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "tiny.npz"
        >>> np.savez(path, x_train=np.eye(2), y_train=[0, 1], x_test=np.eye(2), y_test=[0, 1],
        ...     answers=[[0, 0, -1], [0, 0, 1]], classes=["jazz", "rock"])
        >>> splits = read_crowd(path)
        >>> splits["train"].label_names().tolist(), splits["test"].label_names().tolist()
        (['jazz', 'jazz'], ['jazz', 'rock'])
    """
    path = Path(path)
    arrays = read_arrays(path, ["x_train", "y_train", "answers", "x_test", "y_test", "classes"])
    classes, answers = arrays["classes"].tolist(), arrays["answers"]
    with read_from(path):
        test = NoisyDataset(
            inputs=arrays["x_test"].astype(np.float32),
            labels=arrays["y_test"],
            true_labels=arrays["y_test"],
            classes=classes,
            split="test",
            name=name or path.stem,
        )
        correct = test.replace(
            inputs=arrays["x_train"].astype(np.float32),
            labels=arrays["y_train"],
            true_labels=arrays["y_train"],
            votes=answers,
            ids=None,
            split="train",
        )  # checks the answers before they are counted
    return {
        "train": correct.replace(labels=majority_vote(correct.votes, len(classes))),
        "test": test,
    }
