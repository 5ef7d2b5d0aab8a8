"""Bayes risk of a private count: how well a mechanism can estimate t in {0, ..., T}.

`geomdp.bounds.checker.lines` proves the bound from a prior pi and allowances nu. The best ones are
the dual variables of a linear program for the minimax estimate, which `best_prior` solves for T
up to 40; no bound can be larger than its optimum. For larger T, smooth priors are almost as good,
with nu_t = lambda pi_t. For p = 2 and q = e^-epsilon, lambda tends to 2 q / (1 - q)^2 as T grows:
the variance of discrete Laplace noise, so this noise is optimal for large T.

References
----------
Ghosh-Roughgarden-Sundararajan 2009 and Gupte-Sundararajan 2010 for the linear program;
Boyd-Vandenberghe 2004, section 5, for duality.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from geomdp._typing import FloatArray, IntArray
from geomdp._validation import positive, whole
from geomdp.privacy import ApproxDP
from geomdp.privacy.definitions import check_privacy

#: Smooth priors that are tried: powers of sin(pi (t + a) / (T + 2 a)), as pairs (power, a). Flat
#: priors are best for small T, and priors that decrease towards the ends are best for large T.
PRIORS = ((0.0, 1.0), (0.5, 2.0), (1.0, 2.0), (1.5, 2.0), (2.0, 4.0))
#: Distance between points y for squared errors. A step from t to t + 1 has length 1. For large
#: epsilon, errors are smaller than a step, and `private_line` uses a smaller distance.
SPACING = 0.02
#: Largest epsilon T. The number e^(epsilon T) must not overflow, and a larger T would raise a risk
#: by at most about 2%.
MOST_EPSILON = 64.0
#: Largest epsilon of a step. For larger epsilon, errors are tiny, and the points y would be too far
#: apart.
MOST_STEP = 12.0
#: Relative margin for the O(T) rounding errors of a risk. For T up to 1000 it is more than 40 times
#: T 2^-52.
RISK_MARGIN = 1e-11
#: Relative margin for the rounding errors of a sum of T + 1 allowances.
SUM_MARGIN = 1e-14


@dataclass(frozen=True)
class PrivateLine:
    """A proved lower bound on the Bayes risk of a private estimate of t in {0, ..., T}.

    Data sets with t and t + 1 records of the first of two kinds are neighbours, so output densities
    satisfy e^-epsilon <= f_{t+1} / f_t <= e^epsilon. The mean of |y - t|^p, p = 1 or 2, is at least
    nu_0 + ... + nu_T if sum_t f_t (pi_t |y - t|^p - nu_t) >= 0 for all these f > 0 and y in [0, T].

    Parameters
    ----------
    prior : tuple of float
        pi_0, ..., pi_T, at least 0 and of sum 1.
    allowances : tuple of float
        nu_0, ..., nu_T. Their sum, rounded down, is the risk.
    spacing : float
        Distance h between the points y of the proof; 1 for p = 1.
    risk : float
        A lower bound on the mean of |y - t|^p: the sum of the allowances, rounded down.

    Examples
    --------
    >>> import geomdp as gd
    >>> line = gd.bounds.private_line(1, 1.0, moment=2)
    >>> line
    PrivateLine(steps=1, risk=0.196592)
    >>> line.steps, [round(weight, 3) for weight in line.prior]
    (1, [0.5, 0.5])
    """

    prior: tuple[float, ...]
    allowances: tuple[float, ...]
    spacing: float
    risk: float

    def __repr__(self) -> str:
        return f"PrivateLine(steps={self.steps}, risk={self.risk:.6g})"

    @property
    def steps(self) -> int:
        return len(self.prior) - 1

    def document(self) -> dict[str, Any]:
        return {
            "spacing": self.spacing,
            "risk": self.risk,
            "prior": np.array(self.prior),
            "allowances": np.array(self.allowances),
        }


@lru_cache(maxsize=1024)
def private_line(steps: int, epsilon: float, moment: int) -> PrivateLine:
    """The largest lower bound that is found on the Bayes risk for T = `steps`.

    A few smooth priors are tried, and the best prior from the linear program of the best estimate.
    Up to 40 steps, if its solver succeeds, the bound for `moment` 1 is the error of the best
    mechanism up to rounding. For `moment` 2 it is slightly smaller, because y is restricted to
    points. For more steps, the prior that is best for 40 steps is tried instead. Cost: a linear
    program with O(T^2) unknowns (half a second for T = 40), and a few iterations of O(T^2 / h) for
    each prior, with points h apart.

    Parameters
    ----------
    steps : int
        Number of steps T, at least 1.
    epsilon : float
        Privacy of one step, above 0 and at most 12, with epsilon T at most 64.
    moment : int
        p: 1 for the mean absolute error, 2 for the mean squared error.

    Examples
    --------
    Every 1-DP estimate of a count from 0 to 24 has at least this mean squared error for some count:

    >>> import geomdp as gd
    >>> round(gd.bounds.private_line(24, 1.0, moment=2).risk, 3)
    1.69

    The variance of discrete Laplace noise is slightly larger. This noise needs no bound on the
    count:

    >>> import math
    >>> round(2 * math.exp(-1) / (1 - math.exp(-1)) ** 2, 3)
    1.841
    """
    whole(steps, "steps")
    whole(moment, "moment", maximum=2)
    if not (positive(epsilon, "epsilon") <= MOST_STEP and epsilon * steps <= MOST_EPSILON):
        raise ValueError(
            f"epsilon must be at most 12, and at most 64 for all steps together, got {epsilon!r} "
            f"for each of {steps} steps"
        )
    spacing = 1.0 if moment == 1 else SPACING * min(1.0, 8 * math.exp(-epsilon / 2))
    found = []
    if steps > LONGEST:
        found.append(_lengthened(private_line(LONGEST, epsilon, moment), steps))
    elif (optimal := best_prior(steps, epsilon, moment)) is not None:
        found.append(_corrected(*optimal, epsilon, moment, spacing))
    for power, inset in PRIORS:
        weights = np.sin(np.pi * (np.arange(steps + 1) + inset) / (steps + 2 * inset)) ** power
        prior = weights / weights.sum()
        risk = least_risk(prior, epsilon, moment, spacing)
        found.append(_line(prior, risk * prior, spacing))
    return max(found, key=lambda line: line.risk)


def least_risk(prior: FloatArray, epsilon: float, moment: int, spacing: float) -> float:
    """The largest lambda, rounded down, for which lambda `prior` (T + 1,) are allowances."""
    risk = _least_ratio(prior[:, None] * _losses(len(prior) - 1, moment, spacing), prior, epsilon)
    return risk * (1 - RISK_MARGIN) if risk > 0 else risk


def _corrected(
    prior: FloatArray, allowances: FloatArray, epsilon: float, moment: int, spacing: float
) -> PrivateLine:
    """The line whose allowances are raised or lowered as much as the condition permits."""
    gains = prior[:, None] * _losses(len(prior) - 1, moment, spacing) - allowances[:, None]
    # The prior alone can be 0 at some t, and could not repair the condition there.
    weights = (prior + 1 / len(prior)) / 2
    terms = gains + 2 * np.abs(allowances)[:, None]
    most = float((np.abs(terms).max(axis=1) / weights).max())
    change = _least_ratio(gains, weights, epsilon) - RISK_MARGIN * most
    return _line(prior, allowances + change * weights, spacing)


def _lengthened(line: PrivateLine, steps: int) -> PrivateLine:
    """The line with more `steps`, and with prior 0 and allowance 0 at all further t."""
    rest = (0.0,) * (steps - line.steps)
    return PrivateLine(line.prior + rest, line.allowances + rest, line.spacing, line.risk)


def _line(prior: FloatArray, allowances: FloatArray, spacing: float) -> PrivateLine:
    """The line with the sum of the `allowances`, rounded down, as risk."""
    most = SUM_MARGIN * float(np.abs(allowances).sum())
    risk = math.fsum(allowances) - most
    return PrivateLine(tuple(prior.tolist()), tuple(allowances.tolist()), spacing, risk)


def _losses(steps: int, moment: int, spacing: float) -> FloatArray:
    """|y - t|^p for each t (a row) and each point y (a column), minus h^2 / 4 for p = 2."""
    points = spacing * np.arange(math.ceil(steps / spacing) + 1)
    # For p = 1, |y - t| is linear between neighbouring points, so nothing needs to be subtracted.
    slack = spacing**2 / 4 if moment == 2 else 0.0
    return np.asarray(np.abs(points - np.arange(steps + 1)[:, None]) ** moment - slack)


def _least_ratio(gains: FloatArray, weights: FloatArray, epsilon: float) -> float:
    """The least (sum f_t gains_t) / (sum f_t weights_t) over f and over columns (points y)."""
    shrink = math.exp(-epsilon)
    # Dinkelbach's method: find the best f for the current ratio, and take the ratio of this f. The
    # `weights` have the sum 1 and no entry below 0.
    least, previous = float(gains.sum(axis=0).min()), math.inf
    while least < previous:
        previous = least
        above, total = np.zeros(gains.shape[1]), np.zeros(gains.shape[1])
        for t in range(len(weights) - 1, -1, -1):
            ratio = np.where(above > previous * total, shrink, 1 / shrink)
            above = gains[t] + ratio * above
            total = weights[t] + ratio * total
        least = float((above / total).min())
    return previous


# The best prior for a private estimate of t in {0, ..., T}, from a linear program.
#
# The sum of the allowances nu is maximised over pi, nu and V with V_0(y) >= 0 and
#
#     V_t(y) <= pi_t |y - t|^p - nu_t + e^(+-epsilon) V_{t+1}(y),   with both signs.
#
# The dual program finds the estimate that reports one of the points y with the least p-th moment of
# the error, in the worst case over t. As t -> T - t changes nothing, t and T - t share their
# unknowns, and points y up to T / 2 are enough. The solution is no proof: `private_line` corrects
# it.

#: Largest number of steps T for which the program is solved. For T = 40 it takes half a second, for
#: T = 64 several seconds. For larger T, the program raises the bound by little.
LONGEST = 40
#: For p = 2, the spacing of the points y in [0, T / 2] gives about `CELLS` pairs (y, t), and is at
#: most `COARSEST`. A program then takes at most a second.
CELLS, COARSEST = 1500, 0.5


def best_prior(steps: int, epsilon: float, moment: int) -> tuple[FloatArray, FloatArray] | None:
    """The prior and the allowances (T + 1,) of the best bound; None if the solver fails."""
    from scipy.optimize import linprog

    points = _points(steps, moment)
    count, half = steps + 1, steps // 2 + 1
    pair = np.minimum(np.arange(count), steps - np.arange(count))
    members = np.bincount(pair)
    # The unknowns are the prior (half), the allowances (half), and V (points, T + 1).
    unknowns = 2 * half + len(points) * count
    costs = np.zeros(unknowns)
    costs[half : 2 * half] = -members
    total = np.zeros((1, unknowns))
    total[0, :half] = members
    lower = np.full(unknowns, -np.inf)
    lower[:half] = 0
    lower[2 * half :: count] = 0
    rows = _requirements(np.abs(points[:, None] - np.arange(count)) ** moment, pair, epsilon)
    solved = linprog(
        costs,
        A_ub=rows,
        b_ub=np.zeros(rows.shape[0]),
        A_eq=total,
        b_eq=[1.0],
        bounds=[(least, None) for least in lower.tolist()],
        method="highs-ds",
    )
    if not solved.success or solved.x is None:
        return None
    prior = np.maximum(solved.x[:half][pair], 0.0)
    return prior / prior.sum(), solved.x[half : 2 * half][pair]


def _points(steps: int, moment: int) -> FloatArray:
    """Points y from 0 to T / 2, or to the first point beyond T / 2."""
    if moment == 1:
        return np.arange(math.ceil(steps / 2) + 1, dtype=np.float64)
    spacing = min(COARSEST, steps / 2 * (steps + 1) / CELLS)
    return np.asarray(spacing * np.arange(math.ceil(steps / 2 / spacing) + 1))


def _requirements(losses: FloatArray, pair: IntArray, epsilon: float) -> Any:
    """Sparse matrix A with A x <= 0 for the unknowns x, from |y - t|^p (points, T + 1)."""
    from scipy import sparse

    # `pair` (T + 1,) holds min(t, T - t): the index of the unknowns that t and T - t share.
    size, half = losses.size, int(pair.max()) + 1
    cells = np.arange(size).reshape(losses.shape)
    columns = np.broadcast_to(pair, losses.shape)
    parts = []
    for side, factor in enumerate((math.exp(-epsilon), math.exp(epsilon))):
        rows = cells + side * size
        parts += [
            (rows, 2 * half + cells, np.ones(losses.shape)),
            (rows, columns, -losses),
            (rows, half + columns, np.ones(losses.shape)),
            (rows[:, :-1], 2 * half + cells[:, 1:], np.full(losses[:, 1:].shape, -factor)),
        ]
    row, column, value = (np.concatenate([part[i].ravel() for part in parts]) for i in range(3))
    return sparse.csr_array((value, (row, column)), shape=(2 * size, 2 * half + size))


# A lower bound on the Bayes risk of a private count under (epsilon, delta)-DP.
#
# `geomdp.bounds.checker.lines` has the proof. The bound is derived here from the linear program of
# `best_prior`: delta K is the price of its slack variables.

#: Relative margin for the rounding errors of delta K. The checker of certificates computes delta K
#: again, with a smaller margin of 5e-12.
PRICE_MARGIN = 1e-11


@dataclass(frozen=True)
class ApproximateLine:
    """A proved lower bound on the Bayes risk of an (epsilon, delta)-DP estimate.

    Parameters
    ----------
    pure : PrivateLine
        The prior, the allowances and the spacing of the points.
    risk : float
        The sum of the allowances less delta K, rounded down.

    Examples
    --------
    >>> import geomdp as gd
    >>> gd.bounds.approximate_line(24, gd.ApproxDP(1.0, 1e-6), 1, moment=2)
    ApproximateLine(steps=24, risk=1.68846)
    """

    pure: PrivateLine
    risk: float

    def __repr__(self) -> str:
        return f"ApproximateLine(steps={self.steps}, risk={self.risk:.6g})"

    @property
    def steps(self) -> int:
        return self.pure.steps

    def document(self) -> dict[str, Any]:
        return self.pure.document() | {"argument": "allowances", "risk": self.risk}


@lru_cache(maxsize=1024)
def approximate_line(steps: int, privacy: ApproxDP, changes: int, moment: int) -> ApproximateLine:
    """The bound of `private_line` minus delta K, for its prior and allowances.

    K is the sum over t = 1, ..., T of e^-epsilon max_y V_t(y) and of -min_y V_t(y) (each 0 if
    negative), where V_t(y) is the least sum over s >= t of (f_s / f_t) (pi_s |y - s|^p - nu_s). The
    result has a risk of 0 or below if delta is so large that nothing is proved.

    Parameters
    ----------
    steps : int
        Number of steps T, at least 1.
    privacy : ApproxDP
        The guarantee of the mechanism.
    changes : int
        Number b >= 1 of changes, each to a neighbouring data set, that one step takes. Group
        privacy (GEN-2) gives epsilon' = b epsilon and
        delta' = delta (e^epsilon' - 1) / (e^epsilon - 1).
    moment : int
        p: 1 for the mean absolute error, 2 for the mean squared error.

    Examples
    --------
    A larger delta proves less:

    >>> import geomdp as gd
    >>> for delta in (1e-9, 1e-6, 1e-3):
    ...     privacy = gd.ApproxDP(1.0, delta)
    ...     print(round(gd.bounds.approximate_line(8, privacy, 1, moment=2).risk, 4))
    1.2701
    1.27
    1.2076
    """
    check_privacy(privacy, ApproxDP)
    epsilon = whole(changes, "changes") * privacy.epsilon
    line = private_line(steps, epsilon, moment)
    delta = privacy.delta * math.expm1(epsilon) / math.expm1(privacy.epsilon)
    return ApproximateLine(
        line, line.risk - delta * _price(line, epsilon, moment) * (1 + PRICE_MARGIN)
    )


def _price(line: PrivateLine, epsilon: float, moment: int) -> float:
    """The number K of `approximate_line`, for the given line."""
    steps, h = line.steps, line.spacing
    points = np.minimum(h * np.arange(math.ceil(steps / h) + 1), steps)
    slack = h**2 / 4 if moment == 2 else 0.0
    values, at_ends, total = np.zeros(len(points)), np.zeros(2), 0.0
    for t in range(steps, 0, -1):
        gains = line.prior[t] * (np.abs(points - t) ** moment - slack) - line.allowances[t]
        values = gains + np.minimum(math.exp(-epsilon) * values, math.exp(epsilon) * values)
        distances = np.array([t, steps - t], dtype=float)
        at_ends = at_ends + line.prior[t] * distances**moment - line.allowances[t]
        total += math.exp(-epsilon) * max(0.0, float(at_ends.max()))
        total += max(0.0, -float(values.min()))
    return total
