import itertools
import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geomdp.data import BooleanColumn, CategoricalColumn, NumericColumn, RealColumn, Schema, encode
from geomdp.workloads import BooleanCube, CategoricalProduct, SymmetricCube, UnitBall
from geomdp.workloads.universes import FiniteUniverse

SCHEMA = Schema(
    (
        CategoricalColumn("region", ("north", "south", "3")),
        BooleanColumn("smoker"),
        NumericColumn("age", (0, 18, 65, 120)),
    )
)
FRAME = pd.DataFrame(
    {
        "other": ["p", None, "q", "r"],
        "age": [0, 18, 64.99, 120],
        "smoker": [True, False, False, True],
        "region": ["south", "3", "north", "south"],
    }
)
CODES = [[1, 1, 0], [2, 0, 1], [0, 0, 1], [1, 1, 2]]
REAL = Schema((RealColumn("x", (0, 10)), RealColumn("y", (-1, 3))))
SECRET = "s3cret"


def encode_all(records, schema, universe=None):
    """The codes of all chunks, by default for the universe of the schema."""
    return np.concatenate(list(encode(records, schema, universe or schema.universe())))


def test_codes_by_column_name():
    encoded = encode_all(FRAME, SCHEMA)
    assert encoded.dtype == np.int64
    np.testing.assert_array_equal(encoded, CODES)
    chosen = CategoricalProduct({"age": 3, "region": 3})
    np.testing.assert_array_equal(encode_all(FRAME, SCHEMA, chosen), np.array(CODES)[:, [2, 0]])


def test_reading_is_lazy():
    chunks = encode(itertools.repeat(FRAME), SCHEMA, SCHEMA.universe())
    np.testing.assert_array_equal([next(chunks), next(chunks)], [CODES, CODES])


def test_the_number_of_a_combination_is_the_universe_s_own():
    universe = FiniteUniverse(SCHEMA.universe().size)
    numbers = encode_all(FRAME, SCHEMA, universe)
    assert numbers.shape == (4,)
    for number, codes in zip(numbers, CODES, strict=True):
        np.testing.assert_array_equal(SCHEMA.universe().elements(number, number + 1)[0], codes)


def test_the_boolean_cube_takes_all_columns_in_order():
    schema = Schema((NumericColumn("age", (0, 40, 120)), BooleanColumn("smoker")))
    encoded = encode_all(FRAME, schema, BooleanCube(2))
    np.testing.assert_array_equal(encoded, [[0, 1], [0, 0], [1, 0], [1, 1]])


def test_reals_are_mapped_to_the_cube_and_the_ball():
    frame = pd.DataFrame({"y": [-1.0, 3, 1, 0], "x": [0, 10, 5, 2.5]})
    cube = np.array([[-1, -1], [1, 1], [0, 0], [-0.5, -0.5]])
    np.testing.assert_array_equal(encode_all(frame, REAL, SymmetricCube(2)), cube)
    ball = encode_all(frame, REAL, UnitBall(2))
    np.testing.assert_allclose(ball, cube / np.sqrt(2), rtol=1e-15)
    UnitBall(2).validate(ball)


@settings(max_examples=40)
@given(
    st.floats(-1e6, 1e6), st.floats(1e-6, 1e6), st.lists(st.floats(0, 1), min_size=1, max_size=20)
)
def test_reals_inside_their_bounds_stay_inside_the_cube(low, width, shares):
    high = low + width
    values = np.clip(low + np.array([0.0, *shares, 1.0]) * width, low, high)
    schema = Schema((RealColumn("x", (low, high)),))
    encoded = encode_all(pd.DataFrame({"x": values}), schema, SymmetricCube(1))[:, 0]
    SymmetricCube(1).validate(encoded[:, None])
    assert (encoded[0], encoded[-1]) == (-1, 1)
    assert (np.diff(encoded[np.argsort(values)]) >= 0).all()


