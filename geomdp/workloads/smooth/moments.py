"""Sums of Chebyshev product moments over records, with proved bounds on errors: two algorithms."""

from __future__ import annotations

import abc
import itertools
import math
from collections.abc import Iterable, Iterator
from functools import lru_cache

import numpy as np

from geomdp._numerics.compilation import numba
from geomdp._typing import FloatArray

#: Unit roundoff of float64.
ROUNDOFF = 2.0**-53


class MomentTransform(abc.ABC):
    """A way to sum Q_r(x) = prod_i cos(r_i arccos x_i) over records x, for all r in {0..t-1}^d.

    It sums a fixed function Q' that differs from Q by at most `errors`, and summation adds an error
    of at most `rounding(n)` to the mean over n records. Both bounds are public and hold for all
    records.
    """

    #: Number of records in one block.
    rows: int

    def __init__(self, d: int, size: int) -> None:
        self.d, self.size = d, size
        #: Number of blocks of records summed into one table before the table is added to the total:
        #: more for a large table, so that most of the time goes into adding records, not tables.
        self.blocks = max(1, round(self._empty().size / (4 * self.rows)))

    @property
    @abc.abstractmethod
    def errors(self) -> FloatArray:
        """Array (t,) * d. Entry r bounds |Q'_r(x) - Q_r(x)| for all x."""

    @property
    def amplification(self) -> float:
        """Bound on the sum of the moduli of the terms that add up to one moment of one record."""
        return 1.0

    @abc.abstractmethod
    def _empty(self) -> FloatArray:
        """A table of zeros, in the shape that `_add` fills."""

    @abc.abstractmethod
    def _add(self, table: FloatArray, points: FloatArray) -> None:
        """Add the records `points` (b, d) to a table, in place."""

    def _moments(self, table: FloatArray) -> FloatArray:
        return table

    def rounding(self, n: int) -> float:
        """Bound on the rounding error of means over n records, with compensated sums of tables.

        For u = 2^-53, the mean of N terms of modulus at most 1 has an error of at most N u, and
        tables are added with compensation (Kahan 1965), for 2 u and a multiple of n u^2.
        """
        steps = min(n, self.rows * self.blocks) + sum(self._empty().shape) + 4
        return (1 + n * ROUNDOFF) * steps * ROUNDOFF * self.amplification

    def sums(self, chunks: Iterable[FloatArray]) -> tuple[int, FloatArray]:
        """Number of records and sums of moments, (t,) * d, the same to the last bit for all ways of
        cutting the records into `chunks` (b, d), which are not checked.
        """
        blocks = equal_blocks(chunks, self.rows, self.d)
        count, total = self._table(blocks)
        more, table = self._table(blocks)
        lost = self._empty()  # the rounding error so far, in Kahan's addition
        while more:
            table -= lost
            new = total + table
            np.subtract(new, total, out=lost)
            lost -= table
            count, total = count + more, new
            more, table = self._table(blocks)
        return count, self._moments(total)

    def _table(self, blocks: Iterator[FloatArray]) -> tuple[int, FloatArray]:
        """Number and table of the next records, up to `self.blocks` blocks."""
        count, table = 0, self._empty()
        for block in itertools.islice(blocks, self.blocks):
            self._add(table, block)
            count += len(block)
        return count, table


def equal_blocks(chunks: Iterable[FloatArray], rows: int, d: int) -> Iterator[FloatArray]:
    """Cut records into blocks of `rows`; a block is valid only until the next one is taken."""
    rest = np.empty((0, d))
    for chunk in chunks:
        points = chunk
        if len(rest):
            missing = rows - len(rest)
            rest, points = np.concatenate([rest, points[:missing]]), points[missing:]
            if len(rest) < rows:
                continue
            yield rest
        whole_blocks = len(points) // rows * rows
        for start in range(0, whole_blocks, rows):
            yield points[start : start + rows]
        rest = points[whole_blocks:].copy()
    if len(rest):
        yield rest


# Two algorithms, and the choice between them.

#: Largest number t^d of moments, for d variables and t degrees 0..t-1 in each variable: 32 MB.
MAX_MOMENTS = 1 << 22
#: Largest number of entries of a table of expansions: 96 MB, of up to four tables in memory.
MAX_TABLE = 12_000_000
#: For each d, the least t for which expansions are faster than recurrences. Measured nanoseconds
#: per record for d = 2 and t = 6, 8, 32: recurrences 21, 34, 172 and expansions 28, 26, 38.
LEAST_SIZE = {1: 2, 2: 7, 3: 11}


