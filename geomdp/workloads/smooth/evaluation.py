"""Chebyshev coefficients that turn moments into answers to smooth queries, with error bounds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.fft

from geomdp._typing import FloatArray
from geomdp._validation import batch, finite_array, require_type, whole
from geomdp.workloads.smooth.filters import Filter, truncation_bound
from geomdp.workloads.smooth.queries import MAX_ORDER, Function, SmoothQuery, values_of

#: Number of public points, besides the corners, at which the error of an approximation is measured.
PROBE_POINTS = 1024
#: Largest d for which the error is also measured at all 2^d corners of the cube.
MAX_CORNER_DIMENSION = 8
#: Largest number of entries of an intermediate array: 2^22 float64 are 32 MB. If one point alone
#: needs more entries, points are evaluated one at a time.
BLOCK_ENTRIES = 1 << 22
#: A query is evaluated twice at some points, in different batches. The two values at a point should
#: differ by rounding only. If their difference exceeds this limit times the largest modulus of the
#: values, the query is refused.
ROW_TOLERANCE = 1e-6


@dataclass(frozen=True, eq=False)
class Coefficients:
    """A polynomial p(x) = sum_m c_m prod_i T_{m_i}(x_i) that approximates a query f.

    T_j is the Chebyshev polynomial of degree j, and M_m is the mean of prod_i T_{m_i}(x_i) over the
    records. The answer sum_m c_m M_m is the mean of p over the records. For exact moments, its
    error is at most max |f - p| over the cube.

    Parameters
    ----------
    values : (t,) * d array
        Coefficients c_m.
    approximation_error : float
        Largest |f - p| at 1024 public points and, for d <= 8, at the corners of the cube: a lower
        bound on max |f - p|.
    error_bound : float
        Proved upper bound on max |f - p| over the cube, in real arithmetic; infinite if no bounds
        on derivatives are known.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> smooth = gd.workloads.smooth
    >>> query = smooth.Polynomial([[2]], [1.0])
    >>> found = smooth.approximate(query, degree=4, dimension=1, filter=smooth.Truncation())
    >>> np.round(found.values, 6) + 0.0
    array([0.5, 0. , 0.5, 0. ])
    >>> np.round(found([[0.5]]), 6)
    array([0.25])
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
        """The number t of degrees 0..t-1 in each variable."""
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
        """The answer sum_m c_m M_m. `moments` (t,) * d holds the M_m, with or without noise."""
        return float(np.vdot(self.values, self._like(moments, "moments")))

    def noise_std(self, deviations: npt.ArrayLike) -> float:
        """Standard deviation of the answer for independent noise of `deviations` (t,) * d."""
        return float(np.linalg.norm(self.values * self._like(deviations, "deviations")))

    def _like(self, array: npt.ArrayLike, name: str) -> FloatArray:
        array = finite_array(array, name, self.dimension)
        if array.shape != self.values.shape:
            raise ValueError(f"{name} must have shape {self.values.shape}, got {array.shape}")
        return array


def approximate(query: Function, degree: int, dimension: int, filter: Filter) -> Coefficients:
    """Coefficients of one query; see `approximate_many`.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> smooth = gd.workloads.smooth
    >>> query = smooth.Logistic([2.0], bias=0.0)
    >>> found = smooth.approximate(query, degree=8, dimension=1, filter=smooth.Truncation())
    >>> found
    Coefficients(1 variables, degree 8; error at most 0.00061, 1.8e-05 at public points)

    Moments of the records give the answer, here the value at the only record 0.3:

    >>> workload = gd.workloads.SmoothQueries(1, 8)
    >>> moments = np.concatenate([[1.0], workload.evaluate(np.array([[0.3]]))[0]])
    >>> round(found.answer(moments), 3), round(float(query([[0.3]])[0]), 3)
    (0.646, 0.646)
    """
    return approximate_many([query], degree, dimension, filter)[0]


def approximate_many(
    queries: Sequence[Function], degree: int, dimension: int, filter: Filter
) -> tuple[Coefficients, ...]:
    """Chebyshev coefficients of queries for moments of degrees 0..t-1 in each variable.

    Cost for each query: (2 t)^d evaluations (t^d if (2 t)^d exceeds 2^24), a cosine transform, and
    about 1024 t^d operations to measure the error. ``ValueError`` if t, d or the number of
    coefficients (above 2^24) is out of range, a `SmoothQuery` does not have d variables, or a query
    does not take arrays of points, does not return finite real numbers (n,), or has values at a
    point that depend on the other points.

    Parameters
    ----------
    queries : sequence of callable
        Functions f that take points (n, d) in [-1, 1]^d and return values (n,). For a
        `SmoothQuery`, known bounds on derivatives give a proved bound on the error, too.
    degree : int
        t, the number of degrees 0..t-1 of the moments in each variable.
    dimension : int
        Number of variables d.
    filter : Filter
        Factors of the coefficients: `Truncation()`, `Jackson(K)` or `Shrinkage(...)`.

    References
    ----------
    Wang, Fan, Zhang and Wang 2013, Algorithm 2; formula sheet SM-A2, SM-JK, DISC-16.

    Examples
    --------
    >>> import geomdp as gd
    >>> smooth = gd.workloads.smooth
    >>> queries = [smooth.Logistic([scale], bias=0.0) for scale in (1.0, 4.0)]
    >>> for found in smooth.approximate_many(queries, 8, 1, smooth.Truncation()):
    ...     print(found)
    Coefficients(1 variables, degree 8; error at most 2.4e-06, 6.5e-08 at public points)
    Coefficients(1 variables, degree 8; error at most 0.16, 0.0015 at public points)
    """
    size, dimension = whole(degree, "degree"), whole(dimension, "dimension")
    if size**dimension > MAX_NODES:
        raise ValueError(
            f"degree^dimension must be at most {MAX_NODES}, got {size}^{dimension}: the moments "
            "would not fit into memory"
        )
    require_type(filter, Filter, "filter")
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
    """Proved bound on the error of a filtered polynomial, infinite without bounds on derivatives.

    It is the least of three: truncation plus `lost` = sum of |c_m| |1 - factor|; the bound of the
    filter; and a bound on max |f| plus the sum of |c_m| after filtering.
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
    """Values at `points`; ``ValueError`` if a value of query `position` depends on other points."""
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
            f"query must give each point its own value, but the value of number {position} at a "
            "point depends on the other points of the array"
        )
    return values


def _probe_angles(dimension: int) -> FloatArray:
    """Public points as angles (p, d) in [0, pi]: a Kronecker sequence, and corners for d <= 8."""
    root = 2.0
    for _ in range(64):  # each step reduces the error by a factor above 2
        root = (1 + root) ** (1 / (dimension + 1))
    steps = root ** -np.arange(1, dimension + 1)
    spread = math.pi * ((0.5 + np.outer(np.arange(PROBE_POINTS), steps)) % 1)
    if dimension > MAX_CORNER_DIMENSION:
        return spread
    corners = np.indices((2,) * dimension).reshape(dimension, -1).T * math.pi
    return np.concatenate([spread, corners])


def _polynomial_values(coefficients: FloatArray, angles: FloatArray) -> FloatArray:
    """Values (q, n) of sum_m c_m prod_i cos(m_i a_i) for `angles` (n, d); O(q n t^d)."""
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


# Chebyshev coefficients of functions, by a cosine transform of values on a full grid.


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
