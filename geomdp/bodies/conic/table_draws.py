"""Compiled draws of one- and two-way tables, with events represented by vectors.

An event is "column i has level a". A column of l levels is represented by l orthogonal vectors y_a
in R^(1 + f) that add up to e_0, with |y_a|^2 = <y_a, e_0> = m_a, the share of level a. The inner
products of the vectors of two columns form their two-way table. Columns are drawn in turn. After
each column, its violation of linear inequalities together with earlier columns is computed, so that
most rejected draws are rejected early.
"""

from __future__ import annotations

import numba
import numpy as np


@numba.njit(cache=True)
def _column(rng, concentration, vectors, directions):  # type: ignore[no-untyped-def]
    """Fill `vectors` (l, 1 + f): shares from a symmetric Dirichlet, then a random frame.

    Coordinate 0 of y_a is m_a. Coordinates 1 to f of y_a are row a of C Q, where Q (l - 1, f) has
    uniform orthonormal rows and C C^T = diag(m) - m m^T. C is the Cholesky factor: with
    t_k = m_k + m_(k+1) + ..., column k of C is (m_k t_(k+1) / t_k)^(1/2) at k and
    -m_a (m_k / (t_k t_(k+1)))^(1/2) at a > k. The rows of Q are written to `directions`.
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
            overlap = 0.0
            for x in range(width - 1):
                overlap += directions[j, x] * directions[k, x]
            for x in range(width - 1):
                directions[k, x] -= overlap * directions[j, x]
        length = 0.0
        for x in range(width - 1):
            length += directions[k, x] ** 2
        for x in range(width - 1):
            directions[k, x] /= np.sqrt(length)
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
def _triangles(cells, a, b, c):  # type: ignore[no-untyped-def]
    """Total violation of the four triangle inequalities of three events (see `TableMoments`)."""
    ab, ac, bc = cells[a, b], cells[a, c], cells[b, c]
    total = 0.0
    total -= min(0.0, 1 - cells[a, a] - cells[b, b] - cells[c, c] + ab + ac + bc)
    total -= min(0.0, cells[a, a] - ab - ac + bc)
    total -= min(0.0, cells[b, b] - ab - bc + ac)
    total -= min(0.0, cells[c, c] - ac - bc + ab)
    return total


@numba.njit(cache=True)
def _added(cells, starts, i, total, limit):  # type: ignore[no-untyped-def]
    """`total` plus the violations of column i with the columns before it; stops above `limit`.

    For a column of two levels, the triangle inequalities are checked for one event only: the other
    event is its complement, which only permutes the four inequalities. For columns of more levels
    all events are used.
    """
    for a in range(starts[i], starts[i + 1]):
        for b in range(starts[i]):
            total -= min(0.0, cells[a, b])
    if total > limit:
        return total
    ends = np.empty(i + 1, dtype=np.int64)
    for j in range(i + 1):
        ends[j] = starts[j] + 1 if starts[j + 1] - starts[j] == 2 else starts[j + 1]
    for j in range(i):
        for k in range(j):
            for a in range(starts[i], ends[i]):
                for b in range(starts[j], ends[j]):
                    for c in range(starts[k], ends[k]):
                        total += _triangles(cells, a, b, c)
            if total > limit:
                return total
    return total


@numba.njit(cache=True)
def violations(tables, starts):  # type: ignore[no-untyped-def]
    """Total violation (n,) of the cell and triangle inequalities by matrices (n, L, L)."""
    found = np.zeros(len(tables))
    for n in range(len(tables)):
        for i in range(len(starts) - 1):
            found[n] = _added(tables[n], starts, i, found[n], np.inf)
    return found


@numba.njit(cache=True)
def draw_tables(rng, tables, starts, limit):  # type: ignore[no-untyped-def]
    """Fill `tables` (n, L, L) with draws whose total violation is at most `limit`.

    Entry (a, b) is the inner product of the vectors of events a and b. The blocks off the diagonal
    are the two-way tables. The diagonal holds the shares; the rest of its blocks is 0.
    """
    size, columns = tables.shape[1], len(starts) - 1
    order = size - columns
    width = order + 2
    vectors = np.empty((size, width))
    directions = np.empty((size, width - 1))
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
                        product = 0.0
                        for x in range(width):
                            product += vectors[a, x] * vectors[b, x]
                        cells[a, b] = product
                        cells[b, a] = product
                if limit < np.inf:
                    total = _added(cells, starts, i, total, limit)
                    if total > limit:
                        break
            accepted = total <= limit
