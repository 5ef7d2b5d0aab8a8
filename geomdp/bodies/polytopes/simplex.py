"""The simplex and its difference body: every verb in closed form in barycentric coordinates."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from geomdp._linalg import RANK_TOLERANCE, AffineHull
from geomdp._typing import BoolArray, FloatArray
from geomdp._validation import batch
from geomdp.bodies.arguments import holds_origin, off_hull, off_span, rays
from geomdp.bodies.base import MEMBERSHIP_TOLERANCE, Body, Facets
from geomdp.bodies.norm_balls.positive_parts import exit_time
from geomdp.bodies.polytopes.barycentric import Barycentric, log_simplex_volume, simplex_vertices


@dataclass(frozen=True, eq=False)
class Simplex(Body):
    """The hull of r + 1 affinely independent points in R^m. O(m r) per point in all verbs.

    Parameters
    ----------
    vertices : (r + 1, m) array
        Rows are the vertices; r <= m, lower-dimensional if r < m, a point for r = 0.

    Raises
    ------
    ValueError
        Vertices that are not affinely independent (found when first needed).
    """

    vertices: FloatArray

    def __post_init__(self) -> None:
        object.__setattr__(self, "vertices", simplex_vertices(self.vertices))

    def __repr__(self) -> str:
        return f"Simplex({len(self.vertices)} vertices in dimension {self.dimension})"

    @cached_property
    def _map(self) -> Barycentric:
        return Barycentric(self.vertices)

    @cached_property
    def _origin_weights(self) -> FloatArray | None:
        """Barycentric coordinates of 0 if it is in the relative interior, else None."""
        weights = self._map.weights(np.zeros((1, self.dimension)))[0]
        inside = holds_origin(self.affine_hull(), self.radius())
        return weights if inside and weights.min() > RANK_TOLERANCE else None

    @property
    def dimension(self) -> int:
        """Dimension m of the surrounding space."""
        return int(self.vertices.shape[1])

    def implements(self, verb: str) -> bool:
        """All verbs but `project`; `gauge` and `facets` only if 0 is in the relative interior."""
        own = super().implements(verb)
        return own and (verb not in ("gauge", "facets") or self._origin_weights is not None)

    def support(self, directions: FloatArray) -> FloatArray:
        """Largest <u, v_i>."""
        directions = batch(directions, self.dimension, "directions")
        return np.asarray((directions @ self.vertices.T).max(axis=1))

    def extreme_point(self, directions: FloatArray) -> FloatArray:
        """The first vertex with the largest <u, v_i>."""
        directions = batch(directions, self.dimension, "directions")
        return np.asarray(self.vertices[(directions @ self.vertices.T).argmax(axis=1)])

    def gauge(self, points: FloatArray) -> FloatArray:
        """max_i -(L x)_i / y_i(0), where y(x) = y(0) + L x are barycentric; inf off the span.

        Raises
        ------
        ValueError
            If the simplex does not hold 0 in its relative interior.
        """
        points = batch(points, self.dimension, "points")
        gauges = (-points @ self._map.linear.T / self._checked_origin()).max(axis=1)
        return np.where(
            off_span(points, self._map.basis, self.radius()), np.inf, np.maximum(gauges, 0.0)
        )

    def facets(self, points: FloatArray) -> Facets:
        """The facet opposite the vertex whose weight the ray from 0 through x loses first."""
        points = batch(points, self.dimension, "points")
        gauges = self.gauge(points)
        slopes = -self._map.linear / self._checked_origin()[:, None]
        winners = (points @ slopes.T).argmax(axis=1)
        return Facets(gauges, slopes[winners])

    def _checked_origin(self) -> FloatArray:
        if self._origin_weights is None:
            raise ValueError(f"{self!r} does not hold 0 in its relative interior: it has no gauge")
        return self._origin_weights

    def contains(self, points: FloatArray, tolerance: float = MEMBERSHIP_TOLERANCE) -> BoolArray:
        """Whether x is in the affine hull, up to rounding, with no weight below -`tolerance`."""
        points = batch(points, self.dimension, "points")
        slack = max(tolerance, RANK_TOLERANCE) * self.radius()
        inside = self._map.weights(points).min(axis=1) >= -tolerance
        return np.asarray(inside & ~off_hull(points, self.affine_hull(), slack))

    def chord(self, points: FloatArray, directions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Largest t before a barycentric weight vanishes, each way; 0 off the span."""
        points, directions = rays(points, directions, self.dimension)
        weights = np.maximum(self._map.weights(points), 0.0)
        slopes = directions @ self._map.linear.T
        flat = off_span(directions, self._map.basis)
        ends = []
        for way in (-slopes, slopes):
            times = np.full(weights.shape, np.inf)
            np.divide(-weights, way, out=times, where=way < 0)
            ends.append(np.where(flat, 0.0, times.min(axis=1)))
        return -ends[0], ends[1]

    def radius(self) -> float:
        """Largest norm of a vertex."""
        return float(np.linalg.norm(self.vertices, axis=1).max())

    def affine_hull(self) -> AffineHull:
        """The affine hull of the vertices, through their mean."""
        return AffineHull(self._map.centre, self._map.basis)

    def sample_uniform(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Dirichlet(1, ..., 1) weights on the vertices, exact."""
        weights = rng.standard_exponential((n, len(self.vertices)))
        weights /= weights.sum(axis=1, keepdims=True)
        return np.asarray(weights @ self.vertices)

    def centroid(self) -> FloatArray:
        """Mean of the vertices."""
        return np.array(self._map.centre)

    def second_moment(self) -> FloatArray:
        """(sum v_i v_i^T + (sum v_i)(sum v_i)^T) / ((r + 1) (r + 2)) (JL-L14)."""
        total = self.vertices.sum(axis=0)
        count = len(self.vertices)
        moment = self.vertices.T @ self.vertices + np.outer(total, total)
        return np.asarray(moment / (count * (count + 1)))

    def volume(self) -> float:
        """sqrt(r + 1) times the product of singular values of the centred vertices, over r!."""
        return math.exp(log_simplex_volume(self._map.singular))

    def vertex_list(self) -> FloatArray:
        """The vertices (read-only)."""
        return self.vertices

    def cvxpy_constraints(self, variable: Any) -> list[Any]:
        """Convex weights as auxiliary variables."""
        import cvxpy as cp

        weights = cp.Variable(len(self.vertices), nonneg=True)
        return [variable == self.vertices.T @ weights, cp.sum(weights) == 1]


@dataclass(frozen=True, eq=False)
class SimplexDifference(Body):
    """The difference body K - K of the simplex K = conv(v_0, ..., v_r) in R^m.

    K - K = {sum_i y_i v_i : sum y = 0, sum y_+ <= 1}. It lies in the r-dimensional span of the
    differences, on which y is unique.

    Parameters
    ----------
    vertices : (r + 1, m) array
        Affinely independent rows.

    Raises
    ------
    ValueError
        Vertices that are not affinely independent (found when first needed).

    References
    ----------
    X-SIM.
    """

    vertices: FloatArray

    def __post_init__(self) -> None:
        object.__setattr__(self, "vertices", simplex_vertices(self.vertices))

    def __repr__(self) -> str:
        return f"SimplexDifference({len(self.vertices)} vertices in dimension {self.dimension})"

    @cached_property
    def _map(self) -> Barycentric:
        return Barycentric(self.vertices)

    @property
    def dimension(self) -> int:
        """Dimension m of the surrounding space."""
        return int(self.vertices.shape[1])

    @property
    def symmetric(self) -> bool:
        """True."""
        return True

    def support(self, directions: FloatArray) -> FloatArray:
        """max_i <u, v_i> - min_i <u, v_i>."""
        directions = batch(directions, self.dimension, "directions")
        return np.asarray(np.ptp(directions @ self.vertices.T, axis=1))

    def extreme_point(self, directions: FloatArray) -> FloatArray:
        """Difference of the best and the worst vertex, the first ones among ties."""
        directions = batch(directions, self.dimension, "directions")
        scores = directions @ self.vertices.T
        return np.asarray(
            self.vertices[scores.argmax(axis=1)] - self.vertices[scores.argmin(axis=1)]
        )

    def gauge(self, points: FloatArray) -> FloatArray:
        """max(sum y_+, sum y_-) in barycentric coordinates y, which sum to 0; inf off the span."""
        points = batch(points, self.dimension, "points")
        weights = points @ self._map.linear.T
        gauges = np.maximum(np.maximum(weights, 0).sum(axis=1), np.maximum(-weights, 0).sum(axis=1))
        return np.where(off_span(points, self._map.basis, self.radius()), np.inf, gauges)

    def facets(self, points: FloatArray) -> Facets:
        """z with <z, v_i> constant on y_i > 0 and 1 less elsewhere: h(z) = 1, <z, x> = sum y_+."""
        points = batch(points, self.dimension, "points")
        signs = (points @ self._map.linear.T > 0).astype(np.float64)
        return Facets(self.gauge(points), signs @ self._map.linear)

    def chord(self, points: FloatArray, directions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Ends of {t : sum (y + t w)_+ <= 1} by sorting the sign changes; 0 off the span."""
        points, directions = rays(points, directions, self.dimension)
        weights, slopes = points @ self._map.linear.T, directions @ self._map.linear.T
        flat = off_span(directions, self._map.basis)
        low, high = exit_time(weights, -slopes, 1.0), exit_time(weights, slopes, 1.0)
        return np.where(flat, 0.0, -low), np.where(flat, 0.0, high)

    def radius(self) -> float:
        """Upper bound: twice the largest distance of a vertex from the mean."""
        return 2 * float(np.linalg.norm(self.vertices - self.vertices.mean(axis=0), axis=1).max())

    def affine_hull(self) -> AffineHull:
        """The span of the differences of vertices."""
        return AffineHull(np.zeros(self.dimension), self._map.basis)

    @cached_property
    def _cell_shares(self) -> FloatArray:
        """Shares (r,) of the volume that cells with |I| = 1, .., r have; see `sample_uniform`."""
        rank = len(self.vertices) - 1
        total = math.comb(2 * rank, rank)
        shares = [
            math.comb(rank + 1, k) * math.comb(rank - 1, k - 1) / total for k in range(1, rank + 1)
        ]
        return np.array(shares) / math.fsum(shares)

    def sample_uniform(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Exact, O(r) and one product per draw.

        The body splits into cells s (sum_I a_i v_i - sum_J b_j v_j), I and J a partition into
        non-empty sets, a and b in their simplices, s in [0, 1]. A cell with |I| = k is drawn with
        probability C(r+1, k) C(r-1, k-1) / C(2r, r), then I, a, b uniformly and s = U^(1/r).
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
        weights = above / above.sum(axis=1, keepdims=True) - below / below.sum(
            axis=1, keepdims=True
        )
        return np.asarray(rng.random((n, 1)) ** (1 / rank) * weights @ self.vertices)

    def second_moment(self) -> FloatArray:
        """4 (2 r + 1) / ((r + 1) (r + 2)^2) times sum (v_i - c)(v_i - c)^T, c their mean.

        By symmetry E[y y^T] = alpha (I - 1 1^T / (r + 1)) with alpha r = E ||y||^2. Given the cell,
        E ||y||^2 = E[s^2] (E ||a||^2 + E ||b||^2) with E[s^2] = r / (r + 2) and
        E ||a||^2 = 2 / (k + 1); Vandermonde's identity sums over k to
        E ||y||^2 = 4 r (2 r + 1) / ((r + 1) (r + 2)^2).
        """
        rank = len(self.vertices) - 1
        centred = self.vertices - self._map.centre
        alpha = 4 * (2 * rank + 1) / ((rank + 1) * (rank + 2) ** 2)
        return np.asarray(alpha * centred.T @ centred)

    def volume(self) -> float:
        """C(2 r, r) vol(K) (Rogers and Shephard 1957)."""
        rank = len(self.vertices) - 1
        ratio = math.lgamma(2 * rank + 1) - 2 * math.lgamma(rank + 1)
        return math.exp(ratio + log_simplex_volume(self._map.singular))

    def cvxpy_constraints(self, variable: Any) -> list[Any]:
        """Two vectors of non-negative weights with equal sums of at most 1."""
        import cvxpy as cp

        above = cp.Variable(len(self.vertices), nonneg=True)
        below = cp.Variable(len(self.vertices), nonneg=True)
        return [
            variable == self.vertices.T @ (above - below),
            cp.sum(above) == cp.sum(below),
            cp.sum(above) <= 1,
        ]
