"""Least squares reconstruction of listed answers from private measurements of the histogram."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.linalg

from geomdp._typing import FloatArray
from geomdp.privacy import Adjacency

#: Relative error of a solution above which the matrix counts as singular.
SOLVED = 1e-9


def gram(answers: FloatArray, adjacency: Adjacency) -> FloatArray:
    """sum over queries of w w^T (N, N), w the query as a function on the N elements.

    Under replace-one the number of records is public and the mean of w does not matter: it is
    taken off.
    """
    queries = centred(answers, adjacency)
    return np.asarray(queries @ queries.T)


def centred(answers: FloatArray, adjacency: Adjacency) -> FloatArray:
    """Under replace-one, answers (N, m) minus their mean over the elements; else the answers."""
    if adjacency is Adjacency.ADD_REMOVE:
        return answers
    # From the first row first: answers that are all the same then become exactly 0.
    moved = answers - answers[0]
    return np.asarray(moved - moved.mean(axis=0))


def reconstruct(
    answers: FloatArray,
    measurements: Sequence[FloatArray],
    precisions: Sequence[float],
    adjacency: Adjacency,
) -> list[FloatArray]:
    """Maps R_i (m, p_i) with sum_i R_i C_i = W, up to what is public, of least total variance.

    Where the measurements do not determine W they rebuild as much of it as they can; `Design`
    checks that nothing is missing.

    Measurement i is C_i h + z_i of the histogram h, z_i with variance 1 / precision_i along each
    axis. With S = (sum_i precision_i C_i^T C_i)^+ the maps are R_i = W S C_i^T precision_i; under
    replace-one, where 1^T h is public, W and C_i act on vectors of sum 0 only.

    Parameters
    ----------
    answers : (N, m) array
        W^T: the answers of all elements.
    measurements : sequence of (p_i, N) arrays
        C_i.
    precisions : sequence of float
        Above 0.
    adjacency : Adjacency
        Neighbour relation.
    """
    queries = centred(answers, adjacency)
    rows = [centred(matrix.T, adjacency) for matrix in measurements]
    information = np.zeros((len(queries), len(queries)))
    for precision, row in zip(precisions, rows, strict=True):
        information += precision * row @ row.T
    if adjacency is Adjacency.REPLACE_ONE:
        # Any multiple of 1 1^T makes it invertible without a change on vectors of sum 0.
        information = information + np.trace(information) / len(information) ** 2
    solved = _solve(information, queries)
    return [p * (solved.T @ row) for p, row in zip(precisions, rows, strict=True)]


def _solve(information: FloatArray, queries: FloatArray) -> FloatArray:
    """The pseudo-inverse of a positive semidefinite matrix (N, N) times `queries` (N, m)."""
    try:
        solved = scipy.linalg.cho_solve(scipy.linalg.cho_factor(information), queries)
    except np.linalg.LinAlgError:
        pass
    else:
        off = np.abs(information @ solved - queries).max(axis=0)
        if (off <= SOLVED * np.abs(queries).max(axis=0)).all():
            return np.asarray(solved)
    # Singular, or so nearly that rounding decides: eigenvalues of that size count as 0.
    cutoff = len(information) * np.finfo(float).eps
    return np.asarray(np.linalg.pinv(information, rcond=cutoff, hermitian=True) @ queries)


def error_and_slopes(
    gram: FloatArray, diagonal: FloatArray, rows: FloatArray, adjacency: Adjacency
) -> tuple[float, FloatArray, FloatArray]:
    """tr(G S), S = (diag(d) + T^T T)^-1, with its derivatives by d (N,) and T (p, N).

    It is the squared error of least squares from measurements with the information matrix
    diag(d) + T^T T. Under replace-one that matrix has an infinite multiple of 1 1^T added, for the
    public number of records. O(p N^2) by the matrix inversion lemma.
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
