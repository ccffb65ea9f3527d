"""Injected noise: exact in amount, by seed, never the same class."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from agra.data.noise import flip_labels


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


@given(st.integers(0, 60), st.floats(0, 1), st.integers(2, 6), st.integers(0, 99))
def test_exactly_the_share_is_flipped_to_other_classes(size, rate, num_classes, seed):
    clean = torch.arange(size) % num_classes
    noisy = flip_labels(clean, rate, num_classes, generator(seed))
    assert int((noisy != clean).sum()) == round(rate * size)
    assert ((noisy >= 0) & (noisy < num_classes)).all()
    assert torch.equal(noisy, flip_labels(clean, rate, num_classes, generator(seed)))


def test_all_other_classes_are_equally_likely():
    clean = torch.zeros(30_000, dtype=torch.long)
    counts = flip_labels(clean, 1.0, 4, generator()).bincount(minlength=4)
    assert counts[0] == 0
    assert (counts[1:] - 10_000).abs().max() < 400  # five standard deviations


def test_refusals():
    with pytest.raises(ValueError, match=r"Expected `rate` to be in \[0, 1\], got 1.5"):
        flip_labels(torch.zeros(3), 1.5, 2, generator())
    with pytest.raises(ValueError, match="Expected `num_classes` to be at least 2, got 1"):
        flip_labels(torch.zeros(3), 0.5, 1, generator())
