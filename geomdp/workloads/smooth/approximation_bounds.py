"""Bounds on the error of polynomial approximation on the cube, from bounds on derivatives."""

from __future__ import annotations

import math

import numpy as np

from geomdp._typing import FloatArray


def angular_bounds(bounds: FloatArray) -> FloatArray:
    """Bounds on the derivatives of g(a) = f(.., cos a, ..) in one angle, from bounds for f.

    Entry j of `bounds` (J + 1,) bounds the derivatives of f of order j. Entry K of the result
    bounds |g^(K)|, for K = 0..J. Bounds can be infinite. All derivatives of cos have modulus at
    most 1. So |g^(K)| <= sum_j S(K, j) |f^(j)| by Faa di Bruno's formula, where S(K, j) are the
    Stirling numbers of the second kind.
    """
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
    """Bound on the maximal error of the best polynomial of degree < t for a function on [-1, 1].

    Entries D_0..D_J of `bounds` bound the derivatives of the function, G_0..G_J are the result of
    `angular_bounds`, and `size` is t. The result is the least of these bounds over K = 1..J:

    * D_0, the error of the polynomial 0;
    * (pi / 2) G_K / t^K (Favard);
    * (pi / 2)^K D_K / (t (t - 1) ... (t - K + 1)) for K <= t (Jackson);
    * D_t / (2^(t - 1) t!), the error of interpolation at Chebyshev nodes, for t <= J.

    References
    ----------
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
    """Bound on the norm of the map that truncates the discrete Chebyshev series to degree < t.

    t is `size`. The coefficients are computed from N = `nodes` >= t Chebyshev nodes. The bound is
    the product of two factors. The first is the Lebesgue constant of Fourier partial sums of degree
    t - 1, by Fejer's exact formula. The second is 1 + pi (t - 1) / (2 N), because the coefficients
    are sums over nodes and not integrals (Bernstein's inequality in the mean).
    """
    degree = size - 1
    odd = 2 * degree + 1
    k = np.arange(1, size)
    lebesgue = 1 / odd + 2 / math.pi * float((np.tan(math.pi * k / odd) / k).sum())
    return lebesgue * (1 + math.pi * degree / (2 * nodes))


def tensor_bound(error: float, norm: float, dimension: int) -> float:
    """Bound on |f - P_1 ... P_d f| if each |f - P_i f| <= `error` and each ||P_i|| <= `norm`.

    The P_i are linear maps on functions. The bound is error * sum_{i<d} norm^i, because
    f - P_1 .. P_d f = sum_i P_1 .. P_{i-1} (f - P_i f).
    """
    return error * sum(norm**i for i in range(dimension))


def truncation_bound(bounds: FloatArray, size: int, nodes: int, dimension: int) -> float:
    """Bound on the maximal error of truncating the discrete Chebyshev series to degrees < t.

    t is `size`. The series in each of d variables is computed from N = `nodes` >= t nodes. Entry j
    of `bounds` (J + 1,) bounds all derivatives of order j. The error of a projection P onto the
    polynomials is at most (1 + ||P||) times the error of the best polynomial.
    """
    norm = truncation_norm(size, nodes)
    return tensor_bound((1 + norm) * best_approximation(bounds, size), norm, dimension)
