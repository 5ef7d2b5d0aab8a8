"""Workloads given by a matrix or by sparse queries, and workloads derived from other workloads."""

from __future__ import annotations

import abc
import math
from collections.abc import Hashable, Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from geomdp._numerics.linalg import AffineHull, highest_rows, row_blocks
from geomdp._typing import FloatArray, IntArray, RandomState
from geomdp._validation import batch, finite_array, listed, require_type, whole
from geomdp.workloads.base import (
    CHUNK_ROWS,
    COUNT_ROWS,
    MAX_ENTRIES,
    SparseQuery,
    Totals,
    Workload,
    WorkloadSizeError,
)
from geomdp.workloads.finite import FiniteWorkload
from geomdp.workloads.universes import Elements, FiniteUniverse, OpenUniverse, Records, Universe

if TYPE_CHECKING:
    import pandas as pd


class _Measured(Workload):
    """A workload that computes its (l1, l2) diameters together, and its (l1, l2) radii together."""

    @property
    @abc.abstractmethod
    def _diameters(self) -> tuple[float, float]: ...

    @property
    @abc.abstractmethod
    def _radii(self) -> tuple[float, float]: ...

    def l1_diameter(self) -> float:
        return self._diameters[0]

    def l2_diameter(self) -> float:
        return self._diameters[1]

    def l1_radius(self) -> float:
        return self._radii[0]

    def l2_radius(self) -> float:
        return self._radii[1]


class Explicit(FiniteWorkload, _Measured):
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
    >>> workload = gd.workloads.Explicit([[1, 1, 0], [0, 1, 1]])
    >>> workload.answers(np.array([0, 1, 1, 2]))
    array([0.75, 0.75])
    >>> round(workload.l2_diameter(), 4)
    1.4142
    """

    def __init__(self, matrix: npt.ArrayLike | pd.DataFrame | sp.sparray | sp.spmatrix) -> None:
        # The transpose (N, m) is stored, so the answer vector of an element is contiguous. Any
        # matrix with an attribute `columns` is taken for a DataFrame, without importing pandas.
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
        return self._take(highest_rows(self._rows, directions))

    @property
    def _small(self) -> bool:
        return isinstance(self._rows, np.ndarray) or math.prod(self._rows.shape) <= MAX_ENTRIES

    def affine_hull(self) -> AffineHull:
        """A singular value decomposition: O(N m min(N, m))."""
        return self._hull

    @cached_property
    def _hull(self) -> AffineHull:
        if not self._small:
            raise ValueError(
                "a sparse matrix must have at most 2^26 entries, zeros included, for its affine "
                f"hull, got shape {self.matrix.shape}"
            )
        return AffineHull.of_points(self._take(slice(None)))

    @cached_property
    def _diameters(self) -> tuple[float, float]:
        if self._small:
            points = self._take(slice(None))
            return l1_diameter_of_points(points), l2_diameter_of_points(points)
        ranges = (self._rows.max(axis=0) - self._rows.min(axis=0)).toarray()
        l1_bound = min(2 * self.l1_radius(), float(ranges.sum()))
        return l1_bound, min(2 * self.l2_radius(), float(np.linalg.norm(ranges)))

    @cached_property
    def _radii(self) -> tuple[float, float]:
        return _radii_of_points(self._rows)


class ListedAnswers(_Measured):
    """A workload with a list of all its answer vectors: the columns of `explicit`."""

    @property
    @abc.abstractmethod
    def explicit(self) -> Explicit: ...

    @property
    def n_queries(self) -> int:
        return self.explicit.n_queries

    def extreme_answers(self, directions: FloatArray) -> FloatArray:
        """The first answer vector of `explicit` wins a tie."""
        return self.explicit.extreme_answers(directions)

    def affine_hull(self) -> AffineHull:
        return self.explicit.affine_hull()

    @property
    def _diameters(self) -> tuple[float, float]:
        return self.explicit._diameters

    @property
    def _radii(self) -> tuple[float, float]:
        return self.explicit._radii


class RandomSigns(Explicit):
    """m queries with independent uniform values in {-1, 1}, which are public, on N elements.

    Examples
    --------
    >>> import geomdp as gd
    >>> gd.workloads.RandomSigns(3, 5, rng=0).matrix
    array([[ 1.,  1.,  1., -1., -1.],
           [-1., -1., -1., -1.,  1.],
           [ 1.,  1.,  1.,  1.,  1.]])
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


