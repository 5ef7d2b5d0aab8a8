"""A compiled function that computes the mean and the squared norms of rows in one pass."""

from __future__ import annotations

import numpy as np

from geomdp._numerics.compilation import numba
from geomdp._typing import FloatArray

#: Sums may be taken in any order, and products may be fused with sums, so that the compiler can
#: vectorise the loops.
FREE_ORDER = {"reassoc", "contract"}


@numba.njit(cache=True, fastmath=FREE_ORDER)
def mean_and_squares(points: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean (d,) and squared norms (N,) of the rows of `points` (N, d); each row is read once."""
    count, size = points.shape
    total, squares = np.zeros(size), np.empty(count)
    for i in range(count):
        row, square = points[i], 0.0
        for j in range(size):
            total[j] += row[j]
            square += row[j] * row[j]
        squares[i] = square
    return total / count, squares
