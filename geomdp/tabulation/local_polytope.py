"""The local polytope of tables: cells that are not negative, in tables that agree and add up.

True shares lie in it, for any records. It is larger than the sensitivity polytope, the set of
shares that some records have: three tables of two columns each may agree on all shared columns
although no three-way table has them as its margins (such as three pairs of binary columns that
all always differ). It takes no search over combinations of levels, so any number of columns will
do.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from geomdp._typing import BoolArray, FloatArray
from geomdp.tabulation.specs import Table

#: Largest number of nonzero entries of the basis, by a bound: 2^21 take 25 MB twice. Measured: 4 s
#: for all 3-way tables of 5 columns of 10 levels (1.25 million by the bound), 0.25 s for all 2-way
#: tables of 100 binary columns (79,200).
MAX_BASIS_ENTRIES = 1 << 21
#: The penalty of the first round of `LocalPolytope.nearest`, how much larger each next one is, and
#: the largest. Measured: with 1e4 rounding keeps a round from ending, with 100 there are too many.
FIRST_PENALTY, GROWTH, LARGEST_PENALTY = 1.0, 3.0, 1e3
#: Largest number of rounds; each leaves a fraction of the last one's violation, and 10 to 30 are
#: taken.
MAX_ROUNDS = 100
#: Largest number of steps of Newton's method in a round, and of conjugate gradients in a step.
#: Measured: 1 to 10 steps, of 20 to 40 products with the basis.
MAX_STEPS, MAX_PRODUCTS = 100, 2000
#: Violations and gradients below this share of the largest entry are rounding. A gradient is as
#: large as the penalty times that of the cells.
PRECISION, ROUNDING = 1e-13, 1e-15


@dataclass(frozen=True)
class NearestTables:
    """The nearest point of a local polytope.

    Parameters
    ----------
    answers : (m,) array
        Cells, none negative, in tables that agree and add up, up to rounding.
    gap : float
        How optimal they are: no point of the polytope is further from `answers` than from the point
        that was projected, but for this much of the squared distance.
    """

    answers: FloatArray
    gap: float


class LocalPolytope:
    """{answers in the affine hull of the tables, no cell negative}.

    Parameters
    ----------
    tables : sequence of Table
        At least one, over `columns` with the same levels in all of them.
    weights : sequence of float
        What the cells of each table are multiplied by, above 0.
    """

    def __init__(self, tables: Sequence[Table], weights: Sequence[float]) -> None:
        self.tables, self.weights = tuple(tables), tuple(weights)
        sizes = [table.n_cells for table in self.tables]
        #: All records spread evenly over all combinations of levels: inside, no cell is 0.
        self.centre = np.repeat(np.array(self.weights) / sizes, sizes)
        self._basis = _interactions(self.tables, self.weights)
        self._transpose = sp.csr_array(self._basis.T)

    @property
    def dimension(self) -> int:
        """Dimension of the affine hull of the tables."""
        return int(self._basis.shape[1])

    def nearest(self, answers: FloatArray) -> NearestTables:
        """The nearest point to `answers` (m,) in Euclidean distance.

        With B an orthonormal basis of the directions of the hull, c the centre and t_0 the
        coordinates of the nearest point of the hull, it is c + B t for the t that minimises
        ||t - t_0||^2 / 2 where c + B t >= 0. The method of multipliers solves

            minimise over t  ||t - t_0||^2 / 2 + ||(l - s (c + B t))_+||^2 / (2 s)

        for multipliers l >= 0, then takes (l - s (c + B t))_+ for l, until no cell is negative.
        Each is solved by Newton's method, with conjugate gradients for its linear equations: their
        matrix I + s B_A^T B_A, A the cells of positive parts, has condition at most 1 + s whatever
        cells are 0 together.
        """
        start = self._transpose @ (answers - self.centre)
        scale = max(float(np.abs(start).max(initial=0.0)), float(self.centre.max()))
        multipliers, place, penalty = np.zeros(len(answers)), start, FIRST_PENALTY
        for _ in range(MAX_ROUNDS):
            place = self._minimised(place, start, multipliers, penalty, scale)
            multipliers = np.maximum(multipliers - penalty * self._cells(place), 0.0)
            place = start + self._transpose @ multipliers
            cells = self._cells(place)
            # Where a multiplier is positive its cell is 0, and no cell is negative.
            if np.abs(np.minimum(cells, multipliers)).max() <= PRECISION * scale:
                break
            penalty = min(GROWTH * penalty, LARGEST_PENALTY)
        return self._inside(start, multipliers, cells)

    def _cells(self, place: FloatArray) -> FloatArray:
        """c + B t."""
        return np.asarray(self.centre + self._basis @ place)

    def _minimised(
        self,
        place: FloatArray,
        start: FloatArray,
        multipliers: FloatArray,
        penalty: float,
        scale: float,
    ) -> FloatArray:
        """The minimiser of one round, from `place`; all steps go down, so they do not cycle."""

        def value_and_parts(at: FloatArray) -> tuple[float, FloatArray]:
            parts = np.maximum(multipliers - penalty * self._cells(at), 0.0)
            return float((at - start) @ (at - start) + parts @ parts / penalty) / 2, parts

        value, parts = value_and_parts(place)
        least = max(PRECISION, ROUNDING * penalty) * scale
        for _ in range(MAX_STEPS):
            gradient = place - start - self._transpose @ parts
            if np.abs(gradient).max(initial=0.0) <= least:
                break
            step = self._newton_step(gradient, parts > 0, penalty, 0.1 * least)
            slope, length = float(gradient @ step), 1.0
            while True:
                moved = place + length * step
                new_value, new_parts = value_and_parts(moved)
                # The last digits of the value are rounding.
                if new_value <= value + 1e-4 * length * slope + 1e-15 * value:
                    break
                length /= 2
                if length < 1e-6:
                    return place
            place, value, parts = moved, new_value, new_parts
        return place

    def _newton_step(
        self, gradient: FloatArray, active: BoolArray, penalty: float, least: float
    ) -> FloatArray:
        """-(I + s B_A^T B_A)^-1 g by conjugate gradients."""
        step, residual = np.zeros_like(gradient), -gradient
        direction, square = residual, float(residual @ residual)
        # Few digits suffice far from the minimiser; near it they must be below its precision.
        goal = max(1e-8 * math.sqrt(square), least)
        for _ in range(MAX_PRODUCTS):
            if math.sqrt(square) <= goal:
                break
            curved = np.where(active, self._basis @ direction, 0.0)
            product = direction + penalty * (self._transpose @ curved)
            length = square / float(direction @ product)
            step = step + length * direction
            residual = residual - length * product
            new_square = float(residual @ residual)
            direction, square = residual + new_square / square * direction, new_square
        return step

    def _inside(
        self, start: FloatArray, multipliers: FloatArray, cells: FloatArray
    ) -> NearestTables:
        """The cells moved towards the centre until none is negative, with their gap."""
        below = cells < 0
        shares = -cells[below] / (self.centre[below] - cells[below])
        moved = cells + float(shares.max(initial=0.0)) * (self.centre - cells)
        answers = np.maximum(moved, 0.0)
        # For each x of the polytope <y - p, x - p> <= <l, p> + |t_0 + B^T l - t| |x - p|.
        place = self._transpose @ (answers - self.centre)
        apart = float(np.linalg.norm(start + self._transpose @ multipliers - place))
        diameter = math.sqrt(2 * sum(weight**2 for weight in self.weights))
        return NearestTables(answers, 2 * (float(multipliers @ answers) + apart * diameter))


def fits(tables: Sequence[Table]) -> bool:
    """Whether the basis of a `LocalPolytope` has at most `MAX_BASIS_ENTRIES` entries."""
    return sum(map(_entries, tables)) <= MAX_BASIS_ENTRIES


def _entries(table: Table) -> int:
    """A bound on the entries of the basis at the cells of a table."""
    counts = [len(levels) for levels in table.levels]
    return math.prod(count * (1 + math.ceil(math.log2(count))) for count in counts)


def _interactions(tables: Sequence[Table], weights: Sequence[float]) -> sp.csr_array:
    """Orthonormal basis (m, r) of the directions of the hull: interactions of sets of columns.

    The interaction of the columns S is, in each table T that crosses all of them, the product of
    contrasts of the levels of S, spread evenly over the other columns of T. A table has an entry in
    the column of S with its weight w_T; the squared length is the sum over T of w_T^2 / (number
    of combinations of levels of T outside S).
    """
    starts: dict[tuple[str, ...], int] = {}
    lengths: dict[tuple[str, ...], float] = {}
    total, first = 0, 0
    placed = []
    for table, weight in zip(tables, weights, strict=True):
        counts = tuple(len(levels) for levels in table.levels)
        for chosen, block in _blocks(counts):
            names = tuple(itertools.compress(table.columns, chosen))
            if names not in starts:
                starts[names], lengths[names] = total, 0.0
                total += block.shape[1]
            rest = math.prod(n for n, own in zip(counts, chosen, strict=True) if not own)
            lengths[names] += weight**2 / rest
            placed.append((first, names, weight, block))
        first += table.n_cells
    rows, columns, values = [], [], []
    for start, names, weight, block in placed:
        rows.append(start + block.row)
        columns.append(starts[names] + block.col)
        values.append(weight / math.sqrt(lengths[names]) * block.data)
    entries = (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns)))
    return sp.csr_array(entries, shape=(first, total))


@functools.lru_cache(maxsize=64)
def _blocks(counts: tuple[int, ...]) -> list[tuple[tuple[bool, ...], sp.coo_array]]:
    """For each set of columns of a table, which they are and their interaction in its cells."""
    found = []
    for chosen in itertools.product((False, True), repeat=len(counts)):
        if not any(chosen):
            continue
        block = sp.coo_array(np.ones((1, 1)))
        for count, own in zip(counts, chosen, strict=True):
            factor = _contrasts(count) if own else sp.coo_array(np.full((count, 1), 1 / count))
            block = sp.coo_array(sp.kron(block, factor))
        found.append((chosen, block))
    return found


def _contrasts(count: int) -> sp.coo_array:
    """Orthonormal basis (n, n - 1) of {v : sum of v = 0} with n log2 n entries, not n^2 / 2.

    Each column compares the mean of the first half of some levels with that of the second half:
    all levels, then each half, and so on (the Haar basis, for any n).
    """
    basis, column, waiting = np.zeros((count, count - 1)), 0, [(0, count)]
    while waiting:
        start, stop = waiting.pop()
        middle = (start + stop) // 2
        if middle == start:
            continue
        left, right = middle - start, stop - middle
        basis[start:middle, column] = math.sqrt(right / (left * (left + right)))
        basis[middle:stop, column] = -math.sqrt(left / (right * (left + right)))
        column += 1
        waiting += [(start, middle), (middle, stop)]
    return sp.coo_array(basis)
