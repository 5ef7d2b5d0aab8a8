"""How well a private mechanism tells how many of T records were exchanged.

Let t in {0, ..., T} be the number of records of one kind among T of two kinds: neighbouring data
sets have t and t + 1, so the output laws f_t of an epsilon-DP mechanism have
e^-epsilon <= f_{t+1} / f_t <= e^epsilon. With a prior pi on t, the error of any estimator y is at
least lambda as soon as

    sum_t pi_t f_t (|y - t|^p - lambda) >= 0   for all such f > 0 and all y in [0, T],

because this may be integrated over the outputs; y outside [0, T] is worse than its nearest end. For
fixed y, the least sum over f is found from the last t to the first: with V_T = g_T and
g_t = pi_t (|y - t|^p - lambda),

    V_t = g_t + min(e^-epsilon V_{t+1}, e^epsilon V_{t+1}),   and V_0 >= 0 is the condition.

For T to infinity and p = 2, lambda tends to 2 q / (1 - q)^2, q = e^-epsilon: the variance of the
discrete Laplace distribution, which is thus least.

In y: for p = 1 the sum is linear between whole numbers, so these are enough. For p = 2 and points h
apart, (y - t)^2 is above the line through (a - t)^2 - h^2 / 4 at the two points a next to y, so
that h^2 / 4 is taken off at each point and nothing is left out between.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from geomdp._typing import FloatArray
from geomdp._validation import positive, whole

#: Priors tried: powers of sin(pi (t + a) / (T + 2 a)), as pairs (power, a). Flat ones are best for
#: few steps, those that fade towards the ends for many.
PRIORS = ((0.0, 1.0), (0.5, 2.0), (1.0, 2.0), (1.5, 2.0), (2.0, 4.0))
#: Distance of points y for squared errors in steps; less where errors are far below a step.
SPACING = 0.02
#: Largest epsilon T: further steps change nothing, and e^(epsilon T) must be a float64.
MOST_EPSILON = 64.0
#: Largest epsilon: errors far below a step would need points far closer together.
MOST_STEP = 12.0
#: Relative margin for the O(T) roundings of a risk, far above T 2^-52.
MARGIN = 1e-11


@dataclass(frozen=True)
class PrivateLine:
    """A proved lower bound on the error of telling t in {0, ..., T}.

    Parameters
    ----------
    prior : tuple of float
        pi_0, ..., pi_T, not negative, of sum 1.
    spacing : float
        Distance h of the points y of the proof; 1 for the first moment.
    risk : float
        lambda: least mean of |y - t|^p, in steps.
    """

    prior: tuple[float, ...]
    spacing: float
    risk: float

    @property
    def steps(self) -> int:
        """T."""
        return len(self.prior) - 1


@lru_cache(maxsize=512)
def private_line(steps: int, epsilon: float, moment: int) -> PrivateLine:
    """The best bound found over a few priors.

    Parameters
    ----------
    steps : int
        T, at least 1.
    epsilon : float
        Privacy of one step, above 0 and at most 12, with epsilon T at most 64.
    moment : int
        p: 1 for the mean, 2 for the mean squared error.

    Raises
    ------
    ValueError
        For parameters out of range.

    Notes
    -----
    O(T^2 / h) for each of a few iterations.
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

    The least of sum pi_t f_t loss_t / sum pi_t f_t over f and y, by Dinkelbach's iteration: f is
    found for the lambda of the step before, and lambda is the ratio at f.
    """
    steps = len(prior) - 1
    points = spacing * np.arange(math.ceil(steps / spacing) + 1)
    # For the first moment |y - t| is itself linear between points.
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
