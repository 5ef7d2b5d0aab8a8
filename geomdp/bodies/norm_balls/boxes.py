"""Axis-parallel boxes."""

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
from geomdp.bodies.arguments import SupportFunction, frozen_array
from geomdp.bodies.base import MEMBERSHIP_TOLERANCE, Body
from geomdp.bodies.norm_balls.symmetrised_box import SymmetrisedBox


@dataclass(frozen=True, eq=False)
class Box(Body):
    """The box {x in R^m : lower <= x <= upper}.

    Verbs for points and directions are closed forms that cost O(m) for each. It implements neither
    `facets` nor `vertex_list`.

    Parameters
    ----------
    lower, upper : (m,) array
        Finite, m >= 1, lower <= upper entry by entry; equal entries make the box
        lower-dimensional.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> box = gd.bodies.Box([0.0, 0.0], [1.0, 2.0])
    >>> box.support(np.array([[1.0, -1.0]])).tolist()
    [1.0]
    >>> box.project(np.array([[3.0, 1.0]])).tolist()
    [[1.0, 1.0]]
    >>> gd.difference_body(box).upper.tolist()
    [1.0, 2.0]
    """

    lower: FloatArray
    upper: FloatArray

    def __post_init__(self) -> None:
        lower = frozen_array(self.lower, "lower", ndim=1)
        upper = frozen_array(self.upper, "upper", ndim=1)
        if lower.shape != upper.shape or not lower.size:
            raise ValueError(
                f"lower and upper must have the same shape (m,), m >= 1, got {lower.shape} and "
                f"{upper.shape}"
            )
        if (lower > upper).any():
            i = int(np.argmax(lower > upper))
            raise ValueError(
                f"lower must be at most upper, got {lower[i]} and {upper[i]} at index {i}"
            )
        object.__setattr__(self, "lower", lower)
        object.__setattr__(self, "upper", upper)

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
        """Sum of max(u_i lower_i, u_i upper_i)."""
        return np.asarray(
            np.maximum(directions, 0) @ self.upper + np.minimum(directions, 0) @ self.lower
        )

    def extreme_point(self, directions: FloatArray) -> FloatArray:
        return np.where(directions > 0, self.upper, self.lower)

    def gauge(self, points: FloatArray) -> FloatArray:
        """Largest of x_i / upper_i and x_i / lower_i; inf outside the span of a flat box."""
        bounds = np.where(points > 0, self.upper, -self.lower)
        ratios = np.zeros_like(points)
        np.divide(np.abs(points), bounds, out=ratios, where=bounds > 0)
        ratios[(bounds == 0) & (points != 0)] = np.inf
        return np.asarray(ratios.max(axis=1))

    def contains(self, points: FloatArray, tolerance: float = MEMBERSHIP_TOLERANCE) -> BoolArray:
        """Whether every entry is in its interval, up to `tolerance` times the largest |bound|."""
        slack = tolerance * max(np.abs(self.lower).max(), np.abs(self.upper).max())
        inside = (points >= self.lower - slack) & (points <= self.upper + slack)
        return np.asarray(inside.all(axis=1))

    def chord(self, points: FloatArray, directions: FloatArray) -> tuple[FloatArray, FloatArray]:
        ends = []
        for way in (-directions, directions):
            room = np.where(way > 0, self.upper - points, points - self.lower)
            times = np.full(points.shape, np.inf)
            np.divide(np.maximum(room, 0), np.abs(way), out=times, where=way != 0)
            ends.append(times.min(axis=1))
        return -ends[0], ends[1]

    def project(self, points: FloatArray) -> FloatArray:
        return np.clip(points, self.lower, self.upper)

    def radius(self) -> float:
        return float(np.linalg.norm(np.maximum(np.abs(self.lower), np.abs(self.upper))))

    @property
    def effective_dimension(self) -> int:
        return int(np.count_nonzero(self._widths > 0))

    def affine_hull(self) -> AffineHull:
        offset = (self.lower + self.upper) / 2
        return AffineHull(offset, np.eye(self.dimension)[:, self._widths > 0])

    def sample_uniform(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Independent uniform entries, exact (SAM-4)."""
        return np.asarray(self.lower + self._widths * rng.random((n, self.dimension)))

    def centroid(self) -> FloatArray:
        return np.asarray((self.lower + self.upper) / 2)

    def second_moment(self) -> FloatArray:
        """diag(width_i^2 / 12) + centre centre^T; a uniform number in [0, 1] has variance 1/12."""
        centre = (self.lower + self.upper) / 2
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
        """Sum of the widths divided by sqrt(2 pi)."""
        return float(self._widths.sum()) / math.sqrt(2 * math.pi)

    def largest_gauge(self, support: SupportFunction) -> float | None:
        """Largest ratio, over the axes in the span of the box, of the support value and the
        distance from 0 to the nearer side; None for a box without a gauge.
        """
        if not self._has_gauge:
            return None
        bounds = np.minimum(self.upper, -self.lower)
        wide = bounds > 0
        axes = np.diag(1 / bounds[wide]) @ np.eye(self.dimension)[wide]
        return float(support(axes).max(initial=0.0))


def axes_of(matrix: FloatArray) -> IntArray | None:
    """The column of the only nonzero entry of each row (k,); None if not unique or not distinct."""
    nonzero = matrix != 0
    columns = np.argmax(nonzero, axis=1)
    alone = (nonzero.sum(axis=1) == 1).all() and len(np.unique(columns)) == len(matrix)
    return columns if alone else None
