"""What is known of a packing once it was checked."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Verified:
    """A checked packing.

    Parameters
    ----------
    subject : tuple
        What tells its workload from others.
    queries : str
        The workload in words.
    log_count : float
        ln M.
    size, distance : int
        Records s of a data set, and most replacements between two.
    separation : float
        Least distance of two answers, as computed here.
    slack : float
        Bound on the rounding of `separation`.
    verified : tuple of str
        What was computed again.
    conditions : tuple of str
        What had to be taken for granted.
    failure : float
        Probability over public draws that the separation does not hold.
    """

    subject: tuple[object, ...]
    queries: str
    log_count: float
    size: int
    distance: int
    separation: float
    slack: float
    verified: tuple[str, ...]
    conditions: tuple[str, ...]
    failure: float = 0.0
