"""Fast transforms in place: O(c N) additions for each row of N elements of c columns, row-major."""

from __future__ import annotations

from geomdp._numerics.compilation import numba
from geomdp._typing import FloatArray, IntArray


@numba.njit(cache=True)
def walsh_hadamard(values: FloatArray) -> None:
    """Replace each C-contiguous row f (2^d,) by g(x) = sum_y (-1)^<x,y> f(y), in place."""
    size = values.shape[1]
    for row in range(values.shape[0]):
        line = values[row]
        half = 1
        while half < size:
            for start in range(0, size, 2 * half):
                for i in range(start, start + half):
                    low, high = line[i], line[i + half]
                    line[i] = low + high
                    line[i + half] = low - high
            half *= 2


@numba.njit(cache=True)
def corner_sum(values: FloatArray, levels: IntArray) -> None:
    """Replace C-contiguous rows f (b, N) by g(x) = sum of f(y) over y_i in {0, x_i}, in place."""
    size = values.shape[1]
    for row in range(values.shape[0]):
        line = values[row]
        stride = 1
        for axis in range(len(levels) - 1, -1, -1):
            width = stride * levels[axis]
            for start in range(0, size, width):
                for level in range(1, levels[axis]):
                    shift = level * stride
                    for i in range(start, start + stride):
                        line[i + shift] += line[i]
            stride = width
