"""Chebyshev coefficients of smooth queries, with which moments answer them, and their error."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from geomdp._typing import FloatArray
from geomdp._validation import batch, finite_array, whole
from geomdp.workloads.smooth.approximation_bounds import truncation_bound
from geomdp.workloads.smooth.derivative_bounds import MAX_ORDER
from geomdp.workloads.smooth.filters import Filter
from geomdp.workloads.smooth.grids import MAX_NODES, grid_coefficients, nodes_per_axis
from geomdp.workloads.smooth.queries import Function, SmoothQuery, values_of

#: Public points, besides the corners, at which the error of an approximation is measured.
PROBE_POINTS = 1024
#: Largest d for which the error is also measured at all 2^d corners of the cube.
MAX_CORNER_DIMENSION = 8
#: Products of polynomials held at a time: 2^22 float64 are 32 MB.
BLOCK_ENTRIES = 1 << 22
#: Two values of a query at one point, computed in different batches, may differ by this share of
#: its largest value: more is not rounding.
ROW_TOLERANCE = 1e-6


@dataclass(frozen=True, eq=False)
class Coefficients:
    """A polynomial p(x) = sum_m c_m prod_i T_{m_i}(x_i) in place of a query f.

    The answer from Chebyshev product moments M_m is sum_m c_m M_m, the mean of p over the records,
    so it errs by at most max |f - p| besides the noise on the moments.

    Parameters
    ----------
    values : (t,) * d array
        c_m.
    approximation_error : float
        Largest |f - p| at 1024 public points and, for d <= 8, the corners of the cube: a lower
        bound on the maximum.
    error_bound : float
        Proved upper bound on max |f - p| in real arithmetic; infinite where the query states no
        bounds on its derivatives.
    """

    values: FloatArray
    approximation_error: float
    error_bound: float = math.inf

    def __repr__(self) -> str:
        return (
            f"Coefficients({self.dimension} variables, degree {self.degree}; error at most "
            f"{self.error_bound:.2g}, {self.approximation_error:.2g} at public points)"
        )

    @property
    def degree(self) -> int:
        """Number t of degrees 0..t-1 in each variable."""
        return len(self.values)

    @property
    def dimension(self) -> int:
        """Number of variables d."""
        return self.values.ndim

    def __call__(self, points: npt.ArrayLike) -> FloatArray:
        """Values (n,) of the polynomial at points (n, d) of the cube, O(n t^d)."""
        points = batch(points, self.dimension, "points")
        if (np.abs(points) > 1).any():
            raise ValueError("points must lie in the cube [-1, 1]^d")
        return np.asarray(_polynomial_values(self.values[None], np.arccos(points))[0])

    def answer(self, moments: npt.ArrayLike) -> float:
        """The answer sum_m c_m M_m from moments (t,) * d, noisy or not."""
        return float(np.vdot(self.values, self._like(moments, "moments")))

    def noise_std(self, deviations: npt.ArrayLike) -> float:
        """Standard deviation of the answer for independent noise of these deviations (t,) * d."""
        return float(np.linalg.norm(self.values * self._like(deviations, "deviations")))

    def _like(self, array: npt.ArrayLike, name: str) -> FloatArray:
        array = finite_array(array, name, self.dimension)
        if array.shape != self.values.shape:
            raise ValueError(f"{name} must have shape {self.values.shape}, got {array.shape}")
        return array


def approximate(query: Function, degree: int, dimension: int, filter: Filter) -> Coefficients:
    """Coefficients of one query; see `approximate_many`."""
    return approximate_many([query], degree, dimension, filter)[0]


def approximate_many(
    queries: Sequence[Function], degree: int, dimension: int, filter: Filter
) -> tuple[Coefficients, ...]:
    """Chebyshev coefficients of queries for moments of degrees 0..t-1 in each variable.

    Parameters
    ----------
    queries : sequence of callable
        Functions f of points (n, d) in [-1, 1]^d with values (n,); a `SmoothQuery` states bounds
        on its derivatives and gets a proved bound on the error.
    degree : int
        t, the number of degrees 0..t-1 of the moments in each variable.
    dimension : int
        d.
    filter : Filter
        `Truncation()`, `Jackson(K)` or `Shrinkage(...)`.

    Returns
    -------
    tuple of Coefficients
        One for each query.

    Raises
    ------
    ValueError
        For t or d out of range or more than 2^24 coefficients; for queries that are not callable
        on arrays of points, return another shape than (n,), values that are not finite real
        numbers, or values that depend on the other points of the array; for a SmoothQuery in
        another number of variables.

    Notes
    -----
    Cost: (2 t)^d evaluations of each query, or t^d where these are more than 2^24; one cosine
    transform; and 1024 t^d operations to measure the error.

    References
    ----------
    Wang, Fan, Zhang and Wang 2013, Algorithm 2; formula sheet SM-A2, SM-JK, DISC-16.
    """
    size, dimension = whole(degree, "degree"), whole(dimension, "dimension")
    if size**dimension > MAX_NODES:
        raise ValueError(
            f"degree^dimension must be at most {MAX_NODES}, got {size}^{dimension}: the moments "
            "would not fit into memory"
        )
    if not isinstance(filter, Filter):
        raise ValueError(f"filter must be a Filter, got {type(filter).__name__}")
    if not queries:
        return ()
    angles = _probe_angles(dimension)
    points = np.cos(angles)
    truths = [_probed(query, points, position) for position, query in enumerate(queries)]
    nodes = nodes_per_axis(size, dimension)
    raw = grid_coefficients(queries, size, nodes, dimension)
    kept = raw * filter.weights(size, dimension)
    gaps = np.abs(_polynomial_values(kept, angles) - np.array(truths))
    lost = np.abs(kept - raw).reshape(len(kept), -1).sum(axis=1)
    return tuple(
        Coefficients(values, float(gap.max()), _proved(query, filter, nodes, values, float(loss)))
        for query, values, gap, loss in zip(queries, kept, gaps, lost, strict=True)
    )


def _proved(query: Function, filter: Filter, nodes: int, values: FloatArray, lost: float) -> float:
    """Proved bound on the error of a filtered polynomial: the least of three.

    The bound on truncation plus `lost`, the sum of |c_m| |1 - weight|; the filter's own bound; and
    max |f| plus the sum of |c_m| after filtering.
    """
    if not isinstance(query, SmoothQuery):
        return math.inf
    size, dimension = len(values), values.ndim
    bounds = query.order_bounds(MAX_ORDER)
    return min(
        truncation_bound(bounds, size, nodes, dimension) + lost,
        filter.error_bound(bounds, size, nodes, dimension),
        float(bounds[0] + np.abs(values).sum()),
    )


def _probed(query: Function, points: FloatArray, position: int) -> FloatArray:
    """Values of a query at the public points, after checks that it treats each point by itself."""
    if not callable(query):
        raise ValueError(f"queries must be callable, number {position} is a {type(query).__name__}")
    if isinstance(query, SmoothQuery) and query.dimension != points.shape[1]:
        raise ValueError(
            f"query must have {points.shape[1]} variables, number {position} has {query.dimension}"
        )
    values = values_of(query, points)
    some = slice(None, None, 3)
    again = values_of(query, points[some])
    scale = float(np.abs(values).max())
    if (np.abs(again - values[some]) > ROW_TOLERANCE * scale).any():
        raise ValueError(
            f"query must give each point its own value, number {position} changes it with the "
            "other points of the array"
        )
    return values


def _probe_angles(dimension: int) -> FloatArray:
    """Public points of the cube, as angles (p, d) in [0, pi]: evenly spread, and the corners.

    A Kronecker sequence with the powers of 1 / phi, phi^(d+1) = phi + 1, as steps.
    """
    root = 2.0
    for _ in range(64):  # a contraction by more than 2 at each step
        root = (1 + root) ** (1 / (dimension + 1))
    steps = root ** -np.arange(1, dimension + 1)
    spread = math.pi * ((0.5 + np.outer(np.arange(PROBE_POINTS), steps)) % 1)
    if dimension > MAX_CORNER_DIMENSION:
        return spread
    corners = np.indices((2,) * dimension).reshape(dimension, -1).T * math.pi
    return np.concatenate([spread, corners])


def _polynomial_values(coefficients: FloatArray, angles: FloatArray) -> FloatArray:
    """Values (q, n) at angles (n, d) of the sums of c_m prod_i cos(m_i a_i), c (q, t, ..., t).

    One variable at a time, O(q n t^d).
    """
    count, size = coefficients.shape[:2]
    tail = coefficients.size // (count * size)
    values = np.empty((count, len(angles)))
    step = max(1, BLOCK_ENTRIES // max(count * tail, size))
    degrees = np.arange(size)
    first = np.moveaxis(coefficients, 1, 0).reshape(size, count * tail)
    for start in range(0, len(angles), step):
        block = angles[start : start + step]
        partial = np.cos(np.multiply.outer(block[:, 0], degrees)) @ first
        for angle in block.T[1:]:
            waves = np.cos(np.multiply.outer(angle, degrees))
            partial = partial.reshape(len(block), count, size, -1)
            partial = np.einsum("nt,nqtr->nqr", waves, partial)
        values[:, start : start + step] = partial.reshape(len(block), count).T
    return values
