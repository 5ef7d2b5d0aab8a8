"""Claims and goals of figures: the verdict on a measurement, and how near it is to its limit.

How near is a number: 0 far from the limit, 1 at the limit and more than 1 beyond it, where the
claim fails. It is `BEYOND` for a measurement that is not a number or is infinitely far off, so that
a claim that fails badly can still be stored and shown.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from rich.table import Table
from rich.text import Text

#: Stands for everything far beyond the limit. The site prints it in percent.
BEYOND = 1000.0


class NoLimit(enum.StrEnum):
    """Why no distance from a limit can be stated for a claim."""

    ORDER = "the claim is an order and asks for no least difference"
    EVERY_CASE = "each case holds or fails, with nothing in between"
    EQUAL_NAMES = "the claim compares names, not numbers"


@dataclass(frozen=True)
class Verdict:
    """Whether a measurement agrees with a statement."""

    passed: bool  # Whether it does
    #: How near the measurement is to the limit at which the claim fails, the nearest of several
    #: points. A claim without a limit has the reason instead.
    used: float | NoLimit

    def __post_init__(self) -> None:
        if not isinstance(self.used, NoLimit) and not 0 <= self.used < math.inf:
            raise ValueError(f"used must be finite and at least 0, got {self.used!r}")

    def __and__(self, other: Verdict) -> Verdict:
        """Both statements hold; the one nearer to its limit counts."""
        numbers = [each for each in (self.used, other.used) if not isinstance(each, NoLimit)]
        passed = bool(self.passed and other.passed)
        return Verdict(passed, max(numbers) if numbers else self.used)


def at_most(measured: npt.ArrayLike, limit: npt.ArrayLike) -> Verdict:
    """Nothing in `measured` exceeds `limit`, which is above 0."""
    return Verdict(bool(np.all(_array(measured) <= _array(limit))), share(measured, limit))


def below(measured: npt.ArrayLike, limit: npt.ArrayLike) -> Verdict:
    """Everything in `measured` is less than `limit`, which is above 0."""
    return Verdict(bool(np.all(_array(measured) < _array(limit))), share(measured, limit))


def at_least(measured: npt.ArrayLike, least: npt.ArrayLike) -> Verdict:
    """Everything in `measured` is at least `least`, which is above 0."""
    return Verdict(bool(np.all(_array(measured) >= _array(least))), inverse_share(measured, least))


def above(measured: npt.ArrayLike, least: npt.ArrayLike) -> Verdict:
    """Everything in `measured` is more than `least`, which is above 0."""
    return Verdict(bool(np.all(_array(measured) > _array(least))), inverse_share(measured, least))


def between(measured: npt.ArrayLike, low: float, high: float) -> Verdict:
    """Everything in `measured` lies in [low, high]."""
    values = _array(measured)
    return Verdict(bool(np.all((low <= values) & (values <= high))), position(values, low, high))


def near(measured: npt.ArrayLike, expected: npt.ArrayLike, tolerance: npt.ArrayLike) -> Verdict:
    """Everything in `measured` is within `tolerance`, above 0, of its `expected` value."""
    used = offset(measured, expected, tolerance)
    return Verdict(used <= 1, used)


def allowed(measured: npt.ArrayLike, allowance: npt.ArrayLike) -> Verdict:
    """Nothing in `measured` exceeds its allowance, which may be 0."""
    passed = bool(np.all(_array(measured) <= _array(allowance)))
    return Verdict(passed, within_allowance(measured, allowance))


def not_rare(p_values: npt.ArrayLike, level: float) -> Verdict:
    """Every p-value is above `level`."""
    return Verdict(bool(np.all(_array(p_values) > level)), rarity(p_values, level))


def each_case(passed: object) -> Verdict:
    """A statement that holds or fails in each case."""
    return Verdict(bool(passed), NoLimit.EVERY_CASE)


def in_order(passed: object) -> Verdict:
    """A statement on the order of numbers."""
    return Verdict(bool(passed), NoLimit.ORDER)


def same_names(passed: object) -> Verdict:
    """A statement on names."""
    return Verdict(bool(passed), NoLimit.EQUAL_NAMES)


def share(measured: npt.ArrayLike, limit: npt.ArrayLike) -> float:
    """For claims that nothing in `measured` exceeds `limit`, which is above 0."""
    return _largest(_array(measured) / _array(limit))


def inverse_share(measured: npt.ArrayLike, least: npt.ArrayLike) -> float:
    """For claims that everything in `measured` is at least `least`, which is above 0."""
    values = _array(measured)
    with np.errstate(divide="ignore"):
        return _largest(np.where(values > 0, _array(least) / values, np.inf))


def offset(measured: npt.ArrayLike, expected: npt.ArrayLike, tolerance: npt.ArrayLike) -> float:
    """For claims that each measurement is within `tolerance`, above 0, of its `expected` value."""
    return _largest(np.abs(_array(measured) - _array(expected)) / _array(tolerance))


def position(measured: npt.ArrayLike, low: float, high: float) -> float:
    """For claims that each measurement lies in [low, high]: 0 in the middle, 1 at both ends."""
    return offset(measured, (low + high) / 2, (high - low) / 2)


def within_allowance(measured: npt.ArrayLike, allowed: npt.ArrayLike) -> float:
    """Like `share`, for an allowance that may be 0: then any measurement above 0 is beyond it."""
    values, limits = _array(measured), _array(allowed)
    with np.errstate(divide="ignore", invalid="ignore"):
        # A comparison with NaN is false, so NaN is beyond the limit.
        shares = np.where(limits > 0, values / limits, np.where(values <= limits, 0.0, np.inf))
    return _largest(shares)


def rarity(p_values: npt.ArrayLike, level: float) -> float:
    """For claims that no p-value is below `level`, on the scale of logarithms."""
    with np.errstate(divide="ignore"):
        return _largest(np.log(_array(p_values)) / math.log(level))


def _largest(used: npt.NDArray[np.float64]) -> float:
    if used.size == 0:
        raise ValueError("a margin needs at least 1 measurement, got 0")
    if np.isnan(used).any():
        return BEYOND
    return max(0.0, min(float(used.max()), BEYOND))


def _array(values: npt.ArrayLike) -> npt.NDArray[np.float64]:
    return np.asarray(values, dtype=float)


@dataclass(frozen=True)
class Claim:
    """One checked statement."""

    name: str  # The statement in words
    verdict: Verdict  # Whether the measurement agrees with it
    measured: str  # What was measured, with its uncertainty
    theory: str  # What the theory says, in the same units
    id: str  # Where the statement is proved: the id in the formula sheet

    @property
    def passed(self) -> bool:
        """Whether the measurement agrees with the statement."""
        return bool(self.verdict.passed)

    def to_dict(self) -> dict[str, str | bool | float | None]:
        """Plain values, ready for JSON."""
        used = self.verdict.used
        return {
            "name": self.name,
            "passed": self.passed,
            "measured": self.measured,
            "theory": self.theory,
            "id": self.id,
            "used": None if isinstance(used, NoLimit) else float(used),
            "no_limit": str(used) if isinstance(used, NoLimit) else None,
        }


#: What a script returns: its claims one by one, or a list.
Claims = Iterable[Claim]


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


#: What a script returns: its goals one by one, or a list.
Goals = Iterable[Goal]


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
