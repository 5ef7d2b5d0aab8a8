"""The best prior for a private estimate of t in {0, ..., T}, from a linear program.

The sum of the allowances nu is maximised over pi, nu and V with V_0(y) >= 0 and

    V_t(y) <= pi_t |y - t|^p - nu_t + e^(+-epsilon) V_{t+1}(y),   with both signs.

The dual program finds the estimate that reports one of the points y with the least p-th moment of
the error, in the worst case over t. As t -> T - t changes nothing, t and T - t share their
unknowns, and points y up to T / 2 are enough. The solution is no proof: `bayes_risk` corrects it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from geomdp._typing import FloatArray, IntArray

#: Largest number of steps T for which the program is solved. For T = 40 it takes half a second, for
#: T = 64 several seconds. For larger T, the program raises the bound by little.
LONGEST = 40
#: For p = 2, the spacing of the points y in [0, T / 2] gives about `CELLS` pairs (y, t), and is at
#: most `COARSEST`. A program then takes at most a second.
CELLS, COARSEST = 1500, 0.5


def best_prior(steps: int, epsilon: float, moment: int) -> tuple[FloatArray, FloatArray] | None:
    """The prior and the allowances (T + 1,) of the best bound; None if the solver fails."""
    from scipy.optimize import linprog

    points = _points(steps, moment)
    count, half = steps + 1, steps // 2 + 1
    pair = np.minimum(np.arange(count), steps - np.arange(count))
    members = np.bincount(pair)
    # The unknowns are the prior (half), the allowances (half), and V (points, T + 1).
    unknowns = 2 * half + len(points) * count
    costs = np.zeros(unknowns)
    costs[half : 2 * half] = -members
    total = np.zeros((1, unknowns))
    total[0, :half] = members
    lower = np.full(unknowns, -np.inf)
    lower[:half] = 0
    lower[2 * half :: count] = 0
    rows = _requirements(np.abs(points[:, None] - np.arange(count)) ** moment, pair, epsilon)
    solved = linprog(
        costs,
        A_ub=rows,
        b_ub=np.zeros(rows.shape[0]),
        A_eq=total,
        b_eq=[1.0],
        bounds=[(least, None) for least in lower.tolist()],
        method="highs-ds",
    )
    if not solved.success or solved.x is None:
        return None
    prior = np.maximum(solved.x[:half][pair], 0.0)
    return prior / prior.sum(), solved.x[half : 2 * half][pair]


def _points(steps: int, moment: int) -> FloatArray:
    """Points y from 0 to T / 2, or to the first point beyond T / 2."""
    if moment == 1:
        return np.arange(math.ceil(steps / 2) + 1, dtype=np.float64)
    spacing = min(COARSEST, steps / 2 * (steps + 1) / CELLS)
    return np.asarray(spacing * np.arange(math.ceil(steps / 2 / spacing) + 1))


def _requirements(losses: FloatArray, pair: IntArray, epsilon: float) -> Any:
    """Sparse matrix A with A x <= 0 for the unknowns x, from |y - t|^p (points, T + 1)."""
    from scipy import sparse

    # `pair` (T + 1,) holds min(t, T - t): the index of the unknowns that t and T - t share.
    size, half = losses.size, int(pair.max()) + 1
    cells = np.arange(size).reshape(losses.shape)
    columns = np.broadcast_to(pair, losses.shape)
    parts = []
    for side, factor in enumerate((math.exp(-epsilon), math.exp(epsilon))):
        rows = cells + side * size
        parts += [
            (rows, 2 * half + cells, np.ones(losses.shape)),
            (rows, columns, -losses),
            (rows, half + columns, np.ones(losses.shape)),
            (rows[:, :-1], 2 * half + cells[:, 1:], np.full(losses[:, 1:].shape, -factor)),
        ]
    row, column, value = (np.concatenate([part[i].ravel() for part in parts]) for i in range(3))
    return sparse.csr_array((value, (row, column)), shape=(2 * size, 2 * half + size))
