"""One candidate: a mechanism that the advisor compares with others."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass

from geomdp.advice.setting import InapplicableError, Setting
from geomdp.advice.steps import Step
from geomdp.mechanisms import Mechanism
from geomdp.privacy import PureDP


class Guarantees(enum.Enum):
    """The guarantees that a mechanism can give; values are the command-line flags for them."""

    PURE = "--epsilon"
    CONCENTRATED = "--epsilon --delta, or --rho"
    ANY = "--epsilon, or --epsilon --delta, or --rho"

    def check(self, setting: Setting) -> None:
        """Raise `InapplicableError` if the setting asks for another guarantee."""
        pure = isinstance(setting.privacy, PureDP)
        if self is Guarantees.PURE and not pure:
            raise InapplicableError("it is calibrated for pure differential privacy only")
        if self is Guarantees.CONCENTRATED and pure:
            raise InapplicableError("Gaussian noise is never purely private")


def any_setting(setting: Setting) -> None:
    """Raise no error: the candidate is compared in every setting in which it applies."""
    del setting


@dataclass(frozen=True, repr=False)
class Candidate:
    """A mechanism that the advisor compares with others.

    Parameters
    ----------
    kind : type
        The exported class of the mechanism.
    flag : str
        Name of the mechanism on the command line.
    guarantees : Guarantees
        The guarantees that it can give.
    summary : str
        A few words on the mechanism, for lists.
    suits : str
        A sentence that explains why the mechanism suits a workload. It begins with "It" or "Its",
        because the advisor shows the sentence after the name of the mechanism.
    build : callable
        A function from a setting to the mechanism. It raises `InapplicableError` if the mechanism
        does not apply. If the set-up would cost more than the budget, it raises `UntriedError`
        before anything is computed.
    steps : tuple of Step
        The post-processing steps that can follow the noise; empty if the mechanism is not additive.
    name : str
        Name of the mechanism in tables; by default the name of the class.
    useful : callable
        A function of a setting that raises `InapplicableError` if the mechanism need not be
        compared with the others.
    depends_on_n : bool
        Whether the geometry of the mechanism depends on the number of records. If True, the
        candidate is built after the others. It is left out if its error is provably not below the
        least error so far.
    log_concave : bool
        Whether the noise is symmetric and log-concave. The lower bound of `projection_floor` needs
        this. It is true of Laplace noise, Gaussian noise, K-norm noise, noise from cones over
        convex bodies, and of sums and linear images of such noise.
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
        """Build the mechanism for a caller who asks for it by name."""
        self.guarantees.check(setting)
        return self.build(setting)

    def compared(self, setting: Setting) -> Mechanism:
        """Build the mechanism for a comparison; `InapplicableError` if `useful` raises it."""
        self.guarantees.check(setting)
        self.useful(setting)
        return self.build(setting)
