"""Packings for random sign queries, whose data sets a rule gives (Nikolov, Theorem 24; JL-T24).

Each of k queries takes independent uniform values +-1 (signs) on the elements. Take a family of
sets of s elements. The symmetric difference of any two sets has at least w elements. The data set
X_S has the elements of S once each, and p_S is the uniform distribution on S. For two sets S and T,
let v = p_S - p_T. Then ||v||^2 >= w / s^2. For the signs of one query, let
Y = <signs, v> / ||v||. Then E Y^2 = 1 and E Y^4 = 3 - 2 sum v_j^4 / ||v||^4 <= 3 - 1 / s. Take a
number x in (0, 1), the tilt. As e^(-z) <= 1 - z + z^2 / 2 for z = x Y^2 >= 0,

    Pr[the mean of Y^2 over the k queries <= 1 - delta] <= e^(-k rate),
    rate = -x (1 - delta) - ln(1 - x + (3 - 1/s) x^2 / 2).

Now take a union bound over all pairs of M sets. With probability at least
1 - (M^2 / 2) e^(-k rate) over the signs, ||Q(X_S) - Q(X_T)|| / sqrt(k) > sqrt((1 - delta) w) / s
for all pairs. This bound depends on the family only through ln M, w and s, so the sets need not be
listed.
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
        """A key that identifies the workload."""
        return ("random signs", self.queries, self.seed)

    @property
    def log_others(self) -> float:
        """ln(M - 1) for M sets. M is e^`sets.log_count`, rounded down."""
        count = log_whole(self.sets.log_count)
        return count + math.log1p(-math.exp(-count)) if count > 0 else -math.inf

    @property
    def size(self) -> int:
        """Number of elements s of each set."""
        return self.sets.size

    def separation(self, metric: Metric) -> float:
        """Lower bound sqrt((1 - delta) w) / s on the distance between answers, in every metric.

        The bound is proved for the root mean square of the answer differences. The largest absolute
        value of the differences is never smaller.
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
        """Draw pairs of sets and the signs; check that answers are at least `separation` apart.

        Raises
        ------
        ValueError
            If two sampled sets are too close. This happens with probability at most `failure`.
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
    """The rate of the module's docstring for delta = `deviation`, x = `tilt` and s = `size`."""
    return -tilt * (1 - deviation) - _log_moment(tilt, size)


def _log_moment(tilt: float, size: int) -> float:
    """ln(1 - x + (3 - 1/s) x^2 / 2), a bound on ln E e^(-x Y^2); accurate also for tiny x."""
    return math.log1p(-tilt + (3 - 1 / size) * tilt**2 / 2)


def _least_deviation(needed: float, size: int) -> tuple[float, float]:
    """The smallest delta (rounded up) with a rate of at least `needed`, and its tilt.

    Let moment(x) = 1 - x + (3 - 1/s) x^2 / 2. For a given tilt x the rate is linear in delta. The
    rate is `needed` at delta(x) = 1 + (needed + ln moment(x)) / x. At the least delta, 1 - delta
    equals the derivative of -ln moment. This equation has one root between 0 and the x at which
    moment(x) is least. Every x proves a bound, so x need not be accurate, but delta(x) must be
    accurate. Computed with `_log_moment`, delta(x) has an error of a few 2^-53, far below the
    margin.
    """
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
