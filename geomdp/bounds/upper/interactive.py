"""Accuracy theorems of mechanisms built on an iterative database construction (IDC).

With probability 1 - beta no answer errs by more than alpha. An update rule enters by its bound B:
at accuracy alpha it makes at most B(alpha) updates, for instance
`SparseMultiplicativeWeights(m).bound`. The theorems are equations in alpha whose right sides fall
as alpha grows; each function returns the solution in (0, 1] to a relative 1e-12. All constants are
explicit.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from geomdp._numerics.bisection import smallest_accuracy
from geomdp._validation import probability, whole
from geomdp.privacy import ApproxDP, PureDP
from geomdp.privacy.definitions import check_privacy

#: Constant of Theorem 3.3 of Blum-Roth.
ONLINE_CONSTANT = 3000


def online_accuracy(
    bound: Callable[[float], float], *, n: int, queries: int, privacy: ApproxDP, beta: float
) -> float:
    """The alpha of Theorem 3.3: 3000 sqrt(B(alpha)) ln(4/delta) ln(k/beta) / (eps n).

    With the bound of `SparseMultiplicativeWeights` it is Theorem 3.8,
    alpha^2 = 6000 sqrt(ln s + 1) ln(4/delta) ln(k/beta) / (eps n), s = s(alpha) slots (DISC-8).
    The construction of this library needs 76.4 in place of 3000 (BR-OIC).

    Parameters
    ----------
    bound : callable
        B, decreasing.
    n : int
        Number of records.
    queries : int
        Number k of adaptive queries in [0, 1].
    privacy : ApproxDP
        Guarantee of the whole run.
    beta : float
        Failure probability, 0 < beta < 1.

    Returns
    -------
    float
        alpha in (0, 1].

    Raises
    ------
    ValueError
        For parameters out of range, or if not even alpha = 1 satisfies the theorem.

    References
    ----------
    Blum-Roth 2013, Theorems 3.3 and 3.8; formula sheet BR-T3.3, BR-SMW.
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
    """The alpha of the corrected Theorems 7 and 8, for a class of |C| = `queries` linear queries.

    alpha = 32 B / (n eps) ln(2 B |C| / beta), B = B(alpha/2), for pure DP, and with
    2 sqrt(B ln(1/delta)) in place of B for approximate DP. The distinguisher is the exponential
    mechanism. The printed constants, 8 and 16, guarantee only 3 alpha / 2 (DISC-13). With
    multiplicative weights: alpha^3 = 512 ln N / (n eps) ln(2 B |C| / beta). Parameters, result and
    errors are those of `online_accuracy`.

    References
    ----------
    Dwork-Roth 2014, section 5.2; formula sheet IC-T4, IC-T5.
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
        raise ValueError(f"n must be larger for {queries} queries at any alpha up to 1, got {n}")
    return alpha
