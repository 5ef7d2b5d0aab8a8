"""Compiled code: largest values of linear functions on correlation matrices, draws of tables, and
the mean and squared norms of points.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from geomdp._numerics.compilation import numba
from geomdp._numerics.randomness import PUBLIC_SEED
from geomdp._typing import FloatArray

# Largest values of linear functions on correlation matrices, with certified upper bounds. Let C be
# a symmetric p x p matrix with zero diagonal. The problem
#
#     max { <C, R> / 2 : R psd, R_ii = 1 }
#
# is solved with R = V V^T, where V has unit rows v_i. One step replaces v_i by g_i / ||g_i||,
# g_i = sum_j C_ij v_j (the mixing method of Wang, Chang and Kolter 2018). With more than sqrt(2 p)
# columns, only global maxima are stable for almost all C, and the steps converge linearly from
# almost every start (Boumal, Voroninski and Bandeira 2016). The dual value
#
#     (sum_i y_i + p max(0, lambda_max(C - Diag y))) / 2
#
# is an upper bound on the maximum for every y, and equals it for y_i = <g_i, v_i> at an optimal V.

#: The steps stop when the dual value minus the value of V is at most this share of the dual value.
GAP = 1e-9
#: Sweeps over all rows before the gap is first computed, and the largest number of sweeps.
FIRST_SWEEPS, MOST_SWEEPS = 20, 200_000


class Highest(NamedTuple):
    """For b matrices C: correlation matrices (b, p, p) of nearly largest value, and bounds (b,)."""

    matrices: FloatArray
    bounds: FloatArray


@numba.njit(cache=True)
def _sweep(weights, vectors, times):  # type: ignore[no-untyped-def]
    """Replace v_i by g_i / ||g_i|| in place, for one i after the other. Do this `times` times."""
    order, rank = vectors.shape
    pull = np.empty(rank)
    for _ in range(times):
        for i in range(order):
            pull[:] = 0.0
            for j in range(order):
                weight = weights[i, j]
                if weight != 0.0:
                    for k in range(rank):
                        pull[k] += weight * vectors[j, k]
            length = math.sqrt((pull * pull).sum())
            if length > 0.0:
                for k in range(rank):
                    vectors[i, k] = pull[k] / length


def _dual(weights: FloatArray, vectors: FloatArray) -> tuple[float, float]:
    """Value of V and an upper bound on the maximum, both for <C, R> without the factor 1/2."""
    multipliers = np.einsum("ik,ik->i", weights @ vectors, vectors)
    slack = float(np.linalg.eigvalsh(weights - np.diag(multipliers))[-1])
    value = float(multipliers.sum())
    return value, value + len(weights) * max(slack, 0.0)


def highest_correlation(weights: FloatArray) -> Highest:
    """Matrices that maximise <C, R> / 2 for each C of `weights` (b, p, p), and upper bounds, valid
    up to rounding; nearly always within a relative 1e-9, by sweeps of O(p^2 sqrt(p)).
    """
    count, order, _ = weights.shape
    rank = math.ceil(math.sqrt(2 * order)) + 1
    start = np.random.default_rng(PUBLIC_SEED).standard_normal((order, rank))
    start /= np.linalg.norm(start, axis=1, keepdims=True)
    matrices, bounds = np.empty(weights.shape), np.empty(count)
    for row, each in enumerate(weights):
        scale = float(np.abs(each).max(initial=0.0)) or 1.0
        scaled, vectors = np.ascontiguousarray(each / scale), start.copy()
        done, step = 0, FIRST_SWEEPS
        while True:
            _sweep(scaled, vectors, step)
            done += step
            value, bound = _dual(scaled, vectors)
            if bound - value <= GAP * bound or done >= MOST_SWEEPS:
                break
            step = min(done // 2 + FIRST_SWEEPS, MOST_SWEEPS - done)
        matrices[row], bounds[row] = vectors @ vectors.T, scale * bound / 2
        np.fill_diagonal(matrices[row], 1.0)
    return Highest(matrices, bounds)


# Draws of one- and two-way tables. A column of l levels is represented by l orthogonal vectors y_a
# in R^(1 + f) that add up to the first unit vector e_0, with |y_a|^2 = <y_a, e_0> = m_a, the share
# of the event "column i has level a". Here f is P + 1, P the sum of (l - 1) over the columns. Inner
# products of the vectors of two columns form their two-way table. Columns are drawn one by one; a
# draw is rejected as soon as they violate the inequalities of `TableMoments` by more than a limit.

#: Flags of LLVM that allow sums in any order. Loops can then add several terms in one step.
SUMS = {"reassoc", "contract"}


@numba.njit(cache=True, fastmath=SUMS)
def _product(first, second):  # type: ignore[no-untyped-def]
    total = 0.0
    for x in range(len(first)):
        total += first[x] * second[x]
    return total


@numba.njit(cache=True)
def _column(rng, concentration, vectors, directions):  # type: ignore[no-untyped-def]
    """Fill `vectors` (l, 1 + f) with Dirichlet shares m_a and the rows of C Q, C C^T = diag(m) - m
    m^T, where Q (l - 1, f), written to `directions`, has uniform orthonormal rows.
    """
    levels, width = vectors.shape
    total = 0.0
    for a in range(levels):
        vectors[a, 0] = rng.standard_gamma(concentration)
        total += vectors[a, 0]
    for a in range(levels):
        vectors[a, 0] /= total
        vectors[a, 1:] = 0.0
    tail = 1.0
    for k in range(levels - 1):
        for x in range(width - 1):
            directions[k, x] = rng.standard_normal()
        for j in range(k):
            overlap = _product(directions[j], directions[k])
            for x in range(width - 1):
                directions[k, x] -= overlap * directions[j, x]
        length = np.sqrt(_product(directions[k], directions[k]))
        for x in range(width - 1):
            directions[k, x] /= length
        share = vectors[k, 0]
        left = 0.0
        for a in range(k + 1, levels):
            left += vectors[a, 0]
        own = np.sqrt(share * left / tail)
        others = -np.sqrt(share / (tail * left))
        for x in range(width - 1):
            vectors[k, 1 + x] += own * directions[k, x]
        for a in range(k + 1, levels):
            factor = others * vectors[a, 0]
            for x in range(width - 1):
                vectors[a, 1 + x] += factor * directions[k, x]
        tail = left


@numba.njit(cache=True)
def _tested(starts):  # type: ignore[no-untyped-def]
    """Events tested for triangle inequalities (one of two levels), and each column's first."""
    columns = len(starts) - 1
    bounds = np.zeros(columns + 1, dtype=np.int64)
    events = np.empty(starts[-1], dtype=np.int64)
    for i in range(columns):
        levels = starts[i + 1] - starts[i]
        count = 1 if levels == 2 else levels
        bounds[i + 1] = bounds[i] + count
        for a in range(count):
            events[bounds[i] + a] = starts[i] + a
    return events, bounds


