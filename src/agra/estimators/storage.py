"""Estimators in a folder: JSON and safetensors, nothing that could run when it is read."""

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import torch
from safetensors import SafetensorError
from safetensors.torch import load as tensors_of
from safetensors.torch import save as bytes_of
from torch import Tensor

import agra
from agra.estimators.training import make_model, make_optimizer
from agra.files import whole_folder
from agra.issues import LabelIssues
from agra.ledger import Ledger
from agra.linear_model import LinearModel
from agra.loop import Epoch
from agra.names import warn_caller

if TYPE_CHECKING:
    from agra.estimators.estimator import AgraEstimator

_PLAIN = str | int | float | bool | np.number | np.bool_ | None
FORMAT, VERSION = "agra-estimator", 1
_MANIFEST, _CONFIG, _TENSORS = "manifest.json", "estimator.json", "tensors.safetensors"


def save(estimator: "AgraEstimator", folder: str | os.PathLike[str]) -> None:
    """Write a fitted estimator into a folder, whole or not at all.

    Raises:
        FileExistsError: The folder holds something else.
        TypeError: Classes that JSON cannot hold.
    """
    target = Path(folder)
    if target.exists() and not (target / _MANIFEST).is_file():
        raise FileExistsError(
            f"Expected `folder` to be new, or to hold a saved estimator, got {str(target)!r}."
        )
    files = {_CONFIG: _config(estimator), _TENSORS: bytes_of(_tensors(estimator))}
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "files": {name: hashlib.sha256(content).hexdigest() for name, content in files.items()},
    }
    files[_MANIFEST] = _json(manifest)
    with whole_folder(target) as draft:
        for name, content in files.items():
            (draft / name).write_bytes(content)


def _json(content: Any) -> bytes:
    return (json.dumps(content, indent=1, allow_nan=False) + "\n").encode()


def _config(estimator: "AgraEstimator") -> bytes:
    parameters: dict[str, Any] = {}
    left_out: list[str] = []
    for name, value in estimator.get_params(deep=False).items():
        value = value.item() if isinstance(value, np.generic) else value
        if isinstance(value, _PLAIN):
            parameters[name] = value
        elif isinstance(value, dict) and all(isinstance(k, _PLAIN) for k in value):
            parameters[name] = {"pairs": [[_plain(k), _plain(v)] for k, v in value.items()]}
        else:
            left_out.append(name)
    index = estimator._index
    plain = index is None or index.equals(pd.RangeIndex(len(index)))
    if not plain and not _holdable(np.asarray(index)):
        plain, left_out = True, [*left_out, "the index of the rows"]
    if lost := [name for name in left_out if name != "module"]:  # which `load` asks for
        warn_caller(
            f"Expected what JSON can hold, got others in {', '.join(lost)}; set them again after "
            "loading."
        )
    names = getattr(estimator, "feature_names_in_", None)
    return _json(
        {
            "agra": agra.__version__,
            "estimator": type(estimator).__name__,
            "parameters": parameters,
            "left_out": left_out,
            "classes": _values(estimator.classes_, "classes"),
            "linear": isinstance(estimator.model_, LinearModel),
            "n_features": estimator.n_features_in_,
            "feature_names": None if names is None else list(names),
            "index": None if plain else _values(np.asarray(index), "index"),
            "history": [_finite(asdict(epoch)) for epoch in estimator.history_],
            "best_epoch": estimator.best_epoch_,
            "learning_rate": estimator.learning_rate_,
            "chunks": estimator._chunks,
            "epochs_in_ledger": 0 if estimator.ledger_ is None else len(estimator.ledger_.epochs),
        }
    )


def _finite(epoch: dict[str, Any]) -> dict[str, Any]:
    return {name: None if value != value else value for name, value in epoch.items()}


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _holdable(array: Any) -> bool:
    values = array.tolist()
    return array.dtype.kind in "OUbiuf" and all(
        isinstance(value, str | int | float | bool) and value == value for value in values
    )


def _values(array: Any, what: str) -> dict[str, Any]:
    values = array.tolist()
    if not _holdable(array):
        raise TypeError(
            f"Expected the {what} to be strings or numbers to save them, got {array.dtype} such as "
            f"{values[0]!r}."
        )
    return {"dtype": "O" if array.dtype.kind in "OU" else str(array.dtype), "values": values}


def _tensors(estimator: "AgraEstimator") -> dict[str, Tensor]:
    found = {f"model.{name}": part for name, part in estimator.model_.state_dict().items()}
    for place, state in estimator._optimizer.state_dict()["state"].items():
        found |= {f"optimizer.{place}.{name}": torch.as_tensor(s) for name, s in state.items()}
    if estimator._issues is not None:
        for part in fields(LabelIssues):
            found[f"issues.{part.name}"] = getattr(estimator._issues, part.name)
    if estimator.ledger_ is not None:
        state = estimator.ledger_.state_dict()
        found |= {f"ledger.totals.{name}": part for name, part in state["totals"].items()}
        for place, epoch in enumerate(state["epochs"]):
            found |= {f"ledger.epochs.{place}.{name}": part for name, part in epoch.items()}
        found["ledger.updates"] = state["updates"]
        found["ledger.judged_in_epoch"] = torch.tensor(state["judged_in_epoch"])
    return {name: part.detach().cpu().contiguous() for name, part in found.items()}


