"""Default answers are consistent, unbiased answers are not changed, and whole counts add up."""

import itertools

import numpy as np
import pandas as pd
import pytest
import scipy.optimize

import geomdp as gd
from geomdp.mechanisms import JL, Laplace, Projected
from geomdp.mechanisms.base import answer_hull
from geomdp.privacy import Adjacency
from geomdp.tabulation import consistency
from geomdp.tabulation.consistency import MAX_ELEMENTS, Form, LocalPolytope, fits, whole_counts
from geomdp.tabulation.tasks import task_of
from geomdp.workloads import ChosenTables, MarginalTables
from tests.projection_gaps import recorded_gaps
from tests.tabulation.cases import LEVELS, SCHEMA, N, frame_of, tables_of

FEW = {"epsilon": 0.2, "mechanism": Laplace, "rng": 1}  # the noise is far larger than one record


@pytest.fixture(scope="module")
def frame():
    return frame_of(1)


def margins_agree(result):
    tables = result.tables
    by_first = tables[("region", "smoker")].sum(axis=1)
    return np.allclose(by_first, tables[("region", "retired")].sum(axis=1), atol=1e-9)


def test_default_answers_are_consistent_and_unbiased_ones_are_not(frame):
    noisy = gd.release(frame, SCHEMA, "marginals:2", unbiased=True, **FEW)
    assert noisy.form is Form.NOISY
    assert noisy.answers.min() < 0
    assert not margins_agree(noisy)
    np.testing.assert_array_equal(noisy.answers, noisy.released.noisy)
    consistent = gd.release(frame, SCHEMA, "marginals:2", **FEW)
    assert consistent.form is Form.FITTED
    assert "consistent" in repr(consistent)
    assert consistent.answers.min() >= 0
    assert margins_agree(consistent)
    # Both releases have the same noise, and all intervals are centred at the noisy answers.
    np.testing.assert_array_equal(consistent.released.noisy, noisy.answers)
    for mine, theirs in zip(consistent.interval(), noisy.interval(), strict=True):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.filterwarnings("ignore:the categories of")
def test_the_prediction_allows_for_the_gap_at_which_the_projection_stops(frame, monkeypatch):
    """For tiny noise, the gap does not shrink with the noise, because rounding limits it."""
    gaps = recorded_gaps(monkeypatch)
    asked = {"epsilon": 1e7, "mechanism": Laplace, "rng": 1}
    noise = gd.release(frame, SCHEMA, "prefixes:region", unbiased=True, **asked)
    moved = gd.release(frame, SCHEMA, "prefixes:region", **asked)
    (gap,) = gaps
    squares = [result.predicted_rmse.value**2 * len(result.answers) for result in (noise, moved)]
    assert squares[1] >= (squares[0] + 2 * gap) * (1 - 1e-12)


def many_columns():
    """Records, schema and tables for 2^22 combinations of levels, more than `MAX_ELEMENTS`."""
    columns = {f"c{i}": ["a", "b", "c", "d"] for i in range(11)}
    assert MAX_ELEMENTS < 4**11
    frame = pd.DataFrame({name: ["a", "b"] * 10 for name in columns})
    asked = [("c0", "c1"), ("c1", "c2"), *[(f"c{i}",) for i in range(3, 11)]]
    return frame, gd.data.Schema.from_dict(columns), asked


def test_tables_of_many_columns_agree_unless_they_have_too_many_cells(monkeypatch):
    frame, schema, asked = many_columns()
    agree = gd.release(frame, schema, asked, projected=True, **FEW)
    shared = [agree.tables[("c0", "c1")].sum(axis=0), agree.tables[("c1", "c2")].sum(axis=1)]
    np.testing.assert_allclose(*shared, atol=1e-12)
    # Tables without common columns cannot disagree, so this holds for any number of tables.
    alone = gd.release(frame, schema, "marginals:1", projected=True, **FEW)
    monkeypatch.setattr(consistency, "MAX_BASIS_ENTRIES", 100)
    each = gd.release(frame, schema, asked, projected=True, **FEW)
    forms = [result.form for result in (agree, alone, each)]
    assert forms == [Form.CONSISTENT, Form.CONSISTENT, Form.EACH_TABLE]
    for result in (agree, each):
        assert result.answers.min() >= 0
        for table in result.tables.values():
            assert table.to_numpy().sum() == pytest.approx(1)


