"""Average error over elements that are far apart: an estimate is near at most one of them.

`geomdp.bounds.checker.guesses` has the proof and the notation. For two elements and p = 1 the bound
is the error of randomised response, which is optimal. For the largest error, the bound of
`separated_elements`, which uses the root mean square of all entries, is often much smaller.
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
    """M elements, with gamma = `separation` and D = `distance` of their answers, rounded down."""

    workload: Workload
    elements: npt.NDArray[Any]
    separation: float
    distance: float
    moment: int

    def risk(self, log_ratio: float) -> float:
        others = len(self.elements) - 1
        ratio = math.exp(log_ratio)
        share = others if self.moment == 1 else math.sqrt(ratio) * math.sqrt(others)
        return min(self.separation / 2, self.distance * share / (others + ratio))

    def constants(self) -> dict[str, Any]:
        return {"separation": self.separation, "distance": self.distance}

    def document(self) -> dict[str, Any]:
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
