"""Lower bounds from orthogonal lines for any workload: choice of the lines and of their steps.

More steps on a line prove a larger error, but need more records. So a step has a price, and the
steps on each line maximise its part in the squared error minus the price.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from geomdp._validation import require_type, whole
from geomdp.bounds.bound import Bound
from geomdp.bounds.certificates.certificate import covering_bound
from geomdp.bounds.certificates.problem import CHANGES, Problem, stated_privacy
from geomdp.bounds.certificates.rung import without_dominated
from geomdp.bounds.lines.bayes_risk import MOST_EPSILON, MOST_STEP
from geomdp.bounds.lines.best_prior import LONGEST
from geomdp.bounds.lines.line_sets import lines_for_all_queries, lines_for_some_queries
from geomdp.bounds.lines.orthogonal_lines import (
    LinePlan,
    LineRung,
    OrthogonalLines,
    line_plan,
    line_rung,
)
from geomdp.bounds.lines.risks import Accuracy
from geomdp.bounds.metrics import MEAN_L2, Metric, WorstCase
from geomdp.privacy import Adjacency, Privacy
from geomdp.privacy.definitions import checked_adjacency
from geomdp.workloads import Workload

#: Numbers of steps that are tried for each line.
STEPS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 32, 40, 48, 64, 96)
#: Number of prices, and the ratio of each price to the price before. The last price is so low that
#: even lines several times shorter than the longest line get many steps.
PRICES, PRICE_RATIO = 80, 0.9
#: Approximate privacy losses of one step of a line. The number of copies of each record is chosen
#: for these losses. Larger losses lower the bound by 2% to 50%. Smaller losses raise the bound by
#: 3% if there are few records. But to exclude a small error, more than 96 such steps would be
#: needed on a line.
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
    >>> import textwrap
    >>> import geomdp as gd
    >>> bound = gd.bounds.orthogonal_lines_bound(
    ...     gd.workloads.Histogram(4), epsilon=0.1, alpha=0.02, metric=gd.bounds.RMS()
    ... )
    >>> bound
    Bound(sc > 771, 0 assumptions)
    >>> print(textwrap.fill(bound.statement, 80))
    no mechanism has 0.1-DP (replace-one) and root mean squared error per query at
    most 0.02 with 771 records or fewer; with 771 records, the error is at least
    0.02 on some data set of 3 orthogonal lines, each of at most 48 steps of 5
    replacements

    Every 0.1-DP mechanism is 0.005-zCDP. The bound for all 0.005-zCDP mechanisms is smaller:

    >>> gd.bounds.orthogonal_lines_bound(
    ...     gd.workloads.Histogram(4), privacy=gd.ZCDP(0.005), alpha=0.02, metric=gd.bounds.RMS()
    ... )
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

    The bound is C / n for the largest C (see `OrthogonalLines`) of lines whose data sets need at
    most n records, or 0 if there are none. It is per query, in the units of the answers (means).

    Examples
    --------
    >>> import geomdp as gd
    >>> error = gd.bounds.orthogonal_lines_error(
    ...     gd.workloads.Histogram(4), 1000, epsilon=0.1, metric=gd.bounds.RMS()
    ... )
    >>> round(error, 5)
    0.01575

    K-norm noise at the same n is not far from this limit:

    >>> noise = gd.mechanisms.KNorm(gd.workloads.Histogram(4), n=1000, privacy=gd.PureDP(0.1))
    >>> round(noise.predicted_rmse.value, 5)
    0.02049
    """
    asked = stated_privacy(epsilon, privacy)
    plans = line_plans(workload, privacy=asked, metric=metric, adjacency=adjacency)
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
    answers that are projected or fitted. The privacy of such a mechanism does not depend on n. So
    if lines exclude an error for some number of records, this number times the error bounds the
    size of Z. The result, in the units of `orthogonal_lines_error`, is at least the result of that
    function.

    Examples
    --------
    >>> import geomdp as gd
    >>> workload = gd.workloads.Histogram(4)
    >>> few = gd.bounds.additive_noise_error(workload, 20, epsilon=0.1, metric=gd.bounds.RMS())
    >>> round(few, 4)
    0.8004

    The bound for all mechanisms is smaller, because projections improve answers for few records:

    >>> error = gd.bounds.orthogonal_lines_error(workload, 20, epsilon=0.1, metric=gd.bounds.RMS())
    >>> round(error, 4)
    0.2634
    """
    asked = stated_privacy(epsilon, privacy)
    plans = line_plans(workload, privacy=asked, metric=metric, adjacency=adjacency)
    return max((plan.scale for plan in plans), default=0.0) / whole(n, "n")


def line_rungs(workload: Workload, problem: Problem) -> list[LineRung]:
    """One `LineRung` for each plan that excludes at least one number of records."""
    plans = line_plans(
        workload, privacy=problem.guarantee, metric=problem.metric, adjacency=problem.adjacency
    )
    rungs = (line_rung(plan, problem.alpha) for plan in plans)
    return [rung for rung in rungs if rung is not None]


def line_plans(
    workload: Workload, *, privacy: Privacy, metric: Metric, adjacency: Adjacency
) -> tuple[LinePlan, ...]:
    """Plans for a workload, in increasing order of the number of records and of the scale."""
    require_type(workload, Workload, "workload")
    require_type(metric, Metric, "metric")
    changes = CHANGES[checked_adjacency(adjacency)]
    largest = isinstance(metric, WorstCase)
    return _plans(workload, Accuracy(privacy, changes, metric.moment, largest))


@lru_cache(maxsize=32)
def _plans(workload: Workload, asked: Accuracy) -> tuple[LinePlan, ...]:
    """Plans for all frames and prices, without those that need more records for no larger scale."""
    most = {copies for step in STEP_EPSILONS for copies in asked.copies(step)}
    # For the numbers of copies in `most`, try all `STEPS`. For smaller powers of 2, try one step.
    options: dict[int, tuple[int, ...]]
    options = {1 << i: STEPS[:1] for i in range(max(most).bit_length())}
    options |= dict.fromkeys(most, STEPS)
    frames = lines_for_all_queries(workload)
    frames += lines_for_some_queries(workload) if asked.largest else ()
    if all(len(lines.lengths) == 1 for lines in frames):
        # All frames have one line. With one copy, every number of steps up to 40 is tried. For so
        # few records, the bound is then close to the least error of a private estimate on the line.
        options[1] = tuple(sorted({*options.get(1, ()), *range(1, LONGEST + 1)}))
    plans = (
        plan
        for copies, steps in options.items()
        if asked.loss * copies <= MOST_STEP
        for lines in frames
        for plan in _priced(lines, steps, copies, asked)
    )
    return tuple(without_dominated(plans, lambda plan: plan.records, lambda plan: plan.scale))


def _priced(
    lines: OrthogonalLines, options: tuple[int, ...], copies: int, asked: Accuracy
) -> Iterator[LinePlan]:
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
