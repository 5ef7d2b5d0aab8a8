"""Packings for random sign queries, given by a rule: the family of Theorem 24 (JL-T24).

k queries with independent uniform values +-1 on each element. For a family of s-sets S whose
symmetric differences have at least w elements, let X_S hold the elements of S once each. For one
pair, v = p_S - p_T has ||v||^2 >= w / s^2, and <signs, v> / ||v|| = Y has E Y^2 = 1 and
E Y^4 = 3 - 2 sum v_j^4 / ||v||^4 <= 3 - 1 / s. As e^(-x) <= 1 - x + x^2 / 2 for x >= 0, for every
tilt x in (0, 1)

    Pr[(1/k) sum of k copies of Y^2 <= 1 - delta] <= e^(-k rate),
    rate = -x (1 - delta) - ln(1 - x + (3 - 1/s) x^2 / 2).

By a union bound over all pairs of M sets, ||Q(X_S) - Q(X_T)|| / sqrt(k) > sqrt((1 - delta) w) / s
holds for all of them with probability at least 1 - (M^2 / 2) e^(-k rate) over the signs. It depends
on ln M alone, so the sets need not be listed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.optimize import brentq

from geomdp._typing import FloatArray
from geomdp._validation import probability, whole
from geomdp.bounds.certificates.problem import SideConditionError
from geomdp.bounds.certificates.rung import MARGIN, PackingFamily
from geomdp.bounds.metrics import MEAN_L2, Metric
from geomdp.bounds.packings.nearly_disjoint_sets import ReedSolomonSets, SetFamily, log_whole
from geomdp.bounds.rounding import rounded_up

#: Default probability over the signs that a bound fails: the level of this library's tests.
FAILURE = 1e-6
#: Largest number of signs drawn for a check of sampled pairs.
SAMPLED_SIGNS = 1 << 21
#: Largest number of pairs of sets drawn for that check.
SAMPLED_PAIRS = 8


class UnionBoundError(SideConditionError):
    """There are too many sets for the number of queries."""


@dataclass(frozen=True)
class RandomSignSets(PackingFamily):
    """The data sets X_S of a family of sets, for k random sign queries, given by a rule.

    Parameters
    ----------
    queries : int
        k.
    sets : SetFamily
        `Singletons` or `ReedSolomonSets`.
    failure : float
        Probability over the signs that some pair is closer than `separation` says, in (0, 1).
    seed : int
        The sign of query i at element e is entry i of ``numpy.random.default_rng([seed, e])``'s
        k signs. Only sampled checks draw them.

    Raises
    ------
    UnionBoundError
        If 2 ln M + ln(1 / (2 failure)) is not below k times the largest rate.
    """

    queries: int
    sets: SetFamily
    failure: float = FAILURE
    seed: int = 0

    def __post_init__(self) -> None:
        whole(self.queries, "queries")
        whole(self.seed, "seed", minimum=0)
        probability(self.failure, "failure")
        _ = self._least  # raises where the union bound proves nothing

    def __repr__(self) -> str:
        return f"RandomSignSets({self.queries} queries, {self.sets!r}, failure={self.failure:g})"

    @cached_property
    def _least(self) -> tuple[float, float]:
        """The least delta that the union bound allows, and the tilt x at which it does."""
        needed = (2 * self.sets.log_count - math.log(2 * self.failure)) / self.queries
        return _least_deviation(needed, self.sets.size)

    @property
    def deviation(self) -> float:
        """The least delta that the union bound allows."""
        return self._least[0]

    @property
    def tilt(self) -> float:
        """The tilt x at which it does."""
        return self._least[1]

    @property
    def subject(self) -> object:
        """A key that identifies the workload."""
        return ("random signs", self.queries, self.seed)

    @property
    def log_others(self) -> float:
        """ln(M - 1), M the largest whole number not above the count of the family."""
        count = log_whole(self.sets.log_count)
        return count + math.log1p(-math.exp(-count)) if count > 0 else -math.inf

    @property
    def size(self) -> int:
        """Number of elements s of each set."""
        return self.sets.size

    def separation(self, metric: Metric) -> float:
        """sqrt((1 - delta) w) / s, in all three metrics: the largest modulus is no smaller."""
        del metric
        difference = (1 - self.deviation) * self.sets.difference
        return math.sqrt(difference) / self.size * (1 - MARGIN)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """The probability over the signs, and what was sampled."""
        said = (
            "the signs are independent and uniform on at least "
            f"e^{rounded_up(self.sets.log_universe)} elements; for sets of {self.size} elements, "
            "all pairs are separated with probability at least "
            f"1 - {rounded_up(self.failure)} over the signs (union bound), not checked pair by pair"
        )
        pairs = self.sampled_pairs
        if pairs == 0:
            return (said,)
        return (said, f"sampled check: {pairs} random pairs of sets of {self.size} are separated")

    @property
    def sampled_pairs(self) -> int:
        """Pairs of data sets whose answers are drawn by `check_sample`."""
        if not isinstance(self.sets, ReedSolomonSets):
            return 0
        return min(SAMPLED_PAIRS, SAMPLED_SIGNS // (2 * self.size * self.queries))

    def signs(self, element: int) -> FloatArray:
        """Answers (k,) of one element."""
        draws = np.random.default_rng([self.seed, element]).integers(2, size=self.queries)
        return np.asarray(2.0 * draws - 1)

    def check_sample(self) -> None:
        """Draw `sampled_pairs` pairs of sets and their signs, and compare with `separation`.

        Raises
        ------
        ValueError
            If a pair is too close, which has probability at most `failure`.
        """
        if not isinstance(self.sets, ReedSolomonSets):
            return
        rng = np.random.default_rng([self.seed, self.size, self.queries])
        least = self.separation(MEAN_L2)
        for _ in range(self.sampled_pairs):
            first, second = self.sets.elements(self.sets.code.sample(2, rng))
            # Two equal words are one set, not a pair.
            if (first == second).all():
                continue
            total = np.zeros(self.queries)
            for x, y in zip(first, second, strict=True):
                if x != y:
                    total += self.signs(int(x)) - self.signs(int(y))
            found = math.sqrt(float(total @ total) / self.queries) / self.size
            if found < least:
                raise ValueError(f"two sampled sets are {found:.6g} apart, below {least:.6g}")

    def document(self) -> dict[str, Any]:
        """The family as written to a certificate file."""
        return {
            "type": "random signs",
            "queries": self.queries,
            "failure": self.failure,
            "deviation": self.deviation,
            "tilt": self.tilt,
            "seed": self.seed,
            "sets": self.sets.document(),
        }


def rate(deviation: float, tilt: float, size: int) -> float:
    """The exponent of the tail at `deviation` delta in (0, 1) and `tilt` x, for sets of `size`."""
    return -tilt * (1 - deviation) - _log_moment(tilt, size)


def _log_moment(tilt: float, size: int) -> float:
    """The bound ln(1 - x + (3 - 1/s) x^2 / 2) on ln E e^(-x Y^2), also for tiny x."""
    return math.log1p(-tilt + (3 - 1 / size) * tilt**2 / 2)


def _least_deviation(needed: float, size: int) -> tuple[float, float]:
    """Smallest delta with a rate of `needed`, rounded up, and its tilt.

    For given x the rate is linear in delta, so delta(x) = 1 + (needed + ln moment(x)) / x. Where
    delta is least, 1 - delta is the derivative of -ln moment: an equation in x with one root left
    of the least moment. Any x proves the bound, so only delta(x) has to be accurate: with
    `_log_moment` it is to a few 2^-53, far below the margin.
    """
    fourth = 3 - 1 / size

    def excess(x: float) -> float:
        slope = (1 - fourth * x) * math.exp(-_log_moment(x, size))
        return -x * slope - _log_moment(x, size) - needed

    top = 1 / fourth  # The moment is least here, and delta is 1.
    if not excess(top) > 0:
        raise UnionBoundError(
            f"2 ln M + ln(1 / (2 failure)) per query must be below {excess(top) + needed:.4g}, "
            f"got {needed:.4g}: fewer sets or more queries"
        )
    tilt = float(brentq(excess, 1e-12, top, xtol=1e-15)) if excess(1e-12) < 0 else 1e-12
    deviation = 1 + (needed + _log_moment(tilt, size)) / tilt
    return min(1.0, max(0.0, deviation) * (1 + MARGIN) + MARGIN), tilt