@given(st.lists(st.integers(-50, 50), min_size=2, max_size=8, unique=True), st.data())
def test_bins_follow_their_definition(edges, data):
    edges = sorted(edges)
    values = data.draw(
        st.lists(st.floats(edges[0], edges[-1]) | st.sampled_from(edges), min_size=1, max_size=20)
    )
    schema = Schema((NumericColumn("x", tuple(edges)),))
    codes = encode_all(pd.DataFrame({"x": values}), schema)[:, 0]
    for value, code in zip(values, codes, strict=True):
        last = code == len(edges) - 2
        assert edges[code] <= value
        assert value < edges[code + 1] or (last and value == edges[code + 1])


def test_numbers_are_read_from_text_to_the_last_bit():
    # 0.1 + 0.2 is the next float above 0.3, so a parser that is off by one unit in the last place
    # would put a value into a wrong bin.
    schema = Schema((NumericColumn("x", (0, 0.3, 0.1 + 0.2, 1)),))
    texts = pd.DataFrame({"x": ["0.3", "0.30000000000000004", "0.29999999999999993", " 1e-1 "]})
    assert encode_all(texts, schema).ravel().tolist() == [1, 2, 0, 0]


@pytest.mark.parametrize(
    "values",
    [[3, 1], [3.0, 1.0], ["3", "1"], np.array([3, 1], dtype=np.uint8),
     pd.array([3, 1], dtype="Int64"), pd.Categorical(["3", "1"]),
     pd.array(["3", "1"], dtype="string"), np.array([3, "1"], dtype=object),
     np.array([3.0, np.int64(1)], dtype=object)],
    ids=lambda values: str(getattr(values, "dtype", type(values[0]).__name__)),
)  # fmt: skip
def test_dtypes_make_no_difference_to_categories(values):
    schema = Schema((CategoricalColumn("c", ("1", "2", "3")),))
    assert encode_all(pd.DataFrame({"c": values}), schema).tolist() == [[2], [0]]


def test_spellings_of_booleans():
    for values in ([True, False], [1, 0], [1.0, 0.0], ["1", "0"], ["true", "f"], ["OUI", "Nein"]):
        records = pd.DataFrame({"b": values})
        assert encode_all(records, Schema((BooleanColumn("b"),))).tolist() == [[1], [0]]


def test_equal_objects_of_different_meaning_are_kept_apart():
    # True == 1 == 1.0 with equal hashes. But True is in category "True", and 1 and 1.0 are in "1".
    schema = Schema((CategoricalColumn("c", ("1", "True", "1.5")),))
    frame = pd.DataFrame({"c": np.array([True, 1, "1.5", 1.0, 1.5], dtype=object)})
    np.testing.assert_array_equal(encode_all(frame, schema)[:, 0], [1, 0, 2, 0, 2])


WHOLE = Schema((*SCHEMA.columns, RealColumn("income", (0, 10))))
GOOD = {"region": "north", "smoker": "true", "age": "30", "income": "5"}


@pytest.mark.parametrize(
    ("column", "value", "wanted"),
    [
        ("region", SECRET, "one of the declared categories"),
        ("region", "North", "one of the declared categories"),
        ("region", None, "present"),
        ("smoker", SECRET, "true or false, yes or no, 0 or 1"),
        ("smoker", None, "present"),
        ("age", SECRET, "a number"),
        ("age", "nan", "a number"),
        ("age", None, "present"),
        ("age", "-0.001", "between 0 and 120"),
        ("age", "120.5", "between 0 and 120"),
        ("income", SECRET, "a number"),
        ("income", np.nan, "present"),
        ("income", "10.000001", "between 0 and 10"),
        ("income", True, "a number"),
        ("income", np.inf, "between 0 and 10"),
    ],
)
def test_errors_name_row_and_column_and_not_the_value(column, value, wanted):
    good = pd.DataFrame([GOOD] * 3)
    bad = pd.DataFrame([GOOD, GOOD | {column: value}, GOOD | {column: value}])
    with pytest.raises(ValueError, match=f"must be {wanted}: row 4, column '{column}'") as error:
        encode_all(iter([good, bad]), WHOLE.select([column]))
    assert SECRET not in str(error.value)
    assert error.value.__cause__ is None


