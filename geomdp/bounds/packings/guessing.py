"""Lower bounds from the average error over separated elements, without Markov's inequality.

The elements x_1, ..., x_M have answers a_i = Q(x_i) to k queries. Any two answers are at least
gamma apart, in the norm ||v|| = ||v||_2 / sqrt(k). For n >= t records let X_i have t copies of x_i
and n - t copies of a fixed element. Any two X_i are t replacements apart, so the densities f_i of
an output differ by a factor of at most R = e^(epsilon t). After a shift and a scaling, the output
is an estimate v of a_i. Let r_i = ||v - a_i||. The error for X_i is t r_i / n. Let p be the moment:
2 for root mean squared errors, 1 for other errors. Each v has a mean (r_1^p + ... + r_M^p) / M. Let
G be the least of these means. Then for a uniform prior on i the mean of r_i^p is at least

    lambda^p = min((gamma / sqrt 2)^p, G M / (M + R - 1)).

So no epsilon-DP mechanism has an error below t lambda / n on all data sets of n >= t records. An
error alpha is excluded for all n from t to t lambda / alpha. The bound also holds for the largest
error over the queries, because the largest entry of a vector is at least its norm.

Proof. Scale the f_i to numbers between 1 and R. It is enough that
sum_i f_i (r_i^p - lambda^p) >= 0 for every output. The sum is at least

    sum_i (r_i^p - lambda^p) - (R - 1) sum_i max(0, lambda^p - r_i^p).

The first sum is at least M (G - lambda^p). The second sum is over the s elements with r_i < lambda.
Let d_i be the distance of a_i from the mean of these s answers. The sum of r_i^2 over the s
elements is at least the sum of d_i^2. The sum of d_i^2 is at least
(s - 1) gamma^2 / 2 >= (s - 1) lambda^2. So for p = 2 the second sum is at most lambda^2. For p = 1
it is at most lambda, because lambda - r <= (lambda^2 - r^2) / lambda. So the difference above is at
least M (G - lambda^p) - (R - 1) lambda^p. By the choice of lambda, this is at least 0.

For p = 2, G is the mean squared distance of the a_i from their mean. For p = 1 take unit vectors
z_i from any point c, the centre, towards the a_i. Subtract the mean of the z_i, and divide all z_i
by the length of the longest z_i. The z_i then have a sum of 0 and length at most 1. So G is at
least the mean of <z_i, a_i - c>.

References
----------
The proof bounds the Bayes risk of the packings of Hardt-Talwar 2010 and formula sheet JL-L6
directly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from geomdp._numerics.seeds import PUBLIC_SEED
from geomdp._typing import FloatArray
from geomdp.bounds.bound import Bound
from geomdp.bounds.certificates.certificate import covering_bound
from geomdp.bounds.certificates.problem import Problem
from geomdp.bounds.certificates.rung import ExcludedRange, without_dominated
from geomdp.bounds.certificates.workloads import bounded_answers, listing_document
from geomdp.bounds.metrics import MEAN_L2, Metric
from geomdp.bounds.packings.separated import elements_or_sample
from geomdp.bounds.rounding import rounded_down
from geomdp.geometry.farthest_points import farthest_points
from geomdp.privacy import Adjacency
from geomdp.workloads import Workload

#: Largest number of elements searched, largest number of entries of their answers, and largest
#: number of elements chosen.
MAX_ELEMENTS, MAX_ANSWERS, MOST_CHOSEN = 1 << 11, 1 << 21, 1 << 9
#: Ratio of successive numbers M of elements that are tried, and of successive numbers t of copies.
COUNT_RATIO, COPIES_RATIO = math.sqrt(2), 1.05
#: Largest R / M that is tried for several copies. For larger R, t times the p-th root of
#: G M / (M + R - 1) decreases as t grows.
MOST_ODDS = 16.0
#: Number of steps of Weiszfeld's iteration for the centre, and least distance of an answer from the
#: centre. Smaller distances are raised to this number, so that no division by 0 occurs.
CENTRE_STEPS, LEAST_DISTANCE = 100, 1e-9
#: Relative margin by which t lambda is rounded down.
MARGIN = 1e-10
#: Rounding error allowed for each operation, as in `Packing`.
ROUNDING = 2.0**-49


@dataclass(frozen=True, eq=False)
class SeparatedElements:
    """M elements, with the geometry of their answers (see the docstring of the module).

    Parameters
    ----------
    workload : Workload
        The workload Q, with k queries.
    elements : (M, ...) array
        Records of the workload's universe.
    centre : (k,) array
        The point c.
    separation, spread : float
        gamma and a lower bound on G, both rounded down.
    moment : int
        p.
    """

    workload: Workload
    elements: npt.NDArray[Any]
    centre: FloatArray
    separation: float
    spread: float
    moment: int

    def risk(self, log_ratio: float) -> float:
        """The number lambda for R = e^`log_ratio`."""
        count = len(self.elements)
        power = self.spread * count / (count + math.expm1(log_ratio))
        root = power if self.moment == 1 else math.sqrt(power)
        return min(self.separation / math.sqrt(2), root)


@dataclass(frozen=True, eq=False)
class GuessRung(ExcludedRange):
    """One step of a certificate: the values of n for which separated elements exclude an error.

    Parameters
    ----------
    first, last : int
        Least and largest number of records excluded; `first` is the number of copies t.
    packed : SeparatedElements
        The elements.
    scale : float
        t lambda, rounded down. With n records, the error t lambda / n is excluded.

    Examples
    --------
    >>> import textwrap
    >>> import geomdp as gd
    >>> bound = gd.bounds.guessing_bound(gd.workloads.Histogram(8), epsilon=0.1, alpha=0.2)
    >>> rung = bound.certificate.rungs[-1]
    >>> rung
    GuessRung(17 <= n <= 18, 8 elements)
    >>> print(textwrap.fill(rung.said, 80))
    the error is at least 0.2003 on some data set of 17 copies of one of 8 elements
    """

    packed: SeparatedElements
    scale: float

    def __repr__(self) -> str:
        count = len(self.packed.elements)
        return f"GuessRung({self.first} <= n <= {self.last}, {count} elements)"

    @property
    def said(self) -> str:
        """The numbers of copies and elements, and the error that every mechanism has at least."""
        error = rounded_down(self.scale / self.last, 4)
        return (
            f"the error is at least {error} on some data set of {self.first} copies of one of "
            f"{len(self.packed.elements)} elements"
        )

    def document(self, problem: Problem) -> dict[str, Any]:
        """The rung as written to a certificate file: all constants, and the elements."""
        del problem
        packed = self.packed
        answers = bounded_answers(packed.workload, packed.elements)
        return {
            "copies": self.first,
            "scale": self.scale,
            "separation": packed.separation,
            "spread": packed.spread,
            "first": self.first,
            "last": self.last,
            "assumptions": [],
            "family": {
                "type": "separated elements",
                **listing_document(packed.workload, packed.elements, answers),
                "centre": packed.centre,
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
    """Lower bound on the sample complexity from the average error over separated elements.

    The bound is stronger than the bound by a packing of the same elements. The packing bound uses
    Markov's inequality, which costs a factor in the error.

    Parameters
    ----------
    workload : Workload
        k queries, on a universe of any size. At most 2^11 elements of it are used.
    epsilon, alpha, metric, adjacency : as for `Problem`
        Privacy, error, how the error is measured, and the neighbour relation.

    Returns
    -------
    Bound
        ``Side.LOWER``, unconditional.

    Raises
    ------
    SideConditionError
        If the bound does not exclude even one record.

    Notes
    -----
    Cost: O(E M k) to choose M of E elements.

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
    """Rungs for several numbers of elements and of copies, in increasing order of copies.

    A rung is dropped if another rung has at most as many copies, and a `last` at least as large.
    """
    one = problem.pure_epsilon * problem.changes
    found: list[GuessRung] = []
    for packed in _separated(workload, problem.metric.moment):
        most = math.log(MOST_ODDS * len(packed.elements))
        # t copies with a privacy loss epsilon t above `most` prove little. One copy is still tried
        # if its loss is at most 100 times `most`.
        for copies in _numbers(max(1, math.floor(min(most / one, 2.0**53)))):
            if copies * one > max(most, 1.0) * 100:
                continue
            scale = copies * packed.risk(copies * one) * (1 - MARGIN)
            last = math.floor(scale / problem.alpha)
            if last >= copies:
                found.append(GuessRung(copies, last, packed, scale))
    return without_dominated(found, lambda rung: rung.first, lambda rung: rung.last)


