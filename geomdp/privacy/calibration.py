"""How much Laplace or Gaussian noise a guarantee needs, per unit of sensitivity."""

from __future__ import annotations

import functools
import math

import numpy as np
from scipy.special import erfcx, log_ndtr, ndtri

from geomdp._typing import FloatArray
from geomdp._validation import positive
from geomdp.privacy._bisection import largest_at_most
from geomdp.privacy.guarantees import ZCDP, ApproxDP, PureDP


def laplace_scale(sensitivity: float, privacy: PureDP) -> float:
    """Scale b = Delta_1 / epsilon of independent Laplace noise on every coordinate.

    Parameters
    ----------
    sensitivity : float
        l1 sensitivity Delta_1, largest ||f(X) - f(X')||_1 over neighbours.
    privacy : PureDP
        Guarantee wanted.

    Returns
    -------
    float
        Scale b of the density e^(-|x|/b) / (2b), in the units of f; the variance is 2 b^2.

    Raises
    ------
    ValueError
        A sensitivity that is not finite and above 0.

    References
    ----------
    Dwork-Roth 2014, Theorem 3.6; formula sheet GEN-3.
    """
    return _scale(positive(sensitivity, "sensitivity") / privacy.epsilon)


def gaussian_scale(sensitivity: float, privacy: ZCDP | ApproxDP) -> float:
    """Smallest standard deviation of Gaussian noise that gives the guarantee.

    `zcdp_gaussian_scale` or `analytic_gaussian_scale`, as `privacy` asks; both are necessary
    and sufficient for noise N(0, sigma^2 I).

    Parameters
    ----------
    sensitivity : float
        l2 sensitivity Delta_2, largest ||f(X) - f(X')||_2 over neighbours.
    privacy : ZCDP or ApproxDP
        Guarantee wanted. Gaussian noise is never purely private.

    Returns
    -------
    float
        Standard deviation sigma per coordinate, in the units of f.

    Raises
    ------
    ValueError
        A `PureDP` guarantee, or a sensitivity that is not finite and above 0.

    References
    ----------
    Formula sheet JL-GAUSS.
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

    Parameters
    ----------
    sensitivity : float
        l2 sensitivity Delta_2, largest ||f(X) - f(X')||_2 over neighbours.
    privacy : ZCDP
        Guarantee wanted.

    Returns
    -------
    float
        Standard deviation sigma per coordinate, in the units of f.

    Raises
    ------
    ValueError
        A sensitivity that is not finite and above 0.

    References
    ----------
    Bun-Steinke 2016, Proposition 1.6; formula sheet GEN-2, JL-GAUSS.
    """
    return _scale(positive(sensitivity, "sensitivity") / math.sqrt(2) / math.sqrt(privacy.rho))


def analytic_gaussian_scale(sensitivity: float, privacy: ApproxDP) -> float:
    """Smallest standard deviation of Gaussian noise for (epsilon, delta)-DP, at any epsilon.

    The smallest sigma with ``gaussian_delta(sensitivity, sigma, epsilon) <= delta``; Gaussian
    noise with less is not (epsilon, delta)-DP.

    Parameters
    ----------
    sensitivity : float
        l2 sensitivity Delta_2, largest ||f(X) - f(X')||_2 over neighbours.
    privacy : ApproxDP
        Guarantee wanted.

    Returns
    -------
    float
        Standard deviation sigma per coordinate, in the units of f, rounded up.

    Raises
    ------
    ValueError
        A sensitivity that is not finite and above 0.

    Notes
    -----
    Bisection in a = theta/2 - epsilon/theta, theta = Delta_2 / sigma. From the formula of
    `gaussian_delta`, delta <= Phi(a) gives the lower end; at Phi(a) = 3/4 delta is at least
    Phi(a) - Phi(-a) = 1/2, which gives the upper one. About 60 evaluations.

    References
    ----------
    Balle-Wang 2018, Theorem 8; formula sheet JL-GAUSS.
    """
    sensitivity, epsilon = positive(sensitivity, "sensitivity"), privacy.epsilon
    a = largest_at_most(
        lambda a: _log_delta(a, epsilon),
        math.log(privacy.delta),
        # ndtri is good to 1e-14 relative; the room keeps Phi(lower end) below delta.
        float(ndtri(privacy.delta)) * (1 + 1e-12) - 1e-12,
        float(ndtri(0.75)),
    )
    # A handful of roundings, of half a unit in the last place each, may have moved this down.
    return _scale(sensitivity / _theta(a, epsilon) * (1 + 4 * np.finfo(np.float64).eps))


