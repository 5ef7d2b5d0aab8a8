"""Spends of a privacy budget, and the sum of spends."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from geomdp._validation import require_type
from geomdp.privacy.composition import sum_of_costs
from geomdp.privacy.definitions import ZCDP, ApproxDP, PureDP, check_privacy

#: Relative rounding error allowed in a sum of spends. Without it, spends that add up to exactly the
#: budget could be refused.
ROUNDING = 1e-12


@dataclass(frozen=True)
class Spend:
    """One granted spend.

    Parameters
    ----------
    label : str
        Name of the spend, chosen by the caller.
    privacy : PureDP, ApproxDP or ZCDP
        Cost of the spend.
    time : str
        For a spend read from a ledger, the time when it was granted, in UTC (ISO 8601). Empty for
        all other spends. Spends that differ only in `time` are equal.

    Examples
    --------
    >>> import geomdp as gd
    >>> ledger = gd.Ledger(gd.PureDP(1.0))
    >>> mechanism = gd.mechanisms.Laplace(gd.workloads.Histogram(3), n=100, privacy=gd.PureDP(0.4))
    >>> ledger.spend(mechanism.guarantee, "histogram")
    Spend(label='histogram', privacy=PureDP(epsilon=0.4), time='')
    >>> ledger.spends() == [gd.privacy.Spend("histogram", gd.PureDP(0.4))]
    True
    """

    label: str
    privacy: PureDP | ApproxDP | ZCDP
    time: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        require_type(self.label, str, "label")
        check_privacy(self.privacy)


def affordable(budget: PureDP | ApproxDP | ZCDP, spends: Sequence[Spend]) -> bool:
    """Whether `spends`, composed adaptively, stay within `budget` (GEN-2).

    Under a pure budget, epsilons add up. Under a zCDP budget, rhos add up, and a pure spend counts
    as rho = epsilon^2 / 2. Under an approximate budget, epsilons and deltas add up. Each sum bounds
    the privacy loss even if a spend is chosen after seeing the answers to earlier spends
    (Rogers-Roth-Ullman-Vadhan 2016 for epsilons and deltas, Feldman-Zrnic 2021 for rhos). An
    approximate budget takes no zCDP spend. Such a spend would be converted at some delta, which
    could be chosen after seeing answers. These theorems do not cover this choice.

    Raises
    ------
    ValueError
        For a spend that a budget of this definition cannot pay for, such as zCDP under `PureDP`.
    """
    spent, limits = spent_parameters(budget, spends), budget.parameters()
    return all(spent[name] <= limit * (1 + ROUNDING) for name, limit in limits.items())


def spent_parameters(budget: PureDP | ApproxDP | ZCDP, spends: Sequence[Spend]) -> dict[str, float]:
    """The sum of `spends` in each parameter of `budget`, by name. Errors are as in `affordable`."""
    match budget:
        case PureDP():
            return {"epsilon": sum_of_costs([_pure_epsilon(s.privacy) for s in spends])}
        case ZCDP():
            return {"rho": sum_of_costs([_rho(s.privacy) for s in spends])}
        case ApproxDP():
            costs = [_basic(s.privacy, budget) for s in spends]
            epsilon, delta = (sum_of_costs([cost[i] for cost in costs]) for i in (0, 1))
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
            # If the square exceeds the range of float64, this product is infinity, and no budget
            # pays for it. The operator ** would raise ``OverflowError``.
            return epsilon * epsilon / 2
        case ApproxDP():
            raise ValueError(f"a zCDP budget cannot pay for {privacy}")


def _basic(privacy: PureDP | ApproxDP | ZCDP, budget: ApproxDP) -> tuple[float, float]:
    match privacy:
        case PureDP(epsilon=epsilon):
            return epsilon, 0.0
        case ApproxDP(epsilon=epsilon, delta=delta):
            return epsilon, delta
        case ZCDP():
            # Let L = ln(1/delta). The solution of rho + 2 sqrt(rho L) = epsilon has
            # sqrt(rho) = sqrt(L + epsilon) - sqrt(L) = epsilon / (sqrt(L + epsilon) + sqrt(L)).
            log = math.log(1 / budget.delta)
            rho = (budget.epsilon / (math.sqrt(log + budget.epsilon) + math.sqrt(log))) ** 2
            # Rounding to six digits can raise rho by a share of 5e-6. The factor 1 - 1e-5 makes the
            # stated rho small enough.
            raise ValueError(
                f"an approximate budget cannot pay for {privacy}: open a ledger of "
                f"ZCDP({rho * (1 - 1e-5):.6g}), which implies {budget} and takes pure and zCDP "
                "spends"
            )
