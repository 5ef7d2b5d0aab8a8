"""Interactions of columns: they are computed from tables of counts, and determine all answers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from geomdp._typing import FloatArray, IntArray
from geomdp.noise import KNormNoise, LaplaceNoise
from geomdp.noise.base import Noise
from geomdp.noise.mapped import Columns
from geomdp.workloads.finite import zero_sum_basis
from geomdp.workloads.tables import TableQueries

#: Numbers of the columns of a table, in increasing order.
ColumnSet = tuple[int, ...]


class Interactions:
    """Coordinates of the interactions on which the answers to table queries depend.

    Let the columns of the matrix B_i (l_i, l_i - 1) be an orthonormal basis of the vectors of sum 0
    over the l_i levels (values) of column i. The interaction of a set U of columns is, for the
    histogram h of the records,

        theta_U = (tensor over i in U of B_i^T, and of 1^T over the other columns) h.

    The table of a set S of columns has a cell for each combination of levels: the number of records
    with these levels. It determines theta_U for all U within S: the product with [1, B_i]^T along
    the axis of each column computes them from the cells, and the inverse [1 / l_i, B_i] computes
    the cells.
    """

    def __init__(self, workload: TableQueries) -> None:
        self.workload = workload
        self.order = max(map(len, workload.tables))
        within = [S for S in workload._interacting() if min(workload.shape(S)) > 1]
        #: The sets U, the empty set first.
        self.sets: list[ColumnSet] = [(), *within]
        #: Number of each set in `sets`.
        self.number = {U: u for u, U in enumerate(self.sets)}
        sizes = [math.prod(n - 1 for n in workload.shape(U)) for U in self.sets]
        self._starts = np.cumsum([0, *sizes])

    @property
    def dimension(self) -> int:
        """Number of coordinates of all theta_U."""
        return int(self._starts[-1])

    @cached_property
    def costs(self) -> FloatArray:
        """For each U, E ||Z||_2^2 of the noise Z on sums of answers from variance 1 on theta_U."""
        return np.asarray(self._weights_by_table.T @ self._sizes.astype(np.float64))

    def cells(self, table: ColumnSet) -> int:
        """Number of cells of a table."""
        return math.prod(self.workload.shape(table))

    def within(self, table: ColumnSet) -> list[int]:
        """Numbers of the sets U within a table, which need not belong to the workload."""
        orders = range(min(self.order, len(table)) + 1)
        sets = itertools.chain.from_iterable(itertools.combinations(table, j) for j in orders)
        return [self.number[U] for U in sets if U in self.number]

    def coordinates(self, table: ColumnSet) -> list[tuple[int, IntArray, IntArray]]:
        """The number of each U within a table, and two arrays of positions of its coordinates.

        The first is for the result of `to_interactions`, the second for all interactions together.
        """
        patterns = _patterns(self.workload.shape(table), min(self.order, len(table)))
        found = []
        for U, places in self._named(table, patterns):
            u = self.number[U]
            found.append((u, places, np.arange(self._starts[u], self._starts[u + 1])))
        return found

    def _within(self, table: ColumnSet) -> Iterator[tuple[ColumnSet, IntArray]]:
        """Each U within a table of the workload, and its positions as in `coordinates`."""
        return self._named(table, _known_patterns(self.workload.shape(table), len(table)))

    def _named(
        self, table: ColumnSet, patterns: Sequence[tuple[ColumnSet, IntArray]]
    ) -> Iterator[tuple[ColumnSet, IntArray]]:
        """The sets of `sets` that `patterns` chooses from a table, and their positions."""
        named = ((tuple(table[i] for i in chosen), places) for chosen, places in patterns)
        return ((U, places) for U, places in named if U in self.number)

    def to_interactions(self, table: ColumnSet, cells: FloatArray) -> FloatArray:
        """The interactions of a table, computed from its counts `cells` (cells, b)."""
        return _along_axes([_analysis(n) for n in self.workload.shape(table)], cells)

    def to_answers(self, coordinates: FloatArray) -> FloatArray:
        """Sums of answers (m, b) from the coordinates (dimension, b) of all interactions."""
        answers = np.empty((self.workload.n_queries, coordinates.shape[1]))
        for shape, places in self._tables_by_shape.items():
            count, size = places.shape
            inside = coordinates[self._sources[places]].reshape(count, size, -1)
            # Transform all tables of this shape together, as additional columns.
            flat = inside.transpose(1, 0, 2).reshape(size, -1)
            solved = _along_axes([_synthesis(n) for n in shape], flat)
            answers[places] = solved.reshape(size, count, -1).transpose(1, 0, 2)
        return np.asarray(answers * self.workload.weights[:, None])

    def variances(self, variances: FloatArray) -> FloatArray:
        """Variances of answers (m,), given the variance of the coordinates of each U (sets,)."""
        return np.repeat(self._weights_by_table @ variances, self._sizes)

    @property
    def _sizes(self) -> IntArray:
        """Number of cells of each table."""
        return np.array([place.stop - place.start for place in self.workload.slices])

    @cached_property
    def _weights_by_table(self) -> sp.csr_array:
        """The variance in an answer of T from noise of variance 1 on theta_U: (tables, sets).

        For the weight w_T of the table it is, in all cells, w_T^2 prod over U of (1 - 1 / l_i)
        times prod over T - U of 1 / l_i^2.
        """
        rows, columns, values = [], [], []
        weights = self.workload.table_weights.tolist()
        for t, (table, weight) in enumerate(zip(self.workload.tables, weights, strict=True)):
            cells = self.cells(table)
            for U, places in self._within(table):
                # The product over U of (1 - 1 / l_i) is len(places) / cells(U).
                rows.append(t)
                columns.append(self.number[U])
                values.append(weight**2 * len(places) * self.cells(U) / cells**2)
        shape = (len(weights), len(self.sets))
        return sp.coo_array((values, (rows, columns)), shape=shape).tocsr()

    @cached_property
    def _sources(self) -> IntArray:
        """For each cell of each table (m,), the coordinate that `to_answers` puts there."""
        sources = np.zeros(self.workload.n_queries, dtype=np.int64)
        for table, cells in zip(self.workload.tables, self.workload.slices, strict=True):
            own = sources[cells]
            for U, places in self._within(table):
                start = self._starts[self.number[U]]
                own[places] = np.arange(start, start + len(places))
        return sources

    @cached_property
    def _tables_by_shape(self) -> dict[tuple[int, ...], IntArray]:
        """For each shape, an array (tables, cells): the query number of each cell of each table."""
        groups: dict[tuple[int, ...], list[IntArray]] = {}
        for table, cells in zip(self.workload.tables, self.workload.slices, strict=True):
            shape = self.workload.shape(table)
            groups.setdefault(shape, []).append(np.arange(cells.start, cells.stop))
        return {shape: np.stack(places) for shape, places in groups.items()}


def _patterns(shape: tuple[int, ...], most: int) -> list[tuple[ColumnSet, IntArray]]:
    """Sets of at most `most` axes, and where their coordinates are after the change of basis.

    Along each axis, position 0 is the sum, and the others are the coordinates in the basis.
    """
    strides = [math.prod(shape[i + 1 :]) for i in range(len(shape))]
    found = []
    for size in range(most + 1):
        for chosen in itertools.combinations(range(len(shape)), size):
            places = np.zeros(1, dtype=np.int64)
            for i in chosen:
                places = (places[:, None] + strides[i] * np.arange(1, shape[i])).ravel()
            found.append((chosen, places))
    return found


#: `_patterns` with a cache, because many tables of a workload have the same shape.
_known_patterns = lru_cache(maxsize=256)(_patterns)


@cache
def _analysis(levels: int) -> FloatArray:
    """The map [1, B]^T from counts of levels to the sum, and to coordinates in the basis B."""
    return np.vstack([np.ones(levels), zero_sum_basis(levels).T])


@cache
def _synthesis(levels: int) -> FloatArray:
    """The inverse [1 / l, B] of `_analysis`."""
    return np.hstack([np.full((levels, 1), 1 / levels), zero_sum_basis(levels)])


def _along_axes(maps: Sequence[FloatArray], values: FloatArray) -> FloatArray:
    """The tensor product of square maps, one for each axis, times `values` (cells, b)."""
    shape, left = values.shape, 1
    for matrix in maps:
        n = len(matrix)
        values = matrix @ values.reshape(left, n, -1)
        left *= n
    return np.asarray(values.reshape(shape))


# The map from the noisy counts of one table to the answers, without forming a matrix.

#: Largest number of cell counts whose basis is changed at a time: 2^22 float64 take 32 MB. A larger
#: array is divided into parts of whole columns, and each part has at least one column.
MAX_NUMBERS = 1 << 22


@dataclass(frozen=True, eq=False)
class TableMap:
    """The part R x of the answers that comes from one table, where x are the counts of its cells.

    Several tables can estimate an interaction (see `Interactions`). R multiplies each by the share
    of this table (`shares`, by the position in `interactions.sets`; 0 if missing), because shares
    of all tables add up to 1. R is not formed: O(l) operations for each cell and axis with l
    levels.
    """

    interactions: Interactions = field(repr=False)
    table: tuple[int, ...]
    shares: dict[int, float] = field(repr=False)

    @property
    def shape(self) -> tuple[int, int]:
        return self.interactions.workload.n_queries, self.interactions.cells(self.table)

    @property
    def expansion(self) -> Interactions:
        """The last step of a product with R: it computes the answers from the interactions."""
        return self.interactions

    def to_coordinates(self, columns: Columns) -> FloatArray:
        """Coordinates (dimension, b) of all interactions times shares, from counts (cells, b)."""
        cells, width = columns.shape
        found = np.zeros((self.interactions.dimension, width))
        sources, targets, factors = self._entries
        step = max(1, MAX_NUMBERS // cells)
        for start in range(0, width, step):
            part = columns[:, start : start + step]
            dense = part.toarray() if sp.issparse(part) else np.ascontiguousarray(part)
            own = self.interactions.to_interactions(self.table, dense)[sources]
            found[targets, start : start + step] = factors[:, None] * own
        return found

    def __matmul__(self, columns: Columns) -> FloatArray:
        """The product R x, where x is `columns`, of shape (cells, b) or (cells,)."""
        if columns.ndim == 1:
            return self._image(columns.reshape((-1, 1)))[:, 0]
        return self._image(columns)

    def _image(self, columns: Columns) -> FloatArray:
        return self.interactions.to_answers(self.to_coordinates(columns))

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> FloatArray:
        """The matrix R, of shape `shape`; it fits in memory only for tables of few cells."""
        del copy
        return np.asarray(self @ np.eye(self.shape[1]), dtype=dtype)

    def image_variances(self, noise: Noise) -> FloatArray:
        """Variances (m,) of the m entries of R Z, for the noise Z of a `CellNoise`."""
        match noise:
            case LaplaceNoise():
                along = 2 * noise.scale**2
            case KNormNoise():
                along = noise.second_moment().value / noise.effective_dimension
            case _:
                along = noise.second_moment().value / noise.dimension
        # Z has the same variance along each unit vector of its support. The coordinates of theta_U
        # are inner products of Z with orthogonal vectors of squared length (cells of the table) /
        # (cells of U).
        own, cells = np.zeros(len(self.interactions.sets)), self.shape[1]
        for u, share in self.shares.items():
            stretch = cells / self.interactions.cells(self.interactions.sets[u])
            own[u] = share**2 * along * stretch
        return self.interactions.variances(own)

    @cached_property
    def _entries(self) -> tuple[IntArray, IntArray, FloatArray]:
        """Positions of the coordinates with a share, in the table and in all, and the shares."""
        kept = [
            (sources, targets, np.full(len(sources), self.shares[u]))
            for u, sources, targets in self.interactions.coordinates(self.table)
            if u in self.shares
        ]
        sources, targets, factors = (np.concatenate(parts) for parts in zip(*kept, strict=True))
        return sources, targets, factors
