"""The difference body and the symmetric hull of any body.

Let K be the sensitivity polytope of a workload. The neighbour body of the workload is the
difference body of K (replace-one) or the symmetric hull of K (add/remove). The methods of a body
are called verbs.
"""

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
    """Base class of `Difference` and `SymmetricHull`: verbs computed by shooting rays at facets.

    If K lists its N vertices, then gauge, facets, membership and chords shoot rays at facets by the
    simplex method. A pivot costs O(N r), where r is the dimension of the body; the N^2 differences
    of vertices are never listed (X-RAY, JL-DEF). If K has finitely many extreme points but no list
    of them, the same verbs use column generation.
    """

    body: Body

    symmetric = True

    def __post_init__(self) -> None:
        checked_body(self.body)

    def _summary(self) -> str:
        return f"of {self.body!r}"

    @property
    def dimension(self) -> int:
        """Dimension m."""
        return self.body.dimension

    def implements(self, verb: Verb) -> bool:
        """Whether this class has the verb and K has what the verb needs.

        Gauge, facets, contains and chord need listed vertices of K; with column generation alone
        they do not count as implemented. `affine_hull` and `radius` count for every K. All other
        verbs need the same verb of K.
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
        """Coordinates in which points of K are given to the ray shooter."""
        return self.affine_hull()

    @cached_property
    def _gauge(self) -> VertexGauge:
        """Gauge from the listed points of K, or from extreme points of K found on demand."""
        frame = self._frame()

        def build() -> RayShooter | OracleShooter:
            if self.body.implements(Body.vertex_list):
                return self._shooter(frame.coordinates(self.body.vertex_list()))
            if self.body.finitely_generated:
                return OracleShooter(self.body, frame, self._shooter, self._height)
            raise MissingOracle(self, "gauge", "vertex_list or finitely many extreme points of K")

        return VertexGauge(frame.basis, build)

    def gauge(self, points: FloatArray) -> FloatArray:
        """Gauge, from the facet through which the ray from 0 leaves; inf outside the span."""
        return self.facets(points).gauges

    def facets(self, points: FloatArray) -> Facets:
        """Gauges and normals of the facets through which rays from 0 leave."""
        return self._gauge.facets(points, self.radius())

    def contains(self, points: FloatArray, tolerance: float = MEMBERSHIP_TOLERANCE) -> BoolArray:
        """Whether the gauge is at most 1 + `tolerance`."""
        return np.asarray(self.gauge(points) <= 1 + tolerance)

    def chord(self, points: FloatArray, directions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Ends of chords, where lines meet facets; both are 0 for directions outside the span."""
        return self._gauge.span_chord(points, directions)

    def linear_image(self, matrix: FloatArray) -> Body | None:
        """The same construction on the image of K; None if K's image has no closed form.

        The result is also None for a matrix with one row. The image is then a segment, and the
        support function gives its ends.
        """
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

    Raises
    ------
    ValueError
        If `body` is not a `Body`.

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
        """Difference of the extreme points of K for u and -u."""
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
        """The span of the differences of points of K."""
        return AffineHull(np.zeros(self.dimension), self.body.affine_hull().basis)

    def cvxpy_constraints(self, variable: Any) -> list[Any]:
        """Constraints on two auxiliary points: both lie in K, their difference is the variable."""
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
    is one. Gauge, membership and chords need a K with listed vertices or with finitely many extreme
    points.

    Parameters
    ----------
    body : Body
        K.

    Raises
    ------
    ValueError
        If `body` is not a `Body`.

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
        """The rule of `Symmetrised`, but `cvxpy_constraints` needs listed vertices of K."""
        if verb is Body.cvxpy_constraints:
            return self.body.implements(Body.vertex_list)
        return super().implements(verb)

    def support(self, directions: FloatArray) -> FloatArray:
        """max(h_K(u), h_K(-u))."""
        return np.maximum(self.body.support(directions), self.body.support(-directions))

    def extreme_point(self, directions: FloatArray) -> FloatArray:
        """The extreme point of K or of -K for u; the point with the larger <u, x> is chosen."""
        first, second = self.body.extreme_point(directions), -self.body.extreme_point(-directions)
        gain = np.einsum("bm,bm->b", directions, first - second)
        return np.where(gain[:, None] >= 0, first, second)

    def _shooter(self, points: FloatArray) -> RayShooter:
        return RayShooter.symmetric_hull(points)

    def _height(self, largest: FloatArray, smallest: FloatArray) -> FloatArray:
        return np.maximum(largest, -smallest)

    @cached_property
    def _span(self) -> FloatArray:
        """Orthonormal basis (m, r) of the linear span."""
        hull = self.body.affine_hull()
        residual = hull.offset - hull.basis @ (hull.basis.T @ hull.offset)
        length = np.linalg.norm(residual)
        if length <= RANK_TOLERANCE * self.body.radius():
            return hull.basis
        return np.hstack([hull.basis, residual[:, None] / length])

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
        """Constraints on weights of the vertices: the moduli of the weights add up to at most 1."""
        import cvxpy as cp

        points = self.body.vertex_list()
        weights = cp.Variable(len(points))
        return [variable == points.T @ weights, cp.norm1(weights) <= 1]
