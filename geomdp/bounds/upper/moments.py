"""Upper bounds from papers for second moments, covariances and two-way marginals.

All formulas are *explicit*: they have all their constants, and hold for every data set of n
records, or for every distribution in `covariance_error`. From a sample size on, the error is at
most alpha. Privacy is eps-DP, and neighbouring data sets differ in one replaced record.
"""

from __future__ import annotations

import math

from geomdp._validation import positive, whole


def second_moment_error(d: int, *, n: int, epsilon: float) -> float:
    """Explicit bound on (E ||M - (1/n) sum of x x^T||_F^2)^(1/2), x in the unit ball of R^d.

    It is min{(d + 1) sqrt(2 d) / (n eps), sqrt((4 d + 3) / (n eps))}, in Frobenius norm, not per
    query. M is the answer of a mechanism that adds the difference of two Wishart matrices and
    projects.

    Source: Nikolov 2022, Lemma 22; JL-COV, JL-WIS.

    Examples
    --------
    >>> import geomdp as gd
    >>> round(gd.bounds.upper.second_moment_error(5, n=1000, epsilon=1.0), 4)
    0.019
    """
    d, per_record = whole(d, "d"), positive(epsilon, "epsilon") * whole(n, "n")
    return min((d + 1) * math.sqrt(2 * d) / per_record, math.sqrt((4 * d + 3) / per_record))


def second_moments(d: int, *, epsilon: float, alpha: float) -> float:
    """Explicit sample size for `second_moment_error` <= alpha, in Frobenius norm.

    min{(d + 1) sqrt(2 d) / (alpha eps), (4 d + 3) / (alpha^2 eps)}.

    Source: Nikolov 2022, Lemma 22; JL-WIS.

    Examples
    --------
    >>> import geomdp as gd
    >>> round(gd.bounds.upper.second_moments(5, epsilon=1.0, alpha=0.05))
    379
    """
    d = whole(d, "d")
    scale = 1 / (positive(alpha, "alpha") * positive(epsilon, "epsilon"))
    return scale * min((d + 1) * math.sqrt(2 * d), (4 * d + 3) / alpha)


def covariance_error(d: int, *, n: int, epsilon: float) -> float:
    """Explicit Theorem 3: bound on E ||S(X) - Sigma||_F for n independent records.

    The records lie in the unit ball of R^d and have covariance Sigma; S(X) is the private estimate.
    The bound is the sum of the sampling error 3 / sqrt n, the error of the second moments at
    privacy eps / 2, and twice the error 2 d / (n eps / 2) of the mean at privacy eps / 2.

    Source: Nikolov 2022, Theorem 3; JL-T3.

    Examples
    --------
    >>> import geomdp as gd
    >>> round(gd.bounds.upper.covariance_error(5, n=10_000, epsilon=1.0), 4)
    0.0378
    """
    half = positive(epsilon, "epsilon") / 2
    mean = 2 * whole(d, "d") / (whole(n, "n") * half)
    return 3 / math.sqrt(n) + second_moment_error(d, n=n, epsilon=half) + 2 * mean


def two_way_marginals_error(attributes: int, *, n: int, epsilon: float) -> float:
    """Explicit Theorem 23, in root mean square: sqrt(d / (d - 1)) times `second_moment_error`.

    All conjunctions of two of d attributes are computed from the second moments of x / sqrt d.

    Source: Nikolov 2022, Theorem 23; JL-T23.

    Examples
    --------
    >>> import geomdp as gd
    >>> round(gd.bounds.upper.two_way_marginals_error(10, n=10_000, epsilon=1.0), 4)
    0.0052
    """
    d = whole(attributes, "attributes", minimum=2)
    return math.sqrt(d / (d - 1)) * second_moment_error(d, n=n, epsilon=epsilon)


def two_way_marginals(attributes: int, *, epsilon: float, alpha: float) -> float:
    """Explicit sample size for `two_way_marginals_error` <= alpha, in root mean square.

    The size is `second_moments` at accuracy alpha sqrt((d - 1) / d), for d attributes.

    Source: Nikolov 2022, Theorem 23; JL-T23.

    Examples
    --------
    >>> import geomdp as gd
    >>> round(gd.bounds.upper.two_way_marginals(10, epsilon=1.0, alpha=0.01))
    5185
    """
    d = whole(attributes, "attributes", minimum=2)
    inner = positive(alpha, "alpha") * math.sqrt((d - 1) / d)
    return second_moments(d, epsilon=epsilon, alpha=inner)
