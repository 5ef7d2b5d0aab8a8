"""Bounds on the error of polynomial approximation on the cube, from bounds on derivatives."""

from __future__ import annotations

import math

import numpy as np

from geomdp._typing import FloatArray


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

    It is the Lebesgue constant of Fourier sums of degree t - 1 (Fejer's formula) times 1 + pi
    (t - 1) / (2 N), because the coefficients are sums over nodes (Bernstein, in the mean).
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
