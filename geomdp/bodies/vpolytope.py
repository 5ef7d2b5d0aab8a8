"""Polytopes given by vertices, and polytopes with few vertices, cut into simplices."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy

from geomdp._numerics.linalg import RANK_TOLERANCE, AffineHull, highest_rows, row_blocks
from geomdp._typing import BoolArray, FloatArray
from geomdp.bodies.balls import regular_simplex_width
from geomdp.bodies.base import (
    MEMBERSHIP_TOLERANCE,
    Body,
    Facets,
    SupportFunction,
    facets_of_rows,
    freeze,
    holds_origin,
    off_hull,
    off_span,
    ratio_test,
)
from geomdp.bodies.linear_programs import origin_depth
from geomdp.bodies.point_sets import (
    Triangulation,
    VertexColumns,
    WholeCones,
    can_triangulate,
    triangulate,
    whole_cones,
)
from geomdp.bodies.ray_shooting import RayShooter, VertexGauge
from geomdp.bodies.symmetrised import SearchedPolytope


@dataclass(frozen=True, eq=False)
class HullOfPoints(Body):
    """conv{v_1, ..., v_N} for listed points v_i, the rows of `vertices` (N, m)."""

    vertices: FloatArray

    def __post_init__(self) -> None:
        vertices = freeze(self, "vertices", ndim=2)
        if 0 in vertices.shape:
            raise ValueError(f"vertices must have shape (N, m), N, m >= 1, got {vertices.shape}")

    def _summary(self) -> str:
        return f"{len(self.vertices)} points"

    @property
    def dimension(self) -> int:
        return int(self.vertices.shape[1])

    @cached_property
    def symmetric(self) -> bool:
        """Whether the set of rows equals the set of their negatives exactly."""
        points = self.vertices
        if not np.array_equal(points.min(axis=0), -points.max(axis=0)):
            return False  # decided without sorting the rows
        # Adding 0 turns -0 into 0. The two numbers compare equal, but their bits differ.
        return np.array_equal(np.unique(points + 0.0, axis=0), np.unique(-points + 0.0, axis=0))

    def radius(self) -> float:
        return float(np.linalg.norm(self.vertices, axis=1).max())

    def vertex_list(self) -> FloatArray:
        return self.vertices

    def _images(self, matrix: FloatArray) -> FloatArray:
        """Images of the vertices; if symmetric, distinct and with exact negatives, without 0."""
        points = self.vertices
        if not self.symmetric:
            return points @ matrix.T
        if not points.any():
            return np.zeros((1, len(matrix)))
        first = np.argmax(points != 0, axis=1)
        # From each pair of opposite points, take the point whose first nonzero entry is above 0.
        half = points[points[np.arange(len(points)), first] > 0] @ matrix.T
        return np.unique(np.vstack([half, -half]) + 0.0, axis=0)


@dataclass(frozen=True, eq=False)
class VPolytope(SearchedPolytope, HullOfPoints):
    """The hull conv{v_1, ..., v_N} in R^m, of any dimension r <= m.

    Support and extreme points are matrix products, O(N m) per direction; ties go to the first
    vertex. Membership, gauge, facets and chords shoot rays at facets by the simplex method (X-RAY):
    O(N r) per pivot, with relative errors of about 1e-8. Each ray starts from a facet that an
    earlier ray of the call has found, if any. Separation first searches for the nearest point of
    the body, which usually stops early, with a hyperplane (X-MNP).

    Parameters
    ----------
    vertices : (N, m) array
        Finite; the body is the hull of the rows. Repeated points and points that are no vertices
        are allowed.

    Examples
    --------
    >>> import geomdp as gd
    >>> triangle = gd.bodies.VPolytope([[-1.0, -1.0], [2.0, -1.0], [-1.0, 2.0]])
    >>> triangle.support([[1.0, 0.0]]).tolist()
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
        """Gauge of the body shifted by -`_centre`, a relative inner point."""
        basis = self._hull.basis
        return VertexGauge(basis, lambda: RayShooter.hull((self.vertices - self._centre) @ basis))

    def support(self, directions: FloatArray) -> FloatArray:
        best = np.full(len(directions), -np.inf)
        for part in row_blocks(len(self.vertices), len(directions)):
            np.maximum(best, (directions @ self.vertices[part].T).max(axis=1), out=best)
        return best

    def breadth(self, directions: FloatArray) -> FloatArray:
        best, least = np.full(len(directions), -np.inf), np.full(len(directions), np.inf)
        for part in row_blocks(len(self.vertices), len(directions)):
            scores = directions @ self.vertices[part].T
            np.maximum(best, scores.max(axis=1), out=best)
            np.minimum(least, scores.min(axis=1), out=least)
        return np.asarray(best - least)

    def extreme_point(self, directions: FloatArray) -> FloatArray:
        return np.asarray(self.vertices[highest_rows(self.vertices, directions)])

    def facets(self, points: FloatArray) -> Facets:
        """Gauges min {sum a : x = sum a_i v_i, a >= 0}, inf for x outside the span, and normals."""
        return self._gauge.facets(points, self.radius())

    @cached_property
    def _columns(self) -> VertexColumns:
        return VertexColumns(self.vertices)

    def contains(self, points: FloatArray, tolerance: float = MEMBERSHIP_TOLERANCE) -> BoolArray:
        """Whether the gauge of the body shifted by -`_centre` is at most 1 + `tolerance`."""
        inside = ~off_hull(points, self._hull, max(tolerance, RANK_TOLERANCE) * self.radius())
        within = (points[inside] - self._centre) @ self._hull.basis
        inside[inside] = self._about_centre.solve(within).gauges <= 1 + tolerance
        return inside

    def chord(self, points: FloatArray, directions: FloatArray) -> tuple[FloatArray, FloatArray]:
        return self._about_centre.span_chord(points - self._centre, directions)

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


