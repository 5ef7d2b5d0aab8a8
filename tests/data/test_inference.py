import pandas as pd
import pytest

from geomdp.data import (
    INFERENCE_WARNING,
    BooleanColumn,
    CategoricalColumn,
    NumericColumn,
    Schema,
    encode,
    infer_schema,
    read_chunks,
)

FRAME = pd.DataFrame(
    {
        "flag": [0, 1, 1, 0, 1, 0],
        "truth": [True, False, True, True, False, False],
        "size": ["10", "9", "10", "11", "9", "9"],
        "city": ["b", "a", "c", "b", "a", "a"],
        "weight": [1.0, 2.5, 5.0, 3.0, 4.0, 4.5],
    }
)
EXPECTED = Schema(
    (
        BooleanColumn("flag", drafted=True),
        BooleanColumn("truth", drafted=True),
        CategoricalColumn("size", ("9", "10", "11"), drafted=True),
        CategoricalColumn("city", ("a", "b", "c"), drafted=True),
        NumericColumn("weight", (1, 2, 3, 4, 5), drafted=True),
    )
)


@pytest.mark.parametrize("rows", [1, 4, 100])
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_schema_is_drafted_and_fits_its_records(tmp_path, ending, rows):
    path = tmp_path / f"r.{ending}"
    if ending == "csv":
        FRAME.to_csv(path, index=False)
    else:
        FRAME.to_parquet(path)
    draft = infer_schema(path, max_categories=3, bins=4, rows=rows)
    assert draft.schema == EXPECTED
    universe = draft.schema.confirm().universe()
    chunks = encode(read_chunks(path), draft.schema, universe)
    assert sum(len(chunk) for chunk in chunks) == len(FRAME)
    chosen = infer_schema(path, ["city"], max_categories=3, rows=rows)
    assert chosen.schema == EXPECTED.select(["city"])


def test_the_draft_says_that_it_is_not_private(tmp_path):
    FRAME.to_csv(tmp_path / "r.csv", index=False)
    warning = infer_schema(tmp_path / "r.csv").warning
    assert warning == INFERENCE_WARNING
    assert "no privacy guarantee" in warning


def test_a_constant_column_is_categorical(tmp_path):
    (tmp_path / "r.csv").write_text("a,b\n5,1\n5,1\n")
    schema = infer_schema(tmp_path / "r.csv").schema
    assert schema == Schema.from_dict(
        {"a": {"categories": ["5"], "drafted": True}, "b": {"drafted": True}}
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a\n", "r.csv: a schema cannot be inferred from 0 rows"),
        ("a,b\n1,2\n1,\n", "row 1, column 'b' is not"),
        ("a\nsecret1\nsecret2\nsecret3\n", "column 'a' has more than 2 distinct values"),
        ("a\n1\n2\n3\nsecret\n", "column 'a' has more than 2 distinct values"),
        ("a\n1\n2\n3\ninf\n", "some are not finite numbers"),
    ],
)
def test_what_cannot_be_drafted_is_refused(tmp_path, content, message):
    (tmp_path / "r.csv").write_text(content)
    with pytest.raises(ValueError, match=message) as error:
        infer_schema(tmp_path / "r.csv", max_categories=2, rows=2)
    assert "secret" not in str(error.value)


def test_a_column_is_boolean_only_if_every_chunk_is(tmp_path):
    """Texts stop being kept above `max_categories`, but not while all of them are boolean."""
    (tmp_path / "r.csv").write_text("a,b\n0,0\n1,1\n2.5,true\n3,FALSE\n")
    schema = infer_schema(tmp_path / "r.csv", max_categories=1, bins=2, rows=2).schema
    assert schema.column("a").edges == (0, 1.5, 3)
    assert isinstance(schema.column("b"), BooleanColumn)


@pytest.mark.parametrize("value", ["secret\x1b[2J", "secret\u202e", "secret\u2028", "secret\x00"])
def test_values_with_control_characters_are_not_drafted_and_not_quoted(tmp_path, value):
    pd.DataFrame({"a": ["x", value]}).to_parquet(tmp_path / "r.parquet")
    with pytest.raises(ValueError, match="'a' has values with control characters") as error:
        infer_schema(tmp_path / "r.parquet")
    assert "secret" not in str(error.value)


@pytest.mark.parametrize("option", ["max_categories", "bins"])
@pytest.mark.parametrize("value", [0, 1.5])
def test_options_are_checked(tmp_path, option, value):
    with pytest.raises(ValueError, match=f"{option} must be a whole number"):
        infer_schema(tmp_path / "r.csv", **{option: value})


@pytest.mark.parametrize("values", [(1.0, 1 + 2**-52, 1 + 2**-51), (-1.7e308, 0.0, 1.7e308)])
def test_bins_that_float64_cannot_represent_are_refused_without_a_value(tmp_path, values):
    (tmp_path / "r.csv").write_text("a\n" + "\n".join(map(repr, values)) + "\n")
    with pytest.raises(ValueError, match="float64 cannot represent 10 bins") as error:
        infer_schema(tmp_path / "r.csv", max_categories=2, bins=10)
    assert not any(repr(value) in str(error.value) for value in values)
