"""The elliptope: the set of correlation matrices, such as s s^T for a vector s of signs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy

from geomdp._typing import FloatArray, IntArray
from geomdp._validation import batch, whole
from geomdp.bodies.base import Body
from geomdp.bodies.conic.projection import nearest_with_diagonal
from geomdp.bodies.oracles import Facets

#: Largest number of entries of the Gaussian vectors of one batch: 2^24 float64 are 128 MB. A batch
#: with a single draw may be larger.
SAMPLE_ENTRIES = 1 << 24


@dataclass(frozen=True)
class Elliptope(Body):
    """The correlation matrices {R psd, R_ii = 1} of order p, by their entries above the diagonal.

    The coordinates are the m = p (p - 1) / 2 entries R_ij with i < j, in row-major order. The point
    0 is the identity matrix. The body contains (s_i s_j)_(i < j) for all signs s in {-1, 1}^p. psd
    stands for positive semidefinite.

    Parameters
    ----------
    order : int
        p, at least 2.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> elliptope = gd.bodies.Elliptope(3)
    >>> elliptope.matrices(np.array([[0.5, -0.5, 0.0]])).tolist()
    [[[1.0, 0.5, -0.5], [0.5, 1.0, 0.0], [-0.5, 0.0, 1.0]]]
    >>> elliptope.contains(np.array([[0.5, -0.5, 0.0], [1.0, 1.0, -1.0]])).tolist()
    [True, False]
    >>> round(elliptope.volume(), 6), round(np.pi**2 / 2, 6)
    (4.934802, 4.934802)
    """

    order: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "order", whole(self.order, "order", minimum=2))

    def _summary(self) -> str:
        return f"order {self.order}"

    @property
    def dimension(self) -> int:
        return self.order * (self.order - 1) // 2

    @cached_property
    def _upper(self) -> tuple[IntArray, IntArray]:
        rows, columns = np.triu_indices(self.order, 1)
        return rows.astype(np.int64), columns.astype(np.int64)

    def matrices(self, points: FloatArray) -> FloatArray:
        """Symmetric matrices (b, p, p) with unit diagonal, one for each row of `points` (b, m)."""
        points = batch(points, self.dimension, "points")
        rows, columns = self._upper
        matrices = np.zeros((len(points), self.order, self.order))
        matrices[:, rows, columns] = points
        matrices += np.swapaxes(matrices, 1, 2)
        matrices[:, np.arange(self.order), np.arange(self.order)] = 1.0
        return matrices

    def support(self, directions: FloatArray) -> FloatArray:
        """Upper bounds h(u) on the largest <u, R>, from the dual of the MaxCut relaxation.

        The halfspaces {x : <u, x> <= h(u)} contain the body up to rounding. h(u) is nearly always
        within a relative 1e-9 of the maximum (see `highest_correlation`, also for the cost).
        """
        from geomdp.bodies.conic.support import highest_correlation  # compiled, so slow to import

        return highest_correlation(self._weights(directions)).bounds

    def extreme_point(self, directions: FloatArray) -> FloatArray:
        """For each row u, an R with <u, R> nearly always within a relative 1e-9 of the maximum."""
        from geomdp.bodies.conic.support import highest_correlation  # compiled, so slow to import

        rows, columns = self._upper
        return highest_correlation(self._weights(directions)).matrices[:, rows, columns]

    def _weights(self, directions: FloatArray) -> FloatArray:
        """Symmetric matrices C (b, p, p) with zero diagonal and <C, R> / 2 = <u, R>."""
        weights = self.matrices(directions)
        weights[:, np.arange(self.order), np.arange(self.order)] = 0.0
        return weights

    def project(self, points: FloatArray) -> FloatArray:
        """The nearest correlation matrices, each by some ten eigendecompositions of order p."""
        rows, columns = self._upper
        ones = np.ones(self.order)
        return np.array(
            [nearest_with_diagonal(each, ones)[rows, columns] for each in self.matrices(points)]
        ).reshape(-1, self.dimension)

    def gauge(self, points: FloatArray) -> FloatArray:
        """-lambda_min(X) for X = R - I, since I + X / t is psd iff t >= -lambda_min(X); O(p^3)."""
        return np.asarray(np.maximum(1 - np.linalg.eigvalsh(self.matrices(points))[:, 0], 0.0))

    def facets(self, points: FloatArray) -> Facets:
        """Gauges, and halfspaces {R : v^T R v >= 0}, v an eigenvector of lambda_min; O(p^3)."""
        values, vectors = np.linalg.eigh(self.matrices(points))
        lowest = vectors[:, :, 0]
        rows, columns = self._upper
        return Facets(np.maximum(1 - values[:, 0], 0.0), -2 * lowest[:, rows] * lowest[:, columns])

    def radius(self) -> float:
        """sqrt(m), attained at the matrices s s^T for signs s."""
        return math.sqrt(self.dimension)

    def sample_uniform(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Exact: inner products of p independent uniform unit vectors in R^(p+1); O(p^3) a draw.

        The correlation matrix of p standard Gaussian vectors in R^v has density proportional to
        det(R)^((v - p - 1) / 2), which is constant for v = p + 1 (X-LKJ).
        """
        rows, columns = self._upper
        points = np.empty((n, self.dimension))
        step = max(1, SAMPLE_ENTRIES // (self.order * (self.order + 1)))
        for start in range(0, n, step):
            count = min(step, n - start)
            vectors = rng.standard_normal((count, self.order, self.order + 1))
            vectors /= np.linalg.norm(vectors, axis=2, keepdims=True)
            points[start : start + count] = (vectors @ np.swapaxes(vectors, 1, 2))[:, rows, columns]
        return points

    def centroid(self) -> FloatArray:
        """0: flipping the signs of row and column i maps the body to itself and negates R_ij."""
        return np.zeros(self.dimension)

    def entry_variances(self) -> FloatArray:
        """1 / (p + 1): the variance of <v, w> for independent uniform unit vectors in R^(p+1)."""
        return np.full(self.dimension, 1 / (self.order + 1))

    def second_moment(self) -> FloatArray:
        """The diagonal matrix of `entry_variances`; sign flips show that covariances are 0."""
        return np.diag(self.entry_variances())

    def volume(self) -> float:
        """prod (2^k B((k + 1)/2, (k + 1)/2))^k, 0 < k < p, with the beta function B (Joe 2006)."""
        sides = np.arange(1, self.order)
        halves = (sides + 1) / 2
        logs = sides * (sides * math.log(2) + scipy.special.betaln(halves, halves))
        return math.exp(float(logs.sum()))

    def cvxpy_constraints(self, variable: Any) -> list[Any]:
        import cvxpy as cp

        matrix = cp.Variable((self.order, self.order), PSD=True)
        rows, columns = self._upper
        return [cp.diag(matrix) == 1, matrix[rows, columns] == variable]
