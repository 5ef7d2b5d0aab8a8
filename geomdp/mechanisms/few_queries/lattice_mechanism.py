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

    If float64 rounded a sum, the rounded sums of neighbours could differ by a vector outside the
    lattice. No noise on the lattice would hide such a change. Therefore the sums over n records
    must be exact, also for seeded releases. For parameters and errors see `AdditiveMechanism`. The
    constructor also raises ``ValueError`` if the l1 norm of the sum of n answer vectors can be 2^53
    or more, or if the l1 sensitivity of this sum is 2^53 or more.
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
        """The same mechanism for n records; ``ValueError`` if sums over n records are not exact."""
        twin = super().with_n(n)
        twin._require_exact_sums()
        return twin

    def _require_exact_sums(self) -> None:
        if not self._sums_are_exact:
            raise InexactSumsError(
                f"n must be at most {self._capacity} for {type(self).__name__} and this workload: "
                f"sums over more records are not exact in float64, got {self.n}"
            )
