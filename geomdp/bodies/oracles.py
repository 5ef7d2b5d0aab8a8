"""Results and errors of the verbs of bodies, and protocols for objects that have a single verb."""

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
    """The set {x : <normal, x> <= offset} in R^m.

    Parameters
    ----------
    normal : (m,) array
        Any vector but 0; its length is not normalised.
    offset : float
        Largest inner product of `normal` with points of the halfspace.
    """

    normal: FloatArray
    offset: float


@dataclass(frozen=True)
class Facets:
    """Where rays from 0 through points leave a body K, with a supporting halfspace at each exit.

    Parameters
    ----------
    gauges : (b,) array
        ||x||_K of each point x; infinite outside the span of K.
    normals : (b, m) array
        For each point x in the span of K, a vector z with h_K(z) <= 1 and <z, x> = ||x||_K. So K
        lies in {y : <z, y> <= 1}, and the ray through x leaves K on the boundary of this halfspace.
    """

    gauges: FloatArray
    normals: FloatArray


@runtime_checkable
class HasSupport(Protocol):
    """Protocol of an object with a support function."""

    @property
    def dimension(self) -> int:
        """Dimension m."""

    def support(self, directions: FloatArray) -> FloatArray:
        """Support function of each row of (b, m): (b,)."""


@runtime_checkable
class HasGauge(Protocol):
    """Protocol of an object with a gauge (Minkowski functional)."""

    @property
    def dimension(self) -> int:
        """Dimension m."""

    def gauge(self, points: FloatArray) -> FloatArray:
        """Gauge of each row of (b, m): (b,)."""
