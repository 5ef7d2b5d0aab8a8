"""Packings for any workload, by search over multisets of its elements.

Three steps for each size s. *Random*: draw a pool of random multisets of s records. *Greedy*: order
them by farthest points first in the space of answers; every prefix of that order is a packing, and
the best one is kept. *Local search*: exchange one record of a closest data set so that it moves
away from all others. Data sets of one record come from all elements and, if there are few, from
largest cliques. Everything found is certified, so a poor search gives a weaker bound, never a false
one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from geomdp._typing import FloatArray, IntArray, RandomState
from geomdp._validation import whole
from geomdp.bounds.bound import Bound
from geomdp.bounds.certificates.certificate import certify
from geomdp.bounds.certificates.problem import Problem
from geomdp.bounds.certificates.rung import excluded_records, reachable_distance
from geomdp.bounds.metrics import MEAN_L2, Metric
from geomdp.bounds.packings.listed import Packing
from geomdp.bounds.packings.local_search import means_of, spread_out
from geomdp.bounds.packings.separated import (
    best_prefix,
    elements_or_sample,
    exact_separated,
    single_elements,
)
from geomdp.geometry.farthest_points import farthest_points
from geomdp.privacy import Adjacency
from geomdp.workloads import Workload

#: Largest number of answers of elements kept in memory: 2^24 float64 are 128 MB.
MAX_ANSWERS = 1 << 24
#: Largest cliques are computed at CLIQUE_SCALES separations, if there are at most CLIQUE_ELEMENTS
#: elements.
CLIQUE_SCALES, CLIQUE_ELEMENTS = 8, 40
#: The search stops after this many sizes of multisets in a row without progress.
PATIENCE = 3


@dataclass(frozen=True)
class Effort:
    """How hard to search.

    Parameters
    ----------
    elements : int
        Most elements used; of a larger universe, a random sample.
    pool : int
        Random multisets of each size. None are drawn if there are at least as many elements: the
        data sets of one record are then as many as the pool.
    datasets : int
        Most data sets of one packing.
    exchanges : int
        Exchanges of a record tried for each packing of several records.
    """

    elements: int = 1 << 14
    pool: int = 1 << 10
    datasets: int = 1 << 11
    exchanges: int = 32

    def __post_init__(self) -> None:
        for name in ("elements", "pool", "datasets"):
            whole(getattr(self, name), name, minimum=3)
        whole(self.exchanges, "exchanges", minimum=0)


DEFAULT_EFFORT = Effort()


def packing_search(
    workload: Workload,
    *,
    epsilon: float,
    alpha: float,
    metric: Metric = MEAN_L2,
    adjacency: Adjacency = Adjacency.REPLACE_ONE,
    effort: Effort = DEFAULT_EFFORT,
    rng: RandomState = None,
) -> Bound:
    """The best lower bound found by a search over multisets of the elements of a workload.

    Parameters
    ----------
    workload : Workload
        Any; its elements are listed, or sampled from a large or infinite universe.
    epsilon, alpha, metric, adjacency : as for `Problem`
        Privacy, error, how the error is measured, and the neighbour relation.
    effort : Effort
        How hard to search.
    rng : Generator, int or None
        Randomness of the search; the bound holds whatever it draws.

    Returns
    -------
    Bound
        ``Side.LOWER``, unconditional.

    Raises
    ------
    SideConditionError
        If nothing was found that excludes one record.

    Notes
    -----
    O(elements x datasets x k), and O(pool x datasets x k) for each size of multisets.
    """
    problem = Problem(epsilon, alpha, metric, adjacency)
    search = _Search(workload, problem, effort, np.random.default_rng(rng))
    packings = [*search.singles(), *search.all_multisets()]
    return certify(packings, epsilon=epsilon, alpha=alpha, metric=metric, adjacency=adjacency)


class _Search:
    """The elements of one search with their answers."""

    def __init__(
        self, workload: Workload, problem: Problem, effort: Effort, rng: np.random.Generator
    ) -> None:
        self.workload, self.problem, self.effort, self.rng = workload, problem, effort, rng
        most = max(3, min(effort.elements, MAX_ANSWERS // workload.n_queries))
        self.elements = elements_or_sample(workload, most, rng)
        self.answers = workload.evaluate(self.elements)

    def singles(self) -> list[Packing]:
        """Data sets of one record: the best prefix of the greedy order, and the best clique."""
        found = [self._single(self._greedy(self.answers, 1))]
        if len(self.elements) <= CLIQUE_ELEMENTS:
            found.append(self._single(self._best_clique()))
        return found

    def _single(self, rows: IntArray) -> Packing:
        return single_elements(self.workload, self.elements, rows, "search over elements")

    def _best_clique(self) -> IntArray:
        """The largest separated set, at the scale where it excludes most records."""
        norm = self.problem.metric.norm
        pairs = np.array([norm(self.answers - answer) for answer in self.answers])
        scales = np.unique(pairs[pairs >= self.problem.required_separation])
        # Fallback: a single data set, which `certify` refuses with the reason.
        best, furthest = np.zeros(1, dtype=np.int64), 0
        places = np.linspace(0, len(scales) - 1, CLIQUE_SCALES).astype(np.int64)
        for scale in np.unique(scales[places]) if len(scales) else scales:
            rows = exact_separated(self.answers, self.problem.metric, float(scale))
            value = best_prefix(np.full(len(rows), scale), 1, self.problem)[0]
            if value > furthest:
                best, furthest = rows, value
        return best

    def all_multisets(self) -> list[Packing]:
        """Packings by multisets of growing size, until `PATIENCE` sizes in a row add nothing."""
        found: list[Packing] = []
        furthest, misses = 0, 0
        for size in self.sizes():
            found.append(self.multisets(size))
            reach = excluded_records(found[-1], self.problem)
            misses = 0 if reach > furthest else misses + 1
            furthest = max(furthest, reach)
            if misses == PATIENCE:
                break
        return found

    def sizes(self) -> list[int]:
        """Sizes 2, 3, 4, 6, 8, 11, ..., as long as random multisets can be far enough apart.

        Their answers are about sqrt(2 / s) standard deviations of one record's answers apart, and
        one copy of a data set must be within the reachable distance of most data sets.
        """
        if len(self.elements) >= self.effort.pool:
            return []
        spread = self.problem.metric.norm(self.answers - self.answers.mean(axis=0))
        variance = float((spread**2).mean())
        room = 2 * variance / self.problem.required_separation**2
        reach = reachable_distance(math.log(self.effort.datasets - 1), self.problem)
        # Half powers of two up to 2^10; in practice the limits below are smaller.
        grid = sorted({round(2 ** (i / 2)) for i in range(2, 21)})
        return [size for size in grid if size <= min(room, reach)]

    def multisets(self, size: int) -> Packing:
        """Data sets of `size` records: the best of a random pool, improved by exchanges."""
        pool = self.rng.integers(len(self.elements), size=(self.effort.pool, size))
        datasets = pool[self._greedy(means_of(self.answers, pool), size)]
        spread = spread_out(
            self.answers,
            datasets,
            self.problem.metric,
            exchanges=self.effort.exchanges,
            rng=self.rng,
        )
        return Packing(self.workload, self.elements, spread, "search over multisets")

    def _greedy(self, points: FloatArray, size: int) -> IntArray:
        """The best prefix of the farthest-point order; one row if none excludes a record."""
        found = farthest_points(
            points,
            self.problem.metric.norm,
            least=self.problem.required_separation,
            most=self.effort.datasets,
            of_squares=self.problem.metric.of_squares(points.shape[1]),
        )
        return found.order[: max(1, best_prefix(found.radii, size, self.problem)[1])]
