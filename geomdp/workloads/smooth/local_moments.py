"""Chebyshev moments in one and two variables by expansions about the cells of a fine grid.

Angles a in [0, pi]^d are put into cells of side h = pi / M. In each cell only the moments of total
degree < P of the offsets u in [-1/2, 1/2]^d from its centre are summed: a few additions a record.
All Chebyshev moments then follow from that table at once, because with z = sum_i s_i r_i h u_i

    prod_i cos(r_i a_i) = mean over signs s of Re(exp(i sum_i s_i r_i centre_i) exp(i z)),

and exp(i z) is a polynomial of degree < P in z up to 2 (S / 2)^P / P!, S = d (t - 1) h / 2 >= |z|:
that is the error of interpolation at the P Chebyshev nodes of [-S, S].
"""

from __future__ import annotations

import math

import numba
import numpy as np

from geomdp._typing import FloatArray

#: P in one and in two variables. More terms need fewer cells, and the table should stay in the
#: second-level cache: 1 MB at (d, t) = (2, 32) and a tolerance of 1e-6.
ORDERS = {1: 5, 2: 8}
_ORDER_1, _ORDER_2 = ORDERS[1], ORDERS[2]


def expansion_error(d: int, size: int, cells: int) -> float:
    """2 (S / 2)^P / P!, the largest error of a product of cosines from the expansion."""
    order = ORDERS[d]
    reach = d * (size - 1) * math.pi / (2 * cells)
    return float(2 * (reach / 2) ** order / math.factorial(order))


def cells_needed(d: int, size: int, tolerance: float) -> int:
    """Least number M of cells in each variable with an expansion error of at most `tolerance`."""
    order = ORDERS[d]
    reach = 2 * (tolerance * math.factorial(order) / 2) ** (1 / order)
    # S is at most 2, so that coefficients of the expansion are at most e^2.
    return max(1, math.ceil(d * (size - 1) * math.pi / (2 * min(float(reach), 2.0))))


def amplification(d: int, size: int, cells: int) -> float:
    """e^S, rounded up: the absolute values of the terms of an expansion sum to at most this."""
    return 1.01 * math.exp(d * (size - 1) * math.pi / (2 * cells))


def empty_table(d: int, cells: int) -> FloatArray:
    """A table of zeros, (M + 1,) * d + (number of monomials,): the angle pi has a cell of its own.

    Monomials of two variables are ordered by the first exponent, then by the second.
    """
    return np.zeros((cells + 1,) * d + (math.comb(ORDERS[d] + d - 1, d),))


def add_records(table: FloatArray, angles: FloatArray) -> None:
    """Add the offsets of angles (d, n) to the table: 5 additions a record, or 36 for d = 2."""
    cells = table.shape[0] - 1
    if len(angles) == 1:
        _add_1(table.reshape(-1), angles[0], cells / math.pi)
    else:
        _add_2(table.reshape(-1), angles[0], angles[1], cells / math.pi, table.shape[0])


def moments_of(table: FloatArray, size: int) -> FloatArray:
    """Sums of products of cosines (t,) * d from a table, no records.

    By a fast Fourier transform over the cells for d = 1, O(M log M), and by products of matrices
    for d = 2.
    """
    d, cells = table.ndim - 1, table.shape[0] - 1
    order = ORDERS[d]
    weights = _economised(order, d * (size - 1) * math.pi / (2 * cells))
    if d == 1:
        return _moments_of_cells(table, weights, size)
    derivatives = _derivatives(order, size, cells)
    sums = np.zeros((size, size))
    place = 0
    for a in range(order):
        for b in range(order - a):
            weight = weights[a + b] * math.comb(a + b, a)
            sums += weight * (derivatives[a] @ table[:, :, place] @ derivatives[b].T)
            place += 1
    return sums


def _moments_of_cells(table: FloatArray, weights: FloatArray, size: int) -> FloatArray:
    """Sum over p of e_p (r h)^p Re(i^p sum_c table[c, p] exp(i r centre_c)): (t,)."""
    cells, order = table.shape[0] - 1, table.shape[1]
    h, frequencies = math.pi / cells, np.arange(size)
    # Centres are h / 2 past multiples of h = 2 pi / (2 M); frequencies stay below 2 M.
    waves = np.conj(np.fft.fft(table, 2 * cells, axis=0)[:size])
    turns = (1j * h * frequencies[:, None]) ** np.arange(order)
    sums = np.exp(0.5j * h * frequencies) * ((waves * turns) @ weights)
    return np.asarray(sums.real)


def _derivatives(order: int, size: int, cells: int) -> FloatArray:
    """(r h)^p times the p-th derivative of cos at r times a cell's centre: (P, t, M + 1)."""
    h = math.pi / cells
    frequencies = np.arange(size)
    phases = np.multiply.outer(frequencies * h, np.arange(cells + 1) + 0.5)
    cosines, sines = np.cos(phases), np.sin(phases)
    turns = (cosines, -sines, -cosines, sines)
    powers = (frequencies * h) ** np.arange(order)[:, None]
    return np.stack([powers[p, :, None] * turns[p % 4] for p in range(order)])


def _economised(order: int, reach: float) -> FloatArray:
    """Real e_q (P,), near 1 / q!, with sum_q e_q (i z)^q the interpolant of exp(i z) on [-S, S]."""
    if reach == 0:
        return 1 / np.array([math.factorial(q) for q in range(order)], dtype=np.float64)
    nodes = np.polynomial.chebyshev.chebpts1(order)
    vandermonde = np.polynomial.chebyshev.chebvander(nodes, order - 1)
    series = np.linalg.solve(vandermonde, np.exp(1j * reach * nodes))
    powers = np.polynomial.chebyshev.cheb2poly(series)
    # Real by symmetry of the nodes: even powers belong to the cosine, odd ones to the sine.
    return np.asarray((powers / (1j * reach) ** np.arange(order)).real)


@numba.njit(cache=True, nogil=True)
def _add_1(table: FloatArray, angles: FloatArray, scale: float) -> None:
    """Powers 0..P-1 of the offsets; unsigned indices spare the check for negative ones."""
    for i in range(len(angles)):
        position = angles[i] * scale
        cell = np.int64(position)
        u = position - np.float64(cell) - 0.5
        place = np.uint64(cell) * np.uint64(_ORDER_1)
        power = 1.0
        for p in range(_ORDER_1):
            table[place + np.uint64(p)] += power
            power *= u


@numba.njit(cache=True, nogil=True)
def _add_2(
    table: FloatArray, first: FloatArray, second: FloatArray, scale: float, side: int
) -> None:
    """Monomials u^a v^b, a + b < P; the bounds of the loops are constants and get unrolled."""
    v_powers = np.empty(_ORDER_2)
    terms = np.uint64(_ORDER_2 * (_ORDER_2 + 1) // 2)
    for i in range(len(first)):
        position = first[i] * scale
        row = np.int64(position)
        u = position - np.float64(row) - 0.5
        position = second[i] * scale
        column = np.int64(position)
        v = position - np.float64(column) - 0.5
        power = 1.0
        for b in range(_ORDER_2):
            v_powers[b] = power
            power *= v
        place = (np.uint64(row) * np.uint64(side) + np.uint64(column)) * terms
        power = 1.0
        for a in range(_ORDER_2):
            for b in range(_ORDER_2 - a):
                table[place] += power * v_powers[b]
                place += np.uint64(1)
            power *= u
