"""The result of checking one rung. A rung is one step of a certificate."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Verified:
    """The result of checking the proof of one rung.

    The proof uses one of four tools: a packing; orthogonal lines
    (`geomdp.bounds.lines.orthogonal_lines`); lines along single queries
    (`geomdp.bounds.lines.query_lines`); or the average error of guessing one of several elements
    with answers far apart (`geomdp.bounds.packings.guessing`).

    Parameters
    ----------
    subject : tuple
        A key that identifies the workload.
    queries : str
        The workload in words.
    verified : tuple of str
        The facts that were checked by computation, in words.
    conditions : tuple of str
        Conditions that the proof assumes and the check does not test.
    failure : float
        Upper bound on the probability, over public draws, that a condition does not hold.
    """

    subject: tuple[object, ...]
    queries: str
    verified: tuple[str, ...]
    conditions: tuple[str, ...] = ()
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
