"""Label noise, injected on purpose and by a seed."""

import torch
from torch import Tensor


def flip_labels(
    labels: Tensor, rate: float, num_classes: int, generator: torch.Generator
) -> Tensor:
    """The labels with an exact share of them replaced, each by one of the other classes.

    Args:
        labels: (N,) class indices.
        rate: The share to flip, in [0, 1]; rounded to whole samples.
        num_classes: How many classes there are to flip to.
        generator: Where the randomness comes from.

    Raises:
        ValueError: A rate outside [0, 1], or only one class.

    Example:
        >>> clean = torch.arange(10) % 3
        >>> noisy = flip_labels(clean, 0.3, 3, torch.Generator().manual_seed(0))
        >>> int((noisy != clean).sum())
        3
    """
    if not 0 <= rate <= 1:
        raise ValueError(f"Expected `rate` to be in [0, 1], got {rate}.")
    if num_classes < 2:
        raise ValueError(f"Expected `num_classes` to be at least 2, got {num_classes}.")
    count = round(rate * len(labels))
    rows = torch.randperm(len(labels), generator=generator)[:count]
    shifts = torch.randint(1, num_classes, (count,), generator=generator)
    noisy = labels.clone()
    noisy[rows] = (labels[rows] + shifts) % num_classes
    return noisy
