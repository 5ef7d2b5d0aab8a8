"""Queries with a kink, and limits of the Jackson operator's error on them for large degrees t."""

import math
from functools import cache

import numpy as np
import numpy.typing as npt

from geomdp.workloads.smooth import StatedSmoothness

FloatArray = npt.NDArray[np.float64]
#: Place of the kink in each variable.
KINK = 0.3


def kink(x: FloatArray, order: int) -> FloatArray:
    """sign(x)^(K-1) |x|^K / K! for K = `order`; its derivative of order K - 1 is |x|."""
    return np.asarray(np.sign(x) ** (order - 1) * np.abs(x) ** order / math.factorial(order))


def half_power(order: int) -> int:
    """r = ceil((K + 3) / 2) for K = `order`. The power in the Jackson kernel is 2 r.

    For multiples t of r, the kernel is (sin(t' a / 2) / sin(a / 2))^(2 r) with t' = t / r, up to a
    constant factor.
    """
    return math.ceil((order + 3) / 2)


@cache
def kernel(order: int) -> tuple[FloatArray, FloatArray]:
    """Points s = t' a for t' = t / r, and weights of the limit kernel (sin(s/2) / (s/2))^(2 r)."""
    s = np.linspace(-300, 300, 12_001)
    weights = np.sinc(s / (2 * math.pi)) ** (2 * half_power(order))
    return s, weights / weights.sum()


def signed_binomials(order: int) -> list[tuple[int, int]]:
    """Pairs of k and (-1)^(k+1) C(K+1, k), k = 1..K+1."""
    return [(k, (-1) ** (k + 1) * math.comb(order + 1, k)) for k in range(1, order + 2)]


@cache
def kernel_constant(order: int) -> float:
    """Limit of t'^K times the operator's largest error on `kink`, taken as a function of angles."""
    s, weights = kernel(order)
    errors = [
        sum(
            factor * (weights @ (kink(u + k * s, order) - kink(np.array(u), order)))
            for k, factor in signed_binomials(order)
        )
        for u in np.linspace(0, 8, 161)
    ]
    return float(np.abs(errors).max())


@cache
def kernel_factor(order: int) -> float:
    """Limit of the largest |factor| by which the operator multiplies cos(x t' a), 0 <= x <= 2."""
    s, weights = kernel(order)
    factors = [
        sum(factor * (weights @ np.cos(k * x * s)) for k, factor in signed_binomials(order))
        for x in np.linspace(0, 2, 201)
    ]
    return float(np.abs(factors).max())


def limit(d: int, order: int) -> float:
    """Limit of t'^K times the operator's largest error on `query`.

    The query is a function of x = cos(a) for an angle a, and cos(a) has the slope -sin(a) at the
    kink. Each further variable multiplies the error by `largest`.
    """
    slope = math.sqrt(1 - KINK**2)
    return slope**order * kernel_constant(order) * largest(order) ** (d - 1)


def largest(order: int) -> float:
    """Largest absolute value of the query in one variable, at x = -1."""
    return (1 + KINK) ** order / math.factorial(order)


def query(d: int, order: int) -> StatedSmoothness:
    """The product of the kinks in all variables, with a bound on derivatives up to order K."""

    def values(points: FloatArray) -> FloatArray:
        return np.asarray(np.prod(kink(points - KINK, order), axis=1))

    most = max((1 + KINK) ** j / math.factorial(j) for j in range(order + 1))
    return StatedSmoothness(values, d, smoothness=order, bound=most**d)
