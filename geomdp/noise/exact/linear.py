"""Linear maps on vectors of real intervals (balls, `arb`). Floats are exact dyadic rationals."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import scipy.sparse as sp
from flint import arb, arb_mat

from geomdp._typing import FloatArray
from geomdp.noise.exact.variates import Vector, ball_sum
from geomdp.noise.mapped import Map

#: A matrix with a larger share of non-zero entries is multiplied as a dense matrix. One
#: multiplication in FLINT's dense product takes a fifth of the time of one in Python.
DENSE = 0.2

LinearMap = Callable[[Vector], Vector]


def dyadic(values: FloatArray) -> Vector:
    return [arb(value) for value in np.asarray(values, dtype=np.float64).tolist()]


def linear_map(matrix: Map) -> LinearMap:
    """The map x -> matrix @ x in ball arithmetic, for a dense, sparse or implicit matrix (m, k)."""
    m, k = matrix.shape
    listed = matrix if sp.issparse(matrix) else np.asarray(matrix)
    sparse = sp.csr_array(listed, copy=True)
    sparse.eliminate_zeros()
    if sparse.nnz > DENSE * m * k:
        exact = arb_mat(m, k, sparse.toarray().ravel().tolist())
        return lambda vector: (exact * arb_mat(k, 1, vector)).entries()
    # Convert each different entry once, because maps of tables have few different entries.
    distinct = {entry: arb(entry) for entry in set(sparse.data.tolist())}
    entries = [distinct[entry] for entry in sparse.data.tolist()]
    places, starts = sparse.indices.tolist(), sparse.indptr.tolist()

    def product(vector: Vector) -> Vector:
        terms = [entry * vector[place] for entry, place in zip(entries, places, strict=True)]
        return [ball_sum(terms[a:b]) for a, b in pairwise(starts)]

    return product


def gram(rows: list[Vector]) -> list[Vector]:
    """R R^T for the matrix R with these rows. Entries missing at the end of a row are 0."""
    width, count = max(map(len, rows)), len(rows)
    padded = [entry for row in rows for entry in (*row, *[arb(0)] * (width - len(row)))]
    matrix = arb_mat(count, width, padded)
    flat = (matrix * matrix.transpose()).entries()
    return [flat[i * count : (i + 1) * count] for i in range(count)]
