"""Marginal tables with any numbers of levels: cells, extreme answers and interaction blocks."""

from __future__ import annotations

import math
from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geomdp.workloads import MarginalTables, Parities, explicit_answers

levels_and_k = st.lists(st.integers(1, 4), min_size=1, max_size=4).flatmap(
    lambda levels: st.tuples(st.just(levels), st.integers(1, len(levels)))
)


@given(levels_and_k)
def test_cells_are_counts(case):
    levels, k = case
    workload = MarginalTables(levels, k)
    records = workload.universe.sample(20, rng=1)
    expected = [
        sum(tuple(x[list(table)]) == cell for x in records)
        for table in combinations(range(len(levels)), k)
        for cell in product(*(range(levels[i]) for i in table))
    ]
    totals = workload.totals(records)
    assert totals.count == 20
    np.testing.assert_array_equal(totals.sums, expected)
    np.testing.assert_array_equal(workload.evaluate(records).sum(axis=0), expected)


@given(levels_and_k, st.integers(0, 5))
def test_extreme_answers(case, seed):
    workload = MarginalTables(*case)
    directions = np.random.default_rng(seed).integers(-2, 3, (4, workload.n_queries)).astype(float)
    answers = explicit_answers(workload)
    best = answers[(directions @ answers.T).argmax(axis=1)]
    np.testing.assert_array_equal(workload.extreme_answers(directions), best)


@given(levels_and_k)
def test_blocks(case):
    workload = MarginalTables(*case)
    answers = explicit_answers(workload)
    blocks = workload.blocks()
    centred = answers - workload.affine_hull().offset
    # The parts of the centred answers in the blocks add up to the centred answers.
    parts = [centred @ block.basis @ block.basis.T for block in blocks]
    np.testing.assert_allclose(sum(parts, np.zeros_like(centred)), centred, rtol=0, atol=1e-13)
    # In a block, all answers have the norm `radius`, and two answers have the distance `diameter`.
    for block in blocks:
        seen = answers @ block.basis
        np.testing.assert_allclose(np.linalg.norm(seen, axis=1), block.radius, rtol=1e-12)
        reach = np.linalg.norm(seen[:, None] - seen, axis=2).max()
        assert block.diameter == pytest.approx(reach, rel=1e-12)


def test_binary_blocks_are_the_parity_basis():
    workload = MarginalTables([2] * 5, 2)
    answers = explicit_answers(workload)
    parities = np.hstack([explicit_answers(Parities(5, order)) for order in (1, 2)])
    blocks = workload.blocks()
    assert [block.basis.shape[1] for block in blocks] == [1] * 15
    for block, parity in zip(blocks, parities.T, strict=True):
        seen = answers @ block.basis[:, 0]
        np.testing.assert_allclose(seen, block.diameter / 2 * parity, rtol=0, atol=1e-14)


def test_error_of_the_parity_box():
    # For all 2-way tables of 10 binary attributes, replace-one, epsilon = 1 and n = 5000, the box
    # [-2, 2]^55 in the parity basis gives the cell error 0.00565 (formula sheet X-OUT).
    blocks = MarginalTables([2] * 10, 2).blocks()
    r = len(blocks)
    assert r == 55
    # K-norm noise of a box with half-widths h_i has E Z_i^2 = E R^2 h_i^2 / 3, R ~ Gamma(r + 1).
    squares = sum(block.diameter**2 for block in blocks) / 3 * (r + 1) * (r + 2) / 5000**2
    assert math.sqrt(squares / 180) == pytest.approx(0.00565, abs=5e-6)


def test_answers_of_a_frame():
    frame = pd.DataFrame({"sex": [0, 1, 1], "note": list("abc"), "age": [2, 0, 2]})
    workload = MarginalTables({"age": 3, "sex": 2}, 2)
    np.testing.assert_allclose(workload.answers(frame), [0, 1 / 3, 0, 0, 1 / 3, 1 / 3])
    assert workload.labels()[:3] == ["age=0,sex=0", "age=0,sex=1", "age=1,sex=0"]
    assert repr(workload) == "MarginalTables(2 columns, k=2; 6 queries)"
    assert workload.columns == {"age": 3, "sex": 2}


def test_limits():
    many = MarginalTables([2] * 25, 2)
    with pytest.raises(ValueError, match=r"at most 2\^24 level combinations"):
        many.extreme_answers(np.zeros((1, many.n_queries)))
    assert many.affine_hull().dimension == 25 + 300
    with pytest.raises(ValueError, match=r"at most 2\^26 for a basis, got 43500 times 35505"):
        MarginalTables([10] * 30, 2).blocks()


@pytest.mark.parametrize(
    ("columns", "k", "message"),
    [
        ({}, 1, "at least 1 column"),
        ({"a": 2}, 2, "k must be .* at most 1, got 2"),
        ({"a": 2}, 0, "k must"),
        ({"a": 1.5}, 1, "number of levels of 'a'"),
    ],
)
def test_bad_parameters(columns, k, message):
    with pytest.raises(ValueError, match=message):
        MarginalTables(columns, k)
