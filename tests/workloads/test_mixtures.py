"""Chosen tables: their answers, their weights, and the arguments that they refuse."""

from __future__ import annotations

import math

import numpy as np
import pytest

import geomdp as gd
from geomdp.workloads import ChosenTables, MarginalTables

COLUMNS = {"a": 2, "b": 3, "c": 4}


def test_all_tables_of_one_order_are_marginal_tables():
    chosen = ChosenTables(COLUMNS, [["a", "b"], ["c", "a"], ["b", "c"]])
    known = MarginalTables(COLUMNS, 2)
    records = known.universe.sample(200, rng=0)
    np.testing.assert_array_equal(chosen.answers(records), known.answers(records))
    assert chosen.labels() == known.labels()
    assert chosen.l1_diameter() == known.l1_diameter()
    for mine, theirs in zip(chosen.blocks(), known.blocks(), strict=True):
        np.testing.assert_allclose(np.abs(mine.basis), np.abs(theirs.basis), atol=1e-12)
        assert (mine.diameter, mine.radius) == pytest.approx((theirs.diameter, theirs.radius))


def test_weights_multiply_answers_and_diameters():
    chosen = ChosenTables(COLUMNS, [["a"], ["b", "c"]], [1.0, 3.0])
    records = chosen.universe.sample(100, rng=1)
    plain = ChosenTables(COLUMNS, [["a"], ["b", "c"]])
    np.testing.assert_allclose(chosen.answers(records) / chosen.weights, plain.answers(records))
    assert chosen.l1_diameter() == 2 * (1 + 3)
    assert chosen.l2_diameter() == pytest.approx(math.sqrt(2 * (1 + 9)))
    assert chosen.whole_answers
    assert not ChosenTables(COLUMNS, [["a"]], [0.5]).whole_answers


def test_a_larger_weight_makes_a_table_more_accurate():
    def error_of_first(weight: float) -> float:
        chosen = ChosenTables(COLUMNS, [["a"], ["b", "c"]], [weight, 1.0])
        noise = gd.mechanisms.Laplace(chosen, n=100, privacy=gd.PureDP(1.0)).noise
        return float(np.sqrt(noise.variances()[0]) / weight)

    assert error_of_first(4.0) < error_of_first(1.0)


@pytest.mark.parametrize(
    ("build", "message"),
    [
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
def test_what_is_refused(build, message):
    with pytest.raises(ValueError, match=message):
        build()
