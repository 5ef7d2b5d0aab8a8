"""Formulas as printed in the papers: accuracies, the epsilon of one step, and a noise scale."""

from __future__ import annotations

import math
from collections.abc import Callable

from geomdp._numerics.bisection import smallest_accuracy
from geomdp._validation import positive, probability, universe_size, whole
from geomdp.bounds.upper.interactive import numeric_sparse_printed as numeric_sparse_printed
from geomdp.mechanisms.interactive.iterative import StoppingDesign
from geomdp.mechanisms.interactive.sparse_vector import PrintedNumericSparse as PrintedNumericSparse
from geomdp.privacy import ApproxDP, PureDP
from geomdp.privacy.definitions import check_privacy

#: The shares of the target accuracy alpha that Roth's lecture gives to noise, loss and stopping
#: level. A run with these shares is private. The lecture states an error of at most alpha, but the
#: shares guarantee only an error of at most 3 alpha / 2 (DISC-13).
PRINTED_STOPPING = StoppingDesign(noise=1 / 4, loss=1 / 2, level=3 / 4)


def printed_iterative_accuracy(
    bound: Callable[[float], float],
    *,
    n: int,
    queries: int,
    privacy: PureDP | ApproxDP,
    beta: float,
) -> float:
    """The error alpha of Theorems 7 and 8 as printed in Roth's lecture; the proofs do not give it.

    alpha = 8 B / (n eps) ln(2 B k / beta), where k = `queries`, and B = max(1, `bound`(alpha/2))
    bounds the number of updates. For approximate DP, the factor 8 B is replaced by 16 sqrt(B
    ln(1/delta)). The proofs only show that the error is at most 3 alpha / 2 (DISC-13). Parameters
    as in the corrected `bounds.upper.iterative_accuracy`. ``ValueError`` if n is too small.

    Examples
    --------
    >>> import geomdp as gd
    >>> rule = gd.mechanisms.MultiplicativeWeights(1024)
    >>> setting = {"n": 10**6, "queries": 1000, "privacy": gd.PureDP(1.0), "beta": 0.05}
    >>> printed = gd.mechanisms.printed.printed_iterative_accuracy(rule.bound, **setting)
    >>> corrected = gd.bounds.upper.iterative_accuracy(rule.bound, **setting)
    >>> round(printed, 3), round(corrected, 3)
    (0.252, 0.394)
    """
    check_privacy(privacy, PureDP, ApproxDP)
    count, share, n = whole(queries, "queries"), probability(beta, "beta"), whole(n, "n")

    def right_side(alpha: float) -> float:
        updates = max(1.0, bound(alpha / 2))
        match privacy:
            case PureDP():
                steps = 8 * updates
            case ApproxDP(delta=delta):
                steps = 16 * math.sqrt(updates * math.log(1 / delta))
        return steps / (n * privacy.epsilon) * math.log(2 * updates * count / share)

    return _solved(right_side, n)


def printed_online_weights_accuracy(
    size: int, *, n: int, queries: int, privacy: PureDP, beta: float
) -> float:
    """The error alpha0 in Theorem 4.14 of Dwork-Roth (online weights); the proof does not give it.

    alpha0^3 = 32 ln N (ln k + ln(32 ln N / (alpha0^2 beta))) / (n eps) for N = `size` and
    k = `queries`. The proof needs 36 in place of the first 32 (DISC-21). `OnlineConstruction` uses
    36.

    Examples
    --------
    >>> import geomdp as gd
    >>> alpha = gd.mechanisms.printed.printed_online_weights_accuracy(
    ...     1024, n=10**6, queries=1000, privacy=gd.PureDP(1.0), beta=0.05
    ... )
    >>> online = gd.OnlineConstruction(
    ...     gd.mechanisms.MultiplicativeWeights(1024),
    ...     n=10**6,
    ...     queries=1000,
    ...     privacy=gd.PureDP(1.0),
    ... )
    >>> round(alpha, 3), round(online.alpha, 3)
    (0.161, 0.168)
    """
    check_privacy(privacy, PureDP)
    log_size = math.log(universe_size(size))
    count, share, n = whole(queries, "queries"), probability(beta, "beta"), whole(n, "n")

    def right_side(alpha: float) -> float:
        logs = math.log(count) + math.log(32 * log_size / (alpha**2 * share))
        return 32 * log_size * logs / (n * privacy.epsilon * alpha**2)

    return _solved(right_side, n)


def printed_shortcut_step(epsilon: float, slack_delta: float, steps: int) -> float:
    """The printed epsilon of each of T steps, eps / sqrt(8 T ln(1/delta)); the theorem is false.

    The formula is printed for every delta below 1. At eps = 1 its proof fails for delta above 0.709
    if T = 1, and for delta above 0.779 for every T. For delta near 1, T such steps can spend more
    than (eps, delta) (DISC-5). The corrected `privacy.shortcut_step_epsilon` refuses an epsilon
    above 1, and it takes an `ApproxDP`, whose delta is below 1/2.

    Examples
    --------
    >>> import geomdp as gd
    >>> step = gd.mechanisms.printed.printed_shortcut_step(1.0, slack_delta=0.9, steps=1000)
    >>> spent = gd.privacy.advanced_composition(gd.PureDP(step), 1000, slack_delta=0.49)
    >>> round(step, 4), round(spent.epsilon, 2)
    (0.0344, 2.51)
    """
    epsilon, steps = positive(epsilon, "epsilon"), whole(steps, "steps")
    return epsilon / math.sqrt(-8 * steps * math.log(probability(slack_delta, "slack_delta")))


def printed_smooth_scale(d: int, degree: int, *, n: int, epsilon: float) -> float:
    """The scale t^d / (n eps) of Laplace noise on Chebyshev moments; often too small for eps-DP.

    t is `degree`. Under replace-one, the moments of neighbours can differ by more than t^d / n in
    the l1 norm for t >= 3. For d = 1 and large t, such noise spends 1.217 eps (DISC-15).
    `UniformLaplace` has the corrected scale.

    Examples
    --------
    >>> import geomdp as gd
    >>> printed = gd.mechanisms.printed.printed_smooth_scale(1, 20, n=1000, epsilon=1.0)
    >>> workload = gd.workloads.SmoothQueries(1, degree=20)
    >>> corrected = gd.mechanisms.UniformLaplace().calibrate(
    ...     workload, gd.PureDP(1.0), gd.Adjacency.REPLACE_ONE
    ... )
    >>> round(1000 * printed, 1), round(float(corrected.scales.max()), 1)  # noise on sums
    (20.0, 23.7)
    """
    powers = float(whole(degree, "degree", minimum=2)) ** whole(d, "d")
    return powers / (whole(n, "n") * positive(epsilon, "epsilon"))


def _solved(right_side: Callable[[float], float], n: int) -> float:
    alpha = smallest_accuracy(lambda alpha: alpha >= right_side(alpha))
    if alpha is None:
        raise ValueError(f"n must be larger: the statement holds for no alpha up to 1, got {n}")
    return alpha