@pytest.mark.parametrize(("projected", "form"), [(True, Form.CONSISTENT), (False, Form.FITTED)])
def test_weighted_tables_agree(frame, projected, form):
    asked = [("region", "smoker"), ("smoker", "retired"), ("region",)]
    asking = FEW | {"weights": [1.0, 3.0, 0.5], "projected": projected, "epsilon": 1.0}
    result = gd.release(frame, SCHEMA, asked, **asking)
    assert result.form is form
    both, others, regions = (result.tables[names] for names in asked)
    np.testing.assert_allclose(both.sum(axis=1), regions, atol=1e-12)
    np.testing.assert_allclose(both.sum(axis=0), others.sum(axis=1), atol=1e-12)


def test_under_add_remove_totals_are_not_forced(frame):
    asked = FEW | {"epsilon": 50.0, "n": 2 * N, "adjacency": gd.Adjacency.ADD_REMOVE}
    result = gd.release(frame, SCHEMA, "marginals:1", **asked)
    assert result.form is Form.NON_NEGATIVE
    assert result.answers.min() >= 0
    assert result.tables[("region",)].sum() == pytest.approx(0.5, abs=0.05)


@pytest.mark.filterwarnings("ignore:the categories of")
def test_other_mechanisms_say_what_holds(frame):
    projected = {"mechanism": lambda *a, **k: Projected(Laplace(*a, **k))}
    own = gd.release(frame, SCHEMA, "marginals:2", projected=True, **FEW | projected)
    assert own.form is Form.CONSISTENT
    prefixes = gd.release(frame, SCHEMA, "prefixes:region", **FEW)
    assert prefixes.form is Form.ATTAINABLE
    assert (np.diff(prefixes.answers) >= -1e-9).all()
    mapped = {"mechanism": lambda *a, **k: JL(Laplace(*a, **k), 1, rng=0)}
    assert gd.release(frame, SCHEMA, "prefixes:region", **FEW | mapped).form is Form.OWN
    tables = gd.release(frame, SCHEMA, "marginals:2", **FEW | mapped)
    assert tables.form is Form.CONSISTENT
    assert tables.answers.min() >= 0
    assert margins_agree(tables)
    with pytest.raises(ValueError, match="unbiased answers and intervals need a mechanism"):
        gd.release(frame, SCHEMA, "marginals:1", unbiased=True, **FEW | mapped)


def test_whole_counts_add_up(frame):
    few = FEW | {"projected": True}
    result = gd.release(frame, SCHEMA, "marginals:2", integers=True, **few)
    tidy = result.to_frame()
    assert tidy["count"].dtype == np.int64
    assert (tidy["count"] >= 0).all()
    assert (tidy.groupby("table")["count"].sum() == N).all()
    np.testing.assert_allclose(tidy.answer * N, tidy["count"])
    plain = gd.release(frame, SCHEMA, "marginals:2", **few).to_frame()
    assert (abs(plain["count"] - tidy["count"]) < 1).all()
    assert f"each table adds up to {N}" in result.statement
    assert "where they share columns" in result.statement
    alone = gd.release(frame, SCHEMA, "histogram", integers=True, **few)
    assert "share" not in alone.statement
    noisy = gd.release(frame, SCHEMA, "marginals:2", integers=True, unbiased=True, **FEW)
    assert noisy.to_frame()["count"].min() < 0
    assert "each rounded by itself" in noisy.statement


def test_largest_remainders_are_rounded_up():
    task = task_of(SCHEMA, ["histogram"], columns=["region"])
    shares = np.array([2.6, 3.7, 3.7]) / 10
    np.testing.assert_array_equal(whole_counts(shares, 10, task, Form.CONSISTENT), [2, 4, 4])
    # A count that is whole up to rounding errors is rounded to this whole number.
    whole = np.array([3.0, 3.0, 4.0]) / 10
    np.testing.assert_array_equal(whole_counts(whole, 10, task, Form.CONSISTENT), [3, 3, 4])


# --- the nearest tables --------------------------------------------------------------------------

REPLACE = Adjacency.REPLACE_ONE
CASES = {
    "pairs": (tuple(itertools.combinations("abcd", 2)), None),
    "triples": (tuple(itertools.combinations("abcd", 3)), None),
    "mixed, weighted": (
        (("a", "b", "c"), ("c", "d"), ("b",), ("b", "d")), (1.0, 0.25, 5.0, 2.0)
    ),
}  # fmt: skip


