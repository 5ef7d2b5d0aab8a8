"""The convex body: a few batched verbs, what each means, and how a missing one is derived.

A body implements only the verbs it does well. The rest is derived here, in this order, and raises
`MissingOracle` when no route is left:

============  =================================================================================
verb          derived from
============  =================================================================================
support       `extreme_point`: <u, x*(u)>
breadth       `support` at u and -u
contains      `gauge` <= 1 if the body holds 0 in its relative interior; `project`: distance 0;
              `separate`: no separator
gauge         `chord` through 0, if the body holds 0
separate      `facets`, if the body holds 0 in its relative interior; `project`: the halfspace at
              the nearest point
chord         `contains`: bisection to a relative 1e-12 inside the ball of radius `radius`
radius        `support` along the axes: the half-diagonal of the bounding box (an upper bound)
centroid      0 for a symmetric body
others        not derived
============  =================================================================================

Every verb is batched: points and directions are (b, m) float64, results (b,) or (b, m).
"""

from __future__ import annotations

import abc
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from geomdp._linalg import AffineHull
from geomdp._typing import BoolArray, FloatArray
from geomdp._validation import batch, vector
from geomdp.bodies.arguments import rays

#: Default slack of `contains`, relative to the body's own scale (gauge or radius).
MEMBERSHIP_TOLERANCE = 1e-9
#: Bisection stops when the bracket is this share of the chord's upper bound.
BISECTION_TOLERANCE = 1e-12


class MissingOracle(TypeError):  # noqa: N818 (a name given by the design)
    """A body was asked for something it neither implements nor lets us derive."""

    def __init__(self, body: object, verb: str, needed: str) -> None:
        super().__init__(f"{type(body).__name__} has no {verb}: it would need {needed}")


@dataclass(frozen=True)
class Halfspace:
    """The set {x : <normal, x> <= offset} in R^m."""

    normal: FloatArray
    offset: float


@dataclass(frozen=True)
class Facets:
    """Where rays from 0 leave a body: gauges and the supporting halfspaces there.

    Parameters
    ----------
    gauges : (b,) array
        ||x||_K of each point x; inf off the span of K.
    normals : (b, m) array
        A z with h_K(z) <= 1 and <z, x> = ||x||_K for each x in the span of K.
    """

    gauges: FloatArray
    normals: FloatArray


@runtime_checkable
class HasSupport(Protocol):
    """Anything with a support function."""

    @property
    def dimension(self) -> int:
        """Dimension m."""
        ...

    def support(self, directions: FloatArray) -> FloatArray:
        """Support function of each row of (b, m): (b,)."""
        ...


@runtime_checkable
class HasExtremePoint(HasSupport, Protocol):
    """Anything with a linear maximisation oracle."""

    def extreme_point(self, directions: FloatArray) -> FloatArray:
        """A maximiser for each row of (b, m): (b, m)."""
        ...


@runtime_checkable
class HasGauge(Protocol):
    """Anything with a gauge (Minkowski functional)."""

    @property
    def dimension(self) -> int:
        """Dimension m."""
        ...

    def gauge(self, points: FloatArray) -> FloatArray:
        """Gauge of each row of (b, m): (b,)."""
        ...


