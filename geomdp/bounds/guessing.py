"""Lower bounds from the average error over elements far apart, without Markov's inequality.

`geomdp.bounds.checker.listed` has the argument, its notation and the proofs. The packings are those
of Hardt-Talwar 2010 and formula sheet JL-L6; their Bayes risk is bounded directly.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from geomdp._numerics.randomness import PUBLIC_SEED
from geomdp._typing import FloatArray
from geomdp.bounds.certificates import (
    Plan,
    Rung,
    best_plans,
    bounded_answers,
    covering_bound,
    listing_document,
    rungs_of_plans,
)
from geomdp.bounds.packings import elements_or_sample, farthest_answers, growing_sizes
from geomdp.bounds.problem import MEAN_L2, Bound, Metric, Problem, WorstCase
from geomdp.privacy import Adjacency
from geomdp.workloads import Workload

#: Ratio of successive numbers t of copies that are tried, from t = 20 on, and the largest R / M for
#: several copies: t lambda mostly decreases beyond it.
COPIES_RATIO, MOST_ODDS = 1.05, 16.0
#: Largest privacy loss epsilon t of all copies together. Its exponential does not overflow float64.
MOST_LOSS = 600.0
#: Relative margin by which t lambda is rounded down.
MARGIN = 1e-10


@dataclass(frozen=True, eq=False)
class GuessedElements(abc.ABC):
    """M elements x_i, along the first axis, with a lower bound on the average error of estimates.

    Any two answers are at least gamma = `separation` apart. All numbers are rounded down.
    """

    workload: Workload
    elements: npt.NDArray[Any]
    #: p: 1 for a mean of errors, 2 for a mean of squares.
    moment: int
    separation: float

    def __repr__(self) -> str:
        return f"{len(self.elements)} elements"

    @abc.abstractmethod
    def risk(self, log_ratio: float) -> float:
        """The number lambda for R = e^`log_ratio`."""

    @abc.abstractmethod
    def constants(self) -> dict[str, Any]:
        """The number besides gamma that `risk` uses, as written to a certificate file."""

    @abc.abstractmethod
    def entries(self) -> dict[str, Any]:
        """Entries of a certificate file, besides the elements or their answers."""

    def document(self) -> dict[str, Any]:
        answers = bounded_answers(self.workload, self.elements)
        return {**self.entries(), **listing_document(self.workload, self.elements, answers)}


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


def guess_rungs(workload: Workload, problem: Problem) -> list[Rung]:
    """Rungs by increasing copies, without those that exclude no more than fewer copies."""
    metric = problem.metric
    sets: list[GuessedElements] = [*separated_elements(workload, metric.moment)]
    sets += distant_elements(workload, metric)
    plans = best_plans(plan for packed in sets for plan in plans_of_elements(packed, problem))
    return rungs_of_plans(plans, problem.alpha)


def plans_of_elements(packed: GuessedElements, problem: Problem) -> Iterator[Plan]:
    """The plans for the numbers t of copies that are tried."""
    one, count = problem.pure_epsilon * problem.changes, len(packed.elements)
    # t copies with a privacy loss epsilon t above `most` usually prove little. One copy is tried
    # even then, if its loss is at most `MOST_LOSS`.
    most = math.log(MOST_ODDS * count)
    for copies in _numbers(max(1, math.floor(min(most / one, 2.0**53)))):
        if copies * one <= MOST_LOSS:
            scale = copies * packed.risk(copies * one) * (1 - MARGIN)
            constants = {"copies": copies, "scale": scale, "separation": packed.separation}
            constants |= packed.constants()
            made_of = f"{copies} copies of one of {count} elements"
            yield Plan("elements", packed, copies, made_of, constants)


def _numbers(most: int) -> list[int]:
    """Numbers of copies up to `most`: all up to 20, then a geometric progression, and `most`."""
    steps = max(0, math.ceil(math.log(most / 20) / math.log(COPIES_RATIO))) if most > 20 else 0
    grown = [math.floor(20 * COPIES_RATIO**i) for i in range(1, steps)]
    return sorted({*range(1, min(most, 20) + 1), *grown, most})


# Elements separated in l2 norm. `geomdp.bounds.checker.listed` has the notation: the answers a_i,
# the bound G, and for p = 1 the vectors z_i and the centre c, with <u, v> = u^T v / k.

#: Number of steps of Weiszfeld's iteration for the centre, and least distance of an answer from the
#: centre, as a share of the separation, by which it divides.
CENTRE_STEPS, LEAST_DISTANCE = 100, 1e-9


@dataclass(frozen=True, eq=False, repr=False)
class SeparatedElements(GuessedElements):
    """Elements with answers far apart in l2 norm, and `spread`, a bound on G^(1/p)."""

    #: The mean of the answers for p = 2, the point c for p = 1.
    centre: FloatArray
    spread: float

    def risk(self, log_ratio: float) -> float:
        count = len(self.elements)
        share = count / (count + math.expm1(log_ratio))
        root = share if self.moment == 1 else math.sqrt(share)
        return min(self.separation / math.sqrt(2), self.spread * root)

    def constants(self) -> dict[str, Any]:
        return {"spread": self.spread}

    def entries(self) -> dict[str, Any]:
        return {"type": "separated elements", "centre": self.centre}


@lru_cache(maxsize=8)
def separated_elements(workload: Workload, moment: int) -> tuple[SeparatedElements, ...]:
    """Sets of the first 2, 3, 4, 6, 8, ... elements of the farthest-point order."""
    spread_out, found = farthest_elements(workload, MEAN_L2), []
    for count in spread_out.counts:
        chosen, rounding = spread_out.answers[:count], spread_out.rounding(count)
        gap = float(spread_out.radii[count - 1]) * (1 - rounding)
        if gap > 0:
            centre = _centre(chosen, gap, moment)
            spread = _spread(chosen - centre, gap, moment, rounding)
            taken = spread_out.elements[:count]
            found.append(SeparatedElements(workload, taken, moment, gap, centre, spread))
    return tuple(packed for packed in found if packed.spread > 0)


def _centre(answers: FloatArray, separation: float, moment: int) -> FloatArray:
    """The point (k,) with about the least mean p-th power of the distance from `answers` (M, k)."""
    centre: FloatArray = answers.mean(axis=0)
    for _ in range(CENTRE_STEPS if moment == 1 else 0):
        distances = MEAN_L2.norm(answers - centre)
        weights = separation / np.maximum(distances, LEAST_DISTANCE * separation)
        centre = weights @ answers / weights.sum()
    return centre


def _spread(steps: FloatArray, separation: float, moment: int, rounding: float) -> float:
    """A lower bound on G^(1/p), rounded down, from `steps` (M, k): the answers minus the centre."""
    lengths, k = MEAN_L2.norm(steps), steps.shape[1]
    # An entry of `steps` has a relative error of one rounding, and every further operation one of
    # 2^-53. Let D be the largest length: sums are at most 2 D^p. For p = 1 the z_i add up to 0 only
    # up to rounding; their sum is multiplied by c - v for the best v, which is no longer than D, as
    # v is in the convex hull of the answers. So the error of G is at most
    # 2^-53 (3 k + 3 M + 20) D^p. Twice this error, for the two programs that compute G, and the
    # margin of the checker, are together below `rounding` D^p.
    slack = rounding * float(lengths.max()) ** moment
    if moment == 2:
        centred = steps - steps.mean(axis=0)
        return math.sqrt(max(0.0, float((centred**2).sum()) / steps.size - slack)) * (1 - rounding)
    # The least length makes z_i continuous at a_i = c, so that rounding errors remain small.
    units = steps / np.maximum(lengths, separation / 2)[:, None]
    units -= units.mean(axis=0)
    longest = max(1.0, float(MEAN_L2.norm(units).max()))
    mean = float(np.einsum("ij,ij->i", units, steps).mean()) / k
    return float((mean / longest - slack) * (1 - rounding))


# Elements that are far apart in any norm: an estimate is near at most one of them. For two elements
# and p = 1 the bound is the error of randomised response, which is optimal.

#: Largest number M^2 k of differences of answers that are computed for M > 2 elements.
MOST_DIFFERENCES = 1 << 26


@dataclass(frozen=True, eq=False, repr=False)
class DistantElements(GuessedElements):
    """Elements with answers far apart in any norm, and D = `distance`."""

    distance: float

    def risk(self, log_ratio: float) -> float:
        others = len(self.elements) - 1
        ratio = math.exp(log_ratio)
        share = others if self.moment == 1 else math.sqrt(ratio) * math.sqrt(others)
        return min(self.separation / 2, self.distance * share / (others + ratio))

    def constants(self) -> dict[str, Any]:
        return {"distance": self.distance}

    def entries(self) -> dict[str, Any]:
        return {"type": "distant elements"}


def distant_elements(workload: Workload, metric: Metric) -> tuple[DistantElements, ...]:
    """Sets of the first 2, 3, 4, 6, 8, ... elements in farthest-point order of their answers."""
    norm = WorstCase() if isinstance(metric, WorstCase) else MEAN_L2
    return _distant(workload, norm, metric.moment)


@lru_cache(maxsize=8)
def _distant(workload: Workload, metric: Metric, moment: int) -> tuple[DistantElements, ...]:
    spread_out, found = farthest_elements(workload, metric), []
    most = max(2, math.isqrt(MOST_DIFFERENCES // workload.n_queries))
    answers = spread_out.answers[:most]
    distances = np.array([metric.norm(answers - answer) for answer in answers])
    for count in (count for count in spread_out.counts if count <= len(answers)):
        rounded = 1 - spread_out.rounding(count)
        gap = float(spread_out.radii[count - 1]) * rounded
        # The least mean distance from an element to the M - 1 others.
        mean = float(distances[:count, :count].sum(axis=1).min()) / (count - 1) * rounded
        if gap > 0:
            taken = spread_out.elements[:count]
            found.append(DistantElements(workload, taken, moment, gap, mean))
    return tuple(found)


# Elements of a universe with answers that are far apart.

#: Largest number of elements searched, largest number of entries of their answers, and largest
#: number of elements chosen.
MAX_ELEMENTS, MAX_ANSWERS, MOST_CHOSEN = 1 << 11, 1 << 21, 1 << 9
#: Relative rounding error allowed for each operation. It is four times the error that
#: `check_certificate` allows, so that the checker accepts a number that is rounded down by it.
ROUNDING = 2.0**-49


class FarthestElements(NamedTuple):
    """Elements (E, ...) with answers (E, k) as far as possible from all earlier answers."""

    elements: npt.NDArray[Any]
    answers: FloatArray
    #: The first M answers are pairwise at least radii[M - 1] apart.
    radii: FloatArray

    @property
    def counts(self) -> list[int]:
        """The numbers M = 2, 3, 4, 6, 8, ... of elements that are tried, up to all E elements."""
        return [count for count in growing_sizes(len(self.elements)) if count >= 2]

    def rounding(self, count: int) -> float:
        """Bound on the relative error of a distance, or mean distance, of exact answers."""
        # Each entry of a difference has one relative rounding error, however close the answers are.
        return float(self.answers.shape[1] + count + 8) * ROUNDING


@lru_cache(maxsize=8)
def farthest_elements(workload: Workload, metric: Metric) -> FarthestElements:
    """Up to 2^9 elements in farthest-point order of their answers, in the norm of `metric`."""
    most = max(2, min(MAX_ELEMENTS, MAX_ANSWERS // workload.n_queries))
    elements = elements_or_sample(workload, most, PUBLIC_SEED)
    answers = bounded_answers(workload, elements)
    found = farthest_answers(answers, metric, most=min(MOST_CHOSEN, len(elements)))
    return FarthestElements(elements[found.order], answers[found.order], found.radii)
