"""Workloads derived from other workloads: linear images A Q, weighted unions, and coarsenings."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from geomdp._numerics.linalg import AffineHull
from geomdp._typing import FloatArray, IntArray
from geomdp._validation import batch, finite_array, listed, positive, require_type
from geomdp.workloads.base import CHUNK_ROWS, MAX_ENTRIES, Totals, Workload
from geomdp.workloads.explicit import (
    Explicit,
    ListedAnswers,
    explicit_answers,
    l1_diameter_of_points,
    l2_diameter_of_points,
)
from geomdp.workloads.universes import Records, Universe


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
            return l2_diameter_of_points(self._points)
        one_block = np.linalg.norm(self.matrix @ self.workload.affine_hull().basis, 2)
        by_blocks = sum(
            np.linalg.norm(self.matrix @ block.basis, 2) * block.diameter
            for block in self.workload.blocks()
        )
        return float(min(one_block * self.workload.l2_diameter(), by_blocks))

    @cached_property
    def _l1_diameter(self) -> float:
        if self._points is not None:
            return l1_diameter_of_points(self._points)
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


class Union(Workload):
    """The queries of several workloads, one after the other: x -> (w_1 Q_1(x), w_2 Q_2(x), ...).

    Mechanisms keep the error of the weighted answers small, so queries of larger weight become more
    accurate. Divide the answers by `weights`, with one entry per query, to get those of the
    workloads. Extreme answers, affine hull, diameters and radii come from the answers of all
    elements; above 2^26 of these, they raise `WorkloadSizeError`. For tables of many columns,
    `ChosenTables` has closed forms.

    Parameters
    ----------
    workloads : sequence of Workload
        At least one workload; all must have the same finite universe.
    weights : sequence of float, optional
        One positive weight per workload; by default 1.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> parts = [gd.workloads.Marginals(2, 1), gd.workloads.Marginals(2, 2)]
    >>> workload = gd.workloads.Union(parts, weights=[1, 3])
    >>> workload
    Union(Marginals(d=2, k=1), Marginals(d=2, k=2))
    >>> workload.answers(np.array([[1, 1], [1, 0]]))
    array([1. , 0.5, 1.5])
    """

    def __init__(
        self, workloads: Sequence[Workload], weights: Sequence[float] | None = None
    ) -> None:
        self.workloads = listed(workloads, "workloads")
        if not self.workloads:
            raise ValueError("workloads must hold at least 1 workload, got 0")
        for workload in self.workloads:
            if not isinstance(workload, Workload):
                raise ValueError(f"workloads must be Workloads, got {type(workload).__name__}")
            if workload.universe != self.universe or workload.universe.size is None:
                raise ValueError(
                    "workloads must be on one finite universe, got "
                    f"{self.universe!r} and {workload.universe!r}"
                )
        given = listed([1.0] * len(self.workloads) if weights is None else weights, "weights")
        if len(given) != len(self.workloads):
            raise ValueError(
                f"weights must have {len(self.workloads)} entries, one per workload, "
                f"got {len(given)}"
            )
        self._part_weights = [positive(weight, "weights") for weight in given]

    def _summary(self) -> str:
        return ", ".join(map(repr, self.workloads))

    @property
    def universe(self) -> Universe:
        return self.workloads[0].universe

    @property
    def n_queries(self) -> int:
        return sum(workload.n_queries for workload in self.workloads)

    @cached_property
    def weights(self) -> FloatArray:
        """The weight of each query (m,): the weight of its workload."""
        return np.repeat(self._part_weights, [workload.n_queries for workload in self.workloads])

    def evaluate(self, records: Records) -> FloatArray:
        parts = [workload.evaluate(records) for workload in self.workloads]
        return np.hstack(parts) * self.weights

    def totals(self, records: Records | Iterable[Records]) -> Totals:
        """The records are read once for all workloads."""
        count, sums = 0, np.zeros(self.n_queries)
        for chunk in self.universe.chunks(records, CHUNK_ROWS):
            count += len(chunk)
            sums += np.concatenate([workload.totals(chunk).sums for workload in self.workloads])
        return Totals(count, sums * self.weights)

    @cached_property
    def _explicit(self) -> Explicit:
        return Explicit(explicit_answers(self).T)

    def extreme_answers(self, directions: FloatArray) -> FloatArray:
        """One product with the matrix of all answers."""
        return self._explicit.extreme_answers(batch(directions, self.n_queries, "directions"))

    def affine_hull(self) -> AffineHull:
        return self._explicit.affine_hull()

    def l1_diameter(self) -> float:
        """An upper bound if N^2 m > 2^32 for N elements and m queries, else exact."""
        return self._explicit.l1_diameter()

    def l2_diameter(self) -> float:
        """Exact for at most 2^14 elements, else an upper bound."""
        return self._explicit.l2_diameter()

    def l1_radius(self) -> float:
        return self._explicit.l1_radius()

    def l2_radius(self) -> float:
        return self._explicit.l2_radius()

    def labels(self) -> list[str]:
        return list(itertools.chain(*(workload.labels() for workload in self.workloads)))


#: Number of elements that are compared with all centres at a time.
BLOCK_ELEMENTS = 1024


class Coarsened(ListedAnswers):
    """The workload that maps x to the centre nearest to Q(x), in Euclidean norm.

    If several centres are nearest to Q(x), x is mapped to the first of them. The centre of every
    element is computed once, because rounding could make centres that are computed for a chunk of
    records depend on the other records of the chunk.

    Parameters
    ----------
    workload : Workload
        Q, with m queries on a finite universe of N elements with N m <= 2^26.
    centres : (s, m) array
        Points of the answer space, with finite entries. The array is copied.

    Attributes
    ----------
    centres : (r, m) array, r <= s
        The given centres to which some x is mapped, in the order of the first such x.
    distance : float
        The largest Euclidean distance from Q(x) to its centre. For every data set, it bounds the
        distance of the mean answers of this workload from those of Q.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> inner = gd.workloads.Prefixes(3)
    >>> workload = gd.workloads.Coarsened(inner, np.array([[1.0, 1.0, 1.0], [0.0, 0.5, 1.0]]))
    >>> workload.evaluate(np.array([0, 1, 2]))
    array([[1. , 1. , 1. ],
           [0. , 0.5, 1. ],
           [0. , 0.5, 1. ]])
    >>> workload.distance
    0.5
    """

    def __init__(self, workload: Workload, centres: npt.ArrayLike) -> None:
        require_type(workload, Workload, "workload")
        self.workload = workload
        places = batch(centres, workload.n_queries, "centres")
        if len(places) == 0:
            raise ValueError("centres must have at least one row, got none")
        nearest, distances = _nearest(explicit_answers(workload), places)
        used, first, assignment = np.unique(nearest, return_index=True, return_inverse=True)
        # Order the centres by the lowest element number that is mapped to each centre. In a tie,
        # `extreme_answers` takes the first centre, so the lowest element number wins.
        order = np.argsort(first)
        self.centres = places[used[order]]
        self._assignment = np.argsort(order)[assignment]
        self.centres.setflags(write=False)
        self.distance = float(distances.max())

    def _summary(self) -> str:
        return f"{self.workload!r}, {len(self.centres)} centres"

    @property
    def universe(self) -> Universe:
        return self.workload.universe

    @cached_property
    def explicit(self) -> Explicit:
        return Explicit(self.centres.T)

    def evaluate(self, records: Records) -> FloatArray:
        return np.asarray(self.centres[self._assignment[self.universe.numbers(records)]])


def _nearest(points: FloatArray, centres: FloatArray) -> tuple[IntArray, FloatArray]:
    """The number (N,) and the distance (N,) of the centre nearest to each row of `points`."""
    from scipy.spatial.distance import cdist

    nearest, least = np.empty(len(points), dtype=np.int64), np.empty(len(points))
    for start in range(0, len(points), BLOCK_ELEMENTS):
        rows = slice(start, start + BLOCK_ELEMENTS)
        distances = cdist(points[rows], centres)
        nearest[rows], least[rows] = distances.argmin(axis=1), distances.min(axis=1)
    return nearest, least
