"""Packings for any workload, by search over multisets of its elements.

Each packing found is certified, so a poor search gives a weak bound, but never a false bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from geomdp._typing import FloatArray, IntArray, RandomState
from geomdp._validation import require_type, whole
from geomdp.bounds.bound import Bound
from geomdp.bounds.certificates import certify, excluded_records, reachable_distance
from geomdp.bounds.packings.listed import (
    Packing,
    best_prefix,
    elements_or_sample,
    exact_separated,
    single_elements,
)
from geomdp.bounds.problem import MEAN_L2, Metric, Problem
from geomdp.geometry.farthest_points import farthest_points
from geomdp.privacy import Adjacency
from geomdp.workloads import Workload

#: Largest number of answers of elements in memory: 2^24 float64 numbers take 128 MB.
MAX_ANSWERS = 1 << 24
#: If there are at most `CLIQUE_ELEMENTS` elements, a largest clique is computed for each of up to
#: `CLIQUE_SCALES` separations.
CLIQUE_SCALES, CLIQUE_ELEMENTS = 8, 40
#: The search stops after this many sizes of multisets in a row without progress.
PATIENCE = 3


@dataclass(frozen=True)
class Effort:
    """Limits of a search; larger limits usually give better bounds, and take longer.

    Parameters
    ----------
    elements : int
        Largest number of elements used, at least 3; of a larger universe, a random sample.
    pool : int
        At least 3 random multisets of each size; none are drawn from `pool` or more elements.
    datasets : int
        Largest number of data sets of one packing, at least 3.
    exchanges : int
        Largest number of steps of the local search, each of which tries to exchange one record.

    Examples
    --------
    >>> import geomdp as gd
    >>> small = gd.bounds.Effort(elements=64, pool=64, datasets=64, exchanges=4)
    >>> gd.bounds.packing_search(
    ...     gd.workloads.Parities(4, 2), epsilon=0.1, alpha=0.1, effort=small, rng=0
    ... )
    Bound(sc > 67, 0 assumptions)
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
    """The best unconditional lower bound found by a search over multisets of elements.

    Cost for k queries, with the limits of `effort`: O(elements x datasets x k), and
    O((pool + exchanges) x datasets x k) for each size of multisets.

    Parameters
    ----------
    workload : Workload
        Any workload. If its universe is large, a sample of the elements is used.
    epsilon, alpha, metric, adjacency : as for `Problem`
        Privacy, error, how the error is measured, and the neighbour relation.
    effort : Effort
        Limits of the search.
    rng : Generator, int or None
        Randomness of the search. The bound holds for every outcome of the random draws.

    Examples
    --------
    >>> import geomdp as gd
    >>> bound = gd.bounds.packing_search(gd.workloads.Prefixes(8), epsilon=0.1, alpha=0.1, rng=0)
    >>> bound
    Bound(sc > 12, 0 assumptions)
    >>> bound.assumptions
    ()
    """
    problem = Problem(epsilon, alpha, metric, adjacency)
    require_type(workload, Workload, "workload")
    require_type(effort, Effort, "effort")
    search = _Search(workload, problem, effort, np.random.default_rng(rng))
    packings = [*search.singles(), *search.all_multisets()]
    return certify(packings, epsilon=epsilon, alpha=alpha, metric=metric, adjacency=adjacency)


