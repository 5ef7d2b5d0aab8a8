"""Chebyshev moments in up to three variables by expansions about the cells of a fine grid.

Angles a in [0, pi]^d are put into cells of side h = pi / M. In each cell only the moments of total
degree < P of the offsets u in [-1/2, 1/2]^d from its centre are summed: a few additions a record.
All Chebyshev moments then follow from that table at once, because with z = sum_i s_i r_i h u_i

    prod_i cos(r_i a_i) = mean over signs s of Re(exp(i sum_i s_i r_i centre_i) exp(i z)),

and exp(i z) is a polynomial of degree < P in z up to 2 (S / 2)^P / P!, the error of interpolation
at the P Chebyshev nodes of [-S, S], S = (sum_i r_i) h / 2 >= |z|. This error grows as the P-th
power of the degrees, faster than noise does, so the highest degrees decide how many cells are
needed.
"""

from __future__ import annotations

import math
from functools import cache, lru_cache

import numpy as np

from geomdp._numerics.compilation import numba
from geomdp._typing import FloatArray

#: P by number of variables. More terms need fewer cells, but a smaller table stays in the cache.
#: These were measured to be fastest at tolerances of 1e-6 to 1e-8.
ORDERS = {1: 5, 2: 8, 3: 8}
_ORDER_1, _ORDER_2, _ORDER_3 = ORDERS[1], ORDERS[2], ORDERS[3]
#: Largest S. The terms of an expansion then sum to at most e^2 in absolute value.
LARGEST_REACH = 2.0


def expansion_errors(d: int, size: int, cells: int) -> FloatArray:
    """2 (S / 2)^P / P! for each moment, (t,) * d, and the rounding of coefficients.

    The coefficients of T_j sum to at most (1 + sqrt 2)^j in absolute value.
    """
    order = ORDERS[d]
    rounding = (1 + math.sqrt(2)) ** order * 2.0**-53
    return np.asarray(2 * (reaches(d, size, cells) / 2) ** order / math.factorial(order) + rounding)


def reaches(d: int, size: int, cells: int) -> FloatArray:
    """S for each moment: (t,) * d."""
    return np.asarray(np.indices((size,) * d).sum(axis=0) * (math.pi / (2 * cells)))


def cells_needed(tolerances: FloatArray) -> int:
    """Least number M of cells in each variable with errors of at most `tolerances` (t,) * d."""
    d, size = tolerances.ndim, len(tolerances)
    order = ORDERS[d]
    allowed = 2 * (tolerances * math.factorial(order) / 2) ** (1 / order)
    needed = float((reaches(d, size, 1) / np.minimum(allowed, LARGEST_REACH)).max())
    return max(1, math.ceil(needed))


def table_entries(d: int, cells: int) -> int:
    """Number of entries of a table."""
    return int((cells + 1) ** d * math.comb(ORDERS[d] + d - 1, d))


def amplification(d: int, size: int, cells: int) -> float:
    """e^S, rounded up: the absolute values of the terms of an expansion sum to at most this."""
    return 1.01 * math.exp(d * (size - 1) * math.pi / (2 * cells))


def empty_table(d: int, cells: int) -> FloatArray:
    """A table of zeros, (M + 1,) * d + (number of monomials,): the angle pi has a cell of its own.

    Monomials of several variables are ordered by the first exponent, then by the second, ...
    """
    return np.zeros((cells + 1,) * d + (math.comb(ORDERS[d] + d - 1, d),))


def sorted_by_cell(angles: FloatArray, cells: int) -> FloatArray:
    """Angles (3, n) in the order of their first two cells.

    Successive records then add to neighbouring entries of the table, which is larger than the
    cache: 98 nanoseconds per record were measured instead of 260 at M = 41.
    """
    first, second = (angles[:2] * (cells / math.pi)).astype(np.int64)
    # Numbers of 16 bits are sorted digit by digit, which is fast. For M above 254 keys overflow,
    # which makes the order worse but nothing wrong.
    keys = (first * (cells + 1) + second).astype(np.uint16)
    return np.take(angles, np.argsort(keys, kind="stable"), axis=1)


def add_records(table: FloatArray, angles: FloatArray) -> None:
    """Add the offsets of angles (d, n) to the table: 5, 36 or 120 additions a record."""
    side = table.shape[0]
    scale = (side - 1) / math.pi
    match len(angles):
        case 1:
            _add_1(table.reshape(-1), angles[0], scale)
        case 2:
            _add_2(table.reshape(-1), angles[0], angles[1], scale, side)
        case _:
            _add_3(table.reshape(-1), angles, scale, side)


def moments_of(table: FloatArray, size: int) -> FloatArray:
    """Sums of products of cosines (t,) * d from a table, no records.

    By a fast Fourier transform over the cells for d = 1, where t and M reach thousands, and by
    products of matrices above.
    """
    d, cells = table.ndim - 1, table.shape[0] - 1
    order = ORDERS[d]
    if d == 1:
        by_degree = _by_transform(table, size)
    else:
        by_degree = _by_degree(table[None], _derivatives(order, size, cells))
    return np.asarray((_weights(d, size, cells) * by_degree).sum(axis=0).reshape((size,) * d))


