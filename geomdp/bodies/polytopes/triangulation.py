"""Cutting the hull of a few points into simplices."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from geomdp._numerics.linalg import AffineHull
from geomdp._numerics.seeds import PUBLIC_SEED
from geomdp._typing import FloatArray, IntArray

#: Points are cut into simplices only if the upper bound theorem allows at most this many simplices.
#: 2^20 simplices take seconds and some 100 MB. The actual number is usually far smaller.
MAX_SIMPLICES = 1 << 20
#: Largest product of the bound on the number of simplices and c^4, where a simplex has c corners.
#: For each of the c neighbours of a simplex, Qhull solves a linear system in c unknowns, O(c^3).
#: For c <= 9 the smaller limit is `MAX_SIMPLICES`. In higher dimensions Qhull slows down. Two
#: examples in dimension 15 are above the limit. For 29 points with entries 0 and 1, Qhull runs for
#: more than half a minute. The 32 possible records of 5 binary columns have 32 answer vectors for
#: all pairs of columns. For these 32 points, Qhull does not end.
MAX_WORK = 1 << 33


@dataclass(frozen=True)
class Triangulation:
    """A polytope {y : normals @ y <= offsets} of dimension r, in coordinates y of its affine hull,
    as a union of simplices with disjoint interiors.
    """

    points: FloatArray  # (k, r): vertices of the polytope
    simplices: IntArray  # (s, r + 1): vertex numbers of each simplex
    volumes: FloatArray  # (s,): volumes of the simplices, all above 0
    normals: FloatArray  # (F, r): normals of the facets, of length 1
    offsets: FloatArray  # (F,): offsets of the facets


def most_simplices(count: int, dimension: int) -> int:
    """Bound on the simplices of `triangulate` for N = `count` points in R^dimension.

    By the upper bound theorem (McMullen 1970), for D = dimension + 1, it is the number of facets of
    the cyclic polytope, C(N - ceil(D/2), floor(D/2)) + C(N - 1 - ceil((D-1)/2), floor((D-1)/2)).
    """
    D = dimension + 1
    if count <= D:
        return 1
    first = math.comb(count - math.ceil(D / 2), D // 2)
    return first + math.comb(count - 1 - math.ceil((D - 1) / 2), (D - 1) // 2)


def can_triangulate(count: int, dimension: int) -> bool:
    """Whether every list of `count` points in R^dimension is within the limits of `triangulate`."""
    bound = most_simplices(count, dimension)
    return bound <= MAX_SIMPLICES and bound * (dimension + 1) ** 4 <= MAX_WORK


def hull_vertices(points: FloatArray) -> FloatArray:
    """The rows of `points` (N, m) that are vertices of their hull; ``ValueError`` if the upper
    bound theorem allows more than 2^20 facets, or if the work can exceed `MAX_WORK`.
    """
    points = np.unique(points, axis=0)
    return np.asarray(points[_hull_of(points)[2].vertices])


def triangulate(points: FloatArray) -> tuple[AffineHull, Triangulation]:
    """Affine hull of the rows of `points` (N, m), and a regular triangulation of their convex hull.

    The simplices are the lower faces of the hull of the points lifted to a paraboloid plus random
    heights, which almost surely avoid ties. Raises ``ValueError`` beyond 2^20 possible simplices or
    `MAX_WORK`, and ``ArithmeticError`` if the volumes do not add up to a relative 1e-9.
    """
    points = np.unique(points, axis=0)
    hull, size, outside = _hull_of(points)
    vertices = hull.coordinates(points[outside.vertices]) / size
    _check_size(len(vertices), hull.dimension, hull.dimension)
    if len(vertices) == hull.dimension + 1:
        simplices = np.arange(len(vertices), dtype=np.int64)[None]
    else:
        simplices = _lower_faces(vertices)
    volumes = _volumes(vertices, simplices)
    # 1e-9 is far above the rounding of a sum of determinants. If rounding loses simplices with a
    # smaller share of the volume, samples change by at most 1e-9 in total variation.
    if abs(volumes.sum() - outside.volume) > 1e-9 * outside.volume:
        raise ArithmeticError(
            f"the simplices must have the volume of the hull, {outside.volume}, got {volumes.sum()}"
        )
    kept = volumes > 0
    return hull, Triangulation(
        vertices * size,
        simplices[kept],
        volumes[kept] * size**hull.dimension,
        outside.normals,
        outside.offsets * size,
    )


def _check_size(count: int, dimension: int, cut_in: int) -> None:
    """Raise ``ValueError`` if points in R^cut_in can give too many simplices."""
    if can_triangulate(count, cut_in):
        return
    bound, limit = most_simplices(count, cut_in), "2^20"
    if bound <= MAX_SIMPLICES:
        limit = f"2^33 / {cut_in + 1}^4 = {MAX_WORK // (cut_in + 1) ** 4}"
    raise ValueError(
        f"points must allow at most {limit} simplices, got {count} points in dimension "
        f"{dimension}, which allow {bound}: use bodies.VPolytope, which is not cut into simplices"
    )


@dataclass(frozen=True)
class _Hull:
    """Hull of points that span their space: vertex numbers, facets and volume."""

    vertices: IntArray
    normals: FloatArray
    offsets: FloatArray
    volume: float


def _hull_of(points: FloatArray) -> tuple[AffineHull, float, _Hull]:
    """Affine hull, largest modulus of a coordinate in it, and hull of the points divided by it."""
    hull = AffineHull.of_points(points)
    # The bound on the number of simplices in dimension r - 1 also bounds the number of facets of a
    # hull in dimension r.
    _check_size(len(points), hull.dimension, max(hull.dimension - 1, 0))
    coordinates = hull.coordinates(points)
    size = float(np.abs(coordinates).max(initial=0.0)) or 1.0
    return hull, size, _full_hull(coordinates / size)


def _full_hull(points: FloatArray) -> _Hull:
    """Hull of points that span their space, which may have dimension 0 or 1."""
    from scipy.spatial import ConvexHull

    dimension = points.shape[1]
    if dimension == 0:
        return _Hull(np.zeros(1, dtype=np.int64), np.zeros((0, 0)), np.zeros(0), 1.0)
    if dimension == 1:
        ends = np.array([points[:, 0].argmin(), points[:, 0].argmax()])
        low, high = points[ends, 0]
        return _Hull(ends, np.array([[-1.0], [1.0]]), np.array([-low, high]), float(high - low))
    hull = ConvexHull(points)
    # Qhull splits each facet into simplices, and lists the facet's equation once for each of these.
    equations = np.unique(hull.equations, axis=0)
    vertices = np.asarray(hull.vertices, dtype=np.int64)
    return _Hull(vertices, equations[:, :-1], -equations[:, -1], float(hull.volume))


def _lower_faces(points: FloatArray) -> IntArray:
    """Simplices (s, r + 1) of a regular triangulation of points in convex position."""
    from scipy.spatial import ConvexHull

    noise = np.random.default_rng(PUBLIC_SEED).random(len(points))
    centred = points - points.mean(axis=0)
    heights = np.einsum("kr,kr->k", centred, centred)
    lifted = np.column_stack([points, heights + heights.max() * noise])
    hull = ConvexHull(lifted)
    faces = hull.simplices[hull.equations[:, -2] < 0]
    return np.asarray(faces, dtype=np.int64)


def _volumes(points: FloatArray, simplices: IntArray) -> FloatArray:
    edges = points[simplices[:, 1:]] - points[simplices[:, :1]]
    return np.asarray(np.abs(np.linalg.det(edges)) / math.factorial(points.shape[1]))