class _Search:
    """A search: its limits, the elements used, and the answers of the elements."""

    def __init__(
        self, workload: Workload, problem: Problem, effort: Effort, rng: np.random.Generator
    ) -> None:
        self.workload, self.problem, self.effort, self.rng = workload, problem, effort, rng
        most = max(3, min(effort.elements, MAX_ANSWERS // workload.n_queries))
        self.elements = elements_or_sample(workload, most, rng)
        self.answers = workload.evaluate(self.elements)

    def singles(self) -> list[Packing]:
        """Packings of one-record data sets: a greedy prefix and, for few elements, a clique."""
        found = [self._single(self._greedy(self.answers, 1))]
        if len(self.elements) <= CLIQUE_ELEMENTS:
            found.append(self._single(self._best_clique()))
        return found

    def _single(self, rows: IntArray) -> Packing:
        return single_elements(self.workload, self.elements, rows, "search over elements")

    def _best_clique(self) -> IntArray:
        """Rows of the clique, of those for `CLIQUE_SCALES` distances, that excludes the most."""
        norm = self.problem.metric.norm
        pairs = np.array([norm(self.answers - answer) for answer in self.answers])
        scales = np.unique(pairs[pairs >= self.problem.required_separation])
        # If no clique excludes a record, return one row. `certify` refuses one row and says why.
        best, furthest = np.zeros(1, dtype=np.int64), 0
        places = np.linspace(0, len(scales) - 1, CLIQUE_SCALES).astype(np.int64)
        for scale in np.unique(scales[places]) if len(scales) else scales:
            rows = exact_separated(self.answers, self.problem.metric, float(scale))
            value = best_prefix(np.full(len(rows), scale), 1, self.problem)[0]
            if value > furthest:
                best, furthest = rows, value
        return best

    def all_multisets(self) -> list[Packing]:
        """Packings of growing size, until `PATIENCE` sizes in a row exclude nothing more."""
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
        """Sizes 2, 3, 4, 6, 8, 11, ... at which random multisets can exclude a record."""
        if len(self.elements) >= self.effort.pool:
            return []
        spread = self.problem.metric.norm(self.answers - self.answers.mean(axis=0))
        variance = float((spread**2).mean())
        # The answers of two random multisets are about sqrt(2 / s) standard deviations apart, and
        # up to s replacements turn one into the other.
        room = 2 * variance / self.problem.required_separation**2
        reach = reachable_distance(math.log(self.effort.datasets - 1), self.problem)
        # Powers of sqrt(2), rounded, up to 2^10. Larger sizes are not tried.
        grid = sorted({round(2 ** (i / 2)) for i in range(2, 21)})
        return [size for size in grid if size <= min(room, reach)]

    def multisets(self, size: int) -> Packing:
        """A packing of data sets of `size` records from a random pool, improved by exchanges."""
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
        """The best prefix of the greedy order; one row if no prefix excludes a record."""
        found = farthest_points(
            points,
            self.problem.metric.norm,
            least=self.problem.required_separation,
            most=self.effort.datasets,
            of_squares=self.problem.metric.of_squares(points.shape[1]),
        )
        return found.order[: max(1, best_prefix(found.radii, size, self.problem)[1])]


# Local search: replace single records so that the answers of a packing move apart.

#: Number of elements drawn as candidates for one exchange.
CANDIDATES = 32


def means_of(answers: FloatArray, datasets: IntArray) -> FloatArray:
    """Mean answers (b, k) of `datasets` (b, s), given as row numbers of `answers` (E, k)."""
    means: FloatArray = np.zeros((len(datasets), answers.shape[1]))
    for column in datasets.T:
        means += answers[column]
    return np.asarray(means / datasets.shape[1])


def spread_out(
    answers: FloatArray,
    datasets: IntArray,
    metric: Metric,
    *,
    exchanges: int,
    rng: np.random.Generator,
) -> IntArray:
    """A copy of `datasets` (M, s), rows of `answers` (E, k), after exchanges of records."""
    datasets = datasets.copy()
    if len(datasets) == 1:
        return datasets
    size = datasets.shape[1]
    means = means_of(answers, datasets)
    nearest = np.array([_nearest(metric, means, i) for i in range(len(means))])
    for _ in range(exchanges):
        # An exchange can move a data set away from other data sets. The entries of `nearest` for
        # the other data sets are then only lower bounds. So recompute the least entry before use.
        closest = int(nearest.argmin())
        nearest[closest] = _nearest(metric, means, closest)
        if nearest[closest] > nearest.min():
            continue
        place = int(rng.integers(size))
        tried = rng.integers(len(answers), size=CANDIDATES)
        steps = (answers[tried] - answers[datasets[closest, place]]) / size
        others = np.delete(means, closest, axis=0)
        reach = [float(metric.norm(others - means[closest] - step).min()) for step in steps]
        best = int(np.argmax(reach))
        if reach[best] > nearest[closest]:
            datasets[closest, place] = tried[best]
            means[closest] += steps[best]
            nearest[closest] = reach[best]
            distances = metric.norm(means - means[closest])
            distances[closest] = np.inf
            nearest = np.minimum(nearest, distances)
    return datasets


def _nearest(metric: Metric, means: FloatArray, i: int) -> float:
    """Distance of the answers of data set i from the nearest answers of another data set."""
    distances = metric.norm(means - means[i])
    distances[i] = np.inf
    return float(distances.min())
