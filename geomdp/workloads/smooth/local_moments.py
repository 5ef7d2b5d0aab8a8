"""Chebyshev moments in up to three variables, by expansions in the cells of a fine grid.

The cube of angles a in [0, pi]^d is divided into cells of side h = pi / M. For each cell, a table
holds sums of monomials over the records in the cell. A monomial is a product of powers of the
offsets u_j in [-1/2, 1/2] from the centre of the cell, in units of h. Its total degree is below the
P of `ORDERS`. So a record costs 5, 36 or 120 additions for d = 1, 2 or 3. All Chebyshev moments are
then computed from the table. For degrees r_j < t and z = sum_j s_j r_j h u_j,

    prod_j cos(r_j a_j) = mean over signs s of Re(exp(i sum_j s_j r_j centre_j) exp(i z)).

|z| is at most S = (sum_j r_j) h / 2. On [-S, S], exp(i z) is approximated by the polynomial of
degree < P that interpolates it at P Chebyshev nodes. The error is at most 2 (S / 2)^P / P!. This
bound grows as the P-th power of the degrees, faster than the noise of a mechanism. So the highest
degrees determine the number of cells.
"""

from __future__ import annotations

import math
from functools import cache, lru_cache

import numpy as np

from geomdp._numerics.compilation import numba
from geomdp._typing import FloatArray

#: P for each number of variables. A larger P needs fewer cells, but with a smaller P the table fits
#: in the cache. These values were the fastest measured at tolerances of 1e-6 to 1e-8.
ORDERS = {1: 5, 2: 8, 3: 8}
_ORDER_1, _ORDER_2, _ORDER_3 = ORDERS[1], ORDERS[2], ORDERS[3]
#: Largest S. The absolute values of the terms of an expansion then sum to at most 1.01 e^2.
LARGEST_REACH = 2.0


def expansion_errors(d: int, size: int, cells: int) -> FloatArray:
    """Bounds 2 (S / 2)^P / P! + (1 + sqrt 2)^P 2^-53 on errors, with rounding: (t,) * d."""
    order = ORDERS[d]
    rounding = (1 + math.sqrt(2)) ** order * 2.0**-53
    return np.asarray(2 * (reaches(d, size, cells) / 2) ** order / math.factorial(order) + rounding)


def reaches(d: int, size: int, cells: int) -> FloatArray:
    """The bound S on |z| for each moment: (t,) * d."""
    return np.asarray(np.indices((size,) * d).sum(axis=0) * (math.pi / (2 * cells)))


def cells_needed(tolerances: FloatArray) -> int:
    """Least number M of cells in each variable with 2 (S / 2)^P / P! <= `tolerances` and S <= 2."""
    d, size = tolerances.ndim, len(tolerances)
    order = ORDERS[d]
    allowed = 2 * (tolerances * math.factorial(order) / 2) ** (1 / order)
    needed = float((reaches(d, size, 1) / np.minimum(allowed, LARGEST_REACH)).max())
    return max(1, math.ceil(needed))


def table_entries(d: int, cells: int) -> int:
    return int((cells + 1) ** d * math.comb(ORDERS[d] + d - 1, d))


def amplification(d: int, size: int, cells: int) -> float:
    """Bound on the sum of the moduli of the terms of an expansion: 1.01 e^S for the largest S."""
    return 1.01 * math.exp(d * (size - 1) * math.pi / (2 * cells))


def empty_table(d: int, cells: int) -> FloatArray:
    """Zeros of shape (M + 1,) * d + (number of monomials,); cell M is for angle pi."""
    return np.zeros((cells + 1,) * d + (math.comb(ORDERS[d] + d - 1, d),))


def sorted_by_cell(angles: FloatArray, cells: int) -> FloatArray:
    """Angles (3, n) sorted by two cells: a record then takes 98 and not 260 ns (at M = 41)."""
    first, second = (angles[:2] * (cells / math.pi)).astype(np.int64)
    # Numbers of 16 bits are sorted digit by digit, which is fast. For M above 255, keys overflow.
    # Sorting then helps less, but the sums are still right.
    keys = (first * (cells + 1) + second).astype(np.uint16)
    return np.take(angles, np.argsort(keys, kind="stable"), axis=1)


