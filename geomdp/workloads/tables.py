"""All k-way marginal tables of categorical columns, and their orthogonal interaction blocks."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import scipy.sparse as sp

from geomdp._numerics.linalg import AffineHull
from geomdp._typing import FloatArray, IntArray
from geomdp._validation import batch, whole
from geomdp.workloads.base import (
    MAX_ENTRIES,
    MAX_SCORES,
    Block,
    Totals,
    Workload,
    WorkloadSizeError,
)
from geomdp.workloads.closed_forms.interactions import interaction_block
from geomdp.workloads.universe.universes import CategoricalProduct, Records

#: Records counted at a time; memory of `totals` is a few integers per record.
COUNT_ROWS = 1 << 16


@dataclass(frozen=True, init=False, repr=False)
class MarginalTables(Workload):
    """Cells of all k-way tables: q_(T,a)(x) = 1[x_T = a] for |T| = k and all level codes a.

    Tables are in lexicographic order of their columns, the cells of a table in row-major order
    (its last column changes fastest).

    Parameters
    ----------
    columns : mapping of column name to number of levels, or sequence of numbers of levels
        Columns of a sequence are named c0, c1, ...
    k : int
        Number of columns in a table, from 1 to the number of columns.
    """

    whole_answers: ClassVar[bool] = True
    names: tuple[str, ...]
    levels: tuple[int, ...]
    k: int

    def __init__(self, columns: Mapping[str, int] | Iterable[int], k: int) -> None:
        universe = CategoricalProduct(columns)
        object.__setattr__(self, "names", universe.names)
        object.__setattr__(self, "levels", universe.levels)
        object.__setattr__(self, "k", whole(k, "k", maximum=len(universe.levels)))

    def _summary(self) -> str:
        return f"{len(self.levels)} columns, k={self.k}; {self.n_queries} queries"

    @property
    def columns(self) -> dict[str, int]:
        """Number of levels of each column, by name, in column order."""
        return dict(zip(self.names, self.levels, strict=True))

    @property
    def universe(self) -> CategoricalProduct:
        """The product of the columns."""
        return CategoricalProduct(self.columns)

    @cached_property
    def tables(self) -> tuple[tuple[int, ...], ...]:
        """Column numbers of each table."""
        return tuple(itertools.combinations(range(len(self.levels)), self.k))

    def shape(self, table: Sequence[int]) -> tuple[int, ...]:
        """Numbers of levels of the columns of a table."""
        return tuple(self.levels[i] for i in table)

    @cached_property
    def slices(self) -> tuple[slice, ...]:
        """Where the cells of each table are among the queries."""
        ends = list(itertools.accumulate(math.prod(self.shape(table)) for table in self.tables))
        return tuple(slice(a, b) for a, b in zip([0, *ends], ends, strict=False))

    @property
    def n_queries(self) -> int:
        """Number of cells of all tables."""
        return int(self.slices[-1].stop)

    @cached_property
    def _strides(self) -> FloatArray:
        """Matrix (c, tables) from level codes to cell numbers within each table."""
        strides = np.zeros((len(self.levels), len(self.tables)))
        for t, table in enumerate(self.tables):
            shape = self.shape(table)
            strides[list(table), t] = math.prod(shape) // np.cumprod(shape)
        return strides

    def evaluate(self, records: Records) -> FloatArray:
        """Rows (n, m) with one 1 in each table."""
        codes = self.universe.validate(records)
        answers = np.zeros((len(codes), self.n_queries))
        # A float64 product is exact for cell numbers (below 2^53) and far faster than int64.
        cells = (codes @ self._strides).astype(np.int64) + [place.start for place in self.slices]
        np.put_along_axis(answers, cells, 1, axis=1)
        return answers

    def totals(self, records: Records | Iterable[Records]) -> Totals:
        """Sum of Q(x) over all records, by counting cells.

        O(n) per table; for k = 2 one matrix product of indicators gives all tables at once.
        """
        count, sums = 0, np.zeros(self.n_queries)
        for chunk in self.universe.chunks(records, COUNT_ROWS):
            count += len(chunk)
            if self.k == 2:
                sums += self._pair_counts(chunk)
                continue
            columns = np.ascontiguousarray(chunk.T)
            for table, place in zip(self.tables, self.slices, strict=True):
                cells = np.ravel_multi_index(tuple(columns[list(table)]), self.shape(table))
                sums[place] += np.bincount(cells, minlength=place.stop - place.start)
        return Totals(count, sums)

    @cached_property
    def _first_levels(self) -> IntArray:
        """Number of the first level of each column among the levels of all columns."""
        levels = np.array(self.levels)
        return np.asarray(np.cumsum(levels) - levels)

    @cached_property
    def _pair_places(self) -> tuple[IntArray, IntArray]:
        """For k = 2, both levels of each cell, as numbers among the levels of all columns."""
        starts = self._first_levels
        first, second = [], []
        for i, j in self.tables:
            rows, columns = np.divmod(np.arange(self.levels[i] * self.levels[j]), self.levels[j])
            first.append(starts[i] + rows)
            second.append(starts[j] + columns)
        return np.concatenate(first), np.concatenate(second)

    def _pair_counts(self, codes: IntArray) -> FloatArray:
        """For k = 2, how many records (n, c) fall in each cell: (m,)."""
        # float32 counts exactly up to 2^24, far above the rows of one chunk.
        indicators = np.zeros((len(codes), sum(self.levels)), dtype=np.float32)
        np.put_along_axis(indicators, codes + self._first_levels, 1, axis=1)
        first, second = self._pair_places
        return (indicators.T @ indicators)[first, second].astype(np.float64)

    def extreme_answers(self, directions: FloatArray) -> FloatArray:
        """Answer vectors (b, m) at a best element of each direction (b, m).

        The score of x is the sum over tables T of the direction's entry at cell x_T. The scores of
        all N elements are the corner sum of the weights of `_corner_map`: O(c N) per direction.
        Ties go to the lowest element number up to rounding.

        Raises
        ------
        ValueError
            For more than 2^24 elements.
        """
        from geomdp.workloads.closed_forms.transforms import corner_sum

        directions = batch(directions, self.n_queries, "directions")
        size = self.universe.size
        if size > MAX_SCORES:
            raise WorkloadSizeError(
                f"columns must have at most 2^24 level combinations for extreme answers, got {size}"
            )
        levels = np.array(self.levels)
        weights, elements = self._corner_map
        rows = max(1, MAX_SCORES // size)
        winners = np.empty(len(directions), dtype=np.int64)
        for start in range(0, len(directions), rows):
            part = directions[start : start + rows]
            scores = np.zeros((len(part), size))
            scores[:, elements] = part @ weights
            corner_sum(scores, levels)
            winners[start : start + rows] = scores.argmax(axis=1)
        return self.evaluate(self.universe.elements_at(winners))

    @cached_property
    def _corner_map(self) -> tuple[sp.csr_array, IntArray]:
        """Matrix (m, p) from directions to corner weights, and the element numbers (p,) of these.

        The corner weights w of a direction u satisfy: sum over tables of u_T(x_T) = sum of w(y)
        over y with y_i in {0, x_i}. A table f on columns T is such a corner sum: of the differences
        of f against level 0 along each axis in turn, at the elements with level 0 outside T.
        """
        strides = math.prod(self.levels) // np.cumprod(self.levels)
        maps, places = [], []
        for table in self.tables:
            differences = sp.csr_array(np.ones((1, 1)))
            numbers = np.zeros(1, dtype=np.int64)
            for i in table:
                difference = np.eye(self.levels[i])
                difference[0, 1:] = -1
                differences = sp.kron(differences, difference, format="csr")
                steps = strides[i] * np.arange(self.levels[i])
                numbers = (numbers[:, None] + steps).ravel()
            maps.append(differences)
            places.append(numbers)
        elements, columns = np.unique(np.concatenate(places), return_inverse=True)
        # Several tables may have a weight at the same element: add up their columns.
        n_cells = self.n_queries
        gather = sp.csr_array(
            (np.ones(n_cells), (np.arange(n_cells), columns)), shape=(n_cells, len(elements))
        )
        return sp.csr_array(sp.block_diag(maps, format="csr") @ gather), elements

    @cached_property
    def _blocks(self) -> tuple[Block, ...]:
        sets = [
            S
            for order in range(1, self.k + 1)
            for S in itertools.combinations(range(len(self.levels)), order)
            if min(self.shape(S)) > 1
        ]
        rank = sum(math.prod(n - 1 for n in self.shape(S)) for S in sets)
        if rank * self.n_queries > MAX_ENTRIES:
            raise WorkloadSizeError(
                "number of cells times dimension of the affine hull must be at most 2^26 for a "
                f"basis, got {self.n_queries} times {rank}"
            )
        places = dict(zip(self.tables, self.slices, strict=True))
        return tuple(interaction_block(self.levels, places, self.n_queries, S) for S in sets)

    def blocks(self) -> tuple[Block, ...]:
        """Interaction blocks (analysis of variance), one for each set S of 1 to k columns.

        See `interactions` for the formulas. Diameters and radii are exact. With two levels
        everywhere the blocks are the parity basis.

        Raises
        ------
        ValueError
            If number of cells times dimension of the hull is above 2^26 (512 MB of bases).
        """
        return self._blocks

    def affine_hull(self) -> AffineHull:
        """Affine hull in closed form: the interaction blocks around the uniform distribution.

        Raises ``ValueError`` where `blocks` does.
        """
        offset = np.concatenate(
            [
                np.full(math.prod(shape), 1 / math.prod(shape))
                for shape in map(self.shape, self.tables)
            ]
        )
        bases = [block.basis for block in self._blocks]
        return AffineHull(offset, np.hstack([np.zeros((len(offset), 0)), *bases]))

    @cached_property
    def _changing_tables(self) -> int:
        """Number of tables that are not constant."""
        return sum(max(self.shape(table)) > 1 for table in self.tables)

    def l1_diameter(self) -> float:
        """2 C(c, k): records that differ everywhere move 1 between two cells of every table.

        Tables whose columns all have a single level never change and do not count.
        """
        return 2.0 * self._changing_tables

    def l2_diameter(self) -> float:
        """sqrt(2 C(c, k)), attained by records that differ everywhere; see `l1_diameter`."""
        return math.sqrt(2.0 * self._changing_tables)

    def l1_radius(self) -> float:
        """C(c, k): each record counts once in every table."""
        return float(len(self.tables))

    def l2_radius(self) -> float:
        """sqrt(C(c, k)): each record counts once in every table."""
        return math.sqrt(len(self.tables))

    def labels(self) -> list[str]:
        """Names such as age=2,sex=1."""
        return [
            ",".join(f"{self.names[i]}={a}" for i, a in zip(table, cell, strict=True))
            for table in self.tables
            for cell in itertools.product(*map(range, self.shape(table)))
        ]
