"""Lower bounds for few records, compared with the best mechanism, found by a linear program."""

from __future__ import annotations

import itertools
import math
from functools import cache

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linprog

from geomdp.advice.bracket import lower_bounds
from geomdp.bounds import RMS, MeanL2, Metric, Problem, WorstCase
from geomdp.workloads import Explicit, Workload

#: `BITS` are two bits, of which a record has at most one. `THRESHOLDS` are two nested queries.
BITS = Explicit(np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]))
THRESHOLDS = Explicit(np.array([[0.0, 1.0, 1.0], [0.0, 0.0, 1.0]]))
WORKLOADS = {"bits": BITS, "thresholds": THRESHOLDS}
METRICS: tuple[Metric, ...] = (MeanL2(), RMS(), WorstCase())


@cache
def least_error(workload: Workload, n: int, epsilon: float, metric: Metric) -> float:
    """The least error of an epsilon-DP mechanism with outputs on a grid, on its worst data set.

    The data sets are all multisets of n elements. Neighbours differ in one record. For each query,
    outputs are 1/4 apart for n = 1, and 1 / (2 n) apart for larger n. The unknowns are the
    probabilities of the outputs for each data set, and the error.
    """
    answers = workload.evaluate(workload.universe.elements())
    counts = [c for c in itertools.product(range(n + 1), repeat=len(answers)) if sum(c) == n]
    datasets = np.array(counts)
    grid = np.linspace(0.0, 1.0, (4 if n == 1 else 2) * n + 1)
    outputs = np.array(list(itertools.product(grid, repeat=answers.shape[1])))
    means = datasets @ answers / n
    losses = np.array([metric.norm(outputs - mean) for mean in means]) ** metric.moment
    cells = np.arange(losses.size).reshape(losses.shape)
    count, size = len(datasets), losses.size
    each = np.repeat(np.arange(count), len(outputs))
    errors = sparse.csr_array((losses.ravel(), (each, cells.ravel())), shape=(count, size + 1))
    errors += sparse.csr_array((-np.ones(count), (range(count), [size] * count)), errors.shape)
    rows = [errors]
    for i, j in itertools.permutations(range(count), 2):
        if np.abs(datasets[i] - datasets[j]).sum() == 2:
            line = np.arange(len(outputs))
            values = np.concatenate([np.ones(len(line)), np.full(len(line), -math.exp(epsilon))])
            where = (np.tile(line, 2), np.concatenate([cells[i], cells[j]]))
            rows.append(sparse.csr_array((values, where), shape=(len(line), size + 1)))
    ones = sparse.csr_array((np.ones(size), (each, cells.ravel())), shape=(count, size + 1))
    every, cost = sparse.vstack(rows), np.zeros(size + 1)
    cost[size] = 1
    right = np.zeros(every.shape[0])
    solved = linprog(cost, every, right, ones, np.ones(count), method="highs-ipm")
    assert solved.success
    return float(solved.fun) ** (1 / metric.moment)


@pytest.mark.parametrize("name", WORKLOADS)
@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_no_lower_bound_excludes_the_best_mechanism(
    name: str, metric: Metric, epsilon: float
) -> None:
    """n records are enough for the error of the best mechanism, so n must not be excluded.

    For half this error, the lower bounds exclude n records for some n. So bounds that are too large
    by a factor of 2 fail the test.
    """
    workload, noticed = WORKLOADS[name], False
    for n in (1, 2, 3, 4):
        best = least_error(workload, n, epsilon, metric)
        for factor in (1.0, 2.0):
            alpha = best * (1 + 1e-6) / factor
            found, _ = lower_bounds(workload, Problem(epsilon, alpha, metric), 0)
            if factor == 1.0:
                assert found[0].records < n, str(found[0])
            else:
                noticed |= found[0].records >= n
    assert noticed
