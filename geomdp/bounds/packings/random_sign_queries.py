"""Theorem 24 of Nikolov (2022): random sign queries need many records (JL-T24)."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from geomdp._validation import positive, whole
from geomdp.bounds.bound import Bound
from geomdp.bounds.certificates.certificate import cover, covering_bound
from geomdp.bounds.certificates.problem import Problem, SideConditionError
from geomdp.bounds.certificates.rung import MARGIN, excluded_records, rung
from geomdp.bounds.metrics import MEAN_L2, Metric
from geomdp.bounds.packings.nearly_disjoint_sets import ReedSolomonSets, Singletons
from geomdp.bounds.packings.random_signs import FAILURE, RandomSignSets, UnionBoundError, rate
from geomdp.bounds.packings.reed_solomon import MAX_PRIME, ReedSolomon, prime_at_most
from geomdp.privacy import Adjacency

#: Logarithm of the largest number of elements that Reed-Solomon sets are chosen from. The numbers
#: of the elements must fit in int64.
MAX_LOG_UNIVERSE = math.log(MAX_PRIME)
#: Largest size of sets that is tried, and the ratio of each size to the size before.
MAX_SIZE, SIZE_RATIO = 1 << 20, 2**0.25
#: Degrees that are tried for one size of sets, as shares of the size.
DEGREE_SHARES = tuple(i / 16 for i in range(1, 17))

#: `_best_singletons` tries this many families. They differ in the number of singletons.
SINGLETON_COUNTS = 64


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
    sqrt(k ln N) / (alpha epsilon), ln N / (alpha^2 epsilon)}. For N above 2^60, or if the theorem
    needs sets of more than 2^20 elements, it can be smaller.

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
        Seed of the signs. Signs are drawn for sampled checks only.

    References
    ----------
    Nikolov 2022, Theorem 24; formula sheet JL-T24.

    Examples
    --------
    >>> import math
    >>> import textwrap
    >>> import geomdp as gd
    >>> bound = gd.bounds.random_sign_bound(200, math.log(10**6), epsilon=0.1, alpha=0.1)
    >>> bound
    Bound(sc > 192, 1 assumptions)
    >>> print(textwrap.fill(bound.assumptions[0], 80))
    the signs are independent and uniform on at least e^13.6137 elements; for sets
    of 1 elements, all pairs are separated with probability at least 1 - 1.11112e-07
    over the signs (union bound), not checked pair by pair
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
    rungs = [rung(family, problem) for family in families]
    used = cover(rungs)
    for family, own in zip(families, rungs, strict=True):
        if any(own is part for part in used):
            family.check_sample()
    return covering_bound(used, problem)


def set_sizes(log_universe: float, problem: Problem) -> Iterator[int]:
    """Set sizes s to try: s^2 <= N for a prime q >= s, and sqrt(2 s) / s >= c alpha."""
    most = min(
        2 / problem.required_separation**2,
        math.exp(min(log_universe, MAX_LOG_UNIVERSE) / 2),
        float(MAX_SIZE),
    )
    size = 2
    while size <= most:
        yield size
        size = math.ceil(size * SIZE_RATIO)


def _best_singletons(
    queries: int, log_universe: float, problem: Problem, failure: float, seed: int
) -> RandomSignSets:
    """Of several families of singletons, the one that excludes the most records."""
    # The union bound allows the most singletons for delta = 1 and x = 1/2, in the notation of
    # `random_signs`. The proved separation is then 0.
    most = (queries * rate(1.0, 0.5, 1) + math.log(2 * failure)) / 2
    limit = min(log_universe, most * (1 - MARGIN))
    if limit <= math.log(3):
        raise SideConditionError(
            f"ln M of M separated elements must be above ln 3, but is at most {limit:.4g} for "
            f"{queries} queries on a universe of e^{log_universe:.4g} elements: more queries or a "
            "larger universe are needed"
        )
    counts = np.linspace(math.log(3), limit, SINGLETON_COUNTS)
    families = [RandomSignSets(queries, Singletons(float(x)), failure, seed) for x in counts]
    return max(families, key=lambda family: excluded_records(family, problem))


def _best_sets(
    queries: int,
    log_universe: float,
    size: int,
    problem: Problem,
    failure: float,
    seed: int,
) -> RandomSignSets | None:
    """The Reed-Solomon family of one size that excludes the most records; None if none does."""
    best, furthest = None, 0
    prime = prime_at_most(int(math.exp(min(log_universe, MAX_LOG_UNIVERSE)) / size))
    if prime < size:
        return None
    for degree in sorted({max(1, round(share * size)) for share in DEGREE_SHARES}):
        sets = ReedSolomonSets(ReedSolomon(prime, size, degree))
        try:
            family = RandomSignSets(queries, sets, failure, seed)
        except UnionBoundError:
            break  # Families of higher degree have more sets, so the union bound fails for them.
        reach = excluded_records(family, problem)
        if reach > furthest:
            best, furthest = family, reach
    return best
