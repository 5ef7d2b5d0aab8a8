"""The proved accuracy of an online construction, and the number of updates in its budget."""

from __future__ import annotations

from functools import partial
from typing import Any

from geomdp._numerics.bisection import smallest_accuracy
from geomdp.bounds.upper.sparse_vector import numeric_sparse
from geomdp.mechanisms.interactive.rounds import Rounds, composed_sparse, is_bounded, rounds_within
from geomdp.mechanisms.interactive.updates.base import UpdateRule
from geomdp.privacy import ApproxDP, PureDP
from geomdp.privacy.definitions import check_privacy


def solve_accuracy(
    rule: UpdateRule[Any],
    *,
    privacy: PureDP | ApproxDP,
    n: int,
    queries: int,
    beta: float,
    epsilon_0: float | None = None,
) -> float:
    """The smallest accuracy alpha0 that is proved for an update rule (BR-OIC).

    The result is the smallest alpha0, to a relative precision of 1e-12, that satisfies

        alpha0 >= 9 c (ln 2k + ln(4c/beta)) / (eps n).

    Here c = max(1, floor(B(alpha0))) is the number of updates, where B is `rule.bound`. The number
    of adaptive `queries` is k, n is the number of records, and beta is the failure probability. For
    approximate DP, sqrt(8 c ln(2/delta)) replaces the factor c. The right side does not increase as
    alpha0 grows. eps is the epsilon of `privacy`. If the budget `epsilon_0` of an update is given,
    eps is the epsilon that c updates spend, and must be at most the epsilon of `privacy`. Raises
    ``ValueError`` if n is so small that no alpha0 up to 1 satisfies the condition, or if `privacy`
    does not pay for one update with the budget `epsilon_0`.
    """

    def enough(alpha: float) -> bool:
        if not is_bounded(rule, alpha):
            return False
        rounds = allowed_rounds(rule, alpha, privacy, epsilon_0)
        noise = noise_limit(rounds, queries, beta)
        return rounds.complete and alpha >= noise / n

    alpha = smallest_accuracy(enough)
    if alpha is None:
        raise ValueError(
            f"alpha must be given, because n must be larger for a proved accuracy of {queries} "
            f"queries at {privacy}, got {n}"
        )
    return alpha


def allowed_rounds(
    rule: UpdateRule[Any], alpha: float, privacy: PureDP | ApproxDP, epsilon_0: float | None
) -> Rounds:
    """The updates that a run with target accuracy `alpha` can make with the budget `privacy`.

    `epsilon_0` is the budget of an update. For None, the updates share the whole `privacy`.
    """
    check_privacy(privacy, PureDP, ApproxDP)
    spending = None if epsilon_0 is None else partial(composed_sparse, privacy, epsilon_0)
    return rounds_within(rule.bound(alpha), privacy, spending)


def noise_limit(rounds: Rounds, queries: int, beta: float) -> float:
    """The accuracy of NumericSparse for queries of sensitivity 1, with probability 1 - beta.

    Each of the k = `queries` queries takes two comparisons.
    """
    return numeric_sparse(rounds.spent, cutoff=rounds.updates, queries=2 * queries, beta=beta)
