"""One row of the table of mechanisms that compete."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass

from geomdp.advice.setting import InapplicableError, Setting
from geomdp.advice.steps import Step
from geomdp.mechanisms import Mechanism
from geomdp.privacy import PureDP


class Guarantees(enum.Enum):
    """The guarantees that a mechanism can give, as the flags that ask for them."""

    PURE = "--epsilon"
    CONCENTRATED = "--epsilon --delta, or --rho"
    ANY = "--epsilon, or --epsilon --delta, or --rho"

    def check(self, setting: Setting) -> None:
        """Raise `InapplicableError` if another guarantee is wanted."""
        pure = isinstance(setting.privacy, PureDP)
        if self is Guarantees.PURE and not pure:
            raise InapplicableError("it is calibrated for pure differential privacy only")
        if self is Guarantees.CONCENTRATED and pure:
            raise InapplicableError("Gaussian noise is never purely private")


def any_setting(setting: Setting) -> None:
    """Comparing a candidate makes sense in every setting in which it applies."""
    del setting


@dataclass(frozen=True, repr=False)
class Candidate:
    """A mechanism that competes.

    Parameters
    ----------
    kind : type
        The exported class.
    flag : str
        Its name on the command line.
    guarantees : Guarantees
        What it can guarantee.
    summary : str
        What it is, for lists.
    suits : str
        Why it suits a workload, where it wins: a sentence about "it" or its noise.
    build : callable
        From a setting to the mechanism. It raises `InapplicableError` where it does not apply and
        `UntriedError`, before anything is computed, where it would cost more than the budget.
    steps : tuple of Step
        Post-processing that may follow; only for additive mechanisms.
    name : str
        Its name in tables; by default that of the class.
    useful : callable
        Raises `InapplicableError` in settings in which it need not be compared with the others.
    depends_on_n : bool
        Whether its geometry depends on the number of records. Such a candidate is built last and
        uses the least error known to leave out what cannot be better.
    log_concave : bool
        Whether its noise is symmetric and log-concave. Noise of K-norm type, from cones over convex
        bodies, Laplace and Gaussian noise are, as are sums and linear images of them. The advisor
        then knows a lower bound on what a projection leaves (`projection_floor`).
    """

    kind: type[Mechanism]
    flag: str
    guarantees: Guarantees
    summary: str
    suits: str
    build: Callable[[Setting], Mechanism]
    steps: tuple[Step, ...] = ()
    name: str = ""
    useful: Callable[[Setting], None] = any_setting
    depends_on_n: bool = False
    log_concave: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", self.name or self.kind.__name__)

    def __repr__(self) -> str:
        """Name and flag."""
        return f"Candidate({self.name}, --mechanism {self.flag})"

    def built(self, setting: Setting) -> Mechanism:
        """The mechanism, for whoever asks for it by name."""
        self.guarantees.check(setting)
        return self.build(setting)

    def compared(self, setting: Setting) -> Mechanism:
        """The mechanism, if comparing it makes sense."""
        self.guarantees.check(setting)
        self.useful(setting)
        return self.build(setting)
