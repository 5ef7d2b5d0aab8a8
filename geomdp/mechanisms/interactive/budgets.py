"""How the budget of a run is divided: noise scales of the sparse vector technique, and rounds.

A run of rounds has a number of updates, which an accuracy and the budget of a step determine.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from geomdp._numerics.bisection import least_whole
from geomdp._validation import positive, real_number, whole
from geomdp.mechanisms.interactive.updates import LEAST_ALPHA, UpdateRule
from geomdp.privacy import ApproxDP, PureDP, advanced_composition, shortcut_step_epsilon
from geomdp.privacy.definitions import check_range

# Noise scales of the sparse vector technique, for queries of sensitivity 1.

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


# The number of updates of a run, and what they spend.

#: Largest bound of a rule for which a run is planned. If the budget of a step is stated, no total
#: budget pays for 2^200 updates, but float64 can represent their cost.
MOST_UPDATES = 2.0**200

#: A function that maps a number of updates to the budget that a run of these updates spends.
Spending = Callable[[int], PureDP | ApproxDP]


@dataclass(frozen=True)
class Rounds:
    """The largest number of `updates`, the budget `spent`, and whether the bound is reached."""

    updates: int
    spent: PureDP | ApproxDP
    complete: bool


def rounds_within(
    bound: float, budget: PureDP | ApproxDP, spending: Spending | None = None
) -> Rounds:
    """The rounds for a rule of at most floor(`bound`) updates; ``ValueError`` if there are none."""
    if not bound <= MOST_UPDATES:
        raise ValueError(f"alpha must be larger: at this alpha the rule can need {bound:g} updates")
    wanted = max(1, math.floor(bound))
    if spending is None:
        return Rounds(wanted, budget, complete=True)
    if spending(1).epsilon > budget.epsilon:
        raise ValueError(
            f"epsilon_0 must be smaller: one update would spend {spending(1)}, more than {budget}"
        )
    if spending(wanted).epsilon <= budget.epsilon:
        return Rounds(wanted, spending(wanted), complete=True)
    paid = least_whole(lambda count: spending(count).epsilon > budget.epsilon, 1, wanted) - 1
    return Rounds(paid, spending(paid), complete=False)


def is_bounded(rule: UpdateRule[Any], alpha: float) -> bool:
    """Whether `rule` has a bound at the accuracy `alpha` for which a run can be planned."""
    return rule.bound(alpha) <= MOST_UPDATES


def step_epsilon(privacy: PureDP | ApproxDP, updates: int) -> float:
    """Epsilon of each of 2 B private steps (IC-T4); ``ValueError`` if they cost more by GEN-2a."""
    updates = whole(updates, "updates")
    match privacy:
        case PureDP(epsilon=epsilon):
            return epsilon / (2 * updates)
        case ApproxDP(epsilon=epsilon, delta=delta):
            step = epsilon / (4 * math.sqrt(updates * math.log(1 / delta)))
            # For steps above 709, e^step is beyond float64. e^709 is too large already.
            total = epsilon / 2 + 2 * updates * step * math.expm1(min(step, 709.0))
            if total * ROUNDED_UP > epsilon:
                raise ValueError(
                    f"epsilon must be below about 4 ln(1/delta) for advanced composition, "
                    f"got {epsilon} with delta {delta}"
                )
            return step


def composed_pairs(budget: PureDP | ApproxDP, epsilon_0: float, updates: int) -> PureDP | ApproxDP:
    """Cost of 2 B epsilon_0-DP steps, for B = `updates`: the least of GEN-2 and GEN-2a at delta."""
    steps = 2 * updates
    match budget:
        case PureDP():
            return PureDP(steps * epsilon_0)
        case ApproxDP(delta=delta):
            if epsilon_0 > 1:  # advanced composition costs over 1.7 times this sum
                return ApproxDP(steps * epsilon_0, delta)
            advanced = advanced_composition(PureDP(epsilon_0), steps, delta)
            return ApproxDP(min(steps * epsilon_0, advanced.epsilon), delta)


def composed_sparse(budget: PureDP | ApproxDP, epsilon_0: float, updates: int) -> PureDP | ApproxDP:
    """Guarantee of NumericSparse with c updates of epsilon_0 each (SV-NUM)."""
    match budget:
        case PureDP():
            return PureDP(updates * epsilon_0)
        case ApproxDP(delta=delta):
            return ApproxDP(epsilon_0 * math.sqrt(8 * updates * math.log(2 / delta)), delta)


def checked_alpha(alpha: float) -> float:
    """Return `alpha` as a float if it is from `LEAST_ALPHA` to 1; else ``ValueError``."""
    number = real_number(alpha)
    if not 0 < number <= 1:
        raise ValueError(f"alpha must be above 0 and at most 1, got {alpha!r}")
    if number < LEAST_ALPHA:
        raise ValueError(f"alpha must be larger: at least {LEAST_ALPHA:g}, got {alpha!r}")
    return number


def checked_step(epsilon_0: float) -> float:
    """Return `epsilon_0` as a float if it is in the range of `check_range`; else ``ValueError``."""
    number = real_number(epsilon_0)
    if not number > 0:
        raise ValueError(f"epsilon_0 must be a finite number above 0, got {epsilon_0!r}")
    check_range(PureDP(number))
    return number
