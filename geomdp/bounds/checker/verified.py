"""Result of checking one rung: one step of a certificate."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Verified:
    """What is known about an argument after its check.

    Parameters
    ----------
    subject : tuple
        A key that identifies the workload.
    queries : str
        The workload in words.
    verified : tuple of str
        What was computed again.
    conditions : tuple of str
        What the argument assumes without checking it.
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
    """What is known about a packing after its check."""

    #: ln M, where M is the number of data sets.
    log_count: float
    #: Number of records s of a data set, and largest number of replacements between two data sets.
    size: int
    distance: int
    #: Least distance of two answers, as computed here, and a bound on its rounding error.
    separation: float
    slack: float
