"""CIFAR-10's binary batches, and two kinds of noisy labels published for them."""

import re
from pathlib import Path, PurePosixPath
from typing import Any, Literal

import numpy as np

from agra.data.dataset import NoisyDataset
from agra.data.readers.json_files import read_json
from agra.data.readers.npz import read_arrays
from agra.names import check_name

Array = np.ndarray[Any, Any]

CLASSES = (
    "airplane",
    "automobile",
    "bird",
    "cat",
    "deer",
    "dog",
    "frog",
    "horse",
    "ship",
    "truck",
)
BATCHES = {
    "train": tuple(f"data_batch_{number}.bin" for number in range(1, 6)),
    "test": ("test_batch.bin",),
}
PIXELS = 3 * 32 * 32
RECORD = 1 + PIXELS  # the label, then the red, green and blue planes

HumanLabels = Literal["aggre", "random1", "random2", "random3", "worse"]
HUMAN_LABELS: dict[HumanLabels, str] = {
    "aggre": "aggre_label",
    "random1": "random_label1",
    "random2": "random_label2",
    "random3": "random_label3",
    "worse": "worse_label",
}


def read_cifar10(folder: str | Path, split: Literal["train", "test"] = "train") -> NoisyDataset:
    """The images (N, 32, 32, 3) as bytes, with their right labels.

    Args:
        folder: Holds ``data_batch_1.bin`` to ``data_batch_5.bin`` and ``test_batch.bin``.
        split: "train" or "test".

    Raises:
        FileNotFoundError: A batch is missing.
        ValueError: A batch that is cut, or a label that is none; a split of another name.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> _ = (folder / "test_batch.bin").write_bytes(bytes([3] + [255] * 3072))
        >>> data = read_cifar10(folder, "test")
        >>> data.inputs.shape, data.label_names().tolist()
        ((1, 32, 32, 3), ['cat'])
    """
    check_name("split", split, BATCHES)
    records = np.concatenate([_records(Path(folder) / name) for name in BATCHES[split]])
    planes = records[:, 1:].reshape(-1, 3, 32, 32)
    labels = records[:, 0].astype(np.int64)
    return NoisyDataset(
        inputs=np.ascontiguousarray(planes.transpose(0, 2, 3, 1)),
        labels=labels,
        true_labels=labels,
        classes=CLASSES,
        split=split,
        name="cifar10",
    )


def _records(path: Path) -> Array:
    if not path.is_file():
        raise FileNotFoundError(f"Expected CIFAR-10's batch {path}, got no such file.")
    size = path.stat().st_size
    if not size or size % RECORD:
        raise ValueError(f"Expected {path} to be whole records of {RECORD} bytes, got {size}.")
    records = np.fromfile(path, dtype=np.uint8).reshape(-1, RECORD)
    wrong = records[:, 0] >= len(CLASSES)
    if wrong.any():
        row = int(wrong.argmax())
        raise ValueError(
            f"Expected the label of record {row} in {path} to be in [0, 9], got {records[row, 0]}."
        )
    return records


def read_path_labels(path: str | Path, true_labels: Array) -> Array:
    """Labels from a JSON object of image paths, ``.../<class>/<row>_<class>.png``, to labels.

    Args:
        path: The file, as published with the confident-learning paper; ``.gz`` is unpacked.
        true_labels: (N,) of the training images, to see that the labels belong to them.

    Raises:
        FileNotFoundError: No such file.
        ValueError: Not one label per image, or labels of other images.

    Example:
        >>> import json, tempfile
        >>> path = Path(tempfile.mkdtemp()) / "noisy.json"
        >>> _ = path.write_text(json.dumps({"train/cat/1_cat.png": 5, "train/dog/0_dog.png": 5}))
        >>> read_path_labels(path, np.array([5, 3])).tolist()
        [5, 5]
    """
    path = Path(path)
    entries = read_json(path)
    labels, truth = np.full((2, len(true_labels)), -1)
    for image, label in entries.items() if isinstance(entries, dict) else ():
        found = re.fullmatch(r"(\d+)_([a-z]+)\.png", PurePosixPath(image).name)
        if found is None or found[2] not in CLASSES or int(found[1]) >= len(labels):
            raise ValueError(
                f"Expected {path} to name images as in 'cat/7_cat.png', numbered below "
                f"{len(labels)}, got {image!r}."
            )
        if type(label) is not int or not 0 <= label < len(CLASSES):
            raise ValueError(f"Expected the label of {image} in {path} in [0, 9], got {label!r}.")
        labels[int(found[1])], truth[int(found[1])] = label, CLASSES.index(found[2])
    _check_order(path, truth, true_labels)
    return labels


def read_human_labels(path: str | Path, kind: HumanLabels, true_labels: Array) -> Array:
    """One of CIFAR-10N's sets of labels that people gave.

    Args:
        path: A NumPy archive of CIFAR-10N's arrays ``clean_label``, ``aggre_label``, ...
        kind: "aggre" (majority of three), "random1" to "random3" (one of them each) or "worse" (a
            wrong one if there is any).
        true_labels: (N,) of the training images, to see that the labels belong to them.

    Raises:
        FileNotFoundError: No such file.
        ValueError: An unknown kind, an array that is missing, or labels of other images.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "human.npz"
        >>> np.savez(path, clean_label=[5, 3], worse_label=[5, 5])
        >>> read_human_labels(path, "worse", np.array([5, 3])).tolist()
        [5, 5]
    """
    check_name("kind", kind, HUMAN_LABELS)
    arrays = read_arrays(Path(path), ["clean_label", HUMAN_LABELS[kind]])
    _check_order(Path(path), arrays["clean_label"], true_labels)
    labels = arrays[HUMAN_LABELS[kind]]
    if labels.shape != true_labels.shape:
        raise ValueError(
            f"Expected {path} to hold one {HUMAN_LABELS[kind]} per image, got {labels.shape}."
        )
    return labels.astype(np.int64)


def _check_order(path: Path, truth: Array, true_labels: Array) -> None:
    """Refuse labels of other images, or in another order: they would pass for heavy noise."""
    if truth.shape != true_labels.shape:
        raise ValueError(
            f"Expected {path} to hold {len(true_labels)} labels, got shape {truth.shape}."
        )
    if (truth != true_labels).any():
        row = int((truth != true_labels).argmax())
        raise ValueError(
            f"Expected the labels in {path} to belong to the images, got class {truth[row]} as "
            f"the true one of row {row}, whose batch says {true_labels[row]}."
        )
