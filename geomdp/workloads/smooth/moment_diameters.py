"""Diameters of the set of Chebyshev moments of single records: formulas and proved upper bounds.

Let Q_m(x) = prod_i T_{m_i}(x_i) for m in {0..t-1}^d, with T_r(cos a) = cos(r a). For weights
w_m >= 0, the weighted l1 diameter of {Q(x)} over x in [-1, 1]^d is

    max over x, x' of sum_m w_m |Q_m(x) - Q_m(x')| = max over x of sum_m w_m (1 - Q_m(x)).

The left-hand side is at least the right-hand side, because all Q_m are 1 at x' = (1, .., 1). Proof
that the left-hand side is not larger: Let x = cos a, x' = cos b, p = (a + b) / 2 and
q = (a - b) / 2. Q_m(x) is the mean of cos(k . a) over signs s, with k_i = s_i m_i. Also
|cos(k . a) - cos(k . b)| = 2 |sin(k . p)| |sin(k . q)|. Let F(p) be the sum over m of w_m times the
mean over s of 2 sin^2(k . p). By the Cauchy-Schwarz inequality over all (m, s), the left-hand side
is at most (F(p) F(q))^(1/2). The mean of 2 sin^2(k . p) over s is 1 - Q_m(cos 2 p). So F(p) and
F(q) are at most the right-hand side.

For w = 1 the diameter is S(t, d) = t^(d-1) S(t, 1). Indeed, sum_m Q_m(cos a) = prod_i D(a_i) with
D(a) = sum_{r<t} cos(r a) <= t. For t >= 2, the minimum of D is at most 0. The product is least if
one factor is this minimum and all other factors are t.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import scipy.fft

from geomdp._typing import FloatArray

#: The finest grids on which polynomials are evaluated have about this number of points. 2^20 points
#: take about 0.03 seconds.
GRID_POINTS = 1 << 20
#: In each variable, the grid has at most this number of intervals times the degree of the
#: polynomial. With 1024 times the degree, the bound in one variable has a relative error of at most
#: 2e-6.
FINEST = 1024
#: The grid is used only if it has at least this number of intervals times the degree in each
#: variable. The bound is then at most 1.09^d times the maximum over the grid.
COARSEST = 4
#: Factor by which bounds are rounded up. It exceeds the relative rounding errors of the transforms.
ROUND_UP = 1 + 1e-11


def weighted_l1_diameter(weights: FloatArray) -> float:
    """Upper bound on the weighted l1 diameter for `weights` w_m >= 0, (t,) * d.

    The maximum of sum_m w_m (1 - Q_m(x)) over a grid of N + 1 Chebyshev points in each variable,
    times 1 / cos(pi (t - 1) / (2 N))^d, bounds the maximum over the cube (Ehlich and Zeller 1964).
    The other bound, alone if the grid would be too coarse, is twice the sum of w_m over m != 0.
    """
    d, degree = weights.ndim, len(weights) - 1
    spread = weights.copy()
    spread[(0,) * d] = 0
    total = float(spread.sum())
    crude = 2 * total
    intervals = min(FINEST * degree, math.floor(GRID_POINTS ** (1 / d)) - 1)
    if intervals < COARSEST * degree:
        return crude
    lowest = float(values_on_grid(spread, intervals).min())
    return min(crude, (total - lowest) * grid_factor(degree, intervals) ** d * ROUND_UP)


@cache
def l1_diameter(d: int, size: int) -> float:
    """Upper bound on S(t, d), with relative error at most 2e-6 for t = `size` <= 1024."""
    return float(size ** (d - 1)) * weighted_l1_diameter(np.ones(size))


@cache
def l2_diameter(d: int, size: int) -> float:
    """Upper bound on max ||Q(x) - Q(x')||_2; relative error <= 1e-6 for t <= 512 even, or d = 1.

    In one variable, the square is D^2 = max_a sum_{r<t} (1 - cos(r a))^2, by the proof of the
    module with squares. In d > 1 variables, it is at most t^(d-1) max(2 t, D^2): let q(x_i) hold
    the T_r(x_i), r < t, A_i = |q(x_i)|^2, B_i = |q(x'_i)|^2 and G_i = <q(x_i), q(x'_i)>, all at
    most t in modulus. The square is prod A_i + prod B_i - 2 prod G_i. It is at most 2 t^d if prod
    G_i >= 0. Else some G_i < 0, and it is at most t^(d-1) (A_i + B_i - 2 G_i) <= t^(d-1) D^2.
    """
    # (1 - cos)^2 = 3/2 - 2 cos(r a) + cos(2 r a) / 2.
    series = np.zeros(2 * size - 1)
    series[0] = 1.5 * (size - 1)
    series[1:size] -= 2.0
    series[2 : 2 * size - 1 : 2] += 0.5
    degree = len(series) - 1
    intervals = max(COARSEST * degree, min(FINEST * degree, GRID_POINTS))
    highest = float(values_on_grid(series, intervals).max())
    square = highest * grid_factor(degree, intervals) * ROUND_UP
    if d > 1:
        square = size ** (d - 1) * max(2.0 * size, square)
    return math.sqrt(min(square, 4.0 * (size**d - 1)))


def grid_factor(degree: int, intervals: int) -> float:
    """max |p| over [-1, 1] is at most this times max |p| over cos(pi j / N), if deg p = k < N."""
    return 1 / math.cos(math.pi * degree / (2 * intervals))


def values_on_grid(coefficients: FloatArray, intervals: int) -> FloatArray:
    """Values of sum_m c_m Q_m on the grid with coordinates cos(pi j / N), N = `intervals`."""
    padded = np.zeros((intervals + 1,) * coefficients.ndim)
    padded[tuple(slice(length) for length in coefficients.shape)] = coefficients
    for axis in range(coefficients.ndim):
        # A transform of type 1 counts all terms twice, except terms 0 and N. Term N is 0, because
        # N is above the degree.
        padded[(slice(None),) * axis + (slice(1, None),)] /= 2
    return np.asarray(scipy.fft.dctn(padded, type=1))
