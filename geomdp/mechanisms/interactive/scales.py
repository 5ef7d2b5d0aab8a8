"""Noise scales of the sparse vector technique, for queries of sensitivity 1."""

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
    """Lap(2/eps) on the threshold, Lap(4/eps) on each query, or Lap(2/eps) if `monotone` (SV-AT).

    Less noise on general queries is not eps-DP on long streams (DISC-12).
    """
    epsilon = positive(epsilon, "epsilon")
    return Scales(2 / epsilon, (2 if monotone else 4) / epsilon, None, redraw=True)


def redrawn(privacy: PureDP | ApproxDP, cutoff: int, *, monotone: bool) -> Scales:
    """AboveThreshold at eps / c, or eps / sqrt(8 c ln(1/delta)), for c = `cutoff` (SV-SP)."""
    cutoff = whole(cutoff, "cutoff")
    match privacy:
        case PureDP(epsilon=epsilon):
            step = epsilon / cutoff
        case ApproxDP():
            step = shortcut_step_epsilon(privacy, cutoff)
    return above_threshold(step, monotone=monotone)


def kept(privacy: PureDP, cutoff: int, *, monotone: bool) -> Scales:
    """Scales for pure DP if threshold noise is drawn once (SV-LSL), with c = `cutoff`.

    The noise is Lap(1/e1) on the threshold and Lap(2 c / e2) on each query (Lap(c / e2) if
    `monotone`). The best split of eps = e1 + e2 has e2 / e1 = (2 c)^(2/3), or c^(2/3) if
    `monotone`.
    """
    cutoff = whole(cutoff, "cutoff")
    reach = cutoff if monotone else 2 * cutoff
    first = privacy.epsilon / (1 + reach ** (2 / 3))
    return Scales(1 / first, reach / (privacy.epsilon - first), None, redraw=False)


def numeric(privacy: PureDP | ApproxDP, cutoff: int, *, monotone: bool) -> Scales:
    """NumericSparse: comparisons `redrawn` at 8 eps / 9, answers share eps / 9 (SV-NUM).

    For approximate DP, both parts use advanced composition at delta / 2.
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
    """Scales sqrt(32 c ln(2/delta)) / e of NumericSparse as printed, with c = `cutoff` (DISC-11).

    For the threshold, e = sqrt(512) eps / (sqrt(512) + 1); for queries, half of it; for answers,
    e = 2 eps / (sqrt(512) + 1).
    """
    cutoff = whole(cutoff, "cutoff")
    if privacy.epsilon > 1:  # the range of the shortcut composition behind the scales (GEN-2b)
        raise ValueError(f"epsilon must be at most 1, got {privacy.epsilon!r}")
    root = math.sqrt(512)
    first, second = (part * privacy.epsilon / (root + 1) for part in (root, 2))
    spread = math.sqrt(32 * cutoff * math.log(2 / privacy.delta))
    return Scales(spread / first, 2 * spread / first, spread / second, redraw=True)
