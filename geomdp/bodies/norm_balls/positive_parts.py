"""Exits from {y : sum_i max(y_i, 0) <= level}, and projections on simplices, by sorting."""

from __future__ import annotations

import numpy as np

from geomdp._typing import FloatArray


def exit_time(values: FloatArray, slopes: FloatArray, level: float) -> FloatArray:
    """Largest t with sum_i (y_i + t w_i)_+ <= level, or inf, for rows y, w (b, k), by sorting."""
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
    """The points of {x >= 0, sum x <= level} nearest to the rows of `values` (b, k)."""
    nearest = np.maximum(values, 0.0)
    outside = nearest.sum(axis=1) > level
    if outside.any():
        nearest[outside] = nearest_in_simplex(values[outside], level)
    return nearest


def nearest_in_simplex(values: FloatArray, level: float) -> FloatArray:
    """The points of {x >= 0, sum x = level} nearest to `values` (b, k), at O(k log k) a row."""
    ordered = -np.sort(-values, axis=1)
    counts = np.arange(1, values.shape[1] + 1)
    shifts = (np.cumsum(ordered, axis=1) - level) / counts
    kept = (ordered > shifts).sum(axis=1)
    tau = np.take_along_axis(shifts, kept[:, None] - 1, axis=1)
    return np.asarray(np.maximum(values - tau, 0.0))
