"""The setting of a comparison of mechanisms: the question, and the limit on costs."""

from __future__ import annotations

import math
from dataclasses import dataclass

from geomdp._validation import positive
from geomdp.privacy import Adjacency, Privacy, PureDP, pure_implying
from geomdp.workloads import Workload

#: Number of operations of a fast transform that one core can do in a second.
OPERATIONS_A_SECOND = 1 << 30


class InapplicableError(ValueError):
    """A candidate does not apply to the setting, or cannot be the best. The message says why."""


class UntriedError(InapplicableError):
    """Set-up or use of a candidate would cost too much. The candidate might still be the best."""


@dataclass(frozen=True)
class Budget:
    """The limit on the bytes and the operations of each set-up, prediction or projection.

    Costs are formulas, so the speed of a machine does not change the advice. The unit of work is an
    operation of a fast transform, 10^9 to 2 * 10^9 per second; one of a matrix product counts 1/8.
    """

    memory: float
    work: float

    @classmethod
    def of_seconds(cls, effort: float) -> Budget:
        """One GiB of memory, and the operations that one core does in about `effort` seconds."""
        return cls(memory=2.0**30, work=positive(effort, "effort") * OPERATIONS_A_SECOND)


#: Default limit on the predicted work for one candidate, in seconds.
DEFAULT_EFFORT = 2.0
DEFAULT_BUDGET = Budget.of_seconds(DEFAULT_EFFORT)
#: Budget for `sample_complexity_bracket` and for error curves. Their users can wait longer.
THOROUGH = Budget.of_seconds(4 * DEFAULT_EFFORT)
#: Budget for a mechanism that was asked for by name.
UNLIMITED = Budget(memory=math.inf, work=math.inf)


@dataclass(frozen=True)
class Setting:
    """The public question that the advisor answers, and the `least` prediction so far.

    Under add/remove, `n` is the declared public number that sums are divided by.
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
        """The weakest pure privacy that implies the guarantee by the rules of `pure_implying`."""
        return pure_implying(self.privacy)

    def check_public_count(self) -> None:
        """Raise `InapplicableError` if a candidate gains only where the number of records is n."""
        if self.adjacency is not Adjacency.REPLACE_ONE:
            raise InapplicableError(
                "under add/remove the number of records is private, and no bound on its error for "
                "every number of records is below that of the noise alone"
            )

    def check_floor(self, what: str, floor: float) -> None:
        """Raise `InapplicableError` if `floor`, a lower bound per query, is not below `least`."""
        if floor >= self.least:
            raise InapplicableError(
                f"it cannot be the best: its {what} is {floor:.4g} or more per query, and the "
                f"predicted error of another mechanism is {self.least:.4g}"
            )

    def check_cost(self, what: str, *, memory: float = 0.0, work: float = 0.0) -> None:
        """Raise `UntriedError` if `what` needs more memory or work than the budget allows."""
        if memory > self.budget.memory:
            raise UntriedError(
                f"its {what} would take too much memory: {memory / 2**30:.3g} GiB, the limit is "
                f"{self.budget.memory / 2**30:.3g} GiB"
            )
        if work > self.budget.work:
            raise UntriedError(
                f"its {what} would take too long: {work:.2g} operations, the limit is "
                f"{self.budget.work:.2g}"
            )
