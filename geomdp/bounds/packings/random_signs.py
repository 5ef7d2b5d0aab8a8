"""Packings for random sign queries, whose data sets a rule gives (Nikolov, Theorem 24; JL-T24).

`geomdp.bounds.checker.random_signs` has the proof and the notation. The bound depends on the family
of sets only through ln M, w and s, so the sets need not be listed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.optimize import brentq

from geomdp._typing import FloatArray
from geomdp._validation import probability, require_type, whole
from geomdp.bounds.certificates.problem import SideConditionError
from geomdp.bounds.certificates.rung import MARGIN, PackingFamily
from geomdp.bounds.metrics import MEAN_L2, Metric
from geomdp.bounds.packings.nearly_disjoint_sets import ReedSolomonSets, SetFamily, log_whole
from geomdp.bounds.rounding import rounded_up

#: Default for the largest probability, over the signs, that a bound fails.
FAILURE = 1e-6
#: Largest number of signs that `check_sample` draws.
SAMPLED_SIGNS = 1 << 21
#: Largest number of pairs of sets that `check_sample` draws.
SAMPLED_PAIRS = 8


class UnionBoundError(SideConditionError):
    """The family has too many sets for a union bound with this number of queries."""


@dataclass(frozen=True)
class RandomSignSets(PackingFamily):
    """One data set X_S for each set S of a family, given by a rule, for k random sign queries.

    X_S has the s elements of S once each, and any two of the M sets have a symmetric difference of
    at least w. With probability at least 1 - (M^2 / 2) e^(-k rate) over the signs, all answers are
    more than sqrt((1 - delta) w) / s apart in root mean square. For the tilt x in (0, 1),

        rate = -x (1 - delta) - ln(1 - x + (3 - 1/s) x^2 / 2).

    Parameters
    ----------
    queries : int
        Number of queries k.
    sets : SetFamily
        `Singletons` or `ReedSolomonSets`.
    failure : float
        Largest probability allowed, over the signs, that some pair is closer than `separation`
        says; in (0, 1).
    seed : int
        Seed of the signs. ``numpy.random.default_rng([seed, e])`` draws the signs of the k queries
        at element e. Signs are drawn for sampled checks only.

    Raises
    ------
    UnionBoundError
        If 2 ln M + ln(1 / (2 failure)) is at least k times the largest rate, for M sets.

    Examples
    --------
    >>> import math
    >>> import geomdp as gd
    >>> packing = gd.bounds.RandomSignSets(500, gd.bounds.Singletons(math.log(1000)))
    >>> round(packing.separation(gd.bounds.MeanL2()), 3)
    1.109
    >>> packing.failure
    1e-06
    """

    queries: int
    sets: SetFamily
    failure: float = FAILURE
    seed: int = 0

    def __post_init__(self) -> None:
        whole(self.queries, "queries")
        whole(self.seed, "seed", minimum=0)
        probability(self.failure, "failure")
        require_type(self.sets, SetFamily, "sets")
        _ = self._least  # raises UnionBoundError if the union bound proves nothing

    def __repr__(self) -> str:
        return f"RandomSignSets({self.queries} queries, {self.sets!r}, failure={self.failure:g})"

    @cached_property
    def _least(self) -> tuple[float, float]:
        """The least delta that the union bound proves, and the tilt x of this proof."""
        needed = (2 * self.sets.log_count - math.log(2 * self.failure)) / self.queries
        return _least_deviation(needed, self.sets.size)

    @property
    def deviation(self) -> float:
        """The least delta that the union bound proves."""
        return self._least[0]

    @property
    def tilt(self) -> float:
        """The tilt x for which the union bound proves `deviation`."""
        return self._least[1]

    @property
    def subject(self) -> object:
        return ("random signs", self.queries, self.seed)

    @property
    def log_others(self) -> float:
        count = log_whole(self.sets.log_count)
        return count + math.log1p(-math.exp(-count)) if count > 0 else -math.inf

    @property
    def size(self) -> int:
        return self.sets.size

    def separation(self, metric: Metric) -> float:
        """Lower bound sqrt((1 - delta) w) / s on the distance between answers, in every metric.

        It is proved for the root mean square, which the largest absolute value is never below.
        """
        del metric
        difference = (1 - self.deviation) * self.sets.difference
        return math.sqrt(difference) / self.size * (1 - MARGIN)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """The conditions with their probability over the signs, and the number of sampled pairs."""
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
        """Number of pairs of data sets that `check_sample` draws."""
        if not isinstance(self.sets, ReedSolomonSets):
            return 0
        return min(SAMPLED_PAIRS, SAMPLED_SIGNS // (2 * self.size * self.queries))

    def signs(self, element: int) -> FloatArray:
        """Signs (k,) of the queries at one element: the answers of the element."""
        draws = np.random.default_rng([self.seed, element]).integers(2, size=self.queries)
        return np.asarray(2.0 * draws - 1)

    def check_sample(self) -> None:
        """Draw pairs of sets and the signs; ``ValueError`` if two answers are too close.

        With probability at most `failure`, a pair is closer than `separation`.
        """
        if not isinstance(self.sets, ReedSolomonSets):
            return
        rng = np.random.default_rng([self.seed, self.size, self.queries])
        least = self.separation(MEAN_L2)
        for _ in range(self.sampled_pairs):
            first, second = self.sets.elements(self.sets.code.sample(2, rng))
            # Equal words of the code give the same set, so there is no pair to check.
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
    """The rate of `RandomSignSets` for delta = `deviation`, x = `tilt` and s = `size`."""
    return -tilt * (1 - deviation) - _log_moment(tilt, size)


def _log_moment(tilt: float, size: int) -> float:
    """ln(1 - x + (3 - 1/s) x^2 / 2), a bound on ln E e^(-x Y^2); accurate also for tiny x."""
    return math.log1p(-tilt + (3 - 1 / size) * tilt**2 / 2)


def _least_deviation(needed: float, size: int) -> tuple[float, float]:
    """The smallest delta, rounded up, with a rate of at least `needed`, and its tilt x."""
    # Let moment(x) = 1 - x + (3 - 1/s) x^2 / 2. The rate is `needed` at delta(x) = 1 + (needed + ln
    # moment(x)) / x. At the least delta, 1 - delta is the derivative of -ln moment. Every x proves
    # a bound, so x need not be accurate. With `_log_moment`, delta(x) has an error far below the
    # margin.
    fourth = 3 - 1 / size

    def excess(x: float) -> float:
        slope = (1 - fourth * x) * math.exp(-_log_moment(x, size))
        return -x * slope - _log_moment(x, size) - needed

    top = 1 / fourth  # moment(x) is least here, so the rate for delta = 1 is largest here.
    if not excess(top) > 0:
        raise UnionBoundError(
            f"2 ln M + ln(1 / (2 failure)) per query must be below {excess(top) + needed:.4g}, "
            f"got {needed:.4g}; take fewer sets or more queries"
        )
    tilt = float(brentq(excess, 1e-12, top, xtol=1e-15)) if excess(1e-12) < 0 else 1e-12
    deviation = 1 + (needed + _log_moment(tilt, size)) / tilt
    return min(1.0, max(0.0, deviation) * (1 + MARGIN) + MARGIN), tilt
