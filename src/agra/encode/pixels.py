"""Images as bytes of one size: from an array, or from files that are opened when needed."""

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from agra.data.dataset import NoisyDataset
from agra.data.readers.images import FORMATS, load_image
from agra.inputs import from_array
from agra.names import optional


class Images:
    """The images of a split, square, as tensors (N, 3, pixels, pixels) of bytes.

    Args:
        data: Its inputs are bytes (N, H, W, 3), or paths of files that Pillow reads.
        pixels: Their size; the sides are scaled one by one.
        resize: "bicubic" or "bilinear", antialiased.
        split: Its name.

    Example:
        >>> dots = np.zeros((2, 8, 8, 3), dtype=np.uint8)
        >>> data = NoisyDataset(inputs=dots, labels=[0, 1], classes=("a", "b"))
        >>> Images(data, pixels=4, resize="bicubic", split="train").batch(0, 2).shape
        torch.Size([2, 3, 4, 4])
    """

    def __init__(self, data: NoisyDataset, *, pixels: int, resize: str, split: str) -> None:
        self.pixels, self.split = pixels, split
        self._inputs, self._files, self._resize = data.inputs, data.kind == "paths", resize

    def __len__(self) -> int:
        return len(self._inputs)

    def batch(self, start: int, stop: int) -> Tensor:
        """Those images, channels last in memory."""
        if not self._files:
            return self._sized(self._inputs[start:stop])
        rows = range(start, min(stop, len(self)))
        return torch.cat([self._sized(self._opened(row)[None]) for row in rows])

    def _sized(self, bytes_: "np.ndarray[Any, Any]") -> Tensor:
        images = from_array(bytes_).permute(0, 3, 1, 2)
        size = (self.pixels, self.pixels)
        if images.shape[2:] == size:
            return images
        return functional.interpolate(images, size=size, mode=self._resize, antialias=True)

    def _opened(self, row: int) -> "np.ndarray[Any, Any]":
        try:
            return load_image(self._inputs[row])
        except (OSError, ValueError) as error:
            raise ValueError(
                f"Expected a whole image in row {row} of the {self.split} split, got "
                f"{str(self._inputs[row])!r}: {error}"
            ) from error


def check_images(data: NoisyDataset, split: str) -> None:
    """Refuse what is no image as far as its header tells, before hours of work.

    Raises:
        TypeError: Numbers that are not bytes (N, H, W, 3).
        ValueError: A file that is no image; the message names the row.
    """
    if data.kind == "paths":
        pillow = optional("PIL.Image", "data")
        for row, path in enumerate(data.inputs):
            try:
                pillow.open(path, formats=FORMATS).close()
            except Exception as error:  # decoders raise whatever a broken file leads them to
                raise ValueError(
                    f"Expected `inputs` to be images, got {str(path)!r} in row {row} of the "
                    f"{split} split ({error})."
                ) from error
    elif len(data):
        inputs = data.inputs
        if inputs.dtype != np.uint8 or inputs.ndim != 4 or inputs.shape[3] != 3:
            raise TypeError(
                f"Expected images of the {split} split to be uint8 (N, H, W, 3) or paths, got "
                f"{inputs.dtype} {inputs.shape}; repeat grey ones three times."
            )