def _by_degree(table: FloatArray, derivatives: FloatArray) -> FloatArray:
    """Terms of total degree q = 0..P-1 of all moments, times q!: (P, L t^d), axis by axis.

    `table` (L, M + 1, ..., M + 1, number of monomials) holds L tables of d variables.
    """
    order, size, side = derivatives.shape
    d, tables = table.ndim - 2, len(table)
    found = np.zeros((order, tables * size**d))
    start = 0
    for p in range(order):
        count = math.comb(order - p + d - 2, d - 1)
        part = table[..., start : start + count].reshape(tables, side, -1)
        part = np.matmul(derivatives[p], part)
        start += count
        if d == 1:
            found[p] = part.ravel()
        else:
            inner = part.reshape(tables * size, *[side] * (d - 1), count)
            found[p:] += _by_degree(inner, derivatives[: order - p])
    return found


def _by_transform(table: FloatArray, size: int) -> FloatArray:
    """Terms of degree p of all moments of one variable, times p!, as `_by_degree`: (P, t).

    (r h)^p / p! times the real part of i^p sum_c table[c, p] exp(i r centre_c). Centres lie h / 2
    past the multiples of h = 2 pi / (2 M), and frequencies r stay below 2 M, as S is at most 2. The
    matrices of `_by_degree` would take 30 seconds and 4 GB at t = 2760 and M = 33073.
    """
    cells, order = table.shape[0] - 1, table.shape[1]
    h, frequencies = math.pi / cells, np.arange(size)
    waves = np.conj(np.fft.fft(table, 2 * cells, axis=0)[:size]).T
    centred = waves * np.exp(0.5j * h * frequencies)
    factorials = np.array([math.factorial(p) for p in range(order)])
    turns = (1j * h * frequencies) ** np.arange(order)[:, None] / factorials[:, None]
    return np.asarray((centred * turns).real)


@lru_cache(maxsize=4)
def _derivatives(order: int, size: int, cells: int) -> FloatArray:
    """(r h)^p / p! times the p-th derivative of cos at r times a cell's centre: (P, t, M + 1)."""
    h = math.pi / cells
    frequencies = np.arange(size)
    phases = np.multiply.outer(frequencies * h, np.arange(cells + 1) + 0.5)
    cosines, sines = np.cos(phases), np.sin(phases)
    turns = (cosines, -sines, -cosines, sines)
    powers = [(frequencies * h) ** p / math.factorial(p) for p in range(order)]
    return np.stack([powers[p][:, None] * turns[p % 4] for p in range(order)])


@lru_cache(maxsize=4)
def _weights(d: int, size: int, cells: int) -> FloatArray:
    """Factors of the terms of degree q = 0..P-1 of all moments: (P, t^d)."""
    steps, places = np.unique(reaches(d, size, cells).ravel(), return_inverse=True)
    return _economised(ORDERS[d], steps)[:, places]


def _economised(order: int, reach: FloatArray) -> FloatArray:
    """q! e_q (P, b), near 1: sum_q e_q (i z)^q is the interpolant of exp(i z) on [-S, S].

    One column for each S of `reach` (b,); where S is 0, q! e_q = 1.
    """
    q = np.arange(order)
    factorials = np.array([math.factorial(power) for power in q], dtype=np.float64)
    nodes = np.polynomial.chebyshev.chebpts1(order)
    vandermonde = np.polynomial.chebyshev.chebvander(nodes, order - 1)
    series = np.linalg.solve(vandermonde, np.exp(1j * np.multiply.outer(nodes, reach)))
    # By symmetry of the nodes e_q is real: even powers are the cosine's, odd ones the sine's.
    scales = (1j * np.where(reach > 0, reach, 1.0)) ** q[:, None]
    economised = (_to_powers(order) @ series / scales).real * factorials[:, None]
    return np.where(reach > 0, economised, 1.0)


@cache
def _to_powers(order: int) -> FloatArray:
    """Coefficients of powers in T_0..T_{P-1}, a column each: (P, P)."""
    found = np.zeros((order, order))
    for degree in range(order):
        powers = np.polynomial.chebyshev.cheb2poly(np.eye(order)[degree])
        found[: len(powers), degree] = powers
    return found


@numba.njit(cache=True, nogil=True)
def _add_1(table: FloatArray, angles: FloatArray, scale: float) -> None:
    """Add powers 0..P-1 of the offsets. Indices are unsigned, so that none is checked for sign."""
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
    """Add monomials u^a v^b, a + b < P. Loop bounds are constants, so that loops are unrolled."""
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


@numba.njit(cache=True, nogil=True)
def _add_3(table: FloatArray, angles: FloatArray, scale: float, side: int) -> None:
    """Add monomials u^a v^b w^c, a + b + c < P."""
    v_powers, w_powers = np.empty(_ORDER_3), np.empty(_ORDER_3)
    terms = np.uint64(_ORDER_3 * (_ORDER_3 + 1) * (_ORDER_3 + 2) // 6)
    for i in range(angles.shape[1]):
        position = angles[0, i] * scale
        first = np.int64(position)
        u = position - np.float64(first) - 0.5
        position = angles[1, i] * scale
        second = np.int64(position)
        v = position - np.float64(second) - 0.5
        position = angles[2, i] * scale
        third = np.int64(position)
        w = position - np.float64(third) - 0.5
        v_power, w_power = 1.0, 1.0
        for c in range(_ORDER_3):
            v_powers[c] = v_power
            w_powers[c] = w_power
            v_power *= v
            w_power *= w
        cell = np.uint64(first) * np.uint64(side) + np.uint64(second)
        place = (cell * np.uint64(side) + np.uint64(third)) * terms
        power = 1.0
        for a in range(_ORDER_3):
            for b in range(_ORDER_3 - a):
                product = power * v_powers[b]
                for c in range(_ORDER_3 - a - b):
                    table[place + np.uint64(c)] += product * w_powers[c]
                place += np.uint64(_ORDER_3 - a - b)
            power *= u
