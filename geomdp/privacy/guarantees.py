"""The privacy record of a mechanism or release: its definition, sampler and arithmetic."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from geomdp.privacy.definitions import (
    ZCDP,
    Adjacency,
    ApproxDP,
    Privacy,
    check_privacy,
    checked_adjacency,
    privacy_from_parameters,
)

FLOAT64_CAVEAT = "stated for real arithmetic; sampled in float64"

#: What a record says of noise on single numbers that is compared and rounded exactly (X-GRID).
DECIDED_ARITHMETIC = (
    "noise compared and rounded exactly, true answers taken as given; random bits from the "
    "operating system"
)


def rounded_arithmetic(grid: int, slack: float = 0.0) -> str:
    """What a record says of noise that is correctly rounded to multiples of 2^-grid (X-GRID).

    `slack` is the share by which the noise was made larger, so that a body found in float64 is
    proved to hold all differences of neighbours.
    """
    scaled = f", made larger by a proved slack of {slack:g}" if slack else ""
    return (
        f"noise correctly rounded to multiples of 2^-{grid}{scaled}; random bits from the "
        "operating system"
    )


@dataclass(frozen=True)
class Exact:
    """The noise is drawn from the stated distribution: closed form or rejection."""

    def __str__(self) -> str:
        return "exact"


@dataclass(frozen=True)
class Approximate:
    """The noise is within `tv` of the stated distribution in total variation, by a proof.

    Parameters
    ----------
    tv : float
        Proved total variation distance, 0 < tv < 1.
    source : str
        Where the bound is proved.
    """

    tv: float
    source: str

    def __post_init__(self) -> None:
        if not 0 < self.tv < 1:
            raise ValueError(f"tv must be above 0 and below 1, got {self.tv!r}")

    def __str__(self) -> str:
        return f"approximate (tv {self.tv:g}, {self.source})"


@dataclass(frozen=True)
class Heuristic:
    """The noise comes from a finite Markov chain without a proved distance (SAM-3).

    Parameters
    ----------
    reason : str
        The part without a proof, for instance the kernel and its number of steps.
    """

    reason: str

    def __str__(self) -> str:
        return f"heuristic ({self.reason})"


SamplerStatus = Exact | Approximate | Heuristic


@dataclass(frozen=True)
class Guarantee:
    """The privacy record of one mechanism or release.

    `str(guarantee)` is the claim in words. For an exact sampler it is `privacy` itself; for an
    approximate one it is `effective` (SAM-1). A heuristic sampler gives no claim: `privacy` is then
    a target, and the text starts with the word "heuristic" (SAM-3). A seeded release is
    reproducible and therefore not private.

    Parameters
    ----------
    privacy : PureDP, ApproxDP or ZCDP
        The parameters the noise is calibrated to.
    adjacency : Adjacency
        The neighbour relation.
    sampler : Exact, Approximate or Heuristic
        How the noise is drawn.
    arithmetic : str
        Caveat on the arithmetic of the sampler (SAM-6).
    seeded : bool
        Whether the random generator was supplied by the caller.

    Raises
    ------
    ValueError
        For a field of another type.
    """

    privacy: Privacy
    adjacency: Adjacency
    sampler: SamplerStatus
    arithmetic: str = FLOAT64_CAVEAT
    seeded: bool = False

    def __post_init__(self) -> None:
        check_privacy(self.privacy)
        checked_adjacency(self.adjacency)
        if not isinstance(self.sampler, Exact | Approximate | Heuristic):
            raise ValueError(
                f"sampler must be Exact, Approximate or Heuristic, got {self.sampler!r}"
            )
        if not isinstance(self.seeded, bool):
            raise ValueError(f"seeded must be True or False, got {self.seeded!r}")

    @property
    def effective(self) -> Privacy:
        """The guarantee proved for the sampler as implemented, in real arithmetic (SAM-1).

        Raises
        ------
        ValueError
            For a heuristic sampler, for which nothing is proved, and for an approximate one under
            zCDP or with a resulting delta of 1/2 or more.
        """
        match self.sampler:
            case Exact():
                return self.privacy
            case Heuristic():
                raise ValueError(f"nothing is proved for a {self.sampler} sampler")
            case Approximate(tv=tv):
                if isinstance(self.privacy, ZCDP):
                    raise ValueError("an approximate sampler has no zCDP statement; use PureDP")
                delta = self.privacy.delta if isinstance(self.privacy, ApproxDP) else 0.0
                epsilon = self.privacy.epsilon
                # e^709 < 2^1024 < e^710; for larger epsilon delta is infinite and refused.
                growth = math.exp(epsilon) if epsilon < 709 else math.inf
                return ApproxDP(epsilon, delta + (1 + growth) * tv)

    def as_seeded(self) -> Guarantee:
        """The same record for a release whose generator the caller supplied, always in float64."""
        return replace(self, arithmetic=FLOAT64_CAVEAT, seeded=True)

    def __repr__(self) -> str:
        seeded = ", seeded" if self.seeded else ""
        return f"Guarantee({self.privacy}, {self.adjacency.value}, {self.sampler} sampler{seeded})"

    def __str__(self) -> str:
        if self.seeded:
            return "seeded: no privacy claim"
        if isinstance(self.sampler, Heuristic):
            claim = f"{self.sampler}, target {self.privacy}"
        else:
            claim = str(self.effective)
        return f"{claim}, {self.adjacency.value}; {self.arithmetic}"

    def to_dict(self) -> dict[str, object]:
        """The record as plain values, ready for JSON; the claim in words is under `statement`."""
        return {
            "statement": str(self),
            "definition": type(self.privacy).__name__,
            "parameters": self.privacy.parameters(),
            "adjacency": self.adjacency.value,
            "sampler": type(self.sampler).__name__.lower(),
            "sampler_details": asdict(self.sampler),
            "arithmetic": self.arithmetic,
            "seeded": self.seeded,
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Guarantee:
        """The guarantee a record of `to_dict` describes, from a file for instance.

        Raises
        ------
        ValueError
            If the record is incomplete, or its statement is not the one its parts lead to.
        """
        samplers = {kind.__name__.lower(): kind for kind in (Exact, Approximate, Heuristic)}
        try:
            guarantee = cls(
                privacy_from_parameters(record["definition"], record["parameters"]),
                Adjacency(record["adjacency"]),
                samplers[record["sampler"]](**record["sampler_details"]),
                record["arithmetic"],
                record["seeded"],
            )
            statement = record["statement"]
        except (KeyError, TypeError) as error:
            raise ValueError(f"not a privacy record: {error}") from error
        if str(guarantee) != statement:
            raise ValueError(
                f"the record's statement must be {str(guarantee)!r}, got {statement!r}"
            )
        return guarantee
