"""Largest values of linear functions on correlation matrices, with certified upper bounds.

Let C be a symmetric p x p matrix with zero diagonal. The problem

    max { <C, R> / 2 : R psd, R_ii = 1 }

is solved in the factored form R = V V^T, where V has unit rows v_i. One step replaces v_i by g_i /
||g_i||, g_i = sum_j C_ij v_j, the best v_i for the other rows (the mixing method of Wang, Chang and
Kolter 2018). If V has more than sqrt(2 p) columns, then for almost all C only global maxima are
stable, and the steps converge linearly from almost every start (Boumal, Voroninski and Bandeira
2016). The dual value

    (sum_i y_i + p max(0, lambda_max(C - Diag y))) / 2

is an upper bound on the maximum for every y, and equals it for y_i = <g_i, v_i> at an optimal V.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from geomdp._numerics.compilation import numba
from geomdp._numerics.randomness import PUBLIC_SEED
from geomdp._typing import FloatArray

#: The steps stop when the dual value minus the value of V is at most this share of the dual value.
GAP = 1e-9
#: Sweeps over all rows before the gap is first computed, and the largest number of sweeps.
FIRST_SWEEPS, MOST_SWEEPS = 20, 200_000


class Highest(NamedTuple):
    """For b matrices C: correlation matrices (b, p, p) of nearly largest value, and bounds (b,)."""

    matrices: FloatArray
    bounds: FloatArray


@numba.njit(cache=True)
def _sweep(weights, vectors, times):  # type: ignore[no-untyped-def]
    """Replace v_i by g_i / ||g_i|| in place, for one i after the other. Do this `times` times."""
    order, rank = vectors.shape
    pull = np.empty(rank)
    for _ in range(times):
        for i in range(order):
            pull[:] = 0.0
            for j in range(order):
                weight = weights[i, j]
                if weight != 0.0:
                    for k in range(rank):
                        pull[k] += weight * vectors[j, k]
            length = math.sqrt((pull * pull).sum())
            if length > 0.0:
                for k in range(rank):
                    vectors[i, k] = pull[k] / length


def _dual(weights: FloatArray, vectors: FloatArray) -> tuple[float, float]:
    """Value of V and an upper bound on the maximum, both for <C, R> without the factor 1/2."""
    multipliers = np.einsum("ik,ik->i", weights @ vectors, vectors)
    slack = float(np.linalg.eigvalsh(weights - np.diag(multipliers))[-1])
    value = float(multipliers.sum())
    return value, value + len(weights) * max(slack, 0.0)


def highest_correlation(weights: FloatArray) -> Highest:
    """Correlation matrices that maximise <C, R> / 2 for each C of `weights` (b, p, p), and bounds.

    The upper bounds hold up to rounding. They are at most a relative 1e-9 above the values, unless
    the limit of 200,000 sweeps is reached. A sweep costs O(p^2 sqrt(p)), the gap O(p^3). At p = 101
    most random C take 20 to 1000 sweeps, and some take tens of thousands.
    """
    count, order, _ = weights.shape
    rank = math.ceil(math.sqrt(2 * order)) + 1
    start = np.random.default_rng(PUBLIC_SEED).standard_normal((order, rank))
    start /= np.linalg.norm(start, axis=1, keepdims=True)
    matrices, bounds = np.empty(weights.shape), np.empty(count)
    for row, each in enumerate(weights):
        scale = float(np.abs(each).max(initial=0.0)) or 1.0
        scaled, vectors = np.ascontiguousarray(each / scale), start.copy()
        done, step = 0, FIRST_SWEEPS
        while True:
            _sweep(scaled, vectors, step)
            done += step
            value, bound = _dual(scaled, vectors)
            if bound - value <= GAP * bound or done >= MOST_SWEEPS:
                break
            step = min(done // 2 + FIRST_SWEEPS, MOST_SWEEPS - done)
        matrices[row], bounds[row] = vectors @ vectors.T, scale * bound / 2
        np.fill_diagonal(matrices[row], 1.0)
    return Highest(matrices, bounds)
