"""Chosen marginal tables of categorical columns. Each table has its own columns and a weight."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from geomdp._typing import FloatArray
from geomdp._validation import listed, positive
from geomdp.workloads.table_queries import TableQueries
from geomdp.workloads.universe.universes import CategoricalProduct


class ChosenTables(TableQueries):
    """Weighted cells of chosen tables: q_(T,a)(x) = w_T 1[x_T = a] for all level codes a.

    x_T are the codes of x in the columns of the table T, and w_T is its weight. Mechanisms keep the
    error of the weighted cells small, so tables of larger weight become more accurate. Divide their
    answers by the weight to get shares of records.

    Tables are in the given order, and their columns in the order of `columns`. Cells are in
    row-major order (the last column changes fastest). For all tables of k columns with equal
    weights, use `MarginalTables`, because more mechanisms accept it.

    Parameters
    ----------
    columns : mapping of column name to number of levels
        The columns of a record.
    tables : sequence of sequence of str
        The columns of each table: at least one table, none empty, and no two with the same set of
        columns.
    weights : sequence of float, optional
        One positive weight per table; by default 1. For whole weights, sums over records are whole.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> workload = gd.workloads.ChosenTables(
    ...     {"region": 3, "smoker": 2}, [["region"], ["region", "smoker"]], weights=[2, 1]
    ... )
    >>> workload
    ChosenTables(2 tables of 2 columns; 9 queries)
    >>> workload.answers(np.array([[0, 1], [2, 0]]))
    array([1. , 0. , 1. , 0. , 0.5, 0. , 0. , 0.5, 0. ])
    """

    def __init__(
        self,
        columns: Mapping[str, int],
        tables: Iterable[Sequence[str]],
        weights: Sequence[float] | None = None,
    ) -> None:
        self._universe = CategoricalProduct(columns)
        self.levels = self._universe.levels
        self._tables = tuple(
            _table_numbers(self._universe.names, table) for table in listed(tables, "tables")
        )
        if not self._tables:
            raise ValueError("tables must hold at least 1 table, got 0")
        for table in self._tables:
            if self._tables.count(table) > 1:
                names = [self._universe.names[i] for i in table]
                raise ValueError(f"tables must differ; the table {names} occurs more than once")
        self._table_weights = _checked_weights(weights, len(self._tables))

    def _summary(self) -> str:
        return f"{len(self.tables)} tables of {len(self.levels)} columns; {self.n_queries} queries"

    @property
    def universe(self) -> CategoricalProduct:
        return self._universe

    @property
    def tables(self) -> tuple[tuple[int, ...], ...]:
        return self._tables

    @property
    def table_weights(self) -> FloatArray:
        return self._table_weights

    @property
    def whole_answers(self) -> bool:
        """Whether all weights are whole numbers. Each answer of a record is 0 or a weight."""
        return bool((self.table_weights == np.rint(self.table_weights)).all())


def _table_numbers(names: Sequence[str], table: Sequence[str]) -> tuple[int, ...]:
    if isinstance(table, str) or not isinstance(table, Sequence) or not table:
        raise ValueError(f"a table must be a list of at least 1 column, got {table!r}")
    for name in table:
        if name not in names:
            raise ValueError(f"a table must have columns among {', '.join(names)}; got {name!r}")
    if len(set(table)) < len(table):
        raise ValueError(f"a table must not name a column twice, got {list(table)}")
    return tuple(sorted(names.index(name) for name in table))


def _checked_weights(weights: Sequence[float] | None, count: int) -> FloatArray:
    if weights is None:
        return np.ones(count)
    weights = listed(weights, "weights")
    if len(weights) != count:
        raise ValueError(f"weights must have {count} entries, one per table, got {len(weights)}")
    return np.array([positive(weight, "weights") for weight in weights])
