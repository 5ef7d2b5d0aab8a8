"""Accuracy theorems of interactive mechanisms, which answer one query after another."""

from __future__ import annotations

import math
from collections.abc import Callable

from geomdp._numerics.bisection import smallest_accuracy
from geomdp._validation import positive, probability, whole
from geomdp.privacy import ApproxDP, PureDP
from geomdp.privacy.definitions import check_privacy

# Accuracy theorems of mechanisms built on an iterative database construction.
#
# With probability at least 1 - beta, no answer has an error above alpha. The update rule, which
# improves an estimate of the data after every wrong answer, enters through its `bound` B alone: it
# makes at most B(alpha) updates at accuracy alpha. Each function solves one equation with explicit
# constants. It returns alpha in (0, 1], up to a relative error of 1e-12.

#: Constant of Theorem 3.3 of Blum-Roth.
ONLINE_CONSTANT = 3000


def online_accuracy(
    bound: Callable[[float], float], *, n: int, queries: int, privacy: ApproxDP, beta: float
) -> float:
    """The accuracy alpha in (0, 1] of Theorem 3.3, for k adaptive queries about n records.

    alpha = 3000 sqrt(B(alpha)) ln(4/delta) ln(k/beta) / (eps n).

    With the bound of `SparseMultiplicativeWeights`, whose table has s = s(alpha) slots, this is
    Theorem 3.8 (DISC-8): alpha^2 = 6000 sqrt(ln s + 1) ln(4/delta) ln(k/beta) / (eps n). The
    accuracy of the `OnlineConstruction` of this library has the leading constant 76.4 in place of
    3000, but other logarithms, and B(alpha / 3) in place of B(alpha) (BR-OIC). Source: Blum-Roth
    2013, Theorems 3.3 and 3.8; BR-T3.3, BR-SMW.

    Parameters
    ----------
    bound : callable
        B(alpha), the largest number of updates of the rule at accuracy alpha; not increasing.
    n, queries : int
        Number of records, and number k of adaptive queries with values in [0, 1].
    privacy, beta : ApproxDP, float
        Guarantee of the whole run, and failure probability, 0 < beta < 1.

    Raises
    ------
    ValueError
        For parameters out of range, or if even alpha = 1 does not satisfy the theorem.

    Examples
    --------
    >>> import geomdp as gd
    >>> rule = gd.mechanisms.MultiplicativeWeights(1024)
    >>> alpha = gd.bounds.upper.online_accuracy(
    ...     rule.bound, n=10**8, queries=1000, privacy=gd.ApproxDP(1.0, 1e-6), beta=0.05
    ... )
    >>> round(alpha, 3)
    0.154
    """
    check_privacy(privacy, ApproxDP)
    logs = math.log(4 / privacy.delta) * math.log(
        whole(queries, "queries") / probability(beta, "beta")
    )
    scale = ONLINE_CONSTANT * logs / (privacy.epsilon * whole(n, "n"))
    return _solved(lambda alpha: scale * math.sqrt(bound(alpha)), n, queries)


def iterative_accuracy(
    bound: Callable[[float], float],
    *,
    n: int,
    queries: int,
    privacy: PureDP | ApproxDP,
    beta: float,
) -> float:
    """The alpha of Theorems 7 and 8, corrected, for a class C of |C| = `queries` linear queries.

    Let b = max(1, B(alpha/2)). For pure DP, alpha = 32 b / (n eps) ln(2 b |C| / beta). For
    approximate DP, 2 sqrt(b ln(1/delta)) replaces the first factor b. The exponential mechanism
    chooses the query of each update. The printed theorems have 8 in place of 32 for pure DP, and 16
    in place of 32 * 2 for approximate DP. These smaller constants guarantee only an error of 3
    alpha / 2 (DISC-13). For multiplicative weights on N elements and pure DP, the equation is
    alpha^3 = 512 ln N / (n eps) ln(2 b |C| / beta). Parameters and errors: see `online_accuracy`.
    Source: Roth's lecture on iterative construction, Theorems 7 and 8; Dwork-Roth 2014, section
    5.2; IC-T4, IC-T5.

    Examples
    --------
    >>> import geomdp as gd
    >>> rule = gd.mechanisms.MultiplicativeWeights(1024)
    >>> alpha = gd.bounds.upper.iterative_accuracy(
    ...     rule.bound, n=10**6, queries=1000, privacy=gd.PureDP(1.0), beta=0.05
    ... )
    >>> round(alpha, 3)
    0.394
    """
    check_privacy(privacy, PureDP, ApproxDP)
    count, share = whole(queries, "queries"), probability(beta, "beta")
    whole(n, "n")

    def right_side(alpha: float) -> float:
        updates = max(1.0, bound(alpha / 2))
        match privacy:
            case PureDP(epsilon=epsilon):
                steps = 32 * updates / epsilon
            case ApproxDP(epsilon=epsilon, delta=delta):
                steps = 64 * math.sqrt(updates * math.log(1 / delta)) / epsilon
        return steps / n * math.log(2 * updates * count / share)

    return _solved(right_side, n, queries)


def _solved(right_side: Callable[[float], float], n: int, queries: int) -> float:
    alpha = smallest_accuracy(lambda alpha: alpha >= right_side(alpha))
    if alpha is None:
        raise ValueError(f"n must be larger for {queries} queries, even for alpha = 1, got {n}")
    return alpha


# Accuracy theorems of the sparse vector technique, for queries of sensitivity 1.
#
# A mechanism with threshold T is (alpha, beta)-accurate if with probability at least 1 - beta,
# every query that is reported above the threshold has a true answer of at least T - alpha, every
# other query one of at most T + alpha, and each released value is within alpha of the true answer.
#
# Let k be the number of queries and c the `cutoff`. To exclude an early halt, each theorem assumes
# that at most c of the k queries have a true answer of at least T - alpha; for `above_threshold`,
# only the last query. For queries of sensitivity D, multiply alpha by D, except in `sparse_kept`,
# where the noise scales contain D.


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
