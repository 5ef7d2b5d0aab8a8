"""Chebyshev coefficients of functions from their values on a full grid, by one cosine transform."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.fft

from geomdp._typing import FloatArray
from geomdp._validation import whole
from geomdp.workloads.smooth.queries import Function, values_of

#: Largest number of nodes at which one function is evaluated: 2^24 values are 128 MB.
MAX_NODES = 1 << 24
#: Points given to a function at a time.
BLOCK_POINTS = 1 << 16
#: Values of several functions transformed at a time: 2^22 float64 are 32 MB.
BLOCK_VALUES = 1 << 22


class Grid(ABC):
    """Nodes from which Chebyshev coefficients are computed."""

    @abstractmethod
    def coefficients(self, functions: Sequence[Function], size: int, dimension: int) -> FloatArray:
        """Coefficients (q, t, ..., t) of q functions, of degree < t in each of d variables."""

    @abstractmethod
    def nodes_per_axis(self, size: int) -> int | None:
        """Nodes N in each variable if the grid is full, else None."""


@dataclass(frozen=True)
class TensorGrid(Grid):
    """All (k t)^d products of Chebyshev nodes.

    With k = 1 the coefficients are those of the interpolant. More nodes reduce aliasing: the share
    of degrees >= t that is added to lower ones. Cost: O((k t)^d) evaluations and one transform.

    Parameters
    ----------
    oversampling : int
        k >= 1.
    """

    oversampling: int = 2

    def __post_init__(self) -> None:
        object.__setattr__(self, "oversampling", whole(self.oversampling, "oversampling"))

    def nodes_per_axis(self, size: int) -> int:
        """N = k t."""
        return self.oversampling * size

    def coefficients(self, functions: Sequence[Function], size: int, dimension: int) -> FloatArray:
        """Coefficients (q, t, ..., t) of q functions.

        Parameters
        ----------
        functions : sequence of callable
            Functions of points (n, d) with values (n,).
        size, dimension : int
            t and d.

        Raises
        ------
        ValueError
            For more than 2^24 nodes, or functions as in `values_of`.
        """
        shape = (self.nodes_per_axis(size),) * dimension
        if math.prod(shape) > MAX_NODES:
            raise ValueError(
                f"a full grid must have at most {MAX_NODES} nodes, got {shape[0]}^{dimension}; "
                "use a SparseGrid"
            )
        kept = (slice(None), *[slice(size)] * dimension)
        coefficients = np.empty((len(functions), *[size] * dimension))
        step = max(1, BLOCK_VALUES // math.prod(shape))
        for start in range(0, len(functions), step):
            some = functions[start : start + step]
            coefficients[start : start + step] = tensor_coefficients(some, shape)[kept]
        return coefficients


def chebyshev_nodes(count: int) -> FloatArray:
    """The roots cos(pi (2 j + 1) / (2 N)) of T_N, j = 0..N-1."""
    return np.asarray(np.cos(math.pi * (2 * np.arange(count) + 1) / (2 * count)))


def grid_values(functions: Sequence[Function], shape: tuple[int, ...]) -> FloatArray:
    """Values (q, N_1, ..., N_d) of q functions on the product of Chebyshev nodes."""
    axes = [chebyshev_nodes(count) for count in shape]
    values = np.empty((len(functions), math.prod(shape)))
    for start in range(0, values.shape[1], BLOCK_POINTS):
        numbers = np.arange(start, min(start + BLOCK_POINTS, values.shape[1]))
        indices = np.unravel_index(numbers, shape)
        points = np.stack([axis[index] for axis, index in zip(axes, indices, strict=True)], axis=1)
        for row, function in zip(values, functions, strict=True):
            row[start : start + len(points)] = values_of(function, points)
    return values.reshape(-1, *shape)


def tensor_coefficients(functions: Sequence[Function], shape: tuple[int, ...]) -> FloatArray:
    """Coefficients (q, N_1, ..., N_d) of the interpolants at the nodes, by one DCT-II.

    gamma_m = prod_i (2 - [m_i = 0]) / N_i times the sum of f prod_i cos(m_i a_i) over the nodes.
    """
    axes = tuple(range(1, len(shape) + 1))
    coefficients = scipy.fft.dctn(grid_values(functions, shape), type=2, axes=axes)
    coefficients /= math.prod(shape)
    for axis in axes:
        # The transform has a factor of 2 in each variable, also at degree 0, where it is halved.
        coefficients[(slice(None),) * axis + (0,)] /= 2
    return np.asarray(coefficients)
