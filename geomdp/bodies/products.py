"""Linear images of bodies, products in orthogonal coordinate blocks, and intersections."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import scipy

from geomdp._numerics.linalg import RANK_TOLERANCE, AffineHull, significant, spread
from geomdp._typing import BoolArray, FloatArray, IntArray
from geomdp._validation import listed
from geomdp.bodies.base import (
    MEMBERSHIP_TOLERANCE,
    ROUNDING,
    Body,
    Facets,
    Halfspace,
    MissingOracle,
    SupportFunction,
    Verb,
    checked_body,
    cp,
    freeze,
    off_hull,
    off_span,
)
from geomdp.bodies.symmetrised import difference_body, symmetric_hull

#: Verbs (methods of `Body`) of a linear image of K that need a matrix that is one-to-one on the
#: affine hull of K.
_PULLED_BACK = {Body.gauge, Body.facets, Body.contains, Body.chord}
_PULLED_BACK |= {Body.sample_uniform, Body.centroid, Body.second_moment, Body.volume}


@dataclass(frozen=True, eq=False)
class LinearImage(Body):
    """The image {matrix @ x : x in K} in R^p of a body K in R^m.

    A verb of the image calls the same verb of K. `gauge`, `facets`, `contains`, `chord`,
    `sample_uniform`, `centroid`, `second_moment` and `volume` need a matrix that is one-to-one on
    the affine hull of K, but not necessarily on R^m. `project` needs a matrix that multiplies all
    lengths within the hull by the same number above 0. Samples are as exact as K's (SAM-4).

    Parameters
    ----------
    matrix : (p, m) array
        Any finite matrix.
    body : Body
        K.

    Examples
    --------
    >>> import geomdp as gd
    >>> image = gd.bodies.LinearImage([[1.0, 1.0], [0.0, 1.0]], gd.bodies.Box.centred([1.0, 1.0]))
    >>> image.support([[1.0, 0.0]]).tolist()
    [2.0]
    """

    matrix: FloatArray
    body: Body

    def __post_init__(self) -> None:
        checked_body(self.body)
        matrix = freeze(self, "matrix", ndim=2)
        m = self.body.dimension
        if matrix.shape[0] == 0 or matrix.shape[1] != m:
            raise ValueError(f"matrix must have shape (p, {m}), p >= 1, got {matrix.shape}")

    def _summary(self) -> str:
        return f"image of {self.body!r}"

    @property
    def dimension(self) -> int:
        return int(self.matrix.shape[0])

    @property
    def symmetric(self) -> bool:
        return self.body.symmetric

    @cached_property
    def _inner_hull(self) -> AffineHull:
        return self.body.affine_hull()

    @cached_property
    def _factors(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Singular value decomposition of the matrix on K's hull, without zero singular values."""
        image = self.matrix @ self._inner_hull.basis
        left, singular, right = np.linalg.svd(image, full_matrices=False)
        kept = significant(singular)
        return left[:, kept], singular[kept], right[kept]

    @cached_property
    def one_to_one(self) -> bool:
        """Whether the matrix is one-to-one on the affine hull of K."""
        return len(self._factors[1]) == self._inner_hull.dimension

    @cached_property
    def inverse(self) -> FloatArray:
        """Matrix (m, p) that maps the image of each direction of K's hull back to this direction;
        `MissingOracle` if the matrix is not one-to-one on the affine hull of K.
        """
        self._check_one_to_one()
        left, singular, right = self._factors
        return np.asarray(self._inner_hull.basis @ (right.T / singular) @ left.T)

    def _check_one_to_one(self) -> None:
        if not self.one_to_one:
            raise MissingOracle(self, "inverse", "a matrix that is one-to-one on the body")

    @cached_property
    def _stretch(self) -> float | None:
        """The number by which the matrix multiplies all lengths in K's hull, if there is one."""
        singular = self._factors[1]
        if not self.one_to_one or len(singular) == 0:
            return None
        return float(singular.mean()) if np.ptp(singular) <= ROUNDING * singular[0] else None

    def implements(self, verb: Verb) -> bool:
        """`affine_hull` and `radius` always count; other verbs as the class states."""
        if not super().implements(verb) or not self.body.implements(verb):
            return verb in (Body.affine_hull, Body.radius)
        if verb is Body.project:
            return self._stretch is not None
        return verb not in _PULLED_BACK or self.one_to_one

    def _pull_back(self, points: FloatArray) -> FloatArray:
        """Points of the affine hull of K with images nearest to `points`."""
        offset = self._inner_hull.offset
        return np.asarray(offset + (points - self.matrix @ offset) @ self.inverse.T)

    def support(self, directions: FloatArray) -> FloatArray:
        return self.body.support(directions @ self.matrix)

    def breadth(self, directions: FloatArray) -> FloatArray:
        return self.body.breadth(directions @ self.matrix)

    def extreme_point(self, directions: FloatArray) -> FloatArray:
        return np.asarray(self.body.extreme_point(directions @ self.matrix) @ self.matrix.T)

    def gauge(self, points: FloatArray) -> FloatArray:
        outside = off_span(points, self.affine_hull().basis, self.radius())
        return np.where(outside, np.inf, self.body.gauge(points @ self.inverse.T))

    def facets(self, points: FloatArray) -> Facets:
        inverse = self.inverse
        outside = off_span(points, self.affine_hull().basis, self.radius())
        found = self.body.facets(points @ inverse.T)
        return Facets(np.where(outside, np.inf, found.gauges), found.normals @ inverse)

    def contains(self, points: FloatArray, tolerance: float = MEMBERSHIP_TOLERANCE) -> BoolArray:
        slack = max(tolerance, RANK_TOLERANCE) * self.radius()
        inside = self.body.contains(self._pull_back(points), tolerance)
        return np.asarray(inside & ~off_hull(points, self.affine_hull(), slack))

    def chord(self, points: FloatArray, directions: FloatArray) -> tuple[FloatArray, FloatArray]:
        along = ~off_span(directions, self.affine_hull().basis)
        starts, ways = self._pull_back(points[along]), directions[along] @ self.inverse.T
        low, high = spread(np.array(self.body.chord(starts, ways)), along)
        return low, high

    def project(self, points: FloatArray) -> FloatArray:
        if self._stretch is None:
            raise MissingOracle(self, "project", "a matrix that scales all lengths by one factor")
        return np.asarray(self.body.project(self._pull_back(points)) @ self.matrix.T)

    def radius(self) -> float:
        """Upper bound: ||A|| radius(K) if K is symmetric, else ||A o|| + 2 ||A|| radius(K), for the
        offset o of K's hull and the norm of the matrix A on the hull's directions.
        """
        if self.symmetric:
            return float(self._factors[1].max(initial=0.0) * self.body.radius())
        centre = np.linalg.norm(self.matrix @ self._inner_hull.offset)
        return float(centre + 2 * self._factors[1].max(initial=0.0) * self.body.radius())

    def affine_hull(self) -> AffineHull:
        left = np.ascontiguousarray(self._factors[0])
        return AffineHull(self.matrix @ self._inner_hull.offset, left)

    def sample_uniform(self, n: int, rng: np.random.Generator) -> FloatArray:
        self._check_one_to_one()
        return np.asarray(self.body.sample_uniform(n, rng) @ self.matrix.T)

    def centroid(self) -> FloatArray:
        self._check_one_to_one()
        return np.asarray(self.matrix @ self.body.centroid())

    def second_moment(self) -> FloatArray:
        self._check_one_to_one()
        return np.asarray(self.matrix @ self.body.second_moment() @ self.matrix.T)

    def volume(self) -> float:
        """Volume of K times the product of the matrix's singular values on the hull of K."""
        self._check_one_to_one()
        return float(self.body.volume() * np.prod(self._factors[1]))

    def vertex_list(self) -> FloatArray:
        return np.asarray(self.body.vertex_list() @ self.matrix.T)

    def cvxpy_constraints(self, variable: Any) -> list[Any]:
        inner = cp.Variable(self.body.dimension)
        return [variable == self.matrix @ inner, *self.body.cvxpy_constraints(inner)]

    def difference(self) -> Body:
        return LinearImage(self.matrix, difference_body(self.body))

    def symmetric_hull(self) -> Body:
        return LinearImage(self.matrix, symmetric_hull(self.body))

    def linear_image(self, matrix: FloatArray) -> Body | None:
        return self.body.linear_image(matrix @ self.matrix)

    def width_rule(self) -> tuple[float, Body]:
        """(c, K) if the matrix A scales lengths in K's hull by c, because w(AK) = c w(K)."""
        return (1.0, self) if self._stretch is None else (self._stretch, self.body)

    def largest_gauge(self, support: SupportFunction) -> float | None:
        if not self.one_to_one:
            return None
        inverse = self.inverse
        return self.body.largest_gauge(lambda directions: support(directions @ inverse))