class Body(abc.ABC):
    """A non-empty, closed, bounded convex set in R^m.

    Concrete bodies are frozen dataclasses that derive from this class directly and override the
    verbs they do well; variation is wrapping, not inheritance. `implements` tells which verbs a
    body has of its own (for a wrapper: which its inner body can serve).
    """

    @property
    @abc.abstractmethod
    def dimension(self) -> int:
        """Dimension m of the surrounding space."""

    @property
    def effective_dimension(self) -> int:
        """Dimension of the affine hull."""
        return self.affine_hull().dimension if self.implements("affine_hull") else self.dimension

    @property
    def symmetric(self) -> bool:
        """Whether the body equals its reflection -K, as known from its construction."""
        return False

    @property
    def finitely_generated(self) -> bool:
        """Whether the body is known to be the hull of finitely many points."""
        return self.implements("vertex_list")

    def implements(self, verb: str) -> bool:
        """Whether `verb` is the body's own rather than derived or missing."""
        return getattr(type(self), verb) is not getattr(Body, verb)

    def support(self, directions: FloatArray) -> FloatArray:
        """Support function h(u) = max over x in K of <u, x>, for each row of (b, m): (b,)."""
        directions = batch(directions, self.dimension, "directions")
        if not self.implements("extreme_point"):
            raise MissingOracle(self, "support", "extreme_point")
        return np.asarray(np.einsum("bm,bm->b", directions, self.extreme_point(directions)))

    def breadth(self, directions: FloatArray) -> FloatArray:
        """h(u) + h(-u) = max - min over x in K of <u, x>, for each row u of (b, m): (b,)."""
        above = self.support(directions)
        return above + (above if self.symmetric else self.support(-directions))

    def extreme_point(self, directions: FloatArray) -> FloatArray:
        """A maximiser over K of <u, x> for each row u of (b, m): (b, m)."""
        del directions
        raise MissingOracle(self, "extreme_point", "its own linear maximisation")

    def gauge(self, points: FloatArray) -> FloatArray:
        """Gauge ||x||_K = min{t >= 0 : x in tK} of each row of (b, m): (b,); inf if no t exists.

        Defined for bodies with 0 in the relative interior.
        """
        points = batch(points, self.dimension, "points")
        if not self.implements("chord"):
            raise MissingOracle(self, "gauge", "chord")
        if not self.contains(np.zeros((1, self.dimension)))[0]:
            raise ValueError(f"{self!r} does not hold 0: it has no gauge")
        result = np.zeros(len(points))
        moving = points.any(axis=1)
        if moving.any():
            rays = points[moving]
            _, high = self.chord(np.zeros_like(rays), rays)
            with np.errstate(divide="ignore"):
                result[moving] = 1.0 / np.maximum(high, 0.0)
        return result

    def contains(self, points: FloatArray, tolerance: float = MEMBERSHIP_TOLERANCE) -> BoolArray:
        """Whether each row of (b, m) lies in K, up to `tolerance` relative to K's scale: (b,)."""
        points = batch(points, self.dimension, "points")
        if self.implements("gauge"):
            return np.asarray(self.gauge(points) <= 1 + tolerance)
        if self.implements("project"):
            distance = np.linalg.norm(points - self.project(points), axis=1)
            return np.asarray(distance <= tolerance * self.radius())
        if self.implements("separate"):
            return np.array([self.separate(point) is None for point in points], dtype=bool)
        raise MissingOracle(self, "contains", "gauge, project or separate")

    def separate(self, point: FloatArray) -> Halfspace | None:
        """A halfspace that holds K but not `point` (m,), or None if `point` is in K."""
        point = vector(point, self.dimension, "point")
        if self.implements("facets"):
            return self._halfspace(point)
        if not self.implements("project"):
            raise MissingOracle(self, "separate", "facets or project")
        nearest = self.project(point[None])[0]
        normal = point - nearest
        if np.linalg.norm(normal) <= MEMBERSHIP_TOLERANCE * self.radius():
            return None
        return Halfspace(normal, float(normal @ nearest))

    def _halfspace(self, point: FloatArray) -> Halfspace | None:
        """Separator from `facets`; off the span, the residual is the normal."""
        basis = self.affine_hull().basis
        residual = point - basis @ (basis.T @ point)
        if np.linalg.norm(residual) > MEMBERSHIP_TOLERANCE * self.radius():
            return Halfspace(residual, 0.0)
        found = self.facets((point - residual)[None])
        if found.gauges[0] <= 1 + MEMBERSHIP_TOLERANCE:
            return None
        return Halfspace(found.normals[0], 1.0)

    def facets(self, points: FloatArray) -> Facets:
        """Gauge and supporting normal at each row of (b, m), for bodies with 0 inside."""
        del points
        raise MissingOracle(self, "facets", "its own polar oracle")

    def chord(self, points: FloatArray, directions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Ends (lo, hi), lo <= 0 <= hi, of {t : x + t u in K} for rows x in K, u != 0: 2 x (b,)."""
        points, directions = rays(points, directions, self.dimension)
        if not any(self.implements(verb) for verb in ("contains", "gauge", "project", "separate")):
            raise MissingOracle(self, "chord", "contains, gauge, project or separate")
        reach = 2 * self.radius() / np.linalg.norm(directions, axis=1)
        ends = [self._bisect(points, sign * directions, reach) for sign in (-1.0, 1.0)]
        return -ends[0], ends[1]

    def _bisect(self, points: FloatArray, directions: FloatArray, reach: FloatArray) -> FloatArray:
        low, high = np.zeros(len(points)), reach.copy()
        while ((high - low) > BISECTION_TOLERANCE * reach).any():
            middle = (low + high) / 2
            inside = self.contains(points + middle[:, None] * directions, tolerance=0.0)
            low, high = np.where(inside, middle, low), np.where(inside, high, middle)
        return low

    def project(self, points: FloatArray) -> FloatArray:
        """Nearest points of K in Euclidean norm, in closed form, to rows of (b, m): (b, m)."""
        del points
        raise MissingOracle(self, "project", "a closed form (see geomdp.project)")

    def radius(self) -> float:
        """An upper bound on max over x in K of ||x||_2 (the maximum itself where cheap)."""
        axes = np.eye(self.dimension)
        corner = np.maximum(self.support(axes), self.support(-axes))
        return float(np.linalg.norm(corner))

    def affine_hull(self) -> AffineHull:
        """Affine hull of K; by default the whole space."""
        return AffineHull.whole_space(self.dimension)

    def sample_uniform(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Exact independent uniform points (n, m), uniform within the affine hull of K."""
        del n, rng
        raise MissingOracle(self, "sample_uniform", "an exact sampler")

    def centroid(self) -> FloatArray:
        """E[x] (m,) for x uniform on K (within its affine hull), in closed form."""
        if not self.symmetric:
            raise MissingOracle(self, "centroid", "a closed form")
        return np.zeros(self.dimension)

    def second_moment(self) -> FloatArray:
        """E[x x^T] (m, m) for x uniform on K (within its affine hull), in closed form."""
        raise MissingOracle(self, "second_moment", "a closed form")

    def volume(self) -> float:
        """Volume of K within its affine hull, in closed form."""
        raise MissingOracle(self, "volume", "a closed form (see geomdp.volume)")

    def vertex_list(self) -> FloatArray:
        """Points (N, m) whose hull is K, where K carries or can write out such a list."""
        raise MissingOracle(self, "vertex_list", "a list of points whose hull it is")

    def cvxpy_constraints(self, variable: Any) -> list[Any]:
        """CVXPY constraints that hold iff the (m,) expression `variable` lies in K."""
        del variable
        raise MissingOracle(self, "cvxpy_constraints", "a conic representation")
