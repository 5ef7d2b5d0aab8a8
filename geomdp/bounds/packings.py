"""Listed packings: data sets that are close together, with answers that are far apart."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from geomdp._numerics.linalg import FarthestPoints, farthest_points, row_blocks
from geomdp._typing import FloatArray, IntArray, RandomState
from geomdp._validation import finite_array, positive, require_type, whole, whole_array
from geomdp.bounds.certificates import (
    PackingFamily,
    bounded_answers,
    certify,
    excluded_records,
    listing_document,
    reachable_distance,
    workload_subject,
)
from geomdp.bounds.problem import MEAN_L2, Bound, Metric, Problem, WorstCase
from geomdp.privacy import Adjacency
from geomdp.workloads import Workload

#: Largest M^2 s for which distances of M data sets of s records are computed.
MOST_COMPARED = 1 << 28
#: Relative error allowed for each operation in a separation: the checker adds in another order.
ROUNDING = 2.0**-49


@dataclass(frozen=True, eq=False)
class Packing(PackingFamily):
    """Listed data sets, each a multiset of s elements of a finite list.

    Parameters
    ----------
    workload, elements : Workload, (E, ...) array
        The workload Q, with k queries, and records of its universe, one per row.
    datasets : (M, s) array of int
        Row numbers of `elements`, one for each record; numbers can repeat.
    origin : str
        How the packing was built, in words, for certificate files.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> packing = gd.bounds.Packing(
    ...     gd.workloads.Histogram(4), np.arange(4), datasets=np.array([[0, 1], [0, 2], [2, 3]])
    ... )
    >>> packing.means
    array([[0.5, 0.5, 0. , 0. ],
           [0.5, 0. , 0.5, 0. ],
           [0. , 0. , 0.5, 0.5]])
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
        rows = whole_array(self.datasets, "datasets", ndim=2)
        if 0 in rows.shape:
            raise ValueError(f"datasets must have a shape (a, b), a, b >= 1, got {rows.shape}")
        if not (rows.min() >= 0 and rows.max() < len(elements)):
            raise ValueError(
                f"datasets must hold row numbers of elements, 0 to {len(elements) - 1}, got "
                f"{rows.min()} to {rows.max()}"
            )
        rows.setflags(write=False)
        object.__setattr__(self, "elements", elements)
        object.__setattr__(self, "datasets", rows)

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
        if incidence.shape[0] ** 2 * self.size > MOST_COMPARED:
            return self.size  # an upper bound on every distance
        fewest = self.size
        for start in range(0, len(self.datasets), 512):
            common = (incidence[start : start + 512] @ incidence.T).toarray()
            fewest = min(fewest, int(common.min()))
        return self.size - fewest

    def separation(self, metric: Metric) -> float:
        """The least norm of Q(Y_i) - Q(Y_j) over i < j, minus `rounding`; at least 0. O(M^2 k)."""
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
        for i in range(count - 1):
            for rows in row_blocks(count - i - 1, k):
                least = min(least, metric.norm(means[i + 1 :][rows] - means[i]).min())
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


# Packings of data sets of one record each, from separated sets of answer vectors (JL-L7).


