"""Expansions of tables: products of signs, contrasts of levels, symmetries, and residuals.

Residuals are a few sums over records for each set of columns, which determine all tables.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from geomdp._numerics.linalg import row_blocks, zero_sum_basis
from geomdp._typing import FloatArray, IntArray
from geomdp.workloads.base import Workload, WorkloadSizeError
from geomdp.workloads.finite import Marginals, Parities
from geomdp.workloads.tables import MarginalTables, ProductQueries, TableQueries, along, cells_of

# Workloads on tables of at most two columns, as affine functions of contrasts: combinations of the
# indicators of the levels of a column with coefficients that add up to 0, and products of two of
# them. A column of two levels has one contrast, its sign: s = 1 for level 0, s = -1 for level 1.


@dataclass(frozen=True)
class TableContrasts:
    """Q(x) = constant + matrix @ (H_i^T e_i(x) for i, H_i^T e_i(x) e_j(x)^T H_j for i < j).

    e_i(x) is the unit vector of the level of column i, and H_i the `zero_sum_basis`. Single columns
    come first in `matrix` (m, r); the contrasts of each pair are row-major.
    """

    levels: tuple[int, ...]
    matrix: sp.csr_array
    constant: FloatArray
    #: Q(x) = cells @ (1, e_i(x) for i, e_i(x) e_j(x)^T for i < j, row-major), in whole numbers.
    cells: sp.csr_array | None = None


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
        signs = sp.block_diag([[[1, -1]]] * singles + [[[1, -1, -1, 1]]] * (m - singles))
        cells = sp.csr_array(sp.hstack([sp.csr_array((m, 1)), signs]))
        return TableContrasts(levels, sp.csr_array(stretch), np.zeros(m), cells)
    # All levels are 1 in the last cell of a table.
    tables, rows = _as_tables(workload, -1)
    matrix, constant = _of_tables(tables, zero_sum_basis)
    return TableContrasts(levels, matrix[rows], constant[rows], _single_cells(tables)[rows])


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
    # With signs s = 1 for the attribute 1, all attributes are 1 in the first cell.
    tables, rows = _as_tables(workload, 0)
    matrix, constant = _of_tables(tables, _half_signs)
    return SignProducts(levels, matrix[rows], constant[rows])


def _as_tables(workload: Workload, cell: int) -> tuple[MarginalTables, slice]:
    """Tables, and the cells that are answers: a conjunction is one `cell` of a table."""
    if isinstance(workload, Marginals):
        cells = 2**workload.k
        return MarginalTables([2] * workload.d, workload.k), slice(cell % cells, None, cells)
    assert isinstance(workload, MarginalTables)
    return workload, slice(None)


def _varying(workload: MarginalTables, columns: Iterable[int]) -> list[tuple[int, ...]]:
    """The sets of one or two `columns`; a column of one level changes nothing and is left out."""
    own = [i for i in columns if workload.levels[i] > 1]
    return [*((i,) for i in own), *itertools.combinations(own, 2)]


def _single_cells(workload: MarginalTables) -> sp.csr_array:
    """`TableContrasts.cells` for answers that are shares of single cells: one 1 in each row."""
    sets = [(), *_varying(workload, range(len(workload.levels)))]
    sizes = [math.prod(workload.shape(own)) for own in sets]
    starts = dict(zip(sets, np.cumsum(sizes) - sizes, strict=True))
    # The last of the sets of a table holds all of its columns that vary. If none does, the answer
    # is the share 1 of all records.
    own = [[(), *_varying(workload, table)][-1] for table in workload.tables]
    columns = [starts[each] + np.arange(math.prod(workload.shape(each))) for each in own]
    m = workload.n_queries
    entries = (np.ones(m), (np.arange(m), np.concatenate(columns)))
    return sp.csr_array(entries, shape=(m, sum(sizes)))


def _half_signs(_: int) -> FloatArray:
    """The factors (2, 1) of the sign s in the indicators (1 + s) / 2 and (1 - s) / 2 of levels."""
    return np.array([[0.5], [-0.5]])


#: A function from a number of levels to the factors (levels, contrasts) of a column.
Factors = Callable[[int], FloatArray]


def _of_tables(workload: MarginalTables, factors: Factors) -> tuple[sp.csr_array, FloatArray]:
    """Matrix and constant of an expansion in contrasts with the given `factors`."""
    sets = _varying(workload, range(len(workload.levels)))
    sizes = [math.prod(workload.levels[i] - 1 for i in own) for own in sets]
    starts = dict(zip(sets, np.cumsum(sizes) - sizes, strict=True))
    rows, columns, values = [], [], []
    constant = np.empty(workload.n_queries)
    for table, cells in zip(workload.tables, workload.slices, strict=True):
        shape = tuple(count for count in workload.shape(table) if count > 1)
        constant[cells] = 1 / math.prod(shape)
        blocks = _cell_factors(shape, factors)
        for part, block in zip(_varying(workload, table), blocks, strict=True):
            own_cells, places = np.nonzero(block)
            rows.append(cells.start + own_cells)
            columns.append(starts[part] + places)
            values.append(block[own_cells, places])
    entries = (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns)))
    return sp.csr_array(entries, shape=(workload.n_queries, sum(sizes))), constant


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
    workload: Workload, table: Callable[[Sequence[int]], IntArray], places: npt.NDArray[np.bool_]
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


# Symmetries of a workload: orthogonal maps of the answer space that permute all answer vectors. So
# the image of a slab that contains the sensitivity polytope, its difference body or its symmetric
# hull contains the same body.

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
    """Permute the attributes; for parities also flip some, which changes signs."""
    subsets = workload.subsets
    if isinstance(workload, Parities):
        flips = rng.choice([-1.0, 1.0], workload.d)
        directions = directions * flips[subsets].prod(axis=1)
    number = {tuple(row): i for i, row in enumerate(subsets.tolist())}
    moved = np.sort(rng.permutation(workload.d)[subsets], axis=1).tolist()
    images = np.empty_like(directions)
    images[:, [number[tuple(row)] for row in moved]] = directions
    return images


# Residuals: differences of counts for each set of columns

#: Largest number of pairs of a table and a set of columns within it. All 3-way tables of 100
#: columns have 1.3 million pairs, which are listed in a second.
MAX_PAIRS = 1 << 24


@dataclass(frozen=True, eq=False)
class Column:
    """A column in the residuals: its levels and queries, and the noise on differences of counts.

    With C = [1, -I] as in `Residuals`, the noise on C h is `root` g for independent variables g of
    variance 1, and C g if there is no `root`. A record of level j changes the differences by C e_j,
    which has the length |b_j| in units of this noise. |b_j|^2 is at most `share`, and <b_j, b_k> is
    at least -`against` for different levels j and k. `factor` (queries, levels) holds the values of
    the queries, None for the levels themselves.
    """

    levels: int
    factor: FloatArray | None = None
    root: FloatArray | None = None
    share: Fraction = Fraction(0)
    against: Fraction = Fraction(0)

    @property
    def share_float(self) -> float:
        return 1 - 1 / self.levels if self.root is None else float(self.share)

    @property
    def mean_varying(self) -> float:
        """Mean over the queries of `varying`."""
        return 1 - 1 / self.levels if self.factor is None else float(self.varying.mean())

    @property
    def mean_constant(self) -> float:
        """Mean over the queries of `constant`."""
        return 1 / self.levels**2 if self.factor is None else float(self.constant.mean())

    @cached_property
    def varying(self) -> FloatArray:
        """Variance of each query (queries,) from unit noise on the differences."""
        if self.factor is None:
            return np.full(self.levels, 1 - 1 / self.levels)
        return np.asarray(((self._on_differences @ self._noise) ** 2).sum(axis=1))

    @cached_property
    def constant(self) -> FloatArray:
        """Variance of each query (queries,) from unit noise on the number of records."""
        if self.factor is None:
            return np.full(self.levels, 1 / self.levels**2)
        return np.asarray(self.factor.mean(axis=1) ** 2)

    @cached_property
    def metric(self) -> FloatArray:
        """P with y^T P y the squared length, in units of the noise, of what queries tell of y."""
        told = self._on_differences
        spread = told @ self._noise
        return np.asarray(told.T @ np.linalg.pinv(spread @ spread.T, hermitian=True) @ told)

    @cached_property
    def inverse(self) -> FloatArray | None:
        """A map from the queries to counts of levels with the same answers."""
        return None if self.factor is None else np.asarray(np.linalg.pinv(self.factor))

    @property
    def _noise(self) -> FloatArray:
        return contrast(self.levels) if self.root is None else self.root

    @property
    def _on_differences(self) -> FloatArray:
        inverse = np.linalg.pinv(contrast(self.levels))
        if self.factor is None:
            return np.asarray(inverse)
        # Differences tell nothing of a constant query. The subtraction makes its row exactly 0.
        return np.asarray((self.factor - self.factor[:, :1]) @ inverse)


def contrast(levels: int) -> FloatArray:
    """C = [1, -I], which maps counts of levels to differences of counts."""
    return np.hstack([np.ones((levels - 1, 1)), -np.eye(levels - 1)])


@functools.cache
def categories(levels: int) -> Column:
    """A column asked by its levels, with the noise of independent noise on the levels."""
    return Column(levels, share=Fraction(levels - 1, levels), against=Fraction(1, levels))


class Residuals:
    """Differences of counts, for each set of columns. They determine all tables of a workload.

    The coordinates of the residual of a set A are whole numbers: for each column of A, the count of
    level 0 minus that of another level. With the histogram h, a vector 1 of ones and C_i = [1, -I]
    of shape (l_i - 1, l_i) for a column of l_i levels,

        y_A = (tensor over i in A of C_i, and of 1^T over the other columns) h.

    The sets A are the subsets of tables without columns of a single level; the empty set gives the
    number of records. A table T is the sum over A within T of

        (tensor over i in A of C_i^+, and of the vectors 1 / l_i over the other columns of T) y_A.

    Both directions take O(k) additions for each cell of a k-way table, without matrices. Products
    of queries are computed from the cells; `columns` then holds the queries of each column of the
    records, and the noise on its differences. Source: Xiao-He-Zhang-Kifer 2023 (ResidualPlanner,
    and ResidualPlanner+ in version 5); formula sheet X-RES, X-PROD.
    """

    def __init__(
        self, workload: TableQueries | ProductQueries, columns: Sequence[Column] | None = None
    ) -> None:
        #: The tables whose cells are counted.
        self.cells = cells_of(workload)
        pairs = sum(2 ** len(table) for table in self.cells.tables)
        if pairs > MAX_PAIRS:
            raise WorkloadSizeError(
                f"tables must have at most 2^24 subsets of columns in all, got {pairs}"
            )
        self.workload = workload
        #: The sets of columns and the tables, each by shape.
        self.columns = columns or [categories(count) for count in self.cells.levels]
        self.groups, self.tables = sets_in_tables(workload, self.cells, self.columns)
        #: Whether all columns are asked by their levels.
        self.categorical = all(kind.factor is None for kind in self.columns)

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
        to each answer of T; see `Column` for other noise and other queries.
        """
        found = np.zeros(self.count)
        for tables in self.tables:
            squares = self.cells.table_weights[tables.numbers] ** 2 * math.prod(tables.asked)
            for own in tables.within:
                numbers = own.group.first + own.rows
                share = math.prod(
                    kind.mean_varying if i in own.axes else kind.mean_constant
                    for i, kind in enumerate(tables.kinds)
                )
                found += np.bincount(numbers, squares * share, minlength=self.count)
        return found

    def answer_variances(self, variances: FloatArray) -> FloatArray:
        """Variance of each answer (m,), for noise of variance `variances[A]` on each residual A."""
        found = np.empty(self.workload.n_queries)
        for tables in self.tables:
            squares = self.cells.table_weights[tables.numbers] ** 2
            own_found = np.zeros((len(squares), math.prod(tables.asked)))
            for own in tables.within:
                parts = (
                    kind.varying if i in own.axes else kind.constant
                    for i, kind in enumerate(tables.kinds)
                )
                shares = functools.reduce(np.multiply.outer, parts, np.ones(())).ravel()
                own_found += np.outer(variances[own.group.first + own.rows], shares)
            found[tables.answer_places(slice(None))] = own_found * squares[:, None]
        return found

    def of_counts(self, counts: FloatArray) -> FloatArray:
        """Residuals (b, dimension) from the counts (b, cells) of all cells, exact below 2^53."""
        found = np.empty((len(counts), self.dimension))
        for tables in self.tables:
            for block in tables.blocks(len(counts)):
                cells = counts[:, tables.places(block)].reshape(len(counts), -1, *tables.shape)
                self._take_residuals(tables, block, cells, found)
        return found

    def of_answers(self, answers: FloatArray) -> FloatArray:
        """Coordinates (b, dimension) with the given answers (b, m), up to rounding."""
        found = np.empty((len(answers), self.dimension))
        for tables in self.tables:
            weights = self.cells.table_weights[tables.numbers]
            for block in tables.blocks(len(answers)):
                given = answers[:, tables.answer_places(block)] / weights[block, None]
                cells = given.reshape(len(answers), -1, *tables.asked)
                for axis, kind in enumerate(tables.kinds, start=2):
                    if kind.inverse is not None:
                        cells = along(kind.inverse, cells, axis)
                self._take_residuals(tables, block, np.array(cells), found)
        return found

    def _take_residuals(
        self, tables: SameShape, block: slice, cells: FloatArray, found: FloatArray
    ) -> None:
        """Write the residuals of the tables in `block` to `found`; `cells` are overwritten."""
        for axis in range(2, cells.ndim):
            _to_sum_and_differences(cells, axis)
        for own in tables.within:
            target = self._rows(found, own.group)
            part = cells[tables.part(own)]
            target[:, own.rows[block]] = part.reshape(*cells.shape[:2], own.group.size)

    def to_answers(self, coordinates: FloatArray) -> FloatArray:
        """Answers (b, m), weighted, from coordinates (b, dimension)."""
        # Coordinates can be objects, such as numbers with error bounds (`arb`).
        count, kind = len(coordinates), coordinates.dtype
        answers = np.empty((count, self.workload.n_queries), dtype=kind)
        for tables in self.tables:
            weights = self.cells.table_weights[tables.numbers]
            for block in tables.blocks(count):
                cells = np.empty((count, len(tables.numbers[block]), *tables.shape), dtype=kind)
                for own in tables.within:
                    part = cells[tables.part(own)]
                    known = self._rows(coordinates, own.group)[:, own.rows[block]]
                    part[...] = known.reshape(part.shape)
                for axis, column in enumerate(tables.kinds, start=2):
                    _from_sum_and_differences(cells, axis)
                    if column.factor is not None:
                        cells = along(column.factor, cells, axis)
                flat = cells.reshape(*cells.shape[:2], -1)
                answers[:, tables.answer_places(block)] = flat * weights[block, None]
        return answers

    def _rows(self, coordinates: FloatArray, group: ColumnSets) -> FloatArray:
        return coordinates[:, group.places].reshape(len(coordinates), group.count, group.size)

    def squared_lengths(self, coordinates: FloatArray) -> FloatArray:
        """Squared lengths (b, sets) y^T (C C^T)^-1 y, with (C_i C_i^T)^-1 = I - 11^T / l_i, or the
        `metric` of a column with a `root` of its noise.
        """
        found = np.empty((len(coordinates), self.count))
        for group in self.groups:
            rows = self._rows(coordinates, group)
            own = rows.reshape(*rows.shape[:2], *(levels - 1 for levels in group.shape))
            solved = own
            for axis, kind in enumerate(group.kinds, start=2):
                if kind.root is None:
                    solved = solved - solved.sum(axis=axis, keepdims=True) / kind.levels
                else:
                    solved = along(kind.metric, solved, axis)
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
    moved[0] = moved.sum(axis=0) / len(moved)  # the x_0 - x_j for j >= 1 add up to l x_0 - sum of x
    np.subtract(moved[0], moved[1:], out=moved[1:])


