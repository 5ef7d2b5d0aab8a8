"""Difference bodies, symmetric hulls and scaled bodies, and bodies that a search separates."""

from __future__ import annotations

import abc
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from geomdp._numerics.linalg import RANK_TOLERANCE, AffineHull
from geomdp._typing import BoolArray, FloatArray
from geomdp._validation import positive
from geomdp.bodies.base import (
    BISECTION_TOLERANCE,
    MEMBERSHIP_TOLERANCE,
    Body,
    Facets,
    Halfspace,
    MissingOracle,
    SupportFunction,
    Verb,
    checked_body,
    cp,
)
from geomdp.bodies.point_sets import Columns, OracleColumns
from geomdp.bodies.ray_shooting import RayShooter, VertexGauge

#: Tolerances for the gap in the two searches of `separate`, in units of s^2, s the largest distance
#: of a vertex from the mean: the first stops once it decides, for targets within 500 s, the second
#: when the nearest point is known up to rounding.
ANY_GAP, LEAST_GAP = 1e3, 1e-20


class SearchedPolytope(Body):
    """A body that separates points by a search for its point nearest to them (X-MNP)."""

    @cached_property
    def _columns(self) -> Columns:
        return OracleColumns(self, None, None)

    def separate(self, point: FloatArray) -> Halfspace | None:
        return self._cut_off(point, MEMBERSHIP_TOLERANCE)

    def contains(self, points: FloatArray, tolerance: float = MEMBERSHIP_TOLERANCE) -> BoolArray:
        """Whether no halfspace cuts a point off by more than `tolerance` times the radius."""
        return np.array([self._cut_off(point, tolerance) is None for point in points], dtype=bool)

    def _ends(self, points: FloatArray, directions: FloatArray, reach: FloatArray) -> FloatArray:
        """From beyond: each cut gives a nearer end, until none is left or it takes off nothing."""
        ends = reach.copy()
        for row, (point, way) in enumerate(zip(points, directions, strict=True)):
            while (cut := self._cut_off(point + ends[row] * way, 0.0)) is not None:
                room, slope = cut.offset - cut.normal @ point, cut.normal @ way
                nearer = room / slope if room > 0 and slope > 0 else 0.0
                if nearer >= (1 - BISECTION_TOLERANCE) * ends[row]:
                    break
                ends[row] = nearer
        return ends

    def _cut_off(self, point: FloatArray, tolerance: float) -> Halfspace | None:
        """A search that stops early, then one to the nearest point if the first decides nothing."""
        from geomdp.bodies.column_generation import search  # compiled code is slow to import

        columns, start = self._columns, None
        if columns.scale <= RANK_TOLERANCE * self.radius():  # a single point
            return self._cut(point, columns.centre, tolerance)
        for gap in (ANY_GAP, LEAST_GAP):
            found = search(columns, point, gap, start)
            start = found.keys, found.weights
            nearest = columns.centre + found.weights @ columns.offsets(found.keys)
            cut = None if found.reached else self._cut(point, nearest, tolerance)
            if found.reached or cut is not None:
                return cut
        return None

    def _cut(self, point: FloatArray, near: FloatArray, tolerance: float) -> Halfspace | None:
        """The halfspace with normal `point` - `near`; None if the point is not clearly beyond."""
        normal = point - near
        offset = float(self.support(normal[None])[0])
        slack = tolerance * self.radius() * float(np.linalg.norm(normal))
        return Halfspace(normal, offset) if float(normal @ point) - offset > slack else None


@dataclass(frozen=True, eq=False)
class OfBody(Body):
    """Base class of bodies made from a body K of the same R^m."""

    body: Body

    def __post_init__(self) -> None:
        checked_body(self.body)

    @property
    def dimension(self) -> int:
        return self.body.dimension


