"""Scaled bodies, and two symmetric bodies: K - K and the convex hull of K and -K."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from geomdp._numerics.linalg import AffineHull
from geomdp._typing import BoolArray, FloatArray
from geomdp._validation import positive
from geomdp.bodies.arguments import SupportFunction, Verb
from geomdp.bodies.base import MEMBERSHIP_TOLERANCE, Body
from geomdp.bodies.operand import checked_body
from geomdp.bodies.operations.symmetrised import Difference, SymmetricHull
from geomdp.bodies.oracles import Facets, Halfspace


@dataclass(frozen=True, eq=False)
class Scaled(Body):
    """The body {factor x : x in K}.

    Verbs use the same verbs of K. Support functions, points, radii and Gaussian widths of K are
    multiplied by the factor; gauges and facet normals are divided by it.

    Parameters
    ----------
    body : Body
        K.
    factor : float
        Finite and above 0.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> K = gd.bodies.Scaled(gd.bodies.CrossPolytope(2), 3.0)
    >>> K.gauge(np.array([[1.0, 2.0]])).tolist()
    [1.0]
    >>> round(K.volume(), 6)
    18.0
    """

    body: Body
    factor: float

    def __post_init__(self) -> None:
        checked_body(self.body)
        object.__setattr__(self, "factor", positive(self.factor, "factor"))

    def _summary(self) -> str:
        return f"{self.factor:g} times {self.body!r}"

    @property
    def dimension(self) -> int:
        return self.body.dimension

    @property
    def symmetric(self) -> bool:
        return self.body.symmetric

    def implements(self, verb: Verb) -> bool:
        return self.body.implements(verb)

    def support(self, directions: FloatArray) -> FloatArray:
        return self.factor * self.body.support(directions)

    def breadth(self, directions: FloatArray) -> FloatArray:
        return self.factor * self.body.breadth(directions)

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

    def affine_hull(self) -> AffineHull:
        hull = self.body.affine_hull()
        return AffineHull(self.factor * hull.offset, hull.basis)

    def sample_uniform(self, n: int, rng: np.random.Generator) -> FloatArray:
        return self.factor * self.body.sample_uniform(n, rng)

    def centroid(self) -> FloatArray:
        return self.factor * self.body.centroid()

    def second_moment(self) -> FloatArray:
        """Second moment of K times factor^2."""
        return self.factor**2 * self.body.second_moment()

    def volume(self) -> float:
        """Volume of K times factor^r, where r is the dimension of the affine hull of K."""
        rank = self.body.affine_hull().dimension
        return math.exp(math.log(self.body.volume()) + rank * math.log(self.factor))

    def vertex_list(self) -> FloatArray:
        return self.factor * self.body.vertex_list()

    def cvxpy_constraints(self, variable: Any) -> list[Any]:
        return self.body.cvxpy_constraints(variable / self.factor)

    def half_diameter(self) -> float:
        return self.factor * self.body.half_diameter()

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
        K in R^m.

    Returns
    -------
    Body
        The closed form (`Body.difference`) if there is one; else 2 K for a K known to be symmetric,
        and the wrapper `Difference` for any other K.

    Raises
    ------
    ValueError
        If `body` is not a `Body`.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> gd.difference_body(gd.bodies.Ball(3))
    Ball(radius 2 in R^3)
    >>> triangle = gd.bodies.VPolytope([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> hexagon = gd.difference_body(triangle)
    >>> hexagon
    Difference(of VPolytope(3 points in R^2) in R^2)
    >>> hexagon.gauge(np.array([[1.0, -1.0], [1.0, 1.0]])).round(6).tolist()
    [1.0, 2.0]
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
        K in R^m.

    Returns
    -------
    Body
        The closed form (`Body.symmetric_hull`) if there is one; else K itself for a K known to be
        symmetric, and the wrapper `SymmetricHull` for any other K.

    Raises
    ------
    ValueError
        If `body` is not a `Body`.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> segment = gd.bodies.VPolytope([[1.0, 0.0], [0.0, 1.0]])
    >>> square = gd.bodies.symmetric_hull(segment)
    >>> square.gauge(np.array([[0.5, -0.5], [1.0, 1.0]])).round(6).tolist()
    [1.0, 2.0]
    """
    closed = checked_body(body).symmetric_hull()
    if closed is not None:
        return closed
    return body if body.symmetric else SymmetricHull(body)
