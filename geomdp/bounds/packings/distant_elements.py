"""Average error over elements that are far apart: an estimate is near at most one of them.

The data sets X_i, the factor R, the estimate v and the moment p are those of
`geomdp.bounds.packings.guessing`. The elements x_1, ..., x_M have answers a_i. Distances are
measured in the norm of the metric, which here may be the largest absolute value of an entry. Let
r_i = ||v - a_i|| and d_ij = ||a_i - a_j||. Any two answers are at least gamma apart. Let D be the
least over i of the mean of d_ij over the other M - 1 elements j. Then for a uniform prior on i the
mean of r_i^p is at least lambda^p, where lambda is the smaller of gamma / 2 and

    D (M - 1) / (M - 1 + R)               for p = 1,
    D (R (M - 1))^(1/2) / (M - 1 + R)     for p = 2.

Proof. The densities f_i of an output are scaled to numbers between 1 and R. It is enough that
sum_i f_i (r_i^p - lambda^p) >= 0 for every v. Since r_i + r_j >= d_ij >= 2 lambda, at most one r_i
is below lambda. If there is none, no term is negative. Otherwise let r = r_i be this distance. The
other terms are at least 0, because r_j >= d_ij - r >= lambda. So the sum is at least

    R (r^p - lambda^p) + sum over j other than i of ((d_ij - r)^p - lambda^p)
      >= R r^p + (M - 1) (D - r)^p - (M - 1 + R) lambda^p.

The second line holds because (d - r)^p is convex and increasing in d >= r, and the mean of the d_ij
is at least D >= gamma > r. For p = 1 the second line is linear in r. It is at least 0 at r = 0 by
the choice of lambda, and at r = lambda because D >= 2 lambda. For p = 2 the least value of
R r^2 + (M - 1) (D - r)^2 over all r is R (M - 1) D^2 / (M - 1 + R), so the second line is at least
0 by the choice of lambda.

For two elements and p = 1 the bound is the error of randomised response, which is optimal. For the
largest error over the queries, the bound of `geomdp.bounds.packings.separated_elements` is often
much smaller: it replaces the largest entry of a vector by the root mean square of all entries.

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

from geomdp._typing import FloatArray
from geomdp.bounds.metrics import MEAN_L2, Metric, WorstCase
from geomdp.bounds.packings.farthest_elements import farthest_elements
from geomdp.workloads import Workload

#: Largest number M^2 k of differences of answers that are computed for M elements and k queries, if
#: M is above 2. Two elements are compared for every k.
MOST_DIFFERENCES = 1 << 26


@dataclass(frozen=True, eq=False)
class DistantElements:
    """M elements, with the distances of their answers (see the docstring of the module).

    Parameters
    ----------
    workload : Workload
        The workload Q, with k queries.
    elements : (M, ...) array
        Records of the workload's universe.
    separation, distance : float
        gamma and D, both rounded down.
    moment : int
        The moment p.
    """

    workload: Workload
    elements: npt.NDArray[Any]
    separation: float
    distance: float
    moment: int

    def risk(self, log_ratio: float) -> float:
        """The number lambda for R = e^`log_ratio`."""
        others = len(self.elements) - 1
        ratio = math.exp(log_ratio)
        share = others if self.moment == 1 else math.sqrt(ratio) * math.sqrt(others)
        return min(self.separation / 2, self.distance * share / (others + ratio))

    def constants(self) -> dict[str, Any]:
        """The distances as written to a certificate file."""
        return {"separation": self.separation, "distance": self.distance}

    def document(self) -> dict[str, Any]:
        """The entry of a certificate file that states the type of the elements."""
        return {"type": "distant elements"}


def distant_elements(workload: Workload, metric: Metric) -> tuple[DistantElements, ...]:
    """Sets of the first 2, 3, 4, 6, 8, ... elements in farthest-point order of their answers."""
    norm = WorstCase() if isinstance(metric, WorstCase) else MEAN_L2
    return _distant(workload, norm, metric.moment)


@lru_cache(maxsize=8)
def _distant(workload: Workload, metric: Metric, moment: int) -> tuple[DistantElements, ...]:
    """The sets of `distant_elements` for the norm of `metric` and for the `moment`."""
    spread_out, found = farthest_elements(workload, metric), []
    most = max(2, math.isqrt(MOST_DIFFERENCES // workload.n_queries))
    answers = spread_out.answers[:most]
    distances = np.array([metric.norm(answers - answer) for answer in answers])
    for count in spread_out.counts:
        if count > len(answers):
            break
        rounded = 1 - spread_out.rounding(count)
        gap = float(spread_out.radii[count - 1]) * rounded
        mean = _least_mean(distances[:count, :count]) * rounded
        if gap > 0:
            taken = spread_out.elements[:count]
            found.append(DistantElements(workload, taken, gap, mean, moment))
    return tuple(found)


def _least_mean(distances: FloatArray) -> float:
    """The least mean distance from an element to the M - 1 others; `distances` is (M, M)."""
    return float(distances.sum(axis=1).min()) / (len(distances) - 1)
