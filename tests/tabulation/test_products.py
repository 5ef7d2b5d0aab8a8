"""Tables with columns asked by prefixes or ranges: how they are written, and their releases."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import geomdp as gd
from geomdp.mechanisms import ResidualGaussian
from geomdp.tabulation.tasks import task_of

AGES = [10, 20, 30, 40]
SCHEMA = gd.data.Schema.from_dict({"region": ["north", "south"], "smoker": bool, "age": AGES})
#: So large that the noise in counts is far below 1.
PRECISE = gd.ZCDP(1e9)


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(1)
    return pd.DataFrame(
        {
            "region": rng.choice(["north", "south"], 300),
            "smoker": rng.integers(0, 2, 300).astype(bool),
            "age": rng.choice(AGES, 300),
        }
    )


def released(frame, workload):
    return gd.release(frame, SCHEMA, workload, privacy=PRECISE, mechanism=ResidualGaussian)


def test_a_table_with_prefixes(frame):
    result = released(frame, "tables:age[prefixes]*region")
    shares = dict(zip(result.task.labels, result.answers, strict=True))
    expected = {
        f"region={region},age<={age}": ((frame.region == region) & (frame.age <= age)).mean()
        for region in ("north", "south")
        for age in AGES
    }
    assert list(shares) == list(expected)
    np.testing.assert_allclose(list(shares.values()), list(expected.values()), atol=1e-4)
    assert result.task.columns == ("region", "age")
    low, high = result.interval()
    assert (low <= high).all()


def test_all_tables_of_two_columns_with_ranges(frame):
    result = released(frame, "marginals:2,age[ranges]")
    shares = dict(zip(result.task.labels, result.answers, strict=True))
    assert len(shares) == 2 * 2 + 2 * 10 + 2 * 10
    some = (frame.smoker & frame.age.between(20, 30)).mean()
    assert shares["smoker=true,age=20 to 30"] == pytest.approx(some, abs=1e-4)
    both = ((frame.region == "south") & ~frame.smoker).mean()
    assert shares["region=south,smoker=false"] == pytest.approx(both, abs=1e-4)
    assert result.task.description == "3 2-way tables of 3 columns, age by ranges"


def test_the_default_mechanism_states_its_guarantee(frame):
    result = gd.release(frame, SCHEMA, "tables:region*age[prefixes],smoker", privacy=gd.ZCDP(0.5))
    assert str(result.guarantee).startswith("0.5-zCDP, replace-one; protects a row; noise")
    assert result.answers.shape == (10,)


def test_without_brackets_they_are_tables():
    task = task_of(SCHEMA, ["tables:age*region,smoker"])
    assert [table.columns for table in task.tables] == [("region", "age"), ("smoker",)]
    assert isinstance(task.workload, gd.workloads.ChosenTables)
    assert task.labels == task_of(SCHEMA, [("region", "age"), ("smoker",)]).labels


@pytest.mark.parametrize(
    ("workload", "words"),
    [
        ("tables", "written tables:"),
        ("tables:region*height", r"COLUMN among region, smoker, age; got 'height'"),
        ("tables:region*age[prefix]", r"COLUMN\[prefixes\], COLUMN\[ranges\].*got 'age\[prefix\]'"),
        ("tables:region*age[prefixes", r"got 'age\[prefixes'"),
        ("tables:age[prefixes],smoker*age", "'age' must be asked in the same way"),
        ("tables:age,age", "occurs more than once"),
        ("tables:age*age", "column twice"),
        ("marginals:2,height[ranges]", r"got 'height\[ranges\]'"),
        ("marginals:4,age[ranges]", "at least 1 and at most 3"),
        ("marginals:2,", "COLUMN among"),
    ],
)
def test_other_spellings_are_refused(workload, words):
    with pytest.raises(ValueError, match=words):
        task_of(SCHEMA, [workload])


def test_products_and_tables_are_mixed_with_weights(frame):
    asked = ["tables:age[prefixes]", ("region", "smoker"), ("age[prefixes]", "region")]
    task = task_of(SCHEMA, asked, weights=[1, 2, 4])
    assert [table.columns for table in task.products] == [
        ("age",), ("region", "smoker"), ("region", "age")]  # fmt: skip
    assert task.weights.tolist() == [1] * 4 + [2] * 4 + [4] * 8
    result = gd.release(
        frame, SCHEMA, asked, weights=[1, 2, 4], privacy=PRECISE, mechanism=ResidualGaussian
    )
    both = ((frame.region == "south") & (frame.age <= 30)).mean()
    assert result.tables["region", "age"].loc["south", "<=30"] == pytest.approx(both, abs=1e-4)
    assert result.tables[("age",)]["<=20"] == pytest.approx((frame.age <= 20).mean(), abs=1e-4)


def test_other_workloads_are_no_tables_to_mix():
    with pytest.raises(ValueError, match="must consist of tables"):
        task_of(SCHEMA, ["signs:3", ("region",)])


@pytest.mark.parametrize(
    "asked",
    [
        ["tables:age[prefixes],age[ranges]"],
        ["marginals:1,age[prefixes],age[ranges]"],
        ["marginals:1,age[prefixes],age"],
        ["tables:age[prefixes]", ("age", "region")],
    ],
)
def test_a_column_is_asked_in_one_way(asked):
    with pytest.raises(ValueError, match="'age' must be asked in the same way"):
        task_of(SCHEMA, asked)


def test_labels_of_products_are_columns(frame):
    tidy = released(frame, "tables:region*age[ranges]").to_frame()
    assert tidy.loc[1, ["table", "region", "age"]].tolist() == ["region x age", "north", "10 to 20"]


def test_the_order_of_texts_is_doubtful_and_that_of_numbers_is_not(frame):
    with pytest.warns(UserWarning, match="declared order, north < south"):
        gd.release(frame, SCHEMA, "tables:region[ranges]", epsilon=1.0)
    turned = gd.data.Schema.from_dict({"age": [10, 30, 20, 40]})
    assert "10 < 30 < 20 < 40" in task_of(turned, ["prefixes:age"]).disordered
    assert task_of(SCHEMA, ["marginals:1,age[prefixes],smoker[ranges]"]).disordered == ""
