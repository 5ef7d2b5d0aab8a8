"""Single-element packings from separated sets of answer vectors (JL-L7)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from geomdp._typing import FloatArray, IntArray, RandomState
from geomdp._validation import positive
from geomdp.bounds.certificates.problem import Problem
from geomdp.bounds.certificates.rung import reachable_distance
from geomdp.bounds.metrics import Metric
from geomdp.bounds.packings.cliques import largest_clique
from geomdp.bounds.packings.listed import Packing
from geomdp.geometry.farthest_points import farthest_points
from geomdp.workloads import Workload


def greedy_separated(points: FloatArray, metric: Metric, separation: float) -> IntArray:
    """Rows of a maximal subset of `points` (N, k) that is `separation` apart in the metric's norm.

    Farthest points first; its size is at least the largest at twice the separation. O(N M k).
    """
    found = farthest_points(points, metric.norm, least=positive(separation, "separation"))
    return found.order


def exact_separated(points: FloatArray, metric: Metric, separation: float) -> IntArray:
    """Rows of a largest subset of `points` (N, k) that is `separation` apart: N_sep of JL-L7.

    The largest clique of the graph of separated pairs, exact and exponential in the worst case, for
    at most 256 points.

    Raises
    ------
    ValueError
        For more points than that, or a separation that is not above 0.
    """
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
    """The packing whose data sets are the given `rows` of `elements`, one record each."""
    return Packing(workload, elements[rows], np.arange(len(rows))[:, None], origin)


def best_prefix(radii: FloatArray, size: int, problem: Problem) -> tuple[int, int]:
    """The prefix of a farthest-point order that excludes most records.

    Parameters
    ----------
    radii : (M,) array
        Not increasing: the first N data sets are `radii[N - 1]` apart.
    size : int
        Records s of each data set; any two are taken to differ everywhere.
    problem : Problem
        Privacy, error and metric.

    Returns
    -------
    tuple of int
        The number of records excluded, floor(T s radii / (c alpha)) with T the copies that JL-L6
        allows for N data sets, and that N; (0, 0) if no prefix excludes a record.
    """
    counts = np.arange(3, len(radii) + 1)
    reach = np.array([reachable_distance(math.log(count - 1), problem) for count in counts])
    copies = np.maximum(np.ceil(reach / size) - 1, 0.0)
    shares = radii[2:] / problem.required_separation
    values = np.where(shares >= 1, np.floor(copies * size * shares), 0.0)
    if values.max(initial=0.0) < 1:
        return 0, 0
    return int(values.max()), int(counts[values.argmax()])
