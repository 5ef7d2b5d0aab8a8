"""Chebyshev coefficients that turn moments into answers to smooth queries, and error bounds."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce

import numpy as np
import numpy.typing as npt
import scipy.fft
import scipy.special

from geomdp._numerics.linalg import row_blocks
from geomdp._typing import FloatArray
from geomdp._validation import batch, finite_array, real_number, require_type, whole
from geomdp.workloads.smooth.queries import MAX_ORDER, Function, SmoothQuery, values_of

#: Number of public points, besides the corners, at which the error of an approximation is measured.
PROBE_POINTS = 1024
#: Largest d for which the error is also measured at all 2^d corners of the cube.
MAX_CORNER_DIMENSION = 8
#: A query is evaluated twice at some points, in different batches. It is refused if two values
#: differ by more than rounding: by this limit times the largest modulus of the values.
ROW_TOLERANCE = 1e-6


@dataclass(frozen=True, eq=False)
class Coefficients:
    """Chebyshev coefficients c_m (t,) * d of a polynomial p that approximates a query f.

    The answer sum_m c_m M_m, for the means M_m of prod_i T_{m_i}(x_i) over the records, is the mean
    of p. For exact moments it errs by at most max |f - p| over the cube, which `error_bound`
    bounds.
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
    >>> import geomdp as gd
    >>> smooth = gd.workloads.smooth
    >>> query = smooth.Logistic([2.0], bias=0.0)
    >>> found = smooth.approximate(query, degree=8, dimension=1, filter=smooth.Truncation())
    >>> found
    Coefficients(1 variables, degree 8; error at most 0.00061, 1.8e-05 at public points)

    Moments of the records give the answer, here the value at the only record 0.3:

    >>> moments = gd.workloads.SmoothQueries(1, 8).evaluate([[0.3]])[0]
    >>> round(found.answer([1.0, *moments]), 3), round(float(query([[0.3]])[0]), 3)
    (0.646, 0.646)
    """
    return approximate_many([query], degree, dimension, filter)[0]


def approximate_many(
    queries: Sequence[Function], degree: int, dimension: int, filter: Filter
) -> tuple[Coefficients, ...]:
    """Chebyshev coefficients of queries for moments of degrees 0..t-1 in each variable.

    Cost for each query: (2 t)^d evaluations (t^d if (2 t)^d exceeds 2^24), a cosine transform, and
    about 1024 t^d operations to measure the error. ``ValueError`` if t, d or t^d (above 2^24) is
    out of range, a `SmoothQuery` does not have d variables, or a query does not return finite real
    numbers (n,) for an array of points (n, d), or a value depends on the other points.

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
    >>> from geomdp.workloads import smooth
    >>> queries = [smooth.Logistic([scale], bias=0.0) for scale in (1.0, 4.0)]
    >>> _, steep = smooth.approximate_many(queries, 8, 1, smooth.Truncation())
    >>> steep
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
    """Proved bound on the error after the filter; `lost` is the sum of |c_m| |1 - factor|."""
    if not isinstance(query, SmoothQuery):
        return math.inf
    size, dimension = len(values), values.ndim
    bounds = query.order_bounds(MAX_ORDER)
    return min(
        truncation_bound(bounds, size, nodes, dimension) + lost,
        filter.error_bound(bounds, size, nodes, dimension),
        float(bounds[0] + np.abs(values).sum()),  # a bound on max |f| plus one on max |p|
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
    degrees = np.arange(size)
    first = np.moveaxis(coefficients, 1, 0).reshape(size, count * tail)
    for part in row_blocks(len(angles), max(count * tail, size)):
        block = angles[part]
        partial = np.cos(np.multiply.outer(block[:, 0], degrees)) @ first
        for angle in block.T[1:]:
            waves = np.cos(np.multiply.outer(angle, degrees))
            partial = partial.reshape(len(block), count, size, -1)
            partial = np.einsum("nt,nqtr->nqr", waves, partial)
        values[:, part] = partial.reshape(len(block), count).T
    return values


# Chebyshev coefficients of functions, by a cosine transform of values on a full grid.

#: Largest number of nodes at which one function is evaluated: 2^24 values are 128 MB.
MAX_NODES = 1 << 24
#: Number of points at which a function is evaluated in one call.
BLOCK_POINTS = 1 << 16


def nodes_per_axis(size: int, dimension: int) -> int:
    """Nodes in each variable for t = `size` degrees: 2 t if (2 t)^d <= 2^24, else t."""
    return 2 * size if (2 * size) ** dimension <= MAX_NODES else size


def grid_coefficients(
    functions: Sequence[Function], size: int, nodes: int, dimension: int
) -> FloatArray:
    """Coefficients (q, t, ..., t) of degrees < t = `size` of interpolants at `nodes`^d nodes."""
    kept = (slice(None), *[slice(size)] * dimension)
    axes = tuple(range(1, dimension + 1))
    coefficients = np.empty((len(functions), *[size] * dimension))
    for part in row_blocks(len(functions), nodes**dimension):
        values = _grid_values(functions[part], (nodes,) * dimension)
        series = scipy.fft.dctn(values, type=2, axes=axes)
        series /= nodes**dimension
        for axis in axes:
            # The transform has a factor of 2 in each variable. Degree 0 needs a factor of 1.
            series[(slice(None),) * axis + (0,)] /= 2
        coefficients[part] = series[kept]
    return coefficients


def _grid_values(functions: Sequence[Function], shape: tuple[int, ...]) -> FloatArray:
    """Values (q, N, ..., N) of q functions on the product of N Chebyshev nodes in each variable."""
    nodes = np.cos(math.pi * (2 * np.arange(shape[0]) + 1) / (2 * shape[0]))
    values = np.empty((len(functions), math.prod(shape)))
    for part in row_blocks(values.shape[1], 1, BLOCK_POINTS):
        numbers = np.arange(part.start, part.stop)
        points = nodes[np.stack(np.unravel_index(numbers, shape), axis=1)]
        for row, function in zip(values, functions, strict=True):
            row[part] = values_of(function, points)
    return values.reshape(-1, *shape)


# Filters: factors that multiply the coefficients, and error bounds.


class Filter(ABC):
    """Factors that multiply Chebyshev coefficients of degrees < t = `size` in d = `dimension`
    variables.

    Examples
    --------
    >>> from geomdp.workloads import smooth
    >>> isinstance(smooth.Truncation(), smooth.Filter)
    True
    """

    @abstractmethod
    def weights(self, size: int, dimension: int) -> FloatArray:
        """The factors, an array of shape (t,) * d."""

    def error_bound(self, bounds: FloatArray, size: int, nodes: int, dimension: int) -> float:
        """Bound on the largest error of the filtered polynomial; infinite if no bound is known.

        Entry j of `bounds` (J + 1,) bounds all derivatives of order j of the query; `nodes` is the
        number N of Chebyshev nodes in each variable.
        """
        del bounds, size, nodes, dimension
        return math.inf


@dataclass(frozen=True)
class Truncation(Filter):
    """Factors that are all 1, usually the most accurate without noise for very smooth queries.

    Examples
    --------
    >>> from geomdp.workloads import smooth
    >>> smooth.Truncation().weights(3, 1)
    array([1., 1., 1.])
    """

    def weights(self, size: int, dimension: int) -> FloatArray:
        return np.ones((size,) * dimension)


@dataclass(frozen=True)
class Jackson(Filter):
    """The approximation operator of Wang, Fan, Zhang, Wang 2013, Theorem 3.2, as a filter (SM-JK).

    The factor for degrees m_1, ..., m_d is prod_i lambda_{m_i}, with the lambda of
    `jackson_multiplier`. If all derivatives up to order K are at most B, the error is O(t^-K), and
    the coefficients are at most 2^((K + 1) d) B. For the degrees t that noise allows, truncation is
    usually far more accurate.

    Parameters
    ----------
    smoothness : int
        Order K of the operator, from 1 to 30.

    Examples
    --------
    >>> from geomdp.workloads import smooth
    >>> smooth.Jackson(2).weights(5, 1).round(4)
    array([1.  , 1.4 , 0.9 , 0.15, 0.  ])
    """

    smoothness: int

    def __post_init__(self) -> None:
        smoothness = whole(self.smoothness, "smoothness", maximum=MAX_SMOOTHNESS)
        object.__setattr__(self, "smoothness", smoothness)

    def weights(self, size: int, dimension: int) -> FloatArray:
        multiplier = jackson_multiplier(self.smoothness, size)
        return reduce(np.multiply.outer, [multiplier] * dimension)

    def error_bound(self, bounds: FloatArray, size: int, nodes: int, dimension: int) -> float:
        """2 mu_K sup|g^(K)| in one angle (`kernel_moment`), with norm 2^(K + 1) - 1, plus aliasing.

        The aliasing is the error of the interpolant at `nodes` nodes, times the norm in d
        variables.
        """
        if len(bounds) <= self.smoothness:
            return math.inf
        norm = 2.0 ** (self.smoothness + 1) - 1
        moment = kernel_moment(self.smoothness, size)
        error = 2 * moment * float(angular_bounds(bounds)[self.smoothness])
        aliasing = truncation_bound(bounds, nodes, nodes, dimension)
        return tensor_bound(error, norm, dimension) + norm**dimension * aliasing


@dataclass(frozen=True, eq=False)
class Shrinkage(Filter):
    """Factors v_m / (v_m + s_m^2) that shrink noisy moments towards 0.

    If the moment M_m has noise of standard deviation s_m and E M_m^2 = v_m, the factor
    w = v_m / (v_m + s_m^2) minimises the mean squared error of w (M_m + noise). The v_m come from a
    model: n records are drawn from a random density, whose m-th moment has root mean square c_m
    ||m||^-a for m != 0. Here ||m|| is the maximum norm, and c_m^2 = 2^-(number of nonzero m_i) is
    the mean of prod_i T_{m_i}(x_i)^2 under the Chebyshev measure. Then v_0 = 1, and for m != 0

        v_m = c_m^2 ((1 - 1/n) ||m||^-2a + 1/n).

    a = 0 assumes a density that is not smooth. The coefficients are then a least-squares fit to the
    query under the Chebyshev measure, with a penalty for the noise.

    Parameters
    ----------
    noise_std : (t,) * d array
        s_m >= 0: standard deviations of the noise on the moments, which are means over records.
    n : int
        Public number of records.
    decay : float
        a >= 0, the assumed smoothness of the density; 0 for arbitrary data.

    Examples
    --------
    >>> from geomdp.workloads import smooth
    >>> smooth.Shrinkage([0.1] * 5, n=1000).weights(5, 1).round(4)
    array([0.9901, 0.9804, 0.9804, 0.9804, 0.9804])
    """

    noise_std: FloatArray = field(repr=False)
    n: int
    decay: float = 0.0

    def __post_init__(self) -> None:
        deviations = finite_array(self.noise_std, "noise_std", np.ndim(self.noise_std))
        if deviations.ndim == 0 or (deviations < 0).any():
            found = f"{deviations.min():g}" if deviations.ndim else "a single number"
            raise ValueError(f"noise_std must be an array of numbers at least 0, got {found}")
        object.__setattr__(self, "noise_std", deviations)
        object.__setattr__(self, "n", whole(self.n, "n"))
        if not 0 <= real_number(self.decay) < math.inf:
            raise ValueError(f"decay must be a finite number, at least 0, got {self.decay!r}")

    def weights(self, size: int, dimension: int) -> FloatArray:
        """``ValueError`` if `noise_std` has another shape than (t,) * d."""
        if self.noise_std.shape != (size,) * dimension:
            raise ValueError(
                f"noise_std must have shape {(size,) * dimension}, got {self.noise_std.shape}"
            )
        degrees = np.indices(self.noise_std.shape)
        spread = 0.5 ** np.count_nonzero(degrees, axis=0)
        norms = np.maximum(degrees.max(axis=0), 1).astype(np.float64)
        expected = spread * ((1 - 1 / self.n) * norms ** (-2 * self.decay) + 1 / self.n)
        return np.asarray(expected / (expected + self.noise_std**2))


#: Largest order K. In `jackson_multiplier`, cancellation loses up to K + 1 of 53 binary digits.
MAX_SMOOTHNESS = 30


def jackson_multiplier(smoothness: int, size: int) -> FloatArray:
    """Factors lambda_0, ..., lambda_{t-1} of the operator of order K = `smoothness` (SM-JK).

    In each variable, it replaces a function g of the angle a by I(g)(a) = int H(s) sum_{k=1}^{K+1}
    (-1)^(k+1) C(K+1, k) g(a + k s) ds for the kernel H of `kernel_coefficients`, whose cosine
    moments are rho_l. So lambda_n = sum_k (-1)^(k+1) C(K+1, k) rho_{k n}, lambda_0 = 1 and
    |lambda_n| <= 2^K.
    """
    rho = kernel_coefficients(smoothness, size)
    padded = np.concatenate([rho, np.zeros((smoothness + 1) * size)])
    degrees = np.arange(size)
    multiplier = np.zeros(size)
    for k in range(1, smoothness + 2):
        multiplier -= (-1) ** k * math.comb(smoothness + 1, k) * padded[k * degrees]
    multiplier[0] = 1.0  # the exact sum of the signed binomials
    return multiplier


def kernel_coefficients(smoothness: int, size: int) -> FloatArray:
    """Cosine moments rho_l (t,) in [0, 1] of the kernel H(s), which has integral 1 on [-pi, pi].

    H(s) is proportional to (sin(t' s / 2) / sin(s / 2))^(2 r), with r, t' from `kernel_orders`, and
    the rho_l to the coefficients of (1 + z + ... + z^(t'-1))^(2 r).
    """
    half_power, terms = kernel_orders(smoothness, size)
    # They are probabilities of a sum of 2 r uniform variables, up to a factor. A convolution of
    # probabilities has no overflow and no cancellation.
    uniform = np.full(terms, 1.0 / terms)
    law = np.ones(1)
    for _ in range(2 * half_power):
        law = np.convolve(law, uniform)
    centre = half_power * (terms - 1)
    rho = np.zeros(size)
    rho[: centre + 1] = law[centre:] / law[centre]
    return rho


def kernel_orders(smoothness: int, size: int) -> tuple[int, int]:
    """The pair r = ceil((K + 3) / 2) and t' = floor((t - 1) / r) + 1."""
    smoothness = whole(smoothness, "smoothness", maximum=MAX_SMOOTHNESS)
    size = whole(size, "size")
    half_power = (smoothness + 4) // 2
    return half_power, (size - 1) // half_power + 1


def kernel_moment(smoothness: int, size: int) -> float:
    """The moment mu_K = int H(s) |s|^K ds, in radians^K, by exact quadrature in O(t)."""
    half_power, terms = kernel_orders(smoothness, size)
    # Use one panel for each half period of the numerator. With 2 r + 32 nodes per panel, the
    # quadrature is exact up to rounding.
    nodes, weights = scipy.special.roots_legendre(2 * half_power + 32)
    panel = math.pi / terms
    angles = panel * (np.arange(terms)[:, None] + (nodes + 1) / 2)
    kernel = (np.sin(terms * angles / 2) / (terms * np.sin(angles / 2))) ** (2 * half_power)
    return float((kernel * angles**smoothness @ weights).sum() / (kernel @ weights).sum())


# Bounds on the error of polynomial approximation on the cube, from bounds on derivatives.


def angular_bounds(bounds: FloatArray) -> FloatArray:
    """Bounds sum_j S(K, j) |f^(j)|, K = 0..J, on derivatives of f(cos a) in a (Faa di Bruno)."""
    angular = np.empty_like(bounds)
    stirling = np.zeros(len(bounds))
    stirling[0] = 1.0
    orders = np.arange(len(bounds))
    with np.errstate(over="ignore"):
        for order in orders:
            used = stirling > 0
            angular[order] = stirling[used] @ bounds[used]
            stirling = orders * stirling + np.concatenate([[0.0], stirling[:-1]])
    return angular


def best_approximation(bounds: FloatArray, size: int) -> float:
    """Bound on the error of the best polynomial of degree < t = `size` for a function on [-1, 1].

    It is the least, over K = 1..J, of D_0, of (pi / 2) G_K / t^K (Favard), of
    (pi / 2)^K D_K / (t (t - 1) ... (t - K + 1)) for K <= t (Jackson), and of D_t / (2^(t - 1) t!)
    (interpolation, for t <= J). `bounds` holds the D_j, and `angular_bounds` gives the G_K. Source:
    Cheney 1966, chapter 4, sections 6 and 7; DeVore and Lorentz 1993, chapter 7, section 4.
    """
    orders = np.arange(1, len(bounds))
    # Use logarithms, because t^K can overflow although the quotient does not.
    with np.errstate(divide="ignore", over="ignore"):
        favard = np.exp(np.log(angular_bounds(bounds)[1:]) - orders * math.log(size))
    least = min(float(bounds[0]), math.pi / 2 * float(favard.min(initial=math.inf)))
    jackson = 1.0
    for order in range(1, min(size, len(bounds) - 1) + 1):
        jackson *= math.pi / 2 / (size - order + 1)
        least = min(least, jackson * float(bounds[order]))
    if size < len(bounds):
        least = min(least, float(bounds[size]) / (2.0 ** (size - 1) * math.factorial(size)))
    return least


def truncation_norm(size: int, nodes: int) -> float:
    """Bound on the norm of truncating a series from N = `nodes` nodes to degree < t = `size`.

    It is the Lebesgue constant of Fourier sums (Fejer) times 1 + pi (t - 1) / (2 N) (Bernstein).
    """
    degree = size - 1
    odd = 2 * degree + 1
    k = np.arange(1, size)
    lebesgue = 1 / odd + 2 / math.pi * float((np.tan(math.pi * k / odd) / k).sum())
    return lebesgue * (1 + math.pi * degree / (2 * nodes))


def tensor_bound(error: float, norm: float, dimension: int) -> float:
    """|f - P_1 ... P_d f| <= error sum_{i<d} norm^i if |f - P_i f| <= error, ||P_i|| <= norm."""
    return error * sum(norm**i for i in range(dimension))


def truncation_bound(bounds: FloatArray, size: int, nodes: int, dimension: int) -> float:
    """Bound by (1 + ||P||) times the error of `best_approximation` for truncations P."""
    norm = truncation_norm(size, nodes)
    return tensor_bound((1 + norm) * best_approximation(bounds, size), norm, dimension)