@pytest.mark.parametrize(
    ("frame", "times"),
    [(FRAME.drop(columns="age"), 0), (pd.DataFrame([[1, 2]], columns=["age", "age"]), 2)],
)
def test_a_column_must_be_there_once(frame, times):
    with pytest.raises(ValueError, match=f"the column 'age' once, got {times} times"):
        encode_all(frame, SCHEMA.select(["age"]))


def test_records_must_be_frames():
    with pytest.raises(ValueError, match="records must be DataFrames, got ndarray"):
        encode_all([np.zeros((2, 3))], SCHEMA)


@pytest.mark.parametrize(
    ("schema", "universe", "message"),
    [
        (SCHEMA, CategoricalProduct({"region": 3, "z": 2}), "no column 'z'"),
        (SCHEMA, CategoricalProduct({"region": 4}), "must have 4 levels, the schema has 3"),
        (WHOLE, CategoricalProduct({"income": 4}), "'income' must be discrete .*, but it is real"),
        (SCHEMA, BooleanCube(3), "'region' must have 2 levels, the schema has 3"),
        (SCHEMA, BooleanCube(2), "one dimension per column of the schema, which has 3"),
        (WHOLE.select(["income"]), BooleanCube(1), "'income' must be discrete for this universe"),
        (SCHEMA, FiniteUniverse(17), "one element per combination of the columns .* are 18"),
        (WHOLE, FiniteUniverse(18), r"discrete columns only, not \['income'\]"),
        (REAL, SymmetricCube(3), "one dimension per column of the schema, which has 2"),
        (SCHEMA, SymmetricCube(3), "real columns only, not"),
        (WHOLE, UnitBall(4), "real columns only, not"),
    ],
)
def test_a_schema_that_does_not_fit_is_refused_before_reading(schema, universe, message):
    def unread():
        raise AssertionError("records were read")
        yield

    with pytest.raises(ValueError, match=message):
        encode(unread(), schema, universe)


def test_an_empty_frame_gives_no_records():
    assert encode_all(FRAME[:0], SCHEMA).shape == (0, 3)


# --- several bad values -------------------------------------------------------------------------


def test_several_bad_values_are_named_at_once():
    good, bad = pd.DataFrame([GOOD] * 3), pd.DataFrame([GOOD] * 3)
    bad.loc[1, ["region", "age"]] = [SECRET, None]
    bad.loc[2, ["region", "smoker"]] = [SECRET, SECRET]
    with pytest.raises(ValueError, match="records must be") as error:
        encode_all([good, bad, bad], SCHEMA)  # of the first chunk that has one
    counted = "(rows are counted from 0, without the header)"
    lines = str(error.value).split("\n")
    assert [line.partition(counted)[0] for line in lines] == [
        "records must be one of the declared categories: row 4, column 'region' is not, nor is "
        "row 5 ",
        "records must be present: row 4, column 'age' is not ",
        "records must be true or false, yes or no, 0 or 1: row 5, column 'smoker' is not ",
    ]
    assert [re.search(r'"[a-z_]+"', line)[0] for line in lines] == [
        '"other"', '"missing"', '"missing_texts"'
    ]  # fmt: skip


def test_no_more_bad_values_are_named_than_stated():
    frame = pd.DataFrame({"region": ["north", *[SECRET] * 30]})
    with pytest.raises(ValueError, match="row 1, column 'region' is not") as error:
        encode_all(frame, WHOLE.select(["region"]))
    assert "nor are rows 2, 3, 4 and 5 (" in str(error.value)
    assert "without the header; at least 30 in all)" in str(error.value)


def test_nan_is_missing_in_columns_of_every_type():
    ratio = pd.Series([1.0, 0.0, 0.5], dtype="Float64")
    held = pa.chunked_array([pa.array([1.0, float("nan"), 0.5])])
    # 0 / 0 is NaN, which pandas may tell apart from NA.
    for values in (ratio * (ratio / ratio), pd.Series(pd.arrays.ArrowExtensionArray(held))):
        frame = pd.DataFrame({"x": values})
        for column in (NumericColumn("x", (0.0, 0.6, 1.0)), RealColumn("x", (0.0, 1.0))):
            with pytest.raises(ValueError, match="must be present: row 1, column 'x' is not"):
                encode_all(frame, Schema((column,)))
        declared = Schema((NumericColumn("x", (0.0, 0.6, 1.0), missing=True),))
        assert encode_all(frame, declared).ravel().tolist() == [1, 2, 0]


