"""Errors of inner products under a random sign matrix, on public synthetic vectors."""

import numpy as np

from geomdp._typing import FloatArray
from geomdp._validation import whole
from geomdp.mechanisms.sparse_summary import HashedSigns


def measured_distortion(
    signs: HashedSigns, *, sparsity: int, trials: int, rng: np.random.Generator
) -> FloatArray:
    """Relative errors |<Ax, Ay> - <x, y>| / (||x|| ||y||) on synthetic vectors: (trials,)."""
    sparsity, trials = whole(sparsity, "sparsity"), whole(trials, "trials")
    shared = (sparsity + 1) // 2
    errors = np.empty(trials)
    for trial in range(trials):
        # With 64 rows there are 2^64 columns. Draw from the first half, because the numbers of
        # these columns fit int64.
        elements = rng.integers(min(signs.elements, 1 << 63), size=2 * sparsity - shared)
        first, second = np.zeros((2, len(elements)))
        first[:sparsity] = rng.random(sparsity)
        second[len(elements) - sparsity :] = rng.random(sparsity)
        image = signs.project(elements, first) @ signs.project(elements, second)
        size = np.linalg.norm(first) * np.linalg.norm(second)
        errors[trial] = abs(image - first @ second) / size
    return errors