def classical_gaussian_scale(sensitivity: float, privacy: ApproxDP) -> float:
    """The textbook sigma = Delta_2 sqrt(2 ln(1.25/delta)) / epsilon, proved for epsilon < 1.

    For comparison: `analytic_gaussian_scale` is smaller and has no such limit.

    Parameters
    ----------
    sensitivity : float
        l2 sensitivity Delta_2, largest ||f(X) - f(X')||_2 over neighbours.
    privacy : ApproxDP
        Guarantee wanted, epsilon below 1.

    Returns
    -------
    float
        Standard deviation sigma per coordinate, in the units of f.

    Raises
    ------
    ValueError
        epsilon of 1 or more, or a sensitivity that is not finite and above 0.

    References
    ----------
    Dwork-Roth 2014, Theorem A.1 (its constant 1.25); formula sheet JL-GAUSS.
    """
    sensitivity = positive(sensitivity, "sensitivity")
    if privacy.epsilon >= 1:
        raise ValueError(f"epsilon must be below 1 for the classical sigma, got {privacy.epsilon}")
    deviations = math.sqrt(2 * (math.log(1.25) - math.log(privacy.delta)))
    return _scale(sensitivity * deviations / privacy.epsilon)


def gaussian_delta(sensitivity: float, scale: float, epsilon: float) -> float:
    """The least delta for which Gaussian noise is (epsilon, delta)-DP.

    delta = Phi(theta/2 - epsilon/theta) - e^epsilon Phi(-theta/2 - epsilon/theta),
    theta = Delta_2 / sigma.

    Parameters
    ----------
    sensitivity : float
        l2 sensitivity Delta_2, largest ||f(X) - f(X')||_2 over neighbours.
    scale : float
        Standard deviation sigma per coordinate, in the same units.
    epsilon : float
        Privacy loss, finite and above 0.

    Returns
    -------
    float
        delta in [0, 1], as rounded to float64.

    Raises
    ------
    ValueError
        An argument that is not finite and above 0.

    References
    ----------
    Balle-Wang 2018, Theorem 8; formula sheet JL-GAUSS.
    """
    theta = positive(sensitivity, "sensitivity") / positive(scale, "scale")
    epsilon, theta = positive(epsilon, "epsilon"), positive(theta, "sensitivity / scale")
    a = theta / 2 - epsilon / theta
    # delta <= Phi(a), and Phi(-39) is below half the smallest float64.
    return 0.0 if a < -39 else math.exp(_log_delta(a, epsilon))


def _scale(value: float) -> float:
    """`value`, or ``ValueError`` where the noise needed is beyond float64."""
    return positive(value, "the noise scale (from the sensitivity and the guarantee)")


def _theta(a: float, epsilon: float) -> float:
    """Positive root theta of a = theta/2 - epsilon/theta, without cancellation."""
    b = math.hypot(a, math.sqrt(2) * math.sqrt(epsilon))
    return a + b if a > 0 else 2 * epsilon / (b - a)


def _log_delta(a: float, epsilon: float) -> float:
    """ln delta of Gaussian noise, with full relative precision in delta.

    With b = sqrt(a^2 + 2 epsilon) = theta/2 + epsilon/theta, e^epsilon phi(b) = phi(a), so
    delta = Phi(a) - e^epsilon Phi(-b) = phi(a) (R(-a) - R(b)), R(x) = Phi(-x) / phi(x), and
    b + a = theta. For theta >= 1 the difference loses at most two digits where delta is a
    float64 (-a <= 39 there). For theta < 1 it is written as an integral without cancellation.
    """
    theta, b = _theta(a, epsilon), math.hypot(a, math.sqrt(2) * math.sqrt(epsilon))
    if theta < 1:
        return -a * a / 2 - math.log(2 * math.pi) / 2 + _log_mills_difference(-a, theta)
    log_upper = float(log_ndtr(a))
    # ln(e^epsilon Phi(-b)) = ln(phi(a) R(b)); R(x) = sqrt(pi/2) erfcx(x / sqrt 2).
    log_lower = -a * a / 2 + math.log(float(erfcx(b / math.sqrt(2))) / 2)
    log_share = log_lower - log_upper
    return log_upper + math.log1p(-math.exp(log_share)) if log_share < 0 else -math.inf


def _log_mills_difference(x: float, theta: float) -> float:
    """ln(R(x) - R(x + theta)) for -1/2 < x and theta < 1, without cancellation.

    R(x) = int_0^inf e^(-t^2/2 - x t) dt, so the difference is
    int_0^inf e^(-t^2/2 - x t) (1 - e^(-theta t)) dt, a positive integrand. In v = c t with
    c = max(1, x) it varies over unit lengths and vanishes to float64 beyond v = 40.
    """
    c = max(1.0, x)
    v, weights = _quadrature()
    integrand = np.exp(-((v / c) ** 2) / 2 - x / c * v) * -np.expm1(-theta / c * v)
    return math.log(float(weights @ integrand) / c)


@functools.cache
def _quadrature() -> tuple[FloatArray, FloatArray]:
    """Gauss-Legendre nodes and weights on [0, 40].

    64 nodes agree with adaptive quadrature to 2e-14 for all x in [-1/2, 39]; 80 leave a margin.
    """
    nodes, weights = np.polynomial.legendre.leggauss(80)
    return 20 * (nodes + 1), 20 * weights
