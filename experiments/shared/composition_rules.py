"""Rules for the total privacy loss of several pure steps, and the exact total for comparison."""

import enum
import math
from collections.abc import Callable

import numpy as np
import scipy.optimize
import scipy.stats

import geomdp as gd
from geomdp.mechanisms.printed import printed_shortcut_step

#: epsilon_0 of a step in panel (a) of the figure `composition`, the budget in panel (b), and the
#: delta of both panels.
STEP = 0.1
BUDGET = gd.ApproxDP(1.0, 1e-6)
DELTA = BUDGET.delta


class Rule(enum.StrEnum):
    """How steps are added up, in the order of the legend."""

    BASIC = "basic: sum"
    ADVANCED = "advanced composition"
    SHORTCUT = "shortcut"
    ZCDP = "zCDP"
    EXACT = "exact"


def exact_delta(epsilon: float, step: float, steps: int) -> float:
    """Smallest delta of T = `steps` randomised responses with epsilon_0 = `step`, at `epsilon`.

    The result is E max(0, 1 - e^(epsilon - L)), where L is the total privacy loss.
    """
    truths = np.arange(steps + 1)
    losses = (2 * truths - steps) * step
    chances = scipy.stats.binom.pmf(truths, steps, 1 / (1 + math.exp(-step)))
    return float(chances @ -np.expm1(np.minimum(epsilon - losses, 0.0)))


def exact_epsilon(step: float, steps: int, delta: float) -> float:
    """Smallest total epsilon of T = `steps` pure steps at `delta`, from 0 to T epsilon_0."""
    if exact_delta(0.0, step, steps) <= delta:
        return 0.0
    return float(
        scipy.optimize.brentq(
            lambda epsilon: exact_delta(epsilon, step, steps) - delta, 0.0, steps * step, xtol=1e-12
        )
    )


def zcdp_epsilon(step: float, steps: int, delta: float) -> float:
    """Total epsilon by zCDP: rho = T epsilon_0 tanh(epsilon_0 / 2), at the best Renyi order."""
    rho = gd.privacy.basic_composition([gd.privacy.pure_to_zcdp(gd.PureDP(step))] * steps)
    assert isinstance(rho, gd.ZCDP)
    return gd.privacy.zcdp_to_approx_optimal_order(rho, delta).epsilon


def totals(steps: int) -> dict[Rule, float]:
    """Total epsilon at DELTA of T steps with epsilon_0 = STEP, by each rule except the shortcut."""
    step = gd.PureDP(STEP)
    return {
        Rule.BASIC: gd.privacy.basic_composition([step] * steps).epsilon,
        Rule.ADVANCED: gd.privacy.advanced_composition(step, steps, DELTA).epsilon,
        Rule.ZCDP: zcdp_epsilon(STEP, steps, DELTA),
        Rule.EXACT: exact_epsilon(STEP, steps, DELTA),
    }


def allowed(steps: int) -> dict[Rule, float]:
    """Largest epsilon_0 of each of T steps within BUDGET, by each rule."""
    return {
        Rule.BASIC: BUDGET.epsilon / steps,
        Rule.ADVANCED: gd.privacy.largest_step_epsilon(BUDGET, steps),
        Rule.SHORTCUT: gd.privacy.shortcut_step_epsilon(BUDGET, steps),
        Rule.ZCDP: _largest(lambda step: zcdp_epsilon(step, steps, DELTA)),
        Rule.EXACT: _largest(lambda step: exact_epsilon(step, steps, DELTA)),
    }


def _largest(total: Callable[[float], float]) -> float:
    """The epsilon_0 at which a rule's total is the budget."""
    return float(
        scipy.optimize.brentq(lambda step: total(step) - BUDGET.epsilon, 1e-6, 2.0, xtol=1e-12)
    )


def shortcut_limit(steps: int) -> float:
    """Largest delta at which the shortcut for epsilon = 1 follows from advanced composition."""

    def excess(delta: float) -> float:
        step = printed_shortcut_step(1.0, delta, steps)
        return steps * step * math.expm1(step) - 0.5

    return float(scipy.optimize.brentq(excess, 0.1, 0.99, xtol=1e-12))
