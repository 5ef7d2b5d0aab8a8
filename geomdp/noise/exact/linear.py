"""Linear maps on vectors of balls; float entries are the dyadic rationals they are."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import scipy.sparse as sp
from flint import arb, arb_mat

from geomdp._typing import FloatArray
from geomdp.noise.exact.variates import Vector

#: Least share of non-zero entries at which a dense product is faster than one by rows: a step of a
#: compiled product takes a fifth of one that Python makes.
DENSE = 0.2

LinearMap = Callable[[Vector], Vector]


def dyadic(values: FloatArray) -> Vector:
    """The floats (m,) as exact balls."""
    return [arb(value) for value in np.asarray(values, dtype=np.float64).tolist()]


def linear_map(matrix: FloatArray | sp.csr_array) -> LinearMap:
    """The map x -> matrix @ x of a dense or sparse (m, k) array of floats."""
    m, k = matrix.shape
    sparse = sp.csr_array(matrix)
    sparse.eliminate_zeros()
    if sparse.nnz > DENSE * m * k:
        dense = np.asarray(matrix.toarray() if sp.issparse(matrix) else matrix, dtype=np.float64)
        exact = arb_mat(m, k, dense.ravel().tolist())
        return lambda vector: (exact * arb_mat(k, 1, vector)).entries()
    starts, columns = sparse.indptr.tolist(), sparse.indices.tolist()
    entries = dyadic(sparse.data)
    rows = [(entries[a:b], columns[a:b]) for a, b in pairwise(starts)]
    return lambda vector: [_row_product(weights, places, vector) for weights, places in rows]


def _row_product(weights: Vector, places: list[int], vector: Vector) -> arb:
    if not weights:
        return arb(0)
    total = weights[0] * vector[places[0]]
    for weight, place in zip(weights[1:], places[1:], strict=True):
        total += weight * vector[place]
    return total


def gram(rows: list[Vector]) -> list[Vector]:
    """R R^T for the rows of R, which may end early: the entries that follow are 0."""
    width, count = max(map(len, rows)), len(rows)
    padded = [entry for row in rows for entry in (*row, *[arb(0)] * (width - len(row)))]
    matrix = arb_mat(count, width, padded)
    flat = (matrix * matrix.transpose()).entries()
    return [flat[i * count : (i + 1) * count] for i in range(count)]
