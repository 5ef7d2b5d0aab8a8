"""numba, whose first compilation in each process is logged, and compiled loops of several rooms."""

from __future__ import annotations

import logging

import numba as numba
import numpy as np
from numba.core.event import Event, Listener, register

from geomdp._typing import FloatArray, IntArray

logger = logging.getLogger("geomdp.compilation")


class _Announcement(Listener):
    """Logs one line before the first compilation; nothing if all functions are in numba's cache."""

    _said = False

    def on_start(self, event: Event) -> None:
        del event
        if not self._said:
            self._said = True
            logger.info("compiling, once in this environment: later runs use the compiled files")

    def on_end(self, event: Event) -> None:
        del event


register("numba:compile", _Announcement())


@numba.njit(cache=True)
def copy_into(target, source):  # type: ignore[no-untyped-def]
    """target[:] = source (n,), as a loop: numba needs seconds to compile the assignment."""
    for i in range(len(target)):
        target[i] = source[i]


# Transforms in place: O(c N) additions for each row of N elements of c columns, row-major.


@numba.njit(cache=True)
def walsh_hadamard(values: FloatArray) -> None:
    """Replace each C-contiguous row f (2^d,) by g(x) = sum_y (-1)^<x,y> f(y), in place."""
    size = values.shape[1]
    for row in range(values.shape[0]):
        line = values[row]
        half = 1
        while half < size:
            for start in range(0, size, 2 * half):
                for i in range(start, start + half):
                    low, high = line[i], line[i + half]
                    line[i] = low + high
                    line[i + half] = low - high
            half *= 2


@numba.njit(cache=True)
def corner_sum(values: FloatArray, levels: IntArray) -> None:
    """Replace C-contiguous rows f (b, N) by g(x) = sum of f(y) over y_i in {0, x_i}, in place."""
    size = values.shape[1]
    for row in range(values.shape[0]):
        line = values[row]
        stride = 1
        for axis in range(len(levels) - 1, -1, -1):
            width = stride * levels[axis]
            for start in range(0, size, width):
                for level in range(1, levels[axis]):
                    shift = level * stride
                    for i in range(start, start + stride):
                        line[i + shift] += line[i]
            stride = width


# Extremes of quadratic forms over the cube {0, 1}^d by enumeration of its points: O(2^d).


#: The inner cube has the last 12 coordinates of the cube, or all coordinates if d < 12. A table of
#: 2^12 numbers takes 32 KB and fits in the fastest cache.
INNER = 12
#: The table of the inner cube is a grid with 2^LINE columns, or 2^d columns if d < LINE.
LINE = 6
#: Compiler flags that allow maxima to be taken in any order, so that loops can be vectorised.
FREE_ORDER = {"nnan", "nsz", "reassoc", "contract"}


@numba.njit(cache=True)
def _doubled(linear, table):  # type: ignore[no-untyped-def]
    """Fill `table` (2^k,) with <linear, x> for x in {0, 1}^k; x_0 is the top bit of an index."""
    table[0] = 0.0
    half = 1
    for i in range(len(linear) - 1, -1, -1):
        known, new = table[:half], table[half : 2 * half]
        for x in range(half):
            new[x] = known[x] + linear[i]
        half *= 2


@numba.njit(cache=True)
def _pair_sums(pairs, table, row):  # type: ignore[no-untyped-def]
    """Fill `table` (2^k,) with sum over i < j of pairs[i, j] x_i x_j; `row` is scratch space."""
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
def _ends(sums, high, low, least, best):  # type: ignore[no-untyped-def]
    """Least and largest sums[i, j] + high[i] + low[j]; `least` and `best` are scratch space."""
    least[:], best[:] = np.inf, -np.inf
    for i in range(len(high)):
        for j in range(len(low)):
            value = sums[i, j] + high[i]
            best[j], least[j] = max(best[j], value), min(least[j], value)
    smallest, largest = np.inf, -np.inf
    for j in range(len(low)):
        largest, smallest = max(largest, best[j] + low[j]), min(smallest, least[j] + low[j])
    return smallest, largest


@numba.njit(cache=True)
def _by_outer_points(linear, pairs):  # type: ignore[no-untyped-def]
    """`quadratic_ranges`, and the number of an outer point (first coordinates) of a maximiser."""
    forms, size = linear.shape
    inner = min(size, INNER)
    across = min(inner, LINE)
    outer = size - inner
    ranges, winners = np.empty(forms), np.empty(forms, dtype=np.int64)
    sums, table = np.empty(1 << inner), np.empty(1 << inner)
    grid = sums.reshape((1 << (inner - across), 1 << across))
    high, low = np.empty(len(grid)), np.empty(grid.shape[1])
    room, slopes, point = np.empty((2, len(low))), np.empty(inner), np.empty(outer)
    for form in range(forms):
        _pair_sums(pairs[form, outer:, outer:], sums, table)
        smallest, largest = np.inf, -np.inf
        for y in range(1 << outer):
            constant = _restrict(linear[form], pairs[form], y, point, slopes)
            _doubled(slopes[: inner - across], high)
            _doubled(slopes[inner - across :], low)
            least, best = _ends(grid, high, low, room[0], room[1])
            smallest = min(smallest, constant + least)
            if constant + best > largest:
                largest, winners[form] = constant + best, y
        ranges[form] = largest - smallest
    return ranges, winners


def quadratic_ranges(linear: FloatArray, pairs: FloatArray) -> FloatArray:
    """Range (b,) of sum_i linear_i x_i + sum_{i<j} pairs_ij x_i x_j for x in {0, 1}^d; O(2^d)."""
    ranges, _ = _by_outer_points(linear, pairs)
    return np.asarray(ranges)


@numba.njit(cache=True)
def quadratic_maximisers(linear: FloatArray, pairs: FloatArray) -> IntArray:
    """Lowest index (b,) of a maximiser of each form; x_0 is the highest bit of an index."""
    forms, size = linear.shape
    inner = min(size, INNER)
    outer = size - inner
    winners: IntArray = _by_outer_points(linear, pairs)[1]
    sums, table = np.empty(1 << inner), np.empty(1 << inner)
    point, slopes = np.empty(outer), np.empty(inner)
    for form in range(forms):
        _pair_sums(pairs[form, outer:, outer:], sums, table)
        _restrict(linear[form], pairs[form], winners[form], point, slopes)
        _doubled(slopes, table)
        winners[form] = (winners[form] << inner) + np.argmax(sums + table)
    return winners


@numba.njit(cache=True)
def _restrict(linear, pairs, y, point, slopes):  # type: ignore[no-untyped-def]
    """The constant term at the outer point y; `slopes` receives the linear coefficients."""
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
