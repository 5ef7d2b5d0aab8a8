"""Smolyak's sparse grids: Chebyshev coefficients in many variables from few nodes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from geomdp._typing import FloatArray
from geomdp._validation import whole
from geomdp.workloads.smooth.grids import MAX_NODES, Grid, tensor_coefficients
from geomdp.workloads.smooth.queries import Function


@dataclass(frozen=True)
class SparseGrid(Grid):
    """Smolyak's combination of small full grids, exact on polynomials of total degree <= level.

    With I_k interpolation at k Chebyshev nodes and D_k = I_k - I_{k-1}, the operator is the sum of
    D_{k_1} x ... x D_{k_d} over 1 <= k_i <= t and sum (k_i - 1) <= level. At level d (t - 1) it is
    interpolation on the full grid of t^d nodes. Functions with bounded mixed derivatives need few
    nodes; no bound on the error is computed.

    Parameters
    ----------
    level : int
        Total degree, at least 0.

    References
    ----------
    Smolyak 1963; Wang, Fan, Zhang and Wang 2013, Theorem 3.2 (3); formula sheet SM-T3.2.
    """

    level: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "level", whole(self.level, "level", minimum=0))

    def nodes_per_axis(self, size: int) -> None:
        """None: not a full grid."""
        del size

    def n_nodes(self, size: int, dimension: int) -> int:
        """Evaluations of each function; a node counts once for each small grid it is in."""
        return sum(math.prod(shape) for shape, _ in combination(size, dimension, self.level))

    def coefficients(self, functions: Sequence[Function], size: int, dimension: int) -> FloatArray:
        """Coefficients (q, t, ..., t) of q functions; those outside the sparse set are 0.

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
        nodes = 0
        for shape, _ in combination(size, dimension, self.level):
            nodes += math.prod(shape)
            if nodes > MAX_NODES:
                raise ValueError(
                    f"a sparse grid must have at most {MAX_NODES} nodes, level {self.level} has "
                    f"more for size {size} in dimension {dimension}"
                )
        total = np.zeros((len(functions), *[size] * dimension))
        for shape, sign in combination(size, dimension, self.level):
            part = (slice(None), *map(slice, shape))
            total[part] += sign * tensor_coefficients(functions, shape)
        return total


def combination(size: int, dimension: int, level: int) -> Iterator[tuple[tuple[int, ...], int]]:
    """Shapes of the full grids with nonzero signed multiplicity, and that multiplicity.

    Expanding the differences, the grid k enters with the sum of (-1)^|z| over those z in {0, 1}^d
    for which k + z is still in the set. If f of the k_i are below t and the level exceeds
    sum (k_i - 1) by s, that is sum_{j <= s} (-1)^j C(f, j), which is 0 for s >= f > 0.
    """
    level = min(level, dimension * (size - 1))
    for shape in _shapes(size, dimension, level, level - dimension + 1):
        free = sum(count < size for count in shape)
        slack = level + dimension - sum(shape)
        sign = (-1) ** (slack % 2) * math.comb(free - 1, slack) if free else 1
        if sign:
            yield shape, sign


def _shapes(size: int, dimension: int, level: int, least: int) -> Iterator[tuple[int, ...]]:
    """All (k_1, ..., k_d) with 1 <= k_i <= t and least <= sum (k_i - 1) <= level."""
    if dimension == 0:
        yield ()
        return
    start = max(0, least - (dimension - 1) * (size - 1))
    for excess in range(start, min(size - 1, level) + 1):
        for rest in _shapes(size, dimension - 1, level - excess, least - excess):
            yield (excess + 1, *rest)
