"""Bounds on the derivatives of the univariate functions in smooth queries."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import scipy.special

from geomdp._typing import FloatArray

#: Highest order of derivatives for which queries have bounds. Higher orders do not improve noisy
#: answers. The square of 60! is still within float64.
MAX_ORDER = 60


@cache
def gaussian_derivative(order: int) -> float:
    """Largest |(d/du)^j exp(-u^2 / 2)| over all u, for j = `order`.

    The j-th derivative is (-1)^j He_j(u) exp(-u^2 / 2) with the Hermite polynomial He_j. At its
    extremes, the next derivative is 0, so He_{j+1}(u) = 0. These points u are the nodes of
    Gauss-Hermite quadrature. The next derivative is 0 there, so a rounding error of a node changes
    the value only to second order.
    """
    nodes, _ = scipy.special.roots_hermitenorm(order + 1)
    # The recurrence computes He_k(u) exp(-u^2 / 2) / sqrt(k!), because this does not overflow.
    before, now = np.zeros_like(nodes), np.exp(-(nodes**2) / 2)
    for k in range(order):
        before, now = now, (nodes * now - math.sqrt(k) * before) / math.sqrt(k + 1)
    return float(np.abs(now).max()) * math.sqrt(math.factorial(order))


@cache
def logistic_derivative(order: int) -> float:
    """A bound on |(d/du)^j [1 / (1 + exp(-u))]| over all u, for j = `order`.

    For j = 0 and for odd j, the bound is the supremum itself. The Fourier transform of the first
    derivative is pi w / sinh(pi w), which is positive. So for j >= 1 the modulus of the j-th
    derivative is at most
    int_0^inf w^j / sinh(pi w) dw = 2 (1 - 2^-s) Gamma(s) zeta(s) / pi^s with s = j + 1.
    """
    if order == 0:
        return 1.0
    s = order + 1
    log_gamma = math.lgamma(s) - s * math.log(math.pi)
    return 2 * (1 - 0.5**s) * float(scipy.special.zeta(s)) * math.exp(log_gamma)


def powers(base: float | FloatArray, order: int) -> FloatArray:
    """Powers 0..`order` of numbers >= 0; the exponent is the first axis of the result."""
    base = np.asarray(base, dtype=np.float64)
    return np.asarray(base ** np.arange(order + 1).reshape(-1, *[1] * base.ndim))


def falling_factorials(exponents: FloatArray, order: int) -> FloatArray:
    """Largest |(d/du)^j u^e| over [-1, 1] for j = 0..`order`: e (e - 1) ... (e - j + 1).

    `exponents` holds whole numbers e >= 0, in any shape. The first axis of the result is j, and
    entries with j > e are 0.
    """
    factors = exponents - np.arange(order).reshape(-1, *[1] * exponents.ndim)
    ones = np.ones((1, *exponents.shape))
    return np.concatenate([ones, np.cumprod(np.maximum(factors, 0), axis=0)])


def largest_product(factors: FloatArray) -> FloatArray:
    """Entry j is the largest prod_i factors[k_i, i] over all k with k_1 + ... + k_d = j.

    Take a product of d functions, each of its own variable. If factors[k, i] bounds the k-th
    derivative of function i, entry j of the result bounds all mixed derivatives of order j of the
    product. Further axes of `factors` (order + 1, d, ...) stand for further products.
    """
    best = factors[:, 0]
    for i in range(1, factors.shape[1]):
        best = np.stack([(best[: j + 1] * factors[j::-1, i]).max(axis=0) for j in range(len(best))])
    return np.asarray(best)
