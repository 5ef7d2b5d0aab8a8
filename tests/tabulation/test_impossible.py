"""Tables with impossible cells: their sensitivity, their noise and what is made of them."""

import itertools

import numpy as np
import pandas as pd
import pytest

import geomdp as gd
from geomdp.advice.candidates import jl
from geomdp.advice.setting import Setting
from geomdp.data.schema import places_of
from geomdp.mechanisms.additive_noise.base import additive_within
from geomdp.tabulation.consistency import LocalPolytope
from geomdp.tabulation.tasks import task_of
from tests.data.test_possible import PLAIN, SCHEMA, allowed, frame, spoilt

PURE, RHO = gd.PureDP(1.0), gd.ZCDP(0.5)
ADD, REPLACE = gd.Adjacency.ADD_REMOVE, gd.Adjacency.REPLACE_ONE
#: A question that keeps several others from being asked: joining all of them does not pay.
GATED = gd.data.Schema.from_dict(
    {"visited": bool, **{f"q{i}": ["none", "a", "b", "c"] for i in range(4)}, "sex": bool}
).declare(
    impossible=[
        *({"visited": ["false"], f"q{i}": ["a", "b", "c"]} for i in range(4)),
        *({"visited": ["true"], f"q{i}": ["none"]} for i in range(4)),
    ]
)
QUESTIONS = {
    "singles": ["marginals:1"],
    "pairs": ["marginals:2"],
    "triples": ["marginals:3"],
    "joint": ["histogram"],
    "chosen": ["marginals:1", ("region", "age"), ("county", "age"), ("smoker", "daily", "county")],
}


def every_record():
    """All possible records as labels, by the words of the declarations alone."""
    combinations = itertools.product(*SCHEMA.labels.values())
    return [dict(zip(SCHEMA.names, c, strict=True)) for c in combinations
            if allowed(SCHEMA.names, c)]  # fmt: skip


def as_asked(task, record):
    """The answers (m,) of a record to the queries of a task, from the labels of cells."""
    cells = (
        float(all(record[n] == level for n, level in zip(table.columns, cell, strict=True)))
        for table in task.tables
        for cell in itertools.product(*table.levels)
    )
    return np.fromiter(cells, float) * (1.0 if task.weights is None else task.weights)


def as_measured(task, record):
    codes = [
        column.numbers([np.array([SCHEMA.labels[n].index(record[n])]) for n in column.names])[0]
        for column in (task.possible.measured.columns[n] for n in task.workload.universe.names)
    ]
    return task.workload.evaluate(np.array([codes]))[0]


@pytest.mark.parametrize("asked", QUESTIONS.values(), ids=QUESTIONS)
@pytest.mark.parametrize("weights", [None, "unequal"])
def test_the_measured_tables_determine_the_possible_cells(asked, weights):
    given = None if weights is None else [float(i + 1) for i in range(len(asked))]
    task = task_of(SCHEMA, asked, weights=given)
    hit = np.zeros(len(task.labels), dtype=bool)
    for record in every_record():
        expected = as_asked(task, record)
        hit |= expected > 0
        found = task.possible.measured.matrix @ as_measured(task, record)
        np.testing.assert_allclose(task.possible.spread(found), expected, rtol=1e-15)
    assert (hit == task.possible.live).all()


@pytest.mark.parametrize("asked", QUESTIONS.values(), ids=QUESTIONS)
def test_sensitivities_are_those_of_possible_records(asked):
    """Over all pairs of possible records, and lower than over all pairs of combinations."""
    task = task_of(SCHEMA, asked)
    rows = np.array([as_measured(task, record) for record in every_record()])
    assert len(np.unique(rows, axis=0)) == task.workload.universe.size == len(rows)
    apart = rows[:, None] - rows[None]
    assert task.workload.l1_diameter() == np.abs(apart).sum(axis=2).max()
    assert task.workload.l2_diameter() == pytest.approx(np.linalg.norm(apart, axis=2).max())
    assert task.workload.n_queries <= task.possible.live.sum() < len(task.labels) or "1" in asked[0]
    plain = task_of(PLAIN, asked).workload
    if asked != ["histogram"]:
        assert task.workload.l1_diameter() < plain.l1_diameter()


def test_each_table_is_summed_from_the_smallest_that_has_its_columns():
    task = task_of(SCHEMA, QUESTIONS["pairs"])
    measured, sizes = task.possible.measured, task.workload.table_sizes
    inside = [{n for j in t.columns for n in measured.columns[j].names} for t in measured.tables]
    used = task.possible.spread(np.diff(measured.matrix.indptr).astype(float))
    for table, place in zip(task.tables, places_of(task.tables), strict=True):
        assert used[place].sum() == min(
            size for size, names in zip(sizes, inside, strict=True) if {*table.columns} <= names
        )


