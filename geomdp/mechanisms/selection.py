"""Private choice of a query with a nearly largest answer, and the exponential mechanism for it."""

from __future__ import annotations

import abc
import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from itertools import pairwise
from typing import ClassVar

import numpy as np

from geomdp._typing import FloatArray, RandomState
from geomdp._validation import probability, vector, whole
from geomdp.mechanisms.base import (
    LARGEST_SUM,
    AnyRecords,
    checked_size,
    checked_workload,
    pure_only,
    release_once,
    source_and_record,
    totals_of,
)
from geomdp.noise.scalar import EXPONENTIAL, GUMBEL, LAPLACE, Perturbation, noisy_argmax
from geomdp.privacy import Adjacency, Exact, Guarantee, Ledger, PureDP
from geomdp.privacy.definitions import check_range, checked_adjacency
from geomdp.privacy.guarantees import DECIDED_ARITHMETIC, FLOAT64_CAVEAT
from geomdp.workloads import Workload
from geomdp.workloads.base import MAX_SCORES

#: Largest number m of queries, whose ranges come from 2m extreme answer vectors of length m.
MAX_QUERIES = 1 << 13
#: Factor that makes the scale at least the exact one: it is computed with fewer than 8 roundings.
ROUNDED_UP = 1 + 2.0**-49


@dataclass(frozen=True)
class Choice:
    """The query that was chosen, and the privacy guarantee of the choice."""

    index: int
    label: str
    guarantee: Guarantee


