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


def sign_products(workload: Workload) -> SignProducts | None:
    """The map from products of signs to the answers; None if no such map is known.

    It is known for `MarginalTables` of two-level columns and `Marginals` with k <= 2, and for
    `Parities` with k = 2. Single signs are products with a constant first sign s_0 = 1.
    """
    match workload:
        case Parities(k=2):
            # The parity of {i, j} is s_i s_j, and subsets are in lexicographic order.
            m = workload.n_queries
            return SignProducts(workload.d, sp.csr_array(sp.eye_array(m)), np.zeros(m))
        case Marginals() if workload.k <= 2:
            # x_i = (1 + s_i) / 2, as for the cells of level 0 in tables: the first cell of each.
            found = _of_two_levels(MarginalTables([2] * workload.d, workload.k))
            first = slice(None, None, 2**workload.k)
            return SignProducts(found.order, found.matrix[first], found.constant[first])
        case MarginalTables() if workload.k <= 2 and set(workload.levels) == {2}:
            return _of_two_levels(workload)
    return None


def _of_two_levels(workload: MarginalTables) -> SignProducts:
    order, m, cells = len(workload.levels) + 1, workload.n_queries, 2**workload.k
    tables = np.repeat(np.array(workload.tables, dtype=np.int64) + 1, cells, axis=0)
    # Level 0 is the sign +1: the indicator of level a is (1 + (-1)^a s) / 2.
    levels = np.stack(np.unravel_index(np.arange(cells), (2,) * workload.k), axis=1)
    signs = np.tile(1.0 - 2.0 * levels, (len(workload.tables), 1))
    columns = [_pairs(np.zeros(m, dtype=np.int64), own, order) for own in tables.T]
    values = [own / cells for own in signs.T]
    if workload.k == 2:
        columns.append(_pairs(tables[:, 0], tables[:, 1], order))
        values.append(signs.prod(axis=1) / cells)
    entries = np.concatenate(values), (np.tile(np.arange(m), len(values)), np.concatenate(columns))
    matrix = sp.coo_array(entries, shape=(m, order * (order - 1) // 2)).tocsr()
    return SignProducts(order, matrix, np.full(m, 1 / cells))


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


def table_contrasts(workload: Workload) -> TableContrasts | None:
    """The answers of a workload as a function of contrasts; None if no such function is known.

    It is known for `MarginalTables` (without columns of one level) and `Marginals` with k <= 2, and
    for `Parities` with k = 2: the d - 1 columns are the products s_1 s_i of signs of attributes.
    """
    match workload:
        case Parities(d=d, k=2):
            # Level 0 is the sign +1, so the contrast of a column with sign s is s / sqrt(2). The
            # pairs with the first sign come first.
            m = workload.n_queries
            stretch = sp.diags_array(np.repeat([math.sqrt(2), 2.0], [d - 1, m - d + 1]))
            return TableContrasts((2,) * (d - 1), sp.csr_array(stretch), np.zeros(m))
        case Marginals() if workload.k <= 2:
            found = _of_tables(MarginalTables([2] * workload.d, workload.k))
            # The query of a set of columns is the last cell of its table: all levels are 1 there.
            last = slice(2**workload.k - 1, None, 2**workload.k)
            return TableContrasts(found.levels, found.matrix[last], found.constant[last])
        case MarginalTables() if workload.k <= 2 and max(workload.levels) > 1:
            return _of_tables(workload)
    return None


def _of_tables(workload: MarginalTables) -> TableContrasts:
    # A column of one level has no contrasts and changes nothing.
    varying = [i for i, count in enumerate(workload.levels) if count > 1]
    levels = tuple(workload.levels[i] for i in varying)
    order = sum(levels) - len(levels)
    singles = np.cumsum([0, *(count - 1 for count in levels)])
    sizes = [(a - 1) * (b - 1) for a, b in itertools.combinations(levels, 2)]
    pairs = order + np.cumsum([0, *sizes])
    number = {pair: t for t, pair in enumerate(itertools.combinations(varying, 2))}
    position = {i: t for t, i in enumerate(varying)}
    rows, columns, values = [], [], []
    constant = np.empty(workload.n_queries)
    for table, cells in zip(workload.tables, workload.slices, strict=True):
        own = [i for i in table if i in position]
        starts = [singles[position[i]] for i in own]
        if len(own) == 2:
            starts.append(pairs[number[own[0], own[1]]])
        shape = tuple(workload.levels[i] for i in own)
        constant[cells] = 1 / math.prod(shape)
        for start, block in zip(starts, _cell_contrasts(shape), strict=True):
            own_cells, places = np.nonzero(block)
            rows.append(cells.start + own_cells)
            columns.append(start + places)
            values.append(block[own_cells, places])
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


def random_symmetry(workload: Workload) -> RandomSymmetry | None:
    """A function that applies random symmetries of `workload`, or None if no symmetry is known.

    Each call of the returned function draws one symmetry uniformly from a known group. The function
    takes directions (b, m) and a generator, and returns the images (b, m) of all directions.
    """
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