@dataclass(frozen=True, eq=False)
class TriangulatedPolytope(HullOfPoints):
    """The hull of a few points in R^m, of any dimension r <= m, cut into simplices.

    The simplices give an exact uniform sampler, volume, centroid and second moment. With the F
    facets, found together with them, membership, gauge and chords have closed forms, O(F m) per
    point. All this is computed at first use (JL-L14, SAM-4).

    Parameters
    ----------
    vertices : (N, m) array
        Finite; the body is the hull of the rows. Repeated points and points that are no vertices
        are allowed.

    Raises
    ------
    ValueError
        At first use: if, by the upper bound theorem, the hull of N points can have too many facets,
        or the vertices can give too many simplices. The limit is the smaller of 2^20 and
        2^33 / (r + 1)^4 simplices. So at most 1449 vertices are allowed for r = 3, 187 for r = 5,
        75 for r = 7 and 27 for r = 15. `VPolytope` has no such limit.
    ArithmeticError
        At first use: if rounding makes the simplices wrong.

    Examples
    --------
    >>> import geomdp as gd
    >>> corners = [[-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0], [1.0, 1.0]]
    >>> round(gd.bodies.TriangulatedPolytope(corners).volume(), 6)
    4.0
    """

    @cached_property
    def _parts(self) -> tuple[AffineHull, Triangulation]:
        return triangulate(self.vertices)

    @cached_property
    def whole_cones(self) -> WholeCones | None:
        """The body as a union of simplices with a vertex at 0, proved in integer arithmetic; None
        if a coordinate is no whole number or too large, 0 is no interior point, or the proof fails.
        """
        return whole_cones(self.vertices)

    @cached_property
    def _corners(self) -> FloatArray:
        """The points that are vertices of the hull, as the rows of an array (k, m)."""
        return self._parts[0].embed(self._parts[1].points)

    @cached_property
    def _linear_offsets(self) -> FloatArray:
        """Offsets b_i of the facets: <a_i, x> <= b_i on the body, for unit normals a_i in R^m."""
        hull, cells = self._parts
        return np.asarray(cells.offsets + cells.normals @ (hull.offset @ hull.basis))

    @cached_property
    def _has_gauge(self) -> bool:
        inside = (self._linear_offsets > RANK_TOLERANCE * self.radius()).all()
        return bool(inside and holds_origin(self._parts[0], self.radius()))

    def support(self, directions: FloatArray) -> FloatArray:
        return np.asarray((directions @ self._corners.T).max(axis=1))

    def extreme_point(self, directions: FloatArray) -> FloatArray:
        return np.asarray(self._corners[(directions @ self._corners.T).argmax(axis=1)])

    def facets(self, points: FloatArray) -> Facets:
        """For each point the facet normal a_i / b_i with the largest inner product."""
        outside = off_span(points, self._parts[0].basis, self.radius())
        return facets_of_rows(points, self.facet_normals(), outside)

    def facet_normals(self) -> FloatArray:
        """Rows a_i / b_i (F, m) for the facets <a_i, x> <= b_i, in the span of the body."""
        rows = self._parts[1].normals / self._linear_offsets[:, None]
        return np.asarray(rows @ self._parts[0].basis.T)

    def contains(self, points: FloatArray, tolerance: float = MEMBERSHIP_TOLERANCE) -> BoolArray:
        """Facets and affine hull are checked up to `tolerance` times the radius."""
        hull, cells = self._parts
        heights = hull.coordinates(points) @ cells.normals.T
        inside = (heights <= cells.offsets + tolerance * self.radius()).all(axis=1)
        slack = max(tolerance, RANK_TOLERANCE) * self.radius()
        return np.asarray(inside & ~off_hull(points, hull, slack))

    def chord(self, points: FloatArray, directions: FloatArray) -> tuple[FloatArray, FloatArray]:
        hull, cells = self._parts
        room = np.maximum(cells.offsets - hull.coordinates(points) @ cells.normals.T, 0.0)
        slopes = directions @ hull.basis @ cells.normals.T
        return ratio_test(room, slopes, off_span(directions, hull.basis))

    def affine_hull(self) -> AffineHull:
        return self._parts[0]

    def sample_uniform(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Exact: a simplex drawn by volume, and Dirichlet(1, ..., 1) weights (SAM-4)."""
        hull, cells = self._parts
        shares = cells.volumes / cells.volumes.sum()
        chosen = cells.simplices[rng.choice(len(shares), size=n, p=shares)]
        weights = rng.standard_exponential(chosen.shape)
        weights /= weights.sum(axis=1, keepdims=True)
        return hull.embed(np.einsum("nk,nkr->nr", weights, cells.points[chosen]))

    def centroid(self) -> FloatArray:
        hull, cells = self._parts
        centres = cells.points[cells.simplices].mean(axis=1)
        return np.asarray(hull.embed((cells.volumes @ centres / cells.volumes.sum())[None])[0])

    def second_moment(self) -> FloatArray:
        """Mean over simplices, by volume, of (sum v_i v_i^T + (sum v_i)(sum v_i)^T) / ((r + 1) (r +
        2)) for their vertices v_i (JL-L14).
        """
        cells = self._parts[1]
        corners = self._corners[cells.simplices]
        count = cells.simplices.shape[1]
        shares = cells.volumes / cells.volumes.sum() / (count * (count + 1))
        totals = corners.sum(axis=1)
        weighted = corners * shares[:, None, None]
        each = np.einsum("ski,skj->ij", weighted, corners, optimize=True)
        return np.asarray(each + totals.T @ (totals * shares[:, None]))

    def volume(self) -> float:
        return float(self._parts[1].volumes.sum())

    def linear_image(self, matrix: FloatArray) -> Body | None:
        """The hull of the images of the vertices; None if it cannot be cut into simplices."""
        images = self._images(matrix)
        return cut_into_simplices(images) if can_triangulate(*images.shape) else None

    def largest_gauge(self, support: SupportFunction) -> float:
        return float(support(self.facet_normals()).max(initial=0.0))


def cut_into_simplices(vertices: FloatArray) -> TriangulatedPolytope | None:
    """The hull of a few points (N, m), cut into simplices; None if rounding makes them wrong."""
    body = TriangulatedPolytope(vertices)
    try:
        _ = body._parts
    except (ArithmeticError, scipy.spatial.QhullError):
        return None
    return body


def triangulated(body: Body) -> TriangulatedPolytope | None:
    """The body cut into simplices; None beyond the limits, or if rounding prevents it."""
    if not body.implements(Body.vertex_list):
        return None
    vertices = body.vertex_list()
    if not can_triangulate(len(vertices), body.affine_hull().dimension):
        return None
    return cut_into_simplices(vertices)
