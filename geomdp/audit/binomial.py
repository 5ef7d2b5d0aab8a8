"""Exact confidence bounds on a probability from a count (Clopper-Pearson 1934), and on epsilon."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy.special import betainccinv, betaincinv

from geomdp._typing import FloatArray
from geomdp._validation import probability
from geomdp.audit.claims import Claim

#: Smallest level. The bounds divide a level by up to 16, and the result must not underflow.
LEAST_LEVEL = 1e-300


def checked_level(level: float) -> float:
    """Return `level`; ``ValueError`` if it is not below 1 and at least `LEAST_LEVEL`."""
    if 0 < probability(level, "level") < LEAST_LEVEL:
        raise ValueError(f"level must be at least {LEAST_LEVEL:g}, got {level!r}")
    return float(level)


def lower_bound(successes: npt.ArrayLike, trials: int, level: float) -> FloatArray:
    """Lower confidence bounds on a probability p, one for each count.

    A bound is above p with probability at most `level`, 0 < level < 1. For a count k in
    `successes`, among n = `trials` independent trials, the bound is the q at which Binomial(n, q)
    is k or more with probability `level`. This q is the `level` quantile of Beta(k, n - k + 1). For
    k = 0, the bound is 0.

    Examples
    --------
    >>> import geomdp as gd
    >>> gd.audit.lower_bound([0, 50, 100], 100, level=0.01).round(3)
    array([0.   , 0.381, 0.955])
    """
    k = np.asarray(successes, dtype=np.float64)
    # The beta distribution needs k >= 1. The last line replaces the result for k = 0.
    quantile = betaincinv(np.maximum(k, 1), trials - np.maximum(k, 1) + 1, level)
    return np.where(k > 0, quantile, 0.0)


def upper_bound(successes: npt.ArrayLike, trials: int, level: float) -> FloatArray:
    """Upper confidence bounds on a probability p, one for each count.

    A bound is below p with probability at most `level`, 0 < level < 1. For a count k in
    `successes`, among n = `trials` independent trials, the bound is the 1 - `level` quantile of
    Beta(k + 1, n - k). For k = n, the bound is 1.

    Examples
    --------
    >>> import geomdp as gd
    >>> gd.audit.upper_bound([0, 50, 100], 100, level=0.01).round(3)
    array([0.045, 0.619, 1.   ])
    """
    k = np.asarray(successes, dtype=np.float64)
    kept = np.minimum(k, trials - 1)
    return np.where(k < trials, betainccinv(kept + 1, trials - kept, level), 1.0)


def epsilon_bounds(
    hits_a: npt.ArrayLike, hits_b: npt.ArrayLike, trials: int, level: float, claims: Sequence[Claim]
) -> FloatArray:
    """Lower bounds on epsilon, one row per claim and one column per event, at `level` in all.

    Each is the largest of the bounds of the event and its complement, in both orders of the inputs.
    They follow from four bounds on probabilities, each of which fails with probability `level` / 4.
    """
    deltas = np.array([claim.delta for claim in claims])[:, None]
    hits_a, hits_b = np.asarray(hits_a), np.asarray(hits_b)
    best = np.full((len(claims), len(hits_a)), -np.inf)
    for first, second in ((hits_a, hits_b), (hits_b, hits_a)):
        low = lower_bound(first, trials, level / 4)
        high = upper_bound(second, trials, level / 4)
        # The event itself, and its complement with the inputs exchanged.
        for numerator, denominator in ((low - deltas, high), (1 - high - deltas, 1 - low)):
            possible = numerator > 0
            ratio = np.divide(numerator, denominator, where=possible, out=np.ones_like(best))
            best = np.maximum(best, np.where(possible, np.log(ratio), -np.inf))
    return best
