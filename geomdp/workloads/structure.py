"""Expansions of tables: products of signs, contrasts of levels, symmetries, and residuals."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from geomdp._numerics.linalg import zero_sum_basis
from geomdp._typing import FloatArray, IntArray
from geomdp.workloads.base import Workload, WorkloadSizeError
from geomdp.workloads.finite import Marginals, Parities
from geomdp.workloads.tables import MarginalTables, TableQueries

# Workloads on tables of at most two columns, as affine functions of contrasts of levels.
#
# A contrast is a combination of the indicators of the levels with coefficients that add up to 0,
# and a contrast of a pair of columns is a product of two. A column of two levels has one contrast,
# its sign: s = 1 for level 0 and s = -1 for level 1.


@dataclass(frozen=True)
class TableContrasts:
    """Q(x) = constant + matrix @ (H_i^T e_i(x) for i, H_i^T e_i(x) e_j(x)^T H_j for i < j).

    e_i(x) is the unit vector of the level of column i, and H_i the `zero_sum_basis`. Single columns
    come first in `matrix` (m, r); the contrasts of each pair are row-major.
    """

    levels: tuple[int, ...]
    matrix: sp.csr_array
    constant: FloatArray
    #: Two columns (m, 2) for each answer that is the share of one cell of their table, twice the
    #: same for one column; -1 for the table of no column. None if answers are other shares.
    cells: IntArray | None = None


class SignProducts(TableContrasts):
    """The same with signs: Q(x) = constant + matrix @ (s_i s_j for i < j, row-major), s_0 = 1."""

    @property
    def order(self) -> int:
        """Number of signs."""
        return len(self.levels) + 1


def pair_levels(workload: Workload) -> tuple[int, ...] | None:
    """Levels of the columns for `table_contrasts`; None if no such function is known.

    For `Parities`, the columns are the d - 1 products of the first sign and another sign.
    """
    match workload:
        case MarginalTables(k=1 | 2):  # A column of one level has no contrasts.
            return tuple(count for count in workload.levels if count > 1) or None
        case Marginals(k=1 | 2):
            return (2,) * workload.d
        case Parities(k=2):
            return (2,) * (workload.d - 1)
    return None


def table_contrasts(workload: Workload) -> TableContrasts | None:
    """The answers of a workload as a function of contrasts; None if no such function is known."""
    levels = pair_levels(workload)
    if levels is None:
        return None
    if isinstance(workload, Parities):
        # The contrast of a column with sign s is s / sqrt(2). The pairs with the first sign come
        # first.
        m, singles = workload.n_queries, len(levels)
        stretch = sp.diags_array(np.repeat([math.sqrt(2), 2.0], [singles, m - singles]))
        return TableContrasts(levels, sp.csr_array(stretch), np.zeros(m))
    matrix, constant = _of_tables(workload, zero_sum_basis, cell=-1)
    return TableContrasts(levels, matrix, constant, _cell_columns(workload))


def sign_products(workload: Workload) -> SignProducts | None:
    """The map from products of signs to the answers; None if no such map is known.

    It is known for `MarginalTables` of two-level columns and `Marginals` with k <= 2, and for
    `Parities` with k = 2. `record_signs` says which signs.
    """
    levels = pair_levels(workload)
    if levels is None or set(getattr(workload, "levels", (2,))) != {2}:
        return None
    if isinstance(workload, Parities):
        # The parity of {i, j} is s_i s_j, and subsets are in lexicographic order.
        m = workload.n_queries
        return SignProducts(levels, sp.csr_array(sp.eye_array(m)), np.zeros(m))
    return SignProducts(levels, *_of_tables(workload, _half_signs, cell=0))


def _cell_columns(workload: Workload) -> IntArray:
    """The columns (m, 2) whose table each answer is a cell of, as in `TableContrasts`."""
    if isinstance(workload, Marginals):
        sets = list(itertools.combinations(range(workload.d), workload.k))
        return np.array([(own[0], own[-1]) for own in sets])
    assert isinstance(workload, MarginalTables)
    place = np.cumsum([count > 1 for count in workload.levels]) - 1
    found = np.full((workload.n_queries, 2), -1)
    for table, cells in zip(workload.tables, workload.slices, strict=True):
        own = [place[i] for i in table if workload.levels[i] > 1]
        if own:
            found[cells] = own[0], own[-1]
    return found


def _half_signs(_: int) -> FloatArray:
    """The factors (2, 1) of the sign s in the indicators (1 + s) / 2 and (1 - s) / 2 of levels."""
    return np.array([[0.5], [-0.5]])


#: A function from a number of levels to the factors (levels, contrasts) of a column.
Factors = Callable[[int], FloatArray]


def _of_tables(workload: Workload, factors: Factors, cell: int) -> tuple[sp.csr_array, FloatArray]:
    """Matrix and constant of an expansion; a conjunction is one `cell` of a table of its columns.

    All levels are 1 in the last cell. With signs s = 1 for the attribute 1, it is the first cell.
    """
    if isinstance(workload, Marginals):
        tables, cells = MarginalTables([2] * workload.d, workload.k), 2**workload.k
        matrix, constant = _of_tables(tables, factors, cell)
        return matrix[cell % cells :: cells], constant[cell % cells :: cells]
    assert isinstance(workload, MarginalTables)
    # A column of one level has no contrasts and changes nothing.
    varying = [i for i, count in enumerate(workload.levels) if count > 1]
    sets = [*((i,) for i in varying), *itertools.combinations(varying, 2)]
    sizes = [math.prod(workload.levels[i] - 1 for i in own) for own in sets]
    starts = dict(zip(sets, np.cumsum(sizes) - sizes, strict=True))
    rows, columns, values = [], [], []
    constant = np.empty(workload.n_queries)
    for table, cells in zip(workload.tables, workload.slices, strict=True):
        own = tuple(i for i in table if workload.levels[i] > 1)
        shape = workload.shape(own)
        constant[cells] = 1 / math.prod(shape)
        parts = [*((i,) for i in own), *itertools.combinations(own, 2)]
        for part, block in zip(parts, _cell_factors(shape, factors), strict=True):
            own_cells, places = np.nonzero(block)
            rows.append(cells.start + own_cells)
            columns.append(starts[part] + places)
            values.append(block[own_cells, places])
    entries = (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns)))
    matrix = sp.csr_array(entries, shape=(workload.n_queries, sum(sizes)))
    return matrix, constant


@functools.cache
def _cell_factors(shape: tuple[int, ...], factors: Factors) -> list[FloatArray]:
    """Matrices from contrasts to the cells of a table: one per column, then one for the pair."""
    found = []
    for place in range(len(shape)):
        parts = [np.full((count, 1), 1 / count) for count in shape]
        parts[place] = factors(shape[place])
        found.append(functools.reduce(np.kron, parts))
    if len(shape) == 2:
        found.append(np.kron(*(factors(count) for count in shape)))
    return found


def record_signs(workload: Workload, records: IntArray) -> IntArray:
    """The signs s (n, p) of valid records (n, d), for a workload that `sign_products` accepts."""
    # For `Marginals` a sign is +1 if the attribute is 1. For other workloads it is +1 for level 0.
    signs = 2 * records - 1 if isinstance(workload, Marginals) else 1 - 2 * records
    if isinstance(workload, Parities):
        return signs
    return np.column_stack([np.ones(len(records), dtype=np.int64), signs])


def product_sums(
    workload: Workload,
    table: Callable[[Sequence[int]], IntArray],
    places: npt.NDArray[np.bool_],
) -> FloatArray:
    """Sums over records of the pairs `places` of `record_signs`, from the counts of `table`."""
    leading = 0 if isinstance(workload, Parities) else 1
    order = len(workload.universe.elements(0, 1)[0]) + leading
    single = -1 if isinstance(workload, Marginals) else 1
    sums = []
    for pair in np.column_stack(np.triu_indices(order, 1))[places].tolist():
        columns = [sign - leading for sign in pair if sign >= leading]
        counts = table(columns)
        total = counts.sum() - 2 * counts[np.indices(counts.shape).sum(axis=0) % 2 == 1].sum()
        sums.append(float(total * (single if len(columns) == 1 else 1)))
    return np.array(sums)


# Symmetries of a workload: orthogonal maps of the answer space that permute all answer vectors.
#
# They map the sensitivity polytope, its difference body and its symmetric hull onto themselves. So
# if a slab contains one of these bodies, the image of the slab contains it, too.


#: A function that maps directions (b, m) to images (b, m) under one random symmetry.
RandomSymmetry = Callable[[FloatArray, np.random.Generator], FloatArray]


def random_symmetry(workload: Workload) -> RandomSymmetry | None:
    """A function that draws one symmetry uniformly from a known group; None if none is known."""
    if isinstance(workload, MarginalTables):
        return functools.partial(_image_of_tables, workload)
    if isinstance(workload, Marginals | Parities):
        return functools.partial(_image_of_subsets, workload)
    return None


def _image_of_tables(
    workload: MarginalTables, directions: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """Permute the columns of equal numbers of levels, and the levels of each column."""
    place_of = dict(zip(workload.tables, workload.slices, strict=True))
    counts = np.array(workload.levels)
    target = np.empty(len(counts), dtype=np.int64)
    for count in np.unique(counts):
        (members,) = np.nonzero(counts == count)
        target[members] = rng.permutation(members)
    relabelled = [rng.permutation(levels) for levels in workload.levels]
    images = np.empty_like(directions)
    for table, place in place_of.items():
        cells = directions[:, place].reshape(-1, *workload.shape(table))
        for axis, column in enumerate(table, start=1):
            cells = np.take(cells, relabelled[column], axis=axis)
        columns = target[list(table)]
        order = np.argsort(columns)
        cells = cells.transpose(0, *(1 + order))
        images[:, place_of[tuple(columns[order].tolist())]] = cells.reshape(len(directions), -1)
    return images


def _image_of_subsets(
    workload: Marginals | Parities, directions: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """Permute the attributes. For parities, also flip some attributes.

    The parity of a set S of attributes changes its sign once for each flipped attribute in S.
    """
    subsets = workload.subsets
    if isinstance(workload, Parities):
        flips = rng.choice([-1.0, 1.0], workload.d)
        directions = directions * flips[subsets].prod(axis=1)
    number = {tuple(row): i for i, row in enumerate(subsets.tolist())}
    moved = np.sort(rng.permutation(workload.d)[subsets], axis=1).tolist()
    images = np.empty_like(directions)
    images[:, [number[tuple(row)] for row in moved]] = directions
    return images


# Residuals of tables: a few sums over records for each set of columns determine all tables.


#: Largest number of pairs of a table and a set of columns within it. All 3-way tables of 100
#: columns have 1.3 million pairs, which are listed in a second.
MAX_PAIRS = 1 << 24


class Residuals:
    """Differences of counts, for each set of columns. They determine all tables of a workload.

    The coordinates of the residual of a set A are whole numbers: for each column of A, the count of
    level 0 minus that of another level. With the histogram h, a vector 1 of ones and C_i = [1, -I]
    of shape (l_i - 1, l_i) for a column of l_i levels,

        y_A = (tensor over i in A of C_i, and of 1^T over the other columns) h.

    The sets A are the subsets of tables without columns of a single level; the empty set gives the
    number of records. A table T is the sum over A within T of

        (tensor over i in A of C_i^+, and of the vectors 1 / l_i over the other columns of T) y_A.

    Both directions take O(k) additions for each cell of a k-way table, without matrices. Source:
    Xiao-He-Zhang-Kifer 2023 (ResidualPlanner); formula sheet X-RES.
    """

    def __init__(self, workload: TableQueries) -> None:
        pairs = sum(2 ** len(table) for table in workload.tables)
        if pairs > MAX_PAIRS:
            raise WorkloadSizeError(
                f"tables must have at most 2^24 subsets of columns in all, got {pairs}"
            )
        self.workload = workload
        #: The sets of columns and the tables, each by shape.
        self.groups, self.tables = sets_in_tables(workload)

    @property
    def count(self) -> int:
        """Number of sets of columns; the empty set has number 0."""
        return self.groups[-1].first + self.groups[-1].count

    @property
    def dimension(self) -> int:
        last = self.groups[-1]
        return last.start + last.count * last.size

    def energies(self) -> FloatArray:
        """For each set A, the total variance that unit noise on A adds to all answers.

        Noise of variance s_A has covariance s_A (tensor over i in A of C_i C_i^T) on the
        coordinates. It adds w_T^2 s_A (prod over A of (1 - 1 / l_i)) (prod over T - A of 1 / l_i^2)
        to each answer of T.
        """
        found = np.zeros(self.count)
        for tables in self.tables:
            squares = self.workload.table_weights[tables.numbers] ** 2 * math.prod(tables.shape)
            for own in tables.within:
                numbers = own.group.first + own.rows
                share = _cell_share(tables.shape, own.axes)
                found += np.bincount(numbers, squares * share, minlength=self.count)
        return found

    def cell_variances(self, variances: FloatArray) -> FloatArray:
        """Variance of each answer (m,), for noise of variance `variances[A]` on each residual A."""
        by_table = np.zeros(len(self.workload.tables))
        for tables in self.tables:
            for own in tables.within:
                share = _cell_share(tables.shape, own.axes)
                by_table[tables.numbers] += share * variances[own.group.first + own.rows]
        return np.repeat(by_table * self.workload.table_weights**2, self.workload.table_sizes)

    def of_counts(self, counts: FloatArray) -> FloatArray:
        """Residuals (b, dimension) from the counts (b, m) of all cells, exact below 2^53."""
        found = np.empty((len(counts), self.dimension))
        for tables in self.tables:
            for block in tables.blocks(len(counts)):
                cells = counts[:, tables.places(block)].reshape(len(counts), -1, *tables.shape)
                for axis in range(2, cells.ndim):
                    _to_sum_and_differences(cells, axis)
                for own in tables.within:
                    target = self._rows(found, own.group)
                    part = cells[tables.part(own)]
                    target[:, own.rows[block]] = part.reshape(*cells.shape[:2], own.group.size)
        return found

    def to_answers(self, coordinates: FloatArray) -> FloatArray:
        """Answers (b, m), the weighted cells of all tables, from coordinates (b, dimension)."""
        # Coordinates can be objects, such as numbers with error bounds (`arb`).
        count, kind = len(coordinates), coordinates.dtype
        answers = np.empty((count, self.workload.n_queries), dtype=kind)
        for tables in self.tables:
            weights = self.workload.table_weights[tables.numbers]
            for block in tables.blocks(count):
                cells = np.empty((count, len(tables.numbers[block]), *tables.shape), dtype=kind)
                for own in tables.within:
                    part = cells[tables.part(own)]
                    known = self._rows(coordinates, own.group)[:, own.rows[block]]
                    part[...] = known.reshape(part.shape)
                for axis in range(2, cells.ndim):
                    _from_sum_and_differences(cells, axis)
                flat = cells.reshape(*cells.shape[:2], -1)
                answers[:, tables.places(block)] = flat * weights[block, None]
        return answers

    def _rows(self, coordinates: FloatArray, group: ColumnSets) -> FloatArray:
        return coordinates[:, group.places].reshape(len(coordinates), group.count, group.size)

    def squared_lengths(self, coordinates: FloatArray) -> FloatArray:
        """Squared lengths (b, sets) y^T (C C^T)^-1 y, with (C_i C_i^T)^-1 = I - 11^T / l_i."""
        found = np.empty((len(coordinates), self.count))
        for group in self.groups:
            rows = self._rows(coordinates, group)
            own = rows.reshape(*rows.shape[:2], *(levels - 1 for levels in group.shape))
            solved = own
            for axis, levels in enumerate(group.shape, start=2):
                solved = solved - solved.sum(axis=axis, keepdims=True) / levels
            found[:, group.numbers] = (own * solved).reshape(rows.shape).sum(axis=2)
        return found


def differences(values: FloatArray, axis: int) -> FloatArray:
    """Entry 0 minus each other entry along an axis."""
    first, rest = np.split(values, [1], axis=axis)
    return np.asarray(first - rest)


def _to_sum_and_differences(cells: FloatArray, axis: int) -> None:
    """Replace x by (sum of x, x_0 - x_1, x_0 - x_2, ...) along an axis, in place."""
    moved = np.moveaxis(cells, axis, 0)
    total = moved.sum(axis=0)
    np.subtract(moved[0], moved[1:], out=moved[1:])
    moved[0] = total


def _from_sum_and_differences(cells: FloatArray, axis: int) -> None:
    moved = np.moveaxis(cells, axis, 0)
    # The differences x_0 - x_j for j = 1..l-1 add up to l x_0 - sum of x.
    moved[0] = moved.sum(axis=0) / len(moved)
    np.subtract(moved[0], moved[1:], out=moved[1:])


def _cell_share(shape: tuple[int, ...], axes: tuple[int, ...]) -> float:
    """Variance of one cell of a table, for noise of variance 1 on the residual of some axes."""
    factors = ((1 - 1 / n) if i in axes else 1 / n**2 for i, n in enumerate(shape))
    return math.prod(factors)


# The sets of columns within the tables of a workload, in arrays for each shape.


#: Number of cells of tables that are transformed at a time: 2^21 float64 are 16 MB.
BLOCK_CELLS = 1 << 21


@dataclass(frozen=True, eq=False)
class ColumnSets:
    """The sets `columns` (c, j) of one shape; `first` and `start` place them among all groups."""

    shape: tuple[int, ...]
    columns: IntArray
    first: int
    start: int

    @property
    def count(self) -> int:
        return len(self.columns)

    @property
    def size(self) -> int:
        return math.prod(levels - 1 for levels in self.shape)

    @property
    def numbers(self) -> slice:
        return slice(self.first, self.first + self.count)

    @property
    def places(self) -> slice:
        return slice(self.start, self.start + self.count * self.size)


@dataclass(frozen=True, eq=False)
class Within:
    """Sets at the given `axes` of tables of one shape; `rows` (t,) are positions in `group`."""

    axes: tuple[int, ...]
    group: ColumnSets
    rows: IntArray


@dataclass(frozen=True, eq=False)
class SameShape:
    """The tables of one shape: `numbers` (t,), first cells `starts` (t,), and sets `within`."""

    shape: tuple[int, ...]
    numbers: IntArray
    starts: IntArray
    within: list[Within]

    def blocks(self, copies: int) -> Iterator[slice]:
        """Slices of the tables, of one table or with at most 2^21 cells in `copies` copies."""
        step = max(1, BLOCK_CELLS // (math.prod(self.shape) * max(copies, 1)))
        return (slice(a, a + step) for a in range(0, len(self.numbers), step))

    def places(self, block: slice) -> IntArray:
        """The query numbers (b, cells) of the cells of each table in `block`."""
        return np.asarray(self.starts[block, None] + np.arange(math.prod(self.shape)))

    def part(self, own: Within) -> tuple[slice, ...]:
        """Index of the sets `own` in tables (b, tables, *shape) of a sum, then differences."""
        chosen = (slice(1, None) if i in own.axes else slice(0, 1) for i in range(len(self.shape)))
        return (slice(None), slice(None), *chosen)


def sets_in_tables(workload: TableQueries) -> tuple[list[ColumnSets], list[SameShape]]:
    """The sets of columns of several levels (first the empty set) and the tables, both by shape."""
    numbers: dict[tuple[int, ...], list[int]] = {}
    for number, table in enumerate(workload.tables):
        numbers.setdefault(workload.shape(table), []).append(number)
    starts = np.array([place.start for place in workload.slices], dtype=np.int64)
    tables = [SameShape(shape, np.array(own), starts[own], []) for shape, own in numbers.items()]
    columns = {
        shape: np.array([workload.tables[number] for number in own], dtype=np.int64)
        for shape, own in numbers.items()
    }
    # The sets of one shape are at some axes of the tables of several shapes.
    sources: dict[tuple[int, ...], list[tuple[SameShape, tuple[int, ...]]]] = {}
    for same in tables:
        varying = [axis for axis, levels in enumerate(same.shape) if levels > 1]
        for size in range(len(varying) + 1):
            for axes in itertools.combinations(varying, size):
                shape = tuple(same.shape[axis] for axis in axes)
                sources.setdefault(shape, []).append((same, axes))
    groups: list[ColumnSets] = []
    first = start = 0
    for shape in sorted(sources, key=lambda levels: (len(levels), levels)):
        parts = [columns[same.shape][:, list(axes)] for same, axes in sources[shape]]
        distinct, rows = _distinct_rows(np.concatenate(parts))
        group = ColumnSets(shape, distinct, first, start)
        ends = np.cumsum([len(part) for part in parts])[:-1]
        for (same, axes), own_rows in zip(sources[shape], np.split(rows, ends), strict=True):
            same.within.append(Within(axes, group, own_rows))
        groups.append(group)
        first, start = group.numbers.stop, group.places.stop
    for same in tables:
        same.within.sort(key=lambda own: (len(own.axes), own.axes))
    return groups, tables


def _distinct_rows(rows: IntArray) -> tuple[IntArray, IntArray]:
    """The sorted different rows, and the position of each row among them."""
    # A first key of zeros, because rows of the empty set have no columns.
    order = np.lexsort((np.zeros(len(rows)), *rows.T[::-1]))
    ranked = rows[order]
    new = np.ones(len(rows), dtype=bool)
    new[1:] = (ranked[1:] != ranked[:-1]).any(axis=1)
    place = np.empty(len(rows), dtype=np.int64)
    place[order] = np.cumsum(new) - 1
    return ranked[new], place
