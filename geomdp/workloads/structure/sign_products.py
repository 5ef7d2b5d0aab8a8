"""Workloads whose answers are affine functions of products of two signs, and these functions."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from geomdp._typing import FloatArray, IntArray
from geomdp.workloads.base import Workload
from geomdp.workloads.boolean import Marginals, Parities
from geomdp.workloads.tables import MarginalTables


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
