"""Bayes risk of a private count: how well a mechanism can tell t in {0, ..., T}.

Let t be the number of records of one kind among T records of two kinds. Data sets with t and t + 1
such records are neighbours, so the output densities f_t of an epsilon-DP mechanism satisfy
e^-epsilon <= f_{t+1} / f_t <= e^epsilon. Let pi be a prior on t, and let p be 1 or 2. For every
estimator y, the mean of |y - t|^p is at least lambda if

    sum_t pi_t f_t (|y - t|^p - lambda) >= 0   for all f > 0 with these ratios, all y in [0, T],

because the inequality can be integrated over the outputs, and an estimate outside [0, T] is worse
than the nearest end. For fixed y, dynamic programming from the last t to the first gives the least
sum over f: with g_t = pi_t (|y - t|^p - lambda) and V_T = g_T,

    V_t = g_t + min(e^-epsilon V_{t+1}, e^epsilon V_{t+1}),   and V_0 >= 0 is the condition.

For p = 2, lambda tends to 2 q / (1 - q)^2 with q = e^-epsilon as T grows. The limit is the variance
of the discrete Laplace distribution, so this distribution is optimal.

The condition is checked at finitely many y, the points. For p = 1 the sum is linear in y between
whole numbers, so it is enough to check whole numbers. For p = 2 let the points be h apart. Take the
line through the values of (y - t)^2 at two neighbouring points. Between these points, (y - t)^2 is
at most h^2 / 4 below the line. So the condition is checked with (y - t)^2 - h^2 / 4 at the points,
and then holds for (y - t)^2 between the points.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from geomdp._typing import FloatArray
from geomdp._validation import positive, whole

#: Priors that are tried: powers of sin(pi (t + a) / (T + 2 a)), as pairs (power, a). Flat priors
#: are best for small T, and priors that decrease towards the ends are best for large T.
PRIORS = ((0.0, 1.0), (0.5, 2.0), (1.0, 2.0), (1.5, 2.0), (2.0, 4.0))
#: Distance between points y for squared errors, where a step from t to t + 1 has length 1. For
#: large epsilon, errors are below a step, and `private_line` uses a smaller distance.
SPACING = 0.02
#: Largest epsilon T. The number e^(epsilon T) must not overflow, and a larger T improves no bound.
MOST_EPSILON = 64.0
#: Largest epsilon of a step. For larger epsilon, errors are so small that the points y would be too
#: far apart.
MOST_STEP = 12.0
#: Relative margin for the O(T) rounding errors of a risk, far above T 2^-52.
MARGIN = 1e-11


@dataclass(frozen=True)
class PrivateLine:
    """A proved lower bound on the Bayes risk of a private estimate of t in {0, ..., T}.

    Parameters
    ----------
    prior : tuple of float
        pi_0, ..., pi_T, at least 0 and of sum 1.
    spacing : float
        Distance h between the points y of the proof; 1 for the first moment.
    risk : float
        lambda, a lower bound on the mean of |y - t|^p.

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
    spacing: float
    risk: float

    def __repr__(self) -> str:
        return f"PrivateLine(steps={self.steps}, risk={self.risk:.6g})"

    @property
    def steps(self) -> int:
        """Number of steps T."""
        return len(self.prior) - 1


@lru_cache(maxsize=512)
def private_line(steps: int, epsilon: float, moment: int) -> PrivateLine:
    """The best lower bound on the Bayes risk that one of a few priors proves.

    Parameters
    ----------
    steps : int
        Number of steps T, at least 1.
    epsilon : float
        Privacy of one step, above 0 and at most 12, with epsilon T at most 64.
    moment : int
        p: 1 for the mean absolute error, 2 for the mean squared error.

    Raises
    ------
    ValueError
        For parameters out of range.

    Notes
    -----
    Cost: O(T^2 / h) for each of a few iterations, where h is the spacing.

    Examples
    --------
    Every 1-DP estimate of a count from 0 to 24 has at least this mean squared error for some count:

    >>> import geomdp as gd
    >>> round(gd.bounds.private_line(24, 1.0, moment=2).risk, 3)
    1.676

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
    for power, inset in PRIORS:
        weights = np.sin(np.pi * (np.arange(steps + 1) + inset) / (steps + 2 * inset)) ** power
        prior = weights / weights.sum()
        risk = least_risk(prior, epsilon, moment, spacing)
        found.append(PrivateLine(tuple(prior.tolist()), spacing, risk))
    return max(found, key=lambda line: line.risk)


def least_risk(prior: FloatArray, epsilon: float, moment: int, spacing: float) -> float:
    """The largest lambda that `prior` (T + 1,) proves with points y `spacing` apart, rounded down.

    This lambda is the minimum of (sum pi_t f_t loss_t) / (sum pi_t f_t) over f and y, where loss_t
    is |y - t|^p, minus h^2 / 4 for p = 2. Dinkelbach's iteration finds the best f for the current
    lambda, and then sets lambda to the ratio at this f.
    """
    steps = len(prior) - 1
    points = spacing * np.arange(math.ceil(steps / spacing) + 1)
    # For p = 1, |y - t| is linear between neighbouring points, so nothing needs to be subtracted.
    slack = spacing**2 / 4 if moment == 2 else 0.0
    loss = np.abs(points - np.arange(steps + 1)[:, None]) ** moment - slack
    shrink = math.exp(-epsilon)
    risk, previous = float(loss.max()), math.inf
    while risk < previous:
        previous = risk
        above, total = np.zeros_like(points), np.zeros_like(points)
        for t in range(steps, -1, -1):
            ratio = np.where(above > previous * total, shrink, 1 / shrink)
            above = prior[t] * loss[t] + ratio * above
            total = prior[t] + ratio * total
        risk = float((above / total).min())
    return previous * (1 - MARGIN) if previous > 0 else previous
