"""The cells of marginal tables of categorical columns, with one weight for each table."""

from __future__ import annotations

import abc
import itertools
import math
from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from geomdp._numerics.linalg import AffineHull
from geomdp._typing import FloatArray, IntArray
from geomdp._validation import batch
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

#: Number of records counted at a time. `totals` stores a few integers for each of these records.
COUNT_ROWS = 1 << 16


class TableQueries(Workload):
    """Weighted cells of tables in row-major order: q_(T,a)(x) = w_T 1[x_T = a] for all cells a."""

    levels: tuple[int, ...]

    @property
    @abc.abstractmethod
    def universe(self) -> CategoricalProduct: ...

    @property
    @abc.abstractmethod
    def tables(self) -> tuple[tuple[int, ...], ...]:
        """Column numbers of each table, in increasing order."""

    @property
    @abc.abstractmethod
    def table_weights(self) -> FloatArray:
        """The weight w_T of each table."""

    def shape(self, table: Sequence[int]) -> tuple[int, ...]:
        """Number of levels of each column of `table`, a sequence of column numbers."""
        return tuple(self.levels[i] for i in table)

    @cached_property
    def slices(self) -> tuple[slice, ...]:
        """For each table, the slice of the queries that holds its cells."""
        ends = list(itertools.accumulate(math.prod(self.shape(table)) for table in self.tables))
        return tuple(slice(a, b) for a, b in zip([0, *ends], ends, strict=False))

    @cached_property
    def _sizes(self) -> IntArray:
        return np.array([place.stop - place.start for place in self.slices])

    @property
    def n_queries(self) -> int:
        return int(self.slices[-1].stop)

    @cached_property
    def weights(self) -> FloatArray:
        """The weight of each query (m,): the weight of its table."""
        return np.repeat(self.table_weights, self._sizes)

    @cached_property
    def _strides(self) -> FloatArray:
        """Matrix (c, tables) that maps the c level codes of a record to its cell in each table."""
        strides = np.zeros((len(self.levels), len(self.tables)))
        for t, table in enumerate(self.tables):
            shape = self.shape(table)
            strides[list(table), t] = math.prod(shape) // np.cumprod(shape)
        return strides

    def evaluate(self, records: Records) -> FloatArray:
        codes = self.universe.validate(records)
        answers = np.zeros((len(codes), self.n_queries))
        # A float64 product is exact for cell numbers (below 2^53) and far faster than int64.
        cells = (codes @ self._strides).astype(np.int64) + [place.start for place in self.slices]
        np.put_along_axis(answers, cells, self.table_weights, axis=1)
        return answers

    def totals(self, records: Records | Iterable[Records]) -> Totals:
        """Cells are counted, O(n) per table."""
        counted = self.cell_counts(records)
        return Totals(counted.count, counted.sums * self.weights)

    def cell_counts(self, records: Records | Iterable[Records]) -> Totals:
        """Total number of records, and the number in each cell (m,), without weights."""
        count, counts = 0, np.zeros(self.n_queries)
        for chunk in self.universe.chunks(records, COUNT_ROWS):
            count += len(chunk)
            counts += self._counts(chunk)
        return Totals(count, counts)

    def _counts(self, codes: IntArray) -> FloatArray:
        columns = np.ascontiguousarray(codes.T)
        cells = (
            np.ravel_multi_index(tuple(columns[list(table)]), self.shape(table))
            for table in self.tables
        )
        return np.concatenate(
            [
                np.bincount(numbers, minlength=size)
                for numbers, size in zip(cells, self._sizes, strict=True)
            ]
        ).astype(np.float64)

    def extreme_answers(self, directions: FloatArray) -> FloatArray:
        """One corner sum (see `_corner_map`), O(c N) for c columns, per direction.

        ``ValueError`` for N > 2^24 elements. Up to rounding, the element of lowest number wins.
        """
        directions = batch(directions, self.n_queries, "directions") * self.weights
        size = self.universe.size
        if size > MAX_SCORES:
            raise WorkloadSizeError(
                f"columns must have at most 2^24 level combinations for extreme answers, got {size}"
            )
        if len(directions) == 0:
            return np.empty_like(directions)
        from geomdp.workloads.closed_forms.transforms import corner_sum  # slow import: compiled

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
        """The matrix (m, p) from directions to corner weights, and the indices of p elements.

        Corner weights w(y) are such that sum_T u_T(x_T) is the sum of w(y) over all y with y_i in
        {0, x_i}. For a table T, they are the differences of u_T against level 0 along each column.
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
        # Several tables can give a weight to the same element: add these weights.
        n_cells = self.n_queries
        gather = sp.csr_array(
            (np.ones(n_cells), (np.arange(n_cells), columns)), shape=(n_cells, len(elements))
        )
        return sp.csr_array(sp.block_diag(maps, format="csr") @ gather), elements

    def _interacting(self) -> Sequence[tuple[int, ...]]:
        """All non-empty sets of columns within a table, by size, then in lexicographic order."""
        sets = {
            S
            for table in self.tables
            for order in range(1, len(table) + 1)
            for S in itertools.combinations(table, order)
        }
        return sorted(sets, key=lambda S: (len(S), S))

    @cached_property
    def _blocks(self) -> tuple[Block, ...]:
        # A column with a single level is constant and has no interactions.
        sets = [S for S in self._interacting() if min(self.shape(S)) > 1]
        rank = sum(math.prod(n - 1 for n in self.shape(S)) for S in sets)
        if rank * self.n_queries > MAX_ENTRIES:
            raise WorkloadSizeError(
                "number of cells times dimension of the affine hull must be at most 2^26 for a "
                f"basis, got {self.n_queries} times {rank}"
            )
        places = dict(zip(self.tables, self.slices, strict=True))
        return tuple(interaction_block(self.levels, places, self.table_weights, S) for S in sets)

    def blocks(self) -> tuple[Block, ...]:
        """One interaction block (analysis of variance) for each set of columns within a table.

        The empty set and sets with a column of one level have none; see `interactions`. Diameters
        and radii are exact. For columns of two levels, each block is the parity of its columns.
        ``ValueError`` if cells times the dimension of the affine hull exceed 2^26 (512 MB).
        """
        return self._blocks

    def affine_hull(self) -> AffineHull:
        """The hull is spanned by the bases of `blocks`, with the same errors."""
        return self._hull

    @cached_property
    def _hull(self) -> AffineHull:
        offset = np.repeat(self.table_weights / self._sizes, self._sizes)
        bases = [block.basis for block in self._blocks]
        return AffineHull(offset, np.hstack([np.zeros((len(offset), 0)), *bases]))

    @cached_property
    def _changing(self) -> FloatArray:
        """Weights of those tables in which two records can be in different cells."""
        changing = [max(self.shape(table)) > 1 for table in self.tables]
        return np.asarray(self.table_weights[changing])

    def l1_diameter(self) -> float:
        """Twice the sum of the weights of all tables that have a column with several levels."""
        return 2.0 * float(self._changing.sum())

    def l2_diameter(self) -> float:
        """sqrt(2 sum of squared weights), for the same tables as `l1_diameter`."""
        return math.sqrt(2.0 * float((self._changing**2).sum()))

    def l1_radius(self) -> float:
        """The sum of weights: each record is in one cell of every table."""
        return float(self.table_weights.sum())

    def l2_radius(self) -> float:
        return float(np.linalg.norm(self.table_weights))

    def labels(self) -> list[str]:
        names = self.universe.names
        return [
            ",".join(f"{names[i]}={a}" for i, a in zip(table, cell, strict=True))
            for table in self.tables
            for cell in itertools.product(*map(range, self.shape(table)))
        ]
