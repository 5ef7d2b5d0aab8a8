"""Packings for any workload, by search over multisets of its elements.

Three moves. *Random*: a pool of random multisets of s records. *Greedy*: farthest points first, in
the geometry of the answers; every prefix of that order is a packing, and the best one is kept.
*Local*: of the closest pair of a packing, one record is exchanged so that its data set moves away
from all others, as long as that is possible. Data sets of one record come from all elements and,
where there are few enough, from largest cliques. Everything found is chained and certified, so a
poor search costs strength only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from geomdp._typing import FloatArray, IntArray, RandomState
from geomdp._validation import whole
from geomdp.bounds.bound import Bound
from geomdp.bounds.certificates.certificate import (
    Question,
    SideConditionError,
    certify,
    reachable_distance,
    rung,
)
from geomdp.bounds.metrics import MEAN_L2, Metric
from geomdp.bounds.packings.exchanges import means_of, spread_out
from geomdp.bounds.packings.listed import Packing
from geomdp.bounds.packings.separated import (
    best_prefix,
    elements_or_sample,
    exact_separated,
    single_elements,
)
from geomdp.geometry.farthest_points import farthest_points
from geomdp.privacy import Adjacency
from geomdp.workloads import Workload

#: Most answers of elements held: 2^24 float64 are 128 MB.
MAX_ANSWERS = 1 << 24
#: Scales at which a largest clique is sought, on at most so many elements.
CLIQUE_SCALES, CLIQUE_ELEMENTS = 8, 40
#: Sizes of multisets tried in vain before the search stops.
PATIENCE = 3


@dataclass(frozen=True)
class Effort:
    """How hard to search.

    Parameters
    ----------
    elements : int
        Elements looked at; a random sample of a larger universe.
    pool : int
        Random multisets of each size; none for universes of at least as many elements, where they
        cannot be more numerous than single elements.
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
    epsilon, alpha : float
        Privacy and error.
    metric : MeanL2, RMS or WorstCase
        How the error is measured.
    adjacency : Adjacency
        Neighbour relation.
    effort : Effort
        How hard to search.
    rng : Generator, int or None
        Of the search; the bound holds whatever it draws.

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
    O(elements x datasets x k), and pool for elements for each size tried.
    """
    question = Question(epsilon, alpha, metric, adjacency)
    generator = np.random.default_rng(rng)
    search = _Search(workload, question, effort, generator)
    packings = [*search.singles(), *search.all_multisets()]
    return certify(packings, epsilon=epsilon, alpha=alpha, metric=metric, adjacency=adjacency)


class _Search:
    """The elements of one search with their answers."""

    def __init__(
        self, workload: Workload, question: Question, effort: Effort, rng: np.random.Generator
    ) -> None:
        self.workload, self.question, self.effort, self.rng = workload, question, effort, rng
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
        norm = self.question.metric.norm
        pairs = np.array([norm(self.answers - answer) for answer in self.answers])
        scales = np.unique(pairs[pairs >= self.question.required_separation])
        # Single data sets prove nothing, and say so when they are certified.
        best, furthest = np.zeros(1, dtype=np.int64), 0.0
        places = np.linspace(0, len(scales) - 1, CLIQUE_SCALES).astype(np.int64)
        for scale in np.unique(scales[places]) if len(scales) else scales:
            rows = exact_separated(self.answers, self.question.metric, float(scale))
            value = best_prefix(np.full(len(rows), scale), 1, self.question).value
            if value > furthest:
                best, furthest = rows, value
        return best

    def all_multisets(self) -> list[Packing]:
        """Packings by multisets of growing size, until some in a row reach no further."""
        found: list[Packing] = []
        furthest, misses = 0, 0
        for size in self.sizes():
            found.append(self.multisets(size))
            try:
                reach = rung(found[-1], self.question).last
            except SideConditionError:
                reach = 0
            misses = 0 if reach > furthest else misses + 1
            furthest = max(furthest, reach)
            if misses == PATIENCE:
                break
        return found

    def sizes(self) -> list[int]:
        """2, 3, 4, 6, 8, 11, ...: as long as random multisets can be far enough apart.

        Their answers are about sqrt(2 / s) standard deviations of the answers of one record apart,
        and one copy must be within reach of the largest number of data sets.
        """
        if len(self.elements) >= self.effort.pool:
            return []
        spread = self.question.metric.norm(self.answers - self.answers.mean(axis=0))
        variance = float((spread**2).mean())
        room = 2 * variance / self.question.required_separation**2
        reach = reachable_distance(math.log(self.effort.datasets - 1), self.question)
        # Half powers of two up to 2^10, larger than any room in practice.
        grid = sorted({round(2 ** (i / 2)) for i in range(2, 21)})
        return [size for size in grid if size <= min(room, reach)]

    def multisets(self, size: int) -> Packing:
        """Data sets of `size` records: random pool, greedy order, local exchanges."""
        pool = self.rng.integers(len(self.elements), size=(self.effort.pool, size))
        datasets = pool[self._greedy(means_of(self.answers, pool), size)]
        spread = spread_out(
            self.answers,
            datasets,
            self.question.metric,
            exchanges=self.effort.exchanges,
            rng=self.rng,
        )
        return Packing(self.workload, self.elements, spread, "search over multisets")

    def _greedy(self, points: FloatArray, size: int) -> IntArray:
        """The best prefix of the farthest-point order; one row if there is none."""
        found = farthest_points(
            points,
            self.question.metric.norm,
            least=self.question.required_separation,
            most=self.effort.datasets,
        )
        return found.order[: max(1, best_prefix(found.radii, size, self.question).count)]
