"""Maxima of quadratic forms over the cube {0, 1}^d, by looking at every point: O(2^d) additions."""

from __future__ import annotations

import numba
import numpy as np

from geomdp._typing import FloatArray, IntArray

#: Coordinates of an inner cube: a table of its 2^12 points, 32 KB, stays in the fastest cache.
INNER = 12
#: Of these, coordinates of a line: 2^7 running maxima, side by side.
LINE = 7
#: Maxima may be taken in any order, which lets the loops be vectorised.
FREE_ORDER = {"nnan", "nsz", "reassoc", "contract"}


@numba.njit(cache=True)
def _doubled(linear, table):  # type: ignore[no-untyped-def]
    """Fill `table` (2^k,) with <linear, x> for all x, the first coordinate being the highest bit.

    The table of the last j coordinates gives that of the last j + 1 by one addition per point.
    """
    table[0] = 0.0
    half = 1
    for i in range(len(linear) - 1, -1, -1):
        known, new = table[:half], table[half : 2 * half]
        for x in range(half):
            new[x] = known[x] + linear[i]
        half *= 2


@numba.njit(cache=True)
def _pair_sums(pairs, table, row):  # type: ignore[no-untyped-def]
    """Fill `table` (2^k,) with sum over i < j of pairs[i, j] x_i x_j; `row` is room for it."""
    size = len(pairs)
    table[0] = 0.0
    half = 1
    for i in range(size - 1, -1, -1):
        _doubled(pairs[i, i + 1 :], row[:half])
        known, new = table[:half], table[half : 2 * half]
        for x in range(half):
            new[x] = known[x] + row[x]
        half *= 2


@numba.njit(cache=True, fastmath=FREE_ORDER)
def _largest(sums, high, low, best):  # type: ignore[no-untyped-def]
    """Largest of sums[i, j] + high[i] + low[j]; `best` (len(low),) is room for it."""
    for j in range(len(low)):
        best[j] = sums[0, j] + high[0]
    for i in range(1, len(high)):
        row, raised = sums[i], high[i]
        for j in range(len(low)):
            value = row[j] + raised
            best[j] = value if value > best[j] else best[j]
    largest = -np.inf
    for j in range(len(low)):
        value = best[j] + low[j]
        largest = value if value > largest else largest
    return largest


@numba.njit(cache=True)
def quadratic_maximisers(linear: FloatArray, pairs: FloatArray) -> IntArray:
    """Numbers of maximisers over x in {0, 1}^d of sum_i l_i x_i + sum_{i<j} q_ij x_i x_j.

    The last coordinates form an inner cube, whose pair terms are tabulated once. At each point y of
    the outer cube the linear part, changed by y, is added to them: one addition and one comparison
    per point of the whole cube, without a table of it.

    Parameters
    ----------
    linear : (b, d) array
        Coefficients l, one row per form.
    pairs : (b, d, d) array
        Coefficients q; only those with i < j are read.

    Returns
    -------
    (b,) int64 array
        Numbers of the maximisers, the first coordinate being the highest bit; ties go to the
        lowest, up to rounding.
    """
    forms, size = linear.shape
    inner = min(size, INNER)
    across = min(inner, LINE)
    outer = size - inner
    winners = np.empty(forms, dtype=np.int64)
    sums, table = np.empty(1 << inner), np.empty(1 << inner)
    grid = sums.reshape((1 << (inner - across), 1 << across))
    high, low = np.empty(len(grid)), np.empty(grid.shape[1])
    room, slopes = np.empty(len(low)), np.empty(inner)
    point = np.empty(outer)
    for form in range(forms):
        _pair_sums(pairs[form, outer:, outer:], sums, table)
        best = -np.inf
        for y in range(1 << outer):
            constant = _restrict(linear[form], pairs[form], y, point, slopes)
            _doubled(slopes[: inner - across], high)
            _doubled(slopes[inner - across :], low)
            value = constant + _largest(grid, high, low, room)
            if value > best:
                best, winners[form] = value, y
        _restrict(linear[form], pairs[form], winners[form], point, slopes)
        _doubled(slopes, table)
        winners[form] = (winners[form] << inner) + np.argmax(sums + table)
    return winners


@numba.njit(cache=True)
def _restrict(linear, pairs, y, point, slopes):  # type: ignore[no-untyped-def]
    """The form at outer point number y: its constant, with the linear part put into `slopes`."""
    outer = len(point)
    for i in range(outer):
        point[i] = (y >> (outer - 1 - i)) & 1
    constant = 0.0
    slopes[:] = linear[outer:]
    for i in range(outer):
        if point[i]:
            constant += linear[i]
            for j in range(i + 1, outer):
                constant += pairs[i, j] * point[j]
            for j in range(len(slopes)):
                slopes[j] += pairs[i, outer + j]
    return constant