class Case:
    def __init__(self, crossed, weights, adjacency):
        self.adjacency = adjacency
        self.crossed = crossed
        self.weights = (1.0,) * len(crossed) if weights is None else weights
        self.tables = tables_of(LEVELS, crossed)
        self.workload = ChosenTables(LEVELS, crossed, self.weights)
        self.polytope = LocalPolytope(self.tables, self.weights, adjacency)
        self.hull = answer_hull(self.workload, adjacency)

    def true(self, rng, n=30):
        """Answers of few records, so that many cells are 0; divided by n under add/remove."""
        codes = np.column_stack([rng.integers(levels, size=n) for levels in LEVELS.values()])
        answers = self.workload.evaluate(codes[: rng.integers(1, n + 1)])
        return answers.mean(axis=0) if self.adjacency is REPLACE else answers.sum(axis=0) / n


@pytest.fixture(scope="module", params=itertools.product(CASES, Adjacency), ids=str)
def case(request):
    name, adjacency = request.param
    return Case(*CASES[name], adjacency)


def test_the_basis_is_that_of_the_affine_hull(case):
    basis = case.polytope._basis.toarray()
    np.testing.assert_allclose(basis.T @ basis, np.eye(case.polytope.dimension), atol=1e-12)
    np.testing.assert_allclose(basis @ basis.T, case.hull.basis @ case.hull.basis.T, atol=1e-12)
    np.testing.assert_allclose(case.polytope.centre, case.workload.affine_hull().offset, atol=1e-15)


@pytest.mark.parametrize("noise", [0.1, 1e-9, 1e-3, 1.0, 50])
def test_the_nearest_tables_are_nearest(case, noise):
    # Least distance programming (Lawson and Hanson 1974, chapter 23), in the basis of the hull of
    # the workload: the least ||u|| with G u >= h comes from non-negative least squares with the
    # matrix (G^T; h^T).
    hull, rng = case.hull, np.random.default_rng(0)
    truth = case.true(rng)
    noisy = truth + noise * rng.standard_normal(len(truth))
    near = hull.embed(hull.coordinates(noisy[None]))[0]
    stacked = np.vstack([hull.basis.T, -near])
    target = np.eye(len(stacked))[-1]
    solution, _ = scipy.optimize.nnls(stacked, target, maxiter=10_000)
    residual = stacked @ solution - target
    expected = near - hull.basis @ residual[:-1] / residual[-1]
    found = case.polytope.nearest(noisy)
    np.testing.assert_allclose(found.answers, expected, atol=1e-9 * max(1.0, noise))
    assert found.answers.min() >= 0
    # Cells of the cone can be as large as the noisy ones.
    size = max(1.0, noise if case.adjacency is REPLACE else float(np.linalg.norm(noisy)))
    assert 0 <= found.gap < 1e-9 * size**2


def test_tables_that_agree_although_no_records_have_them():
    # The tables say that any two of three binary columns always differ. No record has this.
    tables = tables_of({"a": 2, "b": 2, "c": 2}, [("a", "b"), ("a", "c"), ("b", "c")])
    differ = np.tile([0, 0.5, 0.5, 0], 3)
    found = LocalPolytope(tables, [1.0] * 3, REPLACE).nearest(differ)
    np.testing.assert_allclose(found.answers, differ, atol=1e-12)


def test_columns_of_one_level():
    tables = tables_of({"a": 1, "b": 2, "c": 1}, [("a", "b"), ("b",), ("a", "c")])
    polytope = LocalPolytope(tables, [1.0, 2.0, 1.0], REPLACE)
    found = polytope.nearest(np.array([-0.2, 0.9, 0.1, 2.2, 7.0]))
    np.testing.assert_allclose(found.answers, [0, 1, 0, 2, 1], atol=1e-12)


def test_all_pairs_of_fifty_binary_columns():
    levels = {f"c{i}": 2 for i in range(50)}
    workload = MarginalTables(levels, 2)
    tables = tables_of(levels, list(itertools.combinations(levels, 2)))
    assert fits(tables)
    rng = np.random.default_rng(11)
    truth = workload.evaluate((rng.random((50, 50)) < 0.05).astype(np.int64)).mean(axis=0)
    noisy = truth + 0.2 * rng.standard_normal(len(truth))
    polytope = LocalPolytope(tables, [1.0] * len(tables), REPLACE)
    assert polytope.dimension == 1275
    found = polytope.nearest(noisy)
    assert found.answers.min() >= 0
    assert found.gap < 1e-7
    assert np.linalg.norm(found.answers - truth) < np.linalg.norm(noisy - truth)


def test_the_limit():
    levels = {"a": 10, "b": 10, "c": 10, "d": 300}
    assert fits(tables_of(levels, [("a", "b", "c"), ("a", "d")]))
    assert not fits(tables_of(levels, [("a", "b", "c", "d"), ("a", "d")]))
