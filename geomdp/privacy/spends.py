"""Adding up spends of one privacy budget."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from geomdp.privacy.guarantees import ZCDP, ApproxDP, PureDP

#: Relative rounding allowed when spends are added up to exactly the budget.
ROUNDING = 1e-12


@dataclass(frozen=True)
class Spend:
    """One granted spend.

    Parameters
    ----------
    label : str
        What the caller named it.
    privacy : PureDP, ApproxDP or ZCDP
        What it costs.
    """

    label: str
    privacy: PureDP | ApproxDP | ZCDP


def affordable(budget: PureDP | ApproxDP | ZCDP, spends: Sequence[Spend]) -> bool:
    """Whether `spends`, composed adaptively, stay within `budget` (GEN-2).

    Pure budget: epsilons add up. zCDP budget: rhos add up, a pure spend counting epsilon^2 / 2.
    Approximate budget: epsilons and deltas add up, and the sum of the rhos is converted once, at
    the delta that is left, to rho + 2 sqrt(rho ln(1/delta)).

    Raises
    ------
    ValueError
        For a spend that the budget's definition cannot pay for.
    """
    slack = 1 + ROUNDING
    match budget:
        case PureDP(epsilon=limit):
            return math.fsum(_pure_epsilon(s.privacy) for s in spends) <= limit * slack
        case ZCDP(rho=limit):
            return math.fsum(_rho(s.privacy) for s in spends) <= limit * slack
        case ApproxDP(epsilon=limit, delta=delta_limit):
            epsilon, delta, rho = _basic_totals(spends)
            if delta > delta_limit * slack:
                return False
            if rho > 0:
                left = delta_limit - delta
                if left <= 0:
                    return False
                epsilon += rho + 2 * math.sqrt(rho * math.log(1 / left))
            return epsilon <= limit * slack


def _pure_epsilon(privacy: PureDP | ApproxDP | ZCDP) -> float:
    if not isinstance(privacy, PureDP):
        raise ValueError(f"a pure budget cannot pay for {privacy}")
    return privacy.epsilon


def _rho(privacy: PureDP | ApproxDP | ZCDP) -> float:
    match privacy:
        case ZCDP(rho=rho):
            return rho
        case PureDP(epsilon=epsilon):
            return epsilon**2 / 2
        case ApproxDP():
            raise ValueError(f"a zCDP budget cannot pay for {privacy}")


def _basic_totals(spends: Sequence[Spend]) -> tuple[float, float, float]:
    epsilon = math.fsum(s.privacy.epsilon for s in spends if not isinstance(s.privacy, ZCDP))
    delta = math.fsum(s.privacy.delta for s in spends if isinstance(s.privacy, ApproxDP))
    rho = math.fsum(s.privacy.rho for s in spends if isinstance(s.privacy, ZCDP))
    return epsilon, delta, rho
