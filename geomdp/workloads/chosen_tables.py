"""Chosen marginal tables of categorical columns, of any orders, each with a weight."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

import numpy as np

from geomdp._numerics.linalg import AffineHull
from geomdp._typing import FloatArray, IntArray
from geomdp._validation import batch, positive
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


class ChosenTables(Workload):
    """Weighted cells of chosen tables: q_(T,a)(x) = w_T 1[x_T = a] for all level codes a.

    The error of a mechanism counts the cells of table T times w_T, so tables of larger weight
    become more accurate at the cost of the others. Divide the answers by `weights` for shares.
    Tables are in the order given, each with its columns in the order of `columns` and its cells in
    row-major order (the last column changes fastest). For all tables of one order with equal
    weights, `MarginalTables` knows more mechanisms.

    Parameters
    ----------
    columns : mapping of column name to number of levels
        The columns of a record.
    tables : sequence of sequence of str
        The columns that each table crosses; at least 1 table, none twice.
    weights : sequence of float, optional
        One positive weight per table; by default 1. With whole weights sums over records are whole.

    Raises
    ------
    ValueError
        No table, a table twice, a column that is unknown or twice in a table, or wrong weights.
    """

    def __init__(
        self,
        columns: Mapping[str, int],
        tables: Iterable[Sequence[str]],
        weights: Sequence[float] | None = None,
    ) -> None:
        self._universe = CategoricalProduct(columns)
        self.levels = self._universe.levels
        self.tables = tuple(_table_numbers(self._universe.names, table) for table in tables)
        if not self.tables:
            raise ValueError("tables must be at least 1, got 0")
        for table in self.tables:
            if self.tables.count(table) > 1:
                names = [self._universe.names[i] for i in table]
                raise ValueError(f"tables must differ, the one of {names} occurs more than once")
        self.table_weights = _checked_weights(weights, len(self.tables))

    def _summary(self) -> str:
        return f"{len(self.tables)} tables of {len(self.levels)} columns; {self.n_queries} queries"

    @property
    def universe(self) -> CategoricalProduct:
        """The product of the columns."""
        return self._universe

    def shape(self, table: Sequence[int]) -> tuple[int, ...]:
        """Numbers of levels of the columns of a table, given by their numbers."""
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

    @property
    def whole_answers(self) -> bool:
        """Whether all weights are whole: an answer is 0 or the weight of its table."""
        return bool((self.table_weights == np.rint(self.table_weights)).all())

    @cached_property
    def weights(self) -> FloatArray:
        """The weight of each query (m,): that of its table."""
        sizes = [place.stop - place.start for place in self.slices]
        return np.repeat(self.table_weights, sizes)

    def _cells(self, codes: IntArray) -> Iterable[IntArray]:
        """For each table, the cell number of each record: (n,)."""
        for table in self.tables:
            yield np.ravel_multi_index(tuple(codes[:, list(table)].T), self.shape(table))

    def evaluate(self, records: Records) -> FloatArray:
        """Rows (n, m) with the weight of each table at one of its cells."""
        codes = self.universe.validate(records)
        answers = np.zeros((len(codes), self.n_queries))
        rows = np.arange(len(codes))
        for cells, place, weight in zip(
            self._cells(codes), self.slices, self.table_weights, strict=True
        ):
            answers[rows, place.start + cells] = weight
        return answers

    def totals(self, records: Records | Iterable[Records]) -> Totals:
        """Sum of Q(x) over all records, by counting cells: O(n) per table."""
        count, counts = 0, np.zeros(self.n_queries)
        for chunk in self.universe.chunks(records, COUNT_ROWS):
            count += len(chunk)
            for cells, place in zip(self._cells(chunk), self.slices, strict=True):
                counts[place] += np.bincount(cells, minlength=place.stop - place.start)
        return Totals(count, counts * self.weights)

    def extreme_answers(self, directions: FloatArray) -> FloatArray:
        """Answer vectors (b, m) at a best element of each direction (b, m).

        All N elements are scored: O(N) for each table and direction.

        Raises
        ------
        ValueError
            For more than 2^24 elements.
        """
        directions = batch(directions, self.n_queries, "directions")
        size = self.universe.size
        if size > MAX_SCORES:
            raise WorkloadSizeError(
                f"columns must have at most 2^24 level combinations for extreme answers, got {size}"
            )
        winners = np.array([self._scores(direction).argmax() for direction in directions])
        return self.evaluate(self.universe.elements_at(winners.astype(np.int64)))

    def _scores(self, direction: FloatArray) -> FloatArray:
        """<direction, Q(x)> for all elements x, as an array with one axis per column."""
        scores = np.zeros(self.levels)
        weighted = direction * self.weights
        for table, place in zip(self.tables, self.slices, strict=True):
            # Axes of length 1 for the columns that the table does not cross.
            axes = [n if i in table else 1 for i, n in enumerate(self.levels)]
            scores += weighted[place].reshape(axes)
        return scores

    @cached_property
    def _blocks(self) -> tuple[Block, ...]:
        sets = sorted(
            {
                S
                for table in self.tables
                for order in range(1, len(table) + 1)
                for S in itertools.combinations(table, order)
                if min(self.shape(S)) > 1
            },
            key=lambda S: (len(S), S),
        )
        rank = sum(math.prod(n - 1 for n in self.shape(S)) for S in sets)
        if rank * self.n_queries > MAX_ENTRIES:
            raise WorkloadSizeError(
                "number of cells times dimension of the affine hull must be at most 2^26 for a "
                f"basis, got {self.n_queries} times {rank}"
            )
        return tuple(self._block(S) for S in sets)

    def _block(self, S: tuple[int, ...]) -> Block:
        """The interaction of the columns S, with the weights of the tables that hold it.

        In a table T all columns of the unweighted basis have the same norm c_T. Weights make it
        w_T c_T, so that all columns keep one common norm, which is divided out.
        """
        places = dict(zip(self.tables, self.slices, strict=True))
        plain = interaction_block(self.levels, places, self.n_queries, S)
        basis = plain.basis * self.weights[:, None]
        norm = float(np.linalg.norm(basis[:, 0]))
        return Block(basis / norm, plain.diameter * norm, plain.radius * norm)

    def blocks(self) -> tuple[Block, ...]:
        """Interaction blocks (analysis of variance), one for each set of columns within a table.

        Diameters and radii are exact. ``ValueError`` if the number of cells times the dimension of
        the hull is above 2^26.
        """
        return self._blocks

    def affine_hull(self) -> AffineHull:
        """Affine hull in closed form: the interaction blocks around the uniform distribution."""
        sizes = [place.stop - place.start for place in self.slices]
        offset = np.repeat(self.table_weights / sizes, sizes)
        bases = [block.basis for block in self._blocks]
        return AffineHull(offset, np.hstack([np.zeros((len(offset), 0)), *bases]))

    @property
    def _changing(self) -> FloatArray:
        """Weights of the tables that are not constant."""
        changing = [max(self.shape(table)) > 1 for table in self.tables]
        return np.asarray(self.table_weights[changing])

    def l1_diameter(self) -> float:
        """Twice the sum of weights: records that differ everywhere move one cell in each table."""
        return 2.0 * float(self._changing.sum())

    def l2_diameter(self) -> float:
        """sqrt(2 sum of squared weights), attained by records that differ everywhere."""
        return math.sqrt(2.0 * float((self._changing**2).sum()))

    def l1_radius(self) -> float:
        """The sum of weights: each record counts once in every table."""
        return float(self.table_weights.sum())

    def l2_radius(self) -> float:
        """The Euclidean norm of the weights."""
        return float(np.linalg.norm(self.table_weights))

    def labels(self) -> list[str]:
        """Names such as age=2,sex=1."""
        names = self.universe.names
        return [
            ",".join(f"{names[i]}={a}" for i, a in zip(table, cell, strict=True))
            for table in self.tables
            for cell in itertools.product(*map(range, self.shape(table)))
        ]


def _table_numbers(names: Sequence[str], table: Sequence[str]) -> tuple[int, ...]:
    """The numbers of the columns of a table, increasing."""
    if isinstance(table, str) or not table:
        raise ValueError(f"a table must be a list of at least 1 column, got {table!r}")
    for name in table:
        if name not in names:
            raise ValueError(f"a table must cross columns among {', '.join(names)}; got {name!r}")
    if len(set(table)) < len(table):
        raise ValueError(f"a table must cross each column once, got {list(table)}")
    return tuple(sorted(names.index(name) for name in table))


def _checked_weights(weights: Sequence[float] | None, count: int) -> FloatArray:
    if weights is None:
        return np.ones(count)
    if len(weights) != count:
        raise ValueError(f"weights must be one per table, {count}, got {len(weights)}")
    return np.array([positive(weight, "weights") for weight in weights])
