"""Protocols for anything that offers one of a body's verbs, whether or not it is a `Body`."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from geomdp._typing import FloatArray


@runtime_checkable
class HasSupport(Protocol):
    """Anything with a support function."""

    @property
    def dimension(self) -> int:
        """Dimension m."""
        ...

    def support(self, directions: FloatArray) -> FloatArray:
        """Support function of each row of (b, m): (b,)."""
        ...


@runtime_checkable
class HasExtremePoint(HasSupport, Protocol):
    """Anything with a linear maximisation oracle."""

    def extreme_point(self, directions: FloatArray) -> FloatArray:
        """A maximiser for each row of (b, m): (b, m)."""
        ...


@runtime_checkable
class HasGauge(Protocol):
    """Anything with a gauge (Minkowski functional)."""

    @property
    def dimension(self) -> int:
        """Dimension m."""
        ...

    def gauge(self, points: FloatArray) -> FloatArray:
        """Gauge of each row of (b, m): (b,)."""
        ...
