"""Lower bounds for any workload from lines of data sets: choice of the lines and of their steps.

On each of several lines, orthogonal or along single queries, a mechanism must estimate one number.
`geomdp.bounds.checker.lines` has the proofs and the notation. The frame U = (u_1, ..., u_i) of
orthogonal lines is the polar factor of W D, for W = (w_1, ..., w_i) and a diagonal matrix D of
weights above 0. With S = (D W^T W D)^(1/2), U^T W D = S gives delta_j = S_jj / D_jj.

Relatives: Bhaskara-Dadush-Krishnaswamy-Talwar 2012 (volumes in orthogonal subspaces), Acharya-Sun-
Zhang 2020 (arXiv 2004.06830, a private Assouad lemma), and Nikolov-Tang 2023 (arXiv 2301.13850, all
unbiased mechanisms).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.linalg

from geomdp._numerics.randomness import PUBLIC_SEED
from geomdp._typing import FloatArray, IntArray
from geomdp._validation import plural, require_type, whole
from geomdp.bounds.certificates import (
    Plan,
    Rung,
    best_plans,
    bounded_answers,
    covering_bound,
    listing_document,
    rungs_of_plans,
)
from geomdp.bounds.count_risks import LONGEST, MOST_EPSILON, MOST_STEP, Accuracy, sine_weights
from geomdp.bounds.packings import elements_or_sample, growing_sizes
from geomdp.bounds.problem import MEAN_L2, Bound, Metric, Problem, WorstCase
from geomdp.privacy import Adjacency, Privacy
from geomdp.workloads import Workload


@dataclass(frozen=True, eq=False)
class PairedElements:
    """Pairs (i, 2) of row numbers of `elements` (E, ...), records of the workload's universe."""

    workload: Workload
    elements: npt.NDArray[Any]
    pairs: IntArray

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.workload!r}, {len(self.pairs)} pairs)"

    @cached_property
    def answers(self) -> FloatArray:
        """Answers of the elements to all queries: (E, k)."""
        return bounded_answers(self.workload, self.elements)

    @cached_property
    def differences(self) -> FloatArray:
        """w_1, ..., w_i: the differences (i, k) of the answers of the pairs."""
        return np.asarray(self.answers[self.pairs[:, 0]] - self.answers[self.pairs[:, 1]])


def used_elements(elements: npt.NDArray[Any], pairs: IntArray) -> tuple[npt.NDArray[Any], IntArray]:
    """The `elements` that occur in the `pairs` (i, 2) of row numbers, and their pairs."""
    used, rows = np.unique(pairs, return_inverse=True)
    return elements[used], rows.reshape(pairs.shape)


#: Eigenvalues of D W^T W D below this share of the largest are set to 0, which lowers S. Rounding
#: changes the root of any other by less than `LENGTH_MARGIN`, the margin of C, times the largest.
LEAST_EIGENVALUE, LENGTH_MARGIN = 1e-9, 5e-10


@dataclass(frozen=True, eq=False, repr=False)
class OrthogonalLines(PairedElements):
    """Pairs x_j, x'_j of elements with answers that differ along orthogonal directions.

    `weights` (i,) is the diagonal of D. Of the increasing numbers `queries` only the largest error
    is bounded, and C has their number k' in place of k; None is for all k queries.
    """

    weights: FloatArray
    queries: IntArray | None = None

    @property
    def count(self) -> int:
        """Number of queries whose errors are bounded."""
        return self.workload.n_queries if self.queries is None else len(self.queries)

    @cached_property
    def lengths(self) -> FloatArray:
        """delta_1, ..., delta_i, in O(i^2 k + i^3)."""
        differences = self.differences
        if self.queries is not None:
            differences = differences[:, self.queries]
        # In units of the largest difference, products of differences are in the range of float64.
        unit = float(np.abs(differences).max())
        if unit == 0:
            return np.zeros(len(differences))
        differences = differences / unit
        weights = self.weights / self.weights.max()
        gram = differences @ differences.T
        values, vectors = np.linalg.eigh(gram * np.outer(weights, weights))
        kept = values > LEAST_EIGENVALUE * values[-1]
        inverse_root = (vectors[:, kept] / np.sqrt(values[kept])) @ vectors[:, kept].T
        # <u_j, w_j> from U = W D S^-1: to divide S_jj by a tiny D_jj would amplify rounding errors.
        return np.asarray(unit * np.abs(((inverse_root * weights) * gram).sum(axis=1)))

    def document(self) -> dict[str, Any]:
        some = {} if self.queries is None else {"queries": self.queries}
        return {
            "type": "orthogonal lines",
            **some,
            **listing_document(self.workload, self.elements, self.answers),
            "pairs": self.pairs,
            "weights": self.weights,
        }


