"""Norm balls and ellipsoids centred at 0, and means of norms and maxima of Gaussian vectors."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy

from geomdp._numerics.linalg import AffineHull, rows_of_length, significant, spread
from geomdp._typing import FloatArray
from geomdp._validation import positive, real_number, whole
from geomdp.bodies.base import Body, Facets, cp, freeze, nearest_in_corner, off_span
from geomdp.bodies.boxes import axes_of


@dataclass(frozen=True, init=False)
class NormBall(Body):
    """The balls {x in R^m : ||x||_p <= r}, 1 <= p < infinity."""

    m: int
    r: float
    p: float

    symmetric = True

    def __init__(self, exponent: float, dimension: int, radius: float = 1.0) -> None:
        number = real_number(exponent)
        if not (math.isfinite(number) and number >= 1):
            raise ValueError(f"exponent must be finite and at least 1, got {exponent!r}")
        object.__setattr__(self, "m", whole(dimension, "dimension"))
        object.__setattr__(self, "r", positive(radius, "radius"))
        object.__setattr__(self, "p", number)

    def _summary(self) -> str:
        return f"radius {self.r:g}"

    @property
    def dimension(self) -> int:
        return self.m

    def radius(self) -> float:
        """r for p <= 2, attained on the axes; m^(1/2 - 1/p) r for p above 2, on the diagonals."""
        return float(self.r * self.m ** max(0.0, 1 / 2 - 1 / self.p))

    def volume(self) -> float:
        """(2 Gamma(1 + 1/p) r)^m / Gamma(1 + m/p)."""
        return math.exp(log_lp_ball_volume(self.m, self.p) + self.m * math.log(self.r))

    def sample_uniform(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Points r g / (sum |g_i|^p + X)^(1/p), g_i of density ~ e^(-|g|^p), X ~ Exp(1) (SAM-4)."""
        # g_i is G^(1/p) U, G ~ Gamma(1 + 1/p) and U uniform on [-1, 1]; the simpler draw of |g_i|^p
        # from Gamma(1/p) would underflow for large p.
        gammas = rng.standard_gamma(1 + 1 / self.p, (n, self.m))
        points = rng.uniform(-1, 1, (n, self.m)) * gammas ** (1 / self.p)
        powers = (np.abs(points) ** self.p).sum(axis=1) + rng.standard_exponential(n)
        return self.r * np.asarray(points / powers[:, None] ** (1 / self.p))

    @property
    def dual_exponent(self) -> float:
        """The q with 1/p + 1/q = 1; infinite for p = 1."""
        return self.p / (self.p - 1) if self.p > 1 else math.inf

    def support(self, directions: FloatArray) -> FloatArray:
        return self.r * lp_norms(directions, self.dual_exponent)

    def extreme_point(self, directions: FloatArray) -> FloatArray:
        """r sign(u_i) (|u_i| / ||u||_q)^(q - 1); r e_1 for u = 0, and a vertex for p = 1."""
        directions = directions.copy()
        directions[~directions.any(axis=1), 0] = 1.0
        return self.r * _polar(directions, self.dual_exponent)

    def gauge(self, points: FloatArray) -> FloatArray:
        return lp_norms(points, self.p) / self.r

    def second_moment(self) -> FloatArray:
        """r^2 Gamma(3/p) Gamma(m/p + 1) / (Gamma(1/p) Gamma((m + 2)/p + 1)) times the identity."""
        p, m = self.p, self.m
        logs = math.lgamma(3 / p) - math.lgamma(1 / p) + math.lgamma(m / p + 1)
        return self.r**2 * math.exp(logs - math.lgamma((m + 2) / p + 1)) * np.eye(m)

    def cvxpy_constraints(self, variable: Any) -> list[Any]:
        """CVXPY replaces p by a fraction of denominator at most 1024."""
        return [cp.pnorm(variable, self.p) <= self.r]

    def gauge_bound(self, l1: float, l2: float) -> float:
        """l1^s l2^(1 - s) / r, s = max(2 / p - 1, 0), by Littlewood's inequality for p < 2."""
        share = max(2 / self.p - 1, 0.0)
        return math.pow(l1, share) * math.pow(l2, 1 - share) / self.r


