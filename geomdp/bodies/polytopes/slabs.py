"""Intersections of symmetric slabs, which serve as outer bodies for K-norm noise."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from geomdp._numerics.linalg import RANK_TOLERANCE
from geomdp._typing import FloatArray
from geomdp.bodies.arguments import SupportFunction, check_all_above_0
from geomdp.bodies.linear_programs import ConicProgram
from geomdp.bodies.oracles import Facets
from geomdp.bodies.polytopes.hpolytope import ByInequalities, frozen_rows


@dataclass(frozen=True, eq=False)
class SlabBody(ByInequalities):
    """The symmetric body {y in R^r : |<z_j, y>| <= w_j for j = 1, ..., F}.

    Gauge, facets and chords have closed forms, O(F r) per point. Support and extreme points solve
    linear programs with r rows and 2 F columns, each started from the previous solution.

    Parameters
    ----------
    directions : (F, r) array
        Finite rows z_j that span R^r. No row is 0.
    widths : (F,) array
        Finite half-widths w_j > 0. If w_j >= h_K(z_j) for all j, where h_K is the support function
        of a symmetric body K, then this body contains K (X-OUT).

    Raises
    ------
    ValueError
        At first use: if the directions do not span R^r.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> hexagon = gd.bodies.SlabBody([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [1.0, 1.0, 1.0])
    >>> hexagon.gauge(np.array([[1.0, 1.0], [1.0, -1.0]])).tolist()
    [2.0, 1.0]
    >>> hexagon.support(np.array([[1.0, 1.0]])).round(6).tolist()
    [1.0]
    """

    directions: FloatArray
    widths: FloatArray

    symmetric = True

    def __post_init__(self) -> None:
        directions, widths = frozen_rows(self.directions, self.widths, ("directions", "widths"))
        check_all_above_0(widths, "widths")
        object.__setattr__(self, "directions", directions)
        object.__setattr__(self, "widths", widths)

    def _summary(self) -> str:
        return f"{len(self.widths)} slabs"

    @property
    def dimension(self) -> int:
        return int(self.directions.shape[1])

    @cached_property
    def normals(self) -> FloatArray:
        """Rows z_j / w_j (F, r), so that the body is {y : |normals @ y| <= 1}."""
        normals = self.directions / self.widths[:, None]
        units = self.directions / np.linalg.norm(self.directions, axis=1, keepdims=True)
        rank = np.linalg.matrix_rank(units, tol=RANK_TOLERANCE)
        if rank < self.dimension:
            raise ValueError(
                f"{self!r} is unbounded: its directions span only {rank} of its dimensions"
            )
        normals.setflags(write=False)
        return normals

    @cached_property
    def _program(self) -> ConicProgram:
        """The dual of max <u, y>: min {sum a + sum b : normals^T (a - b) = u, a >= 0, b >= 0}."""
        columns = np.vstack([self.normals, -self.normals]).T
        return ConicProgram(np.ascontiguousarray(columns), np.ones(columns.shape[1]))

    def gauge(self, points: FloatArray) -> FloatArray:
        """max_j |<z_j, y>| / w_j for each point y."""
        return np.asarray(np.abs(points @ self.normals.T).max(axis=1))

    def facets(self, points: FloatArray) -> Facets:
        """Gauges, and the normals +-z_j / w_j of the slabs with the largest |<z_j, y>| / w_j."""
        ratios = points @ self.normals.T
        winners = np.abs(ratios).argmax(axis=1)
        top = np.take_along_axis(ratios, winners[:, None], axis=1)
        return Facets(np.abs(top[:, 0]), np.copysign(1.0, top) * self.normals[winners])

    def chord(self, points: FloatArray, directions: FloatArray) -> tuple[FloatArray, FloatArray]:
        heights = np.clip(points @ self.normals.T, -1.0, 1.0)
        slopes = directions @ self.normals.T
        # With s = |slope| and c = height sign(slope), the line is in the slab for t from
        # (-1 - c) / s to (1 - c) / s.
        along = np.where(slopes < 0, -heights, heights)
        steep = np.abs(slopes)
        low, high = np.full(slopes.shape, -np.inf), np.full(slopes.shape, np.inf)
        np.divide(-1 - along, steep, out=low, where=steep > 0)
        np.divide(1 - along, steep, out=high, where=steep > 0)
        return low.max(axis=1), high.min(axis=1)

    def cvxpy_constraints(self, variable: Any) -> list[Any]:
        import cvxpy as cp

        return [cp.abs(self.normals @ variable) <= 1]

    def largest_gauge(self, support: SupportFunction) -> float:
        """The largest value of `support` at a row z_j / w_j."""
        return float(support(np.array(self.normals)).max())
