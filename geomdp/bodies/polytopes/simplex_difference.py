"""The difference body of a simplex. Most methods have closed forms; `project` is missing."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from geomdp._numerics.linalg import AffineHull
from geomdp._typing import FloatArray
from geomdp.bodies.arguments import off_span
from geomdp.bodies.base import Body
from geomdp.bodies.norm_balls.positive_parts import exit_time
from geomdp.bodies.operations.symmetrised import Difference
from geomdp.bodies.oracles import Facets
from geomdp.bodies.polytopes.barycentric import BarycentricBody, log_simplex_volume
from geomdp.bodies.polytopes.vpolytope import VPolytope


@dataclass(frozen=True, eq=False)
class SimplexDifference(BarycentricBody):
    """The difference body K - K of the simplex K = conv(v_0, ..., v_r) in R^m.

    K - K = {sum_i y_i v_i : sum y = 0, sum y_+ <= 1} (X-SIM). It lies in the r-dimensional span of
    the differences of vertices. The weights of a point x of this span are the only y of sum 0 with
    x = sum_i y_i v_i. `project` is not implemented.

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
    >>> body.gauge(np.array([[1.0, -1.0, 0.0], [1.0, -0.5, -0.5]])).round(6).tolist()
    [1.0, 1.0]
    >>> body.support(np.array([[3.0, 1.0, 0.0]])).tolist()
    [3.0]
    """

    symmetric = True

    def support(self, directions: FloatArray) -> FloatArray:
        """max_i <u, v_i> - min_i <u, v_i>."""
        return np.asarray(np.ptp(directions @ self.vertices.T, axis=1))

    def extreme_point(self, directions: FloatArray) -> FloatArray:
        scores = directions @ self.vertices.T
        return np.asarray(
            self.vertices[scores.argmax(axis=1)] - self.vertices[scores.argmin(axis=1)]
        )

    def gauge(self, points: FloatArray) -> FloatArray:
        """sum y_+ for the weights y of x; inf outside the span."""
        weights = points @ self._map.linear.T
        gauges = np.maximum(np.maximum(weights, 0).sum(axis=1), np.maximum(-weights, 0).sum(axis=1))
        return np.where(off_span(points, self._map.basis, self.radius()), np.inf, gauges)

    def facets(self, points: FloatArray) -> Facets:
        """Gauges, and normals z with <z, v_i> = c + 1 where the weight y_i > 0 and c elsewhere."""
        signs = (points @ self._map.linear.T > 0).astype(np.float64)
        return Facets(self.gauge(points), signs @ self._map.linear)

    def chord(self, points: FloatArray, directions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Ends of {t : sum (y + t w)_+ <= 1} for weights y, w; 0 for directions off the span."""
        weights, slopes = points @ self._map.linear.T, directions @ self._map.linear.T
        flat = off_span(directions, self._map.basis)
        low, high = exit_time(weights, -slopes, 1.0), exit_time(weights, slopes, 1.0)
        return np.where(flat, 0.0, -low), np.where(flat, 0.0, high)

    def radius(self) -> float:
        """Upper bound: twice the largest distance of a vertex from the mean."""
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
        """Exactly uniform points; a draw costs O(r) and one product with the vertices.

        The body is divided into cells, one for each partition of the vertices into non-empty sets I
        and J. A cell has the points s (sum_I a_i v_i - sum_J b_j v_j), where 0 <= s <= 1, and a and
        b are non-negative, each of sum 1. The size |I| = k is drawn with probability C(r+1, k)
        C(r-1, k-1) / C(2r, r). Then I, a and b are uniform for this k, and s = U^(1/r) with U
        uniform on [0, 1].
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
        weights *= rng.random((n, 1)) ** (1 / rank)
        if self._at_units:
            return np.asarray(weights)
        # The weights add up to 0 only up to rounding.
        return np.where(self.constant, 0.0, weights @ self.vertices)

    def second_moment(self) -> FloatArray:
        """alpha times sum (v_i - c)(v_i - c)^T, where c is the mean of the v_i.

        alpha = 4 (2 r + 1) / ((r + 1) (r + 2)^2). By symmetry the weights y have E[y y^T] = alpha
        (identity matrix - 1 1^T / (r + 1)), so alpha r = E ||y||^2. In the notation of
        `sample_uniform`, this is E[s^2] (E ||a||^2 + E ||b||^2) for |I| = k, with E[s^2] = r / (r +
        2), E ||a||^2 = 2 / (k + 1) and E ||b||^2 = 2 / (r + 2 - k). The mean over k follows from
        Vandermonde's identity.
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
        """E (T x)_j^2 (p,) for x uniform on the body and T = `matrix` (p, m).

        This is the diagonal of T E[x x^T] T^T, but the (m, m) matrix E[x x^T] is not formed.
        """
        at_vertices = matrix if self._at_units else np.asarray(matrix @ self.vertices.T)
        if sp.issparse(at_vertices):
            # The result is alpha times the sum of squared deviations of a row's entries from their
            # mean. It is computed from the sum and the sum of squares of the entries, because
            # subtracting the mean from each entry would make a dense matrix.
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
        import cvxpy as cp

        above = cp.Variable(len(self.vertices), nonneg=True)
        below = cp.Variable(len(self.vertices), nonneg=True)
        return [
            variable == self.vertices.T @ (above - below),
            cp.sum(above) == cp.sum(below),
            cp.sum(above) <= 1,
        ]

    def linear_image(self, matrix: FloatArray) -> Body | None:
        """The difference body of the hull of the vertices' images; None for one row (a segment)."""
        return Difference(VPolytope(self.vertices @ matrix.T)) if len(matrix) > 1 else None

    def width_rule(self) -> tuple[float, Body]:
        """w(K - K) = 2 w(K) for the Gaussian width w."""
        return 2.0, VPolytope(self.vertices)
