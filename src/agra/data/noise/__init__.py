"""Label noise, injected on purpose and by a seed.

Amounts are exact: what a kind of noise expects of every class is rounded down or up to whole
samples, and the sum of it to the nearest whole number. What carries no label stays without one.
"""

from agra.data.noise.by_class import matrix_noise, pair_noise, symmetric_noise
from agra.data.noise.by_entry import multilabel_noise
from agra.data.noise.by_instance import instance_noise
from agra.data.noise.result import Noise
from agra.data.noise.sparse import noise_matrix, sparse_noise

__all__ = [
    "Noise",
    "instance_noise",
    "matrix_noise",
    "multilabel_noise",
    "noise_matrix",
    "pair_noise",
    "sparse_noise",
    "symmetric_noise",
]
