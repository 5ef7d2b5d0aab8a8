"""Tables of categorical columns as linear functions of products of unit vectors."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from geomdp._typing import FloatArray, IntArray
from geomdp.workloads.base import Workload
from geomdp.workloads.tables import MarginalTables

SQRT_TWO = math.sqrt(2)


@dataclass(frozen=True)
class UnitProducts:
    """Q(x) = constant + matrix @ svec(z z^T), z = (1, v_2(x), ..., v_b(x)) of unit vectors.

    Parameters
    ----------
    sizes : tuple of int
        Dimensions of the vectors, that of the constant 1 first.
    matrix : (m, p (p + 1) / 2) sparse array
        The map from svec(z z^T) to answers, p the sum of the sizes. It uses products of vectors of
        different columns only, none within a vector.
    constant : (m,) array
        What every record adds.
    """

    sizes: tuple[int, ...]
    matrix: sp.csr_array
    constant: FloatArray


def characters(levels: int) -> list[FloatArray]:
    """Unit vectors v_k(a) as arrays (levels, q_k), q_k of 1 or 2, that tell the levels apart.

    They are the real characters of the group Z_2^s x Z_o, levels = 2^s o with o odd, but for the
    constant one: 2^s - 1 signs, and pairs (cos, sin). With w_k = q_k,

        1[x = a] = (1 + sum over k of w_k <v_k(a), v_k(x)>) / levels.

    No other group of this order has more signs, and so none has more vectors: each fixes one more
    entry of the sum of z z^T.
    """
    odd = levels
    bits = 0
    while odd % 2 == 0:
        odd, bits = odd // 2, bits + 1
    numbers = np.arange(levels)
    signs, rest = numbers // odd, numbers % odd
    vectors: list[FloatArray] = []
    for mask, frequency in itertools.product(range(1 << bits), range((odd + 1) // 2)):
        sign = 1.0 - 2.0 * (np.bitwise_count(signs & mask) % 2)
        angle = 2 * math.pi * frequency * rest / odd
        if frequency > 0:
            vectors.append(sign[:, None] * np.column_stack([np.cos(angle), np.sin(angle)]))
        elif mask > 0:
            vectors.append(sign[:, None])
    return vectors


def unit_products(workload: Workload) -> UnitProducts | None:
    """The map of all tables of at most two categorical columns; None for any other workload."""
    if not isinstance(workload, MarginalTables) or workload.k > 2:
        return None
    columns = [characters(levels) for levels in workload.levels]
    sizes = (1, *(vector.shape[1] for column in columns for vector in column))
    order = sum(sizes)
    # Coordinate 0 of z is the constant 1; those of a column of l levels are l - 1 in a row.
    starts = np.cumsum([1, *(levels - 1 for levels in workload.levels)])
    blocks = []
    for table in workload.tables:
        parts = [_indicators(columns[i], workload.levels[i]) for i in table]
        places = [np.r_[0, starts[i] : starts[i + 1]] for i in table]
        if workload.k == 1:
            parts.append(np.ones((1, 1)))
            places.append(np.zeros(1, dtype=np.int64))
        values = np.kron(*parts) / math.prod(workload.shape(table))
        low, high = np.sort([grid.ravel() for grid in np.meshgrid(*places, indexing="ij")], axis=0)
        # The product 1 * 1 is the constant; svec stretches entries off the diagonal by sqrt(2).
        varying = high > 0
        blocks.append(_scattered(values[:, varying] / SQRT_TWO, low[varying], high[varying], order))
    cells = [math.prod(workload.shape(table)) for table in workload.tables]
    constant = np.repeat([1 / count for count in cells], cells)
    return UnitProducts(sizes, sp.csr_array(sp.vstack(blocks)), constant)


def _scattered(values: FloatArray, rows: IntArray, columns: IntArray, order: int) -> sp.csr_array:
    """Columns of `values` (cells, c) put at the svec coordinates of entries rows <= columns."""
    places = rows * (2 * order - rows + 1) // 2 + columns - rows
    cells, count = values.shape
    entry = (np.repeat(np.arange(cells), count), np.tile(places, cells))
    return sp.coo_array((values.ravel(), entry), shape=(cells, order * (order + 1) // 2)).tocsr()


def _indicators(vectors: list[FloatArray], levels: int) -> FloatArray:
    """Coefficients (levels, levels) of 1 and of all v_k in levels * 1[x = a]: 1 and q_k v_k(a)."""
    return np.hstack([np.ones((levels, 1)), *(vector.shape[1] * vector for vector in vectors)])
