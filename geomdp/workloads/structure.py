"""Structure of some workloads: products of signs, contrasts of levels, and symmetries."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from geomdp._typing import FloatArray, IntArray
from geomdp.workloads.base import Workload
from geomdp.workloads.finite import Marginals, Parities, zero_sum_basis
from geomdp.workloads.tables import MarginalTables

# Workloads whose answers are affine functions of products of two signs.


@dataclass(frozen=True)
class SignProducts:
    """Q(x) = constant + matrix @ (s_i s_j for i < j, row-major) for the signs s of a record x."""

    order: int
    matrix: sp.csr_array
    constant: FloatArray


def _pairs(first: IntArray, second: IntArray, order: int) -> IntArray:
    """Position of the pair first < second among all pairs in row-major order."""
    return first * (2 * order - first - 1) // 2 + second - first - 1


def _assemble(
    order: int, entries: list[tuple[IntArray, FloatArray]], constant: FloatArray
) -> SignProducts:
    """The map whose row q has coefficients[q] at column positions[q], summed over `entries`."""
    m = len(constant)
    rows = np.tile(np.arange(m), len(entries))
    columns = np.concatenate([positions for positions, _ in entries])
    values = np.concatenate([coefficients for _, coefficients in entries])
    shape = (m, order * (order - 1) // 2)
    matrix = sp.coo_array((values, (rows, columns)), shape=shape).tocsr()
    return SignProducts(order, matrix, constant)


@functools.singledispatch
def sign_products(workload: Workload) -> SignProducts | None:
    """The map from products of signs to the answers; None if no such map is known.

    It is known for `MarginalTables` of two-level columns and `Marginals` with k <= 2, and for
    `Parities` with k = 2. Single signs are products with a constant first sign s_0 = 1.
    """
    del workload
    return None


@sign_products.register
def _(workload: Parities) -> SignProducts | None:
    if workload.k != 2:
        return None
    m = workload.n_queries  # The parity of {i, j} is s_i s_j; subsets are in lexicographic order.
    return SignProducts(workload.d, sp.csr_array(sp.eye_array(m)), np.zeros(m))


@sign_products.register
def _(workload: Marginals) -> SignProducts | None:
    if workload.k > 2:
        return None
    order, m = workload.d + 1, workload.n_queries
    zero = np.zeros(m, dtype=np.int64)
    columns = workload.subsets.astype(np.int64) + 1
    share = np.full(m, 0.5**workload.k)  # x_i = (1 + s_i) / 2
    entries = [(_pairs(zero, columns[:, i], order), share) for i in range(workload.k)]
    if workload.k == 2:
        entries.append((_pairs(columns[:, 0], columns[:, 1], order), share))
    return _assemble(order, entries, share)


@sign_products.register
def _(workload: MarginalTables) -> SignProducts | None:
    if workload.k > 2 or any(levels != 2 for levels in workload.levels):
        return None
    order, m, cells = len(workload.levels) + 1, workload.n_queries, 2**workload.k
    tables = np.repeat(np.array(workload.tables, dtype=np.int64) + 1, cells, axis=0)
    zero = np.zeros(m, dtype=np.int64)
    # Level 0 is the sign +1: the indicator of level a is (1 + (-1)^a s) / 2.
    levels = np.stack(np.unravel_index(np.arange(cells), (2,) * workload.k), axis=1)
    signs = np.tile(1.0 - 2.0 * levels, (len(workload.tables), 1))
    entries = [(_pairs(zero, tables[:, i], order), signs[:, i] / cells) for i in range(workload.k)]
    if workload.k == 2:
        entries.append((_pairs(tables[:, 0], tables[:, 1], order), signs.prod(axis=1) / cells))
    return _assemble(order, entries, np.full(m, 1 / cells))


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


# Workloads on tables of at most two columns, as affine functions of contrasts of levels.
#
# A contrast is a combination of the indicators of the levels with coefficients that add up to 0,
# and a contrast of a pair of columns is a product of two.


@dataclass(frozen=True)
class TableContrasts:
    """Q(x) = constant + matrix @ (H_i^T e_i(x) for i, H_i^T e_i(x) e_j(x)^T H_j for i < j).

    e_i(x) is the unit vector of the level of column i, and H_i the `zero_sum_basis`. Single columns
    come first in `matrix` (m, r); the contrasts of each pair are row-major.
    """

    levels: tuple[int, ...]
    matrix: sp.csr_array
    constant: FloatArray


@functools.singledispatch
def table_contrasts(workload: Workload) -> TableContrasts | None:
    """The answers of a workload as a function of contrasts; None if no such function is known.

    It is known for `MarginalTables` (without columns of one level) and `Marginals` with k <= 2, and
    for `Parities` with k = 2: the d - 1 columns are the products s_1 s_i of signs of attributes.
    """
    del workload
    return None


@table_contrasts.register
def _(workload: Parities) -> TableContrasts | None:
    if workload.k != 2:
        return None
    d, m = workload.d, workload.n_queries
    # Level 0 is the sign +1, so the contrast of a column with sign s is s / sqrt(2). The pairs
    # with the first sign come first.
    stretch = np.repeat([math.sqrt(2), 2.0], [d - 1, m - d + 1])
    return TableContrasts((2,) * (d - 1), sp.csr_array(sp.diags_array(stretch)), np.zeros(m))


@table_contrasts.register
def _(workload: Marginals) -> TableContrasts | None:
    if workload.k > 2:
        return None
    found = _of_tables(MarginalTables([2] * workload.d, workload.k), list(range(workload.d)))
    # The query of a set of columns is the last cell of its table: all levels are 1 there.
    last = np.arange(2**workload.k - 1, found.matrix.shape[0], 2**workload.k)
    return TableContrasts(found.levels, sp.csr_array(found.matrix[last]), found.constant[last])


@table_contrasts.register
def _(workload: MarginalTables) -> TableContrasts | None:
    varying = [i for i, count in enumerate(workload.levels) if count > 1]
    return _of_tables(workload, varying) if workload.k <= 2 and varying else None


def _of_tables(workload: MarginalTables, varying: list[int]) -> TableContrasts:
    """The contrasts of `MarginalTables`, k <= 2; `varying` lists columns of 2 or more levels."""
    levels = tuple(workload.levels[i] for i in varying)
    order = sum(levels) - len(levels)
    singles = np.cumsum([0, *(count - 1 for count in levels)])
    sizes = [(a - 1) * (b - 1) for a, b in itertools.combinations(levels, 2)]
    pairs = order + np.cumsum([0, *sizes])
    number = {pair: t for t, pair in enumerate(itertools.combinations(varying, 2))}
    position = {i: t for t, i in enumerate(varying)}
    first_cells = np.cumsum([0, *(math.prod(workload.shape(table)) for table in workload.tables)])
    rows, columns, values = [], [], []
    constant = np.empty(workload.n_queries)
    for table, first in zip(workload.tables, first_cells, strict=False):
        # A column of one level has no contrasts and changes nothing.
        own = [i for i in table if i in position]
        starts = [singles[position[i]] for i in own]
        if len(own) == 2:
            starts.append(pairs[number[own[0], own[1]]])
        shape = tuple(workload.levels[i] for i in own)
        constant[first : first + math.prod(shape)] = 1 / math.prod(shape)
        for start, block in zip(starts, _cell_contrasts(shape), strict=True):
            cells, places = np.nonzero(block)
            rows.append(first + cells)
            columns.append(start + places)
            values.append(block[cells, places])
    entries = (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns)))
    matrix = sp.csr_array(entries, shape=(workload.n_queries, int(pairs[-1])))
    return TableContrasts(levels, matrix, constant)


@functools.cache
def _cell_contrasts(shape: tuple[int, ...]) -> list[FloatArray]:
    """Matrices from contrasts to the cells of a table: one per column, then one for the pair."""
    found = []
    for place in range(len(shape)):
        factors = [np.full((count, 1), 1 / count) for count in shape]
        factors[place] = zero_sum_basis(shape[place])
        found.append(functools.reduce(np.kron, factors))
    if len(shape) == 2:
        found.append(np.kron(*(zero_sum_basis(count) for count in shape)))
    return found


# Symmetries of a workload: orthogonal maps of the answer space that permute all answer vectors.
#
# They map the sensitivity polytope, its difference body and its symmetric hull onto themselves. So
# if a slab contains one of these bodies, the image of the slab contains it, too.


#: A function that maps directions (b, m) to images (b, m) under one random symmetry.
RandomSymmetry = Callable[[FloatArray, np.random.Generator], FloatArray]


@functools.singledispatch
def random_symmetry(workload: Workload) -> RandomSymmetry | None:
    """A function that applies random symmetries of `workload`, or None if no symmetry is known.

    Each call of the returned function draws one symmetry uniformly from a known group. The function
    takes directions (b, m) and a generator, and returns the images (b, m) of all directions.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> workload = gd.workloads.Parities(4, 1)
    >>> symmetry = gd.workloads.random_symmetry(workload)
    >>> direction = np.array([[1.0, 2.0, 3.0, 4.0]])
    >>> image = symmetry(direction, np.random.default_rng(0))
    >>> image
    array([[-4.,  3.,  2.,  1.]])

    The sensitivity polytope has the same breadth in both directions:

    >>> workload.breadth(np.vstack([direction, image]))
    array([20., 20.])
    """
    del workload
    return None


@random_symmetry.register
def _(workload: MarginalTables) -> RandomSymmetry | None:
    """Permute the attributes; for parities, also flip some, which changes the signs of queries."""
    place_of = dict(zip(workload.tables, workload.slices, strict=True))

    def image(directions: FloatArray, rng: np.random.Generator) -> FloatArray:
        target = _permuted_within(workload.levels, rng)
        relabelled = [rng.permutation(levels) for levels in workload.levels]
        images = np.empty_like(directions)
        for table, place in place_of.items():
            cells = directions[:, place].reshape(-1, *workload.shape(table))
            for axis, column in enumerate(table, start=1):
                cells = np.take(cells, relabelled[column], axis=axis)
            order = np.argsort(target[list(table)])
            cells = cells.transpose(0, *(1 + order))
            moved = tuple(int(column) for column in np.sort(target[list(table)]))
            images[:, place_of[moved]] = cells.reshape(len(directions), -1)
        return images

    return image


@random_symmetry.register(Marginals)
@random_symmetry.register(Parities)
def _(workload: Marginals | Parities) -> RandomSymmetry | None:
    """Permute the attributes. For parities, also flip some attributes.

    The parity of a set S of attributes changes its sign once for each flipped attribute in S.
    """

    def image(directions: FloatArray, rng: np.random.Generator) -> FloatArray:
        images = np.empty_like(directions)
        if isinstance(workload, Parities):
            flips = rng.choice([-1.0, 1.0], workload.d)
            directions = directions * flips[workload.subsets].prod(axis=1)
        images[:, _subset_images(workload.subsets, rng.permutation(workload.d))] = directions
        return images

    return image


def _permuted_within(levels: tuple[int, ...], rng: np.random.Generator) -> IntArray:
    counts = np.array(levels)
    target = np.empty(len(levels), dtype=np.int64)
    for count in np.unique(counts):
        (members,) = np.nonzero(counts == count)
        target[members] = rng.permutation(members)
    return target


def _subset_images(subsets: IntArray, target: IntArray) -> IntArray:
    """Number of the subset to which `target` maps each row of `subsets` (m, k)."""
    number = {tuple(row): i for i, row in enumerate(subsets.tolist())}
    moved = np.sort(target[subsets], axis=1).tolist()
    return np.array([number[tuple(row)] for row in moved], dtype=np.int64)
