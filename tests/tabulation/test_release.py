"""Private tables from a DataFrame: labels, intervals, counts, and arguments that are refused."""

import math

import numpy as np
import pandas as pd
import polars as pl
import pytest

import geomdp as gd
from geomdp.mechanisms import Laplace, Projected
from geomdp.tabulation import tabulate
from geomdp.tabulation.tasks import task_of
from tests.stats import LEVEL, binomial_above, binomial_agrees

SCHEMA = gd.data.Schema.from_dict(
    {
        "region": ["north", "south", "east"],
        "smoker": bool,
        "age": {"edges": [0, 40, 120], "missing": True},
        "income": {"bounds": [0, 100]},
    }
)
N = 400


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(1)
    age = rng.integers(0, 90, N).astype(float)
    age[:20] = np.nan
    return pd.DataFrame(
        {
            "note": "not declared",
            "smoker": rng.integers(0, 2, N).astype(bool),
            "region": rng.choice(["north", "south", "east"], N),
            "age": age,
            "income": rng.uniform(0, 100, N),
        }
    )


def laplace(frame, workload="marginals:2", rng=0, **options):
    return gd.release(frame, SCHEMA, workload, epsilon=1.0, mechanism=Laplace, rng=rng, **options)


def test_the_frame_is_tidy(frame):
    tidy = laplace(frame).to_frame()
    assert list(tidy.columns) == [
        "table", "region", "smoker", "age",
        "answer", "count", "unbiased", "noise_std", "low", "high", "flag",
    ]  # fmt: skip
    assert len(tidy) == 3 * 2 + 3 * 3 + 2 * 3
    first = tidy.iloc[0]
    assert (first.table, first.region, first.smoker) == ("region x smoker", "north", "false")
    assert pd.isna(first.age)
    assert set(tidy.age.dropna()) == {"[0, 40)", "[40, 120]", "(missing)"}
    np.testing.assert_allclose(tidy["count"], N * tidy.answer)
    # A replaced record changes two cells of each of three tables by 1, so the l1 sensitivity is 6.
    np.testing.assert_allclose(tidy.noise_std, math.sqrt(2) * 6 / N)


def test_tables_are_cross_tables_of_the_records(frame):
    # Epsilon is so large that the noise in counts is far below 1.
    result = gd.release(frame, SCHEMA, "marginals:2", epsilon=1e6, mechanism=Laplace, rng=0)
    table = result.tables[("region", "smoker")]
    expected = pd.crosstab(frame.region, frame.smoker, normalize="all").loc[table.index]
    np.testing.assert_allclose(table[["false", "true"]], expected, atol=1e-3)
    assert list(result.tables) == [("region", "smoker"), ("region", "age"), ("smoker", "age")]
    with pytest.raises(KeyError, match=r"no table .*; the tables are"):
        result.tables[("region", "income")]


def test_polars_and_files_give_the_same_answers(frame, tmp_path):
    frame[["smoker", "region", "age", "income"]].to_csv(tmp_path / "r.csv", index=False)
    answers = laplace(frame).answers
    np.testing.assert_array_equal(laplace(tmp_path / "r.csv").answers, answers)
    np.testing.assert_array_equal(laplace(pl.from_pandas(frame)).answers, answers)


@pytest.mark.statistical
@pytest.mark.parametrize("mechanism", [Laplace, lambda *a, **k: Projected(Laplace(*a, **k))])
def test_intervals_hold_the_true_answers(frame, mechanism):
    exact = gd.release(frame, SCHEMA, "marginals:1", epsilon=1e9, mechanism=Laplace, rng=0).answers
    hits, together, releases = 0, 0, 150
    rng = np.random.default_rng(5)
    for _ in range(releases):
        result = gd.release(
            frame, SCHEMA, "marginals:1", epsilon=0.1, mechanism=mechanism, projected=True, rng=rng
        )
        low, high = result.interval(0.9)
        hits += int(((low <= exact) & (exact <= high))[0])
        low, high = result.interval(0.9, simultaneous=True)
        together += int(((low <= exact) & (exact <= high)).all())
        assert ((low >= 0) & (high <= 1)).all()
    # True answers are shares, so an interval that is cut to [0, 1] still contains them.
    binomial_agrees(hits, releases, 0.9)
    binomial_above(together, releases, 0.9)