def add_records(table: FloatArray, angles: FloatArray) -> None:
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
    """Sums of products of cosines (t,) * d over the records in a table."""
    d, cells = table.ndim - 1, table.shape[0] - 1
    order = ORDERS[d]
    if d == 1:
        by_degree = _by_transform(table, size)
    else:
        by_degree = _by_degree(table[None], _derivatives(order, size, cells))
    return np.asarray((_weights(d, size, cells) * by_degree).sum(axis=0).reshape((size,) * d))


def _by_degree(table: FloatArray, derivatives: FloatArray) -> FloatArray:
    """Taylor terms (P, L t^d) of degree 0..P-1 of all moments of L tables; recursive over axes."""
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
    """`_by_degree` (P, t) for one variable by FFTs of length 2 M, in less time and memory."""
    cells, order = table.shape[0] - 1, table.shape[1]
    h, frequencies = math.pi / cells, np.arange(size)
    waves = np.conj(np.fft.fft(table, 2 * cells, axis=0)[:size]).T
    centred = waves * np.exp(0.5j * h * frequencies)
    factorials = np.array([math.factorial(p) for p in range(order)])
    turns = (1j * h * frequencies) ** np.arange(order)[:, None] / factorials[:, None]
    return np.asarray((centred * turns).real)


@lru_cache(maxsize=4)
def _derivatives(order: int, size: int, cells: int) -> FloatArray:
    """(r h)^p / p! times the p-th derivative of cos at r times each centre: (P, t, M + 1)."""
    h = math.pi / cells
    frequencies = np.arange(size)
    phases = np.multiply.outer(frequencies * h, np.arange(cells + 1) + 0.5)
    cosines, sines = np.cos(phases), np.sin(phases)
    turns = (cosines, -sines, -cosines, sines)
    powers = [(frequencies * h) ** p / math.factorial(p) for p in range(order)]
    return np.stack([powers[p][:, None] * turns[p % 4] for p in range(order)])


@lru_cache(maxsize=4)
def _weights(d: int, size: int, cells: int) -> FloatArray:
    """Factors from `_economised` for the Taylor terms of degree 0..P-1 of all moments: (P, t^d)."""
    steps, places = np.unique(reaches(d, size, cells).ravel(), return_inverse=True)
    return _economised(ORDERS[d], steps)[:, places]


def _economised(order: int, reach: FloatArray) -> FloatArray:
    """Numbers q! e_q (P, b): sum_q e_q (i z)^q interpolates exp(i z) on [-S, S], S in `reach`."""
    q = np.arange(order)
    factorials = np.array([math.factorial(power) for power in q], dtype=np.float64)
    nodes = np.polynomial.chebyshev.chebpts1(order)
    vandermonde = np.polynomial.chebyshev.chebvander(nodes, order - 1)
    series = np.linalg.solve(vandermonde, np.exp(1j * np.multiply.outer(nodes, reach)))
    # The nodes are symmetric, so the even powers interpolate the cosine, and the odd powers
    # interpolate the sine. So the e_q are real.
    scales = (1j * np.where(reach > 0, reach, 1.0)) ** q[:, None]
    economised = (_to_powers(order) @ series / scales).real * factorials[:, None]
    return np.where(reach > 0, economised, 1.0)


@cache
def _to_powers(order: int) -> FloatArray:
    """Coefficients (P, P) of the powers of x in T_0..T_{P-1}, one polynomial per column."""
    found = np.zeros((order, order))
    for degree in range(order):
        powers = np.polynomial.chebyshev.cheb2poly(np.eye(order)[degree])
        found[: len(powers), degree] = powers
    return found


@numba.njit(cache=True, nogil=True)
def _add_1(table: FloatArray, angles: FloatArray, scale: float) -> None:
    """Add powers 0..P-1 of the offsets; unsigned indices avoid checks of the sign."""
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
    """Add monomials u^a v^b, a + b < P; constant loop bounds let the compiler unroll."""
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
