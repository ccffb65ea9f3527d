"""Features of many images, part by part, so that a stopped run loses little."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from sklearn.decomposition import PCA
from torch import Tensor

from agra.encode.encoder import Report
from agra.encode.pixels import Images
from agra.encode.scratch import PART, Scratch

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Extraction:
    """How features are extracted.

    Attributes:
        network: From bytes to features, in eval mode.
        device: Where it runs.
        batch_size: Images per forward pass.
        dtype: Of the features.
        scratch: Keeps the parts that are done.
        report: Called after every batch.

    Example:
        >>> def mean(images):
        ...     return images.float().mean(dim=(2, 3))
        >>> from agra.data.dataset import NoisyDataset
        >>> ones = np.ones((2, 4, 4, 3), dtype=np.uint8)
        >>> data = NoisyDataset(inputs=ones, labels=[0, 1], classes=("a", "b"))
        >>> how = Extraction(mean, "cpu", 2, np.dtype("float32"), Scratch(None), lambda *_: None)
        >>> how.features(Images(data, pixels=4, resize="bicubic", split="train"), 3).tolist()
        [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]
    """

    network: Callable[[Tensor], Tensor]
    device: str
    batch_size: int
    dtype: "np.dtype[Any]"
    scratch: Scratch
    report: Report

    def features(self, images: Images, width: int) -> Array:
        """The features (N, width) of a split."""
        found = np.empty((len(images), width), self.dtype)
        step = max(1, PART // self.batch_size) * self.batch_size
        for start in range(0, len(images), step):
            stop = min(start + step, len(images))
            part = partial(self._part, images, start, stop)
            found[start:stop] = self.scratch.array(f"{images.split}-{start}", part)
            self.report(images.split, stop, len(images))
        return found

    def _part(self, images: Images, start: int, stop: int) -> Array:
        parts = []
        for first in range(start, stop, self.batch_size):
            last = min(first + self.batch_size, stop)
            with torch.inference_mode():
                batch = images.batch(first, last).to(self.device)
                parts.append(self.network(batch).cpu().numpy().astype(self.dtype))
            if last < stop:
                self.report(images.split, last, len(images))
        return np.concatenate(parts)


def principal_components(rows: dict[str, Array], fitted: str, count: int) -> dict[str, Array]:
    """Every split's first principal components, as those of one split are.

    Args:
        rows: (N, D) by split.
        fitted: The name of that one.
        count: How many.

    Example:
        >>> line = np.outer(np.arange(3.0), [3.0, 4.0])
        >>> principal_components({"train": line}, "train", 1)["train"].ravel().round(3).tolist()
        [-5.0, 0.0, 5.0]
    """
    # by the covariance: exact, the same in every run, and without a copy of the rows
    pca = PCA(count, svd_solver="covariance_eigh").fit(rows[fitted])
    return {
        name: pca.transform(part) if len(part) else np.empty((0, count), part.dtype)
        for name, part in rows.items()
    }
