"""A lower bound on the chance that a count is outside a range chosen from a private output.

With a prior pi on the count t in {0, ..., T}, and q = e^-epsilon for an epsilon-DP step, t is
outside any m consecutive numbers W with a probability of at least

    p(m) = min over c and W of (sum over t outside W of pi_t q^|t - c|) / (sum_t pi_t q^|t - c|).

`geomdp.bounds.checker.query_lines` has the proof (derived here). For a flat prior and large T,
q^|t - c| is the posterior of discrete Laplace noise (Ghosh-Roughgarden-Sundararajan 2009).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from geomdp._typing import FloatArray
from geomdp.bounds.lines.bayes_risk import MOST_EPSILON, MOST_STEP

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
