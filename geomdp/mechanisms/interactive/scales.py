"""Noise scales of the sparse vector technique, for queries of sensitivity 1.

For queries of sensitivity D, multiply every scale by D. Queries are `monotone` if all of them move
in the same direction between neighbours, as counting queries do under add/remove; this halves the
noise on the queries. In general each query moves up or down on its own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from geomdp._validation import positive, whole
from geomdp.privacy import ApproxDP, PureDP, shortcut_step_epsilon

#: Share of epsilon that NumericSparse spends on the comparisons; the rest buys the answers.
COMPARISON_SHARE = 8 / 9
#: Scales are computed in float64 with fewer than 32 roundings, and those before a difference (1/9
#: of epsilon is left of it) count up to 9 times: in all less than 2^-46 of a scale. Rounded up by
#: that share, the floats spend no more than epsilon.
ROUNDED_UP = 1 + 2.0**-46


@dataclass(frozen=True)
class Scales:
    """Laplace scales of one sparse vector mechanism, per unit of sensitivity."""

    #: Of the noise on the threshold.
    threshold: float
    #: Of the fresh noise on each query.
    query: float
    #: Of the fresh noise on each released value; None if no value is released.
    answer: float | None
    #: Whether the threshold noise is drawn anew after each query found above.
    redraw: bool


def above_threshold(epsilon: float, *, monotone: bool) -> Scales:
    """AboveThreshold at `epsilon`: Lap(2/eps) on the threshold, Lap(4/eps) on each query (SV-AT).

    Lap(4/eps) is exactly tight for general queries (DISC-12); monotone ones need Lap(2/eps).
    """
    epsilon = positive(epsilon, "epsilon")
    return Scales(2 / epsilon, (2 if monotone else 4) / epsilon, None, redraw=True)


def redrawn(privacy: PureDP | ApproxDP, cutoff: int, *, monotone: bool) -> Scales:
    """Sparse of Dwork-Roth, Algorithm 2: `cutoff` AboveThresholds in a row (SV-SP).

    Each of them gets eps / c for pure DP, and eps / sqrt(8 c ln(1/delta)) for approximate DP.
    """
    cutoff = whole(cutoff, "cutoff")
    match privacy:
        case PureDP(epsilon=epsilon):
            step = epsilon / cutoff
        case ApproxDP():
            step = shortcut_step_epsilon(privacy, cutoff)
    return above_threshold(step, monotone=monotone)


def kept(privacy: PureDP, cutoff: int, *, monotone: bool) -> Scales:
    """Lyu-Su-Li Algorithm 1: one threshold draw for all `cutoff` answers, pure DP (SV-LSL).

    Lap(1/e1) on the threshold and Lap(2c/e2) on each query (monotone: Lap(c/e2)), where
    e1 + e2 = eps. The split e1 : e2 = 1 : (2c)^(2/3) (monotone: 1 : c^(2/3)) minimises the variance
    of noisy query minus noisy threshold, whose sign decides a comparison.
    """
    cutoff = whole(cutoff, "cutoff")
    reach = cutoff if monotone else 2 * cutoff
    first = privacy.epsilon / (1 + reach ** (2 / 3))
    return Scales(1 / first, reach / (privacy.epsilon - first), None, redraw=False)


def numeric(privacy: PureDP | ApproxDP, cutoff: int, *, monotone: bool) -> Scales:
    """NumericSparse with the split 8/9 for comparisons, 1/9 for answers, in both regimes (SV-NUM).

    Pure DP: Sparse at 8 eps / 9, then c Laplace answers at eps / (9 c) each. Approximate DP: both
    parts by advanced composition at delta / 2. This split reaches the printed accuracy for every
    number of queries; for delta > 0 the printed split does not (DISC-11).
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
    """NumericSparse as printed for delta > 0 (Dwork-Roth Algorithm 3), kept for comparison.

    e1 = sqrt(512) eps / (sqrt(512) + 1), e2 = 2 eps / (sqrt(512) + 1) and scales
    sqrt(32 c ln(2/delta)) / e. Private, but its stated accuracy fails for few queries (DISC-11).
    """
    cutoff = whole(cutoff, "cutoff")
    if privacy.epsilon > 1:  # the range of the shortcut composition behind the scales (GEN-2b)
        raise ValueError(f"epsilon must be at most 1, got {privacy.epsilon!r}")
    root = math.sqrt(512)
    first, second = (part * privacy.epsilon / (root + 1) for part in (root, 2))
    spread = math.sqrt(32 * cutoff * math.log(2 / privacy.delta))
    return Scales(spread / first, 2 * spread / first, spread / second, redraw=True)
