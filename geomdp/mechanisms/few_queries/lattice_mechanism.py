"""Base class of the mechanisms that add noise on a lattice and therefore need exact sums."""

from __future__ import annotations

from typing import Self

from geomdp.mechanisms.additive_noise.pure import PureMechanism
from geomdp.mechanisms.quotients import LARGEST_SUM
from geomdp.mechanisms.sensitivity import l1_sensitivity


class InexactSumsError(ValueError):
    """Sums of answers, or their changes between neighbours, are not exact in float64."""


class LatticeMechanism(PureMechanism):
    """A mechanism with noise on a lattice that contains all differences of sums of neighbours.

    ``ValueError`` if sums can be 2^53 or more: rounding could move differences off the lattice.
    """

    _sensitivity: float

    def _prepare(self) -> None:
        self._sensitivity = l1_sensitivity(self.workload, self.adjacency)
        if self._sensitivity >= LARGEST_SUM:
            raise InexactSumsError(
                f"workload must have an l1 sensitivity below 2^53 for {type(self).__name__}, got "
                f"{self._sensitivity:g}: choose a larger unit for the answers"
            )
        self._require_exact_sums()

    def with_n(self, n: int) -> Self:
        """As in the base; ``ValueError`` if sums over n records are not exact."""
        twin = super().with_n(n)
        twin._require_exact_sums()
        return twin

    def _require_exact_sums(self) -> None:
        if not self._sums_are_exact:
            raise InexactSumsError(
                f"n must be at most {self._capacity} for {type(self).__name__} and this workload: "
                f"sums over more records are not exact in float64, got {self.n}"
            )