def load(
    folder: str | os.PathLike[str], kinds: "Mapping[str, type[AgraEstimator]]", module: Any = None
) -> "AgraEstimator":
    """Read what `save` wrote.

    Args:
        folder: The folder.
        kinds: The estimators that it may hold, by name.
        module: For one that was trained with ``module=``: the same architecture again.

    Raises:
        FileNotFoundError: No saved estimator there.
        ValueError: Damaged files, or files of another kind or version.
    """
    config, tensors = _read(Path(folder))
    if config["estimator"] not in kinds:
        raise ValueError(
            f"Expected a saved {' or '.join(sorted(kinds))} in {str(folder)!r}, got "
            f"{config['estimator']}."
        )
    kind = kinds[config["estimator"]]
    known = set(kind._get_param_names())
    estimator = kind(**{k: _parameter(v) for k, v in config["parameters"].items() if k in known})
    if not config["linear"]:
        if module is None:
            raise ValueError(
                f"Expected `module` to load {str(folder)!r}, got None; pass a module of the "
                "architecture that was trained."
            )
        estimator.set_params(module=module)
    _restore(estimator, config, tensors)
    return estimator


def _parameter(stored: Any) -> Any:
    return dict(stored["pairs"]) if isinstance(stored, dict) else stored


def _read(folder: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    if not (folder / _MANIFEST).is_file():
        raise FileNotFoundError(
            f"Expected {str(folder)!r} to hold a saved estimator, found no {_MANIFEST} there."
        )
    try:
        manifest = json.loads((folder / _MANIFEST).read_bytes())
        kind, version = manifest["format"], manifest["version"]
        hashes = {name: manifest["files"][name] for name in (_CONFIG, _TENSORS)}
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"Expected {str(folder / _MANIFEST)!r} to be as `save` wrote it, got a damaged or "
            f"foreign file ({error!r})."
        ) from error
    if (kind, version) != (FORMAT, VERSION):
        raise ValueError(
            f"Expected format {FORMAT!r} version {VERSION} in {str(folder)!r}, got {kind!r} "
            f"version {version}; it needs another release of agra."
        )
    contents = {}
    for name, expected in hashes.items():
        path = folder / name
        contents[name] = path.read_bytes() if path.is_file() else b""
        if hashlib.sha256(contents[name]).hexdigest() != expected:
            raise ValueError(
                f"Expected {str(path)!r} to be as `save` wrote it, got a damaged file of "
                f"{len(contents[name])} bytes; save the estimator again."
            )
    try:
        return json.loads(contents[_CONFIG]), tensors_of(contents[_TENSORS])
    except (ValueError, SafetensorError) as error:
        raise ValueError(
            f"Expected JSON and safetensors in {str(folder)!r}, got something else ({error})."
        ) from error


def _restore(
    estimator: "AgraEstimator", config: dict[str, Any], tensors: dict[str, Tensor]
) -> None:
    def array(stored: dict[str, Any]) -> Any:
        values = np.array(stored["values"], dtype=stored["dtype"])
        strings = stored["dtype"] == "O" and all(isinstance(v, str) for v in stored["values"])
        return values.astype(str) if strings else values

    estimator.classes_ = array(config["classes"])
    estimator.n_features_in_ = config["n_features"]
    if config["feature_names"] is not None:
        estimator.feature_names_in_ = np.array(config["feature_names"], dtype=object)
    index = config["index"]
    estimator._index = None if index is None else pd.Index(array(index))
    estimator.history_ = [
        Epoch(**{**epoch, "loss": np.nan if epoch["loss"] is None else epoch["loss"]})
        for epoch in config["history"]
    ]
    estimator.n_iter_, estimator.best_epoch_ = len(estimator.history_), config["best_epoch"]
    estimator._chunks, estimator.learning_rate_ = config["chunks"], config["learning_rate"]
    groups: dict[str, dict[str, Tensor]] = {}
    for name, part in tensors.items():
        group, _, own = name.partition(".")
        groups.setdefault(group, {})[own] = part
    _restore_model(estimator, groups["model"], groups.get("optimizer", {}))
    estimator._issues = LabelIssues(**groups["issues"]) if "issues" in groups else None
    estimator.ledger_ = _ledger(groups.get("ledger"), config["epochs_in_ledger"])


def _restore_model(
    estimator: "AgraEstimator", weights: dict[str, Tensor], moments: dict[str, Tensor]
) -> None:
    """The weights, and how far the optimizer is."""
    model = make_model(estimator, len(estimator.classes_))
    model.load_state_dict(weights)
    optimizer = make_optimizer(estimator, model, estimator.learning_rate_)
    state: dict[int, dict[str, Tensor]] = {}
    for name, part in moments.items():
        place, _, own = name.partition(".")
        state.setdefault(int(place), {})[own] = part
    optimizer.load_state_dict({**optimizer.state_dict(), "state": state})
    estimator.model_, estimator._optimizer = model, optimizer


def _ledger(parts: dict[str, Tensor] | None, epochs: int) -> Ledger | None:
    if parts is None:
        return None

    def group(prefix: str) -> dict[str, Tensor]:
        return {n.removeprefix(prefix): p for n, p in parts.items() if n.startswith(prefix)}

    totals = group("totals.")
    ledger = Ledger(*totals["judged"].shape)
    ledger.load_state_dict(
        {
            "totals": totals,
            "epochs": [group(f"epochs.{place}.") for place in range(epochs)],
            "updates": parts["updates"],
            "judged_in_epoch": int(parts["judged_in_epoch"]),
        }
    )
    return ledger
