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
    promised: float  # The bound that the statement gives for this quantity
    #: If `measured` is the probability of an event that was also simulated, the share of simulated
    #: runs with this event; otherwise None.
    drawn: float | None = None
