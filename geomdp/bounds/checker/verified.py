"""The result of checking one rung. A rung is one step of a certificate."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Verified:
    """The checked proof of one rung: its workload, what was verified, and what is still assumed."""

    #: A key that identifies the workload; `queries` are the workload in words.
    subject: tuple[object, ...]
    queries: str
    verified: tuple[str, ...]
    conditions: tuple[str, ...] = ()
    #: Upper bound on the probability, over public draws, that a condition does not hold.
    failure: float = 0.0


@dataclass(frozen=True, kw_only=True)
class VerifiedPacking(Verified):
    """The result of checking a packing."""

    #: ln M, where M is the number of data sets.
    log_count: float
    #: Number of records s of each data set.
    size: int
    #: Number of replaced records that suffices to turn any of the data sets into any other.
    distance: int
    #: Least distance between the answers of two data sets, as the check computes it.
    separation: float
    #: Bound on the rounding error of `separation`.
    slack: float