@dataclass(frozen=True, eq=False)
class Symmetrised(SearchedPolytope, OfBody):
    """Base class of `Difference` and `SymmetricHull`, which shoot rays at facets from the N listed
    vertices of K, O(N r) per pivot in dimension r without the N^2 differences (X-RAY, JL-DEF). For
    other K, the search decides membership, and its cuts give the ends of chords.
    """

    symmetric = True

    def _summary(self) -> str:
        return f"of {self.body!r}"

    def implements(self, verb: Verb) -> bool:
        """Rays need listed vertices of K; `affine_hull` and `radius` always count."""
        if not super().implements(verb):
            return False
        if verb in (Body.affine_hull, Body.radius):
            return True
        if verb in (Body.gauge, Body.facets, Body.chord):
            return self.body.implements(Body.vertex_list)
        by_search = verb in (Body.contains, Body.separate)
        return self.body.implements(Body.extreme_point if by_search else verb)

    @abc.abstractmethod
    def _shooter(self, points: FloatArray) -> RayShooter:
        """The ray shooter for this body, if K is the hull of the points with these coordinates."""

    @cached_property
    def _gauge(self) -> VertexGauge:
        if not self.body.implements(Body.vertex_list):
            raise MissingOracle(self, "gauge", "listed vertices of K")
        basis = self.affine_hull().basis
        points = self.body.vertex_list() @ basis
        return VertexGauge(basis, lambda: self._shooter(points))

    def facets(self, points: FloatArray) -> Facets:
        return self._gauge.facets(points, self.radius())

    def contains(self, points: FloatArray, tolerance: float = MEMBERSHIP_TOLERANCE) -> BoolArray:
        way = Body if self.implements(Body.gauge) else SearchedPolytope
        return way.contains(self, points, tolerance)

    def chord(self, points: FloatArray, directions: FloatArray) -> tuple[FloatArray, FloatArray]:
        if not self.implements(Body.gauge):
            return Body.chord(self, points, directions)
        return self._gauge.span_chord(points, directions)

    def linear_image(self, matrix: FloatArray) -> Body | None:
        """The same construction on K's image; None if it has no closed form or is a segment."""
        inner = self.body.linear_image(matrix) if len(matrix) > 1 else None
        return None if inner is None else type(self)(inner)


@dataclass(frozen=True, eq=False)
class Difference(Symmetrised):
    """The difference body K - K = {x - y : x, y in K}, for any K with a support function.

    `difference_body` returns a closed form instead if there is one. The gauge needs a K with
    listed vertices.

    Parameters
    ----------
    body : Body
        K.

    Examples
    --------
    >>> import geomdp as gd
    >>> triangle = gd.bodies.VPolytope([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> gd.bodies.Difference(triangle).support([[1.0, 1.0]]).tolist()
    [1.0]
    """

    def _shooter(self, points: FloatArray) -> RayShooter:
        return RayShooter.difference(points)

    def support(self, directions: FloatArray) -> FloatArray:
        return self.body.breadth(directions)

    def extreme_point(self, directions: FloatArray) -> FloatArray:
        return self.body.extreme_point(directions) - self.body.extreme_point(-directions)

    def radius(self) -> float:
        """An upper bound."""
        return 2 * self.body.radius()

    def affine_hull(self) -> AffineHull:
        return AffineHull(np.zeros(self.dimension), self.body.affine_hull().basis)

    def cvxpy_constraints(self, variable: Any) -> list[Any]:
        first, second = cp.Variable(self.dimension), cp.Variable(self.dimension)
        inside = [*self.body.cvxpy_constraints(first), *self.body.cvxpy_constraints(second)]
        return [variable == first - second, *inside]

    def width_rule(self) -> tuple[float, Body]:
        return 2.0, self.body


@dataclass(frozen=True, eq=False)
class SymmetricHull(Symmetrised):
    """The convex hull of K and -K, for any K with a support function; its affine hull is the span
    of K.
    """

    def _shooter(self, points: FloatArray) -> RayShooter:
        return RayShooter.symmetric_hull(points)

    def implements(self, verb: Verb) -> bool:
        """`cvxpy_constraints` needs listed vertices of K."""
        if verb is Body.cvxpy_constraints:
            return self.body.implements(Body.vertex_list)
        return super().implements(verb)

    def support(self, directions: FloatArray) -> FloatArray:
        return np.maximum(self.body.support(directions), self.body.support(-directions))

    def extreme_point(self, directions: FloatArray) -> FloatArray:
        first, second = self.body.extreme_point(directions), -self.body.extreme_point(-directions)
        gain = np.einsum("bm,bm->b", directions, first - second)
        return np.where(gain[:, None] >= 0, first, second)

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
        points = self.body.vertex_list()
        weights = cp.Variable(len(points))
        return [variable == points.T @ weights, cp.norm1(weights) <= 1]


