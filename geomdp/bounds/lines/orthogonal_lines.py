"""Data sets on orthogonal lines: a private estimation of one number in each of many directions.

Take i pairs of elements (x_j, x'_j) with answer differences w_j = Q(x_j) - Q(x'_j), orthonormal
vectors u_1..u_i with delta_j = <u_j, w_j>, numbers of steps T_1..T_i and a number of copies b. For
0 <= t_j <= T_j let X(t) hold b t_j copies of x_j and b (T_j - t_j) copies of x'_j for every j, and
a fixed element up to n >= b sum_j T_j. Then n Q(X(t)) = constant + b sum_j t_j w_j.

Fix all t_l but t_j. For any mechanism M, subtract from n <u_j, M(X(t))> the part that t_j does not
change: the rest estimates b t_j delta_j, and data sets of t_j and t_j + 1 are b replacements apart.
With independent priors on the t_j, `private_line` bounds the error of this estimate from below by
lambda_j, whatever the other t_l are. The errors of orthogonal directions add up:

    max_X E ||n (M(X) - Q(X))||_2^2  >=  b^2 sum_j lambda_j delta_j^2              (p = 2),
    max_X E ||n (M(X) - Q(X))||_2    >=  b (sum_j (lambda_j delta_j)^2)^(1/2)      (p = 1),

the second because ||e||_2 >= sum_j a_j |<u_j, e>| for every a of norm 1, in particular for a_j
proportional to lambda_j delta_j. As ||e||_inf >= ||e||_2 / sqrt(k), it bounds the largest error
too. Let C be the right-hand side (its root for p = 2) over sqrt(k). No epsilon-DP mechanism has
error below C / n for data sets of n >= b sum_j T_j records, so an error alpha is excluded from
b sum_j T_j to C / alpha records.

The frame u is the polar factor of W D, W = (w_1, ..., w_i) and D = diag(weights): with
S = (D W^T W D)^(1/2), U^T W D = S, so delta_j = S_jj / D_jj. Only inner products of answers enter.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from geomdp._typing import FloatArray, IntArray
from geomdp._validation import finite_array, whole
from geomdp.bounds.certificates.problem import Problem
from geomdp.bounds.certificates.rung import ExcludedRange
from geomdp.bounds.certificates.workloads import (
    bounded_answers,
    element_rows,
    listing_document,
)
from geomdp.bounds.lines.bayes_risk import PrivateLine, private_line
from geomdp.bounds.rounding import rounded_down
from geomdp.workloads import Workload

#: Eigenvalues of D W^T W D below this share of the largest count as 0, which lowers S. Above it,
#: roundings of 2^-52 of the largest move the root by less than `LENGTH_MARGIN`.
LEAST_EIGENVALUE = 1e-9
#: Relative margin by which C is rounded down.
LENGTH_MARGIN = 5e-10


@dataclass(frozen=True, eq=False)
class OrthogonalLines:
    """Pairs of elements, and the weights of their frame.

    Parameters
    ----------
    workload : Workload
        Q, with k queries.
    elements : (E, ...) array
        Records of the workload's universe.
    pairs : (i, 2) array of int
        Rows of `elements`, i at most k.
    weights : (i,) array
        D, above 0.

    Raises
    ------
    ValueError
        For records outside the universe, rows out of range, more pairs than queries, or weights
        that are not above 0.

    Notes
    -----
    O(i^2 k + i^3).
    """

    workload: Workload
    elements: npt.NDArray[Any]
    pairs: IntArray
    weights: FloatArray

    def __post_init__(self) -> None:
        elements = self.workload.universe.validate(self.elements)
        pairs = element_rows(self.pairs, len(elements), "pairs")
        if pairs.shape[1] != 2:
            raise ValueError(f"pairs must have shape (i, 2), got {pairs.shape}")
        whole(len(pairs), "number of pairs", maximum=self.workload.n_queries)
        weights = finite_array(self.weights, "weights", ndim=1)
        if weights.shape != (len(pairs),) or not weights.min() > 0:
            raise ValueError(f"weights must be {len(pairs)} numbers above 0, got {weights}")
        for name, value in (("elements", elements), ("pairs", pairs), ("weights", weights)):
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        return f"OrthogonalLines({self.workload!r}, {len(self.pairs)} pairs)"

    @cached_property
    def answers(self) -> FloatArray:
        """Answer vectors of the elements: (E, k)."""
        return bounded_answers(self.workload, self.elements)

    @cached_property
    def lengths(self) -> FloatArray:
        """delta_1, ..., delta_i, up to rounding."""
        differences = self.answers[self.pairs[:, 0]] - self.answers[self.pairs[:, 1]]
        weights = self.weights / self.weights.max()
        gram = differences @ differences.T
        values, vectors = np.linalg.eigh(gram * np.outer(weights, weights))
        kept = values > LEAST_EIGENVALUE * values[-1]
        inverse_root = (vectors[:, kept] / np.sqrt(values[kept])) @ vectors[:, kept].T
        # <u_j, w_j> from u = W D S^-1. S_jj / D_jj would amplify rounding where D_jj is tiny.
        return np.asarray(np.abs(((inverse_root * weights) * gram).sum(axis=1)))

    def document(self) -> dict[str, Any]:
        """The lines as written to a certificate file."""
        used, rows = np.unique(self.pairs, return_inverse=True)
        return {
            "type": "orthogonal lines",
            **listing_document(self.workload, self.elements[used], self.answers[used]),
            "pairs": rows.reshape(self.pairs.shape),
            "weights": self.weights,
        }


@dataclass(frozen=True, eq=False)
class LinePlan:
    """Numbers of steps on orthogonal lines, and the errors that they exclude.

    Parameters
    ----------
    lines : OrthogonalLines
        i pairs.
    steps : (i,) array of int
        T_1, ..., T_i.
    copies : int
        Records b exchanged in one step.
    known : tuple of PrivateLine
        The bound for each different number of steps, fewest first.
    scale : float
        C, rounded down: the error that is excluded with n records is C / n.
    """

    lines: OrthogonalLines
    steps: IntArray
    copies: int
    known: tuple[PrivateLine, ...]
    scale: float

    @property
    def records(self) -> int:
        """b sum_j T_j, the least number of records of a data set."""
        return self.copies * int(self.steps.sum())


@dataclass(frozen=True, eq=False)
class LineRung(ExcludedRange):
    """The numbers of records that data sets on orthogonal lines exclude.

    Parameters
    ----------
    first, last : int
        Least and largest number of records excluded.
    plan : LinePlan
        The lines and the steps on them.
    """

    plan: LinePlan

    def __repr__(self) -> str:
        return f"LineRung({self.first} <= n <= {self.last}, {self.plan.lines!r})"

    @property
    def said(self) -> str:
        """How many lines, and the error that every mechanism has on one of their data sets."""
        steps, error = self.plan.steps, rounded_down(self.plan.scale / self.last, 4)
        return (
            f"data sets on {len(steps)} orthogonal lines, up to {steps.max()} steps of "
            f"{self.plan.copies} replacements long, leave an error of {error}"
        )

    def document(self, problem: Problem) -> dict[str, Any]:
        """The step as written to a certificate file: its constants, and the lines in full."""
        del problem
        return {
            "copies": self.plan.copies,
            "scale": self.plan.scale,
            "first": self.first,
            "last": self.last,
            "assumptions": [],
            "steps": self.plan.steps,
            "known": [
                {"spacing": line.spacing, "risk": line.risk, "prior": np.array(line.prior)}
                for line in self.plan.known
            ],
            "family": self.plan.lines.document(),
        }


def line_plan(
    lines: OrthogonalLines, steps: IntArray, copies: int, epsilon: float, power: int
) -> LinePlan:
    """The plan of T_j = `steps` (i,) with b = `copies` on each line.

    `epsilon` is the privacy loss of one replaced record, and `power` the moment p of the error.
    """
    different, which = np.unique(steps, return_inverse=True)
    known = tuple(private_line(count, epsilon * copies, power) for count in different.tolist())
    risks = np.array([line.risk for line in known])[which]
    squares = float((lines.lengths**2 * risks ** (2 / power)).sum())
    scale = copies * math.sqrt(squares / lines.workload.n_queries) * (1 - LENGTH_MARGIN)
    return LinePlan(lines, steps, copies, known, scale)


def line_rung(plan: LinePlan, alpha: float) -> LineRung | None:
    """The numbers of records at which a plan excludes the error `alpha`; None if there are none."""
    last = math.floor(plan.scale / alpha)
    return LineRung(plan.records, last, plan) if last >= plan.records else None
