"""Workloads given by a query matrix, dense or sparse."""

from __future__ import annotations

import abc
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from geomdp._numerics.linalg import AffineHull
from geomdp._typing import FloatArray, IntArray, RandomState
from geomdp._validation import batch, finite_array, whole
from geomdp.workloads.base import MAX_ENTRIES, Workload
from geomdp.workloads.closed_forms import diameters
from geomdp.workloads.finite import FiniteWorkload
from geomdp.workloads.universe.universes import FiniteUniverse, Records

if TYPE_CHECKING:
    import pandas as pd

#: Number of inner products of directions and columns in memory at a time: 2^22 float64 are 32 MB.
BLOCK_ENTRIES = 1 << 22


class Explicit(FiniteWorkload):
    """The m queries q_j(x) = matrix[j, x] on the universe {0, ..., N - 1}.

    For a dense matrix, the l1 diameter is exact if N^2 m <= 2^32, and the Euclidean diameter if
    N <= 2^14; above, they are upper bounds. A sparse matrix with N m <= 2^26 is treated as dense.
    For a larger one, the diameters are upper bounds, and `affine_hull` raises ``ValueError``.

    Parameters
    ----------
    matrix : (m, N) array, DataFrame, or scipy.sparse matrix or array
        Finite values, at least one, which are copied; a sparse matrix stays sparse. The index of a
        DataFrame gives the names of the queries.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> workload = gd.workloads.Explicit(np.array([[1, 1, 0], [0, 1, 1]]))
    >>> workload
    Explicit(2 queries on 3 elements)
    >>> workload.answers(np.array([0, 1, 1, 2]))
    array([0.75, 0.75])
    >>> round(workload.l2_diameter(), 4)
    1.4142
    """

    def __init__(self, matrix: npt.ArrayLike | pd.DataFrame | sp.sparray | sp.spmatrix) -> None:
        # The transpose (N, m) is stored. The answer vector of an element is then contiguous. Any
        # matrix with an attribute `columns` is taken for a DataFrame. This avoids importing pandas.
        index: Any = getattr(matrix, "index", ()) if hasattr(matrix, "columns") else ()
        self._labels = [str(label) for label in index]
        self._rows: Any = _sparse_rows(matrix) if sp.issparse(matrix) else _dense_rows(matrix)
        if 0 in self._rows.shape:
            raise ValueError(f"matrix must have rows and columns, got shape {self.matrix.shape}")

    @property
    def matrix(self) -> Any:
        """The query matrix (m, N): a read-only array, or a scipy.sparse CSC array."""
        return self._rows.T

    def labels(self) -> list[str]:
        return list(self._labels) or super().labels()

    @property
    def universe(self) -> FiniteUniverse:
        return FiniteUniverse(self._rows.shape[0])

    @property
    def n_queries(self) -> int:
        return int(self._rows.shape[1])

    @cached_property
    def whole_answers(self) -> bool:
        entries = sp.find(self.matrix)[2]  # the entries that are not 0
        return bool((entries == np.rint(entries)).all())

    def evaluate(self, records: Records) -> FloatArray:
        return self._take(self.universe.validate(records))

    def _take(self, codes: IntArray | slice) -> FloatArray:
        rows = self._rows[codes]
        return rows if isinstance(rows, np.ndarray) else np.ascontiguousarray(rows.toarray())

    def _weighted_sum(self, counts: FloatArray) -> FloatArray:
        return np.asarray(counts @ self._rows)

    def extreme_answers(self, directions: FloatArray) -> FloatArray:
        """O(b m N), or O(b (N + z)) for z nonzero entries; the first column wins a tie."""
        directions = batch(directions, self.n_queries, "directions")
        size = self._rows.shape[0]
        winners = np.zeros(len(directions), dtype=np.int64)
        best = np.full(len(directions), -np.inf)
        width = max(1, BLOCK_ENTRIES // max(1, len(directions)))
        for start in range(0, size, width):
            scores = np.asarray(directions @ self._rows[start : start + width].T)
            block = scores.argmax(axis=1)
            values = np.take_along_axis(scores, block[:, None], axis=1)[:, 0]
            better = values > best
            winners[better] = start + block[better]
            best[better] = values[better]
        return self._take(winners)

    @property
    def _small(self) -> bool:
        return isinstance(self._rows, np.ndarray) or self._rows.shape[0] * self.n_queries <= (
            MAX_ENTRIES
        )

    @cached_property
    def _hull(self) -> AffineHull:
        if not self._small:
            raise ValueError(
                "a sparse matrix must have at most 2^26 entries, zeros included, for its affine "
                f"hull, got shape {self.matrix.shape}"
            )
        return AffineHull.of_points(self._take(slice(None)))

    def affine_hull(self) -> AffineHull:
        """A singular value decomposition: O(N m min(N, m))."""
        return self._hull

    @cached_property
    def _diameters(self) -> tuple[float, float]:
        if self._small:
            points = self._take(slice(None))
            return diameters.l1_diameter(points), diameters.l2_diameter(points)
        ranges = (self._rows.max(axis=0) - self._rows.min(axis=0)).toarray()
        l1_bound = min(2 * self.l1_radius(), float(ranges.sum()))
        return l1_bound, min(2 * self.l2_radius(), float(np.linalg.norm(ranges)))

    def l1_diameter(self) -> float:
        return self._diameters[0]

    def l2_diameter(self) -> float:
        return self._diameters[1]

    @cached_property
    def _radii(self) -> tuple[float, float]:
        l1_norms, squares = abs(self._rows).sum(axis=1), (self._rows * self._rows).sum(axis=1)
        return float(l1_norms.max()), float(np.sqrt(squares.max()))

    def l1_radius(self) -> float:
        return self._radii[0]

    def l2_radius(self) -> float:
        return self._radii[1]


class ListedAnswers(Workload):
    """A workload with a list of all its answer vectors: the columns of `explicit`."""

    @property
    @abc.abstractmethod
    def explicit(self) -> Explicit:
        """The explicit workload whose columns are the answer vectors of this workload."""

    @property
    def n_queries(self) -> int:
        return self.explicit.n_queries

    def extreme_answers(self, directions: FloatArray) -> FloatArray:
        """The first answer vector of `explicit` wins a tie."""
        return self.explicit.extreme_answers(directions)

    def affine_hull(self) -> AffineHull:
        return self.explicit.affine_hull()

    def l1_diameter(self) -> float:
        return self.explicit.l1_diameter()

    def l2_diameter(self) -> float:
        return self.explicit.l2_diameter()

    def l1_radius(self) -> float:
        return self.explicit.l1_radius()

    def l2_radius(self) -> float:
        return self.explicit.l2_radius()


class RandomSigns(Explicit):
    """m queries with independent uniform values in {-1, 1} on each of N elements.

    Parameters
    ----------
    m : int
        Number of queries.
    N : int
        Size of the universe.
    rng : Generator, int or None
        Draws the values, which are public.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> workload = gd.workloads.RandomSigns(3, 5, rng=0)
    >>> workload.matrix
    array([[ 1.,  1.,  1., -1., -1.],
           [-1., -1., -1., -1.,  1.],
           [ 1.,  1.,  1.,  1.,  1.]])
    >>> workload.answers(np.array([0, 0, 1]))
    array([ 1., -1.,  1.])
    """

    def __init__(self, m: int, N: int, rng: RandomState = None) -> None:
        shape = (whole(m, "m"), whole(N, "N"))
        super().__init__(2.0 * np.random.default_rng(rng).integers(2, size=shape) - 1)


def _dense_rows(matrix: Any) -> FloatArray:
    rows = np.array(finite_array(matrix, "matrix", ndim=2).T, order="C")
    rows.setflags(write=False)
    return rows


def _sparse_rows(matrix: Any) -> Any:
    """A copy of the transpose in compressed row format, without duplicate entries."""
    if matrix.ndim != 2:
        raise ValueError(f"matrix must have 2 axes, got shape {matrix.shape}")
    try:
        rows = sp.csr_array(matrix.T, dtype=np.float64, copy=True)
    except (TypeError, ValueError) as error:
        raise ValueError(f"matrix must be numeric, got dtype {matrix.dtype}") from error
    rows.sum_duplicates()
    finite_array(rows.data, "matrix", ndim=1)
    return rows
