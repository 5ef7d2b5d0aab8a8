"""Gauges, facets and chords of polytopes given by vertices, in coordinates of their span."""

from __future__ import annotations

import numpy as np

from geomdp._typing import FloatArray
from geomdp.bodies.arguments import off_span
from geomdp.bodies.linear_programs import SolverError
from geomdp.bodies.oracles import Facets
from geomdp.bodies.ray_shooting import Exits, RayShooter


class VertexGauge:
    """Gauge, facet normals and chords of a polytope with 0 in its relative interior.

    Parameters
    ----------
    basis : (m, r) array
        Orthonormal basis of the span of the body.
    shooter : RayShooter or None
        Of the body in the coordinates of the basis; None if the body is the single point 0.
    """

    def __init__(self, basis: FloatArray, shooter: RayShooter | None) -> None:
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
            raise SolverError("ray shooting reached its limit of pivots")
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
        """Gauges (b,) and normals (b, m); gauge inf off the span, with the residual as normal."""
        coordinates = points @ self._basis
        found = self.solve(coordinates)
        outside = off_span(points, self._basis, scale)
        residuals = points - coordinates @ self._basis.T
        normals = np.where(outside[:, None], residuals, found.normals @ self._basis.T)
        return Facets(np.where(outside, np.inf, found.gauges), normals)

    def chord(self, points: FloatArray, directions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Ends (lo, hi) of the chords of rows x along u != 0, in the basis (b, r): 2 x (b,)."""
        if not len(points):
            return np.zeros(0), np.zeros(0)
        # Both ends in one batch: each starts from the facets found for all before it.
        both = self._exits(np.vstack([points, points]), np.vstack([-directions, directions]))
        backward, forward = np.split(both.times, 2)
        return -backward, forward
