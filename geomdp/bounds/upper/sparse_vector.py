"""Accuracy theorems of the sparse vector technique, for queries of sensitivity 1.

(alpha, beta)-accurate: with probability 1 - beta, every query found above is at least T - alpha
and every other one at most T + alpha; a released value is within alpha of the truth. Each theorem
assumes that the mechanism does not halt early: at most `cutoff` of the k queries reach T - alpha
(for `above_threshold`, at most the last). For sensitivity D multiply by D.
"""

from __future__ import annotations

import math

from geomdp._validation import positive, probability, whole
from geomdp.privacy import ApproxDP, PureDP
from geomdp.privacy.definitions import check_privacy


def _logs(queries: int, beta: float, multiple: float) -> float:
    """ln k + ln(multiple / beta)."""
    queries = whole(queries, "queries")
    return math.log(queries) + math.log(multiple / probability(beta, "beta"))


def above_threshold(epsilon: float, *, queries: int, beta: float) -> float:
    """alpha = 8 (ln k + ln(2/beta)) / eps (Dwork-Roth, Theorem 3.24; SV-AT)."""
    return 8 * _logs(queries, beta, 2) / positive(epsilon, "epsilon")


def sparse(privacy: PureDP | ApproxDP, *, cutoff: int, queries: int, beta: float) -> float:
    """Accuracy of `Sparse` with a redrawn threshold (Dwork-Roth, Theorem 3.26; SV-SP).

    alpha = 8 c (ln k + ln(2c/beta)) / eps for pure DP, with sqrt(512 c ln(1/delta)) in place of
    8 c for approximate DP.
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

    alpha = s_threshold ln(2/beta) + s_query ln(2k/beta), from the Laplace scales `threshold` and
    `query`: with probability 1 - beta neither the one threshold draw nor any of the k query draws
    exceeds its share (GEN-3, union bound).
    """
    share = positive(threshold, "threshold") * _logs(1, beta, 2)
    return share + positive(query, "query") * _logs(queries, beta, 2)


def numeric_sparse(privacy: PureDP | ApproxDP, *, cutoff: int, queries: int, beta: float) -> float:
    """Accuracy of `NumericSparse`, for every number of queries (SV-NUM, corrected).

    alpha = 9 c (ln k + ln(4c/beta)) / eps for pure DP (Dwork-Roth, Theorem 3.28), with
    sqrt(8 c ln(2/delta)) in place of c for approximate DP.
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
    """Accuracy printed for NumericSparse at delta > 0, which its printed scales can miss.

    alpha = (ln k + ln(4c/beta)) sqrt(c ln(2/delta)) (sqrt(512) + 1) / eps (Dwork-Roth, Theorem
    3.28). False for few queries: at c = k = 10, beta = 0.05, delta = 1e-6 the noise on the
    answers alone exceeds it with probability 0.347 (DISC-11).
    """
    check_privacy(privacy, ApproxDP)
    cutoff = whole(cutoff, "cutoff")
    spread = math.sqrt(cutoff * math.log(2 / privacy.delta)) * (math.sqrt(512) + 1)
    return _logs(queries, beta, 4 * cutoff) * spread / privacy.epsilon
