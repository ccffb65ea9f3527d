"""A pretrained network trained further on the given labels, before its features are taken."""

import json
from dataclasses import dataclass
from typing import Any

import torch
from safetensors.torch import load as tensors_of
from safetensors.torch import save as bytes_of
from torch import Tensor, nn
from torch.utils.data import Dataset

from agra.data.dataset import NoisyDataset
from agra.encode.encoder import Report
from agra.encode.image_network import ImageNetwork
from agra.encode.pixels import Images
from agra.encode.scratch import Scratch
from agra.inputs import from_array
from agra.learner import ModuleLearner
from agra.loop import Loop, Progress

_CHECKPOINT, _STRUCTURE = "fine-tuning", "structure"


@dataclass(frozen=True, kw_only=True)
class FineTuning:
    """Training of the network on the given labels, before its features are taken.

    Adam, without weight decay, on the cross-entropy of a fresh linear head, or on its BCE for
    several labels; the head is thrown away. The paper took a learning rate of 1e-3, batches of 64
    and 100 epochs for CIFAR-10; 1e-4, 16 and 2 for CheXpert.

    Args:
        epochs: How many.
        learning_rate: Of Adam.
        batch_size: Images per update.
        seed: Of the head, of dropout and of the order of the images.

    Raises:
        ValueError: A number that is too low.

    Example:
        >>> FineTuning(epochs=2, learning_rate=1e-4, batch_size=16).seed
        0
    """

    epochs: int
    learning_rate: float = 1e-3
    batch_size: int = 64
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size"):
            if getattr(self, name) < 1:
                raise ValueError(f"Expected `{name}` to be one or more, got {getattr(self, name)}.")
        if not self.learning_rate > 0:
            raise ValueError(f"Expected `learning_rate` to be above 0, got {self.learning_rate}.")

    def run(
        self,
        network: ImageNetwork,
        images: Images,
        data: NoisyDataset,
        *,
        scratch: Scratch,
        report: Report,
    ) -> None:
        """Train the network in place, from the last whole epoch that is kept.

        Args:
            network: What is trained.
            images: Those of the training split.
            data: That split, for its given labels.
            scratch: Keeps the state after every epoch.
            report: Called after every step.
        """

        def progress(step: Progress) -> None:
            report(f"epoch {step.epoch + 1} of {self.epochs}", step.step, step.steps)

        device: Any = network.scale.device
        with torch.random.fork_rng():
            torch.manual_seed(self.seed)
            head = nn.Linear(network.width(images.pixels), len(data.classes)).to(device)
            model = nn.Sequential(network, head)
            optimizer = torch.optim.Adam(model.parameters(), self.learning_rate)
            learner = ModuleLearner(model, _Labelled(images, data), optimizer)
            loop = Loop(
                learner,
                epochs=self.epochs,
                batch_size=self.batch_size,
                progress=progress,
                seed=self.seed,
            )
            _resume(loop, optimizer, scratch)
            for epoch in range(len(loop.history), self.epochs):
                loop.epochs = epoch + 1  # so that the loop pauses after each
                loop.run()
                if scratch.keeps:
                    scratch.write(_CHECKPOINT, pack(loop.state_dict()))


class _Labelled(Dataset[tuple[Tensor, Tensor, int]]):
    def __init__(self, images: Images, data: NoisyDataset) -> None:
        self._images, self.targets = images, from_array(data.labels)

    def __len__(self) -> int:
        return len(self._images)

    def __getitem__(self, row: int) -> tuple[Tensor, Tensor, int]:
        return self._images.batch(row, row + 1)[0], self.targets[row], row


def _resume(loop: Loop, optimizer: torch.optim.Optimizer, scratch: Scratch) -> None:
    kept = scratch.read(_CHECKPOINT)
    if kept is None:
        return
    loop.load_state_dict(unpack(kept))
    for parameter, state in optimizer.state.items():
        for name, part in state.items():
            if part.shape == parameter.shape:  # in the order in memory that it had, bit for bit
                state[name] = torch.empty_like(parameter).copy_(part)


def pack(state: Any) -> bytes:
    """A nest of dicts, lists and numbers with tensors in it, as safetensors around a JSON.

    Example:
        >>> unpack(pack({"weights": torch.ones(2), "epochs": [1, None]}))
        {'weights': tensor([1., 1.]), 'epochs': [1, None]}
    """
    tensors: dict[str, Tensor] = {}

    def plain(part: Any) -> Any:
        if isinstance(part, Tensor):
            tensors[str(len(tensors))] = part.detach().cpu().contiguous().clone()
            return {"tensor": str(len(tensors) - 1)}
        if isinstance(part, dict):  # as pairs: JSON would make the keys strings
            return {"dict": [[key, plain(value)] for key, value in part.items()]}
        if isinstance(part, list | tuple):
            return [plain(value) for value in part]
        return part

    structure = json.dumps(plain(state)).encode()
    tensors[_STRUCTURE] = torch.frombuffer(bytearray(structure), dtype=torch.uint8)
    return bytes_of(tensors)


def unpack(content: bytes) -> Any:
    """What `pack` packed; tuples have become lists."""
    tensors = tensors_of(content)

    def nest(part: Any) -> Any:
        if isinstance(part, list):
            return [nest(value) for value in part]
        if not isinstance(part, dict):
            return part
        if "tensor" in part:
            return tensors[part["tensor"]]
        return {key: nest(value) for key, value in part["dict"]}

    return nest(json.loads(tensors[_STRUCTURE].numpy().tobytes()))
