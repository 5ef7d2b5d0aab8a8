"""Lower bounds from the average error over elements far apart, without Markov's inequality.

`geomdp.bounds.checker.guesses` has the argument, its notation and the proofs. `separated_elements`
uses the geometry of Euclidean space, and `distant_elements` distances alone, in any norm.

References
----------
The packings are those of Hardt-Talwar 2010 and formula sheet JL-L6; their Bayes risk is bounded
directly.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy.typing as npt

from geomdp.bounds.bound import Bound
from geomdp.bounds.certificates.certificate import covering_bound
from geomdp.bounds.certificates.problem import Problem
from geomdp.bounds.certificates.rung import ExcludedRange, without_dominated
from geomdp.bounds.certificates.workloads import bounded_answers, listing_document
from geomdp.bounds.metrics import MEAN_L2, Metric
from geomdp.bounds.packings.distant_elements import distant_elements
from geomdp.bounds.packings.separated_elements import separated_elements
from geomdp.bounds.rounding import rounded_down
from geomdp.privacy import Adjacency
from geomdp.workloads import Workload

#: Ratio of successive numbers t of copies that are tried, from t = 20 on.
COPIES_RATIO = 1.05
#: Largest R / M that is tried for several copies. For larger R, t lambda decreases as t grows,
#: unless the least distance of two answers limits lambda.
MOST_ODDS = 16.0
#: Largest privacy loss epsilon t of all copies together. Its exponential does not overflow float64.
MOST_LOSS = 600.0
#: Relative margin by which t lambda is rounded down.
MARGIN = 1e-10


class GuessedElements(Protocol):
    """Elements with a proved lower bound on the average error of every estimate."""

    @property
    def workload(self) -> Workload:
        """The workload Q."""

    @property
    def elements(self) -> npt.NDArray[Any]:
        """The M elements x_i along the first axis; they are records of the workload's universe."""

    def risk(self, log_ratio: float) -> float:
        """The number lambda for R = e^`log_ratio`."""

    def constants(self) -> dict[str, Any]:
        """The numbers that `risk` uses, as written to a certificate file."""

    def document(self) -> dict[str, Any]:
        """Further entries of a certificate file, besides the elements or their answers."""


@dataclass(frozen=True, eq=False)
class GuessRung(ExcludedRange):
    """One step of a certificate: the values of n for which separated elements exclude an error.

    Parameters
    ----------
    first, last : int
        Least and largest number of records excluded; `first` is the number of copies t.
    packed : SeparatedElements or DistantElements
        The elements.
    scale : float
        t lambda, rounded down. With n records, every error below t lambda / n is excluded.

    Examples
    --------
    >>> import textwrap
    >>> import geomdp as gd
    >>> bound = gd.bounds.guessing_bound(gd.workloads.Histogram(8), epsilon=0.1, alpha=0.2)
    >>> rung = bound.certificate.rungs[-1]
    >>> rung
    GuessRung(20 <= n <= 24, 8 elements)
    >>> print(textwrap.fill(rung.said, 80))
    the error is at least 0.2027 on some data set of 20 copies of one of 8 elements
    """

    packed: GuessedElements
    scale: float

    def __repr__(self) -> str:
        count = len(self.packed.elements)
        return f"GuessRung({self.first} <= n <= {self.last}, {count} elements)"

    @property
    def said(self) -> str:
        error = rounded_down(self.scale / self.last, 4)
        return (
            f"the error is at least {error} on some data set of {self.first} copies of one of "
            f"{len(self.packed.elements)} elements"
        )

    def document(self, problem: Problem) -> dict[str, Any]:
        del problem
        packed = self.packed
        answers = bounded_answers(packed.workload, packed.elements)
        return {
            "copies": self.first,
            "scale": self.scale,
            **packed.constants(),
            "first": self.first,
            "last": self.last,
            "assumptions": [],
            "family": {
                **packed.document(),
                **listing_document(packed.workload, packed.elements, answers),
            },
        }


def guessing_bound(
    workload: Workload,
    *,
    epsilon: float,
    alpha: float,
    metric: Metric = MEAN_L2,
    adjacency: Adjacency = Adjacency.REPLACE_ONE,
) -> Bound:
    """Unconditional lower bound on sample complexity, from the average error over elements.

    For the same elements, it is stronger than the packing argument, in which Markov's inequality
    loses a factor in the error. Cost: O(E M k) to choose M of E elements.

    Parameters
    ----------
    workload : Workload
        k queries, on a universe of any size. At most 2^11 elements of it are searched.
    epsilon, alpha, metric, adjacency : as for `Problem`
        Privacy, error, how the error is measured, and the neighbour relation.

    Examples
    --------
    >>> import geomdp as gd
    >>> gd.bounds.guessing_bound(gd.workloads.Histogram(64), epsilon=0.1, alpha=0.1)
    Bound(sc > 26, 0 assumptions)
    """
    problem = Problem(epsilon, alpha, metric, adjacency)
    reason = f"separated elements do not exclude the error {alpha:.4g}, even with one record"
    return covering_bound(guess_rungs(workload, problem), problem, [reason])


def guess_rungs(workload: Workload, problem: Problem) -> list[GuessRung]:
    """Rungs by increasing copies, without those that end no later than a rung of fewer copies."""
    metric = problem.metric
    sets: list[GuessedElements] = [*separated_elements(workload, metric.moment)]
    sets += distant_elements(workload, metric)
    found = (rung for packed in sets for rung in rungs_of_elements(packed, problem))
    return without_dominated(found, lambda rung: rung.first, lambda rung: rung.last)


def rungs_of_elements(packed: GuessedElements, problem: Problem) -> Iterator[GuessRung]:
    """The rungs for the numbers of copies tried; a number that excludes no n gives no rung."""
    one = problem.pure_epsilon * problem.changes
    most = math.log(MOST_ODDS * len(packed.elements))
    # t copies with a privacy loss epsilon t above `most` usually prove little. One copy is tried
    # even then, if its loss is at most `MOST_LOSS`.
    for copies in _numbers(max(1, math.floor(min(most / one, 2.0**53)))):
        if copies * one > MOST_LOSS:
            continue
        scale = copies * packed.risk(copies * one) * (1 - MARGIN)
        last = math.floor(scale / problem.alpha)
        if last >= copies:
            yield GuessRung(copies, last, packed, scale)


def _numbers(most: int) -> list[int]:
    """Numbers of copies up to `most`: all up to 20, then a geometric progression, and `most`."""
    steps = max(0, math.ceil(math.log(most / 20) / math.log(COPIES_RATIO))) if most > 20 else 0
    grown = [math.floor(20 * COPIES_RATIO**i) for i in range(1, steps)]
    return sorted({*range(1, min(most, 20) + 1), *grown, most})