@dataclass(eq=False, repr=False)
class Selection(abc.ABC):
    """Choose the query with the largest noisy sum over the records.

    The score of query j is s_j, its sum over the records, which changes by d_j between neighbours.
    The noise depends on the spread R, a bound on the largest d_i - d_j over queries i and j and
    over neighbours: at most twice the sensitivity of a score, and 1 for counting queries under
    add/remove. Noise of scale R / eps on each score is eps-DP for the three kinds of noise that
    subclasses use (Gumbel, Laplace and exponential). Without a seed, and if answers on single
    records are whole numbers with sums below 2^53, it is eps-DP on the computer, too: the choice is
    decided exactly.

    Parameters and errors are those of `AdditiveMechanism`. `workload` holds the queries to choose
    from, at least 2 and at most 8192, `privacy` is a `PureDP`, and the spread must be finite and
    above 0.

    Examples
    --------
    >>> import geomdp as gd
    >>> workload = gd.workloads.Marginals(4, 1)
    >>> for adjacency in gd.Adjacency:
    ...     kind = gd.mechanisms.ExponentialMechanism
    ...     chooser = kind(workload, n=10, privacy=gd.PureDP(1.0), adjacency=adjacency)
    ...     print(adjacency.value, chooser.spread)
    replace-one 2.0
    add/remove 1.0
    """

    #: The noise on each score, in units of the scale.
    perturbation: ClassVar[Perturbation]

    workload: Workload
    _: KW_ONLY
    n: int
    privacy: PureDP
    adjacency: Adjacency = Adjacency.REPLACE_ONE

    def __post_init__(self) -> None:
        checked_workload(self.workload)
        self.n = whole(self.n, "n")
        check_range(pure_only(self.privacy, type(self).__name__))
        checked_adjacency(self.adjacency)
        whole(self.workload.n_queries, "number of queries", 2, MAX_QUERIES)
        checked_size(self.workload)
        self.spread = spread(self.workload, self.adjacency)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.workload!r}; n={self.n}; {self.guarantee})"

    @property
    def scale(self) -> float:
        """Scale R / eps of the noise on sums."""
        return self.spread / self.privacy.epsilon * ROUNDED_UP

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of one release."""
        arithmetic = DECIDED_ARITHMETIC if self._decided else FLOAT64_CAVEAT
        return Guarantee(self.privacy, self.adjacency, Exact(), arithmetic)

    @property
    def _decided(self) -> bool:
        return self.workload.whole_answers and self.n <= self._capacity

    @cached_property
    def _capacity(self) -> int:
        """A number of records up to which all sums of whole answers are exact."""
        return int(LARGEST_SUM // max(1.0, self.workload.l1_radius())) - 1

    @abc.abstractmethod
    def loss(self, gamma: float) -> float:
        """With probability 1 - `gamma`, a bound on the largest answer minus the chosen answer.

        It holds for all data, in the units of the answers. ``ValueError`` if `gamma` is not above 0
        and below 1.
        """

    @abc.abstractmethod
    def _law(self, scores: FloatArray) -> FloatArray:
        """Probability of each query (m,), for scores in units of the scale."""

    def probabilities(self, answers: FloatArray) -> FloatArray:
        """Probability that each query is chosen (m,), for true mean answers (m,) of public data."""
        means = vector(answers, self.workload.n_queries, "answers")
        return self._law(means * (self.n / self.scale))

    def release(
        self, records: AnyRecords, rng: RandomState = None, *, ledger: Ledger | None = None
    ) -> Choice:
        """Choose a query with a nearly largest answer on `records`.

        Parameters and errors are as in `Mechanism.release`. Too many records for exact sums are a
        ``ValueError``, too, and nothing is paid.
        """
        generator, guarantee = source_and_record(rng, self.guarantee, records)

        def read() -> tuple[int, FloatArray]:
            totals = totals_of(self.workload, records)
            if self._decided and totals.count > self._capacity:
                raise ValueError(
                    f"records must number at most {self._capacity}: sums over more of them are "
                    "not exact in float64"
                )
            return totals.count, totals.sums

        def draw(labels: list[str], sums: FloatArray) -> Choice:
            if rng is None:
                chosen = noisy_argmax(sums, self.scale, perturbation=self.perturbation)
            else:
                noise = self.perturbation.sample(generator, len(sums))
                chosen = int(np.argmax(sums + self.scale * noise))
            return Choice(chosen, labels[chosen], guarantee)

        return release_once(
            self, guarantee, ledger, set_up=self.workload.labels, read=read, draw=draw
        )


def spread(workload: Workload, adjacency: Adjacency) -> float:
    """A bound on how much the difference of two query sums can grow between neighbours.

    ``ValueError`` if it is 0 or not finite. Cost: `extreme_answers` in 2m directions for m queries.
    """
    lowest, highest = _ranges(workload)
    if adjacency is Adjacency.ADD_REMOVE:
        found = float(highest.max() - lowest.min())
    else:
        found = float(np.sort(highest - lowest)[-2:].sum())
    if not (np.isfinite(found) and found > 0):
        raise ValueError(f"workload must have queries that vary by a finite amount, got {found!r}")
    return found


def _ranges(workload: Workload) -> tuple[FloatArray, FloatArray]:
    """The least and the largest value of each query over the universe: (m,) each."""
    m = workload.n_queries
    lowest, highest = np.empty(m), np.empty(m)
    step = max(1, MAX_SCORES // (4 * m))
    for begin in range(0, m, step):
        places = np.arange(begin, min(begin + step, m))
        directions = np.zeros((len(places), m))
        directions[np.arange(len(places)), places] = 1.0
        highest[places] = workload.extreme_answers(directions)[np.arange(len(places)), places]
        lowest[places] = workload.extreme_answers(-directions)[np.arange(len(places)), places]
    return lowest, highest


class ExponentialMechanism(Selection):
    """Choose query j with probability proportional to exp(eps s_j / R) (GEN-3).

    Privacy: eps-DP. Let d_j be the change of the score s_j between neighbours. The weight
    exp(eps s_j / R) changes by one factor, and the sum of all weights by another. The ratio of the
    two factors is at most exp(eps max (d_i - d_j) / R) <= exp(eps). For the notation and the
    parameters, see `Selection`.

    Examples
    --------
    Which of four towns do most of 100 people live in? The seed makes this a simulation.

    >>> import numpy as np
    >>> import geomdp as gd
    >>> towns = gd.workloads.Explicit(np.eye(4))
    >>> records = np.repeat([0, 1, 2, 3], [10, 20, 60, 10])
    >>> choice = gd.mechanisms.ExponentialMechanism(towns, n=100, privacy=gd.PureDP(0.5))
    >>> choice.release(records, rng=1).index
    2
    >>> choice.probabilities(towns.answers(records)).round(4)
    array([0.    , 0.    , 0.9999, 0.    ])
    >>> round(choice.loss(0.01), 3)
    0.228
    """

    perturbation = GUMBEL

    def loss(self, gamma: float) -> float:
        """(R / (n eps)) ln((m - 1)(1 - gamma) / gamma) for m queries, or 0 if that is negative.

        A bound above 0 is tight: if the answer to one query exceeds all others by exactly the
        bound, another query is chosen with probability `gamma`.
        """
        share = probability(gamma, "gamma")
        ratio = (self.workload.n_queries - 1) * (1 - share) / share
        return self.scale / self.n * max(0.0, math.log(ratio))

    def _law(self, scores: FloatArray) -> FloatArray:
        weights = np.exp(scores - scores.max())
        return np.asarray(weights / weights.sum())


#: Noise above this many scales has probability below 1e-17 and is left out of the integrals.
FAR = 40.0
#: Length of the longest piece of an integral, in scales of the noise, and number of nodes of the
#: Gauss rule on each piece.
LONGEST, NODES = 2.0, 24


class ReportNoisyMax(Selection):
    """Choose the query with the largest sum after adding Laplace noise of scale R / eps.

    This is Dwork-Roth's report-noisy-max (Claim 3.9); the bound `loss` of `PermuteAndFlip` is never
    larger. For the notation and the parameters, see `Selection`.

    Privacy: eps-DP. For a query j, fix the noise on all other sums. Query j is chosen if its noise
    is above a threshold, which moves by at most R between neighbours.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> towns = gd.workloads.Explicit(np.eye(4))
    >>> choice = gd.mechanisms.ReportNoisyMax(towns, n=100, privacy=gd.PureDP(0.5))
    >>> choice.probabilities(np.array([0.1, 0.2, 0.25, 0.45])).round(3)
    array([0.   , 0.003, 0.011, 0.985])
    """

    perturbation = LAPLACE

    def loss(self, gamma: float) -> float:
        """(R / (n eps)) t, where (m - 1) (1 + t / 2) e^-t / 2 = gamma: a union bound.

        It is 0 if (m - 1) / 2 <= gamma. The difference D of two Laplace variables of scale 1 has
        Pr[D > t] = (1 + t / 2) e^-t / 2.
        """
        rivals = self.workload.n_queries - 1
        share = probability(gamma, "gamma")
        if rivals / 2 <= share:
            return 0.0

        from scipy.optimize import brentq  # a slow import

        def excess(t: float) -> float:
            return float(np.log(rivals * (1 + t / 2) / 2 / share) - t)

        return self.scale / self.n * float(brentq(excess, 0.0, 2000.0))

    def _law(self, scores: FloatArray) -> FloatArray:
        return _law_of_largest(scores, _laplace, -FAR)


class PermuteAndFlip(Selection):
    """Choose the query with the largest sum after adding exponential noise of scale R / eps.

    The choice has the distribution of permute-and-flip (McKenna and Sheldon 2020). For all data the
    expected loss (the largest answer minus the chosen answer) is at most that of the exponential
    mechanism. Privacy: eps-DP, as for `ReportNoisyMax`.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> towns = gd.workloads.Explicit(np.eye(4))
    >>> choice = gd.mechanisms.PermuteAndFlip(towns, n=100, privacy=gd.PureDP(0.5))
    >>> choice.probabilities(np.array([0.1, 0.2, 0.25, 0.45])).round(3)
    array([0.   , 0.001, 0.003, 0.996])
    """

    perturbation = EXPONENTIAL

    def loss(self, gamma: float) -> float:
        """(R / (n eps)) ln((m - 1) / (2 gamma)), or 0 if this is negative: a union bound.

        The difference D of two exponential variables of scale 1 has Pr[D > t] = e^-t / 2.
        """
        ratio = (self.workload.n_queries - 1) / (2 * probability(gamma, "gamma"))
        return self.scale / self.n * max(0.0, math.log(ratio))

    def _law(self, scores: FloatArray) -> FloatArray:
        return _law_of_largest(scores, _exponential, 0.0)


def _law_of_largest(
    scores: FloatArray, noise: Callable[[FloatArray], tuple[FloatArray, FloatArray]], least: float
) -> FloatArray:
    """Probability (m,) that score s_j plus its noise is the largest; scores in units of the scale.

    It is the integral over v of f(v - s_j) prod over i != j of F(v - s_i), for the density f and
    the distribution function F that `noise` gives, which is 0 below `least`. Cost: O(m^2).
    """
    # The largest noisy score is at least the largest score plus the least noise.
    begin, end = scores.max() + least, scores.max() + FAR
    inside = np.unique(scores[(scores > begin) & (scores < end)])
    pieces = math.ceil((end - begin) / LONGEST)
    corners = np.unique(np.concatenate([np.linspace(begin, end, pieces + 1), inside]))
    # Between two scores the integrand is smooth: a Gauss rule on short pieces is exact.
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    law = np.zeros(len(scores))
    for low, high in pairwise(corners):
        levels = (high + low) / 2 + (high - low) / 2 * nodes
        density, below = noise(levels[:, None] - scores)
        others = np.ones_like(below)
        others[:, 1:] *= np.cumprod(below[:, :-1], axis=1)
        others[:, :-1] *= np.cumprod(below[:, :0:-1], axis=1)[:, ::-1]
        law += (high - low) / 2 * (weights @ (density * others))
    return np.asarray(law / law.sum())


def _laplace(x: FloatArray) -> tuple[FloatArray, FloatArray]:
    tail = np.exp(-np.abs(x)) / 2
    return tail, np.where(x > 0, 1 - tail, tail)


def _exponential(x: FloatArray) -> tuple[FloatArray, FloatArray]:
    above = x > 0
    return np.where(above, np.exp(-np.abs(x)), 0.0), np.where(above, -np.expm1(-np.abs(x)), 0.0)
