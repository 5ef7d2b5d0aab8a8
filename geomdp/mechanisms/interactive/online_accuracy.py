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
    """The smallest alpha0 of `OnlineConstruction` (BR-OIC); ``ValueError`` if there is none."""

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
    """The updates that `privacy` pays for; they share it if their budget `epsilon_0` is None."""
    check_privacy(privacy, PureDP, ApproxDP)
    spending = None if epsilon_0 is None else partial(composed_sparse, privacy, epsilon_0)
    return rounds_within(rule.bound(alpha), privacy, spending)


def noise_limit(rounds: Rounds, queries: int, beta: float) -> float:
    """NumericSparse's accuracy with probability 1 - beta, with two comparisons for each query."""
    return numeric_sparse(rounds.spent, cutoff=rounds.updates, queries=2 * queries, beta=beta)