def line_plan(lines: OrthogonalLines, steps: IntArray, copies: int, asked: Accuracy) -> Plan:
    """The plan with T_j = `steps` (i,) of b = `copies` records; its scale is C.

    C = b (sum_j lambda_j^(2/p) delta_j^2 / k)^(1/2), where p = 2 for `RMS`, else 1.
    """
    different, which = np.unique(steps, return_inverse=True)
    known = [asked.risk(count, copies) for count in different.tolist()]
    risks = np.array([line.risk for line in known])[which]
    squares = float((lines.lengths**2 * risks ** (2 / asked.moment)).sum())
    scale = copies * math.sqrt(squares / lines.count) * (1 - LENGTH_MARGIN)
    each = f"{plural(int(steps.max()), 'step')} of {plural(copies, 'replacement')}"
    made_of = f"{plural(len(steps), 'orthogonal line')}, each of at most {each}"
    constants = {"copies": copies, "scale": scale}
    lists = {"steps": steps, "known": [line.document for line in known]}
    return Plan("lines", lines, copies * int(steps.sum()), made_of, constants, lists)


# More steps on a line prove a larger error, but need more records. So a step has a price, and the
# steps on each line maximise its part in the squared error minus the price.

#: Numbers of steps that are tried for each line.
STEPS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 32, 40, 48, 64, 96)
#: Number of prices, and the ratio of each price to the price before.
PRICES, PRICE_RATIO = 80, 0.9
#: Approximate privacy losses of one step, for which the number of copies is chosen. Larger ones
#: lower the bound by 2% to 50%, smaller ones need more than 96 steps to exclude a small error.
STEP_EPSILONS = (0.25, 0.5)


def orthogonal_lines_bound(
    workload: Workload,
    *,
    epsilon: float | None = None,
    alpha: float,
    metric: Metric = MEAN_L2,
    adjacency: Adjacency = Adjacency.REPLACE_ONE,
    privacy: Privacy | None = None,
) -> Bound:
    """Unconditional lower bound on sample complexity for any workload, from orthogonal lines alone.

    Cost: O(E^2 k + E r^2 + r^3) for E elements that span r dimensions, once for each workload.

    Parameters
    ----------
    workload : Workload
        k queries, on a universe of any size. At most 2^11 elements of it are used.
    epsilon, alpha, metric, adjacency, privacy : as for `Problem`
        Give either `epsilon` or `privacy`. The bound is best for the metric `RMS`.

    Examples
    --------
    Every 0.1-DP mechanism is 0.005-zCDP. The bound for all 0.005-zCDP mechanisms is smaller:

    >>> import geomdp as gd
    >>> for privacy in (gd.PureDP(0.1), gd.ZCDP(0.005)):
    ...     gd.bounds.orthogonal_lines_bound(
    ...         gd.workloads.Histogram(4), privacy=privacy, alpha=0.02, metric=gd.bounds.RMS()
    ...     )
    Bound(sc > 771, 0 assumptions)
    Bound(sc > 551, 0 assumptions)
    """
    problem = Problem(epsilon, alpha, metric, adjacency, privacy)
    reason = f"orthogonal lines do not exclude the error {alpha:.4g}, even with one record"
    return covering_bound(line_rungs(workload, problem), problem, [reason])


