"""Schemas from dicts and from the types of DataFrames; missing and other values as categories."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

from geomdp.data import (
    BooleanColumn,
    CategoricalColumn,
    NumericColumn,
    RealColumn,
    Schema,
    encode,
)

FRAME = pd.DataFrame(
    {
        "region": pd.Categorical(["south", "north"], categories=["north", "south", "east"]),
        "smoker": [True, False],
        "age": pd.cut([34, 71], [0, 40, 120]),
        "rooms": pd.Categorical([2.0, 1.0], categories=[1.0, 2.0]),
    }
)
DECLARED = Schema(
    (
        CategoricalColumn("region", ("north", "south", "east")),
        BooleanColumn("smoker"),
        CategoricalColumn("age", ("(0, 40]", "(40, 120]")),
        CategoricalColumn("rooms", ("1", "2")),
    )
)


def codes(frame, schema):
    return np.concatenate(list(encode(frame, schema, schema.universe())))


def test_pandas_types_declare_a_schema_that_encodes_the_frame():
    schema = Schema.from_dtypes(FRAME)
    assert schema == DECLARED
    np.testing.assert_array_equal(codes(FRAME, schema), [[1, 1, 0, 1], [0, 0, 1, 0]])


def test_polars_types_declare_a_schema_that_encodes_the_frame():
    frame = pl.DataFrame(
        {
            "region": pl.Series(["south", None], dtype=pl.Enum(["north", "south"])),
            "smoker": [True, None],
        }
    )
    schema = Schema.from_dtypes(frame, missing=["region", "smoker"])
    assert schema.labels == {
        "region": ("north", "south", "(missing)"),
        "smoker": ("false", "true", "(missing)"),
    }
    np.testing.assert_array_equal(codes(frame, schema), [[1, 1], [2, 2]])
    np.testing.assert_array_equal(codes([frame, frame[:1]], schema), [[1, 1], [2, 2], [1, 1]])


def test_no_value_is_looked_at():
    assert Schema.from_dtypes(FRAME.iloc[:0]) == DECLARED


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(["a", "b"]),
        pd.Series([1, 2]),
        pd.Series([0.5, 1.0]),
        pd.Series(pd.to_datetime(["2020-01-01", "2020-01-02"])),
    ],
    ids=["text", "integers", "reals", "dates"],
)
def test_other_types_declare_nothing(column):
    with pytest.raises(ValueError, match=r"column 'x' of type .* declares no categories"):
        Schema.from_dtypes(pd.DataFrame({"x": column}))


@pytest.mark.parametrize("dtype", [pl.Categorical, pl.Categorical("lexical")])
def test_categories_that_polars_reads_off_the_records_declare_nothing(dtype):
    frame = pl.DataFrame({"x": pl.Series(["a"], dtype=dtype)})
    with pytest.raises(ValueError, match=r"'x' of type Categorical.* declares no categories"):
        Schema.from_dtypes(frame)


def test_names_must_be_texts():
    with pytest.raises(ValueError, match=r"columns must have texts as names, got \[0, 1\]"):
        Schema.from_dtypes(pd.DataFrame(np.zeros((2, 2), dtype=bool)))


def test_missing_must_name_columns():
    with pytest.raises(ValueError, match=r"missing must list columns of the frame, .* got \['x'\]"):
        Schema.from_dtypes(FRAME, missing=["x"])


def test_a_dict_declares_every_kind():
    schema = Schema.from_dict(
        {
            "region": ["north", "south"],
            "smoker": bool,
            "owner": {"missing": True},
            "age": {"edges": [0, 18, 65], "missing": True},
            "job": {"categories": ["a"], "other": True},
            "income": {"bounds": [0, 10], "clip": True},
        }
    )
    assert schema.columns == (
        CategoricalColumn("region", ("north", "south")),
        BooleanColumn("smoker"),
        BooleanColumn("owner", missing=True),
        NumericColumn("age", (0, 18, 65), missing=True),
        CategoricalColumn("job", ("a",), other=True),
        RealColumn("income", (0, 10), clip=True),
    )
    assert Schema.from_json(schema.to_json()) == schema


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("north", "column 'x' must be declared by bool, a list"),
        (3, "column 'x' must be declared by bool, a list"),
        ({"edges": [0, 1], "bounds": [0, 1]}, "column 'x': kind 'numeric' must have the keys"),
        ({"edges": [0, 1], "other": True}, "column 'x': kind 'numeric' must have the keys"),
        ({"missing": 1}, "column 'x': missing must be true or false, got 1"),
        ({"bounds": [0, 1], "clip": "yes"}, "column 'x': clip must be true or false, got 'yes'"),
        (["a", "(missing)"], None),
    ],
)
def test_wrong_declarations_name_the_column(value, message):
    if message is None:
        assert Schema.from_dict({"x": value}).levels == {"x": 2}
        return
    with pytest.raises(ValueError, match=message):
        Schema.from_dict({"x": value})


def test_a_category_must_not_read_as_the_label_of_missing_values():
    with pytest.raises(ValueError, match=r"categories must differ, \['\(missing\)'\] do not"):
        CategoricalColumn("x", ("a", "(missing)"), missing=True)


def test_missing_and_other_values_have_codes_of_their_own():
    schema = Schema.from_dict(
        {
            "job": {"categories": ["a", "b"], "other": True, "missing": True},
            "age": {"edges": [0, 18, 65], "missing": True},
            "smoker": {"missing": True},
        }
    )
    frame = pd.DataFrame(
        {"job": ["b", None, "z"], "age": [np.nan, 17.0, 65.0], "smoker": [True, None, False]}
    )
    assert schema.labels["job"] == ("a", "b", "(other)", "(missing)")
    np.testing.assert_array_equal(codes(frame, schema), [[1, 2, 1], [3, 0, 2], [2, 1, 0]])


def test_an_error_behind_missing_values_names_its_own_row():
    schema = Schema.from_dict({"age": {"edges": [0, 18], "missing": True}})
    frame = pd.DataFrame({"age": [np.nan, 3.0, np.nan, 19.0]})
    with pytest.raises(ValueError, match="between 0 and 18: row 7, column 'age' is not"):
        codes([frame.iloc[[0, 1, 2, 0]], frame], schema)


def test_clipping_is_asked_for_and_takes_finite_values_only():
    frame = pd.DataFrame({"income": [-5.0, 5.0, 1e300]})
    asked = Schema.from_dict({"income": {"bounds": [0, 10], "clip": True}})
    np.testing.assert_array_equal(codes(frame, asked), [[-1.0], [0.0], [1.0]])
    with pytest.raises(ValueError, match="between 0 and 10: row 0"):
        codes(frame, Schema.from_dict({"income": {"bounds": [0, 10]}}))
    with pytest.raises(ValueError, match="must be finite: row 0"):
        codes(pd.DataFrame({"income": [np.inf]}), asked)