@pytest.mark.parametrize(
    "value", [None, float("nan"), pd.NA, pd.NaT, np.datetime64("NaT"), np.timedelta64("NaT")]
)
def test_every_object_for_a_missing_value_is_missing(value):
    frame = pd.DataFrame({"x": pd.Series(["a", value, "b"], dtype=object)})
    schema = Schema((CategoricalColumn("x", ("a",), other=True, missing=True),))
    (codes,) = encode(frame, schema, FiniteUniverse(3))
    assert codes.tolist() == [0, 2, 1]


# --- schemas from types of data frames, and codes of missing and other values ------------------

TYPED = pd.DataFrame(
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


def test_pandas_types_declare_a_schema_that_encodes_the_frame():
    schema = Schema.from_dtypes(TYPED.iloc[:0])  # no value is looked at
    assert schema == DECLARED
    np.testing.assert_array_equal(encode_all(TYPED, schema), [[1, 1, 0, 1], [0, 0, 1, 0]])


def test_polars_types_declare_a_schema_that_encodes_the_frame():
    region = pl.Series(["south", None], dtype=pl.Enum(["north", "south"]))
    frame = pl.DataFrame({"region": region, "smoker": [True, None]})
    schema = Schema.from_dtypes(frame, missing=["region", "smoker"])
    assert schema.labels == {
        "region": ("north", "south", "(missing)"),
        "smoker": ("false", "true", "(missing)"),
    }
    np.testing.assert_array_equal(encode_all(frame, schema), [[1, 1], [2, 2]])
    np.testing.assert_array_equal(encode_all([frame, frame[:1]], schema), [[1, 1], [2, 2], [1, 1]])


@pytest.mark.parametrize(
    ("frame", "missing", "message"),
    [
        (pd.DataFrame({"x": ["a", "b"]}), [], "column 'x' of type .* declares no categories"),
        (pd.DataFrame({"x": [1, 2]}), [], "column 'x' of type .* declares no categories"),
        (pd.DataFrame({"x": pd.to_datetime(["2020-01-01"])}), [], "declares no categories"),
        # Polars reads these categories off the records.
        (pl.DataFrame({"x": pl.Series(["a"], dtype=pl.Categorical)}), [], "declares no categories"),
        (pd.DataFrame(np.zeros((2, 2), dtype=bool)), [], r"must have texts as names, got \[0, 1\]"),
        (TYPED, ["x"], r"missing must list columns of the frame, .* got \['x'\]"),
    ],
)
def test_types_that_declare_nothing_are_refused(frame, missing, message):
    with pytest.raises(ValueError, match=message):
        Schema.from_dtypes(frame, missing=missing)


def test_missing_and_other_values_have_codes_of_their_own():
    schema = Schema.from_dict(
        {
            "job": {"categories": ["a", "b"], "other": True, "missing": True},
            "age": {"edges": [0, 18, 65], "missing": True},
            "smoker": {"missing": True},
        }
    )
    ages = [np.nan, 17.0, 65.0]
    frame = pd.DataFrame({"job": ["b", None, "z"], "age": ages, "smoker": [True, None, False]})
    assert schema.labels["job"] == ("a", "b", "(other)", "(missing)")
    np.testing.assert_array_equal(encode_all(frame, schema), [[1, 2, 1], [3, 0, 2], [2, 1, 0]])


def test_clipping_is_asked_for_and_takes_finite_values_only():
    frame = pd.DataFrame({"income": [-5.0, 5.0, 1e300]})
    asked = Schema.from_dict({"income": {"bounds": [0, 10], "clip": True}})
    np.testing.assert_array_equal(encode_all(frame, asked), [[-1.0], [0.0], [1.0]])
    with pytest.raises(ValueError, match="between 0 and 10: row 0"):
        encode_all(frame, Schema.from_dict({"income": {"bounds": [0, 10]}}))
    with pytest.raises(ValueError, match="must be finite: row 0"):
        encode_all(pd.DataFrame({"income": [np.inf]}), asked)