Result = TypeVar("Result")


@dataclass(frozen=True, eq=False)
class OfBodies(Body):
    """Base class of products and intersections."""

    bodies: Sequence[Body]

    def __post_init__(self) -> None:
        bodies = listed(self.bodies, "bodies")
        if not bodies or not all(isinstance(body, Body) for body in bodies):
            raise ValueError(f"bodies must be a sequence of at least one Body, got {bodies!r}")
        object.__setattr__(self, "bodies", bodies)

    @property
    def symmetric(self) -> bool:
        return all(body.symmetric for body in self.bodies)


@dataclass(frozen=True, eq=False)
class Product(OfBodies):
    """The product K_1 x ... x K_s = {(x_1, ..., x_s) : x_i in K_i} in R^(m_1 + ... + m_s).

    A verb of the product uses the same verb of the factors; a gauge is the largest of the
    factors', and samples are exact if the factors' are. `facets` and `vertex_list` are not
    implemented.

    Parameters
    ----------
    bodies : sequence of Body
        The factors, at least one.

    Examples
    --------
    >>> import geomdp as gd
    >>> cylinder = gd.bodies.Product([gd.bodies.Ball(2), gd.bodies.Box([0.0], [3.0])])
    >>> cylinder.support([[3.0, 4.0, 1.0]]).tolist()
    [8.0]
    """

    def _summary(self) -> str:
        return f"{len(self.bodies)} factors"

    @cached_property
    def slices(self) -> tuple[slice, ...]:
        """For each factor, the slice of its coordinates."""
        ends = np.cumsum([body.dimension for body in self.bodies])
        starts = [0, *ends[:-1]]
        return tuple(slice(int(a), int(b)) for a, b in zip(starts, ends, strict=True))

    @property
    def dimension(self) -> int:
        return int(self.slices[-1].stop)

    def implements(self, verb: Verb) -> bool:
        """All factors must implement the verb; one suffices for `affine_hull`."""
        known = (body.implements(verb) for body in self.bodies)
        return super().implements(verb) and (any(known) if verb is Body.affine_hull else all(known))

    def _each(self, verb: Callable[[Body, FloatArray], Result], rows: FloatArray) -> list[Result]:
        return [verb(K, rows[:, part]) for K, part in zip(self.bodies, self.slices, strict=True)]

    def support(self, directions: FloatArray) -> FloatArray:
        return np.asarray(np.sum(self._each(lambda K, u: K.support(u), directions), axis=0))

    def breadth(self, directions: FloatArray) -> FloatArray:
        return np.asarray(np.sum(self._each(lambda K, u: K.breadth(u), directions), axis=0))

    def extreme_point(self, directions: FloatArray) -> FloatArray:
        return np.hstack(self._each(lambda K, u: K.extreme_point(u), directions))

    def gauge(self, points: FloatArray) -> FloatArray:
        return np.asarray(np.max(self._each(lambda K, x: K.gauge(x), points), axis=0))

    def contains(self, points: FloatArray, tolerance: float = MEMBERSHIP_TOLERANCE) -> BoolArray:
        return np.asarray(np.all(self._each(lambda K, x: K.contains(x, tolerance), points), axis=0))

    def chord(self, points: FloatArray, directions: FloatArray) -> tuple[FloatArray, FloatArray]:
        low, high = np.full(len(points), -np.inf), np.full(len(points), np.inf)
        for body, part in zip(self.bodies, self.slices, strict=True):
            moving = directions[:, part].any(axis=1)
            ends = body.chord(points[moving, part], directions[moving, part])
            low[moving] = np.maximum(low[moving], ends[0])
            high[moving] = np.minimum(high[moving], ends[1])
        return low, high

    def project(self, points: FloatArray) -> FloatArray:
        return np.hstack(self._each(lambda K, x: K.project(x), points))

    def radius(self) -> float:
        """Exact if the radii of the factors are exact."""
        return math.hypot(*(body.radius() for body in self.bodies))

    def affine_hull(self) -> AffineHull:
        hulls = [body.affine_hull() for body in self.bodies]
        basis = scipy.linalg.block_diag(*(hull.basis for hull in hulls))
        return AffineHull(np.concatenate([hull.offset for hull in hulls]), basis)

    def sample_uniform(self, n: int, rng: np.random.Generator) -> FloatArray:
        return np.hstack([body.sample_uniform(n, rng) for body in self.bodies])

    def centroid(self) -> FloatArray:
        return np.concatenate([body.centroid() for body in self.bodies])

    def second_moment(self) -> FloatArray:
        moment = scipy.linalg.block_diag(*(body.second_moment() for body in self.bodies))
        if self.symmetric:
            return np.asarray(moment)
        means = scipy.linalg.block_diag(*(body.centroid()[:, None] for body in self.bodies))
        everywhere = means.sum(axis=1)
        return np.asarray(moment + np.outer(everywhere, everywhere) - means @ means.T)

    def volume(self) -> float:
        return math.prod(body.volume() for body in self.bodies)

    def cvxpy_constraints(self, variable: Any) -> list[Any]:
        return [
            constraint
            for body, part in zip(self.bodies, self.slices, strict=True)
            for constraint in body.cvxpy_constraints(variable[part])
        ]

    def half_diameter(self) -> float:
        return math.hypot(*(body.half_diameter() for body in self.bodies))

    def difference(self) -> Body:
        return Product([difference_body(body) for body in self.bodies])

    def linear_image(self, matrix: FloatArray) -> Body | None:
        """None unless all factors have one, and each row is nonzero on exactly one factor."""
        seen = np.stack([matrix[:, part].any(axis=1) for part in self.slices], axis=1)
        if (seen.sum(axis=1) != 1).any():
            return None
        images: list[Body] = []
        order: list[IntArray] = []
        for number in np.flatnonzero(seen.any(axis=0)).tolist():
            rows = np.flatnonzero(seen[:, number])
            image = self.bodies[number].linear_image(matrix[rows][:, self.slices[number]])
            if image is None:
                return None
            images.append(image)
            order.append(rows)
        places = np.concatenate(order)
        stacked = images[0] if len(images) == 1 else Product(images)
        if (places == np.arange(len(matrix))).all():
            return stacked
        # Coordinate i of `stacked` is coordinate places[i] of the image.
        return LinearImage(np.eye(len(matrix))[:, places], stacked)

    def gaussian_width(self) -> float | None:
        widths = [body.gaussian_width() for body in self.bodies]
        known = [width for width in widths if width is not None]
        return math.fsum(known) if len(known) == len(widths) else None

    def largest_gauge(self, support: SupportFunction) -> float | None:
        def largest(body: Body, part: slice) -> float | None:
            rows = np.eye(self.dimension)[part]
            return body.largest_gauge(lambda u: support(u @ rows))

        found = [largest(*factor) for factor in zip(self.bodies, self.slices, strict=True)]
        known = [gauge for gauge in found if gauge is not None]
        return max(known) if len(known) == len(found) else None


