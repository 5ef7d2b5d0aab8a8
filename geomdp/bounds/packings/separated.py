"""Packings of data sets of one record each, from separated sets of answer vectors (JL-L7)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from geomdp._typing import FloatArray, IntArray, RandomState
from geomdp._validation import finite_array, positive, require_type
from geomdp.bounds.certificates.problem import Problem
from geomdp.bounds.certificates.rung import reachable_distance
from geomdp.bounds.metrics import Metric
from geomdp.bounds.packings.cliques import largest_clique
from geomdp.bounds.packings.listed import Packing
from geomdp.geometry.farthest_points import farthest_points
from geomdp.workloads import Workload


def greedy_separated(points: FloatArray, metric: Metric, separation: float) -> IntArray:
    """Row numbers of a maximal subset of `points` (N, k) with distances >= `separation`.

    The distances are in the metric's norm. The search starts at the point farthest from the mean,
    and always adds the point farthest from all chosen before. No subset with distances of at least
    2 `separation` has more points. Cost: O(N M k) for a subset of M points.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> points = np.array([[0.0], [0.6], [1.1], [2.0]])
    >>> gd.bounds.greedy_separated(points, gd.bounds.MeanL2(), 0.4)
    array([3, 0, 2, 1])
    """
    points = finite_array(points, "points", ndim=2)
    require_type(metric, Metric, "metric")
    found = farthest_points(points, metric.norm, least=positive(separation, "separation"))
    return found.order


def exact_separated(points: FloatArray, metric: Metric, separation: float) -> IntArray:
    """Row numbers of a largest subset of `points` with pairwise distances >= `separation`.

    Its size is N_sep of JL-L7. It is a largest clique of the graph with an edge between any two
    points far enough apart. The search is exact and can take exponential time. It takes at most 256
    points, and a separation above 0.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> points = np.array([[0.0], [0.6], [1.1], [2.0]])
    >>> gd.bounds.exact_separated(points, gd.bounds.MeanL2(), 1.0)
    array([0, 2])
    >>> gd.bounds.greedy_separated(points, gd.bounds.MeanL2(), 1.0)
    array([3, 0])
    """
    points = finite_array(points, "points", ndim=2)
    require_type(metric, Metric, "metric")
    positive(separation, "separation")
    apart = np.array([metric.norm(points - point) >= separation for point in points])
    return largest_clique(apart & apart.T)


def elements_or_sample(workload: Workload, most: int, rng: RandomState) -> npt.NDArray[Any]:
    """All elements of the universe if there are at most `most`, else a random sample of `most`."""
    size = workload.universe.size
    if size is not None and size <= most:
        return workload.universe.elements(0, size)
    return workload.universe.sample(most, rng)


def single_elements(
    workload: Workload, elements: npt.NDArray[Any], rows: IntArray, origin: str
) -> Packing:
    """The packing of one-record data sets. The records are the given `rows` of `elements`.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> workload = gd.workloads.Histogram(8)
    >>> packing = gd.bounds.single_elements(workload, np.arange(8), np.array([0, 3, 5]), "by hand")
    >>> packing
    Packing(Histogram(N=8), 3 data sets of 1)
    >>> round(packing.separation(gd.bounds.WorstCase()), 6)
    1.0
    """
    require_type(elements, np.ndarray, "elements")
    require_type(rows, np.ndarray, "rows")
    return Packing(workload, elements[rows], np.arange(len(rows))[:, None], origin)


def best_prefix(radii: FloatArray, size: int, problem: Problem) -> tuple[int, int]:
    """The largest n that a prefix of N >= 3 data sets excludes, and N; (0, 0) if none does."""
    # The first N data sets have answers at least radii[N - 1] apart, and any two are taken to be
    # `size` replacements apart, which is the most possible.
    counts = np.arange(3, len(radii) + 1)
    reach = np.array([reachable_distance(math.log(count - 1), problem) for count in counts])
    copies = np.maximum(np.ceil(reach / size) - 1, 0.0)
    shares = radii[2:] / problem.required_separation
    values = np.where(shares >= 1, np.floor(copies * size * shares), 0.0)
    if values.max(initial=0.0) < 1:
        return 0, 0
    return int(values.max()), int(counts[values.argmax()])
