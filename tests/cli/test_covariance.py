"""The command `geomdp covariance`: its files, the regression that it prints, and refusals."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from geomdp.data import Schema
from geomdp.privacy import Ledger

SCHEMA = Schema.from_dict(
    {"age": {"bounds": [20, 60]}, "pay": {"bounds": [0, 100]}, "smoker": bool}
)
PRECISE = "--epsilon 1e8 --epsilon-above-10"


@pytest.fixture
def run(call):
    """Run the command on pay.csv, 500 records, with schema.json."""
    rng = np.random.default_rng(0)
    age = rng.uniform(20, 60, 500)
    frame = pd.DataFrame({"age": age, "pay": 20 + age + rng.uniform(-10, 10, 500), "smoker": "no"})
    frame.to_csv("pay.csv", index=False)
    Path("schema.json").write_text(SCHEMA.to_json())
    return lambda line: call(f"covariance pay.csv --schema schema.json {line}")


def test_almost_without_noise_the_file_holds_the_covariances(run):
    code, out, err = run(f"{PRECISE} --regress pay --out found.csv")
    assert (code, err) == (0, "")
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


def test_a_regression_lost_in_noise_leaves_the_covariances(run):
    code, out, err = run("--epsilon 0.01 --regress pay --out found.csv")
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
def test_refusals_cost_nothing(run, flags, message):
    code, _, err = run(f"{flags} --out found.csv --ledger l.ledger --budget epsilon=2")
    assert code != 0
    assert message in err
    assert not Path("found.csv").exists()
    if Path("l.ledger").exists():
        with Ledger.existing(Path("l.ledger")) as ledger:
            assert not ledger.spends()


def test_a_ledger_pays_once(run):
    assert run("--epsilon 1 --out found.csv --ledger l.ledger --budget epsilon=2").code == 0
    with Ledger.existing(Path("l.ledger")) as ledger:
        assert [str(spend.privacy) for spend in ledger.spends()] == ["1-DP"]