@dataclass(frozen=True, init=False)
class LpBall(NormBall):
    """The ball {x in R^m : ||x||_p <= r}, ||x||_p = (sum |x_i|^p)^(1/p), 1 <= p < infinity.

    Support, extreme points, gauge, facets and exactly uniform points are closed forms, O(m) per
    point; so are volume and second moment. Chords are found by bisection. `project` is not
    implemented. For p = 1, p = 2 and infinite p use `CrossPolytope`, `Ball` and `Box.centred`,
    which have more closed forms. The sampler is SAM-4, from Barthe, Guedon, Mendelson and Naor
    (2005).

    Parameters
    ----------
    exponent : float
        p, at least 1 and finite.
    dimension : int
        m, at least 1.
    radius : float
        r, finite and above 0.

    Examples
    --------
    >>> import geomdp as gd
    >>> gd.bodies.LpBall(exponent=4, dimension=2).gauge([[1.0, 1.0]]).round(6).tolist()
    [1.189207]
    """

    def _summary(self) -> str:
        return f"p {self.p:g}, radius {self.r:g}"

    def facets(self, points: FloatArray) -> Facets:
        """The normals are sign(x_i) (|x_i| / ||x||_p)^(p - 1) / r; for x = 0 that of e_1."""
        away = points.copy()
        away[~away.any(axis=1), 0] = 1.0
        return Facets(self.gauge(points), _polar(away, self.p) / self.r)

    def difference(self) -> Body:
        return LpBall(self.p, self.m, 2 * self.r)


