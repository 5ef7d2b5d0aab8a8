"""The least error of a private mechanism with finitely many outputs, by a linear program."""

import itertools
import math
from collections.abc import Sequence
from functools import cache

import numpy as np
from scipy import sparse
from scipy.optimize import linprog


def least_error(
    losses: np.ndarray,
    ratio: float,
    pairs: Sequence[tuple[int, int]] | None = None,
    *,
    delta: float = 0.0,
    method: str = "highs",
) -> float:
    """The least worst-case mean loss of a mechanism with Y outputs on M data sets.

    `losses` (M, Y) holds the loss of each output for each data set. For each of the `pairs` of data
    sets, by default all, a probability is at most `ratio` times the other one plus a slack, and the
    slacks of a pair add up to at most `delta`. The unknowns of the linear program are the
    probabilities, the slacks and the worst mean loss.
    """
    count, outputs = losses.shape
    first, second = np.array(pairs or list(itertools.permutations(range(count), 2))).T
    change = sparse.csr_array(np.eye(count)[first] - ratio * np.eye(count)[second])
    privacy = sparse.kron(change, sparse.identity(outputs))
    each = sparse.kron(sparse.identity(count), np.ones((1, outputs)))
    errors = sparse.block_diag([row[None] for row in losses])
    slacks = privacy.shape[0] if delta else 0
    used = -sparse.identity(slacks) if delta else sparse.csr_array((privacy.shape[0], 0))
    shares = sparse.kron(sparse.identity(len(first)), np.ones((1, slacks // len(first))))
    no_worst = sparse.csr_array((privacy.shape[0], 1))
    rows = sparse.block_array(
        [[privacy, used, no_worst], [None, shares, None], [errors, None, -np.ones((count, 1))]]
    )
    right = [np.zeros(privacy.shape[0]), np.full(len(first), delta), np.zeros(count)]
    sums = sparse.hstack([each, sparse.csr_array((count, slacks + 1))])
    cost = np.zeros(losses.size + slacks + 1)
    cost[-1] = 1
    solved = linprog(cost, rows, np.concatenate(right), sums, np.ones(count), method=method)
    assert solved.success
    return float(solved.fun)


@cache
def least_count_error(
    steps: int, epsilon: float, moment: int, spacing: float = 1.0, delta: float = 0.0
) -> float:
    """The least worst-case mean of |y - t|^`moment` for a private estimate y of t in {0, ..., T}.

    T is `steps`, and the outputs y are `spacing` apart.
    """
    outputs = np.arange(0, steps + spacing / 2, spacing)
    losses = np.abs(outputs - np.arange(steps + 1)[:, None]) ** moment
    ups = list(itertools.pairwise(range(steps + 1)))
    pairs = ups + [(after, before) for before, after in ups]
    return least_error(losses, math.exp(epsilon), pairs, delta=delta)
