"""The mechanism that answers the questions of `ask`, and the flags that describe it."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, TypedDict

from geomdp.cli.options import check_whole
from geomdp.privacy import Adjacency, ApproxDP, PureDP

if TYPE_CHECKING:
    from geomdp.mechanisms import AboveThreshold, NumericSparse, OnlineConstruction, Sparse
    from geomdp.privacy import Ledger
    from geomdp.workloads.single_queries.single_query import DenseQuery

    Interactive: TypeAlias = (
        OnlineConstruction[DenseQuery] | AboveThreshold | Sparse | NumericSparse
    )


class Technique(enum.StrEnum):
    """Values of --technique."""

    ABOVE_THRESHOLD = "above-threshold"
    SPARSE = "sparse"
    NUMERIC_SPARSE = "numeric-sparse"
    ONLINE = "online"


class _Shared(TypedDict):
    privacy: PureDP | ApproxDP
    adjacency: Adjacency
    ledger: Ledger | None


@dataclass(frozen=True)
class Setting:
    """The flags of the mechanism; ``ValueError`` for a missing, superfluous or invalid flag."""

    technique: Technique
    threshold: float | None
    cutoff: int | None
    questions: int | None
    alpha: float | None
    privacy: PureDP | ApproxDP
    adjacency: Adjacency

    def __post_init__(self) -> None:
        online = self.technique is Technique.ONLINE
        several = self.technique in (Technique.SPARSE, Technique.NUMERIC_SPARSE)
        for flag, value, wanted in (
            ("--threshold", self.threshold, not online),
            ("--cutoff", self.cutoff, several),
            ("--questions", self.questions, online),
        ):
            if (value is not None) != wanted:
                verb = "needs" if wanted else "does not take"
                raise ValueError(f"--technique {self.technique} {verb} {flag}")
        if self.alpha is not None and not online:
            raise ValueError(f"--technique {self.technique} does not take --alpha")
        first_only = self.technique is Technique.ABOVE_THRESHOLD
        if first_only and not isinstance(self.privacy, PureDP):
            raise ValueError("--technique above-threshold does not take --delta")
        check_whole("--cutoff", self.cutoff, minimum=1)
        check_whole("--questions", self.questions, minimum=1)

    def record(self, mechanism: Interactive) -> dict[str, object]:
        """What the privacy record says about the mechanism, which `mechanism` has built."""
        flags = {
            "threshold": self.threshold,
            "cutoff": self.cutoff,
            "questions": self.questions,
            "alpha": getattr(mechanism, "alpha", None),
        }
        given = {name: value for name, value in flags.items() if value is not None}
        return {"name": type(mechanism).__name__, "technique": self.technique, **given}

    def mechanism(self, size: int, n: int, ledger: Ledger | None) -> Interactive:
        """The mechanism for `n` records and `size` combinations of levels, paid when it is built.

        Under add-remove, `n` is declared. The sparse vector technique compares numbers of records
        with n times the threshold, and the online construction estimates these numbers divided by
        n.
        """
        from geomdp.mechanisms import (
            AboveThreshold,
            MultiplicativeWeights,
            NumericSparse,
            OnlineConstruction,
            Sparse,
        )

        shared: _Shared = {"privacy": self.privacy, "adjacency": self.adjacency, "ledger": ledger}
        if self.questions is not None:
            rule = MultiplicativeWeights(size)
            return OnlineConstruction(rule, n=n, queries=self.questions, alpha=self.alpha, **shared)
        assert self.threshold is not None
        # Compare counts, not shares: counts are whole numbers, so no rounding depends on the
        # records, and the sensitivity is exactly 1.
        level = self.threshold * n
        if self.cutoff is None:
            assert isinstance(self.privacy, PureDP)  # checked by `__post_init__`
            return AboveThreshold(
                level,
                sensitivity=1.0,
                privacy=self.privacy,
                adjacency=self.adjacency,
                ledger=ledger,
            )
        kind = Sparse if self.technique is Technique.SPARSE else NumericSparse
        return kind(level, cutoff=self.cutoff, sensitivity=1.0, **shared)
