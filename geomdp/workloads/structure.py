"""Expansions of tables: products of signs, contrasts of levels, and symmetries."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from geomdp._numerics.linalg import zero_sum_basis
from geomdp._typing import FloatArray, IntArray
from geomdp.workloads.base import Workload
from geomdp.workloads.finite import Marginals, Parities
from geomdp.workloads.tables import MarginalTables

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