@dataclass(frozen=True, eq=False)
class Scaled(OfBody):
    """The body {factor x : x in K}.

    Verbs use the same verbs of K. Support functions, points, radii and Gaussian widths of K are
    multiplied by the factor; gauges and facet normals are divided by it; a volume of dimension r
    is multiplied by factor^r.

    Parameters
    ----------
    body : Body
        K.
    factor : float
        Finite and above 0.

    Examples
    --------
    >>> import geomdp as gd
    >>> gd.bodies.Scaled(gd.bodies.CrossPolytope(2), 3.0).gauge([[1.0, 2.0]]).tolist()
    [1.0]
    """

    factor: float

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "factor", positive(self.factor, "factor"))

    def _summary(self) -> str:
        return f"{self.factor:g} times {self.body!r}"

    @property
    def symmetric(self) -> bool:
        return self.body.symmetric

    def implements(self, verb: Verb) -> bool:
        return self.body.implements(verb)

    def support(self, directions: FloatArray) -> FloatArray:
        return self.factor * self.body.support(directions)

    def extreme_point(self, directions: FloatArray) -> FloatArray:
        return self.factor * self.body.extreme_point(directions)

    def gauge(self, points: FloatArray) -> FloatArray:
        return self.body.gauge(points) / self.factor

    def facets(self, points: FloatArray) -> Facets:
        found = self.body.facets(points)
        return Facets(found.gauges / self.factor, found.normals / self.factor)

    def contains(self, points: FloatArray, tolerance: float = MEMBERSHIP_TOLERANCE) -> BoolArray:
        return self.body.contains(points / self.factor, tolerance)

    def separate(self, point: FloatArray) -> Halfspace | None:
        found = self.body.separate(point / self.factor)
        return None if found is None else Halfspace(found.normal, self.factor * found.offset)

    def chord(self, points: FloatArray, directions: FloatArray) -> tuple[FloatArray, FloatArray]:
        return self.body.chord(points / self.factor, directions / self.factor)

    def project(self, points: FloatArray) -> FloatArray:
        return self.factor * self.body.project(points / self.factor)

    def radius(self) -> float:
        return self.factor * self.body.radius()

    def half_diameter(self) -> float:
        return self.factor * self.body.half_diameter()

    def affine_hull(self) -> AffineHull:
        hull = self.body.affine_hull()
        return AffineHull(self.factor * hull.offset, hull.basis)

    def sample_uniform(self, n: int, rng: np.random.Generator) -> FloatArray:
        return self.factor * self.body.sample_uniform(n, rng)

    def centroid(self) -> FloatArray:
        return self.factor * self.body.centroid()

    def second_moment(self) -> FloatArray:
        return self.factor**2 * self.body.second_moment()

    def volume(self) -> float:
        rank = self.body.affine_hull().dimension
        return math.exp(math.log(self.body.volume()) + rank * math.log(self.factor))

    def vertex_list(self) -> FloatArray:
        return self.factor * self.body.vertex_list()

    def cvxpy_constraints(self, variable: Any) -> list[Any]:
        return self.body.cvxpy_constraints(variable / self.factor)

    def difference(self) -> Body:
        return Scaled(difference_body(self.body), self.factor)

    def symmetric_hull(self) -> Body:
        return Scaled(symmetric_hull(self.body), self.factor)

    def linear_image(self, matrix: FloatArray) -> Body | None:
        inner = self.body.linear_image(matrix)
        return None if inner is None else Scaled(inner, self.factor)

    def width_rule(self) -> tuple[float, Body]:
        return self.factor, self.body

    def largest_gauge(self, support: SupportFunction) -> float | None:
        inner = self.body.largest_gauge(support)
        return None if inner is None else inner / self.factor

    def gauge_bound(self, l1: float, l2: float) -> float | None:
        inner = self.body.gauge_bound(l1, l2)
        return None if inner is None else inner / self.factor


def difference_body(body: Body) -> Body:
    """The difference body K - K = {x - y : x, y in K} of a body K.

    The difference body is symmetric. If two data sets are neighbours under replace-one adjacency,
    the difference of their sums of answers lies in the difference body of the sensitivity polytope.

    Parameters
    ----------
    body : Body
        K in R^m; ``ValueError`` for another type.

    Returns
    -------
    Body
        The closed form (`Body.difference`) if there is one; else 2 K for a K known to be symmetric,
        and the wrapper `Difference` for any other K.

    Examples
    --------
    >>> import geomdp as gd
    >>> gd.difference_body(gd.bodies.Ball(3))
    Ball(radius 2 in R^3)
    """
    closed = checked_body(body).difference()
    if closed is not None:
        return closed
    return Scaled(body, 2.0) if body.symmetric else Difference(body)


def symmetric_hull(body: Body) -> Body:
    """The symmetric hull of a body K, that is, the convex hull of K and -K.

    If two data sets are neighbours under add/remove adjacency, the difference of their sums of
    answers lies in the symmetric hull of the sensitivity polytope.

    Parameters
    ----------
    body : Body
        K in R^m; ``ValueError`` for another type.

    Returns
    -------
    Body
        The closed form (`Body.symmetric_hull`) if there is one; else K itself for a K known to be
        symmetric, and a wrapper for any other K.

    Examples
    --------
    >>> import geomdp as gd
    >>> segment = gd.bodies.VPolytope([[1.0, 0.0], [0.0, 1.0]])
    >>> square = gd.bodies.symmetric_hull(segment)
    >>> square.gauge([[0.5, -0.5], [1.0, 1.0]]).round(6).tolist()
    [1.0, 2.0]
    """
    closed = checked_body(body).symmetric_hull()
    if closed is not None:
        return closed
    return body if body.symmetric else SymmetricHull(body)
