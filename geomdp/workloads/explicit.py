"""Workloads given by a query matrix, dense or sparse."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from geomdp._linalg import AffineHull
from geomdp._typing import FloatArray, IntArray, RandomState
from geomdp._validation import batch, finite_array, whole
from geomdp.workloads import diameters
from geomdp.workloads.finite import FiniteWorkload
from geomdp.workloads.universes import FiniteUniverse, Records

#: Scores or answers held at a time: 2^22 float64 are 32 MB.
BLOCK_ENTRIES = 1 << 22


class Explicit(FiniteWorkload):
    """The m queries q_j(x) = matrix[j, x] on the universe {0, ..., N - 1}.

    Parameters
    ----------
    matrix : (m, N) array or scipy.sparse matrix or array
        Finite values; copied. A sparse matrix stays sparse: evaluation takes columns, products go
        block by block.

    Raises
    ------
    ValueError
        Not numeric, not two axes, empty, NaN or infinite.

    Notes
    -----
    Diameters are exact for N^2 m <= 2^32 (l1) and N <= 2^14 (l2), bounds above that; both need the
    dense N x m table of answers.
    """

    def __init__(self, matrix: npt.ArrayLike | sp.sparray | sp.spmatrix) -> None:
        self._columns: Any = _sparse(matrix) if sp.issparse(matrix) else _dense(matrix)
        if 0 in self._columns.shape:
            raise ValueError(f"matrix must have rows and columns, got {self._columns.shape}")

    def __repr__(self) -> str:
        m, N = self._columns.shape
        kind = "sparse matrix" if sp.issparse(self._columns) else "matrix"
        return f"{type(self).__name__}({m} x {N} {kind})"

    @property
    def matrix(self) -> Any:
        """The query matrix (m, N): a read-only array, or a scipy.sparse CSC array."""
        return self._columns

    @property
    def universe(self) -> FiniteUniverse:
        """The universe {0, ..., N - 1}."""
        return FiniteUniverse(self._columns.shape[1])

    @property
    def n_queries(self) -> int:
        """Number of queries m."""
        return int(self._columns.shape[0])

    def _take(self, codes: IntArray | slice) -> FloatArray:
        """Answer vectors (n, m) of the elements `codes`, dense."""
        rows = self._columns[:, codes].T
        if not isinstance(rows, np.ndarray):
            rows = rows.toarray()
        return np.ascontiguousarray(rows)

    def evaluate(self, records: Records) -> FloatArray:
        """Columns of the matrix at the records, as rows (n, m)."""
        return self._take(self.universe.validate(records))

    def _weighted_sum(self, counts: FloatArray) -> FloatArray:
        return np.asarray(self._columns @ counts)

    def extreme_answers(self, directions: FloatArray) -> FloatArray:
        """Best columns (b, m) for directions (b, m), the first among ties; b x N in blocks."""
        directions = batch(directions, self.n_queries, "directions")
        size = self._columns.shape[1]
        winners = np.zeros(len(directions), dtype=np.int64)
        best = np.full(len(directions), -np.inf)
        width = max(1, BLOCK_ENTRIES // max(1, len(directions)))
        for start in range(0, size, width):
            scores = np.asarray(directions @ self._columns[:, start : start + width])
            block = scores.argmax(axis=1)
            values = np.take_along_axis(scores, block[:, None], axis=1)[:, 0]
            better = values > best
            winners[better] = start + block[better]
            best[better] = values[better]
        return self._take(winners)

    def affine_hull(self) -> AffineHull:
        """Affine hull of the columns, by a singular value decomposition."""
        return AffineHull.of_points(self._points)

    @property
    def _points(self) -> FloatArray:
        """Answers of all elements (N, m), dense."""
        return self._take(slice(None))

    @cached_property
    def _diameters(self) -> tuple[float, float]:
        points = self._points
        return diameters.l1_diameter(points), diameters.l2_diameter(points)

    def l1_diameter(self) -> float:
        """Largest l1 distance of two columns: exact for N^2 m <= 2^32, else an upper bound."""
        return self._diameters[0]

    def l2_diameter(self) -> float:
        """Largest Euclidean distance of two columns: exact for N <= 2^14, else an upper bound."""
        return self._diameters[1]

    def l1_radius(self) -> float:
        """Largest l1 norm of a column."""
        return float(abs(self._columns).sum(axis=0).max())

    def l2_radius(self) -> float:
        """Largest Euclidean norm of a column."""
        return float(np.sqrt((self._columns * self._columns).sum(axis=0).max()))


def _dense(matrix: Any) -> FloatArray:
    """Read-only copy in column order: taking a column is then a contiguous read."""
    columns = np.array(finite_array(matrix, "matrix", ndim=2), order="F")
    columns.setflags(write=False)
    return columns


def _sparse(matrix: Any) -> Any:
    """Copy in compressed column form, without duplicate entries."""
    columns = sp.csc_array(matrix, dtype=np.float64, copy=True)
    columns.sum_duplicates()
    finite_array(columns.data, "matrix", ndim=1)
    return columns


class RandomSigns(Explicit):
    """m queries with independent uniform values in {-1, 1} on each of N elements.

    Parameters
    ----------
    m : int
        Number of queries.
    N : int
        Size of the universe.
    rng : Generator, int or None
        Draws the (public) queries.
    """

    def __init__(self, m: int, N: int, rng: RandomState = None) -> None:
        shape = (whole(m, "m"), whole(N, "N"))
        super().__init__(2.0 * np.random.default_rng(rng).integers(2, size=shape) - 1)
