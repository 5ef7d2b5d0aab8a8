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
    """Sum of w w^T (N, N) over queries w (N,), the columns of `answers` (N, m) after `centred`."""
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

    W is `answers`^T, and measurement i is C_i h + z_i, with C_i (p_i, N) and precision 1 / Var z_i.
    Then R_i = W S C_i^T precision_i with the pseudo-inverse S of sum_i precision_i C_i^T C_i. Under
    replace-one W and C_i are `centred`. `Design` checks that the measurements determine all
    answers.
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
    """Multiplication by the pseudo-inverse of the psd matrix `information` (N, N).

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
    """tr(G S) for S = (diag(d) + T^T T)^-1, and its gradients with respect to d (N,) and T (p, N).

    It is the squared error of least squares, with G = `gram` (N, N). Under replace-one S is the
    limit for growing multiples of 1 1^T in the information matrix. The cost is O(p N^2).
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
