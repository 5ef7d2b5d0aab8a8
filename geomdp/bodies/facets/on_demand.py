"""Exact ray shooting in polytopes with extreme points found on demand (column generation).

A ray is first shot in the hull of the known extreme points, which lies inside the body. It meets a
facet with normal z. If the extreme point of the body in direction z is not beyond this facet, the
facet is part of a facet of the body. Otherwise the point joins the known points, which are kept
from call to call, and the ray is shot again. Every round adds a new extreme point or ends the
search. In practice, the number of rounds is about the number of vertices near the rays.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from geomdp._numerics.linalg import AffineHull
from geomdp._numerics.seeds import PUBLIC_SEED
from geomdp._typing import BoolArray, FloatArray
from geomdp.bodies.base import MEMBERSHIP_TOLERANCE, Body
from geomdp.bodies.facets.ray_shooting import Exits, RayShooter

#: A facet of the hull of known points, in the hyperplane <z, x> = 1, counts as part of a facet of
#: the body if <z, x> <= 1 + BEYOND for all x in the body.
BEYOND = 1e-10
#: Largest number of rounds in a call of `_shoot`; a few dozen usually suffice. Rays that are not
#: done by then get `converged` = False.
ROUNDS = 2000


class OracleShooter:
    """Ray shooting like `RayShooter` at a target derived from `body`, in coordinates of `frame`
    (X-RAY).

    `build` makes the shooter of the known points, and `height` the target's support function from
    the largest and smallest products (b,) with points of `body`. Calls add known points, so a
    shooter is not thread safe.
    """

    def __init__(
        self,
        body: Body,
        frame: AffineHull,
        build: Callable[[FloatArray], RayShooter],
        height: Callable[[FloatArray, FloatArray], FloatArray],
    ) -> None:
        self._body = body
        self._frame = frame
        self._build = build
        self._height = height
        self._points = frame.coordinates(independent_points(body))
        self._shooter = build(self._points)

    def exits(self, points: FloatArray, directions: FloatArray) -> Exits:
        apart = points.any(axis=1)
        if apart.any():
            # A ray can start only inside the known polytope. Therefore first shoot rays from 0
            # through `points`. These rays make the known polytope grow until it contains `points`.
            self._shoot(np.zeros_like(points[apart]), points[apart], enough=1.0)
        return self._shoot(points, directions, enough=np.inf)

    def _shoot(self, points: FloatArray, directions: FloatArray, enough: float) -> Exits:
        """Exits from the target; times of `enough` or later may be too early."""
        found = self._shooter.exits(points, directions)
        unproved = found.converged & (found.times < enough)
        for _ in range(ROUNDS):
            rays = np.flatnonzero(unproved)
            if not len(rays):
                return found
            unproved[rays] = self._learn(found.normals[rays])
            rays = np.flatnonzero(unproved)
            again = self._shooter.exits(points[rays], directions[rays])
            for old, new in (
                (found.times, again.times),
                (found.normals, again.normals),
                (found.converged, again.converged),
            ):
                old[rays] = new
            found.pivots[rays] += again.pivots
            unproved[rays] = again.converged & (again.times < enough)
        found.converged[unproved] = False
        return found

    def _learn(self, normals: FloatArray) -> BoolArray:
        """Add extreme points beyond the facets with `normals` (b, r); whether each has one (b,)."""
        directions = normals @ self._frame.basis.T
        best = self._frame.coordinates(self._body.extreme_point(directions))
        worst = self._frame.coordinates(self._body.extreme_point(-directions))
        largest = np.einsum("br,br->b", best, normals)
        smallest = np.einsum("br,br->b", worst, normals)
        beyond = self._height(largest, smallest) > 1 + BEYOND
        if beyond.any():
            points = np.vstack([self._points, best[beyond], worst[beyond]])
            self._points = np.unique(points, axis=0)
            self._shooter = self._build(self._points)
        return np.asarray(beyond)


def independent_points(body: Body) -> FloatArray:
    """Affinely independent extreme points (r + 1, m), from 2 r + 1 calls along random directions;
    ``ValueError`` if the body has a smaller dimension than its declared affine hull.
    """
    hull, rng = body.affine_hull(), np.random.default_rng(PUBLIC_SEED)
    size = hull.dimension
    found = np.empty((size + 1, body.dimension))
    found[0] = body.extreme_point(np.ones((1, body.dimension)))[0]
    spanned = np.empty((size, size))  # rows: an orthonormal basis of the differences so far
    for k in range(size):
        direction = hull.basis @ _across(spanned[:k], rng.standard_normal(size))
        ends = body.extreme_point(np.stack([direction, -direction]))
        heights = np.abs((ends - found[0]) @ direction)
        if heights.max() <= MEMBERSHIP_TOLERANCE * float(np.abs(ends).max()):
            raise ValueError(
                f"body must have dimension {size}, like the affine hull that it declares, but its "
                f"extreme points span {k} dimensions"
            )
        found[k + 1] = ends[np.argmax(heights)]
        spanned[k] = _across(spanned[:k], (found[k + 1] - found[0]) @ hull.basis)
    return found


def _across(rows: FloatArray, vector: FloatArray) -> FloatArray:
    for _ in range(2):  # the second pass removes the rounding errors of the first
        vector = vector - (rows @ vector) @ rows
    return np.asarray(vector / np.linalg.norm(vector))
