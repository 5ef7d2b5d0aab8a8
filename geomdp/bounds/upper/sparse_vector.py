"""Accuracy theorems of the sparse vector technique, for queries of sensitivity 1.

A mechanism with threshold T is (alpha, beta)-accurate if with probability at least 1 - beta, every
query that is reported above the threshold has a true answer of at least T - alpha, every other
query one of at most T + alpha, and each released value is within alpha of the true answer.

Let k be the number of queries and c the `cutoff`. To exclude an early halt, each theorem assumes
that at most c of the k queries have a true answer of at least T - alpha; for `above_threshold`,
only the last query. For queries of sensitivity D, multiply alpha by D, except in `sparse_kept`,
where the noise scales contain D.
"""

from __future__ import annotations

import math

from geomdp._validation import positive, probability, whole
from geomdp.privacy import ApproxDP, PureDP
from geomdp.privacy.definitions import check_privacy


def _logs(queries: int, beta: float, multiple: float) -> float:
    queries = whole(queries, "queries")
    return math.log(queries) + math.log(multiple / probability(beta, "beta"))


def above_threshold(epsilon: float, *, queries: int, beta: float) -> float:
    """alpha = 8 (ln k + ln(2/beta)) / eps (Dwork-Roth, Theorem 3.24; SV-AT).

    Examples
    --------
    >>> import geomdp as gd
    >>> round(gd.bounds.upper.above_threshold(1.0, queries=100, beta=0.05), 2)
    66.35
    """
    return 8 * _logs(queries, beta, 2) / positive(epsilon, "epsilon")


def sparse(privacy: PureDP | ApproxDP, *, cutoff: int, queries: int, beta: float) -> float:
    """Accuracy of `Sparse` with new threshold noise after each answer above the threshold.

    alpha = 8 c (ln k + ln(2c/beta)) / eps for pure DP. For approximate DP,
    sqrt(512 c ln(1/delta)) replaces 8 c (Dwork-Roth, Theorem 3.26; SV-SP).

    Examples
    --------
    >>> import geomdp as gd
    >>> alpha = gd.bounds.upper.sparse(gd.PureDP(1.0), cutoff=5, queries=100, beta=0.05)
    >>> round(alpha, 1)
    396.1
    """
    check_privacy(privacy, PureDP, ApproxDP)
    cutoff = whole(cutoff, "cutoff")
    logs = _logs(queries, beta, 2 * cutoff)
    match privacy:
        case PureDP(epsilon=epsilon):
            return 8 * cutoff * logs / epsilon
        case ApproxDP(epsilon=epsilon, delta=delta):
            return math.sqrt(512 * cutoff * math.log(1 / delta)) * logs / epsilon


def sparse_kept(*, threshold: float, query: float, queries: int, beta: float) -> float:
    """Accuracy of a mechanism that draws its threshold noise once (SV-LSL).

    alpha = s_threshold ln(2/beta) + s_query ln(2k/beta), where s_threshold = `threshold` and
    s_query = `query` are the scales of the Laplace noise. By a union bound (GEN-3), the two terms
    bound the noise on the threshold and on each of the k queries together with probability at
    least 1 - beta.

    Examples
    --------
    >>> import geomdp as gd
    >>> alpha = gd.bounds.upper.sparse_kept(threshold=2.0, query=20.0, queries=100, beta=0.05)
    >>> round(alpha, 1)
    173.3
    """
    share = positive(threshold, "threshold") * _logs(1, beta, 2)
    return share + positive(query, "query") * _logs(queries, beta, 2)


def numeric_sparse(privacy: PureDP | ApproxDP, *, cutoff: int, queries: int, beta: float) -> float:
    """Accuracy of `NumericSparse`, for every number of queries (SV-NUM, corrected).

    alpha = 9 c (ln k + ln(4c/beta)) / eps for pure DP (Dwork-Roth, Theorem 3.28). For approximate
    DP, sqrt(8 c ln(2/delta)) replaces c.

    Examples
    --------
    >>> import geomdp as gd
    >>> alpha = gd.bounds.upper.numeric_sparse(gd.PureDP(1.0), cutoff=5, queries=100, beta=0.05)
    >>> round(alpha, 1)
    476.8
    """
    check_privacy(privacy, PureDP, ApproxDP)
    cutoff = whole(cutoff, "cutoff")
    logs = _logs(queries, beta, 4 * cutoff)
    match privacy:
        case PureDP(epsilon=epsilon):
            return 9 * cutoff * logs / epsilon
        case ApproxDP(epsilon=epsilon, delta=delta):
            return 9 * math.sqrt(8 * cutoff * math.log(2 / delta)) * logs / epsilon


def numeric_sparse_printed(privacy: ApproxDP, *, cutoff: int, queries: int, beta: float) -> float:
    """The accuracy that Dwork and Roth print for NumericSparse at delta > 0; it can be false.

    alpha = (ln k + ln(4c/beta)) sqrt(c ln(2/delta)) (sqrt(512) + 1) / eps (Theorem 3.28). For few
    queries the printed noise scales do not give this accuracy. For example, for c = k = 10,
    beta = 0.05 and delta = 1e-6, the noise on the answers alone exceeds alpha with probability
    0.347 (DISC-11).

    Examples
    --------
    >>> import geomdp as gd
    >>> privacy = gd.ApproxDP(1.0, 1e-6)
    >>> printed = gd.bounds.upper.numeric_sparse_printed(privacy, cutoff=10, queries=10, beta=0.05)
    >>> proved = gd.bounds.upper.numeric_sparse(privacy, cutoff=10, queries=10, beta=0.05)
    >>> round(printed), round(proved)
    (2558, 2756)
    """
    check_privacy(privacy, ApproxDP)
    cutoff = whole(cutoff, "cutoff")
    spread = math.sqrt(cutoff * math.log(2 / privacy.delta)) * (math.sqrt(512) + 1)
    return _logs(queries, beta, 4 * cutoff) * spread / privacy.epsilon
