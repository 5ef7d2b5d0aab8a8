"""Results and errors of the verbs (methods) of bodies, and protocols for objects with one verb."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from geomdp._typing import FloatArray


class MissingOracle(TypeError):  # noqa: N818 (a name given by the design)
    """A body was asked for a verb that it does not implement and that cannot be derived.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> ball = gd.bodies.LpBall(exponent=3, dimension=2)
    >>> try:
    ...     ball.project(np.ones((1, 2)))
    ... except gd.MissingOracle as error:
    ...     print(error)
    LpBall has no project: it would need a closed form (see geomdp.project)
    """

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

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> found = gd.bodies.Ball(2).separate(np.array([3.0, 4.0]))
    >>> found.normal.round(6).tolist(), round(found.offset, 6)
    ([2.4, 3.2], 4.0)
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
        For each point x in the span of K, a vector z with <z, x> = ||x||_K such that K lies in the
        halfspace {y : <z, y> <= 1}. If ||x||_K is above 0, the ray through x leaves K on the
        boundary of this halfspace.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> box = gd.bodies.SlabBody(np.eye(2), [1.0, 2.0])
    >>> found = box.facets(np.array([[0.5, 0.5], [0.0, 3.0]]))
    >>> found.gauges.tolist()
    [0.5, 1.5]
    >>> found.normals.tolist()
    [[1.0, 0.0], [0.0, 0.5]]
    """

    gauges: FloatArray
    normals: FloatArray


@runtime_checkable
class HasSupport(Protocol):
    """Protocol of an object with a support function.

    Examples
    --------
    >>> import geomdp as gd
    >>> isinstance(gd.bodies.Ball(2), gd.bodies.HasSupport)
    True
    """

    @property
    def dimension(self) -> int:
        """Dimension m."""

    def support(self, directions: FloatArray) -> FloatArray:
        """Values (b,) of the support function at the rows of `directions` (b, m)."""


@runtime_checkable
class HasGauge(Protocol):
    """Protocol of an object with a gauge (Minkowski functional).

    Examples
    --------
    >>> import geomdp as gd
    >>> isinstance(gd.bodies.Ball(2), gd.bodies.HasGauge)
    True
    """

    @property
    def dimension(self) -> int:
        """Dimension m."""

    def gauge(self, points: FloatArray) -> FloatArray:
        """Gauges (b,) of the rows of `points` (b, m)."""
