"""The image sets: scikit-learn's digits, CIFAR-10 with published label noise, CheXpert."""

from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from agra.data.catalog.entry import Archive, Counts, Entry, File, Request, Splits
from agra.data.dataset import NoisyDataset
from agra.data.noise import symmetric_noise
from agra.data.readers.chexpert import read_chexpert
from agra.data.readers.cifar import (
    BATCHES,
    HUMAN_LABELS,
    read_cifar10,
    read_human_labels,
    read_path_labels,
)
from agra.names import check_name

TORONTO = "https://www.cs.toronto.edu/~kriz/cifar.html"
CONFIDENT = "https://github.com/cgnorthcutt/confidentlearning-reproduce"
HUMAN = "https://github.com/UCSC-REAL/cifar-10-100n"
STANFORD = "https://stanfordmlgroup.github.io/competitions/chexpert/"

Array = np.ndarray[Any, Any]

DIGITS_NOISE = 0.3
CIFAR_NOISE = ("confident-learning", *HUMAN_LABELS, "clean")


def _load_digits(request: Request) -> Splits:
    rate = DIGITS_NOISE if request.noise is None else request.noise
    if isinstance(rate, str) or not 0 <= rate <= 1:
        raise ValueError(f"Expected `noise` of 'digits' to be a rate in [0, 1], got {rate!r}.")
    digits = load_digits()
    train, rest = _divide(np.arange(len(digits.target)), digits.target, 0.3, request.seed)
    valid, test = _divide(rest, digits.target, 0.5, request.seed)
    splits = {
        split: NoisyDataset(
            inputs=digits.data[rows].astype(np.float32) / 16,  # their greatest value
            labels=digits.target[rows],
            true_labels=digits.target[rows],
            classes=[str(digit) for digit in range(10)],
            ids=rows,
            split=split,
            name=request.name,
        )
        for split, rows in (("train", train), ("valid", valid), ("test", test))
    }
    noisy = symmetric_noise(digits.target[train], rate, 10, seed=request.seed)
    splits["train"] = splits["train"].replace(labels=noisy.labels)
    return splits


def _divide(rows: Array, labels: Array, share: float, seed: int) -> list[Array]:
    """Two parts, the second with that share, each with the classes as frequent as in all."""
    return [
        np.sort(part)
        for part in train_test_split(
            rows, test_size=share, random_state=seed, stratify=labels[rows]
        )
    ]


def _load_cifar10(request: Request) -> Splits:
    noise = "confident-learning" if request.noise is None else request.noise
    check_name("noise", noise, CIFAR_NOISE)
    folder = request.folder(file.path for file in _BATCH_FILES)
    source = _CONFIDENT_FILE if noise == "confident-learning" else _HUMAN_FILE
    path = folder if noise == "clean" else request.find(source.path)
    train, test = read_cifar10(folder, "train"), read_cifar10(folder, "test")
    if noise == "confident-learning":
        train = train.replace(labels=read_path_labels(path, train.true_labels))
    elif noise in HUMAN_LABELS:
        train = train.replace(labels=read_human_labels(path, noise, train.true_labels))
    valid, rest = _divide(np.arange(len(test)), test.true_labels, 0.5, request.seed)
    return {"train": train, "valid": test[valid].replace(split="valid"), "test": test[rest]}


def _load_chexpert(request: Request) -> Splits:
    request.refuse_noise()
    folder = request.folder(file.path for file in request.entry.files)
    return read_chexpert(folder, seed=request.seed)


