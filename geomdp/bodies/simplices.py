"""Simplices and their difference bodies, with closed forms from barycentric coordinates."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.lib.stride_tricks import sliding_window_view

from geomdp._numerics.linalg import RANK_TOLERANCE, AffineHull, significant
from geomdp._typing import BoolArray, FloatArray
from geomdp._validation import whole
from geomdp.bodies.balls import CrossPolytope, regular_simplex_width
from geomdp.bodies.base import (
    MEMBERSHIP_TOLERANCE,
    Body,
    Facets,
    Halfspace,
    MissingOracle,
    Verb,
    cp,
    freeze,
    holds_origin,
    nearest_in_simplex,
    off_hull,
    off_span,
    ratio_test,
)
from geomdp.bodies.products import LinearImage
from geomdp.bodies.symmetrised import Difference, SymmetricHull
from geomdp.bodies.vpolytope import VPolytope


class Barycentric:
    """The coordinates y(x) = 1/(r+1) + linear @ (x - centre) of x on r + 1 vertices with mean
    `centre`.
    """

    def __init__(self, vertices: FloatArray) -> None:
        # The mean of equal numbers can be rounded to another number.
        same = np.ptp(vertices, axis=0) == 0
        self.centre = np.where(same, vertices[0], vertices.mean(axis=0))
        centred = (vertices - self.centre).T
        # The columns add up to 0, so adding a number to all weights does not change the weighted
        # sum. The weights of least norm therefore add up to 0.
        left, singular, right = np.linalg.svd(centred, full_matrices=False)
        rank = len(vertices) - 1
        found = int(significant(singular).sum())
        if found != rank:
            raise ValueError(
                f"vertices must be affinely independent, got {len(vertices)} with affine hull of "
                f"dimension {found}"
            )
        self.basis = np.ascontiguousarray(left[:, :rank])
        self.singular = singular[:rank]
        self.linear = (right[:rank].T / self.singular) @ self.basis.T

    def weights(self, points: FloatArray) -> FloatArray:
        """Barycentric coordinates (b, r + 1) of the nearest points of the affine hull."""
        return np.asarray(1 / len(self.linear) + (points - self.centre) @ self.linear.T)


@dataclass(frozen=True, eq=False)
class BarycentricBody(Body):
    """Base class of a simplex and of its difference body; stores the vertices of the simplex."""

    vertices: FloatArray  # (r + 1, m), affinely independent

    def __post_init__(self) -> None:
        vertices = freeze(self, "vertices", ndim=2)
        if 0 in vertices.shape or vertices.shape[0] > vertices.shape[1] + 1:
            shapes = f"(r + 1, m) with 0 <= r <= m, m >= 1, got {vertices.shape}"
            raise ValueError(f"vertices must have shape {shapes}")

    @classmethod
    def at_units(cls, count: int) -> Self:
        """The body of e_1, ..., e_count in O(count) memory, as a view of 2 count - 1 numbers."""
        body = object.__new__(cls)
        sequence = np.zeros(2 * whole(count, "count", minimum=1) - 1)
        sequence[count - 1] = 1.0
        object.__setattr__(body, "vertices", sliding_window_view(sequence, count)[::-1])
        vars(body)["_at_units"] = True
        return body

    def _summary(self) -> str:
        return f"{len(self.vertices)} vertices"

    @cached_property
    def _map(self) -> Barycentric:
        return Barycentric(self.vertices)

    @cached_property
    def _at_units(self) -> bool:
        """Whether the vertices are the unit vectors e_1, ..., e_(r+1), in this order."""
        rows, columns = self.vertices.shape
        if rows != columns or not (np.diagonal(self.vertices) == 1).all():
            return False
        return bool(np.count_nonzero(self.vertices) == rows)

    @cached_property
    def constant(self) -> BoolArray:
        """Array (m,) that says which coordinates are the same at all vertices."""
        if self._at_units:
            return np.full(self.dimension, self.dimension == 1)
        return np.asarray(np.ptp(self.vertices, axis=0) == 0)

    @property
    def dimension(self) -> int:
        return int(self.vertices.shape[1])

    @property
    def effective_dimension(self) -> int:
        return len(self.vertices) - 1 if self._at_units else self.affine_hull().dimension


def log_simplex_volume(singular: FloatArray) -> float:
    """Logarithm of the volume, from the singular values of the vertices minus their mean."""
    rank = len(singular)
    gram = math.log(rank + 1) / 2 + float(np.log(singular).sum())
    return gram - math.lgamma(rank + 1)


@dataclass(frozen=True, eq=False)
class Simplex(BarycentricBody):
    """The hull of r + 1 affinely independent points v_0, ..., v_r in R^m.

    The methods use the weights (barycentric coordinates) of a point, and cost O(m r) per point.
    Uniform points are exact: their weights are Dirichlet(1, ..., 1). `project` needs the unit
    vectors as vertices.

    Parameters
    ----------
    vertices : (r + 1, m) array
        Finite; rows are the vertices, r <= m. The simplex is lower-dimensional if r < m, and a
        point if r = 0.

    Raises
    ------
    ValueError
        At first use: if the vertices are affinely dependent.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> simplex = gd.bodies.Simplex(np.eye(3))
    >>> simplex.effective_dimension
    2
    >>> simplex.project([[0.9, 0.4, -0.3]]).round(6).tolist()
    [[0.75, 0.25, 0.0]]
    """

    @cached_property
    def _origin_weights(self) -> FloatArray:
        """Barycentric coordinates (r + 1,) of the point of the affine hull nearest to 0."""
        return np.asarray(self._map.weights(np.zeros((1, self.dimension)))[0])

    @cached_property
    def _has_gauge(self) -> bool:
        inside = holds_origin(self.affine_hull(), self.radius())
        return inside and bool(self._origin_weights.min() > RANK_TOLERANCE)

    def support(self, directions: FloatArray) -> FloatArray:
        return np.asarray((directions @ self.vertices.T).max(axis=1))

    def extreme_point(self, directions: FloatArray) -> FloatArray:
        return np.asarray(self.vertices[(directions @ self.vertices.T).argmax(axis=1)])

    def gauge(self, points: FloatArray) -> FloatArray:
        """max_i -(L x)_i / y_i(0) for the weights y(x) = y(0) + L x."""
        gauges = (-points @ self._map.linear.T / self._origin_weights).max(axis=1)
        outside = off_span(points, self._map.basis, self.radius())
        return np.where(outside, np.inf, np.maximum(gauges, 0.0))

    def facets(self, points: FloatArray) -> Facets:
        """Normals of the facets of the weights that vanish first along the rays."""
        gauges = self.gauge(points)
        slopes = -self._map.linear / self._origin_weights[:, None]
        winners = (points @ slopes.T).argmax(axis=1)
        return Facets(gauges, slopes[winners])

    def contains(self, points: FloatArray, tolerance: float = MEMBERSHIP_TOLERANCE) -> BoolArray:
        """Whether x is in the affine hull and no weight is negative, both up to `tolerance`."""
        slack = max(tolerance, RANK_TOLERANCE) * self.radius()
        inside = self._map.weights(points).min(axis=1) >= -tolerance
        return np.asarray(inside & ~off_hull(points, self.affine_hull(), slack))

    @cached_property
    def _polytope(self) -> VPolytope:
        return VPolytope(self.vertices)

    def separate(self, point: FloatArray) -> Halfspace | None:
        return self._polytope.separate(point)

    def chord(self, points: FloatArray, directions: FloatArray) -> tuple[FloatArray, FloatArray]:
        weights = np.maximum(self._map.weights(points), 0.0)
        slopes = -directions @ self._map.linear.T
        return ratio_test(weights, slopes, off_span(directions, self._map.basis))

    def implements(self, verb: Verb) -> bool:
        own = super().implements(verb)
        return own and (verb is not Body.project or self._at_units)

    def project(self, points: FloatArray) -> FloatArray:
        """``MissingOracle`` unless the vertices are the unit vectors."""
        if not self._at_units:
            raise MissingOracle(self, "project", "unit vectors as vertices (see geomdp.project)")
        return nearest_in_simplex(points, 1.0)

    def radius(self) -> float:
        return float(np.linalg.norm(self.vertices, axis=1).max())

    def affine_hull(self) -> AffineHull:
        return AffineHull(self._map.centre, self._map.basis)

    def sample_uniform(self, n: int, rng: np.random.Generator) -> FloatArray:
        weights = rng.standard_exponential((n, len(self.vertices)))
        weights /= weights.sum(axis=1, keepdims=True)
        # The weights add up to 1 only up to rounding.
        return np.where(self.constant, self.vertices[0], weights @ self.vertices)

    def centroid(self) -> FloatArray:
        return np.array(self._map.centre)

    def second_moment(self) -> FloatArray:
        return self.covariance() + np.outer(self._map.centre, self._map.centre)

    def covariance(self) -> FloatArray:
        """sum (v_i - c)(v_i - c)^T / ((r + 1) (r + 2)) for the mean c of the vertices (JL-L14),
        without the rounding errors of second moments of a c far from 0.
        """
        centred, count = self.vertices - self._map.centre, len(self.vertices)
        return np.asarray(centred.T @ centred / (count * (count + 1)))

    def volume(self) -> float:
        """sqrt(r + 1) / r! times the product of the singular values of the centred vertices."""
        return math.exp(log_simplex_volume(self._map.singular))

    def vertex_list(self) -> FloatArray:
        return self.vertices

    def difference(self) -> Body:
        return SimplexDifference(self.vertices)

    def symmetric_hull(self) -> Body | None:
        """An image of the cross-polytope if the vertices are linearly independent; else None."""
        count = len(self.vertices)
        if SymmetricHull(self).affine_hull().dimension < count:
            return None
        return LinearImage(np.array(self.vertices.T), CrossPolytope(count))

    def linear_image(self, matrix: FloatArray) -> Body:
        return VPolytope(self.vertices @ matrix.T)

    def gaussian_width(self) -> float | None:
        return regular_simplex_width(self.vertices)


@dataclass(frozen=True, eq=False)
class SimplexDifference(BarycentricBody):
    """The difference body K - K of the simplex K = conv(v_0, ..., v_r) in R^m.

    K - K = {sum_i y_i v_i : sum y = 0, sum y_+ <= 1} (X-SIM). It lies in the r-dimensional span of
    the differences of vertices. The weights of a point x of this span are the only y of sum 0 with
    x = sum_i y_i v_i. Chords are found by bisection; `project` is not implemented.

    Parameters
    ----------
    vertices : (r + 1, m) array
        Finite, affinely independent rows.

    Raises
    ------
    ValueError
        At the first call of `affine_hull`, `volume` or a method that needs weights, such as
        `gauge`: if the vertices are affinely dependent. `support` and `sample_uniform` do not
        check this.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> body = gd.bodies.SimplexDifference(np.eye(3))
    >>> body.gauge([[1.0, -1.0, 0.0], [1.0, -0.5, -0.5]]).round(6).tolist()
    [1.0, 1.0]
    """

    symmetric = True

    def support(self, directions: FloatArray) -> FloatArray:
        return np.asarray(np.ptp(directions @ self.vertices.T, axis=1))

    def extreme_point(self, directions: FloatArray) -> FloatArray:
        scores = directions @ self.vertices.T
        return np.asarray(
            self.vertices[scores.argmax(axis=1)] - self.vertices[scores.argmin(axis=1)]
        )

    def gauge(self, points: FloatArray) -> FloatArray:
        weights = points @ self._map.linear.T
        gauges = np.maximum(np.maximum(weights, 0).sum(axis=1), np.maximum(-weights, 0).sum(axis=1))
        return np.where(off_span(points, self._map.basis, self.radius()), np.inf, gauges)

    def facets(self, points: FloatArray) -> Facets:
        """Normals z with <z, v_i> = c + 1 where the weight y_i > 0 and c elsewhere."""
        signs = (points @ self._map.linear.T > 0).astype(np.float64)
        return Facets(self.gauge(points), signs @ self._map.linear)

    def radius(self) -> float:
        """An upper bound."""
        return 2 * float(np.linalg.norm(self.vertices - self.vertices.mean(axis=0), axis=1).max())

    def affine_hull(self) -> AffineHull:
        return AffineHull(np.zeros(self.dimension), self._map.basis)

    @cached_property
    def _cell_shares(self) -> FloatArray:
        """Shares (r,) of the volume in the cells with |I| = 1, .., r (see `sample_uniform`)."""
        rank = len(self.vertices) - 1
        total, product, shares = math.comb(2 * rank, rank), rank + 1, []
        for k in range(1, rank + 1):
            # The product is C(r+1, k) C(r-1, k-1), a whole number.
            shares.append(product / total)
            product = product * (rank + 1 - k) * (rank - k) // ((k + 1) * k)
        return np.array(shares) / math.fsum(shares)

    def sample_uniform(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Exact; a draw costs O(r) and one product with the vertices.

        The body is divided into cells, one for each partition of the vertices into non-empty sets I
        and J, of the points s (sum_I a_i v_i - sum_J b_j v_j), where 0 <= s <= 1, and a and b are
        non-negative, each of sum 1. The size |I| = k is drawn with probability C(r+1, k) C(r-1,
        k-1) / C(2r, r). Then I, a and b are uniform for this k, and s = U^(1/r) with U uniform on
        [0, 1].
        """
        count = len(self.vertices)
        rank = count - 1
        if rank == 0:
            return np.zeros((n, self.dimension))
        sizes = 1 + rng.choice(rank, size=n, p=self._cell_shares)
        positive = rng.permuted(np.arange(count) < sizes[:, None], axis=1)
        parts = rng.standard_exponential((n, count))
        above = np.where(positive, parts, 0.0)
        below = parts - above
        totals = [part.sum(axis=1, keepdims=True) for part in (above, below)]
        weights = above / totals[0] - below / totals[1]
        weights *= rng.random((n, 1)) ** (1 / rank)
        if self._at_units:
            return np.asarray(weights)
        # The weights add up to 0 only up to rounding.
        return np.where(self.constant, 0.0, weights @ self.vertices)

    def second_moment(self) -> FloatArray:
        """alpha sum (v_i - c)(v_i - c)^T, alpha = 4 (2 r + 1) / ((r + 1) (r + 2)^2), c the mean of
        the v_i.

        In the notation of `sample_uniform`, alpha r = E ||y||^2 = E[s^2] (E ||a||^2 + E ||b||^2)
        for |I| = k, with E[s^2] = r / (r + 2), E ||a||^2 = 2 / (k + 1) and E ||b||^2 = 2 / (r + 2 -
        k). The mean over k follows from Vandermonde's identity.
        """
        mean = np.where(self.constant, self.vertices[0], self.vertices.mean(axis=0))
        centred = self.vertices - mean
        if self._at_units:  # the matrix with rows v_i - c is an orthogonal projection
            return np.asarray(self._alpha * centred)
        return np.asarray(self._alpha * centred.T @ centred)

    @property
    def _alpha(self) -> float:
        """The number alpha in the docstring of `second_moment`."""
        rank = len(self.vertices) - 1
        return 4 * (2 * rank + 1) / ((rank + 1) * (rank + 2) ** 2)

    def image_moments(self, matrix: FloatArray | sp.csr_array) -> FloatArray:
        """E (T x)_j^2 (p,) for x uniform on the body and T = `matrix` (p, m), without the (m, m)
        matrix E[x x^T].
        """
        at_vertices = matrix if self._at_units else np.asarray(matrix @ self.vertices.T)
        if sp.issparse(at_vertices):
            # Subtracting the mean from each entry would make a dense matrix.
            squares = np.asarray(at_vertices.multiply(at_vertices).sum(axis=1)).ravel()
            sums = np.asarray(at_vertices.sum(axis=1)).ravel()
            return np.asarray(self._alpha * (squares - sums**2 / len(self.vertices)))
        return np.asarray(self._alpha * len(self.vertices) * at_vertices.var(axis=1))

    def volume(self) -> float:
        """C(2 r, r) vol(K) (Rogers and Shephard 1957)."""
        rank = len(self.vertices) - 1
        ratio = math.lgamma(2 * rank + 1) - 2 * math.lgamma(rank + 1)
        return math.exp(ratio + log_simplex_volume(self._map.singular))

    def cvxpy_constraints(self, variable: Any) -> list[Any]:
        above = cp.Variable(len(self.vertices), nonneg=True)
        below = cp.Variable(len(self.vertices), nonneg=True)
        image = self.vertices.T @ (above - below)
        return [variable == image, cp.sum(above) == cp.sum(below), cp.sum(above) <= 1]

    def linear_image(self, matrix: FloatArray) -> Body | None:
        """The difference body of the hull of the vertices' images; None for one row (a segment)."""
        return Difference(VPolytope(self.vertices @ matrix.T)) if len(matrix) > 1 else None

    def width_rule(self) -> tuple[float, Body]:
        return 2.0, VPolytope(self.vertices)