@dataclass(frozen=True, eq=False)
class Intersection(OfBodies):
    """The intersection of K_1, ..., K_s, whose interiors must have a point in common.

    Gauges, chords and membership follow from those of the parts; a gauge is the largest of
    theirs. The support function does not: each value needs a convex program. A `CvxBody` with the
    constraints of all parts has one.

    Parameters
    ----------
    bodies : sequence of Body
        The parts K_1, ..., K_s, at least one, all full-dimensional in the same R^m.

    Examples
    --------
    >>> import geomdp as gd
    >>> K = gd.bodies.Intersection([gd.bodies.Ball(2), gd.bodies.Box.centred([0.8, 0.8])])
    >>> K.gauge([[0.8, 0.0], [0.8, 0.8]]).round(4).tolist()
    [1.0, 1.1314]
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        dimensions = {body.dimension for body in self.bodies}
        if len(dimensions) > 1:
            raise ValueError(f"bodies must share one dimension, got {sorted(dimensions)}")
        flat = [body for body in self.bodies if body.effective_dimension < body.dimension]
        if flat:
            raise ValueError(f"bodies must be full-dimensional, got {flat[0]!r}")

    @property
    def dimension(self) -> int:
        return self.bodies[0].dimension

    def implements(self, verb: Verb) -> bool:
        """Gauges and CVXPY constraints need the same verb of all parts, and a chord needs a chord
        or a membership test of each; `contains`, `separate` and `radius` always count.
        """
        if verb is Body.chord:
            return all(body.implements(verb) or body.has_membership for body in self.bodies)
        if verb in (Body.gauge, Body.cvxpy_constraints):
            return all(body.implements(verb) for body in self.bodies)
        return super().implements(verb)

    def _summary(self) -> str:
        return f"{len(self.bodies)} parts"

    def gauge(self, points: FloatArray) -> FloatArray:
        return np.asarray(np.max([body.gauge(points) for body in self.bodies], axis=0))

    def contains(self, points: FloatArray, tolerance: float = MEMBERSHIP_TOLERANCE) -> BoolArray:
        return np.asarray(np.all([K.contains(points, tolerance) for K in self.bodies], axis=0))

    def separate(self, point: FloatArray) -> Halfspace | None:
        for body in self.bodies:
            found = body.separate(point)
            if found is not None:
                return found
        return None

    def chord(self, points: FloatArray, directions: FloatArray) -> tuple[FloatArray, FloatArray]:
        chords = [body.chord(points, directions) for body in self.bodies]
        low = np.max([low for low, _ in chords], axis=0)
        high = np.min([high for _, high in chords], axis=0)
        return np.asarray(low), np.asarray(high)

    def radius(self) -> float:
        """An upper bound."""
        return min(body.radius() for body in self.bodies)

    def cvxpy_constraints(self, variable: Any) -> list[Any]:
        return [each for body in self.bodies for each in body.cvxpy_constraints(variable)]