class SparseQueries(ListedAnswers):
    """A list of at least one sparse query, on the open universe of all hashable elements.

    For u elements in the union of the supports, `explicit` has these and one more for all others,
    where Q(x) = 0. It costs O(sum of sparsities) memory and time.

    Examples
    --------
    >>> import geomdp as gd
    >>> count = gd.workloads.SparseQuery.counting
    >>> workload = gd.workloads.SparseQueries([count(["north"]), count(["north", "south"])])
    >>> workload.answers(["north", "south", "west", "north"])
    array([0.5 , 0.75])
    """

    def __init__(self, queries: Iterable[SparseQuery]) -> None:
        given: tuple[object, ...] = listed(queries, "queries")
        if not given:
            raise ValueError("queries must hold at least 1 query, got 0")
        for position, query in enumerate(given):
            if not isinstance(query, SparseQuery):  # a mapping, for example
                kind = type(query).__name__
                raise ValueError(f"queries must be SparseQuery, number {position} is a {kind}")
        self.queries = tuple(query for query in given if isinstance(query, SparseQuery))
        elements = dict.fromkeys(x for query in self.queries for x in query.support)
        self._number_of = {element: number for number, element in enumerate(elements)}

    def _summary(self) -> str:
        return f"{self.n_queries} queries on {len(self._number_of)} listed elements"

    @property
    def universe(self) -> OpenUniverse:
        return OpenUniverse()

    @property
    def n_queries(self) -> int:
        return len(self.queries)

    @property
    def support(self) -> tuple[Hashable, ...]:
        """The union of the supports: u elements, in the order in which they are first listed."""
        return tuple(self._number_of)

    @cached_property
    def explicit(self) -> Explicit:
        """These queries on {0, ..., u}: elements 0 to u - 1 stand for `support`, and Q(u) = 0."""
        columns = [self._number_of[x] for query in self.queries for x in query.support]
        rows = np.repeat(np.arange(self.n_queries), [query.sparsity for query in self.queries])
        values = np.concatenate([query.values for query in self.queries])
        shape = self.n_queries, len(self._number_of) + 1
        return Explicit(sp.coo_array((values, (rows, columns)), shape=shape))

    def _codes(self, elements: Sequence[Hashable]) -> IntArray:
        """Element numbers in `explicit`; u for every element that no query lists."""
        other = len(self._number_of)
        find = self._number_of.get
        return np.array([find(element, other) for element in elements], dtype=np.int64)

    def evaluate(self, records: Elements) -> FloatArray:
        return self.explicit.evaluate(self._codes(self.universe.validate(records).tolist()))

    def totals(self, records: Elements) -> Totals:
        counts = np.zeros(len(self._number_of) + 1, dtype=np.int64)
        for chunk in self.universe.chunks(records, COUNT_ROWS):
            counts += np.bincount(self._codes(chunk.tolist()), minlength=len(counts))
        sums = self.explicit.matrix @ counts.astype(np.float64)
        return Totals(int(counts.sum()), np.asarray(sums))

    def answers(self, records: Elements) -> FloatArray:
        return super().answers(cast("Records", records))  # `totals` takes any elements


