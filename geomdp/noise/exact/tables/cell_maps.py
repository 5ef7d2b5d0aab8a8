"""Rewrite linear maps of table contrasts as maps of table cells, with rational coefficients.

The coordinates of `TableMoments` are contrasts with weights like 1 / 6^(1/2). So only the rational
map of cells, recovered here by rounding, gives exact counts.
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

    `cells` begins with the shares m_i of the levels of each attribute i. The entries of the two-way
    tables M_ij for i < j follow, row by row. q = (H_i^T m_i, H_i^T M_ij H_j) is in the same order.
    """

    numerators: sp.csr_array
    constant: FloatArray
    denominator: int


def cell_map(
    levels: Sequence[int], matrix: sp.csr_array, constant: FloatArray | None = None
) -> CellMap | None:
    """The rational map of cells that `matrix` T (m, r) and `constant` (m,) approximate, or None.

    It is found if the coefficients on cells and the constant are, up to rounding, multiples of
    1 / D, where D <= 2^32 is the square of the least common multiple of the l_i in `levels`.
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