def test_a_flag_marks_answers_whose_interval_reaches_further_than_a_share_of_them(frame):
    """By the definition: 1.96 deviations of Gaussian noise, as a share of the answer."""
    asked = {"privacy": gd.ZCDP(0.01), "mechanism": gd.mechanisms.Gaussian, "rng": 3}
    result = gd.release(frame, SCHEMA, "marginals:2", **asked)
    variation = result.noise_std / result.answers  # the coefficient of variation
    for above, flags in ((0.65, result.flagged()), (0.3, result.flagged(0.3))):
        assert 0 < flags.sum() < len(flags)
        np.testing.assert_array_equal(flags, 1.959964 * variation > above)
    tidy = result.to_frame(0.5, flag_above=0.3)  # the flag is for 95%, whatever is shown
    np.testing.assert_array_equal(tidy.flag == "wide", result.flagged(0.3))
    assert set(tidy.flag) == {"wide", ""}
    asked["privacy"] = gd.ZCDP(1e-6)
    cut = gd.release(frame, SCHEMA, "marginals:2", projected=True, **asked)
    assert (cut.answers == 0).any()
    assert cut.flagged()[cut.answers == 0].all()
    with pytest.raises(ValueError, match="flag_above must be a finite number above 0, got 0"):
        result.flagged(0)


def test_queries_that_are_no_cells(frame):
    tidy = laplace(frame, "signs:3").to_frame()
    assert list(tidy.columns) == ["query", *tabulate.RESERVED[1:]]
    assert list(tidy["query"]) == ["sign1", "sign2", "sign3"]


def test_text_and_notebook_views(frame):
    result = laplace(frame)
    assert repr(result).splitlines()[0].startswith("3 2-way tables of 3 columns: seeded")
    assert "region=north,smoker=false: " in repr(result)
    assert "... and 15 more" in repr(result)
    assert "<table" in result._repr_html_()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epsilon": None}, "give either epsilon or privacy"),
        ({"privacy": gd.PureDP(1.0)}, "give either epsilon or privacy"),
        ({"n": 7}, "n must be the number of records, 400, got 7"),
        ({"adjacency": gd.Adjacency.ADD_REMOVE}, "n must be declared under add/remove"),
        ({"columns": ["region", "shoe size"]}, "columns must name discrete columns of the schema"),
        ({"workload": "marginals:9"}, "K in workload marginals:K must be"),
        ({"workload": "totals"}, "workload must be one of"),
    ],
)
def test_wrong_parameters(frame, options, message):
    asked = {"workload": "marginals:1", "epsilon": 1.0, **options}
    with pytest.raises(ValueError, match=message):
        gd.release(frame, SCHEMA, **asked)


def test_wrong_records_name_row_and_column_before_the_ledger_pays(frame):
    broken = frame.copy()
    broken.loc[7, "region"] = "west"
    ledger = gd.Ledger(gd.PureDP(1.0))
    with pytest.raises(ValueError, match="row 7, column 'region' is not") as caught:
        gd.release(broken, SCHEMA, "marginals:1", epsilon=1.0, ledger=ledger)
    assert "west" not in str(caught.value)
    assert not ledger.spends()


def test_an_empty_ledger_refuses_before_a_record_is_read(tmp_path):
    ledger = gd.Ledger(gd.PureDP(0.5))
    with pytest.raises(gd.BudgetExhausted):
        gd.release(tmp_path / "absent.csv", SCHEMA, "marginals:1", epsilon=1.0, ledger=ledger)


def test_intervals_under_add_remove_reach_beyond_one():
    schema = gd.data.Schema.from_dict({"a": bool})
    asked = {"epsilon": 1e6, "n": 100, "adjacency": gd.Adjacency.ADD_REMOVE, "mechanism": Laplace}
    result = gd.release(pd.DataFrame({"a": [True] * 200}), schema, "marginals:1", rng=0, **asked)
    low, high = result.interval()
    assert low[1] < 2 < high[1]
    assert low[0] == 0


@pytest.mark.parametrize("name", tabulate.RESERVED)
def test_attributes_must_not_be_named_as_columns_of_the_result(name):
    schema = gd.data.Schema.from_dict({name: bool})
    with pytest.raises(ValueError, match=rf"columns \['{name}'\] must be renamed"):
        gd.release(pd.DataFrame({name: [True]}), schema, "marginals:1", epsilon=1.0)


# --- tables of several orders, chosen one by one, with weights ----------------------------------

