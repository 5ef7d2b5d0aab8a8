"""Gauges, facets and chords of polytopes given by vertices, in coordinates of their span."""

from __future__ import annotations

import abc
from collections.abc import Callable

import numpy as np

from geomdp._numerics.linalg import RANK_TOLERANCE
from geomdp._typing import BoolArray, FloatArray
from geomdp.bodies.arguments import off_hull, off_span
from geomdp.bodies.base import MEMBERSHIP_TOLERANCE, Body
from geomdp.bodies.facets.on_demand import OracleShooter
from geomdp.bodies.facets.ray_shooting import Exits, RayShooter
from geomdp.bodies.linear_programs import SolverError
from geomdp.bodies.oracles import Facets, Halfspace


class VertexGauge:
    """Gauge, facets and chords of a polytope about 0, in the span of orthonormal `basis` (m, r)."""

    def __init__(self, basis: FloatArray, build: Callable[[], RayShooter | OracleShooter]) -> None:
        self._basis = basis
        self._shooter = build() if basis.shape[1] else None

    def _exits(self, points: FloatArray, directions: FloatArray) -> Exits:
        assert self._shooter is not None, "a single point has no directions"
        found = self._shooter.exits(points, directions)
        if not found.converged.all():
            raise SolverError(
                "ray shooting failed: neither simplex pivots nor HiGHS found the facet"
            )
        return found

    def solve(self, coordinates: FloatArray) -> Facets:
        """Gauges (b,) and normals (b, r) at points with `coordinates` (b, r); both are 0 at 0."""
        gauges, normals = np.zeros(len(coordinates)), np.zeros(coordinates.shape)
        away = coordinates.any(axis=1)
        if away.any():
            found = self._exits(np.zeros_like(coordinates[away]), coordinates[away])
            gauges[away], normals[away] = 1 / found.times, found.normals
        return Facets(gauges, normals)

    def facets(self, points: FloatArray, scale: float) -> Facets:
        """Gauges (b,) and normals (b, m) at points (b, m); inf and the component orthogonal to the
        span for points outside it, by `off_span` with `scale`.
        """
        coordinates = points @ self._basis
        found = self.solve(coordinates)
        outside = off_span(points, self._basis, scale)
        residuals = points - coordinates @ self._basis.T
        normals = np.where(outside[:, None], residuals, found.normals @ self._basis.T)
        return Facets(np.where(outside, np.inf, found.gauges), normals)

    def span_chord(
        self, points: FloatArray, directions: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        along = ~off_span(directions, self._basis)
        low, high = np.zeros(len(points)), np.zeros(len(points))
        if along.any():
            starts, ways = points[along] @ self._basis, directions[along] @ self._basis
            # Shoot the rays to both ends in one batch, so that later rays can start from the facets
            # of earlier rays.
            both = self._exits(np.vstack([starts, starts]), np.vstack([-ways, ways]))
            backward, high[along] = np.split(both.times, 2)
            low[along] = -backward
        return low, high


class PolytopeByRays(Body):
    """A polytope that computes membership, separation and chords by ray shooting."""

    @property
    @abc.abstractmethod
    def _centre(self) -> FloatArray:
        """A point (m,) in the relative interior."""

    @property
    @abc.abstractmethod
    def _about_centre(self) -> VertexGauge:
        """Gauge of the body shifted by -`_centre`, in the basis of the body's affine hull."""

    def contains(self, points: FloatArray, tolerance: float = MEMBERSHIP_TOLERANCE) -> BoolArray:
        """Whether the gauge of the body shifted by -`_centre` is at most 1 + `tolerance`."""
        hull = self.affine_hull()
        inside = ~off_hull(points, hull, max(tolerance, RANK_TOLERANCE) * self.radius())
        within = (points[inside] - self._centre) @ hull.basis
        inside[inside] = self._about_centre.solve(within).gauges <= 1 + tolerance
        return inside

    def separate(self, point: FloatArray) -> Halfspace | None:
        """Bounded by the facet on the ray from `_centre`, or orthogonal to the affine hull."""
        basis = self.affine_hull().basis
        within = (point - self._centre) @ basis
        residual = point - self._centre - basis @ within
        if np.linalg.norm(residual) > RANK_TOLERANCE * self.radius():
            return Halfspace(residual, float(self.support(residual[None])[0]))
        found = self._about_centre.solve(within[None])
        if found.gauges[0] <= 1 + MEMBERSHIP_TOLERANCE:
            return None
        normals = found.normals @ basis.T
        return Halfspace(normals[0], float(self.support(normals)[0]))

    def chord(self, points: FloatArray, directions: FloatArray) -> tuple[FloatArray, FloatArray]:
        return self._about_centre.span_chord(points - self._centre, directions)
