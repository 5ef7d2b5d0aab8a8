from dataclasses import replace
from itertools import pairwise

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geomdp.data import (
    BooleanColumn,
    CategoricalColumn,
    CsvFormat,
    DateColumn,
    NumericColumn,
    Schema,
    SkippedColumn,
    encode,
    infer_schema,
    read_chunks,
)
from geomdp.data.inference import INFERENCE_WARNING, round_edges

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
    schema = draft.schema.confirm()
    chunks = encode(read_chunks(path), schema, schema.universe())
    assert sum(len(chunk) for chunk in chunks) == len(FRAME)
    chosen = infer_schema(path, ["city"], max_categories=3, rows=rows)
    assert chosen.schema == EXPECTED.select(["city"])


def test_the_draft_says_that_it_is_not_private(tmp_path):
    FRAME.to_csv(tmp_path / "r.csv", index=False)
    warning = infer_schema(tmp_path / "r.csv").warning
    assert warning == INFERENCE_WARNING
    assert "no privacy guarantee" in warning


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a\n", "r.csv: a schema cannot be inferred from 0 rows"),
        ("a\nsecret1\nsecret2\nsecret3\n", "no column can be drafted; 'a': all different"),
        ("a\n1\n2\n2\nsecret\n", "no column can be drafted; 'a': texts"),
        ("a\n1\n2\n2\ninf\n", "no column can be drafted; 'a': texts"),
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
    assert schema.column("a").edges == (0, 2, 4)
    assert isinstance(schema.column("b"), BooleanColumn)


@pytest.mark.parametrize("value", ["secret\x1b[2J", "secret\u202e", "secret\u2028", "secret\x00"])
def test_values_with_control_characters_are_not_drafted_and_not_quoted(tmp_path, value):
    pd.DataFrame({"a": ["x", value]}).to_parquet(tmp_path / "r.parquet")
    with pytest.raises(ValueError, match="'a': values with control characters") as error:
        infer_schema(tmp_path / "r.parquet")
    assert "secret" not in str(error.value)


@pytest.mark.parametrize("values", [(1.0, 1 + 2**-52, 1 + 2**-51), (-1.7e308, 0.0, 1.7e308)])
def test_bins_that_float64_cannot_represent_are_refused_without_a_value(tmp_path, values):
    (tmp_path / "r.csv").write_text("a\n" + "\n".join(map(repr, values)) + "\n")
    with pytest.raises(ValueError, match="between which 10 bins cannot be told") as error:
        infer_schema(tmp_path / "r.csv", max_categories=2, bins=10)
    assert not any(repr(value) in str(error.value) for value in values)


# --- messy columns ------------------------------------------------------------------------------

#: Values of a column, and its drafted declaration.
MESSY = {
    "days": (["2024-02-29", "2025-01-01 10:00", ""], DateColumn(
        "a", ("2024-01-01", "2025-12-31"), "quarter", missing=True)),
    "days first": (["29/02/2024", "01/02/2024"], DateColumn(
        "a", ("2024-01-01", "2024-12-31"), "month", "dmy")),
    "months first": (["02/29/2024", "1/2/2010"], DateColumn(
        "a", ("2010-01-01", "2024-12-31"), "year", "mdy")),
    "decimal commas": (["1.234,5", "2,25", "900", "-"], NumericColumn(
        "a", (0, 1000, 2000), missing_texts=("-",), decimal=",", thousands=".")),
    "blanks in thousands": (["1 234", "999", "3 000,5"], NumericColumn(
        "a", (0, 2000, 4000), decimal=",", thousands=" ")),
    "commas in thousands": (["1,234", "2,999.5", "999"], NumericColumn(
        "a", (0, 2000, 4000), thousands=",")),
    "words": (["yes", "N", "", "No", "TRUE"], BooleanColumn("a", missing=True)),
    "oui": (["oui", "non", "NA"], BooleanColumn("a", missing_texts=("NA",))),
    "blanks and case": (["ENT", "surgery ", "Surgery"], CategoricalColumn(
        "a", ("ENT", "Surgery"), loose=True)),
    "words of many": (["oui", "non", "?", "ne sait pas"], None),
}  # fmt: skip


@pytest.mark.parametrize("rows", [1, 100])
@pytest.mark.parametrize("case", MESSY)
def test_messy_columns_are_drafted_and_read(tmp_path, case, rows):
    values, expected = MESSY[case]
    path = tmp_path / "r.csv"
    pd.DataFrame({"a": values, "b": ["x"] * len(values)}).to_csv(path, index=False)
    drafted = infer_schema(path, max_categories=2, bins=2, rows=rows)
    if expected is None:
        assert drafted.schema.skipped == (SkippedColumn("a", "all different: an identifier"),)
        return
    assert drafted.schema.column("a") == replace(expected, drafted=True)
    schema = drafted.schema.confirm()
    codes = next(encode(read_chunks(path, csv=schema.csv), schema, schema.universe()))[:, 0]
    missing = len(schema.column("a").labels) - 1 if schema.column("a").missing else -1
    assert ((codes == missing) == [value in ("", "-", "NA") for value in values]).all()


@pytest.mark.parametrize("separator", CsvFormat.SEPARATORS)
@pytest.mark.parametrize("encoding", [*CsvFormat.ENCODINGS, "utf-8-sig"])
def test_the_format_of_a_file_is_found(tmp_path, separator, encoding):
    city = "Köln" if encoding != "windows-1252" else "Köln €"
    frame = pd.DataFrame({"Größe": ["1;2|3", "4,5"] * 3, "b": [city, 'a "b"'] * 3})
    frame.to_csv(tmp_path / "r.csv", sep=separator, encoding=encoding, index=False)
    schema = infer_schema(tmp_path / "r.csv").schema
    assert schema.csv == CsvFormat(separator, encoding.removesuffix("-sig"))
    assert schema.column("b").categories == (city, 'a "b"')
    assert Schema.from_json(schema.to_json()) == schema


def test_every_decision_is_listed_in_the_order_of_the_file(tmp_path):
    texts = [f"t{i}" for i in range(2000)]
    frame = pd.DataFrame({"id": range(2000), "when": "2024-05-01", "note": "x", "hard": texts})
    frame.to_csv(tmp_path / "r.csv", index=False)
    found = infer_schema(tmp_path / "r.csv").decisions
    assert [(d.name, d.kind) for d in found] == [
        ("id", "skip"), ("when", "date"), ("note", "categorical"), ("hard", "skip")
    ]  # fmt: skip
    assert all(decision.drafted and decision.to_state for decision in found)


@given(
    st.floats(-1e12, 1e12), st.floats(1e-6, 1e12), st.integers(1, 40)
)  # fmt: skip
def test_round_edges_hold_all_numbers_in_about_so_many_bins(low, width, bins):
    high = low + width
    edges = round_edges(low, high, bins)
    if edges is None:
        assert width < 1e-9 * abs(low) + 1e-9
        return
    assert edges[0] <= low
    assert high <= edges[-1]
    assert bins / 3 <= len(edges) - 1 <= bins + 2
    assert len({f"{b - a:.6g}" for a, b in pairwise(edges)}) == 1 or width < 1e-5 * abs(low)
