"""One candidate: a mechanism that the advisor compares with others."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass, replace

from geomdp.advice.setting import InapplicableError, Setting
from geomdp.advice.steps import Step
from geomdp.mechanisms import Mechanism
from geomdp.privacy import PureDP


class Guarantees(enum.Enum):
    """The guarantees that a mechanism can give; the command line lists the values of this enum."""

    PURE = "any; releases are epsilon-DP"
    CONCENTRATED = "--epsilon --delta, or --rho"
    ANY = "any"

    def met_by(self, setting: Setting) -> Setting:
        """The setting, with a guarantee that the mechanism can give and that implies the one asked.

        `PURE` replaces every guarantee by pure privacy that implies it. `CONCENTRATED` raises
        `InapplicableError` if pure privacy is asked.
        """
        if self is Guarantees.PURE:
            return replace(setting, privacy=setting.pure)
        if self is Guarantees.CONCENTRATED and isinstance(setting.privacy, PureDP):
            raise InapplicableError("Gaussian noise is never purely private")
        return setting


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
        The guarantees that the mechanism can give.
    summary : str
        A few words on the mechanism, for lists.
    suits : str
        A sentence that explains why the mechanism suits a workload. It begins with "It" or "Its",
        because the advisor shows the sentence after the name of the mechanism.
    build : callable
        A function from a setting, with a guarantee that the mechanism can give, to the mechanism.
        It raises `InapplicableError` if the mechanism does not apply. If the set-up would cost more
        than the budget, it raises `UntriedError` before the step that is too costly.
    steps : tuple of Step
        The post-processing steps that can follow the noise; empty if the mechanism is not additive.
    name : str
        Name of the mechanism in tables; by default the name of the class.
    useful : callable
        A function of the setting that the advisor was asked about. It raises `InapplicableError` if
        the mechanism need not be compared with the others.
    depends_on_n : bool
        Whether the geometry of the mechanism depends on the number of records. If True, the
        candidate is built after the others. It is left out if its error is provably not below the
        least error so far.
    log_concave : bool
        Whether the noise is symmetric and log-concave. The lower bound of `projection_floor` needs
        this. It is true of Laplace noise, Gaussian noise, K-norm noise, noise from cones over
        convex bodies, and of linear images and independent sums of such noise.
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

    def is_stronger(self, setting: Setting) -> bool:
        """Whether the mechanism is purely private, and the guarantee asked is not pure privacy."""
        return self.guarantees is Guarantees.PURE and not isinstance(setting.privacy, PureDP)

    def built(self, setting: Setting) -> Mechanism:
        """Build the mechanism for a caller who asks for it by name."""
        return self.build(self.guarantees.met_by(setting))

    def compared(self, setting: Setting) -> Mechanism:
        """Build the mechanism for a comparison, unless `useful` raises `InapplicableError`."""
        met = self.guarantees.met_by(setting)
        self.useful(setting)
        return self.build(met)
