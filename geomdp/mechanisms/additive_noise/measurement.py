"""What an unseeded release measures where answers are real numbers."""

from __future__ import annotations

import abc
from collections.abc import Iterable

from geomdp._typing import FloatArray
from geomdp.data.counting.tallies import CountedRecords
from geomdp.workloads.base import Totals
from geomdp.workloads.universe.universes import Records


class Measurement(abc.ABC):
    """Answers rounded record by record to a public grid, with noise proved for the rounded ones.

    Sums of rounded answers are exact, so noise that is rounded to the same grid before the records
    are read gives the correctly rounded output of a mechanism with a proof (X-GRID).
    """

    #: Noise is rounded to multiples of 2^-grid.
    grid: int
    #: The share by which the noise was made larger to cover rounding in its parameters.
    slack: float
    #: Largest number of records whose sums are exact.
    capacity: int

    @abc.abstractmethod
    def draw(self) -> list[int]:
        """Noise in multiples of 2^-grid, from the operating system's bits."""

    @abc.abstractmethod
    def totals(self, records: Records | Iterable[Records] | CountedRecords) -> Totals:
        """Number of records and the exact sums that `answers` takes."""

    @abc.abstractmethod
    def answers(self, sums: FloatArray, multiples: list[int], n: int) -> FloatArray:
        """Noisy means of all answers (m,), from exact sums and the noise of `draw`."""
