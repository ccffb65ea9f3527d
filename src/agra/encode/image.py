"""Images to features of a pretrained network, fine-tuned or as it is."""

import os
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
import torch

from agra.data.dataset import NoisyDataset
from agra.encode.cache import Rows
from agra.encode.encoder import Encoder, Report, Splits
from agra.encode.extraction import Extraction, principal_components
from agra.encode.fine_tuning import FineTuning
from agra.encode.image_network import (
    OUTPUTS,
    PRECISIONS,
    ImageNetwork,
    has_bfloat16,
    native_pixels,
)
from agra.encode.pixels import Images, check_images
from agra.encode.pretrained import folder_hash, load_network, model_folder, preprocessing
from agra.encode.scratch import Scratch
from agra.names import check_name


@dataclass(frozen=True)
class ImageFeatures(Encoder):
    """Images to the features of a network: any image model of Hugging Face's, without its head.

    Args:
        model: A folder that ``save_pretrained`` wrote, or a name on the hub.
        pixels: The size the images get; None for that of the model's training.
        components: Keep as many principal components, of the training split; None keeps all
            features.
        fine_tuning: Train the network on the given labels first; None leaves it as it is.
        output: "auto", "pooled" or "class-token"; see `ImageNetwork`.
        resize: "bicubic" or "bilinear", antialiased.
        precision: "bfloat16", "float32", or "auto" for the former where the processor has it.
        dtype: Of the result, "float32" or "float16".
        batch_size: Images per forward pass; more are slower where they do not fit into the cache.
        device: Where the network runs.

    Raises:
        ValueError: An unknown name, or a number below one.

    Example:
        >>> ImageFeatures("folder/of/a/model", pixels=128, components=256).name
        'images'
    """

    model: str | os.PathLike[str]
    _: KW_ONLY
    pixels: int | None = None
    components: int | None = None
    fine_tuning: FineTuning | None = None
    output: str = "auto"
    resize: str = "bicubic"
    precision: str = "auto"
    dtype: str = "float32"
    batch_size: int = 32
    device: str = "cpu"

    name: ClassVar[str] = "images"
    reads: ClassVar[tuple[str, ...]] = ("numbers", "paths")
    packages: ClassVar[tuple[str, ...]] = ("torch", "transformers", "scikit-learn")

    def __post_init__(self) -> None:
        check_name("output", self.output, OUTPUTS)
        check_name("resize", self.resize, ("bicubic", "bilinear"))
        check_name("precision", self.precision, PRECISIONS)
        check_name("dtype", self.dtype, ("float16", "float32"))
        for name in ("pixels", "components", "batch_size"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"Expected `{name}` to be 1 or more, got {value}.")

    @property
    def uses_labels(self) -> bool:
        """Only to fine-tune."""
        return self.fine_tuning is not None

    def settings(self) -> dict[str, Any]:
        """Of the model the hash of its files, wherever they are."""
        tuning = self.fine_tuning
        return {
            "model": folder_hash(model_folder(self.model)),
            "pixels": self.pixels,
            "components": self.components,
            "fine_tuning": None if tuning is None else vars(tuning),
            "output": self.output,
            "resize": self.resize,
            "precision": self._precision(),
            "dtype": self.dtype,
            "batch_size": self.batch_size,
            "device": torch.device(self.device).type,
        }

    def check(self, split: str, data: NoisyDataset) -> None:
        """Refuse what is no image."""
        super().check(split, data)
        check_images(data, split)

    def rows(
        self, train: NoisyDataset, splits: Splits, scratch: Scratch, report: Report
    ) -> dict[str, Rows]:
        """The features of every split.

        Raises:
            ValueError: More components than the training split has rows or the network features.
        """
        folder = model_folder(self.model)
        config = preprocessing(folder)
        pixels = self.pixels or native_pixels(config)
        network = ImageNetwork(
            load_network(folder, self.device),
            config,
            output=self.output,
            precision=self._precision(),
        ).to(self.device)
        width = network.width(pixels)
        if self.components is not None and self.components > min(len(train), width):
            raise ValueError(
                f"Expected `components` to be at most the rows of the {train.split} split and the "
                f"network's features ({len(train)}, {width}), got {self.components}."
            )
        images = {
            name: Images(data, pixels=pixels, resize=self.resize, split=name)
            for name, data in splits.items()
        }
        fitted = next(name for name, data in splits.items() if data is train)
        if self.fine_tuning is not None:
            self.fine_tuning.run(network, images[fitted], train, scratch=scratch, report=report)
        dtype = np.dtype(self.dtype)
        raw = dtype if self.components is None else np.dtype("float32")
        how = Extraction(network.eval(), self.device, self.batch_size, raw, scratch, report)
        found = {name: how.features(part, width) for name, part in images.items()}
        if self.components is None:
            return found
        found = principal_components(found, fitted, self.components)
        return {name: part.astype(dtype) for name, part in found.items()}

    def _precision(self) -> str:
        if self.precision != "auto":
            return self.precision
        return "bfloat16" if has_bfloat16(self.device) else "float32"
