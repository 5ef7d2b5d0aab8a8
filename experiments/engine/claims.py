"""Claims: statements of theory, each with the measurement that checks it."""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from dataclasses import dataclass

from rich.table import Table
from rich.text import Text

from experiments.engine.margins import NoLimit


@dataclass(frozen=True)
class Claim:
    """One checked statement."""

    name: str  # The statement in words
    passed: bool  # Whether the measurement agrees with it
    measured: str  # What was measured, with its uncertainty
    theory: str  # What the theory says, in the same units
    id: str  # Where the statement is proved: the id in the formula sheet
    #: How close the measurement is to the limit at which the claim fails: 1 at the limit, 0 far
    #: from the limit. The functions of `margins` compute this number. A claim about several points
    #: has the largest of their numbers. A claim without a limit has the reason instead.
    used: float | NoLimit

    def __post_init__(self) -> None:
        if not isinstance(self.used, NoLimit) and not 0 <= self.used < math.inf:
            raise ValueError(f"used must be finite and at least 0, got {self.used!r}")

    def to_dict(self) -> dict[str, str | bool | float | None]:
        """Plain values, ready for JSON."""
        return {
            "name": self.name,
            "passed": self.passed,
            "measured": self.measured,
            "theory": self.theory,
            "id": self.id,
            "used": None if isinstance(self.used, NoLimit) else float(self.used),
            "no_limit": str(self.used) if isinstance(self.used, NoLimit) else None,
        }


def claims_table(claims: Sequence[tuple[str, Claim]]) -> Table:
    """Table of (script, claim) pairs for the terminal."""
    table = Table("script", "claim", "", "measured", "theory", "source", title="Claims")
    for script, claim in claims:
        verdict = Text("passed", "green") if claim.passed else Text("FAILED", "bold red")
        table.add_row(
            script, Text(claim.name), verdict, Text(claim.measured), Text(claim.theory), claim.id
        )
    return table


class Aim(enum.StrEnum):
    """Which side of the goal a measurement should be on."""

    AT_LEAST = "at least"
    AT_MOST = "at most"


@dataclass(frozen=True)
class Goal:
    """A number that a measurement should reach, with the measurement.

    A claim says what must hold, and a false claim fails the run. A goal says what would be good.
    It may stay open, and then the reason is shown beside the measurement.
    """

    name: str  # What is measured, with its unit
    measured: float  # The measurement
    goal: float  # The number aimed at, in the same unit
    aim: Aim  # On which side of `goal` the measurement should be
    reason: str  # Why the goal is not reached; shown only while it is open
    #: Other numbers that say how good the measurement is, such as the distance from a physical
    #: limit; shown always.
    beside: str = ""

    def __post_init__(self) -> None:
        for name in ("measured", "goal"):
            if not math.isfinite(getattr(self, name)):
                raise ValueError(f"{name} must be finite, got {getattr(self, name)!r}")
        if not self.reason:
            raise ValueError(f"the goal {self.name!r} must have a reason for staying open, got ''")

    @property
    def reached(self) -> bool:
        """Whether the measurement is on the side of the goal that was aimed at."""
        if self.aim is Aim.AT_LEAST:
            return bool(self.measured >= self.goal)
        return bool(self.measured <= self.goal)

    def to_dict(self) -> dict[str, str | bool | float]:
        """Plain values, ready for JSON; the reason only while the goal is open."""
        return {
            "name": self.name,
            "reached": self.reached,
            "measured": f"{self.measured:,.3g}",
            "goal": f"{self.aim} {self.goal:,.6g}",
            "beside": self.beside,
            "reason": "" if self.reached else self.reason,
        }


def goals_table(goals: Sequence[tuple[str, Goal]]) -> Table:
    """Table of (script, goal) pairs for the terminal."""
    table = Table("script", "goal", "", "measured", "aimed at", "beside; why open", title="Goals")
    for script, goal in goals:
        shown = goal.to_dict()
        verdict = Text("reached", "green") if goal.reached else Text("open", "yellow")
        words = "; ".join(str(shown[key]) for key in ("beside", "reason") if shown[key])
        table.add_row(
            script,
            Text(goal.name),
            verdict,
            Text(str(shown["measured"])),
            Text(str(shown["goal"])),
            Text(words),
        )
    return table