_CIFAR10_ARCHIVE = Archive(
    path="cifar10/cifar-10-binary.tar.gz",
    url="https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
    size=170_052_171,
    # the page itself publishes the MD5 c32a1d4ab5d03f1284b67883e8d87530
    sha256="c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
)
_BATCH_SUMS = (
    "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5",
    "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed",
    "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67",
    "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48",
    "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add",
    "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b",
)
_BATCH_FILES = tuple(
    File(
        path=f"cifar10/cifar-10-batches-bin/{name}",
        origin=TORONTO,
        size=30_730_000,
        sha256=sha256,
        archive=(_CIFAR10_ARCHIVE, f"cifar-10-batches-bin/{name}"),
        how="unpack it from cifar-10-binary.tar.gz",
    )
    for name, sha256 in zip((*BATCHES["train"], *BATCHES["test"]), _BATCH_SUMS, strict=True)
)
_NOISY_NAME = "cifar10_noisy_labels__frac_zero_noise_rates__0.6__noise_amount__0.2.json"
_CONFIDENT_FILE = File(
    path=f"cifar10/{_NOISY_NAME}.gz",
    origin=CONFIDENT,
    size=159_387,
    sha256="1424d124eba67a012a6525ccfb4cd059bbe417801ee140719d25f36584309312",
    instead=File(
        path=f"cifar10/{_NOISY_NAME}",
        origin=CONFIDENT,
        size=3_438_890,
        sha256="8c8ffe9129d071bc229829184a4f10b52ecdcbfb98663865c708537affc881c3",
        url="https://raw.githubusercontent.com/cgnorthcutt/confidentlearning-reproduce/"
        f"10ff40005937dab1a527b22c3b5c8cba9f1adef8/cifar/cifar10/cifar10_noisy_labels/{_NOISY_NAME}",
    ),
)
_HUMAN_FILE = File(
    path="cifar10/cifar10n_human_labels.npz",
    origin=HUMAN,
    size=149_520,
    sha256="6024485a143efa682792c21d7f2adfdef5a374dce699bb2fcd4d62cd55cc4852",
    how="save the six label arrays of CIFAR-10_human.pt, a pickle, with numpy.savez",
)

DIGITS = Entry(
    name="digits",
    title="Handwritten digits, 8 x 8 pixels, that come with scikit-learn",
    origin="https://archive.ics.uci.edu/dataset/80",
    citation="Alpaydin, Kaynak: Optical Recognition of Handwritten Digits, UCI, 1998",
    licence="CC BY 4.0",
    noise="30 % flipped by seed",
    load=_load_digits,
    counts=Counts(rows={"train": 1257, "valid": 270, "test": 270}, classes=10, wrong=377),
    notes="Nothing to download. `noise` is the share of training labels that are flipped to "
    "another digit.",
)

CIFAR10 = Entry(
    name="cifar10",
    title="Colour images of ten things, 32 x 32 pixels",
    origin=TORONTO,
    citation="Krizhevsky: Learning Multiple Layers of Features from Tiny Images, 2009; noise: "
    "Northcutt, Jiang, Chuang: Confident Learning, JAIR 2021; Wei et al.: Learning with Noisy "
    "Labels Revisited, ICLR 2022",
    licence="not stated",
    noise="20 %, sparsity 0.6",
    load=_load_cifar10,
    counts=Counts(
        rows={"train": 50_000, "valid": 5000, "test": 5000},
        classes=10,
        wrong=9983,
        given=(3017, 5871, 3842, 5792, 4727, 4327, 4942, 5682, 7517, 4283),
    ),
    files=(*_BATCH_FILES, _CONFIDENT_FILE, _HUMAN_FILE),
    notes="`noise` is 'confident-learning', 'clean', or what people answered in CIFAR-10N: "
    "'aggre' (9 % wrong), 'random1', 'random2', 'random3' (17 to 18 %), 'worse' (40 %). Validation "
    "and test are halves of the published test images, drawn by the seed. The confident-learning "
    "labels are under the MIT licence.",
)

CHEXPERT = Entry(
    name="chexpert",
    title="Chest radiographs, 12 pathologies",
    origin=STANFORD,
    citation="Irvin et al.: CheXpert: A Large Chest Radiograph Dataset with Uncertainty Labels and "
    "Expert Comparison, AAAI 2019",
    licence="research use agreement",
    noise="read from reports",
    load=_load_chexpert,
    counts=Counts(rows={"train + valid": 223_414, "test": 234}, classes=12),
    files=tuple(
        File(
            path=f"chexpert/{table}",
            origin=STANFORD,
            how="register, accept Stanford's research use agreement, and unpack the data set",
        )
        for table in ("train.csv", "valid.csv")
    ),
    notes="Uncertain counts as present, not mentioned as absent. Validation: about 10 % of the "
    "training rows, whole patients drawn by the seed. Test: the published validation set.",
)