def greedy_separated(points: FloatArray, metric: Metric, separation: float) -> IntArray:
    """Row numbers of a maximal subset of `points` (N, k) with distances >= `separation`.

    The search starts at the point farthest from the mean, and always adds the point farthest from
    all chosen before. No subset with distances of at least 2 `separation` has more points. Cost:
    O(N M k) for a subset of M points.

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


def farthest_answers(
    answers: FloatArray, metric: Metric, *, most: int, least: float = 0.0
) -> FarthestPoints:
    """`farthest_points` of `answers` (N, k) in the norm of `metric`."""
    # A norm that increases with the squared Euclidean length makes a point cheaper.
    k, largest = answers.shape[1], isinstance(metric, WorstCase)
    lengths = None if largest else (lambda squares: np.asarray(np.sqrt(squares / k)))
    return farthest_points(answers, metric.norm, least=least, most=most, of_squares=lengths)


def growing_sizes(most: int) -> list[int]:
    """1, 2, 3, 4, 6, 8, 11, ...: the rounded powers of sqrt(2) up to `most`, and `most`."""
    powers = (round(math.sqrt(2) ** i) for i in range(2 * most.bit_length()))
    return sorted({size for size in powers if size <= most} | {most} - {0})


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


# Search over multisets of elements. Each packing found is certified, so a poor search gives a weak
# bound, but never a false bound.

#: Largest number of answers of elements in memory: 2^24 float64 numbers take 128 MB.
MAX_ANSWERS = 1 << 24
#: Largest size of multisets, and number of sizes without progress after which the search stops.
LARGEST_SIZE, PATIENCE = 1 << 10, 3


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
    effort, rng : Effort, and Generator, int or None
        Limits and randomness of the search. The bound holds for every outcome of the random draws.

    Examples
    --------
    >>> import geomdp as gd
    >>> gd.bounds.packing_search(gd.workloads.Prefixes(8), epsilon=0.1, alpha=0.1, rng=0)
    Bound(sc > 12, 0 assumptions)
    """
    problem = Problem(epsilon, alpha, metric, adjacency)
    require_type(workload, Workload, "workload")
    require_type(effort, Effort, "effort")
    search = _Search(workload, problem, effort, np.random.default_rng(rng))
    packings = [search.singles(), *search.all_multisets()]
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

    def singles(self) -> Packing:
        """A packing of one-record data sets."""
        rows = self._greedy(self.answers, 1)
        return single_elements(self.workload, self.elements, rows, "search over elements")

    def all_multisets(self) -> list[Packing]:
        """Packings of 2, 3, 4, 6, ... records that random multisets can separate, until `PATIENCE`
        sizes in a row exclude nothing more.
        """
        found: list[Packing] = []
        furthest, misses = 0, 0
        spread = self.problem.metric.norm(self.answers - self.answers.mean(axis=0))
        # The answers of two random multisets are about sqrt(2 / s) standard deviations apart, and
        # up to s replacements turn one into the other.
        room = 2 * float((spread**2).mean()) / self.problem.required_separation**2
        reach = reachable_distance(math.log(self.effort.datasets - 1), self.problem)
        few = len(self.elements) < self.effort.pool
        for size in growing_sizes(LARGEST_SIZE)[1:] if few else []:
            if size > min(room, reach) or misses == PATIENCE:
                break
            found.append(self.multisets(size))
            last = excluded_records(found[-1], self.problem)
            misses = 0 if last > furthest else misses + 1
            furthest = max(furthest, last)
        return found

    def multisets(self, size: int) -> Packing:
        """A packing of data sets of `size` records from a random pool, improved by exchanges."""
        pool = self.rng.integers(len(self.elements), size=(self.effort.pool, size))
        datasets = pool[self._greedy(means_of(self.answers, pool), size)]
        metric, exchanges = self.problem.metric, self.effort.exchanges
        spread = spread_out(self.answers, datasets, metric, exchanges, self.rng)
        return Packing(self.workload, self.elements, spread, "search over multisets")

    def _greedy(self, points: FloatArray, size: int) -> IntArray:
        """The prefix of the greedy order that excludes the most; one row if none excludes any n."""
        problem, most = self.problem, self.effort.datasets
        required = problem.required_separation
        found = farthest_answers(points, problem.metric, most=most, least=required)
        # The first N data sets have answers at least radii[N - 1] apart, and any two are taken to
        # be `size` replacements apart, which is the most possible.
        counts = range(3, len(found.radii) + 1)
        reach = np.array([reachable_distance(math.log(count - 1), problem) for count in counts])
        copies = np.maximum(np.ceil(reach / size) - 1, 0.0)
        values = np.floor(copies * size * found.radii[2:] / required)
        return found.order[: counts[int(values.argmax())] if values.max(initial=0.0) >= 1 else 1]


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
        # After an exchange, entries of `nearest` may be lower bounds, so compute the least again.
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
