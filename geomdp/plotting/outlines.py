"""The outline of a shadow (linear image) or slice of a body, in the plane or in space."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from geomdp._numerics.linalg import AffineHull
from geomdp._typing import FloatArray, IntArray
from geomdp.bodies import Body, MissingOracle
from geomdp.bodies.operand import checked_body

#: Number of directions in the plane (half a degree apart) and in space (about 4 degrees apart). In
#: space, `unit_directions` adds the six directions of the axes.
PLANE_DIRECTIONS, SPACE_DIRECTIONS = 720, 3000
#: If a body lists at most 2^16 vertices, all of them are used. If not, only extreme points or
#: tangent planes in `PLANE_DIRECTIONS` or `SPACE_DIRECTIONS` directions are used.
MAX_VERTICES = 1 << 16
#: An edge between two faces is drawn if the normals of the faces differ by more than 15 degrees. On
#: a smooth body, normals of neighbouring faces differ by about 8 degrees only. This is twice the
#: angle between directions.
CREASE = np.cos(np.deg2rad(15.0))
#: Points at a distance below about `MERGED` times the size of the body are treated as one point.
MERGED = 1e-9


@dataclass(frozen=True)
class Outline:
    """Convex hull of points in the plane or in space.

    Parameters
    ----------
    points : (V, k) array
        The vertices of the hull. If the hull is a polygon, they are in order around the polygon.
    triangles : (T, 3) array of int
        Faces of a solid. A row holds the indices of three vertices, counter-clockwise seen from
        outside. T = 0 if the hull is flat.
    edges : (E, 2) array of int
        Edges of a solid at which the surface bends by more than 15 degrees.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> cube = gd.bodies.Box.centred([1.0, 1.0, 1.0])
    >>> outline = gd.plotting.shadow_outline(cube, np.eye(3))
    >>> outline.points.shape, len(outline.triangles), len(outline.edges)
    ((8, 3), 12, 12)
    """

    points: FloatArray
    triangles: IntArray
    edges: IntArray


def unit_directions(k: int) -> FloatArray:
    """Evenly spread directions on the circle (k = 2) or sphere (k = 3), each with its opposite."""
    if k == 2:
        angles = 2 * np.pi * np.arange(PLANE_DIRECTIONS) / PLANE_DIRECTIONS
        return np.column_stack([np.cos(angles), np.sin(angles)])
    # Fibonacci lattice on the upper half of the sphere: a step goes up by a constant height, and
    # turns by the golden angle around the axis.
    half = SPACE_DIRECTIONS // 2
    heights = (np.arange(half) + 0.5) / half
    angles = np.pi * (3 - np.sqrt(5)) * np.arange(half)
    rings = np.sqrt(1 - heights**2)
    upper = np.column_stack([rings * np.cos(angles), rings * np.sin(angles), heights])
    axes = np.eye(3)
    return np.vstack([upper, -upper, axes, -axes])


def shadow_outline(body: Body, rows: FloatArray) -> Outline:
    """Outline of the linear image {rows @ x : x in K} in the plane or in space.

    It is computed from the vertices if the body lists at most 2^16, and else from extreme points in
    many directions, or, for a body without `extreme_point`, from tangent planes.

    Parameters
    ----------
    body : Body
        K in R^m, with a support function or listed vertices.
    rows : (2, m) or (3, m) array
        The map to the plane or to space.

    Raises
    ------
    ValueError
        If `body` is not a `Body`.
    MissingOracle
        If the body has no support function and lists no vertices.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> cube = gd.bodies.Box.centred([1.0, 1.0, 1.0])
    >>> rows = np.array([[1.0, -1.0, 0.0], [1.0, 1.0, -2.0]]) / np.sqrt([[2.0], [6.0]])
    >>> hexagon = gd.plotting.shadow_outline(cube, rows)
    >>> len(hexagon.points), hexagon.triangles.shape
    (6, (0, 3))
    >>> np.linalg.norm(hexagon.points, axis=1).round(4).tolist()
    [1.633, 1.633, 1.633, 1.633, 1.633, 1.633]
    """
    if checked_body(body).implements(Body.vertex_list) and len(body.vertex_list()) <= MAX_VERTICES:
        return hull_of(body.vertex_list() @ rows.T)
    directions = unit_directions(len(rows))
    if body.implements(Body.extreme_point):
        return hull_of(body.extreme_point(directions @ rows) @ rows.T)
    if body.implements(Body.support):
        return hull_of(_tangent_corners(directions, body.support(directions @ rows)))
    raise MissingOracle(body, "a shadow", "support or vertex_list")


def slice_outline(body: Body, centre: FloatArray, rows: FloatArray) -> Outline:
    """Outline of the slice {t : centre + t @ rows in K} of a body.

    It is the hull of the ends of chords through `centre`, which is at 0, in many directions.

    Parameters
    ----------
    body : Body
        K in R^m, with membership and chords.
    centre : (m,) array
        A point of K.
    rows : (2, m) or (3, m) array
        Directions of the slice.

    Raises
    ------
    ValueError
        If `body` is not a `Body`, or `centre` is not in K.
    MissingOracle
        If the body has no membership or no chords.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> ball = gd.bodies.Ball(3)
    >>> circle = gd.plotting.slice_outline(ball, np.array([0.0, 0.0, 0.6]), np.eye(3)[:2])
    >>> np.linalg.norm(circle.points, axis=1).round(6).max().item()
    0.8
    """
    if not checked_body(body).contains(centre[None])[0]:
        raise ValueError("centre must lie in the body, got a point outside")
    directions = unit_directions(len(rows))
    _, reach = body.chord(np.tile(centre, (len(directions), 1)), directions @ rows)
    return hull_of(reach[:, None] * directions)


def _tangent_corners(directions: FloatArray, heights: FloatArray) -> FloatArray:
    """Corners of {x : <u_i, x> <= h_i} for unit directions u_i (n, k) and heights h_i (n,)."""
    from scipy.spatial import HalfspaceIntersection

    # `HalfspaceIntersection` needs a point inside. The Steiner point of the body lies inside. For
    # the support function h, it is k times the mean of h(u) u over the unit circle or sphere.
    inside = directions.shape[1] * (heights[:, None] * directions).mean(axis=0)
    corners = HalfspaceIntersection(np.column_stack([directions, -heights]), inside).intersections
    return np.asarray(corners[np.isfinite(corners).all(axis=1)])


def hull_of(points: FloatArray) -> Outline:
    """The convex hull of `points` (N, k), k = 2 or 3, which may be flat, a segment or one point."""
    from scipy.spatial import ConvexHull

    none = np.zeros((0, 3), dtype=np.int64)
    size = float(np.ptp(points, axis=0).max(initial=0.0))
    points = _distinct(points, MERGED * size)
    hull = AffineHull.of_points(points)
    flat = hull.coordinates(points)
    if hull.dimension <= 1:
        along = flat.sum(axis=1)
        ends = sorted({int(along.argmin()), int(along.argmax())})
        return Outline(points[ends], none, none[:, :2])
    found = ConvexHull(flat)
    if hull.dimension == 2:
        return Outline(points[found.vertices], none, none[:, :2])
    return _solid(points, found.simplices.astype(np.int64), found.equations[:, :3], flat, hull)


def _distinct(points: FloatArray, distance: float) -> FloatArray:
    """One of the points in each cell of a grid of spacing `distance`."""
    if distance == 0:
        return points[:1]
    _, first = np.unique(np.rint(points / distance), axis=0, return_index=True)
    return points[np.sort(first)]


def _solid(
    points: FloatArray, faces: IntArray, normals: FloatArray, flat: FloatArray, hull: AffineHull
) -> Outline:
    """The outline of a solid, with triangles oriented outwards and the edges where it bends."""
    first, second, third = (flat[faces[:, i]] for i in range(3))
    inward = np.einsum("tk,tk->t", np.cross(second - first, third - first), normals) < 0
    faces = np.where(inward[:, None], faces[:, ::-1], faces)
    # The basis of the hull may be left-handed. Its coordinates then reverse all orientations.
    if np.linalg.det(hull.basis) < 0:
        faces = faces[:, ::-1]
    sides = np.sort(np.vstack([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]]), axis=1)
    owners = np.tile(np.arange(len(faces)), 3)
    order = np.lexsort((sides[:, 1], sides[:, 0]))
    # On a closed surface each side belongs to two triangles.
    pairs, owners = sides[order][::2], owners[order].reshape(-1, 2)
    bends = np.einsum("ek,ek->e", normals[owners[:, 0]], normals[owners[:, 1]]) < CREASE
    used, numbers = np.unique(faces, return_inverse=True)
    place = np.zeros(len(points), dtype=np.int64)
    place[used] = np.arange(len(used))
    return Outline(points[used], numbers.reshape(faces.shape), place[pairs[bends]])
