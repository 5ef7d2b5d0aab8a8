"""Rewrite linear maps of table contrasts as maps of table cells, with rational coefficients.

The coordinates of `TableMoments` are Helmert contrasts: sums of cells with weights that add up to
0. The weights are numbers like 1 / 6^(1/2). So the float64 matrix of a map from contrasts to counts
has rounded irrational entries, and does not give the exact counts of records. As a map of the
cells, the same map has rational coefficients. These coefficients are recovered here by rounding.
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

#: Largest common denominator. Coefficients have moduli of at most about 1 and are computed in
#: float64. So coefficients times the denominator are accurate to about 2^-15.
MAX_DENOMINATOR = 1 << 32
#: Largest accepted distance of a coefficient times the denominator from a whole number.
NEARNESS = 2.0**-10


@dataclass(frozen=True, eq=False)
class CellMap:
    """An affine map T q + c of contrasts q, as (numerators @ cells + constant) / denominator.

    Let i and j be attributes of the records. `cells` begins with the shares m_i of the levels of i,
    for all i. The entries of the two-way tables M_ij for i < j follow, row by row. The contrasts
    are q = (H_i^T m_i, H_i^T M_ij H_j) in the same order. Each column of the matrix H_i is a
    Helmert contrast of the levels of i.

    Parameters
    ----------
    numerators : (m, number of cells) sparse array
        Whole numbers: the coefficients of T on cells, times the denominator.
    constant : (m,) array
        Whole numbers: c times the denominator.
    denominator : int
        Common denominator, at least 1.
    """

    numerators: sp.csr_array
    constant: FloatArray
    denominator: int


def cell_map(
    levels: Sequence[int], matrix: sp.csr_array, constant: FloatArray | None = None
) -> CellMap | None:
    """The rational map of cells that `matrix` and `constant` approximate; None if no map fits.

    Parameters
    ----------
    levels : sequence of int
        Numbers of levels l_i of the columns of `TableMoments`.
    matrix : (m, r) sparse array
        T, a map of contrasts. Let D be the square of the least common multiple of the l_i. A
        `CellMap` is found if D <= 2^32, and the coefficients of T on cells and the constant are
        multiples of 1 / D. Maps to cells, marginals and sign products are of this form.
    constant : (m,) array, optional
        c; by default 0.

    Returns
    -------
    CellMap or None
        None if a coefficient or an entry of the constant is not a multiple of 1 / D up to rounding,
        or if D is above 2^32.
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
