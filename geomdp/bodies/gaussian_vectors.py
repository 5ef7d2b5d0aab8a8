"""Means of norms and maxima of Gaussian vectors. They give the Gaussian widths of some bodies."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import scipy

from geomdp._typing import FloatArray
from geomdp._validation import finite_array, whole

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

    Returns
    -------
    float
        mu_m.

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
    """The mean of ||(s_1 g_1, ..., s_m g_m)||_2 = sqrt(X) for scales s >= 0 (m,), as pi^(-1/2)
    times the integral over u > 0 of (1 - E exp(-u^2 X)) / u^2, by the trapezoid rule in log u.
    """
    scales = finite_array(scales, "scales", ndim=1)
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
    """Gaussian width of the hull of `vertices` (N, m), by `common_edge`; None if not regular."""
    edge = common_edge(vertices)
    return None if edge is None else edge / math.sqrt(2) * mean_gaussian_maximum(len(vertices))


def common_edge(vertices: FloatArray) -> float | None:
    """The distance between any two points if all are equal; None if not, or for too many points."""
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
    return math.sqrt(squares.mean())


def _integrate(survivor: Callable[[float], float], knee: float) -> float:
    """Integral over t > 0 of a function at most 1, and below exp(-50) beyond `knee` + 10."""
    from scipy.integrate import quad  # slow to import, and few bodies need it

    pieces = [(0.0, knee / 2), (knee / 2, knee), (knee, knee + 1), (knee + 1, knee + 10)]
    return math.fsum(
        quad(survivor, low, high, epsabs=QUADRATURE_TOLERANCE, epsrel=QUADRATURE_TOLERANCE)[0]
        for low, high in pieces
    )
