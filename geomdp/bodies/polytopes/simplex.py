"""The simplex. Barycentric coordinates give closed forms of most methods."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from geomdp._numerics.linalg import RANK_TOLERANCE, AffineHull
from geomdp._typing import BoolArray, FloatArray
from geomdp.bodies.arguments import Verb, holds_origin, off_hull, off_span, ratio_test
from geomdp.bodies.base import MEMBERSHIP_TOLERANCE, Body
from geomdp.bodies.gaussian_vectors import regular_simplex_width
from geomdp.bodies.norm_balls.balls import CrossPolytope
from geomdp.bodies.norm_balls.positive_parts import nearest_in_simplex
from geomdp.bodies.operations.linear_image import LinearImage
from geomdp.bodies.operations.symmetrised import SymmetricHull
from geomdp.bodies.oracles import Facets, Halfspace, MissingOracle
from geomdp.bodies.polytopes.barycentric import BarycentricBody, log_simplex_volume
from geomdp.bodies.polytopes.simplex_difference import SimplexDifference
from geomdp.bodies.polytopes.vpolytope import VPolytope


@dataclass(frozen=True, eq=False)
class Simplex(BarycentricBody):
    """The hull of r + 1 affinely independent points v_0, ..., v_r in R^m.

    The methods use the weights (barycentric coordinates) of a point, and cost O(m r) per point.
    `project` needs the unit vectors as vertices.

    Parameters
    ----------
    vertices : (r + 1, m) array
        Finite; rows are the vertices, r <= m. The simplex is lower-dimensional if r < m, and a
        point if r = 0.

    Raises
    ------
    ValueError
        At first use: if the vertices are affinely dependent.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> simplex = gd.bodies.Simplex(np.eye(3))
    >>> simplex.effective_dimension
    2
    >>> simplex.project(np.array([[0.9, 0.4, -0.3]])).round(6).tolist()
    [[0.75, 0.25, 0.0]]
    >>> simplex.centroid().round(6).tolist()
    [0.333333, 0.333333, 0.333333]
    """

    @cached_property
    def _origin_weights(self) -> FloatArray:
        """Barycentric coordinates (r + 1,) of the point of the affine hull nearest to 0."""
        return np.asarray(self._map.weights(np.zeros((1, self.dimension)))[0])

    @cached_property
    def _has_gauge(self) -> bool:
        inside = holds_origin(self.affine_hull(), self.radius())
        return inside and bool(self._origin_weights.min() > RANK_TOLERANCE)

    def support(self, directions: FloatArray) -> FloatArray:
        return np.asarray((directions @ self.vertices.T).max(axis=1))

    def extreme_point(self, directions: FloatArray) -> FloatArray:
        return np.asarray(self.vertices[(directions @ self.vertices.T).argmax(axis=1)])

    def gauge(self, points: FloatArray) -> FloatArray:
        """max_i -(L x)_i / y_i(0) for the weights y(x) = y(0) + L x; inf outside the span."""
        gauges = (-points @ self._map.linear.T / self._origin_weights).max(axis=1)
        return np.where(
            off_span(points, self._map.basis, self.radius()), np.inf, np.maximum(gauges, 0.0)
        )

    def facets(self, points: FloatArray) -> Facets:
        """Gauges, and normals of the facets of the weights that vanish first along the rays."""
        gauges = self.gauge(points)
        slopes = -self._map.linear / self._origin_weights[:, None]
        winners = (points @ slopes.T).argmax(axis=1)
        return Facets(gauges, slopes[winners])

    def contains(self, points: FloatArray, tolerance: float = MEMBERSHIP_TOLERANCE) -> BoolArray:
        """Whether x is in the affine hull and no weight is negative, both up to `tolerance`."""
        slack = max(tolerance, RANK_TOLERANCE) * self.radius()
        inside = self._map.weights(points).min(axis=1) >= -tolerance
        return np.asarray(inside & ~off_hull(points, self.affine_hull(), slack))

    def separate(self, point: FloatArray) -> Halfspace | None:
        """Bounded by the facet of the smallest weight, or orthogonal to the affine hull."""
        hull = self.affine_hull()
        residual = point - hull.embed(hull.coordinates(point[None]))[0]
        if np.linalg.norm(residual) > MEMBERSHIP_TOLERANCE * self.radius():
            return Halfspace(residual, float(residual @ hull.offset))
        weights = self._map.weights(point[None])[0]
        lowest = int(weights.argmin())
        if weights[lowest] >= -MEMBERSHIP_TOLERANCE:
            return None
        # The weight is 1 / (r + 1) + <slope, x - centre>, and at least 0 on the simplex.
        slope = self._map.linear[lowest]
        return Halfspace(-slope, 1 / len(weights) - float(slope @ self._map.centre))

    def chord(self, points: FloatArray, directions: FloatArray) -> tuple[FloatArray, FloatArray]:
        weights = np.maximum(self._map.weights(points), 0.0)
        slopes = -directions @ self._map.linear.T
        return ratio_test(weights, slopes, off_span(directions, self._map.basis))

    def implements(self, verb: Verb) -> bool:
        own = super().implements(verb)
        return own and (verb is not Body.project or self._at_units)

    def project(self, points: FloatArray) -> FloatArray:
        """(x - tau)_+ of sum 1; ``MissingOracle`` unless the vertices are the unit vectors."""
        if not self._at_units:
            raise MissingOracle(self, "project", "unit vectors as vertices (see geomdp.project)")
        return nearest_in_simplex(points, 1.0)

    def radius(self) -> float:
        return float(np.linalg.norm(self.vertices, axis=1).max())

    def affine_hull(self) -> AffineHull:
        return AffineHull(self._map.centre, self._map.basis)

    def sample_uniform(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Exact uniform points: the weights on the vertices are Dirichlet(1, ..., 1)."""
        weights = rng.standard_exponential((n, len(self.vertices)))
        weights /= weights.sum(axis=1, keepdims=True)
        # The weights add up to 1 only up to rounding.
        return np.where(self.constant, self.vertices[0], weights @ self.vertices)

    def centroid(self) -> FloatArray:
        return np.array(self._map.centre)

    def second_moment(self) -> FloatArray:
        """(sum v_i v_i^T + (sum v_i)(sum v_i)^T) / ((r + 1) (r + 2)) (JL-L14)."""
        total = self.vertices.sum(axis=0)
        count = len(self.vertices)
        moment = self.vertices.T @ self.vertices + np.outer(total, total)
        return np.asarray(moment / (count * (count + 1)))

    def covariance(self) -> FloatArray:
        """sum (v_i - c)(v_i - c)^T / ((r + 1) (r + 2)) for the mean c of the vertices (JL-L14).

        This is the second moment minus c c^T, without the rounding errors of a c far from 0.
        """
        centred, count = self.vertices - self._map.centre, len(self.vertices)
        return np.asarray(centred.T @ centred / (count * (count + 1)))

    def volume(self) -> float:
        """sqrt(r + 1) / r! times the product of the singular values of the centred vertices."""
        return math.exp(log_simplex_volume(self._map.singular))

    def vertex_list(self) -> FloatArray:
        return self.vertices

    def difference(self) -> Body:
        return SimplexDifference(self.vertices)

    def symmetric_hull(self) -> Body | None:
        """An image of the cross-polytope if the vertices are linearly independent; else None."""
        count = len(self.vertices)
        if SymmetricHull(self).affine_hull().dimension < count:
            return None
        return LinearImage(np.array(self.vertices.T), CrossPolytope(count))

    def linear_image(self, matrix: FloatArray) -> Body:
        return VPolytope(self.vertices @ matrix.T)

    def gaussian_width(self) -> float | None:
        return regular_simplex_width(self.vertices)
