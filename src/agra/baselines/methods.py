"""What a method is: what it learns from, with which classifier, and what can be set."""

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from agra.data.dataset import NoisyDataset
from agra.estimators.targets import Array
from agra.label_models.model import LabelModel
from agra.names import check_name

Settings = Mapping[str, Any]

_LABEL_MODEL = "label_model__"


@dataclass(frozen=True, kw_only=True)
class Method:
    """A way to train on noisy labels, from data sets of numbers to a fitted classifier.

    Attributes:
        name: As users type it.
        title: In the paper's words.
        learns_from: "true labels", "given labels" or "votes".
        make: The classifier of settings and a seed.
        settings: What `make` knows.
        grid: The values that the paper tried of each setting.
        label_model: Where the label model of the votes is defined; None without votes.
        label_grid: The values that the paper tried of the label model's own settings.

    Example:
        >>> from agra.baselines import find_method
        >>> rows, truth = np.eye(2)[[0, 1] * 20], np.array([0, 1] * 20)
        >>> train = NoisyDataset(inputs=rows, labels=truth, classes=("ham", "spam"))
        >>> method = find_method("no-denoising")
        >>> method.fit(train, None, {"epochs": 3}, 0).score(rows, truth)
        1.0
    """

    name: str
    title: str
    learns_from: Literal["true labels", "given labels", "votes"]
    make: Callable[[dict[str, Any], int], Any] = field(repr=False)
    settings: tuple[str, ...] = field(repr=False)
    grid: Mapping[str, tuple[Any, ...]] = field(repr=False)
    label_model: str | None = None
    label_grid: Mapping[str, tuple[Any, ...]] = field(default_factory=dict, repr=False)

    def fit(
        self,
        train: NoisyDataset,
        valid: NoisyDataset | None = None,
        settings: Settings | None = None,
        seed: int = 0,
    ) -> Any:
        """The classifier, fitted. Its classes are indices into ``train.classes``.

        Args:
            train: Numbers as inputs, one label per sample. Rows without a label are left out.
            valid: To select the epoch by: with its true labels, or the given ones if there are no
                others. Rows of classes that training has not seen are left out.
            settings: Of the classifier, by name; of the label model with ``label_model__`` before
                it; and of a method that learns from votes ``soft`` (probabilities, the default, or
                one label per row) and ``uncovered`` (whether rows without a vote take part).
            seed: Of everything random.

        Raises:
            TypeError: Inputs that are no numbers.
            ValueError: Labels or votes that are not there; a setting that the method does not know.
        """
        features = train.features()
        labels = self.label(train, settings, seed)
        if labels.ndim == 1 and not (labels >= 0).all():
            rows = np.flatnonzero(labels >= 0)
            features, labels = features[rows], labels[rows]
        own = {k: v for k, v in (settings or {}).items() if k in self.settings}
        classifier = self.make(own, seed)
        if valid is None:
            return classifier.fit(features, labels)
        return classifier.fit(features, labels, validation=_validation(valid, labels))

    def label(self, train: NoisyDataset, settings: Settings | None = None, seed: int = 0) -> Array:
        """What the classifier learns: class indices (N,), negative where there is none.

        Or probabilities (N, K), NaN where there is none.

        Args:
            train: As for `fit`.
            settings: As for `fit`.
            seed: As for `fit`.

        Raises:
            ValueError: As `fit`.
        """
        self._check(train, settings or {})
        if self.learns_from == "votes":
            return self._from_votes(train, dict(settings or {}), seed)
        labels: Any = train.true_labels if self.learns_from == "true labels" else train.labels
        return np.asarray(labels)

    def search_space(self) -> dict[str, tuple[Any, ...]]:
        """The paper's grid (Table 6 of its appendix): the values of every setting that is here.

        What the paper tried of a label model's optimizer is part of it where ours has that setting.
        """
        space = dict(self.grid)
        if self.label_model is not None:
            known = self._label_model_class()._get_param_names()
            own = {k: v for k, v in self.label_grid.items() if k in known}
            space |= {f"{_LABEL_MODEL}{name}": values for name, values in own.items()}
        return space

    def _check(self, train: NoisyDataset, settings: Settings) -> None:
        known = list(self.settings)
        if self.label_model is not None:
            names = self._label_model_class()._get_param_names()
            known += ["soft", "uncovered", *(f"{_LABEL_MODEL}{name}" for name in names)]
        for name in settings:
            check_name(f"settings of {self.name}", name, known)
        if train.several:
            raise ValueError(
                f"Expected one label per sample for {self.name!r}, got several in "
                f"{train.name or 'the data set'}; use agra.AgraMultilabelClassifier."
            )
        needed = {"true labels": train.true_labels, "votes": train.votes}
        if needed.get(self.learns_from, train.labels) is None:
            raise ValueError(
                f"Expected a data set with {self.learns_from} for {self.name!r}, got none in "
                f"{train.name or 'the data set'}."
            )

    def _from_votes(self, train: NoisyDataset, settings: dict[str, Any], seed: int) -> Array:
        kind = self._label_model_class()
        seeds = {"seed", "random_state"} & set(kind._get_param_names())
        own = dict.fromkeys(seeds, seed) | {
            name.removeprefix(_LABEL_MODEL): value
            for name, value in settings.items()
            if name.startswith(_LABEL_MODEL)
        }
        model = kind(**{"num_classes": len(train.classes), **own}).fit(train.votes)
        soft = settings.get("soft", True)
        # of all rows: ties fall by the row number
        found = model.predict_proba(train.votes) if soft else model.predict(train.votes)
        if not settings.get("uncovered", False):
            found = found.astype(np.float64) if soft else found.copy()
            found[(train.votes < 0).all(axis=1)] = np.nan if soft else -1
        return found

    def _label_model_class(self) -> type[LabelModel]:
        assert self.label_model is not None
        module, _, name = self.label_model.rpartition(".")
        return getattr(importlib.import_module(module), name)


def _validation(valid: NoisyDataset, labels: Array) -> tuple[Any, Array]:
    wanted = valid.labels if valid.true_labels is None else valid.true_labels
    taught = np.isin(wanted, np.unique(labels)) if labels.ndim == 1 else wanted < labels.shape[1]
    rows = np.flatnonzero(taught & (wanted >= 0))
    if not len(rows):
        raise ValueError(
            "Expected `valid` to hold labels of the classes that training has seen, got none."
        )
    features = valid.features()
    return (features, wanted) if len(rows) == len(wanted) else (features[rows], wanted[rows])
