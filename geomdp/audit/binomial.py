"""Exact confidence bounds on a probability from a count (Clopper-Pearson)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import betainccinv, betaincinv

from geomdp._typing import FloatArray


def lower_bound(successes: npt.ArrayLike, trials: int, level: float) -> FloatArray:
    """Lower confidence bound on p: above p with probability at most `level`, for every p.

    The p at which Binomial(trials, p) reaches `successes` or more with probability `level`:
    the `level` quantile of Beta(k, n - k + 1), and 0 for k = 0.

    Parameters
    ----------
    successes : int or (...) array of int
        Counts k, 0 <= k <= n.
    trials : int
        Number of independent trials n.
    level : float
        Error probability, 0 < level < 1.

    Returns
    -------
    (...) array
        Bounds in [0, 1).

    References
    ----------
    Clopper-Pearson 1934.
    """
    k = np.asarray(successes, dtype=np.float64)
    # The beta distribution needs k >= 1; the value at k = 0 is replaced.
    quantile = betaincinv(np.maximum(k, 1), trials - np.maximum(k, 1) + 1, level)
    return np.where(k > 0, quantile, 0.0)


def upper_bound(successes: npt.ArrayLike, trials: int, level: float) -> FloatArray:
    """Upper confidence bound on p: below p with probability at most `level`, for every p.

    The 1 - `level` quantile of Beta(k + 1, n - k), and 1 for k = n.

    Parameters
    ----------
    successes : int or (...) array of int
        Counts k, 0 <= k <= n.
    trials : int
        Number of independent trials n.
    level : float
        Error probability, 0 < level < 1.

    Returns
    -------
    (...) array
        Bounds in (0, 1].

    References
    ----------
    Clopper-Pearson 1934.
    """
    k = np.asarray(successes, dtype=np.float64)
    kept = np.minimum(k, trials - 1)
    return np.where(k < trials, betainccinv(kept + 1, trials - kept, level), 1.0)
