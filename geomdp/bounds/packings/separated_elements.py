"""Bound on the average error over elements separated in l2 norm, without Markov's inequality.

The docstring of `geomdp.bounds.packings.guessing` defines the data sets X_i, the densities f_i, the
factor R, the estimate v and the moment p. The elements x_1, ..., x_M have answers a_i. Any two
answers are at least gamma apart, in the norm ||v|| = ||v||_2 / sqrt(k) for k queries. Let
r_i = ||v - a_i||. Let G be the minimum over all v of (r_1^p + ... + r_M^p) / M. Then for a uniform
prior on i the mean of r_i^p is at least

    lambda^p = min((gamma / sqrt 2)^p, G M / (M + R - 1)).

The bound also holds for the largest error over the queries, because the largest absolute entry of a
vector is at least its norm.

Proof. Scale the f_i to numbers between 1 and R. It is enough that
sum_i f_i (r_i^p - lambda^p) >= 0 for every output. The sum is at least

    sum_i (r_i^p - lambda^p) - (R - 1) sum_i max(0, lambda^p - r_i^p).

The first sum is at least M (G - lambda^p). The second sum is over the s elements with r_i < lambda.
Let d_i be the distance of a_i from the mean of these s answers. The sum of r_i^2 over the s
elements is at least the sum of d_i^2. The sum of d_i^2 is at least
(s - 1) gamma^2 / 2 >= (s - 1) lambda^2. So for p = 2 the second sum is at most lambda^2. For p = 1
the second sum is at most lambda, because lambda - r <= (lambda^2 - r^2) / lambda. So the difference
above is at least M (G - lambda^p) - (R - 1) lambda^p. By the choice of lambda, this is at least 0.

For p = 2, G is the mean squared distance of the a_i from their mean. For p = 1 take any point c,
the centre, and unit vectors z_i from c towards the a_i. Subtract the mean of the z_i. If the
longest z_i is longer than 1, divide all z_i by its length. The z_i then have a sum of 0 and lengths
of at most 1. So G is at least the mean of <z_i, a_i - c>. The inner product belongs to the norm
||v||, so <u, v> is u^T v / k.

References
----------
The packings are those of Hardt-Talwar 2010 and formula sheet JL-L6. The proof bounds their Bayes
risk directly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from geomdp._typing import FloatArray
from geomdp.bounds.metrics import MEAN_L2
from geomdp.bounds.packings.farthest_elements import farthest_elements
from geomdp.workloads import Workload

#: Number of steps of Weiszfeld's iteration for the centre, and least distance of an answer from the
#: centre. Smaller distances are raised to this number, so that no division by 0 occurs.
CENTRE_STEPS, LEAST_DISTANCE = 100, 1e-9


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
        The mean of the answers for p = 2, the point c for p = 1.
    separation, spread : float
        gamma and a lower bound on G, both rounded down.
    moment : int
        The moment p, 1 or 2.
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

    def constants(self) -> dict[str, Any]:
        """`separation` and `spread` as written to a certificate file."""
        return {"separation": self.separation, "spread": self.spread}

    def document(self) -> dict[str, Any]:
        """Further entries of a certificate file, besides the elements or their answers."""
        return {"type": "separated elements", "centre": self.centre}


@lru_cache(maxsize=8)
def separated_elements(workload: Workload, moment: int) -> tuple[SeparatedElements, ...]:
    """Sets of the first 2, 3, 4, 6, 8, ... elements of the farthest-point order."""
    spread_out, found = farthest_elements(workload, MEAN_L2), []
    for count in spread_out.counts:
        chosen, slack = spread_out.answers[:count], spread_out.slack(count)
        centre, spread = _spread(chosen, moment)
        gap = float(spread_out.radii[count - 1]) - slack
        # The rounding error of a squared distance is at most 2 * `slack` times the largest modulus
        # of an answer.
        spread -= slack * (1 + 2 * (moment - 1) * float(np.abs(chosen).max(initial=1.0)))
        if gap > 0 and spread > 0:
            taken = spread_out.elements[:count]
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
