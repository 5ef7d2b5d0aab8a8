"""Scaled and shifted bodies."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from geomdp._linalg import AffineHull
from geomdp._typing import BoolArray, FloatArray
from geomdp._validation import batch, positive, vector
from geomdp.bodies.arguments import frozen_array, rays
from geomdp.bodies.base import MEMBERSHIP_TOLERANCE, Body, Facets, Halfspace


@dataclass(frozen=True, eq=False)
class Scaled(Body):
    """The body factor K = {factor x : x in K}; every verb asks K for the same verb.

    Parameters
    ----------
    body : Body
        K.
    factor : float
        Finite and above 0.
    """

    body: Body
    factor: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "factor", positive(self.factor, "factor"))

    @property
    def dimension(self) -> int:
        """Dimension m."""
        return self.body.dimension

    @property
    def symmetric(self) -> bool:
        """Whether the inner body is."""
        return self.body.symmetric

    def implements(self, verb: str) -> bool:
        """Whether the inner body does."""
        return self.body.implements(verb)

    def support(self, directions: FloatArray) -> FloatArray:
        """Support function of K times the factor."""
        return self.factor * self.body.support(directions)

    def breadth(self, directions: FloatArray) -> FloatArray:
        """That of K times the factor."""
        return self.factor * self.body.breadth(directions)

    def extreme_point(self, directions: FloatArray) -> FloatArray:
        """Extreme point of K times the factor."""
        return self.factor * self.body.extreme_point(directions)

    def gauge(self, points: FloatArray) -> FloatArray:
        """Gauge in K over the factor."""
        points = batch(points, self.dimension, "points")
        return self.body.gauge(points) / self.factor

    def facets(self, points: FloatArray) -> Facets:
        """Gauges and normals of K over the factor."""
        found = self.body.facets(batch(points, self.dimension, "points"))
        return Facets(found.gauges / self.factor, found.normals / self.factor)

    def contains(self, points: FloatArray, tolerance: float = MEMBERSHIP_TOLERANCE) -> BoolArray:
        """Whether K holds the point over the factor."""
        return self.body.contains(batch(points, self.dimension, "points") / self.factor, tolerance)

    def separate(self, point: FloatArray) -> Halfspace | None:
        """Separator of K from the point over the factor, its offset times the factor."""
        found = self.body.separate(vector(point, self.dimension, "point") / self.factor)
        return None if found is None else Halfspace(found.normal, self.factor * found.offset)

    def chord(self, points: FloatArray, directions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Chord of K through the point and direction over the factor."""
        points, directions = rays(points, directions, self.dimension)
        return self.body.chord(points / self.factor, directions / self.factor)

    def project(self, points: FloatArray) -> FloatArray:
        """Projection on K of the point over the factor, times the factor."""
        points = batch(points, self.dimension, "points")
        return self.factor * self.body.project(points / self.factor)

    def radius(self) -> float:
        """Radius of K times the factor."""
        return self.factor * self.body.radius()

    def affine_hull(self) -> AffineHull:
        """Affine hull of K with its offset times the factor."""
        hull = self.body.affine_hull()
        return AffineHull(self.factor * hull.offset, hull.basis)

    def sample_uniform(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Uniform points of K times the factor."""
        return self.factor * self.body.sample_uniform(n, rng)

    def centroid(self) -> FloatArray:
        """Centroid of K times the factor."""
        return self.factor * self.body.centroid()

    def second_moment(self) -> FloatArray:
        """Second moment of K times factor^2."""
        return self.factor**2 * self.body.second_moment()

    def volume(self) -> float:
        """Volume of K times factor^r, r the dimension of its affine hull."""
        rank = self.body.affine_hull().dimension
        return math.exp(math.log(self.body.volume()) + rank * math.log(self.factor))

    def vertex_list(self) -> FloatArray:
        """Listed points of K times the factor."""
        return self.factor * self.body.vertex_list()

    def cvxpy_constraints(self, variable: Any) -> list[Any]:
        """Those of K on variable / factor."""
        return self.body.cvxpy_constraints(variable / self.factor)


#: Verbs of a shifted body that ask the inner body for the same verb.
_SHIFTED = frozenset(
    {
        "support",
        "extreme_point",
        "contains",
        "chord",
        "project",
        "affine_hull",
        "radius",
        "sample_uniform",
        "centroid",
        "second_moment",
        "volume",
        "vertex_list",
        "cvxpy_constraints",
    }
)


@dataclass(frozen=True, eq=False)
class Shifted(Body):
    """The body K + offset. Gauges about 0 are not those of K; they are derived from `chord`.

    Parameters
    ----------
    body : Body
        K.
    offset : (m,) array
        The shift.
    """

    body: Body
    offset: FloatArray

    def __post_init__(self) -> None:
        offset = frozen_array(self.offset, "offset", ndim=1)
        if offset.shape != (self.body.dimension,):
            raise ValueError(f"offset must have shape ({self.body.dimension},), got {offset.shape}")
        object.__setattr__(self, "offset", offset)

    @property
    def dimension(self) -> int:
        """Dimension m."""
        return self.body.dimension

    @property
    def symmetric(self) -> bool:
        """Whether the inner body is and the shift is 0."""
        return self.body.symmetric and not self.offset.any()

    def implements(self, verb: str) -> bool:
        """Whether the inner body does, for all verbs but gauges."""
        return verb in _SHIFTED and self.body.implements(verb)

    def support(self, directions: FloatArray) -> FloatArray:
        """h_K(u) + <u, offset>."""
        directions = batch(directions, self.dimension, "directions")
        return np.asarray(self.body.support(directions) + directions @ self.offset)

    def breadth(self, directions: FloatArray) -> FloatArray:
        """That of K."""
        return self.body.breadth(directions)

    def extreme_point(self, directions: FloatArray) -> FloatArray:
        """Extreme point of K plus the offset."""
        return self.body.extreme_point(directions) + self.offset

    def contains(self, points: FloatArray, tolerance: float = MEMBERSHIP_TOLERANCE) -> BoolArray:
        """Whether K holds the point minus the offset."""
        return self.body.contains(batch(points, self.dimension, "points") - self.offset, tolerance)

    def separate(self, point: FloatArray) -> Halfspace | None:
        """Separator of K from the point minus the offset, moved along."""
        found = self.body.separate(vector(point, self.dimension, "point") - self.offset)
        if found is None:
            return None
        return Halfspace(found.normal, found.offset + float(found.normal @ self.offset))

    def chord(self, points: FloatArray, directions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Chord of K through the point minus the offset."""
        points, directions = rays(points, directions, self.dimension)
        return self.body.chord(points - self.offset, directions)

    def project(self, points: FloatArray) -> FloatArray:
        """Projection on K of the point minus the offset, plus the offset."""
        points = batch(points, self.dimension, "points")
        return self.body.project(points - self.offset) + self.offset

    def radius(self) -> float:
        """Upper bound: radius of K plus the length of the shift."""
        return self.body.radius() + float(np.linalg.norm(self.offset))

    def affine_hull(self) -> AffineHull:
        """Affine hull of K, shifted."""
        hull = self.body.affine_hull()
        return AffineHull(hull.offset + self.offset, hull.basis)

    def sample_uniform(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Uniform points of K plus the offset."""
        return self.body.sample_uniform(n, rng) + self.offset

    def centroid(self) -> FloatArray:
        """Centroid of K plus the offset."""
        return self.body.centroid() + self.offset

    def second_moment(self) -> FloatArray:
        """S + c o^T + o c^T + o o^T for second moment S and centroid c of K, o the offset."""
        cross = np.outer(self.body.centroid(), self.offset)
        square = np.outer(self.offset, self.offset)
        return np.asarray(self.body.second_moment() + cross + cross.T + square)

    def volume(self) -> float:
        """Volume of K."""
        return self.body.volume()

    def vertex_list(self) -> FloatArray:
        """Listed points of K plus the offset."""
        return self.body.vertex_list() + self.offset

    def cvxpy_constraints(self, variable: Any) -> list[Any]:
        """Those of K on variable - offset."""
        return self.body.cvxpy_constraints(variable - self.offset)
