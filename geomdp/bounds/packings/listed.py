"""Listed packings: data sets that are close together, with answers that are far apart."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from geomdp._typing import FloatArray, IntArray
from geomdp._validation import require_type
from geomdp.bounds.certificates.rung import PackingFamily
from geomdp.bounds.certificates.workloads import (
    bounded_answers,
    element_rows,
    listing_document,
    workload_subject,
)
from geomdp.bounds.metrics import Metric
from geomdp.workloads import Workload

#: Answer differences are computed in blocks of at most this many entries, or of one row. A block of
#: 2^22 float64 numbers takes 32 MB.
BLOCK_ENTRIES = 1 << 22
#: Relative error allowed for each operation in a separation. A sum, mean or norm has an error of at
#: most 2^-53 per operation. The program that checks certificates adds in another order, so this
#: number is 16 times as large.
ROUNDING = 2.0**-49


@dataclass(frozen=True, eq=False)
class Packing(PackingFamily):
    """Listed data sets, each a multiset of s elements of a finite list.

    All M means take one sparse product, O(M s k). Distances and separations take O(M^2)
    comparisons.

    Parameters
    ----------
    workload : Workload
        The workload Q, with k queries.
    elements : (E, ...) array
        Records of the workload's universe, one per row.
    datasets : (M, s) array of int
        Row numbers of `elements`, one for each record; numbers can repeat. If two data sets are
        equal as multisets, the separation is 0 and the packing proves nothing.
    origin : str
        How the packing was built, in words. Certificate files contain this text for information.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> packing = gd.bounds.Packing(
    ...     gd.workloads.Histogram(4),
    ...     elements=np.arange(4),
    ...     datasets=np.array([[0, 1], [0, 2], [0, 3], [1, 2]]),
    ... )
    >>> packing.means
    array([[0.5, 0.5, 0. , 0. ],
           [0.5, 0. , 0.5, 0. ],
           [0.5, 0. , 0. , 0.5],
           [0. , 0.5, 0.5, 0. ]])
    >>> packing.distance
    2
    >>> round(packing.separation(gd.bounds.MeanL2()), 4)
    0.3536
    """

    workload: Workload
    elements: npt.NDArray[Any]
    datasets: IntArray
    origin: str = "listed"

    def __post_init__(self) -> None:
        require_type(self.workload, Workload, "workload")
        elements = self.workload.universe.validate(self.elements)
        datasets = element_rows(self.datasets, len(elements), "datasets")
        object.__setattr__(self, "elements", elements)
        object.__setattr__(self, "datasets", datasets)

    def __repr__(self) -> str:
        return f"Packing({self.workload!r}, {len(self.datasets)} data sets of {self.size})"

    @property
    def log_others(self) -> float:
        """ln(M - 1); minus infinity for one data set."""
        others = len(self.datasets) - 1
        return math.log(others) if others else -math.inf

    @property
    def size(self) -> int:
        return int(self.datasets.shape[1])

    @property
    def subject(self) -> object:
        return workload_subject(self.workload)

    @cached_property
    def answers(self) -> FloatArray:
        """Answer vectors Q(x) of the elements: (E, k)."""
        return bounded_answers(self.workload, self.elements)

    @cached_property
    def means(self) -> FloatArray:
        """Mean answers Q(Y_i) of the data sets Y_i: (M, k)."""
        return np.asarray(self._counts @ self.answers / self.size)

    @cached_property
    def _counts(self) -> Any:
        """How often each element is in each data set: a sparse array (M, E)."""
        count, size = self.datasets.shape
        starts = np.arange(count + 1) * size
        shape = (count, len(self.elements))
        rows = self.datasets.flatten()
        counts = sp.csr_array((np.ones(count * size), rows, starts), shape=shape)
        counts.sum_duplicates()
        return counts

    @cached_property
    def distance(self) -> int:
        """Least number of replacements that turns any data set into any other.

        If M^2 s is above 2^28, the upper bound s is returned without this computation.
        """
        if len(self.datasets) == 1:
            return 0
        # Two data sets with a and b copies of an element share min(a, b), which counts the levels l
        # <= a, b. Row i of `incidence` says for each pair (element, level) whether data set i has l
        # copies. So the product with its transpose has the numbers of shared records.
        counts = self._counts
        levels = [(counts >= level).astype(np.int64) for level in range(1, int(counts.max()) + 1)]
        incidence = sp.csr_array(sp.hstack(levels))
        if incidence.shape[0] ** 2 * self.size > BLOCK_ENTRIES << 6:
            return self.size  # an upper bound on every distance
        fewest = self.size
        for start in range(0, len(self.datasets), 512):
            common = (incidence[start : start + 512] @ incidence.T).toarray()
            fewest = min(fewest, int(common.min()))
        return self.size - fewest

    def separation(self, metric: Metric) -> float:
        """The least norm of Q(Y_i) - Q(Y_j) over i < j, minus `rounding`; at least 0.

        The result is infinite for one data set. The first call for a metric takes O(M^2 k).
        """
        if metric not in self._separations:
            self._separations[metric] = self._separation(metric)
        return self._separations[metric]

    @cached_property
    def _separations(self) -> dict[Metric, float]:
        """The separations computed so far, by metric."""
        return {}

    def _separation(self, metric: Metric) -> float:
        means = self.means
        count, k = means.shape
        least = math.inf
        rows = max(1, BLOCK_ENTRIES // k)
        for i in range(count - 1):
            for start in range(i + 1, count, rows):
                least = min(least, metric.norm(means[start : start + rows] - means[i]).min())
        return max(0.0, float(least) - self.rounding)

    @property
    def rounding(self) -> float:
        """Bound on the float64 error of a separation: operations x `ROUNDING` x largest answer."""
        operations = self.size + self.workload.n_queries + 4
        return float(operations * ROUNDING * np.abs(self.answers).max())

    def document(self) -> dict[str, Any]:
        return {
            "type": "listed",
            "origin": self.origin,
            **listing_document(self.workload, self.elements, self.answers),
            "datasets": self.datasets,
        }
