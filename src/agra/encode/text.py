"""Texts to rows: TF-IDF, or the embeddings of a transformer."""

import os
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
import torch
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer
from torch import Tensor, nn
from torch.nn import functional

from agra.data.dataset import NoisyDataset
from agra.encode.cache import Rows
from agra.encode.encoder import Encoder, Report, Splits
from agra.encode.pretrained import folder_hash, load_network, load_tokenizer, model_folder
from agra.encode.scratch import PART, Scratch


@dataclass(frozen=True)
class TfIdf(Encoder):
    """Texts to TF-IDF rows (CSR, float32), by scikit-learn's `TfidfVectorizer` as it comes.

    Example:
        >>> from agra.encode import encode
        >>> texts = NoisyDataset(inputs=["a cat", "the dog"], labels=[0, 1], classes=("c", "d"))
        >>> encode(texts, TfIdf()).inputs.nnz
        3
    """

    name: ClassVar[str] = "tfidf"
    reads: ClassVar[tuple[str, ...]] = ("texts",)
    packages: ClassVar[tuple[str, ...]] = ("scikit-learn",)

    def settings(self) -> dict[str, Any]:
        """None."""
        return {}

    def rows(
        self, train: NoisyDataset, splits: Splits, scratch: Scratch, report: Report
    ) -> dict[str, Rows]:
        """The rows of every split, in the words and weights of the training split.

        Raises:
            ValueError: There is no word in the training split.
        """
        vectorizer = TfidfVectorizer(dtype=np.float32)
        try:
            vectorizer.fit(train.inputs)
        except ValueError as error:
            raise ValueError(
                f"Expected words in the texts of the {train.split} split, got {len(train)} texts "
                f"without any ({error})."
            ) from error
        none = sparse.csr_matrix((0, len(vectorizer.vocabulary_)), dtype=np.float32)
        return {
            name: vectorizer.transform(data.inputs) if len(data) else none
            for name, data in splits.items()
        }


@dataclass(frozen=True)
class SentenceEmbeddings(Encoder):
    """Texts to the means of their tokens' last hidden states (float32).

    Args:
        model: A folder that Hugging Face's ``save_pretrained`` wrote, or a name on its hub.
        normalise: Whether to scale every row to length one.
        max_tokens: Texts are cut there; None for what the model takes.
        batch_size: Texts per forward pass; they are sorted by length, so that little is padded.
        device: Where the model runs.

    Raises:
        ValueError: A number below one.

    Example:
        >>> SentenceEmbeddings("folder/of/a/model", normalise=True).name
        'sentences'
    """

    model: str | os.PathLike[str]
    _: KW_ONLY
    normalise: bool = False
    max_tokens: int | None = None
    batch_size: int = 32
    device: str = "cpu"

    name: ClassVar[str] = "sentences"
    reads: ClassVar[tuple[str, ...]] = ("texts",)
    packages: ClassVar[tuple[str, ...]] = ("torch", "transformers")

    def __post_init__(self) -> None:
        for name, value in (("max_tokens", self.max_tokens), ("batch_size", self.batch_size)):
            if value is not None and value < 1:
                raise ValueError(f"Expected `{name}` to be at least 1, got {value}.")

    def settings(self) -> dict[str, Any]:
        """Of the model the hash of its files, wherever they are."""
        return {
            "model": folder_hash(model_folder(self.model)),
            "normalise": self.normalise,
            "max_tokens": self.max_tokens,
            "batch_size": self.batch_size,
            "device": torch.device(self.device).type,
        }

    def rows(
        self, train: NoisyDataset, splits: Splits, scratch: Scratch, report: Report
    ) -> dict[str, Rows]:
        """The embeddings of every split; nothing is fitted."""
        folder = model_folder(self.model)
        tokenizer, network = load_tokenizer(folder), load_network(folder, self.device)
        width: Any = network.config.hidden_size  # type: ignore[union-attr]  # of a Hugging Face model
        limit = self.max_tokens or _longest(tokenizer, network)
        found = {}
        for name, data in splits.items():
            texts = data.inputs.tolist()
            tokens = (
                tokenizer(texts, truncation=True, max_length=limit)["input_ids"] if texts else []
            )
            rows = np.zeros((len(tokens), width), dtype=np.float32)
            lengths = np.array([len(text) for text in tokens], dtype=np.int64)
            order = np.argsort(-lengths, kind="stable")  # longest first: memory runs out at once
            pad, step = tokenizer.pad_token_id or 0, max(1, PART // self.batch_size)
            for start in range(0, len(order), step * self.batch_size):
                places = order[start : start + step * self.batch_size]
                part = partial(self._embed, network, [tokens[place] for place in places], pad)
                done = partial(_shifted, report, name, start, len(order))
                rows[places] = scratch.array(f"{name}-{start}", partial(part, done))
                report(name, start + len(places), len(order))
            found[name] = rows
        return found

    def _embed(
        self, network: Any, tokens: list[list[int]], pad: int, done: Callable[[int], None]
    ) -> "np.ndarray[Any, Any]":
        parts = []
        for start in range(0, len(tokens), self.batch_size):
            ids, mask = _padded(tokens[start : start + self.batch_size], pad)
            parts.append(self._pooled(network, ids.to(self.device), mask.to(self.device)))
            if start + len(ids) < len(tokens):  # of the end the caller speaks
                done(start + len(ids))
        return np.concatenate(parts)

    def _pooled(self, network: nn.Module, ids: Tensor, mask: Tensor) -> "np.ndarray[Any, Any]":
        with torch.inference_mode():
            states = network(input_ids=ids, attention_mask=mask).last_hidden_state
            weights = mask.unsqueeze(2).to(states.dtype)
            means = (states * weights).sum(1) / weights.sum(1).clamp(min=1)
            return (functional.normalize(means) if self.normalise else means).cpu().numpy()


def _shifted(report: Report, split: str, start: int, total: int, done: int) -> None:
    report(split, start + done, total)


def _longest(tokenizer: Any, network: nn.Module) -> int:
    positions = getattr(network.config, "max_position_embeddings", tokenizer.model_max_length)
    return int(min(positions, tokenizer.model_max_length))  # the latter may be a mere "no limit"


def _padded(tokens: Sequence[list[int]], pad: int) -> tuple[Tensor, Tensor]:
    width = max(1, max(map(len, tokens)))
    ids = torch.full((len(tokens), width), pad)
    mask = torch.zeros((len(tokens), width), dtype=torch.int64)
    for row, text in enumerate(tokens):
        ids[row, : len(text)] = torch.tensor(text, dtype=torch.int64)
        mask[row, : len(text)] = 1
    return ids, mask
