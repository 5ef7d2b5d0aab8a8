"""The number of updates of a run, and what they spend, for an accuracy and a budget of a step."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from geomdp._numerics.bisection import least_whole
from geomdp._validation import real_number, whole
from geomdp.mechanisms.interactive.scales import ROUNDED_UP
from geomdp.mechanisms.interactive.updates.base import LEAST_ALPHA, UpdateRule
from geomdp.privacy import ApproxDP, PureDP, advanced_composition
from geomdp.privacy.parameter_range import check_range

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
