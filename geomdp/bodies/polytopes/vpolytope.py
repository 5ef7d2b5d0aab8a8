"""Polytopes given by vertices."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from geomdp._numerics.linalg import RANK_TOLERANCE, AffineHull
from geomdp._typing import FloatArray, IntArray
from geomdp._validation import batch
from geomdp.bodies.arguments import holds_origin
from geomdp.bodies.base import MEMBERSHIP_TOLERANCE, Body
from geomdp.bodies.facets.gauges import PolytopeByRays, VertexGauge
from geomdp.bodies.facets.ray_shooting import RayShooter
from geomdp.bodies.gaussian_vectors import regular_simplex_width
from geomdp.bodies.linear_programs import origin_depth
from geomdp.bodies.oracles import Facets, Halfspace
from geomdp.bodies.polytopes.nearest.point_sets import VertexColumns
from geomdp.bodies.polytopes.triangulated import HullOfPoints, TriangulatedPolytope
from geomdp.bodies.polytopes.triangulation import can_triangulate

#: Largest number of inner products <u, v_i> in one block: 2^22 float64 numbers take 32 MB. A block
#: is larger if there are more directions u than this number.
BLOCK_ENTRIES = 1 << 22
#: Tolerance for the duality gap in `separate`, in units of s^2. Here s is the largest distance of a
#: vertex from the mean of the vertices. `separate` searches for the point of the body nearest to a
#: target. If the target is within 500 s of every point of the body, the gap of every point is
#: within the tolerance. So the search ends when a hyperplane separates the target or the target is
#: reached, or else after a limited number of rounds (see `column_generation`).
ANY_GAP = 1e3


@dataclass(frozen=True, eq=False)
class VPolytope(HullOfPoints, PolytopeByRays):
    """The hull conv{v_1, ..., v_N} in R^m, of any dimension r <= m.

    Support and extreme points are matrix products, O(N m) per direction. Membership, gauge, facets
    and chords shoot rays at facets by the simplex method (X-RAY): O(N r) per pivot, with relative
    errors of about 1e-8. Each ray starts from a facet that an earlier ray of the call has found, if
    any. Separation first searches for the nearest point of the body.

    Parameters
    ----------
    vertices : (N, m) array
        Finite; the body is the hull of the rows. Repeated points and points that are no vertices
        are allowed.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> triangle = gd.bodies.VPolytope([[-1.0, -1.0], [2.0, -1.0], [-1.0, 2.0]])
    >>> triangle.support(np.array([[1.0, 0.0]])).tolist()
    [2.0]
    >>> triangle.extreme_point(np.array([[1.0, 0.0]])).tolist()
    [[2.0, -1.0]]
    >>> triangle.gauge(np.array([[1.0, 1.0]])).round(6).tolist()
    [2.0]
    """

    @cached_property
    def _hull(self) -> AffineHull:
        return AffineHull.of_points(self.vertices)

    @cached_property
    def _has_gauge(self) -> bool:
        if not holds_origin(self._hull, self.radius()):
            return False
        if np.linalg.norm(self._centre) <= RANK_TOLERANCE * self.radius():
            return True
        return origin_depth(self.vertices @ self._hull.basis) > RANK_TOLERANCE

    @cached_property
    def _gauge(self) -> VertexGauge:
        basis = self._hull.basis
        return VertexGauge(basis, lambda: RayShooter.hull(self.vertices @ basis))

    @cached_property
    def _centre(self) -> FloatArray:
        return np.asarray(self.vertices.mean(axis=0))

    @cached_property
    def _about_centre(self) -> VertexGauge:
        basis = self._hull.basis
        return VertexGauge(basis, lambda: RayShooter.hull((self.vertices - self._centre) @ basis))

    def _scores(self, directions: FloatArray) -> Iterator[tuple[int, FloatArray]]:
        """Blocks of columns of directions @ vertices^T, each with the index of its first column."""
        width = max(1, BLOCK_ENTRIES // max(1, len(directions)))
        for start in range(0, len(self.vertices), width):
            yield start, directions @ self.vertices[start : start + width].T

    def support(self, directions: FloatArray) -> FloatArray:
        best = np.full(len(directions), -np.inf)
        for _, scores in self._scores(directions):
            np.maximum(best, scores.max(axis=1), out=best)
        return best

    def breadth(self, directions: FloatArray) -> FloatArray:
        best, least = np.full(len(directions), -np.inf), np.full(len(directions), np.inf)
        for _, scores in self._scores(directions):
            np.maximum(best, scores.max(axis=1), out=best)
            np.minimum(least, scores.min(axis=1), out=least)
        return np.asarray(best - least)

    def extreme_index(self, directions: FloatArray) -> IntArray:
        """Index of the first vertex with the largest <u, v_i>, for each direction u."""
        directions = batch(directions, self.dimension, "directions")
        winners = np.zeros(len(directions), dtype=np.int64)
        best = np.full(len(directions), -np.inf)
        for start, scores in self._scores(directions):
            block = scores.argmax(axis=1)
            values = np.take_along_axis(scores, block[:, None], axis=1)[:, 0]
            better = values > best
            winners[better], best[better] = start + block[better], values[better]
        return winners

    def extreme_point(self, directions: FloatArray) -> FloatArray:
        return np.asarray(self.vertices[self.extreme_index(directions)])

    def gauge(self, points: FloatArray) -> FloatArray:
        """min {sum a : x = sum a_i v_i, a >= 0} for each point x; inf for x outside the span."""
        return self.facets(points).gauges

    def facets(self, points: FloatArray) -> Facets:
        return self._gauge.facets(points, self.radius())

    @cached_property
    def _columns(self) -> VertexColumns:
        return VertexColumns(self.vertices)

    def separate(self, point: FloatArray) -> Halfspace | None:
        """A search for the nearest point usually stops early, with a separating hyperplane (X-MNP).
        If it neither separates the point nor reaches it, ray shooting decides, as in `contains`.
        """
        # Compiled code is slow to import.
        from geomdp.bodies.polytopes.nearest.column_generation import search

        columns = self._columns
        if columns.scale > RANK_TOLERANCE * self.radius():
            found = search(columns, point, ANY_GAP)
            if found.reached:
                return None
            residual = point - columns.centre - found.weights @ columns.offsets(found.keys)
            offset = float(self.support(residual[None])[0])
            beyond = float(residual @ point) - offset
            if beyond > MEMBERSHIP_TOLERANCE * self.radius() * float(np.linalg.norm(residual)):
                return Halfspace(residual, offset)
        return super().separate(point)

    def affine_hull(self) -> AffineHull:
        return self._hull

    def linear_image(self, matrix: FloatArray) -> Body:
        """The hull of the vertices' images; cut into simplices if it is symmetric and small."""
        images = self._images(matrix)
        cut = self.symmetric and can_triangulate(*images.shape)
        return TriangulatedPolytope(images) if cut else VPolytope(images)

    def gaussian_width(self) -> float | None:
        simplex = len(self.vertices) <= self.dimension + 1
        return regular_simplex_width(self.vertices) if simplex else None
