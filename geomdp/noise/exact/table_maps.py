"""Linear maps of contrasts of tables, as maps with whole coefficients on the cells of the tables.

`TableMoments` has Helmert contrasts as coordinates, with entries like 1 / 6^(1/2). A map from them
to counts in cells therefore holds rounded irrational numbers, and the counts of records are not
exactly what it says. On the cells themselves the same map has rational coefficients, which the
rounded ones determine.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from geomdp._typing import FloatArray
from geomdp.workloads.finite import zero_sum_basis

#: Largest common denominator: coefficients, of modulus at most about 1, times this are then known
#: from float64 to 2^-15.
MAX_DENOMINATOR = 1 << 32
#: How far a coefficient times the denominator may be from a whole number.
NEARNESS = 2.0**-10


@dataclass(frozen=True, eq=False)
class CellMap:
    """The map T q = numerators @ cells / denominator of contrasts q, and the constant likewise.

    Cells are the shares m_i of the levels of columns i in turn, then the entries of the two-way
    tables M_ij row by row for i < j; q = (H_i^T m_i, H_i^T M_ij H_j).

    Parameters
    ----------
    numerators : (m, c) sparse array
        Whole numbers.
    constant : (m,) array
        Whole numbers: the constant times the denominator.
    denominator : int
        At least 1.
    """

    numerators: sp.csr_array
    constant: FloatArray
    denominator: int


def cell_map(
    levels: Sequence[int], matrix: sp.csr_array, constant: FloatArray | None = None
) -> CellMap | None:
    """The rational map on cells that `matrix` and `constant` round; None if there is none.

    Parameters
    ----------
    levels : sequence of int
        Numbers of levels l_i of the columns of `TableMoments`.
    matrix : (m, r) sparse array
        A map of contrasts whose coefficients on cells, with the constant, are multiples of 1 / D, D
        the square of the least common multiple of the l_i: cells, marginals and sign products are.
    constant : (m,) array, optional
        By default 0.

    Returns
    -------
    CellMap or None
        None if a coefficient is no multiple of 1 / D up to rounding, or D is above 2^32.
    """
    denominator = math.lcm(*levels) ** 2
    if denominator > MAX_DENOMINATOR:
        return None
    bases = [zero_sum_basis(count).T for count in levels]
    pairs = [np.kron(a, b) for a, b in itertools.combinations(bases, 2)]
    on_cells = sp.csr_array(matrix @ sp.block_diag([*bases, *pairs], format="csr")) * denominator
    shift = np.zeros(matrix.shape[0]) if constant is None else constant * denominator
    numerators, shifts = on_cells.copy(), np.rint(shift)
    numerators.data = np.rint(on_cells.data)
    off = max(
        np.abs(numerators.data - on_cells.data).max(initial=0.0),
        np.abs(shifts - shift).max(initial=0.0),
    )
    if off > NEARNESS:
        return None
    numerators.eliminate_zeros()
    return CellMap(sp.csr_array(numerators), shifts, denominator)
