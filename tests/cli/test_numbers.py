"""Means and quantiles by group from `release`, their budget, and the command `covariance`."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import geomdp as gd
from geomdp.advice.least_budget import _queries_alone
from geomdp.cli import outputs
from geomdp.data import Schema
from geomdp.privacy import Ledger
from geomdp.tabulation.tasks import task_of

SCHEMA = Schema.from_dict(
    {"region": ["north", "south"], "age": {"edges": [0, 20, 40, 60]}, "children": [0, 1, 2, 3]}
)


@pytest.fixture
def run(call):
    """Run a command in a folder with survey.csv, of 300 records, and schema.json."""
    Path("schema.json").write_text(SCHEMA.to_json())
    rng = np.random.default_rng(0)
    survey = pd.DataFrame({"region": rng.choice(["north", "south"], 300)})
    survey["age"], survey["children"] = rng.integers(0, 60, 300), rng.integers(0, 4, 300)
    survey.to_csv("survey.csv", index=False)
    return call


ASK = ("release", "survey.csv", "--schema", "schema.json", "--epsilon", "5", "--out", "a.csv")
MEAN = ("--tables", "region*children[mean]")


def test_means_and_quantiles_are_printed_and_written_beside_the_answers(run):
    out = run(*ASK, *MEAN, "--tables", "region,age[prefixes]", "--quantiles", "0.25,0.5").ok()
    survey = pd.read_csv("survey.csv")
    means = pd.read_csv("a.means.csv")
    assert list(means) == ["region", *gd.tabulation.ways.MEANS]
    true = survey.groupby("region").children.agg(["count", "sum", "mean"])
    np.testing.assert_allclose(means[["count", "mean"]], true[["count", "mean"]], rtol=0.2)
    assert f"{means['mean'][0]:.6g}" in out
    quantiles = pd.read_csv("a.quantiles.csv")
    assert list(quantiles["quantile"]) == [0.25, 0.5] * 2
    assert list(quantiles["level"]) == ["[0, 20)", "[20, 40)"] * 2
    answers = pd.read_csv("a.csv")
    assert list(answers.columns[:4]) == ["table", "region", "age", "children"]
    assert list(answers[answers.age.isna()].children) == ["[count]", "[scaled total]"] * 2
    assert json.loads(Path("a.privacy.json").read_text())["workload"]["queries"] == 4 + 6


def test_numbers_lost_in_noise_are_written_as_missing(run):
    tables = ("--tables", "region,age[prefixes]", "--tables", "children[mean]", *MEAN)
    ask = [*ASK, *tables, "--quantiles", "0.5"]
    ask[ask.index("5")] = "1e-6"
    assert run(*ask).code == 0
    assert pd.read_csv("a.quantiles.csv")["level"].isna().all()
    means = pd.read_csv("a.means.csv")
    assert list(means["region"].isna()) == [True, False, False]
    assert means["mean"].isna()[1:].all()
    assert not np.isnan(means["mean"][0])  # the number of all records is public


def test_derived_files_are_like_answers(run):
    Path("a.means.csv").touch()
    assert "overwrite 'a.means.csv'" in run(*ASK, *MEAN).error()
    assert not Path("a.csv").exists()
    assert run(*ASK, *MEAN, "--force").code == 0
    code, _, _ = run(*ASK[:-1], "b.parquet", *MEAN, "--confidence", "0.5")
    assert code == 0
    narrow, wide = pd.read_parquet("b.means.parquet"), pd.read_csv("a.means.csv")
    assert (narrow.high - narrow.low < wide.high - wide.low).all()


def test_room_for_derived_files_is_enough(run, monkeypatch):
    taken, honest = {}, outputs.room_for
    monkeypatch.setattr(outputs, "room_for", lambda sizes: taken.update(sizes) or honest(sizes))
    tables = (*MEAN, "--tables", "region,age[prefixes]", "--quantiles", "0.1,0.2,0.3,0.4,0.5,0.6")
    assert run(*ASK, *tables).code == 0
    assert {path.name for path in taken} >= {"a.csv", "a.means.csv", "a.quantiles.csv"}
    assert all(path.stat().st_size <= room for path, room in taken.items())


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--tables", "region,age[prefixes]", "--quantiles", "0.5,x"], "(0, 1), got '0.5,x'"),
        (["--tables", "region,age[prefixes]", "--quantiles", "1"], "(0, 1), got '1'"),
        (["--tables", "region,age", "--quantiles", "0.5"], "asked by its prefixes"),
        (["--tables", "children,region[mean]"], "needs numbers, bins or a boolean"),
        ([*MEAN, "--integers"], "integers must be False"),
        ([*MEAN, "--confidence", "0.9999999"], "--confidence must be at most"),
        (["--workload", "tables:age[prefixes],age[ranges]"], "asked in the same way"),
    ],
)
def test_what_is_refused_costs_nothing(run, flags, words):
    paying = ("--ledger", "l", "--budget", "epsilon=9")
    assert words in run(*ASK, *flags, *paying).error()
    assert not Path("a.csv").exists()
    if Path("l").exists():
        assert "spends   0" in run("ledger", "l").out


def test_a_doubtful_order_is_said_once(run):
    code, _, err = run(*ASK, "--tables", "children,region[ranges]")
    assert code == 0
    assert err == (
        "warning: the categories of region are taken in the declared order, north < south\n"
    )


def test_advice_and_budget_know_products(run):
    plan = ("--schema", "schema.json", *MEAN, "--tables", "region,age")
    run("advise", *plan, "--n", "300", "--rho", "0.5").ok()
    out = run("budget", *plan, "--n", 300, "--zcdp", "--half-width", "region,children:0.05").ok()
    assert "region x children  1" in out
    assert "region x age" in out


ASKED = ["tables:region*children[mean]", "tables:region*age"]


@pytest.mark.parametrize("kind", [gd.advice.RootMeanSquare, gd.advice.HalfWidth])
@pytest.mark.parametrize("over", [None, ("region", "children"), 1])
def test_weights_of_products_weigh_no_limit(kind, over):
    """Errors are those of answers without weights, so the proof must not know weights either."""
    target, errors, budgets, lows = kind(0.02, over), [], [], []
    for weights in ([1, 1], [4, 4]):
        workload = task_of(SCHEMA, ASKED, weights=weights).workload
        mechanism = gd.mechanisms.ResidualGaussian(workload, n=300, privacy=gd.ZCDP(0.1))
        errors.append(target.error(mechanism))
        found = gd.budget_for(workload, n=300, targets=[target], privacy=gd.ZCDP)
        budgets.append(found.budget)
        lows.append(0.0 if found.impossible is None else found.impossible.budget)
    assert errors[1] == pytest.approx(errors[0])
    assert budgets[1] == pytest.approx(budgets[0])
    assert lows[0] == lows[1] < min(budgets)


def test_a_table_of_products_alone_has_its_own_queries():
    workload = task_of(SCHEMA, ASKED).workload
    target = gd.advice.RootMeanSquare(0.1, ("children", "region"))
    alone = _queries_alone(workload, target)
    assert alone.n_queries == 4
    records = alone.universe.sample(50, np.random.default_rng(0))
    whole = np.insert(records, 1, 0, axis=1)
    np.testing.assert_allclose(
        alone.answers(records), workload.answers(whole)[target.queries(workload)]
    )


# --- covariances ---------------------------------------------------------------------------------

PAY = Schema.from_dict({"age": {"bounds": [20, 60]}, "pay": {"bounds": [0, 100]}, "smoker": bool})
PRECISE = "--epsilon 1e8 --epsilon-above-10"


@pytest.fixture
def covariance(call):
    """Run the command on pay.csv, 500 records, with schema.json."""
    rng = np.random.default_rng(0)
    age = rng.uniform(20, 60, 500)
    frame = pd.DataFrame({"age": age, "pay": 20 + age + rng.uniform(-10, 10, 500), "smoker": "no"})
    frame.to_csv("pay.csv", index=False)
    Path("schema.json").write_text(PAY.to_json())
    return lambda line: call(f"covariance pay.csv --schema schema.json {line}")


def test_almost_without_noise_the_file_holds_the_covariances(covariance):
    out = covariance(f"{PRECISE} --regress pay --out found.csv").ok()
    found, records = pd.read_csv("found.csv"), pd.read_csv("pay.csv")[["age", "pay"]]
    assert list(found["column"]) == ["age", "pay"]
    np.testing.assert_allclose(found["mean"], records.mean(), rtol=1e-5)
    assert (found["noise_std of the mean"] > 0).all()
    columns = ["covariance with age", "covariance with pay"]
    np.testing.assert_allclose(found[columns], records.cov(ddof=0), rtol=1e-4)
    assert (found[["noise_std with age", "noise_std with pay"]] > 0).all(axis=None)
    record = json.loads(Path("found.privacy.json").read_text())
    assert record["guarantee"]["definition"] == "PureDP"
    assert record["n"] == {"value": 500, "source": "counted"}
    row = record["regression"]["coefficients"]["age"]
    assert row["coefficient"] == pytest.approx(np.polyfit(records.age, records.pay, 1)[0], rel=1e-4)
    assert f"age          {row['coefficient']:.4g}" in out
    assert f"{row['low']:.4g} to {row['high']:.4g}" in out


def test_a_regression_lost_in_noise_leaves_the_covariances(covariance):
    code, out, err = covariance("--epsilon 0.01 --regress pay --out found.csv")
    assert code == 0
    assert "no regression of pay: the noise is too large" in err
    assert "column  coefficient" not in out
    assert json.loads(Path("found.privacy.json").read_text())["regression"] is None
    assert len(pd.read_csv("found.csv")) == 2


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--epsilon 1 --regress smoker", "--regress must be one of two or more columns ['age'"),
        ("--epsilon 1 --columns pay --regress pay", "two or more columns ['pay'], got 'pay'"),
        ("--epsilon 1 --columns smoker", "real columns"),
        ("--epsilon 1 --n 7", "--n must be the number of records, 500, got 7"),
        ("--epsilon 1 --confidence 1", "--confidence must be above 0 and below 1"),
        ("--epsilon 1 --seed 0", "--ledger excludes --seed"),
    ],
)
def test_refusals_cost_nothing(covariance, flags, message):
    paid = "--out found.csv --ledger l.ledger --budget epsilon=2"
    assert message in covariance(f"{flags} {paid}").error()
    assert not Path("found.csv").exists()
    if Path("l.ledger").exists():
        with Ledger.existing(Path("l.ledger")) as ledger:
            assert not ledger.spends()


def test_a_ledger_pays_once(covariance):
    paid = "--out found.csv --ledger l.ledger --budget epsilon=2"
    assert "epsilon 1 of 2 left" in covariance(f"--epsilon 1 {paid}").out
