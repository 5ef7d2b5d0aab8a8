"""The two symmetric bodies of neighbours: the difference body and the symmetric hull."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from geomdp._linalg import RANK_TOLERANCE, AffineHull
from geomdp._typing import BoolArray, FloatArray
from geomdp._validation import batch
from geomdp.bodies.arguments import rays
from geomdp.bodies.base import MEMBERSHIP_TOLERANCE, Body, Facets, MissingOracle
from geomdp.bodies.polytopes.facets.gauges import VertexGauge
from geomdp.bodies.polytopes.facets.on_demand import OracleShooter
from geomdp.bodies.polytopes.facets.ray_shooting import RayShooter

#: Verbs that need the list of vertices of the inner body.
_BY_VERTICES = frozenset({"gauge", "facets", "contains", "chord"})


@dataclass(frozen=True, eq=False)
class Difference(Body):
    """The difference body K - K = {x - y : x, y in K}, for any K with a support function.

    Where K lists its vertices, gauge, facets, membership and chords shoot rays at facets, with
    O(N r) per pivot (never the N^2 pairs; X-RAY, JL-DEF). Where K only has finitely many extreme
    points, found on demand, the same verbs are derived by column generation.
    `difference_body` returns a closed form instead where there is one.

    Parameters
    ----------
    body : Body
        K.
    """

    body: Body

    @property
    def dimension(self) -> int:
        """Dimension m."""
        return self.body.dimension

    @property
    def symmetric(self) -> bool:
        """True."""
        return True

    def implements(self, verb: str) -> bool:
        """Support verbs where K has one; gauges, membership and chords where K lists vertices."""
        return _implements(self, self.body, verb)

    def support(self, directions: FloatArray) -> FloatArray:
        """The breadth h_K(u) + h_K(-u) of K."""
        return self.body.breadth(batch(directions, self.dimension, "directions"))

    def extreme_point(self, directions: FloatArray) -> FloatArray:
        """Difference of the extreme points of K for u and -u."""
        directions = batch(directions, self.dimension, "directions")
        return self.body.extreme_point(directions) - self.body.extreme_point(-directions)

    @cached_property
    def _gauge(self) -> VertexGauge:
        hull = self.body.affine_hull()
        return _vertex_gauge(self, hull, RayShooter.difference, _height_of_difference)

    def gauge(self, points: FloatArray) -> FloatArray:
        """Smallest t with x = sum (a_i - b_i) v_i, sum a = sum b = t; inf off the span."""
        return self.facets(points).gauges

    def facets(self, points: FloatArray) -> Facets:
        """Gauges and normals of the facets through which rays from 0 leave."""
        return self._gauge.facets(batch(points, self.dimension, "points"), self.radius())

    def contains(self, points: FloatArray, tolerance: float = MEMBERSHIP_TOLERANCE) -> BoolArray:
        """Whether the gauge is at most 1 + `tolerance`."""
        return np.asarray(self.gauge(points) <= 1 + tolerance)

    def chord(self, points: FloatArray, directions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Ends where the line leaves through a facet; 0 off the span."""
        return self._gauge.span_chord(*rays(points, directions, self.dimension))

    def radius(self) -> float:
        """Upper bound: twice the radius of K."""
        return 2 * self.body.radius()

    def affine_hull(self) -> AffineHull:
        """The span of the differences of points of K."""
        return AffineHull(np.zeros(self.dimension), self.body.affine_hull().basis)

    def cvxpy_constraints(self, variable: Any) -> list[Any]:
        """Two auxiliary points of K and their difference."""
        import cvxpy as cp

        first, second = cp.Variable(self.dimension), cp.Variable(self.dimension)
        return [
            variable == first - second,
            *self.body.cvxpy_constraints(first),
            *self.body.cvxpy_constraints(second),
        ]


