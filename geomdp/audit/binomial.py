"""Exact confidence bounds on a probability from a count (Clopper-Pearson 1934)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import betainccinv, betaincinv

from geomdp._typing import FloatArray


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
