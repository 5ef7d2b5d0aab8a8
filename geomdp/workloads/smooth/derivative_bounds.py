"""Largest derivatives of the univariate functions that smooth queries are built from."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import scipy.special

from geomdp._typing import FloatArray

#: Highest order of derivatives that queries bound: noisy answers gain nothing from higher ones, and
#: 60! squared is within float64.
MAX_ORDER = 60


@cache
def gaussian_derivative(order: int) -> float:
    """Largest |(d/du)^j exp(-u^2 / 2)| over all u, for j = `order`.

    The j-th derivative is (-1)^j He_j(u) exp(-u^2 / 2). Its own derivative vanishes where He_{j+1}
    does, so the maximum is at one of the nodes of Gauss-Hermite quadrature. The rounding of the
    nodes changes a maximum in second order only.
    """
    nodes, _ = scipy.special.roots_hermitenorm(order + 1)
    # He_k / sqrt(k!) by its recurrence stays within float64 for all orders.
    before, now = np.zeros_like(nodes), np.exp(-(nodes**2) / 2)
    for k in range(order):
        before, now = now, (nodes * now - math.sqrt(k) * before) / math.sqrt(k + 1)
    return float(np.abs(now).max()) * math.sqrt(math.factorial(order))


@cache
def logistic_derivative(order: int) -> float:
    """A bound on |(d/du)^j 1 / (1 + exp(-u))| over all u, for j = `order`.

    Equality for j = 0 and odd j. The first derivative has the positive Fourier transform
    pi w / sinh(pi w), so the j-th is at most int_0^inf w^j / sinh(pi w) dw
    = 2 (1 - 2^-s) Gamma(s) zeta(s) / pi^s with s = j + 1.
    """
    if order == 0:
        return 1.0
    s = order + 1
    log_gamma = math.lgamma(s) - s * math.log(math.pi)
    return 2 * (1 - 0.5**s) * float(scipy.special.zeta(s)) * math.exp(log_gamma)


def powers(base: float | FloatArray, order: int) -> FloatArray:
    """Powers 0..`order` of numbers (...) >= 0 as an array (order + 1, ...)."""
    base = np.asarray(base, dtype=np.float64)
    return np.asarray(base ** np.arange(order + 1).reshape(-1, *[1] * base.ndim))


def falling_factorials(exponents: FloatArray, order: int) -> FloatArray:
    """Largest |(d/du)^j u^e| over [-1, 1], e (e - 1) ... (e - j + 1), for j = 0..`order`.

    (order + 1, ...) for whole exponents e (...) of at least 0; zero where j exceeds e.
    """
    factors = exponents - np.arange(order).reshape(-1, *[1] * exponents.ndim)
    ones = np.ones((1, *exponents.shape))
    return np.concatenate([ones, np.cumprod(np.maximum(factors, 0), axis=0)])


def largest_product(factors: FloatArray) -> FloatArray:
    """Largest prod_i factors[k_i, i] over all k with k_1 + ... + k_d = j, for each j.

    Given bounds (order + 1, d, ...) on the derivatives of each factor of a product, each factor a
    function of its own variable, these (order + 1, ...) bound all mixed derivatives of order j.
    """
    best = factors[:, 0]
    for i in range(1, factors.shape[1]):
        best = np.stack([(best[: j + 1] * factors[j::-1, i]).max(axis=0) for j in range(len(best))])
    return np.asarray(best)
