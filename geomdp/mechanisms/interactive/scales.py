"""Noise scales of the sparse vector technique, for queries of sensitivity 1.

For queries of sensitivity D, multiply every scale by D. Queries are `monotone` if all answers
change in the same direction between neighbours. For instance, counting queries are monotone under
add/remove. For other queries, the noise on each query is twice as large (less than twice for
`kept`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from geomdp._validation import positive, whole
from geomdp.privacy import ApproxDP, PureDP, shortcut_step_epsilon

#: Share of epsilon that NumericSparse spends on comparisons. The rest is spent on answers.
COMPARISON_SHARE = 8 / 9
#: Factor by which scales are rounded up. Noise with the rounded-up scales spends at most epsilon.
#: Scales are computed in float64 with fewer than 32 roundings. One step subtracts 8/9 of epsilon
#: from epsilon. The subtraction makes earlier relative errors up to 9 times as large. The total
#: relative error of a scale is below 2^-46.
ROUNDED_UP = 1 + 2.0**-46


@dataclass(frozen=True)
class Scales:
    """Laplace scales of one sparse vector mechanism, per unit of sensitivity."""

    #: Scale of the noise on the threshold.
    threshold: float
    #: Scale of the fresh noise on each query.
    query: float
    #: Scale of the fresh noise on each released value; None if no value is released.
    answer: float | None
    #: Whether new noise on the threshold is drawn after each query found above the threshold.
    redraw: bool


def above_threshold(epsilon: float, *, monotone: bool) -> Scales:
    """Scales of AboveThreshold: Lap(2/eps) on the threshold, Lap(4/eps) on each query (SV-AT).

    With this noise on the threshold, noise of a scale below 4/eps on general queries does not give
    eps-DP on long streams of queries (DISC-12). For monotone queries, the noise on each query is
    Lap(2/eps).
    """
    epsilon = positive(epsilon, "epsilon")
    return Scales(2 / epsilon, (2 if monotone else 4) / epsilon, None, redraw=True)


def redrawn(privacy: PureDP | ApproxDP, cutoff: int, *, monotone: bool) -> Scales:
    """Scales of Dwork-Roth's Algorithm 2: `cutoff` successive runs of AboveThreshold (SV-SP).

    Let c be `cutoff`. The epsilon of each run is eps / c for pure DP, and
    eps / sqrt(8 c ln(1/delta)) for approximate DP.
    """
    cutoff = whole(cutoff, "cutoff")
    match privacy:
        case PureDP(epsilon=epsilon):
            step = epsilon / cutoff
        case ApproxDP():
            step = shortcut_step_epsilon(privacy, cutoff)
    return above_threshold(step, monotone=monotone)


def kept(privacy: PureDP, cutoff: int, *, monotone: bool) -> Scales:
    """Scales of Lyu-Su-Li's Algorithm 1 for pure DP: threshold noise is drawn once (SV-LSL).

    Let c be `cutoff` and e1 + e2 = eps. The noise is Lap(1/e1) on the threshold and Lap(2 c / e2)
    on each query (Lap(c / e2) if `monotone`). A comparison looks at the sign of noisy query minus
    noisy threshold. The split e1 : e2 = 1 : (2 c)^(2/3) (1 : c^(2/3) if `monotone`) minimises the
    variance of this difference.
    """
    cutoff = whole(cutoff, "cutoff")
    reach = cutoff if monotone else 2 * cutoff
    first = privacy.epsilon / (1 + reach ** (2 / 3))
    return Scales(1 / first, reach / (privacy.epsilon - first), None, redraw=False)


def numeric(privacy: PureDP | ApproxDP, cutoff: int, *, monotone: bool) -> Scales:
    """Scales of NumericSparse, with 8/9 of epsilon for comparisons and 1/9 for answers (SV-NUM).

    Let c be `cutoff`. For pure DP, the comparisons are `redrawn` at 8 eps / 9, and each of the c
    answers gets eps / (9 c). For approximate DP, both parts use advanced composition at delta / 2.
    With this split, the accuracy `bounds.upper.numeric_sparse` holds for every number of queries.
    With the split that Dwork-Roth prints for delta > 0, the printed accuracy can fail (DISC-11).
    """
    cutoff = whole(cutoff, "cutoff")
    share = COMPARISON_SHARE * privacy.epsilon
    match privacy:
        case PureDP(epsilon=epsilon):
            comparisons = redrawn(PureDP(share), cutoff, monotone=monotone)
            answer = 9 * cutoff / epsilon  # (eps - 8 eps / 9) shared by c answers
        case ApproxDP(epsilon=epsilon, delta=delta):
            comparisons = redrawn(ApproxDP(share, delta / 2), cutoff, monotone=monotone)
            answer = 1 / shortcut_step_epsilon(ApproxDP(epsilon - share, delta / 2), cutoff)
    return Scales(comparisons.threshold, comparisons.query, answer, redraw=True)


def numeric_printed(privacy: ApproxDP, cutoff: int) -> Scales:
    """Scales of NumericSparse as printed for delta > 0 (Dwork-Roth Algorithm 3), for comparison.

    Let c be `cutoff`. The scales are sqrt(32 c ln(2/delta)) / e. For the threshold,
    e = sqrt(512) eps / (sqrt(512) + 1), and for each query e is half of this number. For each
    answer, e = 2 eps / (sqrt(512) + 1). Noise with these scales is (eps, delta)-DP, but the printed
    accuracy does not hold for few queries (DISC-11).
    """
    cutoff = whole(cutoff, "cutoff")
    if privacy.epsilon > 1:  # the range of the shortcut composition behind the scales (GEN-2b)
        raise ValueError(f"epsilon must be at most 1, got {privacy.epsilon!r}")
    root = math.sqrt(512)
    first, second = (part * privacy.epsilon / (root + 1) for part in (root, 2))
    spread = math.sqrt(32 * cutoff * math.log(2 / privacy.delta))
    return Scales(spread / first, 2 * spread / first, spread / second, redraw=True)
