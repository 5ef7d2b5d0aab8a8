"""Noisy sums divided by n: sums and noise are added exactly, and only the quotient is rounded."""

from __future__ import annotations

import numpy as np

from geomdp._typing import FloatArray

#: Whole numbers below 2^53 are exact in float64.
LARGEST_SUM = 2**53
#: The sum of two whole numbers below 2^52 is exact in float64.
SMALL = 2**52


def quotients(
    sums: FloatArray, multiples: list[int], unit: int, n: int, step: int = 1
) -> FloatArray:
    """(sums + multiples / unit) / n for whole `multiples` (m,): the exact quotient, rounded once.

    `step` is a power of two that divides `unit`, and `sums` (m,) are multiples of 1 / step. In
    float64 the rounding error of a sum plus large noise would depend on the records.
    """
    # A product with a power of two is exact.
    scaled = sums * step
    if (np.abs(scaled) >= LARGEST_SUM).any() or (scaled != np.rint(scaled)).any() or unit % step:
        raise ArithmeticError(f"sums times {step} must be whole numbers below 2^53")
    size, each = n * unit, unit // step
    if len(scaled) != len(multiples):
        raise ValueError(
            f"there must be one multiple for each of {len(scaled)} sums, got {len(multiples)}"
        )
    small = max(map(abs, multiples), default=0) < SMALL
    if small and size < LARGEST_SUM and np.abs(scaled).max(initial=0.0) * each < SMALL:
        # Numerators below 2^53 are exact in float64, so only the quotient is rounded.
        numerators = scaled.astype(np.int64) * each + np.array(multiples, dtype=np.int64)
        return np.asarray(numerators / size)
    pairs = zip(scaled.tolist(), multiples, strict=True)
    return np.array([(int(total) * each + j) / size for total, j in pairs])
