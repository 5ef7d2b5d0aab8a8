"""What a panel of the figure compares: one statement, as printed and as corrected."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Statement(enum.StrEnum):
    """Published statements, one panel each."""

    ITERATIVE = "iterative construction"
    NUMERIC = "NumericSparse"
    MEDIAN = "median rule"
    SMOOTH_NOISE = "smooth queries: noise"
    SMOOTH_ERROR = "smooth queries: error"
    COMPOSITION = "composition"
    ONLINE = "online weights"
    FLAT = "flat projected queries"


class Version(enum.StrEnum):
    """Which form of a statement is measured."""

    PRINTED = "printed"
    CORRECTED = "corrected"


@dataclass(frozen=True)
class Measured:
    """One instance that meets all assumptions of a statement."""

    measured: float  # The quantity that the statement bounds
    promised: float  # The bound that the statement gives for it
    #: If `measured` is a probability and was simulated too: the share of runs. None otherwise.
    drawn: float | None = None
