"""Linear images of bodies, and shifted bodies."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from geomdp._numerics.linalg import RANK_TOLERANCE, AffineHull, significant
from geomdp._typing import BoolArray, FloatArray
from geomdp.bodies.base import MEMBERSHIP_TOLERANCE, Body, checked_body
from geomdp.bodies.oracles import (
    ROUNDING,
    Facets,
    Halfspace,
    MissingOracle,
    SupportFunction,
    Verb,
    frozen_array,
    off_hull,
    off_span,
)
from geomdp.bodies.symmetrised import difference_body, symmetric_hull

#: Verbs (methods of `Body`) of a linear image of K that need a matrix that is one-to-one on the
#: affine hull of K.
_PULLED_BACK = frozenset(
    {
        Body.gauge,
        Body.facets,
        Body.contains,
        Body.chord,
        Body.sample_uniform,
        Body.centroid,
        Body.second_moment,
        Body.volume,
    }
)


@dataclass(frozen=True, eq=False)
class LinearImage(Body):
    """The image {matrix @ x : x in K} in R^p of a body K in R^m.

    A verb of the image calls the same verb of K. `gauge`, `facets`, `contains`, `chord`,
    `sample_uniform`, `centroid`, `second_moment` and `volume` need a matrix that is one-to-one on
    the affine hull of K, but not necessarily on R^m. `project` needs a matrix that multiplies all
    lengths within the hull by the same number above 0.

    Parameters
    ----------
    matrix : (p, m) array
        Any finite matrix.
    body : Body
        K.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> A = np.array([[1.0, 1.0], [0.0, 1.0]])
    >>> image = gd.bodies.LinearImage(A, gd.bodies.Box.centred([1.0, 1.0]))
    >>> image.support(np.array([[1.0, 0.0]])).tolist()
    [2.0]
    >>> image.contains(np.array([[2.0, 1.0], [2.0, -1.0]])).tolist()
    [True, False]
    >>> round(image.volume(), 6)
    4.0
    """

    matrix: FloatArray
    body: Body

    def __post_init__(self) -> None:
        checked_body(self.body)
        matrix = frozen_array(self.matrix, "matrix", ndim=2)
        if matrix.shape[0] == 0 or matrix.shape[1] != self.body.dimension:
            raise ValueError(
                f"matrix must have shape (p, {self.body.dimension}), p >= 1, got {matrix.shape}"
            )
        object.__setattr__(self, "matrix", matrix)

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
        """Matrix (m, p) that maps the image of each direction of K's hull back to this direction.

        Raises `MissingOracle` if the matrix is not one-to-one on the affine hull of K.
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
        """The support function of K at matrix^T u, for each direction u."""
        return self.body.support(directions @ self.matrix)

    def breadth(self, directions: FloatArray) -> FloatArray:
        return self.body.breadth(directions @ self.matrix)

    def extreme_point(self, directions: FloatArray) -> FloatArray:
        return np.asarray(self.body.extreme_point(directions @ self.matrix) @ self.matrix.T)

    def gauge(self, points: FloatArray) -> FloatArray:
        """Gauge of K at `inverse` @ x for each point x; inf outside the span of the image."""
        outside = off_span(points, self.affine_hull().basis, self.radius())
        return np.where(outside, np.inf, self.body.gauge(points @ self.inverse.T))

    def facets(self, points: FloatArray) -> Facets:
        """Facets of K at `inverse` @ x; normals are multiplied by `inverse`^T."""
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
        low, high = np.zeros(len(points)), np.zeros(len(points))
        low[along], high[along] = self.body.chord(
            self._pull_back(points[along]), directions[along] @ self.inverse.T
        )
        return low, high

    def project(self, points: FloatArray) -> FloatArray:
        """`MissingOracle` unless the matrix multiplies all lengths within K's hull alike."""
        if self._stretch is None:
            raise MissingOracle(self, "project", "a matrix that scales all lengths by one factor")
        return np.asarray(self.body.project(self._pull_back(points)) @ self.matrix.T)

    def radius(self) -> float:
        """Upper bound: ||A|| radius(K) if K is symmetric, else ||A o|| + 2 ||A|| radius(K).

        o is the offset of K's `affine_hull`, and ||A|| the norm of the matrix A on the hull's
        directions.
        """
        if self.symmetric:
            return float(self._factors[1].max(initial=0.0) * self.body.radius())
        centre = np.linalg.norm(self.matrix @ self._inner_hull.offset)
        return float(centre + 2 * self._factors[1].max(initial=0.0) * self.body.radius())

    def affine_hull(self) -> AffineHull:
        left = np.ascontiguousarray(self._factors[0])
        return AffineHull(self.matrix @ self._inner_hull.offset, left)

    def sample_uniform(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Images of uniform points of K, as exact as K's sampler is (SAM-4)."""
        self._check_one_to_one()
        return np.asarray(self.body.sample_uniform(n, rng) @ self.matrix.T)

    def centroid(self) -> FloatArray:
        self._check_one_to_one()
        return np.asarray(self.matrix @ self.body.centroid())

    def second_moment(self) -> FloatArray:
        """matrix S matrix^T for the second moment S of K."""
        self._check_one_to_one()
        return np.asarray(self.matrix @ self.body.second_moment() @ self.matrix.T)

    def volume(self) -> float:
        """Volume of K times the product of the matrix's singular values on the hull of K."""
        self._check_one_to_one()
        return float(self.body.volume() * np.prod(self._factors[1]))

    def vertex_list(self) -> FloatArray:
        return np.asarray(self.body.vertex_list() @ self.matrix.T)

    def cvxpy_constraints(self, variable: Any) -> list[Any]:
        import cvxpy as cp

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
        """Largest gauge of K over the preimage; None if K has none, or without `inverse`."""
        if not self.one_to_one:
            return None
        inverse = self.inverse
        return self.body.largest_gauge(lambda directions: support(directions @ inverse))


#: Verbs (methods of `Body`) whose results for a body K depend on the position of 0 in K. So the
#: shifted body cannot use these results. It derives `gauge` from `chord`, and has no `facets`.
ABOUT_THE_ORIGIN = frozenset({Body.gauge, Body.facets})


@dataclass(frozen=True, eq=False)
class Shifted(Body):
    """The body K + offset; its gauge is derived from `chord`, because a shift changes gauges.

    Parameters
    ----------
    body : Body
        K.
    offset : (m,) array
        The shift; finite.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> K = gd.bodies.Shifted(gd.bodies.Ball(2), [3.0, 0.0])
    >>> K.centroid().tolist()
    [3.0, 0.0]
    >>> K.contains(np.array([[3.5, 0.5], [0.0, 0.0]])).tolist()
    [True, False]
    """

    body: Body
    offset: FloatArray

    def __post_init__(self) -> None:
        checked_body(self.body)
        offset = frozen_array(self.offset, "offset", ndim=1)
        if offset.shape != (self.body.dimension,):
            raise ValueError(f"offset must have shape ({self.body.dimension},), got {offset.shape}")
        object.__setattr__(self, "offset", offset)

    def _summary(self) -> str:
        return f"a shift of {self.body!r}"

    @property
    def dimension(self) -> int:
        return self.body.dimension

    @property
    def symmetric(self) -> bool:
        return self.body.symmetric and not self.offset.any()

    def implements(self, verb: Verb) -> bool:
        """Whether K implements the verb; False for `gauge` and `facets`."""
        return verb not in ABOUT_THE_ORIGIN and self.body.implements(verb)

    def support(self, directions: FloatArray) -> FloatArray:
        return np.asarray(self.body.support(directions) + directions @ self.offset)

    def breadth(self, directions: FloatArray) -> FloatArray:
        return self.body.breadth(directions)

    def extreme_point(self, directions: FloatArray) -> FloatArray:
        return self.body.extreme_point(directions) + self.offset

    def contains(self, points: FloatArray, tolerance: float = MEMBERSHIP_TOLERANCE) -> BoolArray:
        return self.body.contains(points - self.offset, tolerance)

    def separate(self, point: FloatArray) -> Halfspace | None:
        found = self.body.separate(point - self.offset)
        if found is None:
            return None
        return Halfspace(found.normal, found.offset + float(found.normal @ self.offset))

    def chord(self, points: FloatArray, directions: FloatArray) -> tuple[FloatArray, FloatArray]:
        return self.body.chord(points - self.offset, directions)

    def project(self, points: FloatArray) -> FloatArray:
        return self.body.project(points - self.offset) + self.offset

    def radius(self) -> float:
        """Upper bound on the radius: the radius of K plus the length of the offset."""
        return self.body.radius() + float(np.linalg.norm(self.offset))

    def affine_hull(self) -> AffineHull:
        hull = self.body.affine_hull()
        return AffineHull(hull.offset + self.offset, hull.basis)

    def sample_uniform(self, n: int, rng: np.random.Generator) -> FloatArray:
        return self.body.sample_uniform(n, rng) + self.offset

    def centroid(self) -> FloatArray:
        return self.body.centroid() + self.offset

    def second_moment(self) -> FloatArray:
        """S + c o^T + o c^T + o o^T; K has second moment S and centroid c, and o is the offset."""
        cross = np.outer(self.body.centroid(), self.offset)
        square = np.outer(self.offset, self.offset)
        return np.asarray(self.body.second_moment() + cross + cross.T + square)

    def volume(self) -> float:
        return self.body.volume()

    def vertex_list(self) -> FloatArray:
        return self.body.vertex_list() + self.offset

    def cvxpy_constraints(self, variable: Any) -> list[Any]:
        return self.body.cvxpy_constraints(variable - self.offset)

    def half_diameter(self) -> float:
        return self.body.half_diameter()

    def difference(self) -> Body:
        return difference_body(self.body)

    def width_rule(self) -> tuple[float, Body]:
        return 1.0, self.body
