"""Intersections of bodies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from geomdp._typing import BoolArray, FloatArray
from geomdp._validation import listed
from geomdp.bodies.arguments import Verb
from geomdp.bodies.base import MEMBERSHIP_TOLERANCE, Body
from geomdp.bodies.oracles import Halfspace

#: Verbs (methods of `Body`) of an intersection that need the same verb of all parts.
_SHARED = frozenset({Body.gauge, Body.cvxpy_constraints})


@dataclass(frozen=True, eq=False)
class Intersection(Body):
    """The intersection of K_1, ..., K_s, whose interiors must have a point in common.

    Gauges, chords and membership follow from those of the parts. The support function does not:
    each value needs a convex program. A `CvxBody` with the constraints of the intersection has one.

    Parameters
    ----------
    bodies : sequence of Body
        The parts K_1, ..., K_s, at least one, all full-dimensional in the same R^m.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> K = gd.bodies.Intersection([gd.bodies.Ball(2), gd.bodies.Box.centred([0.8, 0.8])])
    >>> K.gauge(np.array([[0.8, 0.0], [0.8, 0.8]])).round(4).tolist()
    [1.0, 1.1314]
    >>> low, high = K.chord(np.zeros((1, 2)), np.array([[1.0, 0.0]]))
    >>> low.tolist(), high.tolist()
    ([-0.8], [0.8])
    """

    bodies: Sequence[Body]

    def __post_init__(self) -> None:
        bodies = listed(self.bodies, "bodies")
        if not bodies or not all(isinstance(body, Body) for body in bodies):
            raise ValueError(f"bodies must be a sequence of at least one Body, got {bodies!r}")
        dimensions = {body.dimension for body in bodies}
        if len(dimensions) > 1:
            raise ValueError(f"bodies must share one dimension, got {sorted(dimensions)}")
        flat = [body for body in bodies if body.effective_dimension < body.dimension]
        if flat:
            raise ValueError(f"bodies must be full-dimensional, got {flat[0]!r}")
        object.__setattr__(self, "bodies", bodies)

    @property
    def dimension(self) -> int:
        return self.bodies[0].dimension

    @property
    def symmetric(self) -> bool:
        return all(body.symmetric for body in self.bodies)

    def implements(self, verb: Verb) -> bool:
        """Gauges and CVXPY constraints need the same verb of all parts, and a chord needs a chord
        or a membership test of each; `contains`, `separate` and `radius` always count.
        """
        if verb is Body.chord:
            return all(body.implements(verb) or body.has_membership for body in self.bodies)
        if verb in _SHARED:
            return all(body.implements(verb) for body in self.bodies)
        return super().implements(verb)

    def _summary(self) -> str:
        return f"{len(self.bodies)} parts"

    def gauge(self, points: FloatArray) -> FloatArray:
        """The largest of the parts' gauges."""
        return np.asarray(np.max([body.gauge(points) for body in self.bodies], axis=0))

    def contains(self, points: FloatArray, tolerance: float = MEMBERSHIP_TOLERANCE) -> BoolArray:
        return np.asarray(
            np.all([body.contains(points, tolerance) for body in self.bodies], axis=0)
        )

    def separate(self, point: FloatArray) -> Halfspace | None:
        for body in self.bodies:
            found = body.separate(point)
            if found is not None:
                return found
        return None

    def chord(self, points: FloatArray, directions: FloatArray) -> tuple[FloatArray, FloatArray]:
        chords = [body.chord(points, directions) for body in self.bodies]
        low = np.max([low for low, _ in chords], axis=0)
        high = np.min([high for _, high in chords], axis=0)
        return np.asarray(low), np.asarray(high)

    def radius(self) -> float:
        """Upper bound: the smallest of the parts' radii."""
        return min(body.radius() for body in self.bodies)

    def cvxpy_constraints(self, variable: Any) -> list[Any]:
        return [each for body in self.bodies for each in body.cvxpy_constraints(variable)]
