"""Covariances in the units of the columns, workloads of schemas, and labels of queries."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import geomdp as gd
from geomdp.tabulation import covariance

SCHEMA = gd.data.Schema.from_dict(
    {"age": {"bounds": [0, 120]}, "income": {"bounds": [-100, 900]}, "smoker": bool}
)
N = 500
SURE = gd.PureDP(1e8)


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    age = rng.uniform(20, 90, N)
    income = 5 * age + rng.uniform(0, 300, N)
    return pd.DataFrame({"age": age, "income": income, "smoker": rng.random(N) < 0.5})


def test_covariances_are_those_of_the_records(frame, tmp_path):
    found = covariance(frame, SCHEMA, privacy=SURE, rng=0)
    expected = frame[["age", "income"]].cov(ddof=0)
    assert list(found.frame.index) == list(found.frame.columns) == ["age", "income"]
    np.testing.assert_allclose(found.frame, expected, rtol=1e-3)
    assert "covariance of 2 columns: seeded" in repr(found)
    assert "<table" in found._repr_html_()
    frame.to_csv(tmp_path / "r.csv", index=False)
    stored = covariance(tmp_path / "r.csv", SCHEMA, privacy=SURE, rng=0)
    np.testing.assert_array_equal(stored.frame, found.frame)


def test_one_column_and_its_guarantee(frame):
    found = covariance(frame, SCHEMA, privacy=gd.ZCDP(0.5), columns=["income"])
    assert str(found.guarantee).startswith("0.5-zCDP")
    assert found.frame.shape == (1, 1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"columns": ["smoker"]}, "must name real columns"),
        ({"n": 7}, "must number n = 7, got 500"),
        ({"adjacency": gd.Adjacency.ADD_REMOVE}, "a covariance needs replace-one"),
        ({"adjacency": gd.Adjacency.ADD_REMOVE, "n": 500}, "a covariance needs replace-one"),
    ],
)
def test_what_is_refused(frame, options, message):
    ledger = gd.Ledger(gd.PureDP(1e9), adjacency=options.get("adjacency", gd.Adjacency.REPLACE_ONE))
    with pytest.raises(ValueError, match=message):
        covariance(frame, SCHEMA, privacy=SURE, ledger=ledger, **options)
    assert not ledger.spends()


def test_a_ledger_refuses_before_records_are_read(tmp_path):
    with pytest.raises(gd.BudgetExhausted):
        covariance(tmp_path / "absent.csv", SCHEMA, privacy=SURE, ledger=gd.Ledger(gd.PureDP(1.0)))


def test_a_schema_makes_workloads():
    assert SCHEMA.workload("histogram").n_queries == 2
    assert SCHEMA.workload("marginals", k=1) == gd.workloads.MarginalTables({"smoker": 2}, 1)
    for kind, k in (("marginals", None), ("histogram", 1), ("cube", 2)):
        with pytest.raises(ValueError, match="must be 'marginals' with k, or 'histogram'"):
            SCHEMA.workload(kind, k=k)
    with pytest.raises(ValueError, match="at least 1 discrete column"):
        SCHEMA.select(["age"]).workload("histogram")


def test_the_index_of_a_frame_names_queries():
    queries = pd.DataFrame([[1, 0, 1], [0, 1, 1]], index=["first or last", "not the first"])
    workload = gd.workloads.Explicit(queries)
    assert workload.labels() == ["first or last", "not the first"]
    assert gd.workloads.Explicit(queries.to_numpy()).labels() == ["q0", "q1"]


def test_no_records_are_refused(frame):
    with pytest.raises(ValueError, match="at least 1 record"):
        covariance(frame[:0], SCHEMA, privacy=SURE)
