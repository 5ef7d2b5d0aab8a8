"""Fast transforms over product universes, in place, for many rows: O(c N) additions per row.

A row has one number for each of the N elements of a product of c columns, in row-major order (the
last column changes fastest).
"""

from __future__ import annotations

from geomdp._numerics.compilation import numba
from geomdp._typing import FloatArray, IntArray


@numba.njit(cache=True)
def walsh_hadamard(values: FloatArray) -> None:
    """Replace each row f (2^d,) by its Walsh-Hadamard transform g(x) = sum_y (-1)^<x,y> f(y).

    Parameters
    ----------
    values : (b, 2^d) C-contiguous float64 array
        Changed in place.
    """
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
    """Replace each row f by g(x) = sum of f(y) over y with y_i in {0, x_i} for all i.

    If all columns have two levels, this is the zeta transform: the sum over all subsets of x.

    Parameters
    ----------
    values : (b, N) C-contiguous float64 array
        N is the product of `levels`. Changed in place.
    levels : (c,) int64 array
        Number of levels of each column.
    """
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
