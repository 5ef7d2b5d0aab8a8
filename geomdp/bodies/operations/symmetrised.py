"""The difference body and the symmetric hull of any body."""

from __future__ import annotations

import abc
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from geomdp._numerics.linalg import RANK_TOLERANCE, AffineHull
from geomdp._typing import BoolArray, FloatArray
from geomdp.bodies.arguments import Verb
from geomdp.bodies.base import MEMBERSHIP_TOLERANCE, Body
from geomdp.bodies.facets.gauges import VertexGauge
from geomdp.bodies.facets.on_demand import OracleShooter
from geomdp.bodies.facets.ray_shooting import RayShooter
from geomdp.bodies.operand import checked_body
from geomdp.bodies.oracles import Facets, MissingOracle

#: Verbs that count as implemented only if K lists its vertices.
_BY_VERTICES = frozenset({Body.gauge, Body.facets, Body.contains, Body.chord})


@dataclass(frozen=True, eq=False)
class Symmetrised(Body):
    """Base class of `Difference` and `SymmetricHull`, which shoot rays at facets: from the N listed
    vertices of K, O(N r) per pivot in dimension r without the N^2 differences (X-RAY, JL-DEF), or
    else from the extreme points of K by column generation.
    """

    body: Body

    symmetric = True

    def __post_init__(self) -> None:
        checked_body(self.body)

    def _summary(self) -> str:
        return f"of {self.body!r}"

    @property
    def dimension(self) -> int:
        return self.body.dimension

    def implements(self, verb: Verb) -> bool:
        """Gauge, facets, contains and chord need listed vertices of K (column generation alone does
        not count); `affine_hull` and `radius` always count; other verbs need the same verb of K.
        """
        if not super().implements(verb):
            return False
        if verb in (Body.affine_hull, Body.radius):
            return True
        return self.body.implements(Body.vertex_list if verb in _BY_VERTICES else verb)

    @abc.abstractmethod
    def _shooter(self, points: FloatArray) -> RayShooter:
        """The ray shooter for this body, if K is the hull of the points with these coordinates."""

    @abc.abstractmethod
    def _height(self, largest: FloatArray, smallest: FloatArray) -> FloatArray:
        """Support function of this body at z, from the largest and smallest <z, x> over x in K."""

    def _frame(self) -> AffineHull:
        return self.affine_hull()

    @cached_property
    def _gauge(self) -> VertexGauge:
        frame = self._frame()

        def build() -> RayShooter | OracleShooter:
            if self.body.implements(Body.vertex_list):
                return self._shooter(frame.coordinates(self.body.vertex_list()))
            if self.body.finitely_generated:
                return OracleShooter(self.body, frame, self._shooter, self._height)
            raise MissingOracle(self, "gauge", "vertex_list or finitely many extreme points of K")

        return VertexGauge(frame.basis, build)

    def gauge(self, points: FloatArray) -> FloatArray:
        return self.facets(points).gauges

    def facets(self, points: FloatArray) -> Facets:
        return self._gauge.facets(points, self.radius())

    def contains(self, points: FloatArray, tolerance: float = MEMBERSHIP_TOLERANCE) -> BoolArray:
        return np.asarray(self.gauge(points) <= 1 + tolerance)

    def chord(self, points: FloatArray, directions: FloatArray) -> tuple[FloatArray, FloatArray]:
        return self._gauge.span_chord(points, directions)

    def linear_image(self, matrix: FloatArray) -> Body | None:
        """The same construction on K's image; None if it has no closed form or is a segment."""
        inner = self.body.linear_image(matrix) if len(matrix) > 1 else None
        return None if inner is None else type(self)(inner)


