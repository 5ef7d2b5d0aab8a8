"""Finite point sets: points with integer keys for projections, and hulls cut into simplices."""

from __future__ import annotations

import abc
import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import scipy

from geomdp._numerics.linalg import AffineHull, row_blocks
from geomdp._numerics.randomness import PUBLIC_SEED
from geomdp._typing import FloatArray, IntArray
from geomdp.bodies.base import Body


class Columns(abc.ABC):
    """Images p_j = A s_j of points s_j of a body K, with hull A K, listed or found on demand."""

    centre: FloatArray  # (d,): a point of the affine hull of the images
    scale: float  # largest distance from `centre` to an image known so far
    _originals: FloatArray  # (N, m): the points s_j
    _images: FloatArray  # (N, d): the points p_j

    @abc.abstractmethod
    def price(self, direction: FloatArray, count: int) -> IntArray:
        """Keys of `count` images with large <direction, p_j>, a maximiser over A K among them."""

    def offsets(self, keys: IntArray) -> FloatArray:
        """The differences p_j - centre (b, d) for the given keys j."""
        return np.asarray(self._images[keys] - self.centre)

    def originals(self, keys: IntArray) -> FloatArray:
        """The points s_j (b, m) for the given keys j."""
        return np.asarray(self._originals[keys])


class VertexColumns(Columns):
    """A body with listed vertices s_j (N, m); `matrix` is A (d, m), or None for the identity."""

    def __init__(self, vertices: FloatArray, matrix: FloatArray | None = None) -> None:
        self._originals = np.ascontiguousarray(vertices)
        self._images = self._originals
        if matrix is not None:
            self._images = np.ascontiguousarray(vertices @ matrix.T)
        self.centre = self._images.mean(axis=0)
        squares = np.einsum("nd,nd->n", self._images, self._images)
        farthest = int(np.argmax(squares - 2 * (self._images @ self.centre)))
        self.scale = float(np.linalg.norm(self._images[farthest] - self.centre))

    def __len__(self) -> int:
        return len(self._originals)

    def price(self, direction: FloatArray, count: int) -> IntArray:
        if count >= len(self):
            return np.arange(len(self))
        return _smallest(self._images @ -direction, count)

    def price_many(self, directions: FloatArray, count: int) -> IntArray:
        """The keys (b, min(count, N)) that `price` finds for the rows of `directions` (b, d)."""
        if count >= len(self):
            return np.tile(np.arange(len(self)), (len(directions), 1))
        found = np.empty((len(directions), count), dtype=np.int64)
        for rows in row_blocks(len(directions), len(self)):
            found[rows] = _smallest(-directions[rows] @ self._images.T, count)
        return found


def _smallest(scores: FloatArray, count: int) -> IntArray:
    """Indices of the `count` smallest entries along the last axis, which are not all entries."""
    if count == 1:
        return np.asarray(scores.argmin(axis=-1, keepdims=True))
    return np.argpartition(scores, count, axis=-1)[..., :count]


class OracleColumns(Columns):
    """Extreme points of a body, found on demand; `seeds` (b, m), or None, have the keys 0..b-1."""

    def __init__(self, body: Body, matrix: FloatArray | None, seeds: FloatArray | None) -> None:
        self._body, self._matrix = body, matrix
        self._originals = np.empty((0, body.dimension))
        self._images = np.empty((0, body.dimension if matrix is None else len(matrix)))
        self.calls = 0
        self.scale = 0.0
        if seeds is not None:
            self._append(seeds)
        # The extreme points in a random direction and in the opposite direction give the centre.
        # These points and the seeds give a first scale. If A K is more than one point, the images
        # of the two extreme points almost surely differ.
        width = int(self._images.shape[1])
        probe = self._pull_back(np.random.default_rng(0).standard_normal(width))
        self._append(self._ask(np.stack([probe, -probe])))
        self.centre = self._images[-2:].mean(axis=0)
        self._measure(0)

    def _ask(self, directions: FloatArray) -> FloatArray:
        self.calls += len(directions)
        return self._body.extreme_point(directions)

    def _pull_back(self, direction: FloatArray) -> FloatArray:
        return direction if self._matrix is None else direction @ self._matrix

    def _append(self, points: FloatArray) -> None:
        images = points if self._matrix is None else points @ self._matrix.T
        self._originals = np.concatenate([self._originals, points])
        self._images = np.concatenate([self._images, images])

    def _measure(self, first: int) -> None:
        offsets = self._images[first:] - self.centre
        self.scale = max(self.scale, float(np.linalg.norm(offsets, axis=1).max()))

    def price(self, direction: FloatArray, count: int) -> IntArray:
        """Keys of the best known images, after the extreme point in this direction is added."""
        self._append(self._ask(self._pull_back(direction)[None]))
        self._measure(-1)
        if count >= len(self._images):
            return np.arange(len(self._images))
        return _smallest(self._images @ -direction, count)