def _numbers(most: int) -> list[int]:
    """1, 2, 3, ... up to 20, then numbers that grow by the factor `COPIES_RATIO`, and `most`."""
    steps = max(0, math.ceil(math.log(most / 20) / math.log(COPIES_RATIO))) if most > 20 else 0
    grown = [math.floor(20 * COPIES_RATIO**i) for i in range(1, steps)]
    return sorted({*range(1, min(most, 20) + 1), *grown, most})


@lru_cache(maxsize=8)
def _separated(workload: Workload, moment: int) -> tuple[SeparatedElements, ...]:
    """Sets of the first 2, 3, 4, 6, 8, ... elements of a farthest-point order.

    In this order, each element has the answers farthest from the answers of all elements before it.
    """
    k = workload.n_queries
    elements = elements_or_sample(
        workload, max(2, min(MAX_ELEMENTS, MAX_ANSWERS // k)), PUBLIC_SEED
    )
    answers = bounded_answers(workload, elements)
    spread_out = farthest_points(answers, MEAN_L2.norm, most=min(MOST_CHOSEN, len(elements)))
    order, radii = spread_out.order, spread_out.radii
    sizes = {round(COUNT_RATIO**i) for i in range(2, 64) if COUNT_RATIO**i < len(order)}
    found = []
    for count in sorted({*sizes, len(order)}):
        if count < 2:
            continue
        chosen = answers[order[:count]]
        slack = (k + count + 8) * ROUNDING * float(np.abs(chosen).max(initial=1.0))
        centre, spread = _spread(chosen, moment)
        gap = float(radii[count - 1]) - slack
        # The rounding error of a squared distance is at most 2 * `slack` times the largest answer.
        spread -= slack * (1 + 2 * (moment - 1) * float(np.abs(chosen).max(initial=1.0)))
        if gap > 0 and spread > 0:
            taken = elements[order[:count]]
            found.append(SeparatedElements(workload, taken, centre, gap, spread, moment))
    return tuple(found)


def _spread(answers: FloatArray, moment: int) -> tuple[FloatArray, float]:
    """The centre (k,) of `answers` (M, k), and the lower bound on G that it proves."""
    root = math.sqrt(answers.shape[1])
    centre = answers.mean(axis=0)
    if moment == 2:
        return centre, float((((answers - centre) / root) ** 2).sum(axis=1).mean())
    for _ in range(CENTRE_STEPS):
        distances = np.linalg.norm(answers - centre, axis=1) / root
        weights = 1 / np.maximum(distances, LEAST_DISTANCE)
        centre = weights @ answers / weights.sum()
    towards = (answers - centre) / root
    units = towards / np.maximum(np.linalg.norm(towards, axis=1), LEAST_DISTANCE)[:, None]
    units -= units.mean(axis=0)
    longest = max(1.0, float(np.linalg.norm(units, axis=1).max()))
    return centre, float((units * towards).sum(axis=1).mean() / longest)
