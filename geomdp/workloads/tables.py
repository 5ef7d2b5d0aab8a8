"""All k-way marginal tables of categorical columns."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from geomdp._typing import FloatArray, IntArray
from geomdp._validation import whole
from geomdp.workloads.table_queries import TableQueries
from geomdp.workloads.universe.universes import CategoricalProduct


@dataclass(frozen=True, eq=False)
class PairCells:
    """The cells of all tables of pairs: their two levels, and the start and size of their table."""

    first: IntArray
    second: IntArray
    starts: IntArray
    sizes: IntArray


@dataclass(frozen=True, init=False, repr=False)
class MarginalTables(TableQueries):
    """Cells of all k-way tables: q_(T,a)(x) = 1[x_T = a] for |T| = k and all level codes a.

    x_T are the codes of x in the k columns of the table T. Tables are in lexicographic order, and
    their cells in row-major order (the last column changes fastest).

    Parameters
    ----------
    columns : mapping of column name to number of levels, or sequence of numbers of levels
        Columns given by a sequence are named c0, c1, ...
    k : int
        Number of columns in a table, from 1 to the number of columns.

    Examples
    --------
    >>> import pandas as pd
    >>> import geomdp as gd
    >>> workload = gd.workloads.MarginalTables({"region": 3, "smoker": 2}, k=1)
    >>> records = pd.DataFrame({"region": [0, 2, 2, 1], "smoker": [1, 0, 0, 0]})
    >>> workload.answers(records)
    array([0.25, 0.25, 0.5 , 0.75, 0.25])
    >>> workload.labels()
    ['region=0', 'region=1', 'region=2', 'smoker=0', 'smoker=1']
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
        return CategoricalProduct(self.columns)

    @cached_property
    def tables(self) -> tuple[tuple[int, ...], ...]:
        return tuple(itertools.combinations(range(len(self.levels)), self.k))

    @cached_property
    def table_weights(self) -> FloatArray:
        return np.ones(len(self.tables))

    def _counts(self, codes: IntArray) -> FloatArray:
        """For k = 2, one product of indicators; for k = 3, one for each level of a column i."""
        if self.k == 2:
            return self._pair_counts(codes)
        return self._triple_counts(codes) if self.k == 3 else super()._counts(codes)

    @cached_property
    def _first_levels(self) -> IntArray:
        levels = np.array(self.levels)
        return np.asarray(np.cumsum(levels) - levels)

    @cached_property
    def _pairs(self) -> PairCells:
        pairs = np.array(list(itertools.combinations(range(len(self.levels)), 2)))
        levels, firsts = np.array(self.levels)[pairs], self._first_levels[pairs]
        sizes = levels.prod(axis=1)
        starts = np.cumsum(sizes) - sizes
        tables = np.repeat(np.arange(len(pairs)), sizes)
        cells = np.arange(sizes.sum())
        rows, columns = np.divmod(cells - starts[tables], levels[tables, 1])
        return PairCells(
            firsts[tables, 0] + rows, firsts[tables, 1] + columns, starts[tables], sizes[tables]
        )

    def _indicators(self, codes: IntArray) -> npt.NDArray[np.float32]:
        # Sums in float32 are exact up to 2^24, far above the number of rows of a chunk.
        indicators = np.zeros((len(codes), sum(self.levels)), dtype=np.float32)
        np.put_along_axis(indicators, codes + self._first_levels, 1, axis=1)
        return indicators

    def _pair_counts(self, codes: IntArray) -> FloatArray:
        indicators = self._indicators(codes)
        return (indicators.T @ indicators)[self._pairs.first, self._pairs.second].astype(np.float64)

    def _triple_counts(self, codes: IntArray) -> FloatArray:
        """Tables (i, a, b) of one i follow each other; at a level of i, cells are as in (a, b)."""
        indicators, pairs = self._indicators(codes), self._pairs
        counts, start, known = np.empty(self.n_queries), 0, 0
        for i, levels in enumerate(self.levels[:-2]):
            # Skip the pairs that contain column i. The pairs of two later columns remain.
            known += levels * sum(self.levels[i + 1 :])
            offset = int(self._first_levels[i + 1])
            first, second = pairs.first[known:] - offset, pairs.second[known:] - offset
            sizes, starts = pairs.sizes[known:], pairs.starts[known:]
            places = start + levels * (starts - known) + np.arange(len(starts)) - (starts - known)
            for level in range(levels):
                own = indicators[codes[:, i] == level, offset:]
                counts[places + level * sizes] = (own.T @ own)[first, second]
            start += levels * len(starts)
        return counts

    def _interacting(self) -> Sequence[tuple[int, ...]]:
        columns = range(len(self.levels))
        return [S for order in range(1, self.k + 1) for S in itertools.combinations(columns, order)]
