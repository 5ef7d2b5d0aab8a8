"""Elements of a universe with answers that are far apart, for the proofs of `guessing`."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy.typing as npt

from geomdp._numerics.seeds import PUBLIC_SEED
from geomdp._typing import FloatArray
from geomdp.bounds.certificates.workloads import bounded_answers
from geomdp.bounds.metrics import Metric
from geomdp.bounds.packings.separated import elements_or_sample
from geomdp.geometry.farthest_points import farthest_points
from geomdp.workloads import Workload

#: Largest number of elements searched, largest number of entries of their answers, and largest
#: number of elements chosen.
MAX_ELEMENTS, MAX_ANSWERS, MOST_CHOSEN = 1 << 11, 1 << 21, 1 << 9
#: Ratio of successive numbers M of elements that are tried.
COUNT_RATIO = 2**0.5
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
        most = len(self.elements)
        sizes = {round(COUNT_RATIO**i) for i in range(2, 64) if COUNT_RATIO**i < most}
        return [count for count in sorted({*sizes, most}) if count >= 2]

    def rounding(self, count: int) -> float:
        """Bound on the relative error of a distance, or mean distance, of exact answers."""
        # Each entry of a difference has a relative error of one rounding, however close the answers
        # are.
        operations: int = self.answers.shape[1] + count + 8
        return operations * ROUNDING


@lru_cache(maxsize=8)
def farthest_elements(workload: Workload, metric: Metric) -> FarthestElements:
    """Up to 2^9 elements in farthest-point order of their answers, in the norm of `metric`."""
    most = max(2, min(MAX_ELEMENTS, MAX_ANSWERS // workload.n_queries))
    elements = elements_or_sample(workload, most, PUBLIC_SEED)
    answers = bounded_answers(workload, elements)
    found = farthest_points(answers, metric.norm, most=min(MOST_CHOSEN, len(elements)))
    return FarthestElements(elements[found.order], answers[found.order], found.radii)
