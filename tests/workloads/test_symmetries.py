"""Symmetries of workloads: orthogonal maps that permute the answer vectors."""

from __future__ import annotations

import numpy as np
import pytest

from geomdp.workloads import Histogram, Marginals, MarginalTables, Parities, explicit_answers
from geomdp.workloads.structure import random_symmetry

WORKLOADS = {
    "binary tables": MarginalTables([2, 2, 2, 2], 2),
    "mixed tables": MarginalTables([2, 3, 2, 3], 2),
    "three-way tables": MarginalTables([2, 3, 2, 2], 3),
    "marginals": Marginals(5, 2),
    "parities": Parities(5, 3),
}


@pytest.mark.parametrize("workload", WORKLOADS.values(), ids=WORKLOADS.keys())
def test_answer_vectors_are_permuted(workload):
    answers = explicit_answers(workload)
    symmetry, rng = random_symmetry(workload), np.random.default_rng(0)
    images = [symmetry(answers, rng) for _ in range(10)]
    for image in images:
        np.testing.assert_array_equal(np.unique(image, axis=0), np.unique(answers, axis=0))
    assert any(not np.array_equal(image, answers) for image in images)


@pytest.mark.parametrize("workload", WORKLOADS.values(), ids=WORKLOADS.keys())
def test_maps_are_orthogonal_and_random(workload):
    symmetry, rng = random_symmetry(workload), np.random.default_rng(1)
    first, second = (symmetry(np.eye(workload.n_queries), rng) for _ in range(2))
    np.testing.assert_array_equal(first @ first.T, np.eye(workload.n_queries))
    assert not np.array_equal(first, second)


def test_columns_and_levels_both_move():
    """Random symmetries move the first cell to each of the 24 cells of the tables."""
    symmetry = random_symmetry(WORKLOADS["binary tables"])
    rng = np.random.default_rng(2)
    cell = np.eye(WORKLOADS["binary tables"].n_queries)[:1]
    places = {int(symmetry(cell, rng).argmax()) for _ in range(400)}
    # 400 draws miss some of the 24 cells with probability at most 24 (23/24)^400 < 1e-6.
    assert places == set(range(24))


def test_no_symmetry_is_known_of_the_others():
    assert random_symmetry(Histogram(4)) is None
