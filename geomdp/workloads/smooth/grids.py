"""Chebyshev coefficients of functions, by a cosine transform of values on a full grid."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import scipy.fft

from geomdp._typing import FloatArray
from geomdp.workloads.smooth.queries import Function, values_of

#: Largest number of nodes at which one function is evaluated: 2^24 values are 128 MB.
MAX_NODES = 1 << 24
#: Number of points at which a function is evaluated in one call.
BLOCK_POINTS = 1 << 16
#: Functions are transformed in batches with at most this number of values: 2^22 float64 are 32 MB.
#: A function with more values is a batch of its own.
BLOCK_VALUES = 1 << 22


def nodes_per_axis(size: int, dimension: int) -> int:
    """Nodes in each variable for t = `size` degrees: 2 t if (2 t)^d <= 2^24, else t."""
    return 2 * size if (2 * size) ** dimension <= MAX_NODES else size


def grid_coefficients(
    functions: Sequence[Function], size: int, nodes: int, dimension: int
) -> FloatArray:
    """Chebyshev coefficients (q, t, ..., t) of degrees < t = `size`, from a grid of `nodes`^d."""
    shape = (nodes,) * dimension
    kept = (slice(None), *[slice(size)] * dimension)
    coefficients = np.empty((len(functions), *[size] * dimension))
    step = max(1, BLOCK_VALUES // math.prod(shape))
    for start in range(0, len(functions), step):
        some = functions[start : start + step]
        coefficients[start : start + step] = _interpolants(some, shape)[kept]
    return coefficients


def _grid_values(functions: Sequence[Function], shape: tuple[int, ...]) -> FloatArray:
    """Values (q, N_1, ..., N_d) of q functions on the product of Chebyshev nodes."""
    axes = [np.cos(math.pi * (2 * np.arange(count) + 1) / (2 * count)) for count in shape]
    values = np.empty((len(functions), math.prod(shape)))
    for start in range(0, values.shape[1], BLOCK_POINTS):
        numbers = np.arange(start, min(start + BLOCK_POINTS, values.shape[1]))
        indices = np.unravel_index(numbers, shape)
        points = np.stack([axis[index] for axis, index in zip(axes, indices, strict=True)], axis=1)
        for row, function in zip(values, functions, strict=True):
            row[start : start + len(points)] = values_of(function, points)
    return values.reshape(-1, *shape)


def _interpolants(functions: Sequence[Function], shape: tuple[int, ...]) -> FloatArray:
    """Coefficients (q, N_1, ..., N_d) of the interpolants at the Chebyshev nodes, by one DCT-II."""
    axes = tuple(range(1, len(shape) + 1))
    coefficients = scipy.fft.dctn(_grid_values(functions, shape), type=2, axes=axes)
    coefficients /= math.prod(shape)
    for axis in axes:
        # The transform has a factor of 2 in each variable. Degree 0 needs a factor of 1.
        coefficients[(slice(None),) * axis + (0,)] /= 2
    return np.asarray(coefficients)
