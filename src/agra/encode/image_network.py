"""A pretrained image network from bytes to features."""

import inspect
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

OUTPUTS = ("auto", "pooled", "class-token")
PRECISIONS = ("auto", "bfloat16", "float32")


class ImageNetwork(nn.Module):
    """Bytes (N, 3, H, W) to features (N, D), float32.

    Args:
        network: A Hugging Face model that takes ``pixel_values``.
        preprocessing: Its preprocessor_config.json: how bytes are scaled and normalised.
        output: "pooled", the network's pooled output; "class-token", the first token of its last
            layer; "auto", the former unless the pooler has weights of its own, which are made for
            another task or, in many published models, not there.
        precision: "bfloat16" for mixed precision, or "float32".

    Example:
        >>> from transformers import ResNetConfig, ResNetModel
        >>> sizes = {"embedding_size": 4, "hidden_sizes": [4, 8], "depths": [1, 1]}
        >>> resnet = ResNetModel(ResNetConfig(**sizes, layer_type="basic"))
        >>> ImageNetwork(resnet, {})(torch.zeros(2, 3, 32, 32, dtype=torch.uint8)).shape
        torch.Size([2, 8])
    """

    def __init__(
        self,
        network: nn.Module,
        preprocessing: Mapping[str, Any],
        *,
        output: str = "auto",
        precision: str = "float32",
    ) -> None:
        super().__init__()
        # half as fast again on CPUs; mypy does not know this keyword of torch's
        self.network = network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        pooler = getattr(network, "pooler", None)
        learned = pooler is not None and any(True for _ in pooler.parameters())
        self._pooled = output == "pooled" or (output == "auto" and not learned)
        self._half = precision == "bfloat16"
        accepted = inspect.signature(network.forward).parameters
        self._options = {n: True for n in ("interpolate_pos_encoding",) if n in accepted}
        scale, shift = _normalisation(preprocessing)
        self.register_buffer("scale", scale.view(1, 3, 1, 1), persistent=False)
        self.register_buffer("shift", shift.view(1, 3, 1, 1), persistent=False)

    def forward(self, images: Tensor) -> Tensor:
        """The features of a batch."""
        values = torch.addcmul(self.shift, images.float(), self.scale)  # type: ignore[arg-type]  # buffers
        with torch.autocast(images.device.type, dtype=torch.bfloat16, enabled=self._half):
            found = self.network(pixel_values=values, **self._options)
        pooled = getattr(found, "pooler_output", None) if self._pooled else None
        states = found.last_hidden_state
        if pooled is None:  # maps are averaged, of tokens the first one stands for the image
            pooled = states.mean(dim=(2, 3)) if states.ndim == 4 else states[:, 0]
        return pooled.flatten(1).float()

    @torch.no_grad()
    def width(self, pixels: int) -> int:
        """How many features there are."""
        training = self.training
        scale: Any = self.scale
        probe = torch.zeros(1, 3, pixels, pixels, dtype=torch.uint8, device=scale.device)
        count = self.eval()(probe).shape[1]
        self.train(training)
        return int(count)


def has_bfloat16(device: str) -> bool:
    """Whether the processor multiplies bfloat16 numbers itself, and so is faster with them."""
    kind = torch.device(device).type
    if kind == "cuda":
        return torch.cuda.is_bf16_supported()
    can = torch.cpu.get_capabilities()
    return kind == "cpu" and any(can.get(name) for name in ("avx512_bf16", "amx_bf16", "bf16"))


def native_pixels(preprocessing: Mapping[str, Any]) -> int:
    """The size that the images of the model's training had."""
    size = preprocessing.get("crop_size") or preprocessing.get("size") or 224
    if isinstance(size, Mapping):
        size = size.get("height") or size.get("shortest_edge") or 224
    return int(size)


def _normalisation(preprocessing: Mapping[str, Any]) -> tuple[Tensor, Tensor]:
    """What bytes are multiplied by, and what is then added."""
    factor = preprocessing.get("rescale_factor", 1 / 255)
    factor = factor if preprocessing.get("do_rescale", True) else 1.0
    mean, std = torch.zeros(3), torch.ones(3)
    if preprocessing.get("do_normalize", True):
        mean = torch.tensor(preprocessing.get("image_mean", [0.0] * 3))
        std = torch.tensor(preprocessing.get("image_std", [1.0] * 3))
    offset = 1.0 if preprocessing.get("rescale_offset", False) else 0.0
    # EfficientNet's images are divided twice, as those were that its weights were learned from
    divisor = std * std if preprocessing.get("include_top", False) else std
    return factor / divisor, -(mean + offset) / divisor
