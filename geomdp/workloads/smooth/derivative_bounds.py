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
    """Largest |(d/du)^j exp(-u^2 / 2)| for j = `order`, at a zero of the Hermite He_{j+1}."""
    nodes, _ = scipy.special.roots_hermitenorm(order + 1)
    # The recurrence computes He_k(u) exp(-u^2 / 2) / sqrt(k!), because this does not overflow.
    before, now = np.zeros_like(nodes), np.exp(-(nodes**2) / 2)
    for k in range(order):
        before, now = now, (nodes * now - math.sqrt(k) * before) / math.sqrt(k + 1)
    return float(np.abs(now).max()) * math.sqrt(math.factorial(order))


@cache
def logistic_derivative(order: int) -> float:
    """A bound on |(d/du)^j [1 / (1 + exp(-u))]| for j = `order`; the supremum if j is 0 or odd.

    The Fourier transform of the first derivative is pi w / sinh(pi w) > 0, so the bound is
    int_0^inf w^j / sinh(pi w) dw = 2 (1 - 2^-s) Gamma(s) zeta(s) / pi^s with s = j + 1.
    """
    if order == 0:
        return 1.0
    s = order + 1
    log_gamma = math.lgamma(s) - s * math.log(math.pi)
    return 2 * (1 - 0.5**s) * float(scipy.special.zeta(s)) * math.exp(log_gamma)


def powers(base: float | FloatArray, order: int) -> FloatArray:
    """Powers 0..`order` of numbers >= 0; the exponent is the first axis."""
    base = np.asarray(base, dtype=np.float64)
    return np.asarray(base ** np.arange(order + 1).reshape(-1, *[1] * base.ndim))


def falling_factorials(exponents: FloatArray, order: int) -> FloatArray:
    """Largest |(d/du)^j u^e| on [-1, 1], e (e - 1) ... (e - j + 1), for j = 0..`order` (axis 0)."""
    factors = exponents - np.arange(order).reshape(-1, *[1] * exponents.ndim)
    ones = np.ones((1, *exponents.shape))
    return np.concatenate([ones, np.cumprod(np.maximum(factors, 0), axis=0)])


def largest_product(factors: FloatArray) -> FloatArray:
    """Entry j is the largest prod_i factors[k_i, i] with k_1 + ... + k_d = j (product rule)."""
    best = factors[:, 0]
    for i in range(1, factors.shape[1]):
        best = np.stack([(best[: j + 1] * factors[j::-1, i]).max(axis=0) for j in range(len(best))])
    return np.asarray(best)