@numba.njit(cache=True, fastmath=SUMS)
def _triangles(first, second, shares, a, b, count):  # type: ignore[no-untyped-def]
    """Violation of triangle inequalities of events a, b, c < `count`, from joint shares with c."""
    ab, pa, pb = first[b], shares[a], shares[b]
    total = 0.0
    for c in range(count):
        ac, bc, pc = first[c], second[c], shares[c]
        total -= min(0.0, 1 - pa - pb - pc + ab + ac + bc)
        total -= min(0.0, pa - ab - ac + bc)
        total -= min(0.0, pb - ab - bc + ac)
        total -= min(0.0, pc - ac - bc + ab)
    return total


@numba.njit(cache=True, fastmath=SUMS)
def _added(cells, starts, tested, i, total, limit):  # type: ignore[no-untyped-def]
    """`total` plus the violations between column i and earlier ones, or a part above `limit`."""
    for a in range(starts[i], starts[i + 1]):
        for b in range(starts[i]):
            total -= min(0.0, cells[a, b])
    if total > limit:
        return total
    events, bounds, entries, shares = tested
    low, high = bounds[i], bounds[i + 1]
    for a in range(low, high):
        shares[a] = cells[events[a], events[a]]
        for b in range(low):
            entries[a, b] = cells[events[a], events[b]]
    for j in range(1, i):
        for a in range(low, high):
            for b in range(bounds[j], bounds[j + 1]):
                total += _triangles(entries[a], entries[b], shares, a, b, bounds[j])
        if total > limit:
            return total
    return total


@numba.njit(cache=True)
def _prepared(starts):  # type: ignore[no-untyped-def]
    """The argument `tested` of `_added`, with unfilled joint shares (t, t) and shares (t,)."""
    events, bounds = _tested(starts)
    count = bounds[-1]
    return events, bounds, np.empty((count, count)), np.empty(count)


@numba.njit(cache=True)
def violations(tables, starts):  # type: ignore[no-untyped-def]
    found = np.zeros(len(tables))
    tested = _prepared(starts)
    for n in range(len(tables)):
        for i in range(len(starts) - 1):
            found[n] = _added(tables[n], starts, tested, i, found[n], np.inf)
    return found


@numba.njit(cache=True)
def draw_tables(rng, tables, starts, limit):  # type: ignore[no-untyped-def]
    """Fill `tables` (n, L, L) with inner products of event vectors, violation at most `limit`."""
    size, columns = tables.shape[1], len(starts) - 1
    order = size - columns
    width = order + 2
    vectors = np.empty((size, width))
    directions = np.empty((size, width - 1))
    tested = _prepared(starts)
    for n in range(len(tables)):
        cells = tables[n]
        accepted = False
        while not accepted:
            total = 0.0
            for i in range(columns):
                low, high = starts[i], starts[i + 1]
                concentration = (order - (high - low - 1)) / 2 + 1
                _column(rng, concentration, vectors[low:high], directions)
                for a in range(low, high):
                    cells[a, low:high] = 0.0
                    cells[a, a] = vectors[a, 0]
                    for b in range(low):
                        cells[a, b] = cells[b, a] = _product(vectors[a], vectors[b])
                if limit < np.inf:
                    total = _added(cells, starts, tested, i, total, limit)
                    if total > limit:
                        break
            accepted = total <= limit


@numba.njit(cache=True, fastmath=SUMS)
def mean_and_squares(points: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean (d,) and squared norms (N,) of the rows of `points` (N, d); each row is read once."""
    count, size = points.shape
    total, squares = np.zeros(size), np.empty(count)
    for i in range(count):
        row, square = points[i], 0.0
        for j in range(size):
            total[j] += row[j]
            square += row[j] * row[j]
        squares[i] = square
    return total / count, squares
