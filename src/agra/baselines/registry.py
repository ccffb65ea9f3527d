"""Every method by its name, with the grid that the paper searched (Table 6 of its appendix)."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from agra.baselines.cores import CORES2
from agra.baselines.methods import Method
from agra.baselines.plain import PlainClassifier
from agra.baselines.pruning import Cleanlab
from agra.estimators import AgraClassifier
from agra.names import check_name

_RATES = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
_EPOCHS = (5, 10, 50, 100, 200)


def _grid(*batch_sizes: int, decays: tuple[float, ...] = _RATES) -> dict[str, tuple[Any, ...]]:
    return {"learning_rate": _RATES, "batch_size": batch_sizes, "weight_decay": decays}


# what the paper does not list (gold, majority vote, Dawid-Skene) has the grid of no denoising
_PLAIN = _grid(32, 64, 128)
_JUDGING = _grid(32, 128, 512)


def _names(kind: Any, *others: str) -> tuple[str, ...]:
    return (*(name for name in kind._get_param_names() if name not in _FIXED), *others)


_FIXED = ("classifier", "judging", "random_state")


def _plain(settings: dict[str, Any], seed: int) -> Any:
    return AgraClassifier(**settings, judging=False, random_state=seed)


def _soft(settings: dict[str, Any], seed: int) -> Any:
    return PlainClassifier(**settings, random_state=seed)


def _cores(settings: dict[str, Any], seed: int) -> Any:
    return CORES2(**settings, random_state=seed)


def _agra(settings: dict[str, Any], seed: int) -> Any:
    return AgraClassifier(**settings, random_state=seed)


def _cleanlab(settings: dict[str, Any], seed: int) -> Any:
    own = {name: settings.pop(name) for name in ("folds", "filter_by") if name in settings}
    return Cleanlab(_plain(settings, seed), **own, random_state=seed)


def _of_votes(name: str, title: str, label_model: str, **label_grid: tuple[Any, ...]) -> Method:
    return Method(
        name=name,
        title=title,
        learns_from="votes",
        make=_soft,
        settings=_names(PlainClassifier),
        grid=_PLAIN,
        label_model=f"agra.label_models.{label_model}",
        label_grid=label_grid,
    )


_ALL = (
    Method(
        name="gold",
        title="Gold",
        learns_from="true labels",
        make=_plain,
        settings=_names(AgraClassifier),
        grid=_PLAIN,
    ),
    Method(
        name="no-denoising",
        title="No Denoising",
        learns_from="given labels",
        make=_plain,
        settings=_names(AgraClassifier),
        grid=_PLAIN,
    ),
    _of_votes("majority-vote", "Majority Vote", "majority_model.MajorityVote"),
    _of_votes(
        "data-programming",
        "DP",
        "data_programming.DataProgramming",
        learning_rate=_RATES,
        batch_size=(32, 64, 128),
        epochs=_EPOCHS,
    ),
    _of_votes(
        "metal",
        "MeTaL",
        "metal.MeTaL",
        learning_rate=_RATES,
        weight_decay=(32, 64, 128),  # as printed; they look like sizes of batches
        epochs=_EPOCHS,
    ),
    _of_votes("flying-squid", "FlyingSquid", "flying_squid.FlyingSquid"),
    _of_votes("dawid-skene", "Dawid-Skene", "dawid_skene.DawidSkene"),
    Method(
        name="cores2",
        title="CORES²",
        learns_from="given labels",
        make=_cores,
        settings=_names(CORES2),
        grid=_JUDGING,
    ),
    Method(
        name="cleanlab",
        title="Cleanlab",
        learns_from="given labels",
        make=_cleanlab,
        settings=_names(AgraClassifier, "folds", "filter_by"),
        grid={"folds": (2, 5, 7, 9, 12), **_grid(32, 128, 512, decays=(1e-5, 1e-4, 1e-3))},
    ),
    Method(
        name="agra",
        title="AGRA",
        learns_from="given labels",
        make=_agra,
        settings=_names(AgraClassifier),
        grid=_JUDGING,
    ),
)

METHODS: Mapping[str, Method] = MappingProxyType({method.name: method for method in _ALL})


def find_method(name: str) -> Method:
    """The method of that name.

    Raises:
        ValueError: There is none; the message names the nearest one.

    Example:
        >>> find_method("cores2").grid["batch_size"]
        (32, 128, 512)
    """
    return METHODS[check_name("method", name, METHODS)]
