"""Linear images of workloads: the queries are linear combinations A Q of other queries."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

import numpy as np
import numpy.typing as npt

from geomdp._numerics.linalg import AffineHull
from geomdp._typing import FloatArray
from geomdp._validation import batch, finite_array, require_type
from geomdp.workloads.base import MAX_ENTRIES, Totals, Workload
from geomdp.workloads.closed_forms import diameters
from geomdp.workloads.closed_forms.enumeration import explicit_answers
from geomdp.workloads.universe.universes import Records, Universe


class LinearMap(Workload):
    """The workload that maps x to A Q(x), for a matrix A.

    For N m and N p up to 2^26, on N elements, radii are exact, and diameters as in `Explicit` for a
    dense matrix. Otherwise they are upper bounds from operator norms of A and from the radii,
    diameters and orthogonal `blocks` of Q.

    Parameters
    ----------
    workload : Workload
        The workload Q, with m queries.
    matrix : (p, m) array
        The matrix A, with finite entries. The array is copied.

    Examples
    --------
    The share of records in each half of a histogram:

    >>> import numpy as np
    >>> import geomdp as gd
    >>> halves = np.array([[1, 1, 0, 0], [0, 0, 1, 1]])
    >>> workload = gd.workloads.LinearMap(gd.workloads.Histogram(4), halves)
    >>> workload
    LinearMap(2 combinations of Histogram(N=4))
    >>> workload.answers(np.array([0, 2, 2, 3]))
    array([0.25, 0.75])
    """

    def __init__(self, workload: Workload, matrix: npt.ArrayLike) -> None:
        require_type(workload, Workload, "workload")
        self.workload = workload
        self.matrix = np.array(finite_array(matrix, "matrix", ndim=2))
        if self.matrix.shape[0] == 0 or self.matrix.shape[1] != workload.n_queries:
            raise ValueError(
                f"matrix must have shape (p, {workload.n_queries}), p >= 1, got {self.matrix.shape}"
            )
        self.matrix.setflags(write=False)

    def _summary(self) -> str:
        return f"{self.n_queries} combinations of {self.workload!r}"

    @property
    def universe(self) -> Universe:
        return self.workload.universe

    @property
    def n_queries(self) -> int:
        return len(self.matrix)

    def evaluate(self, records: Records) -> FloatArray:
        return self.workload.evaluate(records) @ self.matrix.T

    def totals(self, records: Records | Iterable[Records]) -> Totals:
        inner = self.workload.totals(records)
        return Totals(inner.count, self.matrix @ inner.sums)

    def extreme_answers(self, directions: FloatArray) -> FloatArray:
        directions = batch(directions, self.n_queries, "directions")
        return self.workload.extreme_answers(directions @ self.matrix) @ self.matrix.T

    def breadth(self, directions: FloatArray) -> FloatArray:
        return self.workload.breadth(batch(directions, self.n_queries, "directions") @ self.matrix)

    @cached_property
    def _hull(self) -> AffineHull:
        inner = self.workload.affine_hull()
        # Let the columns of B span the directions of the inner hull. Then the columns of A B span
        # the directions of its image. Their span is the affine hull of 0, these columns and their
        # negatives.
        spread = (self.matrix @ inner.basis).T
        span = AffineHull.of_points(np.vstack([spread, -spread, np.zeros((1, len(self.matrix)))]))
        return AffineHull(self.matrix @ inner.offset, span.basis)

    def affine_hull(self) -> AffineHull:
        return self._hull

    @cached_property
    def _points(self) -> FloatArray | None:
        """Answers A Q(x) (N, p) of all x, or None if N is infinite or N m or N p is above 2^26."""
        size = self.universe.size
        if size is None or size * max(self.matrix.shape) > MAX_ENTRIES:
            return None
        return explicit_answers(self.workload) @ self.matrix.T

    @cached_property
    def _l2_diameter(self) -> float:
        if self._points is not None:
            return diameters.l2_diameter(self._points)
        one_block = np.linalg.norm(self.matrix @ self.workload.affine_hull().basis, 2)
        by_blocks = sum(
            np.linalg.norm(self.matrix @ block.basis, 2) * block.diameter
            for block in self.workload.blocks()
        )
        return float(min(one_block * self.workload.l2_diameter(), by_blocks))

    @cached_property
    def _l1_diameter(self) -> float:
        if self._points is not None:
            return diameters.l1_diameter(self._points)
        column = np.abs(self.matrix).sum(axis=0).max()
        euclidean = np.sqrt(self.n_queries) * self._l2_diameter
        return float(min(column * self.workload.l1_diameter(), euclidean))

    def l1_diameter(self) -> float:
        return self._l1_diameter

    def l2_diameter(self) -> float:
        return self._l2_diameter

    @cached_property
    def _l1_radius(self) -> float:
        if self._points is not None:
            return float(np.abs(self._points).sum(axis=1).max())
        column = np.abs(self.matrix).sum(axis=0).max()
        return float(
            min(column * self.workload.l1_radius(), np.sqrt(self.n_queries) * self._l2_radius)
        )

    @cached_property
    def _l2_radius(self) -> float:
        if self._points is not None:
            return float(np.linalg.norm(self._points, axis=1).max())
        return float(np.linalg.norm(self.matrix, 2) * self.workload.l2_radius())

    def l1_radius(self) -> float:
        return self._l1_radius

    def l2_radius(self) -> float:
        return self._l2_radius