@pytest.mark.parametrize("adjacency", [REPLACE, ADD])
@pytest.mark.parametrize("privacy", [PURE, RHO])
@pytest.mark.parametrize(
    "asked", [QUESTIONS["pairs"], QUESTIONS["chosen"]], ids=["pairs", "chosen"]
)
@pytest.mark.parametrize("form", ["", "projected", "unbiased", "integers"])
def test_impossible_cells_are_0_and_refined_tables_agree(adjacency, privacy, asked, form):
    records = frame(np.random.default_rng(4), 300)
    kind = gd.mechanisms.Laplace if privacy is PURE else gd.mechanisms.ResidualGaussian
    given = {"privacy": privacy, "n": 300, "adjacency": adjacency, "mechanism": kind, "rng": 0}
    found = gd.release(records, SCHEMA, asked, **given, **{form: True} if form else {})
    live = found.task.possible.live
    for values in (found.answers, found.unbiased, found.noise_std, *found.interval()):
        assert values.shape == live.shape
        assert (values[~live] == 0).all()
    assert (found.noise_std[live] > 0).all()
    assert "impossible cells are 0" in found.statement
    counties, regions = (found.tables[name, "age"] for name in ("county", "region"))
    sums = [counties.loc[["A", "B"]].sum(), counties.loc["C"]]
    slack = 1e-15 if form == "integers" else 2e-9
    np.testing.assert_allclose(np.array(sums), regions, atol=slack)
    if form != "unbiased":
        assert (found.answers >= 0).all()


def test_synthetic_records_are_possible():
    records = frame(np.random.default_rng(4), 2000)
    found = gd.release(records, SCHEMA, "marginals:2", epsilon=0.3, rng=0, synthetic=True)
    drawn = found.synthetic(5000, rng=1)
    assert list(drawn.columns) == list(SCHEMA.names)
    assert len(drawn) == 5000
    assert all(allowed(SCHEMA.names, row) for row in drawn.itertuples(index=False))


@pytest.mark.parametrize("kind", [gd.mechanisms.Laplace, gd.mechanisms.Cone])
@pytest.mark.parametrize("asked", [QUESTIONS["pairs"], QUESTIONS["joint"]], ids=["pairs", "joint"])
def test_predictions_are_the_error_of_the_possible_cells(kind, asked):
    """By the variance of sums of cells; for Laplace noise each cell has 2 b^2."""
    task = task_of(SCHEMA, asked)
    try:
        mechanism = kind(task.workload, n=50, privacy=PURE)
    except ValueError:
        pytest.skip("no cone is known for this workload")
    prediction, noise = task.predicted(mechanism), task.possible.noise(mechanism)
    matrix = task.possible.measured.matrix.toarray()
    covariance = matrix @ mechanism.noise.covariance() @ matrix.T
    expected = np.sqrt(np.diag(covariance)) / 50
    np.testing.assert_allclose(noise.deviations, expected, rtol=1e-9)
    # The bound on estimates by simulation is for 1024 draws or more.
    close = 1e-9 if prediction.stderr == 0 else 5 * prediction.stderr / prediction.value + 0.02
    assert prediction.value == pytest.approx(np.sqrt(np.mean(expected**2)), rel=close)
    if kind is gd.mechanisms.Laplace:
        cells = (matrix**2).sum(axis=1).mean()
        assert prediction.value == pytest.approx(np.sqrt(2 * cells) * mechanism.noise.scale / 50)


def test_large_noise_is_predicted_from_draws(monkeypatch):
    task = task_of(SCHEMA, ["marginals:2"])
    mechanism = gd.mechanisms.Laplace(task.workload, n=50, privacy=PURE)
    exact = task.predicted(mechanism)
    monkeypatch.setattr("geomdp.tabulation.possible.MAX_COVARIANCE", 1)
    drawn = task.predicted(mechanism.with_n(50))  # another object, whose noise is not known yet
    assert exact.stderr == 0 < drawn.stderr < 0.05 * exact.value
    assert abs(drawn.value - exact.value) < 5 * drawn.stderr
    assert "1024 public draws" in drawn.source


def test_a_question_that_skips_many_costs_nothing():
    """Columns are joined only where this has no more degrees of freedom."""
    task = task_of(GATED, ["marginals:2"])
    assert [len(c.names) for c in task.possible.measured.columns.values()] == [2, 1, 1, 1, 1]
    (gate, *_) = task.possible.model.columns.values()
    assert len(gate.codes) == 1 + 3**4
    rng = np.random.default_rng(0)
    visited, sex = rng.integers(0, 2, (2, 200)) > 0
    answers = {f"q{i}": np.where(visited, rng.choice(list("abc"), 200), "none") for i in range(4)}
    records = pd.DataFrame({"visited": visited, **answers, "sex": sex})
    asked = {"epsilon": 1.0, "rng": 0, "mechanism": gd.mechanisms.Laplace}
    for projected in (False, True):
        found = gd.release(records, GATED, "marginals:2", projected=projected, **asked)
        assert found.tables["q0", "q1"].loc["none", "a":].to_list() == [0, 0, 0]
        assert found.tables["visited", "q1"].loc["true", "none"] == 0
        alone = found.tables["q0", "q1"].loc["none", "none"]
        assert alone == pytest.approx(found.tables["visited", "q2"].loc["false", "none"])