class LinearMap(_Measured):
    """The workload that maps x to A Q(x), for a workload Q of m queries.

    A is the `matrix` (p, m), a copied array of finite entries. For N m and N p up to 2^26, on N
    elements, radii are exact, and diameters as in `Explicit` for a dense matrix. Otherwise they are
    upper bounds from operator norms of A and from the radii, diameters and orthogonal `blocks` of
    Q.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> halves = np.array([[1, 1, 0, 0], [0, 0, 1, 1]])
    >>> workload = gd.workloads.LinearMap(gd.workloads.Histogram(4), halves)
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
        # If the columns of B span the directions of the inner hull, the columns of A B span those
        # of its image: the affine hull of 0, these columns and their negatives.
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

    def l2_diameter(self) -> float:
        return self._l2_diameter  # without the l1 diameter, which can take longer

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
    def _diameters(self) -> tuple[float, float]:
        l2_diameter = self.l2_diameter()
        if self._points is not None:
            return l1_diameter_of_points(self._points), l2_diameter
        return self._l1_bound(self.workload.l1_diameter(), l2_diameter), l2_diameter

    @cached_property
    def _radii(self) -> tuple[float, float]:
        if self._points is not None:
            return _radii_of_points(self._points)
        l2_bound = float(np.linalg.norm(self.matrix, 2) * self.workload.l2_radius())
        return self._l1_bound(self.workload.l1_radius(), l2_bound), l2_bound

    def _l1_bound(self, inner: float, l2_bound: float) -> float:
        """Bound on an l1 norm by that of the inner answers, and by the l2 norm of the images."""
        column = np.abs(self.matrix).sum(axis=0).max()
        return float(min(column * inner, np.sqrt(self.n_queries) * l2_bound))


class Coarsened(ListedAnswers):
    """The workload that maps x to the centre nearest to Q(x), the first one in a tie."""

    # The centre of every element is computed once, because rounding could make centres that are
    # computed for a chunk of records depend on the other records of the chunk.

    def __init__(self, workload: Workload, centres: npt.ArrayLike) -> None:
        self.workload = workload
        places = batch(centres, workload.n_queries, "centres")
        if len(places) == 0:
            raise ValueError("centres must have at least one row, got none")
        nearest, distances = _nearest(explicit_answers(workload), places)
        used, first, assignment = np.unique(nearest, return_index=True, return_inverse=True)
        # Order the centres by their lowest element number, which wins a tie in `extreme_answers`.
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

    distances = (cdist(part, centres) for part in _parts(points))
    found = [(part.argmin(axis=1), part.min(axis=1)) for part in distances]
    return np.concatenate([row for row, _ in found]), np.concatenate([least for _, least in found])


def explicit_answers(workload: Workload) -> FloatArray:
    """Answer vectors (N, m) of all N elements of a finite universe, in the order of the universe.

    `WorkloadSizeError` for an infinite universe, or if N m > 2^26.

    Examples
    --------
    >>> import geomdp as gd
    >>> gd.workloads.explicit_answers(gd.workloads.Marginals(2, 1))
    array([[0., 0.],
           [0., 1.],
           [1., 0.],
           [1., 1.]])
    """
    size, m = workload.universe.size, workload.n_queries
    if size is None or size * m > MAX_ENTRIES:
        raise WorkloadSizeError(
            f"workload must have at most 2^26 answers over all elements, got {workload!r} "
            f"with {m} queries on {'infinitely many' if size is None else size} elements"
        )
    answers = np.empty((size, m))
    for part in row_blocks(size, 1, CHUNK_ROWS):
        answers[part] = workload.evaluate(workload.universe.elements(part.start, part.stop))
    return answers


# Diameters of finite sets of points: exact for small sets, upper bounds for large sets.

#: Largest N^2 m for which the l1 diameter of N points in R^m is computed exactly, in 2 seconds.
L1_WORK = 1 << 32
#: Largest number of points N for which the l2 diameter is computed exactly, by matrix products.
L2_POINTS = 1 << 14
#: Number of rows that are compared with all others, or with all centres, at a time.
BLOCK_ROWS = 512


def l1_diameter_of_points(points: FloatArray) -> float:
    """Bound on the largest l1 distance of rows of `points` (N, m); exact for N^2 m <= 2^32."""
    from scipy.spatial.distance import cdist

    n_points, dimension = points.shape
    if n_points**2 * dimension > L1_WORK:
        low, high = points.min(axis=0), points.max(axis=0)
        radius = max(
            float(np.abs(part - (low + high) / 2).sum(axis=1).max()) for part in _parts(points)
        )
        return min(2 * radius, float((high - low).sum()))
    return max(
        float(cdist(points[rows], points[rows.start :], "cityblock").max())
        for rows in row_blocks(n_points, 1, BLOCK_ROWS)
    )


def l2_diameter_of_points(points: FloatArray) -> float:
    """Bound on the largest l2 distance of rows of `points` (N, m); exact for N <= 2^14."""
    low, high = points.min(axis=0), points.max(axis=0)
    middle = (low + high) / 2
    if len(points) > L2_POINTS:
        radius = max(float(np.linalg.norm(part - middle, axis=1).max()) for part in _parts(points))
        return min(2 * radius, float(np.linalg.norm(high - low)))
    centred = points - middle
    squares = np.einsum("nm,nm->n", centred, centred)
    best = 0.0
    for rows in row_blocks(len(points), 1, BLOCK_ROWS):
        start = rows.start
        distances = squares[rows, None] + squares[start:] - 2 * (centred[rows] @ centred[start:].T)
        # The expansion |a|^2 + |b|^2 - 2 <a, b> loses digits: it only finds the farthest pair.
        i, j = np.unravel_index(distances.argmax(), distances.shape)
        best = max(best, float(np.linalg.norm(points[start + i] - points[start + j])))
    return best


def _parts(points: FloatArray) -> list[FloatArray]:
    return [points[rows] for rows in row_blocks(len(points), 1, BLOCK_ROWS)]


def _radii_of_points(points: Any) -> tuple[float, float]:
    """The largest l1 and l2 norm of the rows of a dense or sparse matrix (N, m)."""
    l1_norms, squares = abs(points).sum(axis=1), (points * points).sum(axis=1)
    return float(l1_norms.max()), float(np.sqrt(squares.max()))