def orthogonal_lines_error(
    workload: Workload,
    n: int,
    *,
    epsilon: float | None = None,
    metric: Metric = MEAN_L2,
    adjacency: Adjacency = Adjacency.REPLACE_ONE,
    privacy: Privacy | None = None,
) -> float:
    """A lower bound on the error of every private mechanism on its worst data set of n records.

    The bound is C / n for the largest C of lines whose data sets need at most n records, or 0 if
    there are none. It is per query, in the units of the answers (means).

    Examples
    --------
    >>> import geomdp as gd
    >>> workload = gd.workloads.Histogram(4)
    >>> error = gd.bounds.orthogonal_lines_error(
    ...     workload, 1000, epsilon=0.1, metric=gd.bounds.RMS()
    ... )
    >>> noise = gd.mechanisms.KNorm(workload, n=1000, privacy=gd.PureDP(0.1))
    >>> round(error, 5), round(noise.predicted_rmse.value, 5)
    (0.01575, 0.02049)
    """
    plans = line_plans(workload, Problem(epsilon, 1.0, metric, adjacency, privacy))
    within = [plan.scale for plan in plans if plan.records <= whole(n, "n")]
    return max(within, default=0.0) / n


def additive_noise_error(
    workload: Workload,
    n: int,
    *,
    epsilon: float | None = None,
    metric: Metric = MEAN_L2,
    adjacency: Adjacency = Adjacency.REPLACE_ONE,
    privacy: Privacy | None = None,
) -> float:
    """A lower bound on the error of additive private noise that is independent of the data.

    The bound holds only for mechanisms M(X) = Q(X) + Z / n with Z independent of X, and not for
    answers that are projected or fitted. Their privacy does not depend on n. So if lines exclude an
    error for some number of records, this number times the error bounds the size of Z. The units
    are those of `orthogonal_lines_error`, whose result is no larger.

    Examples
    --------
    >>> import geomdp as gd
    >>> workload = gd.workloads.Histogram(4)
    >>> few = gd.bounds.additive_noise_error(workload, 20, epsilon=0.1, metric=gd.bounds.RMS())
    >>> every = gd.bounds.orthogonal_lines_error(workload, 20, epsilon=0.1, metric=gd.bounds.RMS())
    >>> round(few, 4), round(every, 4)  # projections improve answers for few records
    (0.8004, 0.2634)
    """
    plans = line_plans(workload, Problem(epsilon, 1.0, metric, adjacency, privacy))
    return max((plan.scale for plan in plans), default=0.0) / whole(n, "n")


def line_rungs(workload: Workload, problem: Problem) -> list[Rung]:
    """One rung for each plan that excludes at least one number of records."""
    return rungs_of_plans(line_plans(workload, problem), problem.alpha)


def line_plans(workload: Workload, problem: Problem) -> tuple[Plan, ...]:
    """Plans for a workload, in increasing order of records and scale; `alpha` does not matter."""
    require_type(workload, Workload, "workload")
    metric, largest = problem.metric, isinstance(problem.metric, WorstCase)
    return _plans(workload, Accuracy(problem.guarantee, problem.changes, metric.moment, largest))


@lru_cache(maxsize=32)
def _plans(workload: Workload, asked: Accuracy) -> tuple[Plan, ...]:
    """Plans for all frames and prices, without those that need more records for no larger scale."""
    most = {asked.copies(step) for step in STEP_EPSILONS}
    # For the numbers of copies in `most`, try all `STEPS`. For smaller powers of 2, try one step.
    options: dict[int, tuple[int, ...]]
    options = {1 << i: STEPS[:1] for i in range(max(most).bit_length())}
    options |= dict.fromkeys(most, STEPS)
    frames = orthogonal_lines(workload)
    if not asked.largest:
        frames = frames[:-1]
    if all(len(lines.lengths) == 1 for lines in frames):
        # For few records, the bound is then close to the least error of an estimate on the line.
        options[1] = tuple(sorted({*options.get(1, ()), *range(1, LONGEST + 1)}))
    plans = (
        plan
        for copies, steps in options.items()
        if asked.loss * copies <= MOST_STEP
        for lines in frames
        for plan in _priced(lines, steps, copies, asked)
    )
    return best_plans(plans)