THREE = gd.data.Schema.from_dict(
    {"region": ["north", "south", "east"], "smoker": bool, "age": ["young", "old"]}
)
HUNDRED = pd.DataFrame(
    {
        "region": ["north", "south", "east", "north"] * 25,
        "smoker": [True, False] * 50,
        "age": ["young", "old", "old", "old"] * 25,
    }
)
SURE = {"epsilon": 1e9, "mechanism": Laplace, "rng": 0}


def test_several_orders_and_chosen_tables_in_one_release():
    result = gd.release(HUNDRED, THREE, ["marginals:1", ("age", "region")], **SURE)
    assert list(result.tables) == [("region",), ("smoker",), ("age",), ("region", "age")]
    assert result.tables[("region",)].to_dict() == pytest.approx(
        {"north": 0.5, "south": 0.25, "east": 0.25}
    )
    assert result.tables[("region", "age")].loc["north", "young"] == pytest.approx(0.25)
    assert list(result.to_frame()["table"].unique()) == ["region", "smoker", "age", "region x age"]


def test_a_table_alone_is_one_table_and_columns_are_those_of_the_mixture():
    task = task_of(THREE, [("age", "region")])
    assert (task.columns, task.description) == (("region", "age"), "the table region x age")
    assert isinstance(task.workload, gd.workloads.MarginalTables)
    mixed = ["marginals:1", ("smoker", "age")]
    task = task_of(THREE, mixed, columns=["region"], weights=[1, 2])
    assert task.columns == ("region", "smoker", "age")
    assert "the table smoker x age (weight 2)" in task.description


def test_a_heavy_table_has_smaller_errors_and_intervals():
    options = {"epsilon": 1.0, "mechanism": Laplace, "unbiased": True, "rng": 0}
    asked = [("region",), ("age",)]
    plain = gd.release(HUNDRED, THREE, asked, **options)
    heavy = gd.release(HUNDRED, THREE, asked, weights=[4, 1], **options)
    assert heavy.noise_std[0] < plain.noise_std[0]
    assert heavy.noise_std[-1] > plain.noise_std[-1]


@pytest.mark.parametrize(
    ("asked", "weights", "message"),
    [
        ([], None, "at least 1 specification or table, got 0"),
        (["marginals:1"], [1, 2], "1 entries, one for each workload or table, got 2"),
        (["marginals:1"], [-1], "weights must be a finite number above 0"),
        ([("region", "shoes")], None, "got 'shoes'"),
        (["marginals:1", "signs:3"], None, "each of several workloads must consist of tables"),
        (["marginals:1", ("age",)], None, "tables must differ"),
    ],
)
def test_mixtures_that_are_refused(asked, weights, message):
    with pytest.raises(ValueError, match=message):
        gd.release(HUNDRED, THREE, asked, weights=weights, **SURE)


def test_intervals_include_the_rounding_of_weighted_answers():
    """Answers with the weight 1/3 are rounded, and the noise is far below the rounding errors."""
    result = gd.release(HUNDRED, THREE, [("region",), ("age",)], weights=[1 / 3, 1], **SURE)
    # Answers with the weight 1 are not rounded, so their intervals cover the noise alone. The level
    # near 1 makes a miss unlikely.
    low, high = result.interval(1 - LEVEL)
    truth = np.array([0.5, 0.25, 0.25, 0.25, 0.75])
    assert ((low <= truth) & (truth <= high)).all()
    assert (high - low).max() < 1e-7


# --- workloads of schemas ------------------------------------------------------------------------

BOUNDED = gd.data.Schema.from_dict(
    {"age": {"bounds": [0, 120]}, "income": {"bounds": [-100, 900]}, "smoker": bool}
)


def test_a_schema_makes_workloads():
    assert BOUNDED.workload("histogram").n_queries == 2
    assert BOUNDED.workload("marginals", k=1) == gd.workloads.MarginalTables({"smoker": 2}, 1)
    for kind, k in (("marginals", None), ("histogram", 1), ("cube", 2)):
        with pytest.raises(ValueError, match="must be 'marginals' with k, or 'histogram'"):
            BOUNDED.workload(kind, k=k)
    with pytest.raises(ValueError, match="at least 1 discrete column"):
        BOUNDED.select(["age"]).workload("histogram")


def test_the_index_of_a_frame_names_queries():
    queries = pd.DataFrame([[1, 0, 1], [0, 1, 1]], index=["first or last", "not the first"])
    workload = gd.workloads.Explicit(queries)
    assert workload.labels() == ["first or last", "not the first"]
    assert gd.workloads.Explicit(queries.to_numpy()).labels() == ["q0", "q1"]
