"""Models as Hugging Face keeps them: a folder of JSON, vocabularies and safetensors."""

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn

from agra.encode.fingerprint import file_hash, items_hash
from agra.names import optional

_FILES = ("*.json", "*.txt", "*.safetensors", "*.model")  # nothing that is run when it is read


def model_folder(model: str | os.PathLike[str]) -> Path:
    """The folder itself, or that of a model of the hub, which is downloaded once.

    Raises:
        FileNotFoundError: No such folder, and no such model on the hub, or no way to get there.
    """
    folder = Path(model)
    if (folder / "config.json").is_file():
        return folder
    hub = optional("huggingface_hub", "huggingface")
    try:
        with _quiet():
            found = hub.snapshot_download(
                os.fspath(model), allow_patterns=list(_FILES), ignore_patterns=["*/*"]
            )
    except (OSError, ValueError) as error:  # whatever the hub or the way to it refuses
        raise FileNotFoundError(
            f"Expected `model` to be a folder with a config.json, or a model of the Hugging Face "
            f"hub that can be reached, got {str(model)!r} ({type(error).__name__}); without a "
            "network pass a folder that save_pretrained() wrote."
        ) from error
    return Path(found)


def folder_hash(folder: Path) -> str:
    """The SHA-256 over the names and contents of a model's files."""
    paths = sorted({path for pattern in _FILES for path in folder.glob(pattern)})
    return items_hash(f"{path.name} {file_hash(path)}".encode() for path in paths)


def load_network(folder: Path, device: str) -> nn.Module:
    """The network of a folder, without a task's head, in eval mode.

    Raises:
        ValueError: Weights that the architecture needs are not there.
    """
    transformers = optional("transformers", "huggingface")
    with _quiet(), torch.random.fork_rng(devices=[]):  # weights that are missing are drawn
        network, found = transformers.AutoModel.from_pretrained(
            folder,
            use_safetensors=True,
            local_files_only=True,
            trust_remote_code=False,
            dtype=torch.float32,
            output_loading_info=True,
        )
    missing = sorted(name for name in found["missing_keys"] if not name.startswith("pooler."))
    if missing:
        raise ValueError(
            f"Expected all weights of {type(network).__name__} in {str(folder)!r}, but "
            f"{len(missing)} are missing, such as {missing[0]!r}."
        )
    if found["missing_keys"]:
        network.pooler = None  # drawn at random, so nobody shall read it
    return network.to(device).eval()


def load_tokenizer(folder: Path) -> Any:
    """The tokenizer of a folder."""
    transformers = optional("transformers", "huggingface")
    with _quiet():
        return transformers.AutoTokenizer.from_pretrained(
            folder, local_files_only=True, trust_remote_code=False
        )


def preprocessing(folder: Path) -> dict[str, Any]:
    """The settings that the model's images were prepared with.

    Raises:
        FileNotFoundError: The folder does not hold them.
    """
    path = folder / "preprocessor_config.json"
    if not path.is_file():
        raise FileNotFoundError(
            f"Expected a preprocessor_config.json, which says how images are normalised, in "
            f"{str(folder)!r}, found none; save the model's image processor there."
        )
    return json.loads(path.read_bytes())


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without the bars and remarks of the peer, which are as before afterwards."""
    log = optional("transformers", "huggingface").utils.logging
    level, bars = log.get_verbosity(), log.is_progress_bar_enabled()
    log.set_verbosity_error()
    log.disable_progress_bar()
    try:
        yield
    finally:
        log.set_verbosity(level)
        if bars:
            log.enable_progress_bar()
