"""Accuracy of the summary that answers smooth queries; the caller gives the constant."""

from __future__ import annotations

import math

from geomdp._validation import positive, whole


def smooth_accuracy(d: int, order: int, *, n: int, epsilon: float, constant: float) -> float:
    """Error bound of Wang et al. 2013, Theorem 3.1, for queries with bounded derivatives.

    The error, in the units of the queries, is at most C n^(-K / (2 d + K)) max(1, 1 / eps) with
    probability 1 - beta for every beta >= 10 exp(-n^(d / (2 d + K)) / 5). The paper prints 1 / eps
    in place of the maximum. For eps > 1 this is wrong: as eps grows, the approximation error does
    not fall (DISC-17).

    Parameters
    ----------
    d : int
        Dimension of the records, in [-1, 1]^d.
    order : int
        Order of smoothness K: a query has bounded derivatives up to order K.
    n : int
        Number of records.
    epsilon : float
        Parameter eps of pure differential privacy.
    constant : float
        The C of the theorem. It depends on d, K and the bound on the derivatives.

    Examples
    --------
    >>> import geomdp as gd
    >>> [
    ...     round(gd.bounds.upper.smooth_accuracy(2, 4, n=n, epsilon=1.0, constant=1.0), 3)
    ...     for n in (1000, 1_000_000)
    ... ]
    [0.032, 0.001]
    """
    d, order = whole(d, "d"), whole(order, "order")
    scale = positive(constant, "constant") * max(1.0, 1 / positive(epsilon, "epsilon"))
    return scale * math.pow(whole(n, "n"), -order / (2 * d + order))
