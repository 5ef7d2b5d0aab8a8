"""Claims: statements of theory, each with the measurement that checks it."""

from __future__ import annotations

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
