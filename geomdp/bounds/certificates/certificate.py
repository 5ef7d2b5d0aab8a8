"""Certificates: proofs that together exclude every number of records up to the lower bound.

The bound sc > v is proved only if *every* n <= v is excluded. Packings of larger data sets exclude
larger numbers n, but no small n. A certificate may therefore need several steps, called rungs, and
each excludes a range of numbers n. The first range starts at 1, and no number between the ranges is
left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from geomdp._validation import require_type
from geomdp.bounds.bound import Bound, Side
from geomdp.bounds.certificates.files import write_certificate
from geomdp.bounds.certificates.problem import Problem, SideConditionError
from geomdp.bounds.certificates.rung import ExcludedRange, PackingFamily, rungs_of
from geomdp.bounds.metrics import MEAN_L2, Metric
from geomdp.bounds.rounding import rounded_up
from geomdp.privacy import Adjacency, Privacy, PureDP


@dataclass(frozen=True)
class Certificate:
    """Ranges that together exclude every number of records from 1 to `value`.

    Parameters
    ----------
    problem : Problem
        Privacy, error, metric and neighbour relation.
    rungs : tuple of Rung, LineRung, QueryLineRung or GuessRung
        The excluded ranges, in increasing order. In the order of the types, a rung uses a packing,
        orthogonal lines, lines along single queries, or elements with answers far apart.

    Examples
    --------
    >>> import geomdp as gd
    >>> bound = gd.bounds.marginal_bound(16, 1, epsilon=1.0, alpha=0.05)
    >>> bound.certificate
    Certificate(sc > 15, 1-DP (replace-one) and mean l2 error per query at most 0.05, 1 rungs)
    >>> bound.certificate.value
    15
    >>> [(rung.first, rung.last) for rung in bound.certificate.rungs]
    [(1, 15)]
    """

    problem: Problem
    rungs: tuple[ExcludedRange, ...]

    def __repr__(self) -> str:
        return f"Certificate(sc > {self.value}, {self.problem}, {len(self.rungs)} rungs)"

    @property
    def value(self) -> int:
        """Largest number of records excluded."""
        return self.rungs[-1].last

    def save(self, path: str | Path) -> None:
        """Write the certificate to a .json file at `path`, and large arrays to an .npz file.

        ``ValueError`` for numbers except 0 outside 1e-100 to 1e100, or whole numbers of 2^256 or
        more.
        """
        write_certificate(Path(path), self.document())

    def document(self) -> dict[str, Any]:
        """The certificate as written to a file: every constant, and the data of every rung."""
        problem = self.problem
        return {
            **_stated(problem.guarantee),
            "alpha": problem.alpha,
            "metric": problem.metric.name,
            "separation_factor": problem.metric.separation,
            "log_odds": problem.metric.log_odds,
            "required_separation": problem.required_separation,
            "adjacency": problem.adjacency.value,
            "lower_bound": self.value,
            "rungs": [rung.document(problem) for rung in self.rungs],
        }


def _stated(privacy: Privacy) -> dict[str, Any]:
    """The guarantee as written to a file: epsilon for pure privacy, else a name and parameters."""
    if isinstance(privacy, PureDP):
        return {"epsilon": privacy.epsilon}
    return {"privacy": {"definition": type(privacy).__name__, **privacy.parameters()}}


def cover(ranges: Iterable[ExcludedRange]) -> tuple[ExcludedRange, ...]:
    """The fewest ranges, chosen greedily, that exclude 1, ..., v for the largest possible v."""
    waiting = sorted(ranges, key=lambda part: part.first)
    reach = 0
    chosen: list[ExcludedRange] = []
    while True:
        best = max(
            (part for part in waiting if part.first <= reach + 1),
            key=lambda part: part.last,
            default=None,
        )
        if best is None or best.last <= reach:
            return tuple(chosen)
        chosen.append(best)
        reach = best.last


def covering_bound(
    ranges: Sequence[ExcludedRange], problem: Problem, reasons: Sequence[str] = ()
) -> Bound:
    """The lower bound that `ranges` prove; `reasons` say why other proofs exclude nothing."""
    chosen = cover(ranges)
    if not chosen:
        starts = [f"the excluded range starts at {part.first} records, not at 1" for part in ranges]
        raise SideConditionError(
            "; ".join(dict.fromkeys([*reasons, *starts])) or "no packing given"
        )
    failure = math.fsum(part.failure for part in chosen)
    if not failure < 1:
        raise SideConditionError(
            f"failure probabilities of a certificate must add up to less than 1, got {failure:.6g}"
        )
    certificate = Certificate(problem, chosen)
    statement = (
        f"no mechanism has {problem} with {certificate.value} records or fewer; with "
        f"{certificate.value} records, {chosen[-1].said}"
    )
    assumptions = dict.fromkeys(text for part in chosen for text in part.assumptions)
    if failure > max(part.failure for part in chosen):
        assumptions[f"together with probability at least 1 - {rounded_up(failure)}"] = None
    return Bound(certificate.value, Side.LOWER, statement, tuple(assumptions), certificate)


def certify(
    families: Iterable[PackingFamily],
    *,
    epsilon: float,
    alpha: float,
    metric: Metric = MEAN_L2,
    adjacency: Adjacency = Adjacency.REPLACE_ONE,
) -> Bound:
    """The lower bound that all the given packings prove together (JL-L6, JL-L7).

    Parameters
    ----------
    families : iterable of PackingFamily
        Packings for one workload. A packing that excludes nothing is left out.
    epsilon, alpha, metric, adjacency : as for `Problem`
        Privacy, error, how the error is measured, and the neighbour relation.

    Raises
    ------
    ValueError
        If a family is no packing or is for another workload, or a parameter is out of range.
    SideConditionError
        If not even one record is excluded; the message gives the reason for each packing. Also if
        the failure probabilities of the packings used add up to 1 or more.

    Examples
    --------
    Each element of the universe is a data set of one record. The answers of any two of these data
    sets are far apart:

    >>> import numpy as np
    >>> import textwrap
    >>> import geomdp as gd
    >>> workload = gd.workloads.Histogram(8)
    >>> packing = gd.bounds.single_elements(workload, np.arange(8), np.arange(8), "all elements")
    >>> bound = gd.bounds.certify([packing], epsilon=0.1, alpha=0.05)
    >>> bound
    Bound(sc > 47, 0 assumptions)
    >>> print(textwrap.fill(bound.statement, 80))
    no mechanism has 0.1-DP (replace-one) and mean l2 error per query at most 0.05
    with 47 records or fewer; with 47 records, there are 8 data sets, at most 19
    replacements apart, with answers at least 0.2021 apart
    """
    if not isinstance(families, Iterable):
        raise ValueError(f"families must be a list of packings, got {type(families).__name__}")
    families = tuple(families)
    for family in families:
        require_type(family, PackingFamily, "each of families")
        if family.subject != families[0].subject:
            raise ValueError(
                f"packings must be of one workload, got {families[0].subject} and {family.subject}"
            )
    problem = Problem(epsilon, alpha, metric, adjacency)
    rungs, reasons = rungs_of(families, problem)
    return covering_bound(rungs, problem, reasons)
