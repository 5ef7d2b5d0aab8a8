"""A workload of sparse queries on an open universe."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from functools import cached_property
from typing import cast

import numpy as np
import scipy.sparse as sp

from geomdp._typing import FloatArray, IntArray
from geomdp._validation import listed
from geomdp.workloads.base import Totals
from geomdp.workloads.explicit import Explicit, ListedAnswers
from geomdp.workloads.single_queries.single_query import SparseQuery
from geomdp.workloads.universe.open_universe import Elements, OpenUniverse
from geomdp.workloads.universe.records import Records

#: Number of records counted at a time.
COUNT_ROWS = 1 << 16


class SparseQueries(ListedAnswers):
    """A list of m sparse queries on the open universe of all hashable elements.

    For u elements in the union of the supports, `explicit` has these and one more for all others,
    where Q(x) = 0. It costs O(sum of sparsities) memory and time.

    Parameters
    ----------
    queries : iterable of SparseQuery
        At least one.

    Examples
    --------
    >>> import geomdp as gd
    >>> count = gd.workloads.SparseQuery.counting
    >>> workload = gd.workloads.SparseQueries([count(["north"]), count(["north", "south"])])
    >>> workload.answers(["north", "south", "west", "north"])
    array([0.5 , 0.75])
    """

    def __init__(self, queries: Iterable[SparseQuery]) -> None:
        given: tuple[object, ...] = listed(queries, "queries")
        if not given:
            raise ValueError("queries must hold at least 1 query, got 0")
        for position, query in enumerate(given):
            if not isinstance(query, SparseQuery):  # a mapping, for example
                kind = type(query).__name__
                raise ValueError(f"queries must be SparseQuery, number {position} is a {kind}")
        self.queries = tuple(query for query in given if isinstance(query, SparseQuery))
        elements = dict.fromkeys(x for query in self.queries for x in query.support)
        self._number_of = {element: number for number, element in enumerate(elements)}

    def _summary(self) -> str:
        return f"{self.n_queries} queries on {len(self._number_of)} listed elements"

    @property
    def universe(self) -> OpenUniverse:
        return OpenUniverse()

    @property
    def n_queries(self) -> int:
        return len(self.queries)

    @property
    def support(self) -> tuple[Hashable, ...]:
        """The union of the supports: u elements, in the order in which they are first listed."""
        return tuple(self._number_of)

    @cached_property
    def explicit(self) -> Explicit:
        """These queries on {0, ..., u}: elements 0 to u - 1 stand for `support`, and Q(u) = 0."""
        columns = [self._number_of[x] for query in self.queries for x in query.support]
        rows = np.repeat(np.arange(self.n_queries), [query.sparsity for query in self.queries])
        values = np.concatenate([query.values for query in self.queries])
        shape = self.n_queries, len(self._number_of) + 1
        return Explicit(sp.coo_array((values, (rows, columns)), shape=shape))

    def _codes(self, elements: Sequence[Hashable]) -> IntArray:
        """Element numbers in `explicit`; u for every element that no query lists."""
        other = len(self._number_of)
        find = self._number_of.get
        return np.array([find(element, other) for element in elements], dtype=np.int64)

    def evaluate(self, records: Elements) -> FloatArray:
        return self.explicit.evaluate(self._codes(self.universe.validate(records).tolist()))

    def totals(self, records: Elements) -> Totals:
        counts = np.zeros(len(self._number_of) + 1, dtype=np.int64)
        for chunk in self.universe.chunks(records, COUNT_ROWS):
            counts += np.bincount(self._codes(chunk.tolist()), minlength=len(counts))
        sums = self.explicit.matrix @ counts.astype(np.float64)
        return Totals(int(counts.sum()), np.asarray(sums))

    def answers(self, records: Elements) -> FloatArray:
        return super().answers(cast("Records", records))  # `totals` takes any elements
