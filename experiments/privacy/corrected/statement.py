"""The statements that the panels of the figure compare, each as printed and as corrected."""

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
    #: The share of runs, if `measured` is a probability that was also simulated; otherwise None.
    drawn: float | None = None
