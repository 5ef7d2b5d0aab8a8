"""Lower bound on the largest error over the queries, from lines along single queries.

`geomdp.bounds.checker.lines` has the proof and the notation. C grows like ln(g) / epsilon for large
T, unlike the bounds of `orthogonal_lines` for root mean squares. For small epsilon b, large T
and a smooth prior that is small at both ends, C is close to delta (1 + 1/2 + ... + 1/g) / epsilon:
the expected largest absolute value of g independent Laplace variables of scale delta / epsilon.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from geomdp._numerics.randomness import PUBLIC_SEED
from geomdp._typing import FloatArray, IntArray
from geomdp._validation import require_type
from geomdp.bounds.certificates import (
    Plan,
    Rung,
    best_plans,
    bounded_answers,
    covering_bound,
    listing_document,
    rungs_of_plans,
)
from geomdp.bounds.count_risks import MOST_EPSILON, MOST_STEP
from geomdp.bounds.packings import PairedElements, elements_or_sample
from geomdp.bounds.problem import Bound, Problem, WorstCase
from geomdp.privacy import Adjacency
from geomdp.workloads import Workload

#: Relative margin by which C is rounded down. The rounding errors of p(m) are below
#: (T + epsilon b T) 2^-51.
MARGIN = 1e-10


@dataclass(frozen=True, eq=False, repr=False)
class QueryLines(PairedElements):
    """Pairs of elements that differ in their own query and agree in the queries of earlier pairs.

    Pair j, x_j and x'_j, belongs to number j of `queries` (g,).
    """

    queries: IntArray

    @cached_property
    def length(self) -> float:
        """delta: the least difference of the answers of a pair to its own query."""
        return float(np.abs(np.diag(self.differences[:, self.queries])).min())

    def last(self, count: int) -> QueryLines:
        """The last `count` pairs."""
        used, rows = np.unique(self.pairs[-count:], return_inverse=True)
        pairs = rows.reshape(count, 2)
        return QueryLines(self.workload, self.elements[used], pairs, self.queries[-count:])

    def document(self) -> dict[str, Any]:
        return {
            "type": "query lines",
            **listing_document(self.workload, self.elements, self.answers),
            "pairs": self.pairs,
            "queries": self.queries,
        }


#: `MAX_COMPARED` is the largest number E^2 k of comparisons of answers, for k queries and E > 2
#: elements. `MAX_QUERIES` is the largest number of queries for which lines are sought.
MAX_COMPARED, MAX_QUERIES = 1 << 24, 1 << 9
#: Largest number of lines. The bound grows with the logarithm of the number of lines.
MOST_LINES = 64
#: Least difference of the two answers of a pair to its query, divided by the range of the answers
#: of the sample to this query.
LEAST_SHARE = 0.5
#: Queries with at most this range are left out. `check_certificate` rejects smaller numbers, and
#: half of the range 5e-324 would be rounded to 0.
LEAST_RANGE = 1e-100
#: Numbers of steps that are tried for each line.
STEPS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
#: The numbers of copies that are tried are 1 and, for each of these values, the largest number with
#: which the privacy loss of one step of a line is at most the value.
STEP_EPSILONS = (0.25, 1.0)


def query_lines_bound(
    workload: Workload,
    *,
    epsilon: float,
    alpha: float,
    adjacency: Adjacency = Adjacency.REPLACE_ONE,
) -> Bound:
    """Unconditional lower bound on sample complexity for the largest error, from query lines.

    Cost: O(E^2 k) for E elements, once for each workload.

    Parameters
    ----------
    workload : Workload
        k queries, on a universe of any size. Of a large universe, a sample with a public seed is
        used.
    epsilon, alpha, adjacency : as for `Problem`
        Privacy, error and the neighbour relation. The error is measured by `WorstCase`.

    Examples
    --------
    >>> import geomdp as gd
    >>> gd.bounds.query_lines_bound(gd.workloads.Prefixes(32), epsilon=1.0, alpha=0.003)
    Bound(sc > 1097, 0 assumptions)
    """
    require_type(workload, Workload, "workload")
    problem = Problem(epsilon, alpha, WorstCase(), adjacency)
    reason = f"lines along single queries do not exclude the error {alpha:.4g} with one record"
    return covering_bound(query_line_rungs(workload, problem), problem, [reason])


def query_line_rungs(workload: Workload, problem: Problem) -> list[Rung]:
    """One rung for each plan that excludes a record, for `WorstCase` and pure privacy only."""
    assert isinstance(problem.metric, WorstCase)
    plans = _plans(workload, problem.pure_epsilon * problem.changes)
    return rungs_of_plans(plans, problem.alpha)


@lru_cache(maxsize=32)
def _plans(workload: Workload, epsilon: float) -> tuple[Plan, ...]:
    """Plans for the lines, steps and copies that are tried, without dominated plans."""
    lines = found_lines(workload)
    return () if lines is None else best_plans(_all_plans(lines, epsilon))


def _all_plans(lines: QueryLines, epsilon: float) -> Iterator[Plan]:
    """The plan with the best prior, for each number of lines, steps and copies that is tried.

    With T steps of b copies, its scale is C = (b delta / 2) sum_{m=1}^T (1 - (1 - p(m))^g).
    """
    most = len(lines.pairs)
    sizes = sorted({*(round(math.sqrt(2) ** i) for i in range(2 * most.bit_length())), most})
    subsets = [lines.last(size) for size in sizes if size <= most]
    for copies in sorted({1, *(max(1, math.floor(step / epsilon)) for step in STEP_EPSILONS)}):
        for steps in STEPS:
            one = epsilon * copies
            if one > MOST_STEP or one * steps > MOST_EPSILON:
                continue
            tails, priors = tails_of_priors(steps, one), smooth_priors(steps)
            for subset in subsets:
                count = len(subset.pairs)
                sums = (-np.expm1(count * np.log1p(-tails))).sum(axis=1)
                best = int(sums.argmax())
                scale = copies * subset.length / 2 * float(sums[best]) * (1 - MARGIN)
                made_of = (
                    f"{count} lines for one query each, of {steps} steps of {copies} replacements"
                )
                constants = {"copies": copies, "steps": steps, "scale": scale}
                lists = {"prior": priors[best]}
                yield Plan("query lines", subset, copies * steps * count, made_of, constants, lists)


@lru_cache(maxsize=8)
def found_lines(workload: Workload) -> QueryLines | None:
    """The lines found for a workload; None if no query tried has a range above `LEAST_RANGE`."""
    k = workload.n_queries
    most = max(2, math.isqrt(MAX_COMPARED // k))
    elements = elements_or_sample(workload, most, PUBLIC_SEED)
    answers = bounded_answers(workload, elements)
    considered = np.unique(np.linspace(0, k - 1, min(k, MAX_QUERIES)).astype(int))
    considered = considered[np.ptp(answers[:, considered], axis=0) > LEAST_RANGE]
    if len(considered) == 0:
        return None
    pairs = _cleanest_pairs(answers, considered)
    changed = answers[pairs[:, 0]][:, considered] != answers[pairs[:, 1]][:, considered]
    order = _last_to_first(changed)[::-1]
    used, rows = np.unique(pairs[order], return_inverse=True)
    return QueryLines(workload, elements[used], rows.reshape(-1, 2), considered[order])


def _cleanest_pairs(answers: FloatArray, queries: IntArray) -> IntArray:
    """For each query, the pair of rows far apart in it that differ in the fewest columns."""
    chosen = answers[:, queries]
    least = LEAST_SHARE * np.ptp(chosen, axis=0)
    fewest = np.full(len(queries), answers.shape[1] + 1)
    pairs = np.zeros((len(queries), 2), dtype=np.int64)
    for row in range(len(answers)):
        counts = (answers != answers[row]).sum(axis=1)
        far = np.abs(chosen - chosen[row]) >= least
        numbers = np.where(far, counts[:, None], answers.shape[1] + 1)
        partners = numbers.argmin(axis=0)
        number = numbers[partners, np.arange(len(queries))]
        better = number < fewest
        fewest[better] = number[better]
        pairs[better] = np.column_stack([np.full(len(queries), row), partners])[better]
    return pairs


def _last_to_first(changed: np.ndarray) -> IntArray:
    """Queries in an order in which no pair changes a later query; `changed` is (pair, query)."""
    free = np.ones(len(changed), dtype=bool)
    order: list[int] = []
    while free.any() and len(order) < MOST_LINES:
        numbers = np.where(free, changed[:, free].sum(axis=1), len(changed) + 1)
        order.append(int(numbers.argmin()))
        free &= ~changed[order[-1]]
    return np.array(order, dtype=np.int64)


# A lower bound on the chance that a count is outside a range chosen from a private output.
#
# With a prior pi on the count t in {0, ..., T}, and q = e^-epsilon for an epsilon-DP step, t is
# outside any m consecutive numbers W with a probability of at least
#
#     p(m) = min over c and W of (sum over t outside W of pi_t q^|t - c|) / (sum_t pi_t q^|t - c|).
#
# `geomdp.bounds.checker.lines` has the proof (derived here). For a flat prior and large T,
# q^|t - c| is the posterior of discrete Laplace noise (Ghosh-Roughgarden-Sundararajan 2009).

#: Priors that are tried: powers of sin(pi (t + 1) / (T + 2)). If t is near an end of {0, ..., T},
#: the numbers close to t are mostly on one side of it, so a range that begins at this end is likely
#: to contain t. Priors that are small at the ends give little weight to this easy case.
POWERS = (0.0, 1.0, 1.5, 2.0, 4.0)


def smooth_priors(steps: int) -> list[FloatArray]:
    """Priors on {0, ..., T} for T = `steps`."""
    heights = np.sin(np.pi * (np.arange(steps + 1) + 1) / (steps + 2))
    return [heights**power / (heights**power).sum() for power in POWERS]


@lru_cache(maxsize=256)
def tails_of_priors(steps: int, epsilon: float) -> FloatArray:
    """p(1), ..., p(T) for each of the `smooth_priors`, if all steps lose at most 64."""
    assert epsilon <= MOST_STEP
    assert epsilon * steps <= MOST_EPSILON
    return np.array([least_tails(prior, epsilon) for prior in smooth_priors(steps)])


def least_tails(prior: FloatArray, epsilon: float) -> FloatArray:
    """p(1), ..., p(T) for one `prior` (T + 1,), up to rounding, in O(T^3)."""
    t = np.arange(len(prior))
    masses = prior * np.exp(-epsilon * np.abs(t[:, None] - t))
    masses /= masses.sum(axis=1, keepdims=True)
    # Sums of masses before and after a range. A difference from 1 would lose digits.
    none = np.zeros((len(prior), 1))
    before = np.hstack([none, masses.cumsum(axis=1)])
    after = np.hstack([masses[:, ::-1].cumsum(axis=1)[:, ::-1], none])
    return np.array([(before[:, :-m] + after[:, m:]).min() for m in t[1:]])
