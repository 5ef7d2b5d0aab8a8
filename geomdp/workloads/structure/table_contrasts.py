"""Workloads on tables of at most two columns, as affine functions of contrasts of levels.

A contrast is a combination of the indicators of the levels with coefficients that add up to 0, and
a contrast of a pair of columns is a product of two.
"""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from geomdp._typing import FloatArray
from geomdp.workloads.base import Workload
from geomdp.workloads.boolean import Marginals, Parities
from geomdp.workloads.finite import zero_sum_basis
from geomdp.workloads.tables import MarginalTables


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
