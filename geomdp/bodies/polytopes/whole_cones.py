"""Polytopes with few whole-number vertices, cut into simplices with a proof in whole numbers.

Facets are found in float64 and cut by pulling vertices. What results is then proved to tile the
polytope, in whole numbers and whatever the floats were.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from geomdp._typing import FloatArray, IntArray

#: Most facets, and most simplices: 2^14 in dimension 10 are found and proved in seconds.
MAX_FACETS, MAX_CONES = 1 << 10, 1 << 14
#: Minors stay below this, so that products of two of them stay below 2^62.
MAX_MINOR = 2.0**31
#: Distance from a facet, in units of the largest coordinate, up to which a vertex lies on it. If
#: the guess is wrong, the proof fails.
ON_FACET = 1e-8


@dataclass(frozen=True, eq=False)
class WholeCones:
    """A polytope in R^r with 0 inside, as the union of simplices conv(0, v_1, .., v_r).

    Parameters
    ----------
    points : (N, r) array
        Whole numbers.
    cones : (s, r) array
        Numbers of the points v_1, .., v_r of each simplex. The simplices have disjoint interiors.
    volumes : list of int
        Volume of each simplex, times r!.
    normals : (s, r) array
        Whole numbers a: the polytope is {x : <a, x> <= b for all simplices}.
    offsets : (s,) array
        Whole numbers b above 0.
    """

    points: IntArray
    cones: IntArray
    volumes: list[int]
    normals: IntArray
    offsets: IntArray

    def heights(self, points: FloatArray) -> tuple[IntArray, IntArray]:
        """<a, x> for whole-number points x (n, r) and distinct normals: (n, F), and b (F,).

        Raises
        ------
        ValueError
            For points that are not whole, or so large that products might overflow.
        """
        whole = points.astype(np.int64)
        largest = int(np.abs(whole).max(initial=0)) * int(np.abs(self.normals).sum(axis=1).max())
        if (whole != points).any() or largest >= MAX_MINOR**2 / 2:
            raise ValueError("points must be whole numbers with products below 2^61")
        rows, first = np.unique(self.normals, axis=0, return_index=True)
        return np.asarray(whole @ rows.T), self.offsets[first]


def whole_cones(points: FloatArray) -> WholeCones | None:
    """The hull of whole-number points (N, r), cut and proved; None without a proof.

    Notes
    -----
    Each cone over r points has a facet conv(v_1, .., v_r) of the hull: <a, v> <= b for all points,
    with equality on its own and b > 0, so the simplex lies in the hull and ends at its boundary.
    Each r - 1 of its points belong to exactly one other cone, on the other side of the hyperplane
    through them and 0. So all points outside the walls of codimension 2 are covered equally often,
    and it is once if a point inside the first cone lies in no other (the complement of these walls
    is connected).
    """
    order = points.shape[1]
    # Hadamard's bound for matrices of points, of which a column may be replaced by ones and a row
    # by the sum of r points.
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
    """Determinants of whole-number matrices (s, r, r), exact by Bareiss' elimination.

    Every entry that occurs is a minor of the matrix; they must be below 2^31.
    """
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
    """Whole a with <a, v_i> = |det| for the rows v_i of each matrix, by Cramer's rule."""
    order = corners.shape[1]
    columns = []
    for k in range(order):
        replaced = corners.copy()
        replaced[:, :, k] = 1
        columns.append(determinants(replaced))
    return np.asarray(np.column_stack(columns) * np.sign(volumes)[:, None])


def _closed(cones: IntArray, volumes: IntArray) -> bool:
    """Whether each wall belongs to two cones, on its two sides."""
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
    """Whether the sum of the points of the first cone lies in no other cone."""
    middle = corners[0].sum(axis=0)
    outside = np.zeros(len(corners), dtype=bool)
    for k in range(corners.shape[1]):
        replaced = corners.copy()
        replaced[:, k] = middle
        outside |= determinants(replaced) * np.sign(volumes) < 0
    return bool(outside[1:].all() and not outside[0])


def _pulled(points: IntArray) -> IntArray | None:
    """Cones over the boundary of the hull of `points`, with sorted numbers; None for too many.

    Every face is cut into the simplices over its least point and the facets of the face without
    that point. The cut of a face is the same in all facets that it belongs to.
    """
    faces = _facets(points)
    if faces is None:
        return None
    known: dict[frozenset[int], list[tuple[int, ...]]] = {}

    def cut(face: frozenset[int], dimension: int) -> list[tuple[int, ...]]:
        if len(face) == dimension + 1:
            return [tuple(sorted(face))]
        if face not in known:
            least = min(face)
            known[face] = []
            for part in _maximal(face & other for other in faces if not face <= other):
                # More simplices than allowed are given up as soon as a face has them.
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
    """Numbers of the points on each facet, as found in float64; None for too many facets."""
    from scipy.spatial import ConvexHull, QhullError

    if points.shape[1] == 1:
        return [frozenset([int(points.argmin())]), frozenset([int(points.argmax())])]
    size = float(np.abs(points).max(initial=1))
    try:
        equations = ConvexHull(points / size).equations
    except QhullError:
        return None
    heights = (points / size) @ equations[:, :-1].T + equations[:, -1]
    on_facets = np.unique(np.abs(heights).T <= ON_FACET, axis=0)
    if len(on_facets) > MAX_FACETS:
        return None
    return [frozenset(np.flatnonzero(row).tolist()) for row in on_facets]


def _maximal(parts: Iterable[frozenset[int]]) -> list[frozenset[int]]:
    """The sets that are in no other, without repeats."""
    distinct = sorted(set(parts), key=len, reverse=True)
    kept: list[frozenset[int]] = []
    for part in distinct:
        if not any(part < other for other in kept):
            kept.append(part)
    return kept