def _priced(
    lines: OrthogonalLines, options: tuple[int, ...], copies: int, asked: Accuracy
) -> Iterator[Plan]:
    """Plans with equal steps on all lines, then the best plan for each falling price."""
    steps = np.array([count for count in options if asked.loss * copies * count <= MOST_EPSILON])
    for count in steps.tolist():
        yield line_plan(lines, np.full(len(lines.lengths), count), copies, asked)
    if len(lines.lengths) == 1 or len(steps) == 1:
        return
    risks = [asked.risk(count, copies).risk for count in steps.tolist()]
    # Squared lengths and gains are in units of the squared length of the longest line.
    shares = (lines.lengths[:, None] / lines.lengths.max()) ** 2
    gains = shares * np.array(risks) ** (2 / asked.moment)
    for price in PRICE_RATIO ** np.arange(PRICES):
        chosen = steps[(gains - price * steps).argmax(axis=1)]
        yield line_plan(lines, chosen, copies, asked)


# Sets of 1, 2, 3, 4, 6, ... orthogonal lines for a workload.

#: Largest number of elements used, and largest number of their answers in memory: 2^23 float64
#: numbers take 64 MB. Two elements are used even if they have more answers.
MAX_ELEMENTS, MAX_ANSWERS = 1 << 11, 1 << 23
#: Smaller differences of answers give no lines. `check_certificate` rejects numbers below 1e-100.
LEAST_ANSWER = 1e-100


