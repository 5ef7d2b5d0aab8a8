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

        `CONCENTRATED` raises `InapplicableError` if pure privacy is asked.
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

    `build` and `useful` raise `InapplicableError` if the mechanism does not apply or need not be
    compared, and `UntriedError` before a step that costs more than the budget. `suits` is a
    sentence that begins with "It" or "Its". With `depends_on_n`, the candidate is built after the
    others. `log_concave` noise is also symmetric; `projection_floor` holds only for such noise.
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
