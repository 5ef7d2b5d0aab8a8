"""The setting in which mechanisms are compared: what is asked for, and what an answer may cost."""

from __future__ import annotations

import math
from dataclasses import dataclass

from geomdp._validation import positive
from geomdp.privacy import Adjacency, Privacy, PureDP
from geomdp.workloads import Workload

#: Operations of a fast transform in a second of one core.
OPERATIONS_A_SECOND = 1 << 30


class InapplicableError(ValueError):
    """A candidate does not apply to the setting, or cannot be the best; the message says why."""


class UntriedError(InapplicableError):
    """A candidate applies but costs too much to set up; it might be better than the rest."""


@dataclass(frozen=True)
class Budget:
    """The most that the set-up and the prediction of one candidate may cost.

    Costs are closed counts from the sizes of the workload, so that advice is the same on every
    machine.

    Parameters
    ----------
    memory : float
        Bytes.
    work : float
        Operations of a fast transform, of which a core does 10^9 to 2 * 10^9 in a second; those of
        matrix products count an eighth.
    """

    memory: float
    work: float

    @classmethod
    def of_seconds(cls, effort: float) -> Budget:
        """A gibibyte, and as many operations as one core does in `effort` seconds or less."""
        return cls(memory=2.0**30, work=positive(effort, "effort") * OPERATIONS_A_SECOND)


#: Seconds of predicted work for one candidate where nobody asks for more or less.
DEFAULT_EFFORT = 2.0
DEFAULT_BUDGET = Budget.of_seconds(DEFAULT_EFFORT)
#: For brackets and error curves, which are studied rather than waited for.
THOROUGH = Budget.of_seconds(4 * DEFAULT_EFFORT)
#: For a mechanism that was asked for by name.
UNLIMITED = Budget(memory=math.inf, work=math.inf)


@dataclass(frozen=True)
class Setting:
    """What advice is asked for; all of it is public.

    Parameters
    ----------
    workload : Workload
        m queries.
    n : int
        Number of records, or the declared normaliser.
    privacy : PureDP, ApproxDP or ZCDP
        Guarantee wanted.
    adjacency : Adjacency
        Neighbour relation.
    exact_only : bool
        Whether heuristic samplers are left out.
    budget : Budget
        The most that one candidate may cost.
    least : float
        The least prediction known so far, in the units of the answers. A candidate whose prediction
        is provably not below it cannot be the best and is not set up.
    """

    workload: Workload
    n: int
    privacy: Privacy
    adjacency: Adjacency
    exact_only: bool
    budget: Budget = DEFAULT_BUDGET
    least: float = math.inf

    @property
    def pure(self) -> PureDP:
        """The guarantee, if it is pure; else `InapplicableError`."""
        if not isinstance(self.privacy, PureDP):
            raise InapplicableError("it is calibrated for pure differential privacy only")
        return self.privacy

    def check_floor(self, what: str, floor: float) -> None:
        """Raise `InapplicableError` if the prediction is provably not below the least error known.

        Parameters
        ----------
        what : str
            The prediction, or a part of it.
        floor : float
            A lower bound on that, per query.
        """
        if floor >= self.least:
            raise InapplicableError(
                f"it cannot be the best: its {what} is {floor:.4g} or more, not below the least "
                "error"
            )

    def check_cost(self, what: str, *, memory: float = 0.0, work: float = 0.0) -> None:
        """Raise `UntriedError` if bytes or operations are above the budget.

        Parameters
        ----------
        what : str
            What costs so much.
        memory, work : float
            Estimates in the units of `Budget`.
        """
        if memory > self.budget.memory:
            raise UntriedError(
                f"its {what} would take too much memory: {memory / 2**30:.3g} GiB, of at most "
                f"{self.budget.memory / 2**30:.3g}"
            )
        if work > self.budget.work:
            raise UntriedError(
                f"its {what} would take too long: {work:.2g} operations, of at most "
                f"{self.budget.work:.2g}"
            )
