"""Gauges, facets and chords of polytopes given by vertices, in coordinates of their span."""

from __future__ import annotations

import numpy as np

from geomdp._numerics.linalg import RANK_TOLERANCE, AffineHull
from geomdp._typing import BoolArray, FloatArray
from geomdp.bodies.arguments import off_hull, off_span, rays
from geomdp.bodies.base import MEMBERSHIP_TOLERANCE, Body
from geomdp.bodies.facets.on_demand import OracleShooter
from geomdp.bodies.facets.ray_shooting import Exits, RayShooter
from geomdp.bodies.linear_programs import SolverError
from geomdp.bodies.oracles import Facets, Halfspace


class VertexGauge:
    """Gauge, facet normals and chords of a polytope with 0 in its relative interior.

    Parameters
    ----------
    basis : (m, r) array
        Orthonormal basis of the span of the body.
    shooter : RayShooter, OracleShooter or None
        Of the body in the coordinates of the basis; None if the body is the single point 0.
    """

    def __init__(self, basis: FloatArray, shooter: RayShooter | OracleShooter | None) -> None:
        self._basis = basis
        self._shooter = shooter

    @property
    def basis(self) -> FloatArray:
        """Orthonormal basis (m, r) of the span."""
        return self._basis

    def _exits(self, points: FloatArray, directions: FloatArray) -> Exits:
        assert self._shooter is not None, "a single point has no directions"
        found = self._shooter.exits(points, directions)
        if not found.converged.all():
            raise SolverError(
                "ray shooting failed: neither simplex pivots nor HiGHS found the facet"
            )
        return found

    def solve(self, coordinates: FloatArray) -> Facets:
        """Gauges (b,) and normals (b, r) of points given in the basis, both 0 at the point 0."""
        gauges, normals = np.zeros(len(coordinates)), np.zeros(coordinates.shape)
        away = coordinates.any(axis=1)
        if away.any():
            found = self._exits(np.zeros_like(coordinates[away]), coordinates[away])
            gauges[away], normals[away] = 1 / found.times, found.normals
        return Facets(gauges, normals)

    def facets(self, points: FloatArray, scale: float) -> Facets:
        """Gauges (b,) and normals (b, m); gauge inf outside the span, normal the residual."""
        coordinates = points @ self._basis
        found = self.solve(coordinates)
        outside = off_span(points, self._basis, scale)
        residuals = points - coordinates @ self._basis.T
        normals = np.where(outside[:, None], residuals, found.normals @ self._basis.T)
        return Facets(np.where(outside, np.inf, found.gauges), normals)

    def span_chord(
        self, points: FloatArray, directions: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Ends of the chords of rows (b, m) along rows (b, m); 0 outside the span."""
        along = ~off_span(directions, self._basis)
        low, high = np.zeros(len(points)), np.zeros(len(points))
        if along.any():
            low[along], high[along] = self._chord(
                points[along] @ self._basis, directions[along] @ self._basis
            )
        return low, high

    def _chord(self, points: FloatArray, directions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The same for rows in the basis (b, r)."""
        # Both ends in one batch, so that later rays can start from the facets of earlier ones.
        both = self._exits(np.vstack([points, points]), np.vstack([-directions, directions]))
        backward, forward = np.split(both.times, 2)
        return -backward, forward


class CentredGauge:
    """Membership, separation and chords of a polytope with an inner point, wherever 0 is.

    Parameters
    ----------
    body : Body
        K in R^m, with a support function and a radius.
    hull : AffineHull
        Its affine hull.
    centre : (m,) array
        A point in its relative interior.
    gauge : VertexGauge
        Of K moved by -centre, in the basis of the hull.
    """

    def __init__(
        self, body: Body, hull: AffineHull, centre: FloatArray, gauge: VertexGauge
    ) -> None:
        self._body = body
        self._hull = hull
        self._centre = centre
        self._gauge = gauge

    def contains(self, points: FloatArray, tolerance: float) -> BoolArray:
        """Whether rows of (b, m) have a gauge about the centre of at most 1 + `tolerance`."""
        slack = max(tolerance, RANK_TOLERANCE) * self._body.radius()
        inside = ~off_hull(points, self._hull, slack)
        within = (points[inside] - self._centre) @ self._hull.basis
        inside[inside] = self._gauge.solve(within).gauges <= 1 + tolerance
        return inside

    def separate(self, point: FloatArray) -> Halfspace | None:
        """The facet that a ray from the centre to the point (m,) leaves through, if it does."""
        basis = self._hull.basis
        within = (point - self._centre) @ basis
        residual = point - self._centre - basis @ within
        if np.linalg.norm(residual) > RANK_TOLERANCE * self._body.radius():
            return Halfspace(residual, float(self._body.support(residual[None])[0]))
        found = self._gauge.solve(within[None])
        if found.gauges[0] <= 1 + MEMBERSHIP_TOLERANCE:
            return None
        normals = found.normals @ basis.T
        return Halfspace(normals[0], float(self._body.support(normals)[0]))

    def chord(self, points: FloatArray, directions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Ends of the chords of rows (b, m) along rows (b, m); 0 outside the span."""
        points, directions = rays(points, directions, self._body.dimension)
        return self._gauge.span_chord(points - self._centre, directions)
