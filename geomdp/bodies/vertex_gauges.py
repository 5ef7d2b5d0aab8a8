"""Gauges of polytopes given by vertices: conv V, conv(V u -V) and conv V - conv V.

With 0 in the relative interior of a body K = {sum_i w_i c_i : w >= 0, costs @ w <= 1}, the gauge
and the facet normal at x are the value and the dual solution of `ConicProgram` for x.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from geomdp._typing import FloatArray
from geomdp.bodies.arguments import off_span
from geomdp.bodies.linear_programs import ConicProgram
from geomdp.bodies.oracles import MEMBERSHIP_TOLERANCE, Facets


class VertexGauge:
    """Gauge and facet normals of a polytope with 0 in its relative interior.

    Parameters
    ----------
    basis : (m, r) array
        Orthonormal basis of the span of the body.
    program : ConicProgram
        With r rows, or more if the right-hand side is padded with zeros.
    support : callable
        The body's support function on (b, m) directions, by which normals are rescaled so that
        h(z) <= 1 holds up to rounding rather than up to the solver's tolerance.
    padding : int
        Number of zeros to append to the coordinates of a point.
    """

    def __init__(
        self,
        basis: FloatArray,
        program: ConicProgram,
        support: Callable[[FloatArray], FloatArray],
        padding: int = 0,
    ) -> None:
        self._basis = basis
        self._program = program
        self._support = support
        self._padding = padding

    @property
    def basis(self) -> FloatArray:
        """Orthonormal basis (m, r) of the span."""
        return self._basis

    def solve(self, coordinates: FloatArray) -> Facets:
        """Gauges (b,) and normals (b, r) of points given in the basis, normals in the basis."""
        targets = np.pad(coordinates, ((0, 0), (0, self._padding)))
        normals = self._program.solve(targets)[1][:, : self._basis.shape[1]]
        heights = self._support(normals @ self._basis.T)
        # Below a height of 1/2 there is no facet to rescale: the point is 0 and so is the normal.
        normals = normals / np.maximum(heights, 1 / 2)[:, None]
        gauges = np.maximum(np.einsum("br,br->b", normals, coordinates), 0.0)
        return Facets(gauges, normals)

    def facets(self, points: FloatArray, scale: float) -> Facets:
        """Gauges (b,) and normals (b, m); gauge inf off the span, with the residual as normal."""
        coordinates = points @ self._basis
        found = self.solve(coordinates)
        outside = off_span(points, self._basis, scale)
        residuals = points - coordinates @ self._basis.T
        normals = np.where(outside[:, None], residuals, found.normals @ self._basis.T)
        return Facets(np.where(outside, np.inf, found.gauges), normals)


def hull_program(points: FloatArray) -> ConicProgram:
    """conv P for rows P (N, r) with 0 in the interior: x = sum a_i p_i at least sum a."""
    return ConicProgram(np.ascontiguousarray(points.T), np.ones(len(points)))


def symmetric_hull_program(points: FloatArray) -> ConicProgram:
    """conv(P u -P): x = sum (a_i - b_i) p_i at least sum a + sum b."""
    return ConicProgram(np.vstack([points, -points]).T.copy(), np.ones(2 * len(points)))


def difference_program(points: FloatArray) -> ConicProgram:
    """conv P - conv P: x = sum (a_i - b_i) p_i, sum a = sum b, at least sum a (JL-DEF).

    N columns twice rather than N^2 pairs; one row more, whose right-hand side is 0. That row is
    scaled like the points. Rows P should be centred.
    """
    size = float(np.abs(points).max(initial=0.0)) or 1.0
    lifted = np.hstack([points, np.full((len(points), 1), size)])
    costs = np.concatenate([np.ones(len(points)), np.zeros(len(points))])
    return ConicProgram(np.vstack([lifted, -lifted]).T.copy(), costs)


def chord_by_facets(
    gauge: VertexGauge, points: FloatArray, directions: FloatArray, reach: FloatArray
) -> FloatArray:
    """Largest t with x + t u in K for rows x in K, by cutting the ray with facets: (b,).

    Points and directions are coordinates (b, r) in the basis of `gauge`. Starts beyond the body at
    t = reach; each round asks for the facet that cuts off x + t u and moves t back to it, until
    the gauge is at most 1 + 1e-9. A few rounds in practice, each one warm program per row.
    """
    times = reach.copy()
    active = np.arange(len(points))
    while active.size:
        found = gauge.solve(points[active] + times[active, None] * directions[active])
        beyond = found.gauges > 1 + MEMBERSHIP_TOLERANCE
        active, normals = active[beyond], found.normals[beyond]
        heights = np.einsum("br,br->b", normals, points[active])
        slopes = np.einsum("br,br->b", normals, directions[active])
        times[active] = np.maximum((1 - heights) / slopes, 0.0)
        active = active[times[active] > 0]
    return times
