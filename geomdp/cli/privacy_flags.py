"""The privacy flags: --epsilon alone, --epsilon with --delta, or --rho; and --adjacency."""

from __future__ import annotations

import enum
import warnings

from geomdp.privacy import ZCDP, Adjacency, ApproxDP, Privacy, PureDP
from geomdp.privacy.parameter_range import LARGEST_LOSS, LEAST_LOSS, weakness


class AdjacencyFlag(enum.StrEnum):
    """Values of --adjacency."""

    REPLACE_ONE = "replace-one"
    ADD_REMOVE = "add-remove"

    def relation(self) -> Adjacency:
        return Adjacency[self.name]


def parse_released(
    epsilon: float | None, delta: float | None, rho: float | None, above_10: bool
) -> Privacy:
    """The privacy of a release; above 10, epsilon or rho needs the flag --epsilon-above-10."""
    privacy = parse_privacy(epsilon, delta, rho)
    meaning = weakness(privacy)
    if meaning and not above_10:
        raise ValueError(f"--{meaning}; to release with it, add --epsilon-above-10")
    # By the flag, the user has admitted what the library would warn of.
    warnings.filterwarnings("ignore", ".* protects little", UserWarning)
    return privacy


def parse_privacy(epsilon: float | None, delta: float | None, rho: float | None) -> Privacy:
    """The privacy definition that the flags state; ``ValueError`` names a wrong or missing flag."""
    if rho is not None and delta is not None:
        raise ValueError(f"--delta needs --epsilon and excludes --rho, got {delta!r}")
    for flag, value in (("--epsilon", epsilon), ("--rho", rho)):
        if value is not None and not LEAST_LOSS <= value <= LARGEST_LOSS:
            limits = f"from {LEAST_LOSS:g} to {LARGEST_LOSS:g}"
            raise ValueError(f"{flag} must be {limits}, got {value!r}")
    try:
        match epsilon, rho:
            case float(), None:
                return PureDP(epsilon) if delta is None else ApproxDP(epsilon, delta)
            case None, float():
                return ZCDP(rho)
    except ValueError as error:
        # The message begins with the name of a parameter. The flag has the same name.
        raise ValueError(f"--{error}") from error
    given = "neither" if rho is None else "both"
    raise ValueError(f"give either --epsilon (with or without --delta) or --rho, got {given}")
