"""Goals and claims of figures, on committed tables and on small tables with known numbers."""

import json
import math

import numpy as np
import pandas as pd
import pytest

import geomdp as gd
from experiments.benchmarks import accuracy_table, table_strategies
from experiments.benchmarks.accuracy_work import goals as accuracy_goals
from experiments.benchmarks.accuracy_work.predictions import (
    Lifted,
    geometric_error,
    joint_table_error,
)
from experiments.benchmarks.table_strategies import Simple
from experiments.catalogue import SCRIPTS
from experiments.engine.figures import Folders, read_table
from experiments.engine.script import HasGoals, Preset, load
from experiments.engine.statistics import pooled_by
from experiments.error import many_columns
from experiments.lower_bounds.bracket_problems import COUNT, random_question, random_workload
from experiments.shared.accuracy_lines import Method
from experiments.shared.workloads import Line

#: Figures with goals. The goal of the mutants changes with the catalogue, too.
WITH_GOALS = [
    name
    for name in SCRIPTS
    if isinstance(load(name).module, HasGoals) and not name.endswith("mutants")
]


@pytest.mark.parametrize("name", WITH_GOALS)
def test_goals_of_a_committed_figure_are_those_of_its_table(name):
    script = load(name)
    outputs = Folders().outputs(script.name, Preset.FULL)
    found = [goal.to_dict() for goal in script.module.goals(read_table(outputs))]
    assert json.loads(json.dumps(found)) == json.loads(outputs.record.read_text())["goals"]


def test_geometric_noise_has_the_error_of_its_probabilities():
    z = np.arange(-2000, 2001)
    for epsilon in (0.1, 1.0, 3.0):
        weights = np.exp(-epsilon * np.abs(z))
        variance = (weights * z**2).sum() / weights.sum()
        assert geometric_error(epsilon) ** 2 == pytest.approx(variance)


def test_lifted_elliptopes_and_joint_tables_have_the_errors_of_the_formula_sheet():
    # X-LIFT of the formula sheet states these errors for d columns, in counts at epsilon = 1.
    stated = {8: 30.6, 12: 86.8, 16: 188, 20: 346, 24: 575}
    for d, error in stated.items():
        assert Lifted(d, 3).error == pytest.approx(error, rel=3e-3)
        # A cell of a 3-way table is the sum of 2^(d - 3) joint cells, each with noise variance 8.
        joint = joint_table_error(gd.workloads.MarginalTables([2] * d, 3))
        assert joint == pytest.approx(math.sqrt(8 * 2 ** (d - 3)))


def predictions(lifted: float, advised: float) -> pd.DataFrame:
    methods = {Method.LIFTED: lifted, Method.ADVISED: advised, Method.HIERARCHICAL: 1.0}
    table = pd.DataFrame([*methods.items()], columns=["method", "predicted"])
    name = np.where(table.method == Method.ADVISED, "Projected(X)", "")
    return table.assign(line=Line.SIXTEEN, n=1, prediction="exact", releases=0, advised=name)


def test_advice_that_an_exact_mechanism_beats_fails_its_claim():
    for advised, passed in ((1.0, True), (1.019, True), (1.021, False)):
        (claim,) = accuracy_goals.advice_is_best(predictions(0.1, advised))
        assert claim.passed is passed
    assert [*accuracy_goals.advice_is_best(predictions(1, 1).iloc[:1])] == []


def test_a_fit_is_compared_by_measured_errors_alone():
    """The claim by exact predictions skips fits, because `advise` chooses them by simulation."""
    offered = predictions(0.1, 2.0)
    assert [*accuracy_goals.advice_is_best(offered.assign(advised="Fitted(X)"))] == []
    for own, passed in ((1.0, True), (1.03, True), (1.25, False)):
        errors = {Method.ADVISED: own, Method.FITTED_MATRIX: 1.0}
        (claim,) = accuracy_goals.advice_is_best_as_measured(measured(errors, Line.THREE_WAY, 200))
        assert claim.passed is passed
    assert [*accuracy_goals.advice_is_best_as_measured(offered)] == []


def measured(errors: dict[Method, float], line: Line, n: int) -> pd.DataFrame:
    """Measured errors with a standard error of 1%."""
    table = pd.DataFrame([*errors.items()], columns=["method", "predicted"])
    squares = table.predicted**2
    shown = {"predicted_stderr": 0.0, "prediction": "exact", "sampler": "exact"}
    name = np.where(table.method == Method.ADVISED, "Shrunk(X)", "")
    table = table.assign(mean_square=squares, mean_square_stderr=0.02 * squares, advised=name)
    return table.assign(line=line, n=n, releases=100, goal=1.0, excluded=0.0, **shown)


def test_a_tie_is_no_worse_than_the_best_other():
    for ours, passed in ((1.0, True), (1.04, True), (1.25, False)):
        errors = {Method.FITTED_HIERARCHICAL: ours, Method.FITTED_MATRIX: 1.0}
        means = pooled_by(measured(errors, Line.SIGNS, 100), ["method"])
        place = (Line.SIGNS, 100)
        claim = accuracy_table.no_worse(
            {place: means[Method.FITTED_HIERARCHICAL,]}, {place: means[Method.FITTED_MATRIX,]}
        )
        assert claim.passed is passed


@pytest.mark.parametrize(
    ("levels", "k"), [([2] * 6, 3), ([2, 3, 4], 2), ([2, 3, 2, 4], 1)], ids=repr
)
def test_simple_strategies_are_between_matrix_and_joint_table(levels, k):
    Q = gd.workloads.MarginalTables(levels, k)
    simple = Simple.of(Q)
    whole = simple.precisions([tuple(range(len(levels)))])
    found = math.sqrt(float((simple.costs / whole).sum()) / Q.n_queries)
    assert found <= joint_table_error(Q)
    matrix = gd.mechanisms.Matrix(Q, n=1, privacy=gd.PureDP(1.0)).predicted_rmse.value
    assert matrix <= found * (1 + 1e-12)


@pytest.mark.parametrize(("changed", "passed"), [
    ({}, True),
    ({"peak_gib": 8.1}, False),
    ({"noise": "0.5-zCDP, replace-one; seeded: no privacy claim"}, False),
])  # fmt: skip
def test_large_tables_fail_their_claim_beyond_a_limit(changed, passed):
    row = {"columns": 100, "levels": "2", "width": 3, "neighbours": "replace-one"}
    noise = "0.5-zCDP; noise correctly rounded to multiples of 2^-4"
    row |= {"answers": 1e6, "peak_gib": 0.3, "noise": noise}
    assert many_columns.is_practical(pd.Series(row | changed)).passed is passed


def test_the_claim_on_strategies_fails_above_a_simpler_one():
    row = {"levels": "2", "columns": 8, "width": 2, "identity": 2.0, "covering": 1.0, "orders": 3.0}
    for error, passed in ((0.9, True), (1.0, True), (1.001, False)):
        table = pd.DataFrame([{**row, "signs": math.nan, "matrix": error}])
        (claim,) = table_strategies.claims(table)
        assert claim.passed is passed


def test_random_workloads_are_the_same_in_every_run():
    for draw in range(1, COUNT + 1):
        first, again = random_workload(draw), random_workload(draw)
        assert repr(first) == repr(again)
        records = first.universe.sample(20, 0)
        np.testing.assert_array_equal(first.evaluate(records), again.evaluate(records))
        assert first.l2_diameter() > 0
    asked = {random_question(draw)[0] for draw in range(1, COUNT + 1)}
    assert asked == {0.02, 0.1, 0.3, 1.0, 3.0, 10.0}