@dataclass(frozen=True, eq=False)
class SymmetricHull(Body):
    """The symmetric hull conv(K u -K), for any K with a support function.

    Where K lists its vertices, gauge, facets, membership and chords shoot rays at facets, with
    O(N r) per pivot (X-RAY); where K only has finitely many extreme points, found on demand, the
    same verbs are derived by column generation. It spans the linear (not the affine) span of K.

    Parameters
    ----------
    body : Body
        K.
    """

    body: Body

    @property
    def dimension(self) -> int:
        """Dimension m."""
        return self.body.dimension

    @property
    def symmetric(self) -> bool:
        """True."""
        return True

    def implements(self, verb: str) -> bool:
        """Support verbs where K has one; gauges, membership and chords where K lists vertices."""
        if verb == "cvxpy_constraints":
            return self.body.implements("vertex_list")
        return _implements(self, self.body, verb)

    def support(self, directions: FloatArray) -> FloatArray:
        """max(h_K(u), h_K(-u))."""
        directions = batch(directions, self.dimension, "directions")
        return np.maximum(self.body.support(directions), self.body.support(-directions))

    def extreme_point(self, directions: FloatArray) -> FloatArray:
        """The better of the extreme points of K for u and of -K for u."""
        directions = batch(directions, self.dimension, "directions")
        first, second = self.body.extreme_point(directions), -self.body.extreme_point(-directions)
        gain = np.einsum("bm,bm->b", directions, first - second)
        return np.where(gain[:, None] >= 0, first, second)

    @cached_property
    def _span(self) -> FloatArray:
        """Orthonormal basis (m, r) of the linear span."""
        hull = self.body.affine_hull()
        residual = hull.offset - hull.basis @ (hull.basis.T @ hull.offset)
        length = np.linalg.norm(residual)
        if length <= RANK_TOLERANCE * self.body.radius():
            return hull.basis
        return np.hstack([hull.basis, residual[:, None] / length])

    @cached_property
    def _gauge(self) -> VertexGauge:
        return _vertex_gauge(
            self, self.affine_hull(), RayShooter.symmetric_hull, _height_of_symmetric_hull
        )

    def gauge(self, points: FloatArray) -> FloatArray:
        """Smallest sum a + sum b with x = sum (a_i - b_i) v_i; inf off the span."""
        return self.facets(points).gauges

    def facets(self, points: FloatArray) -> Facets:
        """Gauges and normals of the facets through which rays from 0 leave."""
        return self._gauge.facets(batch(points, self.dimension, "points"), self.radius())

    def contains(self, points: FloatArray, tolerance: float = MEMBERSHIP_TOLERANCE) -> BoolArray:
        """Whether the gauge is at most 1 + `tolerance`."""
        return np.asarray(self.gauge(points) <= 1 + tolerance)

    def chord(self, points: FloatArray, directions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Ends where the line leaves through a facet; 0 off the span."""
        return self._gauge.span_chord(*rays(points, directions, self.dimension))

    def radius(self) -> float:
        """Radius of K."""
        return self.body.radius()

    def affine_hull(self) -> AffineHull:
        """The linear span of K."""
        return AffineHull(np.zeros(self.dimension), self._span)

    def vertex_list(self) -> FloatArray:
        """The listed points of K and their negatives."""
        points = self.body.vertex_list()
        return np.vstack([points, -points])

    def cvxpy_constraints(self, variable: Any) -> list[Any]:
        """Weights of modulus sum at most 1 on the vertices."""
        import cvxpy as cp

        points = self.body.vertex_list()
        weights = cp.Variable(len(points))
        return [variable == points.T @ weights, cp.norm1(weights) <= 1]


def _implements(wrapper: Body, inner: Body, verb: str) -> bool:
    """Whether the wrapper can serve `verb` given what the inner body has."""
    if not Body.implements(wrapper, verb):
        return False
    if verb in ("affine_hull", "radius"):
        return True
    if verb == "support":
        return inner.implements("support") or inner.implements("extreme_point")
    return inner.implements("vertex_list" if verb in _BY_VERTICES else verb)


def _vertex_gauge(
    body: Difference | SymmetricHull,
    frame: AffineHull,
    build: Callable[[FloatArray], RayShooter],
    height: Callable[[FloatArray, FloatArray], FloatArray],
) -> VertexGauge:
    """Gauge over the listed points of the inner body, or over its extreme points on demand."""
    inner = body.body
    if frame.dimension == 0:
        return VertexGauge(frame.basis, None)
    if inner.implements("vertex_list"):
        return VertexGauge(frame.basis, build(frame.coordinates(inner.vertex_list())))
    if not inner.finitely_generated:
        raise MissingOracle(body, "gauge", "vertex_list or finitely many extreme points of K")
    return VertexGauge(frame.basis, OracleShooter(inner, frame, build, height))


def _height_of_difference(largest: FloatArray, smallest: FloatArray) -> FloatArray:
    """Support function of K - K from the largest and smallest products with points of K."""
    return largest - smallest


def _height_of_symmetric_hull(largest: FloatArray, smallest: FloatArray) -> FloatArray:
    """Support function of conv(K u -K), likewise."""
    return np.maximum(largest, -smallest)
