"""Nearest point of the hull of a table of points, by Wolfe's active-set method, compiled (X-MNP).

Let b in R^d be the target. The method of Wolfe (1976), "Finding the nearest point in a polytope",
keeps a set of points, the members, and x, the point nearest to b in their affine hull, with
positive weights. The gain of a point p is <b - x, p - x>. In an exchange, a point with positive
gain joins the members. While the nearest point of the new affine hull has a negative weight, x
moves towards it until the first weight vanishes, and this member leaves.

In exact arithmetic the distance falls with every exchange, so no set of members occurs twice. A
sweep computes the gains of the whole table once, and tries the points with large gains, the largest
first. The gain of a point is recomputed (O(d)) before it joins. A sweep is stalled if, because of
rounding, neither the distance nor the largest gain falls enough. The search ends after `PATIENCE`
stalled sweeps in a row. The table holds lifted points, followed by an entry 1.
"""

from __future__ import annotations

import numpy as np

from geomdp._numerics.compilation import numba
from geomdp._typing import FloatArray
from geomdp.bodies.polytopes.nearest.qr_update import Factor, affine_weights, delete, insert

#: Weights up to this value count as zero, because rounding errors move x by more than such a weight
#: does.
ZERO_WEIGHT = 1e-15
#: The search gives up after this number of stalled sweeps in a row. A search of `column_generation`
#: gives up after this number of stalled rounds in a row. The values 1, 2, 4, 8 and 16 reached the
#: same tolerances on 11,000 degenerate and smooth instances.
PATIENCE = 2
#: A sweep makes progress in gain if its largest gain is below this share of G. Here G is the
#: largest gain of the last sweep that made progress in gain.
GAIN_DROP = 0.9
#: A sweep makes progress in distance if the squared distance falls by more than this share, which
#: is about five machine epsilons. A sweep with neither kind of progress is stalled.
DISTANCE_DROP = 1e-15
#: A point joins in a sweep only if its gain is above this share of the sweep's largest gain.
#: Shares of 0.3 to 0.7 need a quarter fewer exchanges than a share of 0. This was measured on
#: Gaussian vertices with (dimension, number of vertices) from (50, 1000) to (500, 20000).
JOINING_SHARE = 0.3
#: Number of exchanges per dimension after which a call returns the current point. Most calls need 2
#: to 4 exchanges per dimension.
EXCHANGES_PER_DIMENSION = 50


@numba.njit(cache=True)
def nearest_of_members(factor: Factor, points: FloatArray) -> FloatArray:
    """The current point x = sum_j w_j p_j of the members p_j, as a lifted point (d+1,)."""
    result = np.zeros(points.shape[1])
    for position in range(factor.size[0]):
        weight = factor.weights[position]
        row = points[factor.members[position]]
        for j in range(len(result)):
            result[j] += weight * row[j]
    return result


@numba.njit(cache=True)
def residual_at(factor: Factor, x: FloatArray) -> FloatArray:
    residual = factor.target - x
    residual[-1] = 0.0
    return residual


@numba.njit(cache=True)
def settle(factor: Factor) -> bool:
    """Move x to the nearest point of the affine hull, dropping members; return whether x moved."""
    moved = False
    while True:
        k = factor.size[0]
        goal = affine_weights(factor)
        step, blocking = 1.0, -1
        for i in range(k):
            if goal[i] <= ZERO_WEIGHT:
                fall = factor.weights[i] - goal[i]
                share = min(factor.weights[i] / fall, 1.0) if fall > 0.0 else 0.0
                if blocking < 0 or share < step:
                    step, blocking = share, i
        moved = moved or step > 0.0
        for i in range(k):
            factor.weights[i] += step * (goal[i] - factor.weights[i])
        if blocking >= 0:
            factor.weights[blocking] = 0.0
            for i in range(k - 1, -1, -1):
                if factor.weights[i] <= ZERO_WEIGHT and goal[i] <= ZERO_WEIGHT:
                    delete(factor, i)
        factor.weights[: factor.size[0]] /= factor.weights[: factor.size[0]].sum()
        if blocking < 0:
            return moved


@numba.njit(cache=True)
def improve(factor: Factor, points: FloatArray, tolerance: float) -> int:
    """Exchange members until no row of `points` (n, d+1) has a gain above `tolerance`, the search
    stalls, or the limit `EXCHANGES_PER_DIMENSION` is reached; return the number of exchanges.
    """
    limit = EXCHANGES_PER_DIMENSION * points.shape[1]
    exchanges, stalled = 0, 0
    lowest_gain, lowest_distance = np.inf, np.inf
    while stalled < PATIENCE and exchanges < limit:
        x = nearest_of_members(factor, points)
        residual = residual_at(factor, x)
        gains = np.dot(points, residual) - np.dot(x, residual)
        largest, distance = gains.max(), np.dot(residual, residual)
        if largest <= tolerance:
            break
        stalled += 1
        if largest < GAIN_DROP * lowest_gain:
            lowest_gain, stalled = largest, 0
        if distance < (1.0 - DISTANCE_DROP) * lowest_distance:
            lowest_distance, stalled = distance, 0
        threshold, moved = max(tolerance, JOINING_SHARE * largest), False
        for row in np.argsort(-gains):
            if gains[row] <= threshold:
                break
            if np.dot(points[row] - x, residual) > threshold and insert(factor, points, row):
                exchanges += 1
                if settle(factor):
                    moved = True
                    x = nearest_of_members(factor, points)
                    residual = residual_at(factor, x)
        if not moved:
            break
    return exchanges
