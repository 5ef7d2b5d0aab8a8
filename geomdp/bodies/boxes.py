"""Axis-parallel boxes, and the symmetric hull of a box with a corner at 0."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from geomdp._numerics.linalg import AffineHull
from geomdp._typing import BoolArray, FloatArray, IntArray
from geomdp._validation import finite_array
from geomdp.bodies.base import (
    MEMBERSHIP_TOLERANCE,
    Body,
    Facets,
    SupportFunction,
    check_all_above_0,
    cp,
    freeze,
    ratio_test,
)


@dataclass(frozen=True, eq=False)
class Box(Body):
    """The box {x in R^m : lower <= x <= upper}.

    Verbs for points and directions are closed forms that cost O(m) for each; uniform points are
    exact (SAM-4). It implements neither `facets` nor `vertex_list`.

    Parameters
    ----------
    lower, upper : (m,) array
        Finite, m >= 1, lower <= upper entry by entry; equal entries make the box
        lower-dimensional.

    Examples
    --------
    >>> import geomdp as gd
    >>> gd.bodies.Box([0.0, 0.0], [1.0, 2.0]).support([[1.0, -1.0]]).tolist()
    [1.0]
    """

    lower: FloatArray
    upper: FloatArray

    def __post_init__(self) -> None:
        lower, upper = freeze(self, "lower", ndim=1), freeze(self, "upper", ndim=1)
        if lower.shape != upper.shape or not lower.size:
            shapes = f"{lower.shape} and {upper.shape}"
            raise ValueError(f"lower and upper must have the same shape (m,), m >= 1, got {shapes}")
        if (lower > upper).any():
            i = int(np.argmax(lower > upper))
            raise ValueError(
                f"lower must be at most upper, got {lower[i]} and {upper[i]} at index {i}"
            )

    @classmethod
    def centred(cls, half_widths: npt.ArrayLike) -> Self:
        """The box [-w_1, w_1] x ... x [-w_m, w_m] for half-widths w >= 0 (m,)."""
        half_widths = finite_array(half_widths, "half_widths", ndim=1)
        if (half_widths < 0).any():
            i = int(np.argmax(half_widths < 0))
            raise ValueError(f"half_widths must be at least 0, got {half_widths[i]} at index {i}")
        return cls(-half_widths, half_widths)

    def _summary(self) -> str:
        return f"widths {self._widths.min():g} to {self._widths.max():g}"

    @property
    def dimension(self) -> int:
        return len(self.lower)

    @cached_property
    def _widths(self) -> FloatArray:
        return self.upper - self.lower

    @cached_property
    def _has_gauge(self) -> bool:
        inside = (self.lower < 0) & (self.upper > 0)
        flat = (self.lower == 0) & (self.upper == 0)
        return bool((inside | flat).all())

    @property
    def symmetric(self) -> bool:
        return bool((self.lower == -self.upper).all())

    def support(self, directions: FloatArray) -> FloatArray:
        above, below = np.maximum(directions, 0), np.minimum(directions, 0)
        return np.asarray(above @ self.upper + below @ self.lower)

    def extreme_point(self, directions: FloatArray) -> FloatArray:
        return np.where(directions > 0, self.upper, self.lower)

    def gauge(self, points: FloatArray) -> FloatArray:
        bounds = np.where(points > 0, self.upper, -self.lower)
        ratios = np.divide(np.abs(points), bounds, out=np.zeros_like(points), where=bounds > 0)
        ratios[(bounds == 0) & (points != 0)] = np.inf
        return np.asarray(ratios.max(axis=1))

    def contains(self, points: FloatArray, tolerance: float = MEMBERSHIP_TOLERANCE) -> BoolArray:
        """Whether every entry is in its interval, up to `tolerance` times the largest |bound|."""
        slack = tolerance * max(np.abs(self.lower).max(), np.abs(self.upper).max())
        inside = (points >= self.lower - slack) & (points <= self.upper + slack)
        return np.asarray(inside.all(axis=1))

    def chord(self, points: FloatArray, directions: FloatArray) -> tuple[FloatArray, FloatArray]:
        room = np.maximum(np.hstack([self.upper - points, points - self.lower]), 0.0)
        slopes = np.hstack([directions, -directions])
        return ratio_test(room, slopes, np.zeros(len(points), dtype=bool))

    def project(self, points: FloatArray) -> FloatArray:
        return np.clip(points, self.lower, self.upper)

    def radius(self) -> float:
        return float(np.linalg.norm(np.maximum(np.abs(self.lower), np.abs(self.upper))))

    @property
    def effective_dimension(self) -> int:
        return int(np.count_nonzero(self._widths > 0))

    def affine_hull(self) -> AffineHull:
        return AffineHull(self.centroid(), np.eye(self.dimension)[:, self._widths > 0])

    def sample_uniform(self, n: int, rng: np.random.Generator) -> FloatArray:
        return np.asarray(self.lower + self._widths * rng.random((n, self.dimension)))

    def centroid(self) -> FloatArray:
        return np.asarray((self.lower + self.upper) / 2)

    def second_moment(self) -> FloatArray:
        """diag(width_i^2 / 12) + centre centre^T."""
        centre = self.centroid()
        return np.asarray(np.diag(self._widths**2 / 12) + np.outer(centre, centre))

    def volume(self) -> float:
        return float(np.prod(self._widths[self._widths > 0]))

    def cvxpy_constraints(self, variable: Any) -> list[Any]:
        return [variable >= self.lower, variable <= self.upper]

    def difference(self) -> Body:
        return Box.centred(self._widths)

    def symmetric_hull(self) -> Body | None:
        """A `SymmetrisedBox` if lower = 0 and all entries of `upper` are above 0; else None."""
        if (self.lower == 0).all() and (self.upper > 0).all():
            return SymmetrisedBox(self.upper)
        return None

    def linear_image(self, matrix: FloatArray) -> Body | None:
        """A box if each row has one nonzero entry and no two rows share a column; else None."""
        columns = axes_of(matrix)
        if columns is None:
            return None
        factors = matrix[np.arange(len(matrix)), columns]
        ends = factors * self.lower[columns], factors * self.upper[columns]
        return Box(np.minimum(*ends), np.maximum(*ends))

    def gaussian_width(self) -> float:
        return float(self._widths.sum()) / math.sqrt(2 * math.pi)

    def largest_gauge(self, support: SupportFunction) -> float | None:
        """The nearer side of each axis counts; None for a box without a gauge."""
        if not self._has_gauge:
            return None
        bounds = np.minimum(self.upper, -self.lower)
        wide = bounds > 0
        axes = np.diag(1 / bounds[wide]) @ np.eye(self.dimension)[wide]
        return float(support(axes).max(initial=0.0))


@dataclass(frozen=True, eq=False)
class SymmetrisedBox(Body):
    """The convex hull of B and -B for the box B = [0, u_1] x ... x [0, u_m].

    With y_i = x_i / u_i, the body is {x : max_i (y_i)_+ + max_i (y_i)_- <= 1}, where a_+ = max(a,
    0) and a_- = max(-a, 0). In the coordinates y, it is the image of the cube [0, 1]^(m+1) under
    the map c -> (c_i - c_0)_i. For u = (1, ..., 1), it is the hull of all changes that adding or
    removing a record makes to the column sums of a table with m binary columns. Support, gauge,
    facets and exact uniform samples cost O(m) per point.

    Parameters
    ----------
    upper : (m,) array
        Side lengths u, finite and above 0, m >= 1.

    Examples
    --------
    >>> import geomdp as gd
    >>> hexagon = gd.bodies.SymmetrisedBox([1.0, 1.0])
    >>> hexagon.gauge([[1.0, 1.0], [1.0, -1.0]]).tolist()
    [1.0, 2.0]
    """

    upper: FloatArray

    symmetric = True

    def __post_init__(self) -> None:
        check_all_above_0(freeze(self, "upper", ndim=1), "upper")

    def _summary(self) -> str:
        return f"sides {self.upper.min():g} to {self.upper.max():g}"

    @property
    def dimension(self) -> int:
        return len(self.upper)

    def support(self, directions: FloatArray) -> FloatArray:
        above, below = np.maximum(directions, 0), np.maximum(-directions, 0)
        return np.asarray(np.maximum(above @ self.upper, below @ self.upper))

    def extreme_point(self, directions: FloatArray) -> FloatArray:
        above, below = directions > 0, directions < 0
        positive = (np.abs(directions) * self.upper * np.where(above, 1, -1)).sum(axis=1) >= 0
        return np.where(positive[:, None], above * self.upper, -(below * self.upper))

    def gauge(self, points: FloatArray) -> FloatArray:
        ratios = points / self.upper
        high, low = ratios.max(axis=1), ratios.min(axis=1)
        return np.asarray(np.maximum(high, 0) - np.minimum(low, 0))

    def facets(self, points: FloatArray) -> Facets:
        """Normals e_i / u_i - e_j / u_j of the largest and smallest ratios, as far as not 0."""
        ratios = points / self.upper
        rows = np.arange(len(ratios))
        first, last = ratios.argmax(axis=1), ratios.argmin(axis=1)
        normals = np.zeros(ratios.shape)
        normals[rows, first] += (ratios[rows, first] > 0) / self.upper[first]
        normals[rows, last] -= (ratios[rows, last] < 0) / self.upper[last]
        return Facets(self.gauge(points), normals)

    def radius(self) -> float:
        return float(np.linalg.norm(self.upper))

    def sample_uniform(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Exact uniform points, at cost O(m) each.

        For y = x / u, the set of all y with k given entries non-negative and the others negative
        has volume k! (m - k)! / m!, so the number k of non-negative entries is uniform on 0..m.
        Given k, the largest positive part, the largest negative part, and 1 minus their sum are
        Dirichlet(k, m - k, 1). Every other entry is uniform between 0 and the entry of the same
        sign with the largest modulus.
        """
        m = self.dimension
        sizes = rng.integers(m + 1, size=n)
        positive = np.arange(m) < sizes[:, None]
        # Gamma variables of shapes k, m - k and 1; the variable of shape 0 is 0.
        shapes = np.stack([sizes, m - sizes, np.ones(n)], axis=1).astype(np.float64)
        gammas = rng.standard_gamma(np.maximum(shapes, 1)) * (shapes > 0)
        tops = gammas[:, :2] / gammas.sum(axis=1, keepdims=True)
        heights = rng.random((n, m))
        for part in (positive, ~positive):
            # The first entry of each sign has the largest modulus.
            heights[part & (np.cumsum(part, axis=1) == 1)] = 1.0
        signed = np.where(positive, tops[:, :1], -tops[:, 1:]) * heights
        return np.asarray(rng.permuted(signed, axis=1) * self.upper)

    def second_moment(self) -> FloatArray:
        """E[x x^T] = (p / 2) (diag(u)^2 + u u^T) for uniform x, with p = (m + 3) / (6 (m + 1)).

        With y = x / u, k and the largest positive part a as in `sample_uniform`, E[a^2] given k is
        k (k + 1) / ((m + 1) (m + 2)). Hence E ||y||^2 = sum_k E[a^2] (1 + (k - 1) / 3) 2 / (m + 1)
        = m p. As y_i = z_i - z_0 for exchangeable z_0, ..., z_m, E[y_i y_j] = p / 2 for i != j.
        """
        m = self.dimension
        share = (m + 3) / (6 * (m + 1))
        return np.asarray(share / 2 * (np.diag(self.upper**2) + np.outer(self.upper, self.upper)))

    def volume(self) -> float:
        """(m + 1) times the product of the sides."""
        return float((self.dimension + 1) * np.prod(self.upper))

    def cvxpy_constraints(self, variable: Any) -> list[Any]:
        parts = cp.Variable(2, nonneg=True)
        inside = [variable <= parts[0] * self.upper, variable >= -parts[1] * self.upper]
        return [*inside, cp.sum(parts) <= 1]


def axes_of(matrix: FloatArray) -> IntArray | None:
    """The column of the only nonzero entry of each row (k,); None if not unique or not distinct."""
    nonzero = matrix != 0
    columns = np.argmax(nonzero, axis=1)
    alone = (nonzero.sum(axis=1) == 1).all() and len(np.unique(columns)) == len(matrix)
    return columns if alone else None