# Chebyshev moments in up to three variables, by expansions in the cells of a fine grid.
#
# The cube of angles a in [0, pi]^d is divided into cells of side h = pi / M. For each cell, a table
# holds sums of monomials over the records in the cell. A monomial is a product of powers of the
# offsets u_j in [-1/2, 1/2] from the centre of the cell, in units of h. Its total degree is below
# the P of `ORDERS`. So a record costs 5, 36 or 120 additions for d = 1, 2 or 3. All Chebyshev
# moments are then computed from the table. For degrees r_j < t and z = sum_j s_j r_j h u_j,
#
#     prod_j cos(r_j a_j) = mean over signs s of Re(exp(i sum_j s_j r_j centre_j) exp(i z)).
#
# |z| is at most S = (sum_j r_j) h / 2. On [-S, S], exp(i z) is approximated by the polynomial of
# degree < P that interpolates it at P Chebyshev nodes. The error is at most 2 (S / 2)^P / P!. This
# bound grows as the P-th power of the degrees, faster than the noise of a mechanism. So the highest
# degrees determine the number of cells.


#: P for each number of variables: the fastest measured at tolerances of 1e-6 to 1e-8. A larger P
#: needs fewer cells, but with a smaller P the table fits in the cache.
ORDERS = {1: 5, 2: 8, 3: 8}
_ORDER_1, _ORDER_2, _ORDER_3 = ORDERS[1], ORDERS[2], ORDERS[3]
#: Largest S. The absolute values of the terms of an expansion then sum to at most 1.01 e^2.
LARGEST_REACH = 2.0


class LocalExpansions(MomentTransform):
    """Expansions in cells for d <= 3, with proved errors within `tolerances` (t,) * d."""

    def __init__(self, tolerances: FloatArray) -> None:
        self.cells = cells_needed(tolerances)
        # The angles of a small block fit in the cache. For d = 3, where they are sorted by cell,
        # more angles of a large block share a cell.
        self.rows = 1 << 18 if tolerances.ndim == 3 else 1 << 13
        super().__init__(tolerances.ndim, len(tolerances))

    @property
    def errors(self) -> FloatArray:
        """Bounds 2 (S / 2)^P / P! + (1 + sqrt 2)^P 2^-53, plus the rounding of the angles."""
        order = ORDERS[self.d]
        reach = reaches(self.d, self.size, self.cells)
        rounding = (1 + math.sqrt(2)) ** order * 2.0**-53
        expansions = 2 * (reach / 2) ** order / math.factorial(order) + rounding
        return np.asarray(expansions + angle_error(self.d, self.size))

    @property
    def amplification(self) -> float:
        """1.01 e^S for the largest S."""
        return 1.01 * math.exp(self.d * (self.size - 1) * math.pi / (2 * self.cells))

    def _empty(self) -> FloatArray:
        # Cell M is for angle pi.
        return np.zeros((self.cells + 1,) * self.d + (monomials(self.d),))

    def _add(self, table: FloatArray, points: FloatArray) -> None:
        angles = np.arccos(np.ascontiguousarray(points.T))
        side, scale = self.cells + 1, self.cells / math.pi
        match self.d:
            case 1:
                _add_1(table.reshape(-1), angles[0], scale)
            case 2:
                _add_2(table.reshape(-1), angles[0], angles[1], scale, side)
            case _:
                _add_3(table.reshape(-1), sorted_by_cell(angles, self.cells), scale, side)

    def _moments(self, table: FloatArray) -> FloatArray:
        if self.d == 1:
            by_degree = _by_transform(table, self.size)
        else:
            derivatives = _derivatives(ORDERS[self.d], self.size, self.cells)
            by_degree = _by_degree(table[None], derivatives)
        sums = (_weights(self.d, self.size, self.cells) * by_degree).sum(axis=0)
        return np.asarray(sums.reshape((self.size,) * self.d))


class Recurrences(MomentTransform):
    """Chebyshev recurrences, and a product of two matrices, one for each half of the variables."""

    rows = 1 << 11

    @property
    def errors(self) -> FloatArray:
        """2 d t^2 u with u = 2^-53: t steps add 2 u each, which later steps multiply by <= t."""
        return np.full((self.size,) * self.d, self.d * 2 * self.size**2 * ROUNDOFF)

    def _empty(self) -> FloatArray:
        return np.zeros((self.size,) * self.d)

    def _add(self, table: FloatArray, points: FloatArray) -> None:
        polynomials = chebyshev_polynomials(points, self.size)
        half = (self.d + 1) // 2
        left = products(polynomials[:half])
        if half == self.d:
            table += left.sum(axis=1)
        else:
            table += (left @ products(polynomials[half:]).T).reshape(table.shape)


