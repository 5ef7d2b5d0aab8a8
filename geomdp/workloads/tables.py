"""All k-way marginal tables of categorical columns."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from geomdp._typing import FloatArray, IntArray
from geomdp._validation import whole
from geomdp.workloads.table_queries import TableQueries
from geomdp.workloads.universe.universes import CategoricalProduct


@dataclass(frozen=True, init=False, repr=False)
class MarginalTables(TableQueries):
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

    @cached_property
    def table_weights(self) -> FloatArray:
        """1 for every table."""
        return np.ones(len(self.tables))

    def _counts(self, codes: IntArray) -> FloatArray:
        """How many records (n, c) fall in each cell: (m,).

        For k = 2 one matrix product of indicators gives all tables at once.
        """
        return self._pair_counts(codes) if self.k == 2 else super()._counts(codes)

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

    def _interacting(self) -> Sequence[tuple[int, ...]]:
        """All sets of 1 to k columns: the same as those of the tables, listed in less time."""
        columns = range(len(self.levels))
        return [S for order in range(1, self.k + 1) for S in itertools.combinations(columns, order)]
