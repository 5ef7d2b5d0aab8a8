"""Tables of categorical columns, all or chosen: cells, extreme answers, interaction blocks."""

from __future__ import annotations

import math
from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geomdp.mechanisms import Laplace
from geomdp.privacy import PureDP
from geomdp.workloads import ChosenTables, MarginalTables, Parities, explicit_answers

COLUMNS = {"a": 2, "b": 3, "c": 4}
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
    assert workload.columns == {"age": 3, "sex": 2}


def test_limits():
    many = MarginalTables([2] * 25, 2)
    with pytest.raises(ValueError, match=r"at most 2\^24 level combinations"):
        many.extreme_answers(np.zeros((1, many.n_queries)))
    assert many.affine_hull().dimension == 25 + 300
    with pytest.raises(ValueError, match=r"at most 2\^26 for a basis, got 43500 times 35505"):
        MarginalTables([10] * 30, 2).blocks()


def test_all_tables_of_one_order_are_marginal_tables():
    chosen = ChosenTables(COLUMNS, [["a", "b"], ["c", "a"], ["b", "c"]])
    known = MarginalTables(COLUMNS, 2)
    records = known.universe.sample(200, rng=0)
    np.testing.assert_array_equal(chosen.answers(records), known.answers(records))
    assert chosen.labels() == known.labels()
    for mine, theirs in zip(chosen.blocks(), known.blocks(), strict=True):
        np.testing.assert_allclose(np.abs(mine.basis), np.abs(theirs.basis), atol=1e-12)
        assert (mine.diameter, mine.radius) == pytest.approx((theirs.diameter, theirs.radius))


def test_weights_multiply_answers():
    chosen = ChosenTables(COLUMNS, [["a"], ["b", "c"]], [1.0, 3.0])
    records = chosen.universe.sample(100, rng=1)
    plain = ChosenTables(COLUMNS, [["a"], ["b", "c"]])
    np.testing.assert_allclose(chosen.answers(records) / chosen.weights, plain.answers(records))
    assert chosen.whole_answers
    assert not ChosenTables(COLUMNS, [["a"]], [0.5]).whole_answers


def test_a_larger_weight_makes_a_table_more_accurate():
    def error_of_first(weight: float) -> float:
        chosen = ChosenTables(COLUMNS, [["a"], ["b", "c"]], [weight, 1.0])
        noise = Laplace(chosen, n=100, privacy=PureDP(1.0)).noise
        return float(np.sqrt(noise.variances()[0]) / weight)

    assert error_of_first(4.0) < error_of_first(1.0)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: MarginalTables({}, 1), "at least 1 column"),
        (lambda: MarginalTables({"a": 2}, 2), "k must be .* at most 1, got 2"),
        (lambda: Parities(3, 4), "k must be .* at most 3, got 4"),
        (lambda: MarginalTables({"a": 1.5}, 1), "number of levels of 'a'"),
        (lambda: ChosenTables(COLUMNS, []), "at least 1 table, got 0"),
        (lambda: ChosenTables(COLUMNS, [["a"], ["a"]]), r"the table \['a'\] occurs more"),
        (lambda: ChosenTables(COLUMNS, [["a", "b"], ["b", "a"]]), "tables must differ"),
        (lambda: ChosenTables(COLUMNS, [["a", "z"]]), "among a, b, c; got 'z'"),
        (lambda: ChosenTables(COLUMNS, [["a", "a"]]), "must not name a column twice"),
        (lambda: ChosenTables(COLUMNS, ["ab"]), "must be a list"),
        (lambda: ChosenTables(COLUMNS, [["a"]], [1, 2]), "1 entries, one per table, got 2"),
        (lambda: ChosenTables(COLUMNS, [["a"]], [0]), "weights must be a finite number above 0"),
    ],
)
def test_refusals(build, message):
    with pytest.raises(ValueError, match=message):
        build()
