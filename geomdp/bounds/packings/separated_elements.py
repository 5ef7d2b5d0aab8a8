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
the centre. Let z_i be a_i - c, divided by the larger of its length and gamma / 2, minus the mean of
these vectors. If the longest z_i is longer than 1, divide all z_i by its length. The z_i then have
a sum of 0 and lengths of at most 1. So G is at least the mean of <z_i, a_i - c>. The inner product
belongs to the norm ||v||, so <u, v> is u^T v / k. The number gamma / 2 makes z_i continuous at
a_i = c, so that rounding errors remain small. At most one a_i is nearer to c than gamma / 2.

Rounding. The a_i are given floats. An entry of a_i - c has a relative error of one rounding. Let D
be the largest distance of an a_i from c, and M the number of the a_i. Every further operation has a
relative error of 2^-53, and the numbers that are added have a sum of at most 2 D^p in absolute
value. For p = 1 the z_i add up to 0 only up to rounding. Their sum is multiplied by c - v for the
best v. It is no longer than D, because v is in the convex hull of the a_i. So the error of G is at
most 2^-53 (3 k + 3 M + 20) D^p. Twice this error, for the two programs that compute G, and the
margin of the checker, are together below `ROUNDING` (k + M + 8) D^p. This number is subtracted.

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
#: centre, as a share of the separation. Smaller distances are raised to it, so that no division by
#: 0 occurs.
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
        gamma and a lower bound on G^(1/p), both rounded down. They have the unit of an answer.
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
        share = count / (count + math.expm1(log_ratio))
        root = share if self.moment == 1 else math.sqrt(share)
        return min(self.separation / math.sqrt(2), self.spread * root)

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
        chosen, rounding = spread_out.answers[:count], spread_out.rounding(count)
        gap = float(spread_out.radii[count - 1]) * (1 - rounding)
        if gap > 0:
            centre = _centre(chosen, gap, moment)
            spread = _spread(chosen - centre, gap, moment, rounding)
            taken = spread_out.elements[:count]
            found.append(SeparatedElements(workload, taken, centre, gap, spread, moment))
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
    slack = rounding * float(lengths.max()) ** moment
    if moment == 2:
        centred = steps - steps.mean(axis=0)
        return math.sqrt(max(0.0, float((centred**2).sum()) / steps.size - slack)) * (1 - rounding)
    units = steps / np.maximum(lengths, separation / 2)[:, None]
    units -= units.mean(axis=0)
    longest = max(1.0, float(MEAN_L2.norm(units).max()))
    mean = float(np.einsum("ij,ij->i", units, steps).mean()) / k
    return float((mean / longest - slack) * (1 - rounding))