# The sets of columns within the tables of a workload, in arrays for each shape.


#: Number of cells of tables that are transformed at a time: 2^21 float64 are 16 MB.
BLOCK_CELLS = 1 << 21


@dataclass(frozen=True, eq=False)
class ColumnSets:
    """The sets `columns` (c, j) of j kinds; `first` and `start` place them among all groups."""

    kinds: tuple[Column, ...]
    columns: IntArray
    first: int
    start: int

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(kind.levels for kind in self.kinds)

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
    """The tables of equal kinds of columns: `numbers` (t,), first cells `starts` and first answers
    `answer_starts` (t,), and sets `within`.
    """

    kinds: tuple[Column, ...]
    numbers: IntArray
    starts: IntArray
    answer_starts: IntArray
    within: list[Within]

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(kind.levels for kind in self.kinds)

    @property
    def asked(self) -> tuple[int, ...]:
        """Number of queries of each column."""
        return tuple(len(kind.constant) for kind in self.kinds)

    def blocks(self, copies: int) -> Iterator[slice]:
        """Slices of the tables, of one table or with at most 2^21 numbers in `copies` copies."""
        return row_blocks(len(self.numbers), math.prod(self.asked) * copies, BLOCK_CELLS)

    def places(self, block: slice) -> IntArray:
        """The numbers (b, cells) of the cells of each table in `block`."""
        return np.asarray(self.starts[block, None] + np.arange(math.prod(self.shape)))

    def answer_places(self, block: slice) -> IntArray:
        """The query numbers (b, answers) of the answers of each table in `block`."""
        return np.asarray(self.answer_starts[block, None] + np.arange(math.prod(self.asked)))

    def part(self, own: Within) -> tuple[slice, ...]:
        """Index of the sets `own` in tables (b, tables, *shape) of a sum, then differences."""
        chosen = (slice(1, None) if i in own.axes else slice(0, 1) for i in range(len(self.shape)))
        return (slice(None), slice(None), *chosen)


