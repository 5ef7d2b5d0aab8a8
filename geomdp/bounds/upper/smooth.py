"""The accuracy theorem of the smooth-query summary, with its constant left open."""

from __future__ import annotations

import math

from geomdp._validation import positive, whole


def smooth_accuracy(d: int, order: int, *, n: int, epsilon: float, constant: float) -> float:
    """Shape of Theorem 3.1: error of all queries with K = `order` bounded derivatives in R^d.

    C n^(-K / (2 d + K)) max(1, 1 / eps), with probability 1 - beta for every
    beta >= `smooth_least_failure`. The maximum corrects the printed 1 / eps: the approximation
    error does not fall as eps grows (DISC-17).

    Parameters
    ----------
    d : int
        Dimension of the records, in [-1, 1]^d.
    order : int
        Order K of smoothness.
    n : int
        Number of records.
    epsilon : float
        Pure differential privacy.
    constant : float
        The C of the theorem, which depends on d, K and the bound on the derivatives.

    Returns
    -------
    float
        Bound on |answer - q_f(D)|, in the units of the queries.

    Raises
    ------
    ValueError
        For parameters out of range.

    Source: Wang-Fan-Zhang-Wang 2013, Theorem 3.1; SM-T3.1, SM-TAB.
    """
    exponent = _exponent(d, order)
    scale = positive(constant, "constant") * max(1.0, 1 / positive(epsilon, "epsilon"))
    return scale * math.pow(whole(n, "n"), -exponent)


def smooth_least_failure(d: int, order: int, *, n: int) -> float:
    """Explicit: the least failure probability of Theorem 3.1, 10 exp(-n^(d / (2 d + K)) / 5).

    Source: Wang-Fan-Zhang-Wang 2013, Theorem 3.1; SM-T3.1.
    """
    d, order = whole(d, "d"), whole(order, "order")
    return 10 * math.exp(-(whole(n, "n") ** (d / (2 * d + order))) / 5)


def _exponent(d: int, order: int) -> float:
    """K / (2 d + K)."""
    d, order = whole(d, "d"), whole(order, "order")
    return order / (2 * d + order)