@dataclass(frozen=True, eq=False)
class Difference(Symmetrised):
    """The difference body K - K = {x - y : x, y in K}, for any K with a support function.

    `difference_body` returns a closed form instead if there is one. Gauge, membership and chords
    need a K with listed vertices or with finitely many extreme points.

    Parameters
    ----------
    body : Body
        K.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> triangle = gd.bodies.VPolytope([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> hexagon = gd.bodies.Difference(triangle)
    >>> hexagon.support(np.array([[1.0, 1.0]])).tolist()
    [1.0]
    >>> hexagon.contains(np.array([[1.0, 0.0], [1.0, 1.0]])).tolist()
    [True, False]
    """

    def support(self, directions: FloatArray) -> FloatArray:
        """The breadth h_K(u) + h_K(-u) of K."""
        return self.body.breadth(directions)

    def extreme_point(self, directions: FloatArray) -> FloatArray:
        return self.body.extreme_point(directions) - self.body.extreme_point(-directions)

    def _shooter(self, points: FloatArray) -> RayShooter:
        return RayShooter.difference(points)

    def _height(self, largest: FloatArray, smallest: FloatArray) -> FloatArray:
        return largest - smallest

    def _frame(self) -> AffineHull:
        return self.body.affine_hull()

    def radius(self) -> float:
        """Upper bound: twice the radius of K."""
        return 2 * self.body.radius()

    def affine_hull(self) -> AffineHull:
        return AffineHull(np.zeros(self.dimension), self.body.affine_hull().basis)

    def cvxpy_constraints(self, variable: Any) -> list[Any]:
        import cvxpy as cp

        first, second = cp.Variable(self.dimension), cp.Variable(self.dimension)
        return [
            variable == first - second,
            *self.body.cvxpy_constraints(first),
            *self.body.cvxpy_constraints(second),
        ]

    def width_rule(self) -> tuple[float, Body]:
        """w(K - K) = 2 w(K) for the Gaussian width w."""
        return 2.0, self.body


@dataclass(frozen=True, eq=False)
class SymmetricHull(Symmetrised):
    """The symmetric hull, the convex hull of K and -K, for any K with a support function.

    Its affine hull is the linear span of K. `symmetric_hull` returns a closed form instead if there
    is one. Gauge, membership and chords need a K as in `Difference`.

    Parameters
    ----------
    body : Body
        K.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> triangle = gd.bodies.VPolytope([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> hull = gd.bodies.SymmetricHull(triangle)
    >>> hull.support(np.array([[1.0, 1.0], [-1.0, 0.0]])).tolist()
    [1.0, 1.0]
    >>> hull.symmetric
    True
    """

    def implements(self, verb: Verb) -> bool:
        """`cvxpy_constraints` needs listed vertices of K."""
        if verb is Body.cvxpy_constraints:
            return self.body.implements(Body.vertex_list)
        return super().implements(verb)

    def support(self, directions: FloatArray) -> FloatArray:
        """max(h_K(u), h_K(-u))."""
        return np.maximum(self.body.support(directions), self.body.support(-directions))

    def extreme_point(self, directions: FloatArray) -> FloatArray:
        first, second = self.body.extreme_point(directions), -self.body.extreme_point(-directions)
        gain = np.einsum("bm,bm->b", directions, first - second)
        return np.where(gain[:, None] >= 0, first, second)

    def _shooter(self, points: FloatArray) -> RayShooter:
        return RayShooter.symmetric_hull(points)

    def _height(self, largest: FloatArray, smallest: FloatArray) -> FloatArray:
        return np.maximum(largest, -smallest)

    @cached_property
    def _span(self) -> FloatArray:
        hull = self.body.affine_hull()
        residual = hull.offset - hull.basis @ (hull.basis.T @ hull.offset)
        length = np.linalg.norm(residual)
        if length <= RANK_TOLERANCE * self.body.radius():
            return hull.basis
        return np.hstack([hull.basis, residual[:, None] / length])

    def radius(self) -> float:
        return self.body.radius()

    def affine_hull(self) -> AffineHull:
        return AffineHull(np.zeros(self.dimension), self._span)

    def vertex_list(self) -> FloatArray:
        points = self.body.vertex_list()
        return np.vstack([points, -points])

    def cvxpy_constraints(self, variable: Any) -> list[Any]:
        """Weights of the vertices with moduli that add up to at most 1."""
        import cvxpy as cp

        points = self.body.vertex_list()
        weights = cp.Variable(len(points))
        return [variable == points.T @ weights, cp.norm1(weights) <= 1]