@dataclass(frozen=True, init=False)
class Ball(NormBall):
    """The Euclidean ball {x in R^m : ||x||_2 <= r}.

    Its verbs (methods of `Body`) are closed forms that cost O(m) per point. It implements neither
    `facets` nor `vertex_list`.

    Parameters
    ----------
    dimension : int
        m, at least 1.
    radius : float
        r, finite and above 0.

    Examples
    --------
    >>> import geomdp as gd
    >>> gd.bodies.Ball(dimension=2, radius=5.0).gauge([[3.0, 4.0]]).tolist()
    [1.0]
    """

    def __init__(self, dimension: int, radius: float = 1.0) -> None:
        super().__init__(2.0, dimension, radius)

    def support(self, directions: FloatArray) -> FloatArray:
        return np.asarray(self.r * np.linalg.norm(directions, axis=1))

    def extreme_point(self, directions: FloatArray) -> FloatArray:
        return rows_of_length(self.r, directions)

    def gauge(self, points: FloatArray) -> FloatArray:
        return np.asarray(np.linalg.norm(points, axis=1) / self.r)

    def chord(self, points: FloatArray, directions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Points outside by rounding count as boundary points."""
        return ball_chord(points / self.r, directions / self.r)

    def project(self, points: FloatArray) -> FloatArray:
        norms = np.linalg.norm(points, axis=1, keepdims=True)
        return np.asarray(points * (self.r / np.maximum(norms, self.r)))

    def sample_uniform(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Exact (SAM-4)."""
        return self.r * unit_ball_points(n, self.m, rng)

    def second_moment(self) -> FloatArray:
        """r^2 / (m + 2) times the identity (JL-L14)."""
        return self.r**2 / (self.m + 2) * np.eye(self.m)

    def difference(self) -> Body:
        return Ball(self.m, 2 * self.r)

    def linear_image(self, matrix: FloatArray) -> Body:
        return Ellipsoid(self.r * matrix)

    def gaussian_width(self) -> float:
        return mean_gaussian_norm(self.m) * self.r


@dataclass(frozen=True, init=False)
class CrossPolytope(NormBall):
    """The l1 ball {x in R^m : ||x||_1 <= r}, the hull of the points +-r e_i.

    Its verbs are closed forms that cost at most O(m log m) per point, except the quadrature
    `gaussian_width`, and chords, found by bisection. The sampler is exact (SAM-4, p = 1). It
    implements neither `facets` nor `vertex_list`.

    Parameters
    ----------
    dimension : int
        m, at least 1.
    radius : float
        r, finite and above 0.

    Examples
    --------
    >>> import geomdp as gd
    >>> gd.bodies.CrossPolytope(3).gauge([[0.5, -0.5, 0.0]]).tolist()
    [1.0]
    """

    def __init__(self, dimension: int, radius: float = 1.0) -> None:
        super().__init__(1.0, dimension, radius)

    def project(self, points: FloatArray) -> FloatArray:
        return np.asarray(np.copysign(nearest_in_corner(np.abs(points), self.r), points))

    def second_moment(self) -> FloatArray:
        """2 r^2 / ((m + 1) (m + 2)) times the identity (JL-L14)."""
        return 2 * self.r**2 / ((self.m + 1) * (self.m + 2)) * np.eye(self.m)

    def difference(self) -> Body:
        return CrossPolytope(self.m, 2 * self.r)

    def linear_image(self, matrix: FloatArray) -> Body | None:
        """A cross-polytope if the rows of `matrix` are distinct e_j times c or -c; else None."""
        columns = axes_of(matrix)
        if columns is None:
            return None
        lengths = np.abs(matrix[np.arange(len(matrix)), columns])
        return CrossPolytope(len(matrix), self.r * lengths[0]) if np.ptp(lengths) == 0 else None

    def gaussian_width(self) -> float:
        return mean_gaussian_modulus(self.m) * self.r


@dataclass(frozen=True, eq=False)
class Ellipsoid(Body):
    """The ellipsoid {root @ u : ||u||_2 <= 1} in R^m.

    Parameters
    ----------
    root : (m, r) array
        Any finite matrix, m >= 1; its rank is the dimension of the ellipsoid. For r = 0 the
        ellipsoid is {0}. The ellipsoid {z : z^T S^(-1) z <= 1} has the root S^(1/2).

    Examples
    --------
    >>> import geomdp as gd
    >>> gd.bodies.Ellipsoid([[2.0, 0.0], [0.0, 1.0]]).support([[1.0, 0.0], [0.0, 1.0]]).tolist()
    [2.0, 1.0]
    """

    root: FloatArray

    symmetric = True

    def __post_init__(self) -> None:
        root = freeze(self, "root", ndim=2)
        if root.shape[0] == 0:
            raise ValueError(f"root must have shape (m, r), m >= 1, got {root.shape}")

    def _summary(self) -> str:
        return f"{self.effective_dimension} axes"

    @cached_property
    def _axes(self) -> tuple[FloatArray, FloatArray]:
        """Orthonormal axis directions (m, rank) and semi-axis lengths (rank,)."""
        left, lengths, _ = np.linalg.svd(self.root, full_matrices=False)
        kept = significant(lengths)
        return np.ascontiguousarray(left[:, kept]), lengths[kept]

    @cached_property
    def _lengths(self) -> FloatArray:
        """Semi-axis lengths (rank,), longest first, faster than with directions."""
        lengths: FloatArray = np.asarray(np.linalg.svd(self.root, compute_uv=False), dtype=float)
        return lengths[significant(lengths)]

    @property
    def effective_dimension(self) -> int:
        return len(self._lengths)

    @property
    def dimension(self) -> int:
        return int(self.root.shape[0])

    def _whiten(self, points: FloatArray) -> FloatArray:
        """Coordinates (b, rank) of `points` in which the ellipsoid is the unit ball."""
        directions, lengths = self._axes
        return np.asarray(points @ directions / lengths)

    def support(self, directions: FloatArray) -> FloatArray:
        return np.asarray(np.linalg.norm(directions @ self.root, axis=1))

    def extreme_point(self, directions: FloatArray) -> FloatArray:
        """0 if root^T u = 0, where all points are maximisers."""
        images = directions @ self.root
        norms = np.linalg.norm(images, axis=1, keepdims=True)
        units = np.divide(images, norms, out=np.zeros_like(images), where=norms > 0)
        return np.asarray(units @ self.root.T)

    def gauge(self, points: FloatArray) -> FloatArray:
        norms = np.linalg.norm(self._whiten(points), axis=1)
        return np.where(off_span(points, self._axes[0], self.radius()), np.inf, norms)

    def chord(self, points: FloatArray, directions: FloatArray) -> tuple[FloatArray, FloatArray]:
        along = ~off_span(directions, self._axes[0])
        ends = ball_chord(self._whiten(points[along]), self._whiten(directions[along]))
        low, high = spread(np.array(ends), along)
        return low, high

    def radius(self) -> float:
        return float(self._lengths.max(initial=0.0))

    def affine_hull(self) -> AffineHull:
        return AffineHull(np.zeros(self.dimension), self._axes[0])

    def sample_uniform(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Exact (SAM-4)."""
        directions, lengths = self._axes
        if len(lengths) == 0:
            return np.zeros((n, self.dimension))
        return np.asarray(unit_ball_points(n, len(lengths), rng) * lengths @ directions.T)

    def second_moment(self) -> FloatArray:
        """root root^T / (rank + 2) (JL-L14)."""
        return np.asarray(self.root @ self.root.T / (self.effective_dimension + 2))

    def volume(self) -> float:
        lengths = self._lengths
        return math.exp(log_unit_ball_volume(len(lengths)) + float(np.log(lengths).sum()))

    def cvxpy_constraints(self, variable: Any) -> list[Any]:
        directions, lengths = self._axes
        if len(lengths) == 0:
            return [variable == 0]
        unit = cp.Variable(len(lengths))
        return [variable == (directions * lengths) @ unit, cp.norm(unit, 2) <= 1]

    def difference(self) -> Body:
        return Ellipsoid(2 * self.root)

    def linear_image(self, matrix: FloatArray) -> Body:
        return Ellipsoid(matrix @ self.root)

    def gaussian_width(self) -> float:
        return mean_norm(np.asarray(np.linalg.svd(self.root, compute_uv=False), dtype=np.float64))

    def gauge_bound(self, l1: float, l2: float) -> float | None:
        """None if the ellipsoid is {0}."""
        del l1
        lengths = self._lengths
        return l2 / float(lengths.min()) if len(lengths) else None


# Norms, uniform points, volumes and chords of balls.


def lp_norms(points: FloatArray, exponent: float) -> FloatArray:
    """||x||_p (b,) for the rows x of `points` (b, m), without overflow."""
    sizes = np.abs(points)
    largest = sizes.max(axis=1, initial=0.0)
    if math.isinf(exponent):
        return np.asarray(largest)
    shares = np.divide(sizes, largest[:, None], out=np.zeros_like(sizes), where=sizes > 0)
    return np.asarray(largest * (shares**exponent).sum(axis=1) ** (1 / exponent))


def _polar(vectors: FloatArray, exponent: float) -> FloatArray:
    """Vectors y (b, m) with ||y||_q = 1, <y, x> = ||x||_p, for rows x != 0, 1/p + 1/q = 1."""
    if math.isinf(exponent):
        places = np.abs(vectors).argmax(axis=1)
        unit = np.zeros_like(vectors)
        rows = np.arange(len(vectors))
        unit[rows, places] = np.sign(vectors[rows, places])
        return unit
    shares = np.abs(vectors) / lp_norms(vectors, exponent)[:, None]
    return np.asarray(np.sign(vectors) * shares ** (exponent - 1))


def log_lp_ball_volume(dimension: int, exponent: float) -> float:
    """Logarithm of (2 Gamma(1 + 1/p))^m / Gamma(1 + m/p), the volume of the unit ball."""
    side = math.log(2) + math.lgamma(1 + 1 / exponent)
    return dimension * side - math.lgamma(1 + dimension / exponent)


def log_unit_ball_volume(dimension: int) -> float:
    """Logarithm of kappa_m = pi^(m/2) / Gamma(m/2 + 1), the volume of the unit ball (GEN-4)."""
    return log_lp_ball_volume(dimension, 2.0)


def unit_ball_volume(dimension: int) -> float:
    """Volume kappa_m = pi^(m/2) / Gamma(m/2 + 1) of the Euclidean unit ball of R^m (GEN-4).

    Parameters
    ----------
    dimension : int
        m, at least 1.

    Examples
    --------
    >>> import geomdp as gd
    >>> [round(gd.geometry.unit_ball_volume(m), 4) for m in (1, 2, 3, 20)]
    [2.0, 3.1416, 4.1888, 0.0258]
    """
    return math.exp(log_unit_ball_volume(whole(dimension, "dimension")))


def unit_ball_points(n: int, dimension: int, rng: np.random.Generator) -> FloatArray:
    """Uniform points (n, m) of the unit ball: Gaussian directions times norms U^(1/m)."""
    points = rng.standard_normal((n, dimension))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    return np.asarray(points * rng.random((n, 1)) ** (1 / dimension))


def ball_chord(points: FloatArray, directions: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Ends lo, hi (b,) of {t : ||x + t u||_2 <= 1} for x in the ball, u != 0, to full accuracy."""
    square = np.einsum("bm,bm->b", directions, directions)
    slope = np.einsum("bm,bm->b", points, directions)
    below = np.minimum(np.einsum("bm,bm->b", points, points) - 1, 0.0)
    far = -(slope + np.copysign(np.sqrt(slope**2 - square * below), slope))
    first = far / square
    second = np.divide(below, far, out=np.zeros_like(far), where=far != 0)
    return np.minimum(first, second), np.maximum(first, second)


# Means of norms and maxima of Gaussian vectors, which give Gaussian widths.

#: From this dimension on, `mean_gaussian_norm` uses an asymptotic series. Its first omitted term is
#: below 3e-16.
SERIES_DIMENSION = 200
#: Coefficients of Gamma(x + 1/2) / (Gamma(x) sqrt(x)) in powers of 1/x (Tricomi and Erdelyi 1951).
SERIES = (1.0, -1 / 8, 1 / 128, 5 / 1024, -21 / 32768, -399 / 262144)
#: `mean_norm` uses the trapezoid rule on y in [-45, 45]. The integrand decays like e^-|y|. For m
#: scales, the tails are below m 1e-19. For |Im y| <= pi/4 the integrand is analytic, and its
#: modulus is at most 3 times its value at Re y. So a step of 1/8 has an error of about e^(-2 pi
#: (pi/4) / step) < 1e-17.
NORM_REACH, NORM_STEP = 45.0, 0.125
#: Adaptive quadrature stops if its absolute or its relative error is estimated below this number.
QUADRATURE_TOLERANCE = 1e-13
#: Squared lengths count as equal up to this relative difference, which rounding can cause.
EQUAL_LENGTHS = 1e-12
#: Largest number N of points that are tested for equal distances. In R^m the test takes O(N^2 m).
LARGEST_TESTED = 2048


def mean_gaussian_norm(dimension: int) -> float:
    """Mean norm mu_m = E||g||_2 = sqrt(2) Gamma((m+1)/2) / Gamma(m/2) of g ~ N(0, I_m) (GEN-4).

    The relative accuracy is near 1e-15, and m / sqrt(m + 1) <= mu_m <= sqrt(m).

    Parameters
    ----------
    dimension : int
        m, at least 1.

    Examples
    --------
    >>> import geomdp as gd
    >>> [round(gd.geometry.mean_gaussian_norm(m), 4) for m in (1, 2, 100)]
    [0.7979, 1.2533, 9.975]
    """
    m = whole(dimension, "dimension")
    if m < SERIES_DIMENSION:
        return math.sqrt(2) * math.gamma((m + 1) / 2) / math.gamma(m / 2)
    return math.sqrt(m) * float(np.polynomial.polynomial.polyval(2 / m, SERIES))


def mean_norm(scales: FloatArray) -> float:
    """E ||(s_1 g_1, ..., s_m g_m)||_2 = E sqrt(X) for scales s >= 0 (m,): pi^(-1/2) times the
    integral over u > 0 of (1 - E exp(-u^2 X)) / u^2, by the trapezoid rule in log u.
    """
    largest = float(np.abs(scales).max(initial=0.0))
    if largest == 0:
        return 0.0
    logs = np.arange(-NORM_REACH, NORM_REACH + NORM_STEP, NORM_STEP)
    squares = 2 * np.exp(2 * logs)[:, None] * (scales / largest) ** 2
    survivors = -np.expm1(-np.log1p(squares).sum(axis=1) / 2)
    return largest * NORM_STEP * float((survivors * np.exp(-logs)).sum()) / math.sqrt(math.pi)


def mean_gaussian_maximum(count: int) -> float:
    """E max(g_1, ..., g_N), the integral over t > 0 of 1 - Phi(t)^N - Phi(-t)^N for N = `count`."""
    count = whole(count, "count")

    def survivor(t: float) -> float:
        tail = float(scipy.special.ndtr(-t))
        return -math.expm1(count * math.log1p(-tail)) - tail**count

    return _integrate(survivor, math.sqrt(2 * math.log(count + 1)))


def mean_gaussian_modulus(count: int) -> float:
    """E max(|g_1|, ..., |g_N|), the integral over t > 0 of 1 - P(|g| <= t)^N for N = `count`."""
    count = whole(count, "count")

    def survivor(t: float) -> float:
        tail = 2 * float(scipy.special.ndtr(-t))
        return 1.0 if tail >= 1 else -math.expm1(count * math.log1p(-tail))

    return _integrate(survivor, math.sqrt(2 * math.log(2 * count)))


def regular_simplex_width(vertices: FloatArray) -> float | None:
    """Gaussian width of the hull of `vertices` (N, m), if the distance between any two is the same;
    None if it is not, or for too many points.
    """
    count = len(vertices)
    if count == 1:
        return 0.0
    if count > LARGEST_TESTED:
        return None
    centred = vertices - vertices.mean(axis=0)
    products = centred @ centred.T
    squares = np.diag(products)[:, None] + np.diag(products) - 2 * products
    squares = squares[np.triu_indices(count, 1)]
    if np.ptp(squares) > EQUAL_LENGTHS * squares.max():
        return None
    return math.sqrt(squares.mean()) / math.sqrt(2) * mean_gaussian_maximum(count)


def _integrate(survivor: Callable[[float], float], knee: float) -> float:
    """Integral over t > 0 of a function at most 1, and below exp(-50) beyond `knee` + 10."""
    quad, accuracy = scipy.integrate.quad, QUADRATURE_TOLERANCE
    pieces = [(0.0, knee / 2), (knee / 2, knee), (knee, knee + 1), (knee + 1, knee + 10)]
    return math.fsum(quad(survivor, a, b, epsabs=accuracy, epsrel=accuracy)[0] for a, b in pieces)