def sets_in_tables(
    workload: TableQueries | ProductQueries, cells: TableQueries, kinds: Sequence[Column]
) -> tuple[list[ColumnSets], list[SameShape]]:
    """The sets of columns of several levels (first the empty set) and the tables, both by kinds."""
    numbers: dict[tuple[Column, ...], list[int]] = {}
    for number, table in enumerate(cells.tables):
        numbers.setdefault(tuple(kinds[i] for i in table), []).append(number)
    starts, answer_starts = (
        np.array([place.start for place in slices], dtype=np.int64)
        for slices in (cells.slices, workload.slices)
    )
    tables = []
    # The sets of some kinds are at some axes of the tables of several kinds.
    sources: dict[tuple[Column, ...], list[tuple[SameShape, tuple[int, ...], IntArray]]] = {}
    for own_kinds, own in numbers.items():
        same = SameShape(own_kinds, np.array(own), starts[own], answer_starts[own], [])
        tables.append(same)
        columns = np.array([cells.tables[number] for number in own], dtype=np.int64)
        varying = [axis for axis, levels in enumerate(same.shape) if levels > 1]
        for size in range(len(varying) + 1):
            for axes in itertools.combinations(varying, size):
                source = same, axes, columns[:, list(axes)]
                sources.setdefault(tuple(own_kinds[axis] for axis in axes), []).append(source)
    order = {kind: place for place, kind in reversed(list(enumerate(kinds)))}

    def rank(own: tuple[Column, ...]) -> tuple[int, list[int], list[int]]:
        return len(own), [kind.levels for kind in own], [order[kind] for kind in own]

    groups: list[ColumnSets] = []
    first = start = 0
    for own_kinds in sorted(sources, key=rank):
        parts = [part for *_, part in sources[own_kinds]]
        distinct, rows = _distinct_rows(np.concatenate(parts))
        group = ColumnSets(own_kinds, distinct, first, start)
        for (same, axes, part), stop in zip(
            sources[own_kinds], itertools.accumulate(map(len, parts)), strict=True
        ):
            same.within.append(Within(axes, group, rows[stop - len(part) : stop]))
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
