"""Adding up spends of one privacy budget."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from geomdp.privacy.definitions import ZCDP, ApproxDP, PureDP, check_privacy

#: Relative rounding allowed when spends are added up to exactly the budget.
ROUNDING = 1e-12


@dataclass(frozen=True)
class Spend:
    """One granted spend.

    Parameters
    ----------
    label : str
        Its name, chosen by the caller.
    privacy : PureDP, ApproxDP or ZCDP
        Its cost.
    time : str
        When it was granted, in UTC (ISO 8601); empty before that. Not compared.
    """

    label: str
    privacy: PureDP | ApproxDP | ZCDP
    time: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        check_privacy(self.privacy)


def affordable(budget: PureDP | ApproxDP | ZCDP, spends: Sequence[Spend]) -> bool:
    """Whether `spends`, composed adaptively, stay within `budget` (GEN-2).

    Pure budget: epsilons add up. zCDP budget: rhos add up, a pure spend counting epsilon^2 / 2.
    Approximate budget: epsilons and deltas add up. Each sum bounds the loss even if a spend is
    chosen after seeing the answers of those before (Feldman-Zrnic 2021). An approximate budget
    takes no zCDP spend, because the delta to convert it at would be chosen after seeing answers,
    which no theorem covers.

    Raises
    ------
    ValueError
        For a spend that the budget's definition cannot pay for.
    """
    spent, limits = spent_parameters(budget, spends), budget.parameters()
    return all(spent[name] <= limit * (1 + ROUNDING) for name, limit in limits.items())


def spent_parameters(budget: PureDP | ApproxDP | ZCDP, spends: Sequence[Spend]) -> dict[str, float]:
    """The sum of `spends` in each parameter of `budget`, by name; raises as `affordable`."""
    match budget:
        case PureDP():
            return {"epsilon": math.fsum(_pure_epsilon(s.privacy) for s in spends)}
        case ZCDP():
            return {"rho": math.fsum(_rho(s.privacy) for s in spends)}
        case ApproxDP():
            costs = [_basic(s.privacy, budget) for s in spends]
            epsilon, delta = (math.fsum(cost[i] for cost in costs) for i in (0, 1))
            return {"epsilon": epsilon, "delta": delta}


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


def _basic(privacy: PureDP | ApproxDP | ZCDP, budget: ApproxDP) -> tuple[float, float]:
    match privacy:
        case PureDP(epsilon=epsilon):
            return epsilon, 0.0
        case ApproxDP(epsilon=epsilon, delta=delta):
            return epsilon, delta
        case ZCDP():
            # rho + 2 sqrt(rho L) = epsilon, L = ln(1/delta): sqrt(rho) = sqrt(L + eps) - sqrt(L).
            log = math.log(1 / budget.delta)
            rho = (budget.epsilon / (math.sqrt(log + budget.epsilon) + math.sqrt(log))) ** 2
            raise ValueError(
                f"an approximate budget cannot pay for {privacy}: open a ledger of "
                f"ZCDP({rho:.6g}), which implies {budget} and takes pure and zCDP spends"
            )
