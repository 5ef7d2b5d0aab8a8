"""Tables of several orders, chosen one by one, with weights."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import geomdp as gd
from geomdp.mechanisms import Laplace
from geomdp.tabulation.tasks import task_of
from tests.stats import LEVEL

SCHEMA = gd.data.Schema.from_dict(
    {"region": ["north", "south", "east"], "smoker": bool, "age": ["young", "old"]}
)
FRAME = pd.DataFrame(
    {
        "region": ["north", "south", "east", "north"] * 25,
        "smoker": [True, False] * 50,
        "age": ["young", "old", "old", "old"] * 25,
    }
)
SURE = {"epsilon": 1e9, "mechanism": Laplace, "rng": 0}


def test_several_orders_and_chosen_tables_in_one_release():
    result = gd.release(FRAME, SCHEMA, ["marginals:1", ("age", "region")], **SURE)
    assert list(result.tables) == [("region",), ("smoker",), ("age",), ("region", "age")]
    assert result.tables[("region",)]["north"] == pytest.approx(0.5)
    assert result.tables[("region", "age")].loc["north", "young"] == pytest.approx(0.25)
    assert list(result.to_frame()["table"].unique()) == ["region", "smoker", "age", "region x age"]


def test_answers_are_shares_whatever_the_weights():
    asked = [("region", "smoker"), ("age",)]
    plain = gd.release(FRAME, SCHEMA, asked, **SURE)
    weighted = gd.release(FRAME, SCHEMA, asked, weights=[3, 0.5], **SURE)
    np.testing.assert_allclose(weighted.answers, plain.answers, atol=1e-6)


def test_a_heavy_table_has_smaller_errors_and_intervals():
    options = {"epsilon": 1.0, "mechanism": Laplace, "unbiased": True, "rng": 0}
    asked = [("region",), ("age",)]
    plain = gd.release(FRAME, SCHEMA, asked, **options)
    heavy = gd.release(FRAME, SCHEMA, asked, weights=[4, 1], **options)
    assert heavy.noise_std[0] < plain.noise_std[0]
    assert heavy.noise_std[-1] > plain.noise_std[-1]
    low, high = heavy.interval()
    inside = (low > 0) & (high < 1)  # intervals that are not cut at 0 or 1
    centres = ((low + high) / 2)[inside]
    np.testing.assert_allclose(centres, heavy.answers[inside])


def test_one_table_alone_is_one_table():
    task = task_of(SCHEMA, [("age", "region")])
    assert task.columns == ("region", "age")
    assert task.description == "the table region x age"
    assert isinstance(task.workload, gd.workloads.MarginalTables)


def test_columns_are_those_of_the_mixture():
    asked = ["marginals:1", ("smoker", "age")]
    task = task_of(SCHEMA, asked, columns=["region"], weights=[1, 2])
    assert task.columns == ("region", "smoker", "age")
    assert "the table smoker x age (weight 2)" in task.description


@pytest.mark.parametrize(
    ("asked", "weights", "message"),
    [
        ([], None, "at least 1 specification or table, got 0"),
        (["marginals:1"], [1, 2], "1 entries, one for each workload or table, got 2"),
        (["marginals:1"], [-1], "weights must be a finite number above 0"),
        ([("region", "shoes")], None, "got 'shoes'"),
        (["marginals:1", "prefixes:age"], None, "each of several workloads must consist of tables"),
        (["marginals:1", ("age",)], None, "tables must differ"),
    ],
)
def test_what_is_refused(asked, weights, message):
    with pytest.raises(ValueError, match=message):
        gd.release(FRAME, SCHEMA, asked, weights=weights, **SURE)


def test_intervals_include_the_rounding_of_weighted_answers():
    """Answers with the weight 1/3 are rounded, and the noise is far below the rounding errors."""
    result = gd.release(FRAME, SCHEMA, [("region",), ("age",)], weights=[1 / 3, 1], **SURE)
    # Answers with the weight 1 are not rounded, so their intervals cover the noise alone. The level
    # near 1 makes a miss unlikely.
    low, high = result.interval(1 - LEVEL)
    truth = np.array([0.5, 0.25, 0.25, 0.25, 0.75])
    assert ((low <= truth) & (truth <= high)).all()
    assert (high - low).max() < 1e-7
