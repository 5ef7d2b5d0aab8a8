"""Strategies of columns for products of queries, and a lower bound on the error of them all."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import scipy
from flint import arb_mat, ctx

from geomdp._numerics.linalg import RANK_TOLERANCE, significant, zero_sum_basis
from geomdp._typing import FloatArray, IntArray
from geomdp.mechanisms.strategies.design import ENTRY_UNIT
from geomdp.privacy import Adjacency
from geomdp.workloads.structure import Column, Residuals, categories, contrast
from geomdp.workloads.tables import ProductQueries, TableQueries

#: Precision that is added in every direction. So directions that no query needs are measured as
#: well, with much noise, and the total error grows by at most this share.
REST = 1e-7
#: Largest modulus of the logarithm of a weight. A level of less weight hardly constrains X.
LOGS = 16.0
#: Smallest eigenvalue, as a share of the largest, of a matrix whose root is taken.
LEAST = 1e-28
#: Working precision, in bits, of the proved bounds on the images of levels.
PROOF_BITS = 160


def strategy_columns(workload: TableQueries | ProductQueries) -> list[Column]:
    """The columns of a workload, each with a strategy for the differences of its counts."""
    if isinstance(workload, TableQueries):
        return [categories(levels) for levels in workload.levels]
    known: dict[bytes, Column] = {}
    found = []
    for levels, factor in zip(workload.workload.levels, workload.factors, strict=True):
        if factor is None:
            found.append(categories(levels))
            continue
        key = levels.to_bytes(2) + factor.tobytes()
        if key not in known:
            known[key] = _with_strategy(levels, factor)
        found.append(known[key])
    return found


def _with_strategy(levels: int, factor: FloatArray) -> Column:
    if levels > 2:
        return proved_column(factor, _noise_root(best_precision(factor)))
    plain = categories(levels)  # two levels have a single difference
    return Column(levels, factor, None, plain.share, plain.against)


def soft_levels(factor: FloatArray) -> tuple[IntArray, FloatArray] | None:
    """The numbers (s,) of s < l levels, and the shares S (s, l) in them of all levels.

    The `factor` W (queries, l) is then W' S with the columns W' of these levels. Shares are
    multiples of 2^-24 that add up to exactly 1. None if there are no such levels.
    """
    # The point farthest from a point or a plane is a corner of the hull of all points.
    centred = factor.T - factor.mean(axis=1)
    chosen = [int((centred**2).sum(axis=1).argmax())]
    rest = factor.T - factor[:, chosen[0]]
    while np.abs(rest).max() > RANK_TOLERANCE * np.abs(factor).max():
        chosen.append(int((rest**2).sum(axis=1).argmax()))
        axis = rest[chosen[-1]] / np.linalg.norm(rest[chosen[-1]])
        rest = rest - (rest @ axis)[:, None] * axis
    chosen.sort()
    ends = np.vstack([factor[:, chosen], np.ones(len(chosen))])
    whole = np.vstack([factor, np.ones(factor.shape[1])])
    shares = np.rint(np.linalg.lstsq(ends, whole)[0] * ENTRY_UNIT) / ENTRY_UNIT
    exact = (shares >= 0).all() and (ends @ shares == whole).all()
    return (np.array(chosen), shares) if exact and len(chosen) < factor.shape[1] else None


def best_precision(factor: FloatArray) -> FloatArray:
    """The X (l - 1, l - 1) of least tr(G X^-1) with diag(H X H^T) <= 1, up to tolerances.

    H is the `zero_sum_basis` of the l levels, and G = H^T W^T W H for the `factor` W (queries, l).
    Gaussian noise of covariance X^-1 on H^T h, for the counts h of levels, has the variance
    tr(G X^-1) in all queries together. By duality it is the largest value over l weights of
    tr((D^1/2 G D^1/2)^1/2)^2 / sum of weights, D = H^T diag(weights) H (X-PROD).
    """
    levels = factor.shape[1]
    basis = zero_sum_basis(levels)
    _, singular, directions = np.linalg.svd(
        (factor / np.abs(factor).max()) @ basis, full_matrices=False
    )
    # G = K K^T, with a column of K for each direction that the queries need.
    needed = significant(singular)
    half = (directions[needed] * singular[needed, None]).T

    def solved(weights: FloatArray) -> tuple[FloatArray, float]:
        """The best X for these weights, and tr((D^1/2 G D^1/2)^1/2)."""
        weighted = half.T @ (basis.T @ (weights[:, None] * basis)) @ half
        squares, turned = np.linalg.eigh(weighted)
        roots = np.sqrt(np.maximum(squares, LEAST * squares.max()))
        moved = half @ turned
        return (moved / roots) @ moved.T, float(roots.sum())

    def lost(logs: FloatArray) -> tuple[float, FloatArray]:
        weights = np.exp(logs)
        precision, total = solved(weights)
        slopes = weights / weights.sum() - weights * _diagonal(basis, precision) / total
        return float(np.log(weights.sum()) - 2 * np.log(total)), slopes

    found = scipy.optimize.minimize(
        lost,
        np.zeros(levels),
        jac=True,
        method="L-BFGS-B",
        bounds=[(-LOGS, LOGS)] * levels,
        options={"ftol": 1e-15, "gtol": 1e-9},
    )
    precision, _ = solved(np.exp(found.x))
    precision = precision / _diagonal(basis, precision).max() + REST * np.eye(levels - 1)
    return np.asarray(precision / _diagonal(basis, precision).max())


def _diagonal(basis: FloatArray, precision: FloatArray) -> FloatArray:
    return np.asarray(((basis @ precision) * basis).sum(axis=1))


def _noise_root(precision: FloatArray) -> FloatArray:
    """L (l - 1, l - 1), lower triangular, with L L^T the covariance on the differences C h."""
    levels = len(precision) + 1
    on_differences = contrast(levels) @ zero_sum_basis(levels)
    covariance = on_differences @ np.linalg.solve(precision, on_differences.T)
    return np.asarray(np.linalg.cholesky((covariance + covariance.T) / 2))


def proved_column(factor: FloatArray, root: FloatArray) -> Column:
    """The column with noise L g for a multiple L of `root`, such that |b_j|^2 <= 1 is proved.

    b_j = L^-1 C e_j is computed in ball arithmetic for the float64 entries of L, taken as exact.
    """
    levels = len(root) + 1
    images = _inner_products(root)
    largest = max(float(images[j, j].upper()) for j in range(levels))
    scaled, more = root * np.sqrt(largest), 2.0**-50
    while not _at_most_1(images := _inner_products(scaled)):
        scaled, more = root * (np.sqrt(largest) * (1 + more)), 2 * more
    against = max(Fraction(float((-images[j, k]).upper())) for j in range(levels) for k in range(j))
    # The conversion to float64 rounds to nearest.
    against *= 1 + Fraction(1, 2**50)
    return Column(levels, factor, scaled, Fraction(1), min(against, Fraction(1)))


def _inner_products(root: FloatArray) -> arb_mat:
    """<b_j, b_k> for all levels j and k, as balls."""
    with ctx.workprec(PROOF_BITS):
        images = arb_mat(root.tolist()).solve(arb_mat(contrast(len(root) + 1).tolist()))
        return images.transpose() * images


def _at_most_1(images: arb_mat) -> bool:
    return all(bool(images[j, j] <= 1) for j in range(images.nrows()))


# A lower bound on the error of all linear mechanisms with Gaussian noise.

#: Largest number of coordinates of residuals for which the bound is computed, in seconds.
MAX_DIMENSION = 1 << 11


def least_energy(residuals: Residuals, adjacency: Adjacency) -> float | None:
    """A lower bound on the energy of noise at l2 sensitivity 1 (SVD bound); None if it takes long.

    Let X be the information matrix of the measurements, over N elements, and M = W^T W for the
    queries W. The energy is tr(M X^-1) >= tr(M^1/2)^2 / tr X. Under add/remove, no diagonal entry
    of X exceeds 1, so tr X <= N. Under replace-one, only vectors of sum 0 count. No two elements
    are more than 1 apart, and their mean squared distance is 2 tr X / (N - 1), so
    tr X <= (N - 1) / 2. The nonzero eigenvalues of M are those of its matrix in an orthonormal
    basis of products of 1 / sqrt(l) and the `zero_sum_basis` of each column.
    """
    if residuals.dimension > MAX_DIMENSION:
        return None
    bases = [
        np.hstack([np.full((kind.levels, 1), kind.levels**-0.5), zero_sum_basis(kind.levels)])
        for kind in residuals.columns
    ]
    rows = [
        basis if kind.factor is None else kind.factor @ basis
        for kind, basis in zip(residuals.columns, bases, strict=True)
    ]
    matrix = np.zeros((residuals.dimension, residuals.dimension))
    for tables in residuals.tables:
        for t, number in enumerate(tables.numbers.tolist()):
            table, places = residuals.cells.tables[number], np.empty((1, 1, *tables.shape), int)
            for own in tables.within:
                size = own.group.size
                start = own.group.start + int(own.rows[t]) * size
                part = places[tables.part(own)]
                part[...] = np.arange(start, start + size).reshape(part.shape)
            # Divided by N: a column outside of the table has the single entry l / l.
            inside: FloatArray = np.ones((1, 1))
            for i in table:
                inside = np.kron(inside, rows[i].T @ rows[i] / len(bases[i])).astype(np.float64)
            weight = residuals.cells.table_weights[number]
            matrix[np.ix_(places.ravel(), places.ravel())] += weight**2 * inside
    share = 1.0
    if adjacency is Adjacency.REPLACE_ONE:
        matrix, share = matrix[1:, 1:], 2 / (1 - 1 / math.prod(map(float, residuals.cells.levels)))
    values = np.asarray(np.linalg.eigvalsh(matrix), dtype=np.float64)
    # Eigenvalues that rounding can have made are counted as 0.
    return float(np.sqrt(values[significant(values)]).sum()) ** 2 * share
