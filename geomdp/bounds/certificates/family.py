"""What a lower bound needs to know of a packing."""

from __future__ import annotations

from typing import Any, Protocol

from geomdp.bounds.metrics import Metric


class PackingFamily(Protocol):
    """M data sets Y_1..Y_M of `size` records each, listed or given by a rule.

    All that a bound needs: how many, how far apart their answers, how close they are as data sets.
    """

    @property
    def log_others(self) -> float:
        """ln(M - 1), never rounded up."""

    @property
    def size(self) -> int:
        """Number of records s of each data set."""

    @property
    def distance(self) -> int:
        """Most records that must be replaced to turn one data set into another; at most s."""

    @property
    def subject(self) -> object:
        """What tells the workload from others: packings of one certificate agree in it."""

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the counts, distances and separations take for granted."""

    def separation(self, metric: Metric) -> float:
        """A proved lower bound on the norms of all Q(Y_i) - Q(Y_j), i != j."""

    def document(self) -> dict[str, Any]:
        """The family as written to a certificate file (see `certificate_file`)."""
