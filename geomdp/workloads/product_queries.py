"""Products of queries of columns: tables whose ordered columns are asked by prefixes or ranges."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

import numpy as np

from geomdp._numerics.linalg import RANK_TOLERANCE
from geomdp._typing import FloatArray
from geomdp._validation import batch, require_type
from geomdp.workloads.base import MAX_ENTRIES, Totals, Workload, WorkloadSizeError
from geomdp.workloads.explicit import LinearMap, explicit_answers
from geomdp.workloads.tables import ChosenTables, TableQueries
from geomdp.workloads.universes import FiniteUniverse, Records

#: Largest number of levels of a column that is asked by other queries than its levels.
MAX_LEVELS = 1 << 8


class ProductQueries(LinearMap):
    """Products of queries, one for each column of a table, for all tables: region by age prefixes.

    Each column of a table is asked by its levels or by other queries on its levels, such as all
    prefixes or all ranges. A table has one query for every choice of one query per column:
    q(x) = w_T product over its columns i of q_i(x_i), with the weight w_T of the table. If all
    columns are asked by their levels, these are the cells of `ChosenTables`.

    Tables are in the given order, and their columns in the order of `columns`. Products are in
    row-major order (the query of the last column changes fastest).

    Parameters
    ----------
    columns : mapping of column name to number of levels
        The columns of a record.
    tables : sequence of sequence of str
        The columns of each table, as for `ChosenTables`.
    queries : mapping of column name to Workload
        For a column of l <= 256 levels, a workload on {0, ..., l - 1}: `Prefixes`, `Ranges`, or
        `Explicit` for any rows. Some combination of its queries must be 1 at all levels, and not
        all queries may be constant. Columns that are not named are asked by their levels.
    weights : sequence of float, optional
        One positive weight per table; by default 1.

    Raises
    ------
    ValueError
        If a column, a table, a weight or the queries of a column are not as stated.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> workload = gd.workloads.ProductQueries(
    ...     {"smoker": 2, "age": 3}, [["smoker", "age"]], {"age": gd.workloads.Prefixes(3)}
    ... )
    >>> workload
    ProductQueries(1 table of 2 columns; 6 queries)
    >>> workload.labels()[:3]
    ['smoker=0,age[x<=0]', 'smoker=0,age[x<=1]', 'smoker=0,age[x<=2]']
    >>> workload.answers(np.array([[0, 1], [1, 0], [0, 0], [0, 2]]))
    array([0.25, 0.5 , 0.75, 0.25, 0.25, 0.25])
    """

    workload: ChosenTables

    def __init__(
        self,
        columns: Mapping[str, int],
        tables: Iterable[Sequence[str]],
        queries: Mapping[str, Workload],
        weights: Sequence[float] | None = None,
    ) -> None:
        self.workload = ChosenTables(columns, tables, weights)
        names = self.workload.universe.names
        require_type(queries, Mapping, "queries")
        for name in queries:
            if name not in names:
                raise ValueError(
                    f"queries must be for columns among {', '.join(names)}; got {name!r}"
                )
        #: The queries of each column, None for its levels.
        self.queries = tuple(queries.get(name) for name in names)
        #: The values (queries, levels) of the queries of each column, None for its levels.
        self.factors = tuple(
            None if asked is None else _factor(name, asked, levels)
            for name, asked, levels in zip(names, self.queries, self.workload.levels, strict=True)
        )

    def _summary(self) -> str:
        tables, columns = len(self.workload.tables), len(self.workload.levels)
        noun = "table" if tables == 1 else "tables"
        return f"{tables} {noun} of {columns} columns; {self.n_queries} queries"

    def shape(self, table: Sequence[int]) -> tuple[int, ...]:
        """Number of queries of each column of `table`, a sequence of column numbers."""
        found = ((self.factors[i], self.workload.levels[i]) for i in table)
        return tuple(levels if factor is None else len(factor) for factor, levels in found)

    @cached_property
    def slices(self) -> tuple[slice, ...]:
        """For each table, the slice of the queries that holds its products."""
        sizes = (math.prod(self.shape(table)) for table in self.workload.tables)
        ends = list(itertools.accumulate(sizes))
        return tuple(slice(a, b) for a, b in zip([0, *ends], ends, strict=False))

    @property
    def n_queries(self) -> int:
        return int(self.slices[-1].stop)

    @property
    def weights(self) -> FloatArray:
        """The weight (m,) of each query, that of its table."""
        sizes = [place.stop - place.start for place in self.slices]
        return np.repeat(self.workload.table_weights, sizes)

    def alone(self, tables: Sequence[Sequence[str]] | None = None) -> ProductQueries:
        """The same queries without weights, of all tables or of some."""
        own = self.workload.universe
        if tables is None:
            tables = [[own.names[i] for i in table] for table in self.workload.tables]
        columns = {name: own.columns[name] for name in own.names if any(name in t for t in tables)}
        asked = zip(own.names, self.queries, strict=True)
        queries = {name: each for name, each in asked if each is not None and name in columns}
        return ProductQueries(columns, tables, queries)

    @property
    def whole_answers(self) -> bool:
        """Whether all weights and all values of the queries of columns are whole numbers."""
        rows = [factor for factor in self.factors if factor is not None]
        return self.workload.whole_answers and all((row == np.rint(row)).all() for row in rows)

    @property
    def counts_records(self) -> bool:
        """Whether each answer is a share of the records: all values are 0 or 1, without weights."""
        rows = [factor for factor in self.factors if factor is not None]
        plain = bool((self.workload.table_weights == 1).all())
        return plain and all(np.isin(row, (0, 1)).all() for row in rows)

    @cached_property
    def matrix(self) -> FloatArray:  # type: ignore[override]
        """The map (m, cells) from all cells; `WorkloadSizeError` above 2^26 entries."""
        cells = self.workload.n_queries
        if self.n_queries * cells > MAX_ENTRIES:
            raise WorkloadSizeError(
                f"workload must have at most 2^26 pairs of a query and a cell for a dense matrix, "
                f"got {self.n_queries} times {cells}"
            )
        return self.of_cells(np.eye(cells)).T

    def of_cells(self, cells: FloatArray) -> FloatArray:
        """Answers (b, m) from the cells (b, cells) of all tables."""
        return self._mapped(cells, self.workload.slices, self.slices)

    def _mapped(
        self, values: FloatArray, sources: Sequence[slice], targets: Sequence[slice]
    ) -> FloatArray:
        """Multiply each table by the factors of its columns, or by their transposes."""
        forth = targets is self.slices
        found = np.empty((len(values), targets[-1].stop))
        for table, source, target in zip(self.workload.tables, sources, targets, strict=True):
            shape = self.workload.shape(table) if forth else self.shape(table)
            part = values[:, source].reshape(len(values), *shape)
            for axis, i in enumerate(table, start=1):
                factor = self.factors[i]
                if factor is not None:
                    part = along(factor if forth else factor.T, part, axis)
            found[:, target] = part.reshape(len(values), target.stop - target.start)
        return found

    def evaluate(self, records: Records) -> FloatArray:
        return self.of_cells(self.workload.evaluate(records))

    def totals(self, records: Records | Iterable[Records]) -> Totals:
        """Cells are counted, O(n) per table."""
        inner = self.workload.totals(records)
        return Totals(inner.count, self.of_cells(inner.sums[None])[0])

    def extreme_answers(self, directions: FloatArray) -> FloatArray:
        """As for `ChosenTables`, with the same limit on the number of elements."""
        return self.of_cells(self.workload.extreme_answers(self._on_cells(directions)))

    def breadth(self, directions: FloatArray) -> FloatArray:
        return self.workload.breadth(self._on_cells(directions))

    def _on_cells(self, directions: FloatArray) -> FloatArray:
        directions = batch(directions, self.n_queries, "directions")
        return self._mapped(directions, self.slices, self.workload.slices)

    @cached_property
    def _points(self) -> FloatArray | None:
        size = self.universe.size
        largest = max(self.n_queries, self.workload.n_queries)
        if size is None or size * largest > MAX_ENTRIES:
            return None
        return explicit_answers(self)

    @cached_property
    def _l2_diameter(self) -> float:
        """Of each table, at most the sum of the two largest lengths, or the root of their squares.

        The second holds if no query is negative, because no inner product is then.
        """
        if self._points is not None:
            return super()._l2_diameter
        positive = all(factor is None or factor.min() >= 0 for factor in self.factors)
        return math.sqrt(2.0 if positive else 4.0) * self._reach(2)

    @cached_property
    def _diameters(self) -> tuple[float, float]:
        if self._points is not None:
            return super()._diameters
        return 2 * self._radii[0], self._l2_diameter

    @cached_property
    def _radii(self) -> tuple[float, float]:
        if self._points is not None:
            return super()._radii
        return self._reach(1), self._reach(2)

    def _reach(self, order: int) -> float:
        """A bound on the norm of an answer vector: the largest norms of columns, multiplied."""
        largest = [
            1.0 if factor is None else float(np.linalg.norm(factor, order, axis=0).max())
            for factor in self.factors
        ]
        norms = [math.prod(largest[i] for i in table) for table in self.workload.tables]
        return float(np.linalg.norm(self.workload.table_weights * norms, order))

    def labels(self) -> list[str]:
        names = self.workload.universe.names
        own = [
            [f"{name}={a}" for a in range(levels)]
            if asked is None
            else [f"{name}[{label}]" for label in asked.labels()]
            for name, levels, asked in zip(names, self.workload.levels, self.queries, strict=True)
        ]
        return [
            ",".join(product)
            for table in self.workload.tables
            for product in itertools.product(*(own[i] for i in table))
        ]


def cells_of(workload: TableQueries | ProductQueries) -> TableQueries:
    """The tables whose cells determine the answers."""
    return workload.workload if isinstance(workload, ProductQueries) else workload


def along(matrix: FloatArray, values: FloatArray, axis: int) -> FloatArray:
    """The product of `matrix` with each vector along one axis of an array."""
    return np.moveaxis(np.tensordot(matrix, values, axes=(1, axis)), 0, axis)


def _factor(name: str, asked: Workload, levels: int) -> FloatArray:
    """The values (queries, levels) of the queries of a column, checked."""
    require_type(asked, Workload, f"queries of {name}")
    if asked.universe != FiniteUniverse(levels) or levels > MAX_LEVELS:
        raise ValueError(
            f"queries of {name} must be on its levels 0 to {levels - 1}, at most 256, got {asked!r}"
        )
    rows = explicit_answers(asked).T
    ones = np.ones(levels)
    solved = np.linalg.lstsq(rows.T, ones, rcond=RANK_TOLERANCE)[0]
    if np.abs(solved @ rows - ones).max() > RANK_TOLERANCE * levels:
        raise ValueError(
            f"queries of {name} must have a combination that is 1 at all levels, got {asked!r}"
        )
    if levels > 1 and np.ptp(rows, axis=1).max() == 0:
        raise ValueError(f"queries of {name} must not all be constant, got {asked!r}")
    return np.ascontiguousarray(rows)
