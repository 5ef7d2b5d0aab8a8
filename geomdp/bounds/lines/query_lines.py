"""Lower bound on the largest error over the queries, from lines along single queries.

`geomdp.bounds.checker.query_lines` has the proof and the notation. C grows like ln(g) / epsilon for
large T, unlike the bounds of `orthogonal_lines` for root mean squares. For small epsilon b, large T
and a smooth prior that is small at both ends, C is close to delta (1 + 1/2 + ... + 1/g) / epsilon:
the expected largest absolute value of g independent Laplace variables of scale delta / epsilon.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from geomdp._typing import FloatArray, IntArray
from geomdp._validation import require_type, whole, whole_array
from geomdp.bounds.certificates.problem import Problem
from geomdp.bounds.certificates.rung import ExcludedRange
from geomdp.bounds.certificates.workloads import (
    bounded_answers,
    element_rows,
    listing_document,
)
from geomdp.bounds.rounding import rounded_down
from geomdp.workloads import Workload

#: Relative margin by which C is rounded down. The rounding errors of p(m) are below
#: (T + epsilon b T) 2^-51.
MARGIN = 1e-10


@dataclass(frozen=True, eq=False)
class QueryLines:
    """Pairs of elements that differ in their own query and agree in the queries of earlier pairs.

    Data sets of n >= b g T records with b t_j copies of x_j and b (T - t_j) of x'_j, 0 <= t_j <= T,
    prove an expected largest error of at least C / n on one of them, where
    C = (b delta / 2) sum_{m=1}^T (1 - (1 - p(m))^g). The least difference `length` is delta, and
    p(m) bounds the probability from below that t_j is outside m consecutive numbers chosen from a
    private output.

    Parameters
    ----------
    workload : Workload
        The workload Q, with k queries.
    elements : (E, ...) array
        Records of the workload's universe.
    pairs : (g, 2) array of int
        Row numbers of `elements`: x_j and x'_j in row j. Both must answer q_j differently, and the
        queries of earlier pairs equally.
    queries : (g,) array of int
        The numbers of the queries q_1, ..., q_g.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> lines = gd.bounds.QueryLines(
    ...     gd.workloads.Prefixes(4),
    ...     elements=np.arange(4),
    ...     pairs=np.array([[0, 1], [1, 2], [2, 3]]),
    ...     queries=np.array([0, 1, 2]),
    ... )
    >>> lines
    QueryLines(Prefixes(N=4), 3 pairs)
    >>> lines.length
    1.0
    """

    workload: Workload
    elements: npt.NDArray[Any]
    pairs: IntArray
    queries: IntArray

    def __post_init__(self) -> None:
        require_type(self.workload, Workload, "workload")
        elements = self.workload.universe.validate(self.elements)
        pairs = element_rows(self.pairs, len(elements), "pairs")
        if pairs.shape[1] != 2:
            raise ValueError(f"pairs must have shape (g, 2), got {pairs.shape}")
        queries, k = whole_array(self.queries, "queries", ndim=1), self.workload.n_queries
        if queries.shape != (len(pairs),) or queries.min() < 0 or queries.max() >= k:
            raise ValueError(
                f"queries must be {len(pairs)} numbers from 0 to {k - 1}, got {self.queries!r}"
            )
        for name, value in (("elements", elements), ("pairs", pairs), ("queries", queries)):
            object.__setattr__(self, name, value)
        changes = self._changes
        if not (np.diag(changes) != 0).all():
            raise ValueError("pairs must have different answers to their own query")
        if np.tril(changes, -1).any():
            raise ValueError("pairs must have the same answers to the queries of earlier pairs")

    def __repr__(self) -> str:
        return f"QueryLines({self.workload!r}, {len(self.pairs)} pairs)"

    @cached_property
    def answers(self) -> FloatArray:
        """Answers of the elements to all queries, an array of shape (E, k)."""
        return bounded_answers(self.workload, self.elements)

    @property
    def _changes(self) -> FloatArray:
        """Entry (i, j): the difference of the answers of pair i to the query of pair j."""
        chosen = self.answers[:, self.queries]
        return np.asarray(chosen[self.pairs[:, 0]] - chosen[self.pairs[:, 1]])

    @cached_property
    def length(self) -> float:
        """delta: the least difference of the answers of a pair to its own query."""
        return float(np.abs(np.diag(self._changes)).min())

    def last(self, count: int) -> QueryLines:
        """The last `count` pairs."""
        count = whole(count, "count", maximum=len(self.pairs))
        used, rows = np.unique(self.pairs[-count:], return_inverse=True)
        pairs = rows.reshape(count, 2)
        return QueryLines(self.workload, self.elements[used], pairs, self.queries[-count:])

    def document(self) -> dict[str, Any]:
        """The lines as written to a certificate file."""
        return {
            "type": "query lines",
            **listing_document(self.workload, self.elements, self.answers),
            "pairs": self.pairs,
            "queries": self.queries,
        }


@dataclass(frozen=True, eq=False)
class QueryLinePlan:
    """T steps of b = `copies` records on all lines, their `prior` (T + 1,), and C, rounded down."""

    lines: QueryLines
    steps: int
    copies: int
    prior: FloatArray
    scale: float

    @property
    def records(self) -> int:
        """b g T, the least number of records that the data sets need."""
        return self.copies * self.steps * len(self.lines.pairs)


@dataclass(frozen=True, eq=False)
class QueryLineRung(ExcludedRange):
    """One rung of a certificate: the values of n for which query lines exclude an error.

    Parameters
    ----------
    first, last : int
        Least and largest number of records for which the error is excluded.
    plan : QueryLinePlan
        The lines and the steps on them.

    Examples
    --------
    >>> import textwrap
    >>> import geomdp as gd
    >>> bound = gd.bounds.query_lines_bound(gd.workloads.Prefixes(32), epsilon=1.0, alpha=0.003)
    >>> rung = bound.certificate.rungs[-1]
    >>> print(textwrap.fill(rung.said, 80))
    the error is at least 0.003001 on some data set of 31 lines for one query each,
    of 32 steps of 1 replacements
    """

    plan: QueryLinePlan

    def __repr__(self) -> str:
        return f"QueryLineRung({self.first} <= n <= {self.last}, {self.plan.lines!r})"

    @property
    def said(self) -> str:
        plan, error = self.plan, rounded_down(self.plan.scale / self.last, 4)
        return (
            f"the error is at least {error} on some data set of {len(plan.lines.pairs)} lines for "
            f"one query each, of {plan.steps} steps of {plan.copies} replacements"
        )

    def document(self, problem: Problem) -> dict[str, Any]:
        del problem
        return {
            "copies": self.plan.copies,
            "steps": self.plan.steps,
            "scale": self.plan.scale,
            "first": self.first,
            "last": self.last,
            "assumptions": [],
            "prior": self.plan.prior,
            "family": self.plan.lines.document(),
        }
