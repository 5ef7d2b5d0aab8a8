"""Answers computed by least squares from private measurements of the histogram."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import scipy

from geomdp._typing import FloatArray
from geomdp.privacy import Adjacency

#: Largest residual of a solution of a linear system, relative to the right-hand side. If the
#: residual is larger, the matrix is treated as singular.
SOLVED = 1e-9


def gram(answers: FloatArray, adjacency: Adjacency) -> FloatArray:
    """The sum of w w^T (N, N) over queries, where w (N,) holds the values of a query at N elements.

    Under replace-one the mean of w is subtracted. The number of records is then public, so this
    changes the answers only by a known constant.
    """
    queries = centred(answers, adjacency)
    return np.asarray(queries @ queries.T)


def centred(answers: FloatArray, adjacency: Adjacency) -> FloatArray:
    """`answers` (N, m); under replace-one, the mean of each query over elements is subtracted."""
    if adjacency is Adjacency.ADD_REMOVE:
        return answers
    # Subtracting the first row before the mean makes constant columns exactly 0.
    moved = answers - answers[0]
    return np.asarray(moved - moved.mean(axis=0))


def reconstruct(
    answers: FloatArray,
    measurements: Sequence[FloatArray],
    precisions: Sequence[float],
    adjacency: Adjacency,
) -> list[FloatArray]:
    """Maps R_i (m, p_i) with sum_i R_i C_i = W for which the answers have least total variance.

    Measurement i is C_i h + z_i, where h is the histogram and z_i has variance 1 / precision_i in
    each coordinate. The maps are R_i = W S C_i^T precision_i, where S is the pseudo-inverse of
    sum_i precision_i C_i^T C_i. Under replace-one the number of records 1^T h is public. So
    sum_i R_i C_i = W is required on vectors of sum 0 only, and the formulas for R_i and S use the
    `centred` W and C_i.

    If the measurements do not determine all answers, the equation does not hold. `Design` checks
    that it holds.

    Parameters
    ----------
    answers : (N, m) array
        W^T: the answers of all elements.
    measurements : sequence of (p_i, N) arrays
        The C_i.
    precisions : sequence of float
        The precisions of the measurements, above 0.
    adjacency : Adjacency
        Neighbour relation.
    """
    queries = centred(answers, adjacency)
    rows = [centred(matrix.T, adjacency) for matrix in measurements]
    information = np.zeros((len(queries), len(queries)))
    for precision, row in zip(precisions, rows, strict=True):
        information += precision * row @ row.T
    if adjacency is Adjacency.REPLACE_ONE:
        # The centred measurements have sum 0, so the matrix maps 1 to 0. Adding a multiple of 1 1^T
        # ends this and changes nothing on vectors of sum 0.
        information = information + np.trace(information) / len(information) ** 2
    solve = _solver(information, queries)
    maps = [np.zeros((queries.shape[1], row.shape[1])) for row in rows]
    # S can be so large that rounding spoils the maps. The second round adds the maps for the part
    # of the answers that the first maps miss.
    for _ in range(2):
        missing = queries - sum(row @ part.T for row, part in zip(rows, maps, strict=True))
        solved = solve(missing)
        maps = [
            part + p * (solved.T @ row) for part, p, row in zip(maps, precisions, rows, strict=True)
        ]
    return maps


def _solver(information: FloatArray, queries: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """A function that multiplies by the pseudo-inverse of the psd matrix `information` (N, N).

    A Cholesky factor is used if it is accurate for `queries` (N, m).
    """
    try:
        factor = scipy.linalg.cho_factor(information)
    except np.linalg.LinAlgError:
        pass
    else:
        solved = scipy.linalg.cho_solve(factor, queries)
        off = np.abs(information @ solved - queries).max(axis=0)
        if (off <= SOLVED * np.abs(queries).max(axis=0)).all():
            return lambda right: np.asarray(scipy.linalg.cho_solve(factor, right))
    # The matrix is singular up to rounding. Eigenvalues of the size of rounding errors are dropped.
    cutoff = len(information) * np.finfo(float).eps
    inverse = np.linalg.pinv(information, rcond=cutoff, hermitian=True)
    return lambda right: np.asarray(inverse @ right)


def error_and_slopes(
    gram: FloatArray, diagonal: FloatArray, rows: FloatArray, adjacency: Adjacency
) -> tuple[float, FloatArray, FloatArray]:
    """tr(G S) for S = (diag(d) + T^T T)^-1, and its gradients with respect to d and T.

    `gram` (N, N) is G, `diagonal` (N,) is d and `rows` (p, N) is T. The value is the squared error
    of least squares from measurements with the information matrix diag(d) + T^T T. Under
    replace-one the number of records is known exactly. S is then a limit: larger and larger
    multiples of 1 1^T are added to the information matrix. The cost is O(p N^2), by the matrix
    inversion lemma.
    """
    scaled = rows / diagonal
    inner = np.linalg.solve(np.eye(len(rows)) + scaled @ rows.T, scaled)

    def inverse(columns: FloatArray) -> FloatArray:
        return columns / diagonal[:, None] - scaled.T @ (inner @ columns)

    value = float((np.diag(gram) / diagonal).sum() - ((inner @ gram) * scaled).sum())
    slope = gram
    if adjacency is Adjacency.REPLACE_ONE:
        # S becomes S - S 1 1^T S / (1^T S 1).
        s = inverse(np.ones((len(gram), 1)))[:, 0]
        weight, pulled = s.sum(), gram @ s
        excess = float(s @ pulled)
        value -= excess / weight
        slope = gram - (pulled[:, None] + pulled) / weight + excess / weight**2
    pushed = inverse(inverse(slope).T)
    return value, -np.diag(pushed).copy(), -2 * rows @ pushed
