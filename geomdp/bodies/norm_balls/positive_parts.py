"""Exits of rays from sets {y : sum_i (y_i)_+ <= level}, and projections on simplices, by sorting.

The positive part (y)_+ is max(y, 0). The cross-polytope uses these functions, because ||x||_1 is
the sum of the positive parts of (x, -x). The difference body of a simplex uses them in barycentric
coordinates. The spectral bodies use them for eigenvalues.
"""

from __future__ import annotations

import numpy as np

from geomdp._typing import FloatArray


def exit_time(values: FloatArray, slopes: FloatArray, level: float) -> FloatArray:
    """Largest t >= 0 with sum_i (y_i + t w_i)_+ <= level, for each row.

    y is a row of `values` (b, k), and w the same row of `slopes` (b, k). The result is (b,). The
    sum is a convex, piecewise linear function of t. So the sum is the maximum of its linear pieces.
    Each piece with a positive slope bounds t. The answer is the smallest of these bounds, or inf if
    no piece has a positive slope. Rows y should satisfy sum y_+ <= level. If rounding violates this
    inequality, the answer is still at least 0. The cost is O(k log k) per row.
    """
    active = (values > 0) | ((values == 0) & (slopes > 0))
    moving = np.where(values > 0, slopes < 0, (values < 0) & (slopes > 0))
    times = np.full(values.shape, np.inf)
    np.divide(-values, slopes, out=times, where=moving)
    order = np.argsort(times, axis=1)
    times = np.take_along_axis(times, order, axis=1)
    jumps = np.take_along_axis(np.where(moving, np.abs(slopes), 0.0), order, axis=1)
    reached = np.isfinite(times)
    times = np.where(reached, times, 0.0)

    first_slope = np.where(active, slopes, 0.0).sum(axis=1, keepdims=True)
    rises = first_slope + np.cumsum(jumps, axis=1)
    # A breakpoint is a t at which some y_i + t w_i changes its sign. The piece after breakpoint j
    # is the sum of the y_i + t w_i that are positive there. Its slope is in `rises`, and its value
    # at t = 0 in `heights`.
    first_height = np.where(active, values, 0.0).sum(axis=1, keepdims=True)
    heights = first_height - np.cumsum(jumps * times, axis=1)
    rises = np.hstack([first_slope, rises])
    heights = np.hstack([first_height, heights])
    usable = np.hstack([np.ones((len(values), 1), dtype=bool), reached]) & (rises > 0)
    bounds = np.full(rises.shape, np.inf)
    np.divide(level - heights, rises, out=bounds, where=usable)
    return np.asarray(np.maximum(bounds.min(axis=1), 0.0))


def nearest_in_corner(values: FloatArray, level: float) -> FloatArray:
    """The points of {x >= 0, sum x <= level} nearest to the rows of `values`, shape (b, k)."""
    nearest = np.maximum(values, 0.0)
    outside = nearest.sum(axis=1) > level
    if outside.any():
        nearest[outside] = nearest_in_simplex(values[outside], level)
    return nearest


def nearest_in_simplex(values: FloatArray, level: float) -> FloatArray:
    """The points of {x >= 0, sum x = level} nearest to the rows of `values`, shape (b, k).

    The point nearest to a row x is (x - tau)_+. The number tau is such that the entries of this
    point add up to `level` (Held, Wolfe and Crowder 1974). The cost is O(k log k) a row.
    """
    ordered = -np.sort(-values, axis=1)
    counts = np.arange(1, values.shape[1] + 1)
    shifts = (np.cumsum(ordered, axis=1) - level) / counts
    kept = (ordered > shifts).sum(axis=1)
    tau = np.take_along_axis(shifts, kept[:, None] - 1, axis=1)
    return np.asarray(np.maximum(values - tau, 0.0))
