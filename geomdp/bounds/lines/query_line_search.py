"""Lower bounds from lines along single queries, for any workload: choice of the lines and steps."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from geomdp._numerics.seeds import PUBLIC_SEED
from geomdp._typing import FloatArray, IntArray
from geomdp._validation import require_type
from geomdp.bounds.bound import Bound
from geomdp.bounds.certificates.certificate import covering_bound
from geomdp.bounds.certificates.problem import Problem
from geomdp.bounds.certificates.rung import without_dominated
from geomdp.bounds.certificates.workloads import bounded_answers
from geomdp.bounds.lines.bayes_risk import MOST_EPSILON, MOST_STEP
from geomdp.bounds.lines.query_lines import MARGIN, QueryLinePlan, QueryLineRung, QueryLines
from geomdp.bounds.lines.tail_risk import smooth_priors, tails_of_priors
from geomdp.bounds.metrics import WorstCase
from geomdp.bounds.packings.separated import elements_or_sample
from geomdp.privacy import Adjacency
from geomdp.workloads import Workload

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


def query_line_rungs(workload: Workload, problem: Problem) -> list[QueryLineRung]:
    """One rung for each plan that excludes a record, for `WorstCase` and pure privacy only."""
    assert isinstance(problem.metric, WorstCase)
    rungs = []
    for plan in _plans(workload, problem.pure_epsilon * problem.changes):
        last = math.floor(plan.scale / problem.alpha)
        if last >= plan.records:
            rungs.append(QueryLineRung(plan.records, last, plan))
    return rungs


@lru_cache(maxsize=32)
def _plans(workload: Workload, epsilon: float) -> tuple[QueryLinePlan, ...]:
    """Plans for the lines, steps and copies that are tried, without dominated plans."""
    lines = found_lines(workload)
    if lines is None:
        return ()
    plans = _all_plans(lines, epsilon)
    return tuple(without_dominated(plans, lambda plan: plan.records, lambda plan: plan.scale))


def _all_plans(lines: QueryLines, epsilon: float) -> Iterator[QueryLinePlan]:
    """The plan with the best prior, for each number of lines, steps and copies that is tried."""
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
                chances = -np.expm1(len(subset.pairs) * np.log1p(-tails))
                sums = chances.sum(axis=1)
                best = int(sums.argmax())
                scale = copies * subset.length / 2 * float(sums[best]) * (1 - MARGIN)
                yield QueryLinePlan(subset, steps, copies, priors[best], scale)


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
