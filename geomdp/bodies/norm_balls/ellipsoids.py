"""Ellipsoids centred at 0, possibly lower-dimensional."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from geomdp._numerics.linalg import AffineHull, significant
from geomdp._typing import FloatArray
from geomdp.bodies.arguments import frozen_array, off_span
from geomdp.bodies.base import Body
from geomdp.bodies.gaussian_vectors import mean_norm
from geomdp.bodies.norm_balls.unit_ball import ball_chord, log_unit_ball_volume, unit_ball_points

#: Two columns (or two rows) of the matrix `root` of an ellipsoid count as orthogonal if their inner
#: product is at most this share of the product of their lengths. Rounding alone leaves about 1e-15.
ORTHOGONAL = 1e-13


@dataclass(frozen=True, eq=False)
class Ellipsoid(Body):
    """The ellipsoid {root @ u : ||u||_2 <= 1} in R^m.

    Parameters
    ----------
    root : (m, r) array
        Any finite matrix, m >= 1; its rank is the dimension of the ellipsoid. For r = 0 the
        ellipsoid is {0}. The ellipsoid {z : z^T S^(-1) z <= 1} has the root S^(1/2).

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> ellipse = gd.bodies.Ellipsoid(np.diag([2.0, 1.0]))
    >>> ellipse.support(np.eye(2)).tolist()
    [2.0, 1.0]
    >>> ellipse.contains(np.array([[1.9, 0.0], [0.0, 1.9]])).tolist()
    [True, False]
    >>> ellipse.second_moment().tolist()
    [[1.0, 0.0], [0.0, 0.25]]
    """

    root: FloatArray

    symmetric = True

    def __post_init__(self) -> None:
        root = frozen_array(self.root, "root", ndim=2)
        if root.shape[0] == 0:
            raise ValueError(f"root must have shape (m, r), m >= 1, got {root.shape}")
        object.__setattr__(self, "root", root)

    def _summary(self) -> str:
        return f"{self.effective_dimension} axes"

    @cached_property
    def _axes(self) -> tuple[FloatArray, FloatArray]:
        """Orthonormal axis directions (m, rank) and semi-axis lengths (rank,)."""
        left, lengths, _ = np.linalg.svd(self.root, full_matrices=False)
        kept = significant(lengths)
        return np.ascontiguousarray(left[:, kept]), lengths[kept]

    @cached_property
    def _lengths(self) -> FloatArray:
        """Semi-axis lengths (rank,), longest first; fast if columns or rows are orthogonal."""
        size = float(np.abs(self.root).max(initial=0.0)) or 1.0
        columns = self.root / size  # prevents underflow and overflow of squares
        if columns.shape[0] < columns.shape[1]:
            columns = columns.T  # the singular values are the same
        gram = columns.T @ columns
        lengths = np.sqrt(np.diagonal(gram))
        between = np.abs(gram - np.diag(np.diagonal(gram)))
        if (between <= ORTHOGONAL * np.outer(lengths, lengths)).all():
            lengths = -np.sort(-lengths)
            return np.asarray(size * lengths[significant(lengths)])
        return self._axes[1]

    @property
    def effective_dimension(self) -> int:
        return len(self._lengths)

    @property
    def dimension(self) -> int:
        return int(self.root.shape[0])

    def _whiten(self, points: FloatArray) -> FloatArray:
        """The `points` in coordinates (b, rank) in which the ellipsoid is the unit ball."""
        directions, lengths = self._axes
        return np.asarray(points @ directions / lengths)

    def support(self, directions: FloatArray) -> FloatArray:
        """||root^T u||_2 for each direction u."""
        return np.asarray(np.linalg.norm(directions @ self.root, axis=1))

    def extreme_point(self, directions: FloatArray) -> FloatArray:
        """root w / ||w||_2 for w = root^T u; 0 if w = 0, where all points are maximisers."""
        images = directions @ self.root
        norms = np.linalg.norm(images, axis=1, keepdims=True)
        units = np.divide(images, norms, out=np.zeros_like(images), where=norms > 0)
        return np.asarray(units @ self.root.T)

    def gauge(self, points: FloatArray) -> FloatArray:
        """Norm in coordinates in which the ellipsoid is the unit ball; inf outside the span."""
        norms = np.linalg.norm(self._whiten(points), axis=1)
        return np.where(off_span(points, self._axes[0], self.radius()), np.inf, norms)

    def chord(self, points: FloatArray, directions: FloatArray) -> tuple[FloatArray, FloatArray]:
        low, high = np.zeros(len(points)), np.zeros(len(points))
        along = ~off_span(directions, self._axes[0])
        low[along], high[along] = ball_chord(
            self._whiten(points[along]), self._whiten(directions[along])
        )
        return low, high

    def radius(self) -> float:
        return float(self._lengths.max(initial=0.0))

    def affine_hull(self) -> AffineHull:
        return AffineHull(np.zeros(self.dimension), self._axes[0])

    def sample_uniform(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Linear image of uniform points of the unit ball, exact (SAM-4)."""
        directions, lengths = self._axes
        if len(lengths) == 0:
            return np.zeros((n, self.dimension))
        return np.asarray(unit_ball_points(n, len(lengths), rng) * lengths @ directions.T)

    def second_moment(self) -> FloatArray:
        """root root^T / (rank + 2) (JL-L14)."""
        return np.asarray(self.root @ self.root.T / (self.effective_dimension + 2))

    def volume(self) -> float:
        """The product of the semi-axes, times the volume of the unit ball in R^rank."""
        lengths = self._lengths
        return math.exp(log_unit_ball_volume(len(lengths)) + float(np.log(lengths).sum()))

    def cvxpy_constraints(self, variable: Any) -> list[Any]:
        import cvxpy as cp

        directions, lengths = self._axes
        if len(lengths) == 0:
            return [variable == 0]
        unit = cp.Variable(len(lengths))
        return [variable == (directions * lengths) @ unit, cp.norm(unit, 2) <= 1]

    def difference(self) -> Body:
        return Ellipsoid(2 * self.root)

    def linear_image(self, matrix: FloatArray) -> Body:
        return Ellipsoid(matrix @ self.root)

    def gaussian_width(self) -> float:
        """E ||(s_1 g_1, s_2 g_2, ...)||_2 for singular values s_i of the root and g_i ~ N(0, 1)."""
        return mean_norm(np.asarray(np.linalg.svd(self.root, compute_uv=False), dtype=np.float64))

    def gauge_bound(self, l1: float, l2: float) -> float | None:
        """The bound `l2` / (shortest semi-axis); None if the ellipsoid is {0}."""
        del l1
        lengths = self._lengths
        return l2 / float(lengths.min()) if len(lengths) else None
