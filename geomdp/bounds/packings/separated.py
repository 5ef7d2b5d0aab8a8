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
    """Row numbers of a maximal subset of `points` with pairwise distances >= `separation`.

    Distances are measured in the metric's norm. The search starts at the point farthest from the
    mean, and always adds the point farthest from all points chosen before. No subset with pairwise
    distances of at least 2 `separation` has more points. Cost: O(N M k) for a subset of M of N
    points in R^k.

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

    The size of the subset is the number N_sep of JL-L7. In a graph, join two points by an edge if
    they are at least `separation` apart. The subset is a largest clique of this graph. The search
    is exact and can take exponential time.

    Raises
    ------
    ValueError
        For more than 256 points, or a separation of 0 or less.

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
    """The prefix of a farthest-point order that proves the largest lower bound on n.

    A packing *excludes* n if it proves that no mechanism for n records solves the problem.

    Parameters
    ----------
    radii : (M,) array
        The answers of the first N data sets are pairwise at least `radii[N - 1]` apart. The entries
        do not increase.
    size : int
        Number s of records of each data set. Any two data sets are taken to be s replacements
        apart, which is the most possible.
    problem : Problem
        Privacy, error and metric.

    Returns
    -------
    tuple of int
        The largest n excluded, and the number N of data sets that exclude it. Let c alpha be the
        distance that the problem requires between answers. If radii[N - 1] is at least c alpha, the
        largest n that N data sets exclude is floor(T s radii[N - 1] / (c alpha)). T is the number
        of copies of each data set in the proof: the largest whole number with
        T s < `reachable_distance`. Prefixes of fewer than 3 data sets are not tried. If no prefix
        that is tried excludes any n, the result is (0, 0).
    """
    counts = np.arange(3, len(radii) + 1)
    reach = np.array([reachable_distance(math.log(count - 1), problem) for count in counts])
    copies = np.maximum(np.ceil(reach / size) - 1, 0.0)
    shares = radii[2:] / problem.required_separation
    values = np.where(shares >= 1, np.floor(copies * size * shares), 0.0)
    if values.max(initial=0.0) < 1:
        return 0, 0
    return int(values.max()), int(counts[values.argmax()])
