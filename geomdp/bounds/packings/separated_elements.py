"""Bound on the average error over elements separated in l2 norm, without Markov's inequality.

`geomdp.bounds.checker.guesses` has the proof and the notation. For p = 2, G is the mean squared
distance of the answers a_i from their mean. For p = 1, vectors z_i of length at most 1 that add up
to 0 prove that G is at least the mean of <z_i, a_i - c>, for any centre c and <u, v> = u^T v / k.
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
    """M elements with gamma (`separation`) and a bound on G^(1/p) (`spread`), rounded down."""

    workload: Workload
    elements: npt.NDArray[Any]
    #: The mean of the answers for p = 2, the point c for p = 1.
    centre: FloatArray
    separation: float
    spread: float
    moment: int

    def risk(self, log_ratio: float) -> float:
        count = len(self.elements)
        share = count / (count + math.expm1(log_ratio))
        root = share if self.moment == 1 else math.sqrt(share)
        return min(self.separation / math.sqrt(2), self.spread * root)

    def constants(self) -> dict[str, Any]:
        return {"separation": self.separation, "spread": self.spread}

    def document(self) -> dict[str, Any]:
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
