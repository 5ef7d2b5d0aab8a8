"""Shifted bodies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from geomdp._numerics.linalg import AffineHull
from geomdp._typing import BoolArray, FloatArray
from geomdp.bodies.arguments import Verb, frozen_array
from geomdp.bodies.base import MEMBERSHIP_TOLERANCE, Body
from geomdp.bodies.operand import checked_body
from geomdp.bodies.operations.scaled import difference_body
from geomdp.bodies.oracles import Halfspace

#: Verbs (methods of `Body`) whose results for a body K depend on the position of 0 in K. So the
#: shifted body cannot use these results. It derives `gauge` from `chord`, and has no `facets`.
ABOUT_THE_ORIGIN = frozenset({Body.gauge, Body.facets})


@dataclass(frozen=True, eq=False)
class Shifted(Body):
    """The body K + offset; its gauge is derived from `chord`, because a shift changes gauges.

    Parameters
    ----------
    body : Body
        K.
    offset : (m,) array
        The shift; finite.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> K = gd.bodies.Shifted(gd.bodies.Ball(2), [3.0, 0.0])
    >>> K.centroid().tolist()
    [3.0, 0.0]
    >>> K.contains(np.array([[3.5, 0.5], [0.0, 0.0]])).tolist()
    [True, False]
    """

    body: Body
    offset: FloatArray

    def __post_init__(self) -> None:
        checked_body(self.body)
        offset = frozen_array(self.offset, "offset", ndim=1)
        if offset.shape != (self.body.dimension,):
            raise ValueError(f"offset must have shape ({self.body.dimension},), got {offset.shape}")
        object.__setattr__(self, "offset", offset)

    def _summary(self) -> str:
        return f"a shift of {self.body!r}"

    @property
    def dimension(self) -> int:
        return self.body.dimension

    @property
    def symmetric(self) -> bool:
        return self.body.symmetric and not self.offset.any()

    def implements(self, verb: Verb) -> bool:
        """Whether K implements the verb; False for `gauge` and `facets`."""
        return verb not in ABOUT_THE_ORIGIN and self.body.implements(verb)

    def support(self, directions: FloatArray) -> FloatArray:
        return np.asarray(self.body.support(directions) + directions @ self.offset)

    def breadth(self, directions: FloatArray) -> FloatArray:
        return self.body.breadth(directions)

    def extreme_point(self, directions: FloatArray) -> FloatArray:
        return self.body.extreme_point(directions) + self.offset

    def contains(self, points: FloatArray, tolerance: float = MEMBERSHIP_TOLERANCE) -> BoolArray:
        return self.body.contains(points - self.offset, tolerance)

    def separate(self, point: FloatArray) -> Halfspace | None:
        found = self.body.separate(point - self.offset)
        if found is None:
            return None
        return Halfspace(found.normal, found.offset + float(found.normal @ self.offset))

    def chord(self, points: FloatArray, directions: FloatArray) -> tuple[FloatArray, FloatArray]:
        return self.body.chord(points - self.offset, directions)

    def project(self, points: FloatArray) -> FloatArray:
        return self.body.project(points - self.offset) + self.offset

    def radius(self) -> float:
        """Upper bound on the radius: the radius of K plus the length of the offset."""
        return self.body.radius() + float(np.linalg.norm(self.offset))

    def affine_hull(self) -> AffineHull:
        hull = self.body.affine_hull()
        return AffineHull(hull.offset + self.offset, hull.basis)

    def sample_uniform(self, n: int, rng: np.random.Generator) -> FloatArray:
        return self.body.sample_uniform(n, rng) + self.offset

    def centroid(self) -> FloatArray:
        return self.body.centroid() + self.offset

    def second_moment(self) -> FloatArray:
        """S + c o^T + o c^T + o o^T; K has second moment S and centroid c, and o is the offset."""
        cross = np.outer(self.body.centroid(), self.offset)
        square = np.outer(self.offset, self.offset)
        return np.asarray(self.body.second_moment() + cross + cross.T + square)

    def volume(self) -> float:
        return self.body.volume()

    def vertex_list(self) -> FloatArray:
        return self.body.vertex_list() + self.offset

    def cvxpy_constraints(self, variable: Any) -> list[Any]:
        return self.body.cvxpy_constraints(variable - self.offset)

    def half_diameter(self) -> float:
        return self.body.half_diameter()

    def difference(self) -> Body:
        return difference_body(self.body)

    def width_rule(self) -> tuple[float, Body]:
        return 1.0, self.body