def moment_transform(
    d: int, size: int, tolerance: float | FloatArray, n: int = 1
) -> MomentTransform:
    """Expansions, if they are faster and have errors of at most `tolerance`, a number or (t,) * d,
    of moments of one of the `n` records and of means, or else `Recurrences`.
    """
    wanted = np.broadcast_to(np.asarray(tolerance, dtype=np.float64), (size,) * d)
    # Half of the tolerance is left for rounding.
    rest = wanted / 2 - angle_error(d, size)
    if d <= 3 and size >= LEAST_SIZE[d] and (rest > 0).all():
        cells = cells_needed(rest)
        if (cells + 1) ** d * monomials(d) <= MAX_TABLE:
            found = LocalExpansions(rest)
            if (found.errors + found.rounding(n) <= wanted).all():
                return found
    return Recurrences(d, size)


def angle_error(d: int, size: int) -> float:
    """Bound d t 12 pi 2^-53: the angle, its position in the grid and its phase are rounded."""
    return d * size * 12 * math.pi * ROUNDOFF


def chebyshev_polynomials(points: FloatArray, size: int) -> FloatArray:
    """Values (d, t, n) of T_0..T_{t-1} at `points` (n, d), by T_{r+1} = 2 x T_r - T_{r-1}."""
    x = np.ascontiguousarray(points.T)
    values = np.empty((len(x), size, x.shape[1]))
    values[:, 0] = 1.0
    values[:, 1:2] = x[:, None, :]
    for r in range(2, size):
        np.multiply(2 * x, values[:, r - 1], out=values[:, r])
        values[:, r] -= values[:, r - 2]
    return values


def products(polynomials: FloatArray) -> FloatArray:
    """Products (t^d, n) of one of the `polynomials` (d, t, n) per variable, in row-major order."""
    d, size, n = polynomials.shape
    found = polynomials[0]
    for i in range(1, d):
        found = (found[:, None, :] * polynomials[i][None, :, :]).reshape(-1, n)
    return np.asarray(found).reshape(size**d, n)


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


def monomials(d: int) -> int:
    """Number of monomials of degree below P in d variables."""
    return math.comb(ORDERS[d] + d - 1, d)


def sorted_by_cell(angles: FloatArray, cells: int) -> FloatArray:
    """Angles (3, n) sorted by two cells, so that neighbours share a part of the table."""
    rows, columns = (angles[:2] * (cells / np.pi)).astype(np.int64)
    keys = (rows * (cells + 1) + columns).astype(np.uint16)  # `MAX_TABLE` allows no more cells
    return np.take(angles, np.argsort(keys, kind="stable"), axis=1)


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
    """Factors of the Taylor terms of degree q = 0..P-1 of all moments: (P, t^d).

    They are q! e_q for the polynomial sum_q e_q (i z)^q that interpolates exp(i z) on [-S, S].
    """
    reach, places = np.unique(reaches(d, size, cells).ravel(), return_inverse=True)
    order = ORDERS[d]
    q = np.arange(order)
    factorials = np.array([math.factorial(power) for power in q], dtype=np.float64)
    nodes = np.polynomial.chebyshev.chebpts1(order)
    vandermonde = np.polynomial.chebyshev.chebvander(nodes, order - 1)
    series = np.linalg.solve(vandermonde, np.exp(1j * np.multiply.outer(nodes, reach)))
    # The powers of x in T_0..T_{P-1}, one polynomial per column.
    powers = np.zeros((order, order))
    for degree in range(order):
        single = np.eye(degree + 1)[degree]
        powers[: degree + 1, degree] = np.polynomial.chebyshev.cheb2poly(single)
    # The nodes are symmetric, so the even powers interpolate the cosine, and the odd powers
    # interpolate the sine. So the e_q are real.
    scales = (1j * np.where(reach > 0, reach, 1.0)) ** q[:, None]
    factors = (powers @ series / scales).real * factorials[:, None]
    return np.where(reach > 0, factors, 1.0)[:, places]


@numba.njit(cache=True, nogil=True)
def _placed(angle: float, scale: float) -> tuple[np.int64, np.float64]:
    """The cell of an angle, and the offset u in [-1/2, 1/2] from its centre."""
    position = angle * scale
    cell = np.int64(position)
    return cell, position - np.float64(cell) - 0.5


@numba.njit(cache=True, nogil=True)
def _add_1(table: FloatArray, angles: FloatArray, scale: float) -> None:
    """Add powers 0..P-1 of the offsets; unsigned indices avoid checks of the sign."""
    for i in range(len(angles)):
        cell, u = _placed(angles[i], scale)
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
        row, u = _placed(first[i], scale)
        column, v = _placed(second[i], scale)
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
        first, u = _placed(angles[0, i], scale)
        second, v = _placed(angles[1, i], scale)
        third, w = _placed(angles[2, i], scale)
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