#: Points are cut into simplices only if the upper bound theorem allows at most this many, which
#: take seconds and some 100 MB. The actual number is usually far smaller.
MAX_SIMPLICES = 1 << 20
#: Largest product of this bound and c^4, where a simplex has c corners: for each of c neighbours,
#: Qhull solves a linear system, O(c^3). Above it, for 29 points with entries 0 and 1 in dimension
#: 15, Qhull takes half a minute; for the 32 answers to all pairs of 5 binary columns, no end.
MAX_WORK = 1 << 33


@dataclass(frozen=True)
class Triangulation:
    """{y in R^r : normals @ y <= offsets} as a union of simplices with disjoint interiors."""

    points: FloatArray  # (k, r): vertices of the polytope
    simplices: IntArray  # (s, r + 1): vertex numbers of each simplex
    volumes: FloatArray  # (s,): volumes of the simplices, all above 0
    normals: FloatArray  # (F, r): normals of the facets, of length 1
    offsets: FloatArray  # (F,): offsets of the facets


def most_simplices(count: int, dimension: int) -> int:
    """Bound on the simplices of `triangulate` for N = `count` points in R^dimension: the number of
    facets of the cyclic polytope in one dimension more (upper bound theorem, McMullen 1970).
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
    """The rows of `points` (N, m) that are vertices of their hull; ``ValueError`` beyond limits."""
    points = np.unique(points, axis=0)
    return np.asarray(points[_hull_of(points)[2].vertices])


def triangulate(points: FloatArray) -> tuple[AffineHull, Triangulation]:
    """Affine hull of the rows of `points` (N, m), and a regular triangulation of their hull;
    ``ValueError`` beyond limits, ``ArithmeticError`` if the volumes do not add up to a relative
    1e-9.
    """
    points = np.unique(points, axis=0)
    hull, size, outside = _hull_of(points)
    vertices = hull.coordinates(points[outside.vertices]) / size
    _check_size(len(vertices), hull.dimension, hull.dimension)
    if len(vertices) == hull.dimension + 1:
        simplices = np.arange(len(vertices), dtype=np.int64)[None]
    else:
        simplices = _lower_faces(vertices)
    edges = vertices[simplices[:, 1:]] - vertices[simplices[:, :1]]
    volumes = np.abs(np.linalg.det(edges)) / math.factorial(hull.dimension)
    # 1e-9 is far above the rounding of a sum of determinants, and lost simplices with a smaller
    # share of the volume change samples by at most 1e-9 in total variation.
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
    # The bound on simplices in dimension r - 1 also bounds the facets of a hull in dimension r.
    _check_size(len(points), hull.dimension, max(hull.dimension - 1, 0))
    coordinates = hull.coordinates(points)
    size = float(np.abs(coordinates).max(initial=0.0)) or 1.0
    return hull, size, _full_hull(coordinates / size)


def _full_hull(points: FloatArray) -> _Hull:
    """Hull of points that span their space, which may have dimension 0 or 1."""
    dimension = points.shape[1]
    if dimension == 0:
        return _Hull(np.zeros(1, dtype=np.int64), np.zeros((0, 0)), np.zeros(0), 1.0)
    if dimension == 1:
        ends = np.array([points[:, 0].argmin(), points[:, 0].argmax()])
        low, high = points[ends, 0]
        return _Hull(ends, np.array([[-1.0], [1.0]]), np.array([-low, high]), float(high - low))
    hull = scipy.spatial.ConvexHull(points)
    # Qhull splits each facet into simplices, and lists the facet's equation once for each of these.
    equations = np.unique(hull.equations, axis=0)
    vertices = np.asarray(hull.vertices, dtype=np.int64)
    return _Hull(vertices, equations[:, :-1], -equations[:, -1], float(hull.volume))


def _lower_faces(points: FloatArray) -> IntArray:
    """Simplices (s, r + 1) of a regular triangulation of points in convex position: lower faces of
    the points lifted to a paraboloid plus random heights, which almost surely avoid ties.
    """
    noise = np.random.default_rng(PUBLIC_SEED).random(len(points))
    centred = points - points.mean(axis=0)
    heights = np.einsum("kr,kr->k", centred, centred)
    lifted = np.column_stack([points, heights + heights.max() * noise])
    hull = scipy.spatial.ConvexHull(lifted)
    faces = hull.simplices[hull.equations[:, -2] < 0]
    return np.asarray(faces, dtype=np.int64)


# Polytopes with few whole-number vertices. Facets are found in float64; arithmetic in whole numbers
# then proves that the simplices tile the polytope. A rounding error can make this proof fail, but
# not accept a wrong result.

#: Largest number of facets and of simplices, for which a proof in dimension 10 takes seconds.
MAX_FACETS, MAX_CONES = 1 << 10, 1 << 14
#: The minors of all matrices here stay below this number, so products of two fit in int64.
MAX_MINOR = 2.0**31
#: A vertex counts as a point of a facet up to this distance, in units of the largest coordinate; a
#: wrong assignment can make the proof fail, but not accept a wrong result.
ON_FACET = 1e-8


@dataclass(frozen=True, eq=False)
class WholeCones:
    """A polytope in R^r with 0 inside, as the union of simplices conv(0, v_1, .., v_r)."""

    points: IntArray  # (N, r)
    cones: IntArray  # (s, r): row j has the numbers of v_1, .., v_r in `points`
    volumes: list[int]  # times r!
    normals: IntArray  # {x : <a_j, x> <= b_j} is bounded by the facet of simplex j
    offsets: IntArray  # above 0

    def heights(self, points: FloatArray) -> tuple[IntArray, IntArray]:
        """Products <a, x> (n, F) of `points` (n, r) with all distinct normals, and offsets (F,);
        ``ValueError`` for coordinates that are not whole, or so large that products might overflow.
        """
        whole = points.astype(np.int64)
        largest = int(np.abs(whole).max(initial=0)) * int(np.abs(self.normals).sum(axis=1).max())
        if (whole != points).any() or largest >= MAX_MINOR**2 / 2:
            raise ValueError("points must be whole numbers with products <a, x> below 2^61")
        rows, first = np.unique(self.normals, axis=0, return_index=True)
        return np.asarray(whole @ rows.T), self.offsets[first]


def whole_cones(points: FloatArray) -> WholeCones | None:
    """Cut the hull of whole-number points (N, r) into simplices; None if no proof is found."""
    order = points.shape[1]
    # Hadamard's bound: the rows of the matrices are points, but in some, one column is all ones, or
    # one row is the sum of r points.
    longest = float(np.linalg.norm(points, axis=1).max(initial=0.0))
    if not (longest + 2) ** order * order < MAX_MINOR or (points != np.rint(points)).any():
        return None
    whole = np.unique(points.astype(np.int64), axis=0)
    cones = _pulled(whole)
    if cones is None:
        return None
    corners = whole[cones]
    volumes = determinants(corners)
    if (volumes == 0).any():
        return None
    normals = _normals(corners, volumes)
    offsets = np.abs(volumes)
    supporting = (normals @ whole.T <= offsets[:, None]).all()
    touching = (np.einsum("skr,sr->sk", corners, normals) == offsets[:, None]).all()
    if not (supporting and touching and _closed(cones, volumes) and _once(corners, volumes)):
        return None
    sizes = [int(size) for size in offsets.tolist()]
    return WholeCones(whole, cones, sizes, normals, offsets)


def determinants(matrices: IntArray) -> IntArray:
    """Determinants of whole-number matrices (s, r, r), exact for minors below 2^31 (unchecked)."""
    work = matrices.astype(np.int64)
    count, order = work.shape[:2]
    sign, before = np.ones(count, dtype=np.int64), np.ones(count, dtype=np.int64)
    singular, each = np.zeros(count, dtype=bool), np.arange(count)
    for k in range(order - 1):
        pivot = k + np.argmax(work[:, k:, k] != 0, axis=1)
        chosen, replaced = work[each, pivot].copy(), work[:, k].copy()
        work[each, pivot], work[:, k] = replaced, chosen
        sign = np.where(pivot == k, sign, -sign)
        lead = work[:, k, k].copy()
        singular |= lead == 0
        lead = np.where(singular, 1, lead)
        inner = work[:, k + 1 :, k + 1 :] * lead[:, None, None]
        inner -= work[:, k + 1 :, k : k + 1] * work[:, k : k + 1, k + 1 :]
        work[:, k + 1 :, k + 1 :] = inner // before[:, None, None]
        before = lead
    return np.asarray(np.where(singular, 0, sign * work[:, -1, -1]))


def _normals(corners: IntArray, volumes: IntArray) -> IntArray:
    """For `corners` (s, r, r), the whole a (r,) with <a, v_i> = |determinant| for all rows v_i."""
    order = corners.shape[1]
    columns = []
    for k in range(order):
        replaced = corners.copy()
        replaced[:, :, k] = 1
        columns.append(determinants(replaced))
    return np.asarray(np.column_stack(columns) * np.sign(volumes)[:, None])


def _closed(cones: IntArray, volumes: IntArray) -> bool:
    """Whether each wall (r - 1 points of a cone, and 0) lies between exactly two cones."""
    order = cones.shape[1]
    sides: dict[tuple[int, ...], list[int]] = {}
    for cone, volume in zip(cones.tolist(), np.sign(volumes).tolist(), strict=True):
        for place in range(order):
            wall = (*cone[:place], *cone[place + 1 :])
            # Moving row `place` of the matrix to the end takes r - 1 - place exchanges.
            side = volume if (order - 1 - place) % 2 == 0 else -volume
            sides.setdefault(wall, []).append(side)
    return all(sorted(found) == [-1, 1] for found in sides.values())


def _once(corners: IntArray, volumes: IntArray) -> bool:
    """Whether the sum of the points v_1, .., v_r of the first simplex lies in no other cone."""
    middle = corners[0].sum(axis=0)
    outside = np.zeros(len(corners), dtype=bool)
    for k in range(corners.shape[1]):
        replaced = corners.copy()
        replaced[:, k] = middle
        outside |= determinants(replaced) * np.sign(volumes) < 0
    return bool(outside[1:].all() and not outside[0])


def _pulled(points: IntArray) -> IntArray | None:
    """The simplices (s, r) that tile the facets of the hull, as sorted row numbers; None if this
    fails.
    """
    faces = _facets(points)
    if faces is None:
        return None
    # A face is cut into the point with the lowest row number joined to the cut facets that lack it.
    # This depends on the face alone, so two facets cut a common face in the same way.
    known: dict[frozenset[int], list[tuple[int, ...]]] = {}

    def cut(face: frozenset[int], dimension: int) -> list[tuple[int, ...]]:
        if len(face) == dimension + 1:
            return [tuple(sorted(face))]
        if face not in known:
            least = min(face)
            known[face] = []
            for part in _maximal(face & other for other in faces if not face <= other):
                # Stop as soon as one face has more simplices than allowed.
                if least not in part and len(known[face]) <= MAX_CONES:
                    known[face] += [(least, *rest) for rest in cut(part, dimension - 1)]
        return known[face]

    found: list[tuple[int, ...]] = []
    order = points.shape[1]
    for face in faces:
        found += cut(face, order - 1)
        if len(found) > MAX_CONES:
            return None
    if not found or any(len(cone) != order for cone in found):
        return None
    return np.array(sorted(found), dtype=np.int64)


def _facets(points: IntArray) -> list[frozenset[int]] | None:
    """Row numbers of the points on each facet, in float64; None if too many, or if Qhull fails."""
    if points.shape[1] == 1:
        return [frozenset([int(points.argmin())]), frozenset([int(points.argmax())])]
    size = float(np.abs(points).max(initial=1))
    try:
        equations = scipy.spatial.ConvexHull(points / size).equations
    except scipy.spatial.QhullError:
        return None
    heights = (points / size) @ equations[:, :-1].T + equations[:, -1]
    on_facets = np.unique(np.abs(heights).T <= ON_FACET, axis=0)
    if len(on_facets) > MAX_FACETS:
        return None
    return [frozenset(np.flatnonzero(row).tolist()) for row in on_facets]


def _maximal(parts: Iterable[frozenset[int]]) -> list[frozenset[int]]:
    distinct = sorted(set(parts), key=len, reverse=True)
    kept: list[frozenset[int]] = []
    for part in distinct:
        if not any(part < other for other in kept):
            kept.append(part)
    return kept
