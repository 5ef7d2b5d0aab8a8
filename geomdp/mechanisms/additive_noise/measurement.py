"""How a release without a seed measures real-valued answers: rounded answers with noise."""

from __future__ import annotations

import abc
from collections.abc import Iterable

from geomdp._typing import FloatArray
from geomdp.data.counting.tallies import CountedRecords
from geomdp.workloads.base import Totals
from geomdp.workloads.universe.universes import Records


class Measurement(abc.ABC):
    """Answers rounded record by record to a public grid, and noise that makes their sums private.

    Sums of rounded answers are exact. Before the records are read, the noise is rounded to the same
    grid, or to a finer grid that contains it. So the output is the correctly rounded output of a
    mechanism whose privacy is proved (X-GRID).
    """

    #: Noise is rounded to multiples of 2^-grid.
    grid: int
    #: The noise was made larger by this share, to cover rounding errors of its parameters.
    slack: float
    #: Largest number of records whose sums are exact.
    capacity: int

    @abc.abstractmethod
    def draw(self) -> list[int]:
        """Noise in multiples of 2^-grid, from the random bits of the operating system."""

    @abc.abstractmethod
    def totals(self, records: Records | Iterable[Records] | CountedRecords) -> Totals:
        """Check the records and return their number and the exact sums that `answers` takes."""

    @abc.abstractmethod
    def answers(self, sums: FloatArray, multiples: list[int], n: int) -> FloatArray:
        """Noisy means (m,) of all answers, from exact sums of n records and the noise of `draw`."""
