"""Data sets on orthogonal lines: in each of many directions, a mechanism must estimate one number.

`geomdp.bounds.checker.lines` has the proof and the notation; `known_risk` proves the numbers
lambda_j. The frame U = (u_1, ..., u_i) is the polar factor of W D, for W = (w_1, ..., w_i) and a
diagonal matrix D of weights above 0. With S = (D W^T W D)^(1/2), U^T W D = S gives
delta_j = S_jj / D_jj, so only inner products of answers are needed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from geomdp._typing import FloatArray, IntArray
from geomdp._validation import finite_array, require_type, whole
from geomdp.bounds.certificates.problem import Problem
from geomdp.bounds.certificates.rung import ExcludedRange
from geomdp.bounds.certificates.workloads import (
    bounded_answers,
    element_rows,
    listing_document,
)
from geomdp.bounds.lines.risks import Accuracy, LineRisk
from geomdp.bounds.rounding import rounded_down
from geomdp.workloads import Workload

#: Eigenvalues of D W^T W D below this share of the largest eigenvalue are set to 0, which lowers S.
#: Rounding changes an eigenvalue by about 2^-52 times the largest eigenvalue. The root of an
#: eigenvalue that is kept then changes by less than `LENGTH_MARGIN` times the largest root.
LEAST_EIGENVALUE = 1e-9
#: Relative margin by which C is rounded down.
LENGTH_MARGIN = 5e-10


@dataclass(frozen=True, eq=False)
class OrthogonalLines:
    """Pairs of elements with answers that differ along orthogonal directions.

    Let w_j = Q(x_j) - Q(x'_j), and let u_j be the columns of the polar factor of W D for
    W = (w_1, ..., w_i). With T_j steps of b copies on line j, data sets of n >= b sum_j T_j records
    prove an error of at least C / n on one of them. For risks lambda_j of the steps and
    delta_j = <u_j, w_j>, C is b (sum_j lambda_j^(2/p) delta_j^2 / k)^(1/2): p = 2 for `RMS`, else
    1. For k' queries, k' replaces k. Cost: O(i^2 k + i^3) for `lengths`.

    Parameters
    ----------
    workload : Workload
        The workload Q, with k queries.
    elements : (E, ...) array
        Records of the workload's universe.
    pairs : (i, 2) array of int
        Row numbers of `elements`: x_j and x'_j in row j. The number i of pairs is at most k, and at
        most k' if `queries` is given.
    weights : (i,) array
        The diagonal of D, above 0.
    queries : (k',) array of int, optional
        Numbers of the queries whose errors are bounded, in increasing order; by default all. With
        fewer than k queries, only the largest error over the queries is bounded.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> lines = gd.bounds.OrthogonalLines(
    ...     gd.workloads.Marginals(4, 1),
    ...     elements=np.array([[0, 0, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1]]),
    ...     pairs=np.array([[0, 1], [0, 2]]),
    ...     weights=np.ones(2),
    ... )
    >>> lines
    OrthogonalLines(Marginals(d=4, k=1), 2 pairs)
    >>> np.round(lines.lengths, 4)
    array([1.4142, 1.4142])
    """

    workload: Workload
    elements: npt.NDArray[Any]
    pairs: IntArray
    weights: FloatArray
    queries: IntArray | None = None

    def __post_init__(self) -> None:
        require_type(self.workload, Workload, "workload")
        elements = self.workload.universe.validate(self.elements)
        pairs = element_rows(self.pairs, len(elements), "pairs")
        if pairs.shape[1] != 2:
            raise ValueError(f"pairs must have shape (i, 2), got {pairs.shape}")
        object.__setattr__(self, "queries", self._checked_queries())
        whole(len(pairs), "number of pairs", maximum=self.count)
        weights = finite_array(self.weights, "weights", ndim=1)
        if weights.shape != (len(pairs),) or not weights.min() > 0:
            raise ValueError(f"weights must be {len(pairs)} numbers above 0, got {weights}")
        for name, value in (("elements", elements), ("pairs", pairs), ("weights", weights)):
            object.__setattr__(self, name, value)

    def _checked_queries(self) -> IntArray | None:
        """The numbers of the queries; None for all of them."""
        if self.queries is None:
            return None
        k, queries = self.workload.n_queries, np.asarray(self.queries)
        known = queries.ndim == 1 and queries.dtype.kind in "iu" and len(queries) > 0
        if not (known and queries[0] >= 0 and queries[-1] < k and (np.diff(queries) > 0).all()):
            raise ValueError(
                f"queries must be increasing whole numbers from 0 to {k - 1}, got {self.queries!r}"
            )
        return None if len(queries) == k else queries

    def __repr__(self) -> str:
        some = "" if self.queries is None else f" for {self.count} queries"
        return f"OrthogonalLines({self.workload!r}, {len(self.pairs)} pairs{some})"

    @property
    def count(self) -> int:
        """Number of queries whose errors are bounded."""
        return self.workload.n_queries if self.queries is None else len(self.queries)

    @cached_property
    def answers(self) -> FloatArray:
        """Answers of the elements to all queries: (E, k)."""
        return bounded_answers(self.workload, self.elements)

    @cached_property
    def lengths(self) -> FloatArray:
        """delta_1, ..., delta_i: lengths of the answer differences along the directions."""
        answers = self.answers if self.queries is None else self.answers[:, self.queries]
        differences = answers[self.pairs[:, 0]] - answers[self.pairs[:, 1]]
        # In units of the largest difference, products of differences are in the range of float64.
        unit = float(np.abs(differences).max())
        if unit == 0:
            return np.zeros(len(differences))
        differences /= unit
        weights = self.weights / self.weights.max()
        gram = differences @ differences.T
        values, vectors = np.linalg.eigh(gram * np.outer(weights, weights))
        kept = values > LEAST_EIGENVALUE * values[-1]
        inverse_root = (vectors[:, kept] / np.sqrt(values[kept])) @ vectors[:, kept].T
        # Compute <u_j, w_j> from U = W D S^-1. The ratio S_jj / D_jj is the same number, but the
        # division would amplify rounding errors for a tiny D_jj.
        return np.asarray(unit * np.abs(((inverse_root * weights) * gram).sum(axis=1)))

    def document(self) -> dict[str, Any]:
        """The lines as written to a certificate file."""
        used, rows = np.unique(self.pairs, return_inverse=True)
        some = {} if self.queries is None else {"queries": self.queries}
        return {
            "type": "orthogonal lines",
            **some,
            **listing_document(self.workload, self.elements[used], self.answers[used]),
            "pairs": rows.reshape(self.pairs.shape),
            "weights": self.weights,
        }


@dataclass(frozen=True, eq=False)
class LinePlan:
    """Steps (i,) of b = `copies` records on lines, and C of the bound (`scale`, rounded down)."""

    lines: OrthogonalLines
    steps: IntArray
    copies: int
    #: A risk for each different number of steps, in increasing order of these numbers.
    known: tuple[LineRisk, ...]
    scale: float

    @property
    def records(self) -> int:
        """b sum_j T_j, the least number of records that the data sets need."""
        return self.copies * int(self.steps.sum())


@dataclass(frozen=True, eq=False)
class LineRung(ExcludedRange):
    """One rung of a certificate: the values of n for which orthogonal lines exclude an error.

    Parameters
    ----------
    first, last : int
        Least and largest number of records excluded.
    plan : LinePlan
        The lines and the steps on them.

    Examples
    --------
    >>> import textwrap
    >>> import geomdp as gd
    >>> bound = gd.bounds.orthogonal_lines_bound(gd.workloads.Histogram(4), epsilon=0.1, alpha=0.02)
    >>> rung = bound.certificate.rungs[0]
    >>> rung.first, rung.last
    (1, 16)
    >>> print(textwrap.fill(rung.said, 80))
    the error is at least 0.02099 on some data set of 1 orthogonal lines, each of at
    most 1 steps of 1 replacements
    """

    plan: LinePlan

    def __repr__(self) -> str:
        return f"LineRung({self.first} <= n <= {self.last}, {self.plan.lines!r})"

    @property
    def said(self) -> str:
        steps, error = self.plan.steps, rounded_down(self.plan.scale / self.last, 4)
        return (
            f"the error is at least {error} on some data set of {len(steps)} orthogonal lines, "
            f"each of at most {steps.max()} steps of {self.plan.copies} replacements"
        )

    def document(self, problem: Problem) -> dict[str, Any]:
        del problem
        return {
            "copies": self.plan.copies,
            "scale": self.plan.scale,
            "first": self.first,
            "last": self.last,
            "assumptions": [],
            "steps": self.plan.steps,
            "known": [line.document() for line in self.plan.known],
            "family": self.plan.lines.document(),
        }


def line_plan(lines: OrthogonalLines, steps: IntArray, copies: int, asked: Accuracy) -> LinePlan:
    """The plan with steps T_j in `steps` (i,); fewer than k queries need the largest error."""
    assert asked.largest or lines.queries is None
    different, which = np.unique(steps, return_inverse=True)
    known = tuple(asked.risk(count, copies) for count in different.tolist())
    risks = np.array([line.risk for line in known])[which]
    squares = float((lines.lengths**2 * risks ** (2 / asked.moment)).sum())
    scale = copies * math.sqrt(squares / lines.count) * (1 - LENGTH_MARGIN)
    return LinePlan(lines, steps, copies, known, scale)


def line_rung(plan: LinePlan, alpha: float) -> LineRung | None:
    """The values of n for which a plan excludes the error `alpha`; None if there are none."""
    last = math.floor(plan.scale / alpha)
    return LineRung(plan.records, last, plan) if last >= plan.records else None
