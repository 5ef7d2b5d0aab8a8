"""What the verbs of bodies return and raise, and protocols for anything that offers a verb."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from geomdp._typing import FloatArray


class MissingOracle(TypeError):  # noqa: N818 (a name given by the design)
    """A body was asked for a verb that it does not implement and that cannot be derived."""

    def __init__(self, body: object, verb: str, needed: str) -> None:
        super().__init__(f"{type(body).__name__} has no {verb}: it would need {needed}")


@dataclass(frozen=True)
class Halfspace:
    """The set {x : <normal, x> <= offset} in R^m."""

    normal: FloatArray
    offset: float


@dataclass(frozen=True)
class Facets:
    """Where rays from 0 leave a body: gauges and the supporting halfspaces there."""

    gauges: FloatArray  # (b,): ||x||_K of each point x; infinite outside the span of K
    normals: FloatArray  # (b, m): a z with h_K(z) <= 1 and <z, x> = ||x||_K for each x in the span


@runtime_checkable
class HasSupport(Protocol):
    """Anything with a support function."""

    @property
    def dimension(self) -> int:
        """Dimension m."""

    def support(self, directions: FloatArray) -> FloatArray:
        """Support function of each row of (b, m): (b,)."""


@runtime_checkable
class HasGauge(Protocol):
    """Anything with a gauge (Minkowski functional)."""

    @property
    def dimension(self) -> int:
        """Dimension m."""

    def gauge(self, points: FloatArray) -> FloatArray:
        """Gauge of each row of (b, m): (b,)."""
