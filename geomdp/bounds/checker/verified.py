"""Result of checking one rung: one step of a certificate."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Verified:
    """A checked argument.

    Parameters
    ----------
    subject : tuple
        A key that identifies the workload.
    queries : str
        The workload in words.
    verified : tuple of str
        What was computed again.
    conditions : tuple of str
        What the argument takes for granted.
    failure : float
        Probability over public draws that the argument does not hold.
    """

    subject: tuple[object, ...]
    queries: str
    verified: tuple[str, ...]
    conditions: tuple[str, ...] = ()
    failure: float = 0.0


@dataclass(frozen=True, kw_only=True)
class VerifiedPacking(Verified):
    """A checked packing."""

    #: ln M.
    log_count: float
    #: Records s of a data set, and most replacements between two.
    size: int
    distance: int
    #: Least distance of two answers, as computed here, and a bound on its rounding.
    separation: float
    slack: float
