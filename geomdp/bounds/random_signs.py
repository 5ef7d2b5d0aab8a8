"""Theorem 24 of Nikolov (2022): random sign queries need many records (JL-T24).

`geomdp.bounds.checker.code_packings` has the proof and the notation. The bound depends on the
family of sets only through ln M, w and s, so the sets need not be listed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq

from geomdp._validation import positive, probability, whole
from geomdp.bounds.certificates import (
    MARGIN,
    PackingFamily,
    covering_bound,
    excluded_records,
    packing_rung,
)
from geomdp.bounds.code_packings import MAX_PRIME, ReedSolomon, prime_at_most
from geomdp.bounds.problem import MEAN_L2, Bound, Metric, Problem, SideConditionError
from geomdp.privacy import Adjacency
from geomdp.privacy.definitions import printed

# Families of sets with s elements each. Any two sets of a family share few elements (JL-T24).

#: Relative error allowed in a number of sets that is computed from its logarithm.
COUNT_ERROR = 1e-13


class Sets(NamedTuple):
    """M sets of elements of a universe; any two differ in `difference` or more elements."""

    log_count: float  # ln M
    size: int
    difference: int
    log_universe: float
    code: ReedSolomon | None = None

    def document(self) -> dict[str, Any]:
        if self.code is None:
            return {"type": "singletons", "log_count": self.log_count}
        prime, degree = self.code.prime, self.code.degree
        return {"type": "reed-solomon", "prime": prime, "size": self.size, "degree": degree}


def singletons(log_count: float) -> Sets:
    """Sets of one element each. The symmetric difference of two of them holds both elements."""
    return Sets(log_count, 1, 2, log_count)


def reed_solomon_sets(code: ReedSolomon) -> Sets:
    """The sets {(i, w_i) : i < s}, one for each word w of a code of length s and degree t over a
    field of q elements: any two share at most t - 1 elements. The pair (i, a) is element number
    i q + a of a universe of s q.
    """
    log_universe = math.log(code.length * code.prime)
    return Sets(code.log_count, code.length, 2 * code.differing, log_universe, code)


def log_whole(log_count: float) -> float:
    """ln M, where M is e^`log_count` rounded down to a whole number."""
    if log_count > 36:
        return log_count
    count = math.exp(log_count)
    # Without the share, a rounding error could lower a whole number of words by one. With the limit
    # 1/2, M sets do not have more pairs than the e^(2 log_count) / 2 of the union bound.
    return math.log(max(1, math.floor(count + min(COUNT_ERROR * count, 0.5))))


# Packings for random sign queries, whose data sets a rule gives.

#: Default for the largest probability, over the signs, that a bound fails.
FAILURE = 1e-6


@dataclass(frozen=True)
class RandomSignSets(PackingFamily):
    """One data set X_S for each set S of a family, given by a rule, for k random sign queries.

    X_S has the s elements of S once each. With probability at least 1 - (M^2 / 2) e^(-k rate) over
    the signs, all answers are more than sqrt((1 - delta) w) / s apart in root mean square.
    """

    queries: int
    sets: Sets
    failure: float = FAILURE
    seed: int = 0

    def __post_init__(self) -> None:
        whole(self.seed, "seed", minimum=0)
        probability(self.failure, "failure")
        _ = self._least  # raises SideConditionError if the union bound proves nothing

    def __repr__(self) -> str:
        return f"RandomSignSets({self.queries} queries, sets of {self.size})"

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
        # It is proved for the root mean square, which the largest absolute value is never below.
        del metric
        difference = (1 - self.deviation) * self.sets.difference
        return math.sqrt(difference) / self.size * (1 - MARGIN)

    @property
    def assumptions(self) -> tuple[str, ...]:
        return (
            "the signs are independent and uniform on at least "
            f"e^{printed(self.sets.log_universe)} elements; for sets of {self.size} elements, "
            "all pairs are separated with probability at least "
            f"1 - {printed(self.failure)} over the signs (union bound), not checked pair by pair",
        )

    def document(self) -> dict[str, Any]:
        return {
            "type": "random signs",
            "queries": self.queries,
            "failure": self.failure,
            "deviation": self.deviation,
            "tilt": self._least[1],
            "seed": self.seed,
            "sets": self.sets.document(),
        }


def rate(deviation: float, tilt: float, size: int) -> float:
    """-x (1 - delta) - ln(1 - x + (3 - 1/s) x^2 / 2), for delta = `deviation` and x = `tilt`."""
    return -tilt * (1 - deviation) - _log_moment(tilt, size)


def _log_moment(tilt: float, size: int) -> float:
    """ln(1 - x + (3 - 1/s) x^2 / 2), a bound on ln E e^(-x Y^2); accurate also for tiny x."""
    return math.log1p(-tilt + (3 - 1 / size) * tilt**2 / 2)


def _least_deviation(needed: float, size: int) -> tuple[float, float]:
    """The smallest delta, rounded up, with a rate of at least `needed`, and its tilt x."""
    # Let moment(x) = 1 - x + (3 - 1/s) x^2 / 2. The rate is `needed` at delta(x) = 1 + (needed + ln
    # moment(x)) / x. At the least delta, 1 - delta is the derivative of -ln moment. Every x proves
    # a bound, so x need not be accurate.
    fourth = 3 - 1 / size

    def excess(x: float) -> float:
        slope = (1 - fourth * x) * math.exp(-_log_moment(x, size))
        return -x * slope - _log_moment(x, size) - needed

    top = 1 / fourth  # moment(x) is least here, so the rate for delta = 1 is largest here.
    if not excess(top) > 0:
        raise SideConditionError(
            f"2 ln M + ln(1 / (2 failure)) per query must be below {excess(top) + needed:.4g}, "
            f"got {needed:.4g}; take fewer sets or more queries"
        )
    tilt = float(brentq(excess, 1e-12, top, xtol=1e-15)) if excess(1e-12) < 0 else 1e-12
    deviation = 1 + (needed + _log_moment(tilt, size)) / tilt
    return min(1.0, max(0.0, deviation) * (1 + MARGIN) + MARGIN), tilt


# The bound, with a search for the best family of sets.

#: Logarithm of the largest number of elements that Reed-Solomon sets are chosen from.
MAX_LOG_UNIVERSE = math.log(MAX_PRIME)
#: Largest size of sets that is tried, and the ratio of each size to the size before.
MAX_SIZE, SIZE_RATIO = 1 << 20, 2**0.25
#: Degrees that are tried for one size of sets, as shares of it, and numbers of singletons.
DEGREE_SHARES, SINGLETON_COUNTS = tuple(i / 16 for i in range(1, 17)), 64


def random_sign_bound(
    queries: int,
    log_universe: float,
    *,
    epsilon: float,
    alpha: float,
    metric: Metric = MEAN_L2,
    adjacency: Adjacency = Adjacency.REPLACE_ONE,
    failure: float = FAILURE,
    seed: int = 0,
) -> Bound:
    """Lower bound for all but a `failure` share of workloads of k random sign queries (JL-T24).

    The data sets of the proof are single elements, and Reed-Solomon sets of growing size. Under the
    conditions of the theorem, the bound is at least a constant times min{k / (alpha epsilon),
    sqrt(k ln N) / (alpha epsilon), ln N / (alpha^2 epsilon)}, if N is at most 2^60 and sets of 2^20
    elements are enough. Source: Nikolov 2022, Theorem 24; JL-T24.

    Parameters
    ----------
    queries : int
        Number k of queries. Too few for a packing raise `SideConditionError`.
    log_universe : float
        ln N for a universe of N elements, above ln 3. N can be huge, for example e^1000.
    epsilon, alpha, metric, adjacency : as for `Problem`
        Privacy, error, how the error is measured, and the neighbour relation.
    failure : float
        Largest probability, over the signs, that the bound does not hold.
    seed : int
        Seed of the signs. None are drawn: the proof holds for all but a share `failure` of them.

    Examples
    --------
    >>> import geomdp as gd
    >>> bound = gd.bounds.random_sign_bound(200, log_universe=13.8, epsilon=0.1, alpha=0.1)
    >>> bound
    Bound(sc > 190, 1 assumptions)
    >>> bound.assumptions[0][:50]
    'the signs are independent and uniform on at least '
    """
    problem = Problem(epsilon, alpha, metric, adjacency)
    whole(queries, "queries")
    positive(log_universe, "log_universe")
    sizes = list(set_sizes(log_universe, problem))
    share = positive(failure, "failure") / (len(sizes) + 1)
    families = [_best_singletons(queries, log_universe, problem, share, seed)]
    for size in sizes:
        found = _best_sets(queries, log_universe, size, problem, share, seed)
        families += [] if found is None else [found]
    return covering_bound([packing_rung(family, problem) for family in families], problem)


def set_sizes(log_universe: float, problem: Problem) -> Iterator[int]:
    """Set sizes s to try: s^2 <= N for a prime q >= s, and sqrt(2 s) / s >= c alpha."""
    root = math.exp(min(log_universe, MAX_LOG_UNIVERSE) / 2)
    most = min(2 / problem.required_separation**2, root, float(MAX_SIZE))
    size = 2
    while size <= most:
        yield size
        size = math.ceil(size * SIZE_RATIO)


def _best_singletons(
    queries: int, log_universe: float, problem: Problem, failure: float, seed: int
) -> RandomSignSets:
    """Of several families of singletons, the one that excludes the most records."""
    # The union bound allows the most singletons for delta = 1 and x = 1/2. The proved separation is
    # then 0.
    most = (queries * rate(1.0, 0.5, 1) + math.log(2 * failure)) / 2
    limit = min(log_universe, most * (1 - MARGIN))
    if limit <= math.log(3):
        raise SideConditionError(
            f"ln M of M separated elements must be above ln 3, but is at most {limit:.4g} for "
            f"{queries} queries on a universe of e^{log_universe:.4g} elements: more queries or a "
            "larger universe are needed"
        )
    counts = np.linspace(math.log(3), limit, SINGLETON_COUNTS)
    families = [RandomSignSets(queries, singletons(float(x)), failure, seed) for x in counts]
    return max(families, key=lambda family: excluded_records(family, problem))


def _best_sets(
    queries: int, log_universe: float, size: int, problem: Problem, failure: float, seed: int
) -> RandomSignSets | None:
    """The Reed-Solomon family of one size that excludes the most records; None if none does."""
    best, furthest = None, 0
    prime = prime_at_most(int(math.exp(min(log_universe, MAX_LOG_UNIVERSE)) / size))
    if prime < size:
        return None
    for degree in sorted({max(1, round(share * size)) for share in DEGREE_SHARES}):
        sets = reed_solomon_sets(ReedSolomon(prime, size, degree))
        try:
            family = RandomSignSets(queries, sets, failure, seed)
        except SideConditionError:
            break  # Families of higher degree have more sets, so the union bound fails for them.
        reach = excluded_records(family, problem)
        if reach > furthest:
            best, furthest = family, reach
    return best
