"""Scales of Laplace and Gaussian noise for a sensitivity and a guarantee.

Delta_1 and Delta_2 are the largest ||f(X) - f(X')||_1 and ||f(X) - f(X')||_2 over neighbours X, X'.
A scale is for one coordinate, in the units of f. Phi and phi are the distribution function and
density of N(0, 1). All functions raise ``ValueError`` for a sensitivity that is not finite and
above 0, and for a guarantee of a wrong type.
"""

from __future__ import annotations

import functools
import math

import numpy as np
import scipy

from geomdp._numerics.bisection import largest_at_most
from geomdp._typing import FloatArray
from geomdp._validation import positive
from geomdp.privacy.definitions import ZCDP, ApproxDP, PureDP, check_privacy, rounded_up


def laplace_scale(sensitivity: float, privacy: PureDP) -> float:
    """Scale b = Delta_1 / epsilon of independent Laplace noise on every coordinate.

    `sensitivity` is Delta_1. The density is e^(-|x|/b) / (2b), and the variance is 2 b^2. The
    quotient is rounded up, so that epsilon b >= Delta_1 holds for the float64 values in exact
    arithmetic. Dwork-Roth 2014, Theorem 3.6; formula sheet GEN-3.

    Examples
    --------
    >>> import geomdp as gd
    >>> gd.privacy.laplace_scale(2.0, gd.PureDP(0.5))
    4.0
    """
    check_privacy(privacy, PureDP)
    sensitivity = positive(sensitivity, "sensitivity")
    return _scale(rounded_up(lambda change, e: change / e, sensitivity, privacy.epsilon))


def gaussian_scale(sensitivity: float, privacy: ZCDP | ApproxDP) -> float:
    """Smallest standard deviation of Gaussian noise that gives the guarantee, rounded up.

    This is `zcdp_gaussian_scale` for `ZCDP` and `analytic_gaussian_scale` for `ApproxDP`, for a
    `sensitivity` of Delta_2. ``ValueError`` for `PureDP`, which Gaussian noise never gives. Formula
    sheet JL-GAUSS.

    Examples
    --------
    >>> import geomdp as gd
    >>> round(gd.privacy.gaussian_scale(1.0, gd.ApproxDP(1.0, 1e-6)), 3)
    4.225
    """
    match privacy:
        case ZCDP():
            return zcdp_gaussian_scale(sensitivity, privacy)
        case ApproxDP():
            return analytic_gaussian_scale(sensitivity, privacy)
        case _:
            raise ValueError(f"privacy must be ZCDP or ApproxDP for Gaussian noise, got {privacy}")


def zcdp_gaussian_scale(sensitivity: float, privacy: ZCDP) -> float:
    """Standard deviation sigma = Delta_2 / sqrt(2 rho) of Gaussian noise for rho-zCDP.

    `sensitivity` is Delta_2. The quotient is rounded up by at most a few units in the last place,
    so that 2 rho sigma^2 >= Delta_2^2 holds for the float64 values in exact arithmetic. Bun-Steinke
    2016, Proposition 1.6; formula sheet GEN-2, JL-GAUSS.

    Examples
    --------
    >>> import geomdp as gd
    >>> round(gd.privacy.zcdp_gaussian_scale(1.0, gd.ZCDP(0.02)), 3)
    5.0
    """
    check_privacy(privacy, ZCDP)
    sensitivity = positive(sensitivity, "sensitivity")
    return _scale(rounded_up(lambda change, r: change / (2 * r).sqrt(), sensitivity, privacy.rho))


def analytic_gaussian_scale(sensitivity: float, privacy: ApproxDP) -> float:
    """Smallest standard deviation of Gaussian noise for (epsilon, delta)-DP, at any epsilon.

    This is the smallest sigma with ``gaussian_delta(sensitivity, sigma, epsilon) <= delta``,
    rounded up. `sensitivity` is Delta_2. Bisection in a = theta/2 - epsilon/theta, with
    theta = Delta_2 / sigma, takes about 60 evaluations. The lower end has Phi(a) = delta, where the
    noise has a delta of at most Phi(a). The upper end has Phi(a) = 3/4, where delta is at least
    Phi(a) - Phi(-a) = 1/2, and `ApproxDP` requires delta < 1/2.

    References
    ----------
    Balle-Wang 2018, Theorem 8; formula sheet JL-GAUSS.

    Examples
    --------
    >>> import geomdp as gd
    >>> round(gd.privacy.analytic_gaussian_scale(1.0, gd.ApproxDP(1.0, 1e-6)), 3)
    4.225
    """
    check_privacy(privacy, ApproxDP)
    sensitivity, epsilon = positive(sensitivity, "sensitivity"), privacy.epsilon
    a = largest_at_most(
        lambda a: _log_delta(a, epsilon),
        math.log(privacy.delta),
        # `ndtri` has a relative error of 1e-14. The margin keeps Phi(lower end) below delta.
        float(scipy.special.ndtri(privacy.delta)) * (1 + 1e-12) - 1e-12,
        float(scipy.special.ndtri(0.75)),
    )
    # The factor 1 + 2^-50 rounds up: the few operations before it have rounding errors of about
    # half a unit in the last place each.
    return _scale(sensitivity / _theta(a, epsilon) * (1 + 4 * np.finfo(np.float64).eps))