@pytest.mark.parametrize("adjacency", [REPLACE, ADD])
@pytest.mark.parametrize(
    "asked", [QUESTIONS["pairs"], QUESTIONS["chosen"]], ids=["pairs", "chosen"]
)
def test_the_projection_is_the_nearest_point(adjacency, asked):
    """<y - p, Q(x) - p> <= 0 for the answers of every possible record, in the polytope or cone."""
    task = task_of(SCHEMA, asked, weights=[float(i + 1) for i in range(len(asked))])
    polytope = LocalPolytope(task.tables, task.table_weights, adjacency, task.possible)
    vertices = np.array([as_asked(task, r)[task.possible.live] for r in every_record()])
    hull = np.linalg.matrix_rank(vertices - (vertices[0] if adjacency is REPLACE else 0))
    assert polytope.dimension == hull
    noise = np.random.default_rng(0).laplace(0, 0.05, vertices.shape[1])
    noisy = vertices[:20].mean(axis=0) + noise
    point = polytope.nearest(noisy).answers
    assert (point >= 0).all()
    assert ((vertices - point) @ (noisy - point)).max() < 1e-9


def test_a_projection_without_a_hull_is_that_of_the_measured_tables(monkeypatch):
    monkeypatch.setattr("geomdp.tabulation.consistency.MAX_LISTED", 1)
    records = frame(np.random.default_rng(4), 300)
    found = gd.release(records, SCHEMA, "marginals:2", epsilon=1.0, rng=0, projected=True)
    live = found.task.possible.live
    assert (found.answers[~live] == 0).all()
    assert (found.answers >= 0).all()
    assert "tables may disagree" in found.statement


def test_a_mechanism_without_additive_noise_has_a_bound():
    task = task_of(SCHEMA, ["marginals:1"])
    inner = gd.mechanisms.Projected(gd.mechanisms.Laplace(task.workload, n=50, privacy=PURE))
    coarse = gd.mechanisms.Coarse(inner, radius=0.3)
    assert additive_within(coarse) is None
    prediction = task.predicted(coarse)
    norm = np.linalg.norm(task.possible.measured.matrix.toarray(), 2)
    inside = coarse.predicted_rmse.value * np.sqrt(task.workload.n_queries)
    least = norm * inside / np.sqrt(task.possible.live.sum())
    assert least <= prediction.value * (1 + 1e-12)
    assert prediction.kind is gd.mechanisms.PredictionKind.UPPER_BOUND


@pytest.mark.parametrize("spec", ["tables:age[prefixes]*county", "prefixes:age", "ranges:age"])
def test_other_workloads_are_answered_as_without_declarations(spec):
    records = frame(np.random.default_rng(4), 50)
    asked = {"epsilon": 1e6, "rng": 0, "mechanism": gd.mechanisms.Laplace, "unbiased": True}
    found, plain = (gd.release(records, schema, spec, **asked) for schema in (SCHEMA, PLAIN))
    assert found.answers.tolist() == plain.answers.tolist()


def test_every_kind_of_mechanism_answers_after_it_was_paid():
    """Noisy answers of a random map are to other queries than the measured cells."""
    records = frame(np.random.default_rng(4), 50)

    def built(workload, *, n, privacy, adjacency):
        return jl(Setting(workload, n, privacy, adjacency, exact_only=True))

    with gd.Ledger(PURE) as ledger:
        found = gd.release(
            records, SCHEMA, "marginals:2", privacy=PURE, mechanism=built, ledger=ledger
        )
        assert len(ledger.spends()) == 1
    assert (found.answers[~found.task.possible.live] == 0).all()


def test_joined_columns_need_names_of_their_own():
    labels = {"a": ["n", "s"], "b": ["1", "2", "3"], "a x b": ["u", "v"]}
    schema = gd.data.Schema.from_dict(labels)
    schema = schema.declare(refines={"b": {"a": {"n": ["1", "2"], "s": ["3"]}}})
    records = pd.DataFrame({"a": ["n"], "b": ["1"], "a x b": ["u"]})
    with pytest.raises(ValueError, match="must not be named like others joined by ' x '"):
        gd.release(records, schema, "marginals:1", epsilon=1.0)


def test_tables_of_chains_of_columns_have_a_largest_size():
    names = [f"c{i}" for i in range(8)]
    schema = gd.data.Schema.from_dict({name: [f"v{i}" for i in range(16)] for name in names})
    chains = [(0, 1), (1, 2), (2, 3), (4, 5), (5, 6), (6, 7)]
    chained = schema.declare(impossible=[{names[i]: ["v0"], names[j]: ["v0"]} for i, j in chains])
    with pytest.raises(ValueError, match=r"at most 2\^22 possible cells together, got \d+"):
        task_of(chained, ["marginals:2"])


def test_tables_beside_means_do_not_use_declarations_but_refuse_impossible_records():
    asked = ["tables:age[prefixes]*smoker", ("smoker", "daily")]
    with (
        pytest.warns(UserWarning, match="declares impossible is not used here"),
        pytest.raises(ValueError, match="row 3, column 'smoker x daily' is not"),
    ):
        gd.release(spoilt(np.random.default_rng(2)), SCHEMA, asked, epsilon=1.0)