@lru_cache(maxsize=8)
def orthogonal_lines(workload: Workload) -> tuple[OrthogonalLines, ...]:
    """Sets of 1, 2, 3, 4, 6, 8, ... lines, up to the rank of the answers; last, one line along the
    query with the widest range, which can prove more for the largest error over the queries.
    """
    most = max(2, min(MAX_ELEMENTS, MAX_ANSWERS // workload.n_queries))
    elements = elements_or_sample(workload, most, PUBLIC_SEED)
    answers = bounded_answers(workload, elements)
    centred = answers - answers.mean(axis=0)
    unit = float(np.abs(centred).max())
    if unit <= LEAST_ANSWER:
        return ()
    centred = centred / unit  # no product of such answers overflows
    points = coordinates(centred)
    widest = np.array([np.ptp(centred, axis=0).argmax()])
    found: list[tuple[FloatArray, int, IntArray | None]]
    found = [(points, size, None) for size in growing_sizes(points.shape[1])]
    found.append((coordinates(centred[:, widest]), 1, widest))
    lines = []
    for points, size, queries in found:
        pairs, lengths = widest_frame(points, size)
        lines.append(OrthogonalLines(workload, *used_elements(elements, pairs), lengths, queries))
    return tuple(lines)


# Pairs of points that are far apart in orthogonal directions. An ascent alternates two steps: find
# the pair with the largest delta_j = <u_j, w_j> for each vector u_j of an orthonormal frame, then
# take the polar factor of the matrix with columns delta_j w_j. Up to raised eigenvalues, no step
# lowers the sum of the squared delta_j.

#: How often an ascent repeats its two steps. More change the lengths by less than one per cent.
ASCENT_STEPS = 8
#: Eigenvalues below this share of the largest are raised to it, as their roots are inverted.
SINGULAR = 1e-9
#: An element counts as in the span of those before it if its squared distance from the span, its
#: pivot, is below this share of the largest pivot.
LEAST_PIVOT = 1e-8


def coordinates(centred: FloatArray) -> FloatArray:
    """Coordinates (E, r) of `centred` points (E, k) of rank r in a Gram-Schmidt basis."""
    gram = centred @ centred.T
    least = LEAST_PIVOT * float(np.diag(gram).max(initial=0.0))
    factor, pivots, rank, _ = scipy.linalg.lapack.dpstrf(gram, tol=least, lower=1)
    points = np.empty((len(gram), rank))
    points[pivots - 1] = np.tril(factor)[:, :rank]
    return points


def widest_frame(points: FloatArray, size: int) -> tuple[IntArray, FloatArray]:
    """Pairs (size, 2) of rows of `points` (E, r) far apart along orthogonal axes; their lengths."""
    rank = points.shape[1]
    random = np.random.default_rng(PUBLIC_SEED).standard_normal((rank, size))
    starts = (np.eye(rank, size), np.linalg.qr(random)[0])
    found = [_ascend(points, start) for start in starts]
    return max(found, key=lambda frame: (frame[1] ** 2).sum())


def _ascend(points: FloatArray, frame: FloatArray) -> tuple[IntArray, FloatArray]:
    """Pairs and lengths at the end of an ascent that starts with `frame` (r, size)."""
    pairs, lengths = _widest(points, frame)
    for _ in range(ASCENT_STEPS):
        differences = (points[pairs[:, 0]] - points[pairs[:, 1]]) * lengths[:, None]
        values, vectors = np.linalg.eigh(differences @ differences.T)
        # Repeated pairs have eigenvalues 0. If these are raised, the frame is unique, but some of
        # its vectors are too short.
        roots = np.sqrt(np.maximum(values, SINGULAR * values[-1]))
        pairs, lengths = _widest(points, differences.T @ (vectors / roots) @ vectors.T)
    return pairs, lengths


def _widest(points: FloatArray, frame: FloatArray) -> tuple[IntArray, FloatArray]:
    """The points farthest apart along each column of `frame` (r, size), and their distances."""
    along = points @ frame
    pairs = np.column_stack([along.argmax(axis=0), along.argmin(axis=0)])
    columns = np.arange(frame.shape[1])
    return pairs, along[pairs[:, 0], columns] - along[pairs[:, 1], columns]


# Lower bound on the largest error over the queries, from lines along single queries. For small
# epsilon b, large T and a smooth prior, C is close to delta (1 + 1/2 + ... + 1/g) / epsilon: the
# expected largest absolute value of g independent Laplace variables of scale delta / epsilon.

#: Relative margin of C; the rounding errors of p(m) are below (T + epsilon b T) 2^-51.
QUERY_MARGIN = 1e-10


@dataclass(frozen=True, eq=False, repr=False)
class QueryLines(PairedElements):
    """Pairs of elements: pair j differs in its own query, number j of `queries` (g,), and agrees in
    the queries of earlier pairs.
    """

    queries: IntArray

    @cached_property
    def length(self) -> float:
        """delta: the least difference of the answers of a pair to its own query."""
        return float(np.abs(np.diag(self.differences[:, self.queries])).min())

    def last(self, count: int) -> QueryLines:
        """The last `count` pairs."""
        used = used_elements(self.elements, self.pairs[-count:])
        return QueryLines(self.workload, *used, self.queries[-count:])

    def document(self) -> dict[str, Any]:
        return {
            "type": "query lines",
            **listing_document(self.workload, self.elements, self.answers),
            "pairs": self.pairs,
            "queries": self.queries,
        }


#: Largest number E^2 k of comparisons of answers, and of queries for which lines are sought.
MAX_COMPARED, MAX_QUERIES = 1 << 24, 1 << 9
#: Largest number of lines. The bound grows with the logarithm of the number of lines.
MOST_LINES = 64
#: Least difference of the two answers of a pair to its query, as a share of the query's range.
LEAST_SHARE = 0.5
#: Numbers of steps that are tried for each line.
QUERY_STEPS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
#: Privacy losses of one step, for which the number of copies is chosen, besides one copy.
QUERY_STEP_EPSILONS = (0.25, 1.0)


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
    plans = _query_plans(workload, problem.pure_epsilon * problem.changes)
    return rungs_of_plans(plans, problem.alpha)


@lru_cache(maxsize=32)
def _query_plans(workload: Workload, epsilon: float) -> tuple[Plan, ...]:
    """Plans for the lines, steps and copies that are tried, without dominated plans."""
    lines = found_lines(workload)
    return () if lines is None else best_plans(_all_query_plans(lines, epsilon))


def _all_query_plans(lines: QueryLines, epsilon: float) -> Iterator[Plan]:
    """The plan with the best prior, for each number of lines, steps T and copies b that is tried;
    its scale is C = (b delta / 2) sum_{m=1}^T (1 - (1 - p(m))^g).
    """
    subsets = [lines.last(size) for size in growing_sizes(len(lines.pairs))]
    most = (max(1, math.floor(step / epsilon)) for step in QUERY_STEP_EPSILONS)
    for copies in sorted({1, *most}):
        one = epsilon * copies
        for steps in QUERY_STEPS:
            if one > MOST_STEP or one * steps > MOST_EPSILON:
                continue
            priors = smooth_priors(steps)
            tails = np.array([least_tails(prior, one) for prior in priors])
            for subset in subsets:
                count = len(subset.pairs)
                sums = (-np.expm1(count * np.log1p(-tails))).sum(axis=1)
                best = int(sums.argmax())
                scale = copies * subset.length / 2 * float(sums[best]) * (1 - QUERY_MARGIN)
                each = f"{plural(steps, 'step')} of {plural(copies, 'replacement')}"
                made_of = f"{plural(count, 'line')} for one query each, of {each}"
                constants = {"copies": copies, "steps": steps, "scale": scale}
                lists = {"prior": priors[best]}
                yield Plan("query lines", subset, copies * steps * count, made_of, constants, lists)


@lru_cache(maxsize=8)
def found_lines(workload: Workload) -> QueryLines | None:
    """The lines found for a workload; None if no query tried has a range above `LEAST_ANSWER`."""
    k = workload.n_queries
    most = max(2, math.isqrt(MAX_COMPARED // k))
    elements = elements_or_sample(workload, most, PUBLIC_SEED)
    answers = bounded_answers(workload, elements)
    considered = np.unique(np.linspace(0, k - 1, min(k, MAX_QUERIES)).astype(int))
    considered = considered[np.ptp(answers[:, considered], axis=0) > LEAST_ANSWER]
    if len(considered) == 0:
        return None
    pairs = _cleanest_pairs(answers, considered)
    changed = answers[pairs[:, 0]][:, considered] != answers[pairs[:, 1]][:, considered]
    order = _last_to_first(changed)[::-1]
    return QueryLines(workload, *used_elements(elements, pairs[order]), considered[order])


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


# A lower bound on the chance that a count is outside a range chosen from a private output. With a
# prior pi on the count t in {0, ..., T}, and q = e^-epsilon for an epsilon-DP step, t is outside
# any m consecutive numbers W with a probability of at least
#
#     p(m) = min over c and W of (sum over t outside W of pi_t q^|t - c|) / (sum_t pi_t q^|t - c|).
#
# `geomdp.bounds.checker.lines` has the proof (derived here).

#: Priors that are tried: powers of sin(pi (t + 1) / (T + 2)). Near an end, a range is likely to
#: contain t; priors that are small at the ends give little weight to this easy case.
POWERS = (0.0, 1.0, 1.5, 2.0, 4.0)


def smooth_priors(steps: int) -> list[FloatArray]:
    """Priors on {0, ..., T} for T = `steps`."""
    found = [sine_weights(steps + 1, power, 1.0) for power in POWERS]
    return [weights / weights.sum() for weights in found]


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