def gaussian_delta(sensitivity: float, scale: float, epsilon: float) -> float:
    """The least delta in [0, 1] for which Gaussian noise is (epsilon, delta)-DP.

    delta = Phi(theta/2 - epsilon/theta) - e^epsilon Phi(-theta/2 - epsilon/theta) for
    theta = Delta_2 / sigma, where `sensitivity` is Delta_2 and `scale` is sigma. ``ValueError`` for
    an argument, or a theta in float64, that is not finite and above 0. Balle-Wang 2018, Theorem 8;
    formula sheet JL-GAUSS.

    Examples
    --------
    More noise leaves a smaller delta:

    >>> import geomdp as gd
    >>> [float(f"{gd.privacy.gaussian_delta(1.0, scale, 1.0):.2g}") for scale in (1.0, 2.0, 4.0)]
    [0.13, 0.0068, 2.9e-06]
    """
    theta = positive(sensitivity, "sensitivity") / positive(scale, "scale")
    epsilon, theta = positive(epsilon, "epsilon"), positive(theta, "sensitivity / scale")
    a = theta / 2 - epsilon / theta
    # delta <= Phi(a), and Phi(-39) is below half the smallest positive float64.
    return 0.0 if a < -39 else math.exp(_log_delta(a, epsilon))


def _scale(value: float) -> float:
    """`value`; ``ValueError`` if it is 0 or infinite."""
    return positive(value, "the noise scale (from the sensitivity and the guarantee)")


def _theta(a: float, epsilon: float) -> float:
    """Positive root theta of a = theta/2 - epsilon/theta, without cancellation."""
    b = math.hypot(a, math.sqrt(2) * math.sqrt(epsilon))
    return a + b if a > 0 else 2 * epsilon / (b - a)


def _log_delta(a: float, epsilon: float) -> float:
    """ln delta of Gaussian noise with a = theta/2 - epsilon/theta, precise even for tiny delta.

    With b = a + theta and R(x) = Phi(-x) / phi(x), delta = phi(a) (R(-a) - R(b)). For theta < 1,
    the difference is an integral without cancellation. For theta >= 1 and 0 < -a <= 39, it is at
    least R(-a) / 41, so the subtraction loses at most two digits; for -a > 39, delta underflows.
    """
    theta, b = _theta(a, epsilon), math.hypot(a, math.sqrt(2) * math.sqrt(epsilon))
    if theta < 1:
        return -a * a / 2 - math.log(2 * math.pi) / 2 + _log_mills_difference(-a, theta)
    if a < 0:
        upper, lower = scipy.special.erfcx(np.array([-a, b]) / math.sqrt(2))
        return -a * a / 2 + math.log((upper - lower) / 2)
    log_upper = float(scipy.special.log_ndtr(a))
    # ln(e^epsilon Phi(-b)) = ln(phi(a) R(b)).
    log_lower = -a * a / 2 + math.log(float(scipy.special.erfcx(b / math.sqrt(2))) / 2)
    return log_upper + math.log1p(-math.exp(log_lower - log_upper))


def _log_mills_difference(x: float, theta: float) -> float:
    """ln(R(x) - R(x + theta)) for -1/2 < x, theta < 1, by a positive integrand: no cancellation."""
    c = max(1.0, x)
    v, weights = _quadrature()
    integrand = np.exp(-((v / c) ** 2) / 2 - x / c * v) * -np.expm1(-theta / c * v)
    return math.log(float(weights @ integrand) / c)


@functools.cache
def _quadrature() -> tuple[FloatArray, FloatArray]:
    """Gauss-Legendre nodes and weights on [0, 40]; 64 nodes agree with adaptive rules to 2e-14."""
    nodes, weights = np.polynomial.legendre.leggauss(80)
    return 20 * (nodes + 1), 20 * weights
