"""Schemas: their file format, drafts from records, and the bundled samples."""

import json
import math
import re
import sys
from dataclasses import fields, replace
from functools import partial
from importlib.resources import files
from itertools import pairwise

import jsonschema
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import geomdp.data.schema as format_of_schemas
from geomdp.data import (
    BooleanColumn,
    CategoricalColumn,
    CsvFormat,
    DateColumn,
    NumericColumn,
    RealColumn,
    Schema,
    SkippedColumn,
    encode,
    fair_affairs,
    infer_schema,
    rand_health_insurance,
    read_chunks,
)
from geomdp.data.columns import Calendar, DayOrder, is_shown
from geomdp.data.inference import round_edges
from geomdp.workloads import SymmetricCube

EXAMPLE = Schema(
    (
        CategoricalColumn("region", ("north", "south", "east")),
        BooleanColumn("smoker"),
        NumericColumn("age", (0, 18, 65, 120)),
        RealColumn("income", (0, 200_000)),
    )
)

finite = st.floats(allow_nan=False, allow_infinity=False, width=32)
#: Letters of several scripts, and what JSON writes in its own way.
characters = "aZ09 _.,-$\"'\\/{}[]éß北תनाًس\u00a0\u200d👩"
names = st.text(characters, min_size=1, max_size=8)


@st.composite
def columns(draw):
    name = draw(names)
    kind = draw(st.integers(0, 4))
    if kind == 0:
        texts = draw(st.lists(st.text(characters, max_size=5), min_size=1, max_size=6, unique=True))
        return CategoricalColumn(name, tuple(texts))
    text = {"missing": True, "missing_texts": ["-"]}
    missing = draw(st.sampled_from([{}, {"missing": True}, text]))
    if kind == 1:
        return BooleanColumn(name, **missing)
    if kind == 4:
        days = sorted(draw(st.lists(st.dates(), min_size=2, max_size=2)))
        by, order = draw(st.sampled_from([*Calendar])), draw(st.sampled_from([*DayOrder]))
        return DateColumn(name, days, by, order, **missing)
    marks = draw(st.sampled_from([{}, {"decimal": ",", "thousands": " "}, {"thousands": "'"}]))
    edges = sorted(draw(st.lists(finite, min_size=2, max_size=6, unique=True)))
    if kind == 2:
        return NumericColumn(name, tuple(edges), **missing, **marks)
    return RealColumn(name, (edges[0], edges[-1]), **marks)


formats = st.builds(
    CsvFormat, st.sampled_from(CsvFormat.SEPARATORS), st.sampled_from(CsvFormat.ENCODINGS)
)


@settings(max_examples=50)
@given(st.lists(columns(), min_size=2, max_size=6, unique_by=lambda column: column.name), formats)
def test_a_schema_survives_its_file(declared, csv):
    skipped = SkippedColumn(declared[0].name, "free text")
    schema = Schema(tuple(declared[1:]), (skipped,), csv)
    assert Schema.from_json(schema.to_json()) == schema
    assert Schema.from_dict(schema.to_dict()) == schema
    assert Schema.from_dict(schema.to_dict()["columns"]) == replace(schema, csv=CsvFormat())
    assert PUBLISHED.is_valid(schema.to_dict())
    assert hash(Schema.from_json(schema.to_json())) == hash(schema)
    entries = [{"name": column.name, **column.to_dict()} for column in schema.columns]
    assert Schema.from_json(document(*entries)) == Schema(schema.columns)  # of version 1


def test_the_documented_example():
    text = re.search(r"    \{\n.*?\n    \}", format_of_schemas.__doc__, re.DOTALL)[0]
    schema = Schema.from_json(text)
    assert schema.names == (*EXAMPLE.names[:3], "admitted", "income")
    assert [column.name for column in schema.skipped] == ["note"]
    assert Schema.from_json(schema.to_json()) == schema


def test_labels_levels_and_universe():
    assert EXAMPLE.labels == {
        "region": ("north", "south", "east"),
        "smoker": ("false", "true"),
        "age": ("[0, 18)", "[18, 65)", "[65, 120]"),
    }
    assert EXAMPLE.levels == {"region": 3, "smoker": 2, "age": 3}
    assert EXAMPLE.select(["age", "smoker"]).universe().columns == {"age": 3, "smoker": 2}
    assert EXAMPLE.select(["income"]).universe() == SymmetricCube(1)
    with pytest.raises(ValueError, match=r"real columns \['income'\] and .* \['region', 'smoker'"):
        EXAMPLE.universe()


def test_whole_numbers_are_categories_by_their_digits():
    assert CategoricalColumn("c", (3, "x", np.int64(-1))).categories == ("3", "x", "-1")
    with pytest.raises(ValueError, match=r"categories must differ, \['3'\] do not"):
        CategoricalColumn("c", (3, "3"))


BAD_CATEGORIES = [(), "abc", None, (1.5,), (True,), (None,), ({},)]
BAD_NUMBERS = [(), (1,), (1, 1), (2, 1), (0, math.nan), (0, math.inf), ("0", "1"), (False, True), 5]


@pytest.mark.parametrize(
    ("build", "wrong", "message"),
    [
        (BooleanColumn, ["", None, 3], "name must be text"),
        (partial(CategoricalColumn, "c"), BAD_CATEGORIES, "column 'c': "),
        (partial(NumericColumn, "c"), [*BAD_NUMBERS, (0, 2, 1), "01"], "'c': edges must be"),
        (partial(RealColumn, "c"), [*BAD_NUMBERS, (0, 1, 2), (-1.7e308, 1.7e308)], "'c': bounds"),
    ],
    ids=["name", "categories", "edges", "bounds"],
)
def test_parameters_of_columns_are_checked(build, wrong, message):
    for value in wrong:
        with pytest.raises(ValueError, match=message):
            build(value)


def test_columns_of_a_schema_are_checked():
    with pytest.raises(ValueError, match="at least 1 column"):
        Schema(())
    with pytest.raises(ValueError, match=r"each column once, \['a'\] occur more often"):
        Schema((BooleanColumn("a"), BooleanColumn("b"), RealColumn("a", (0, 1))))
    with pytest.raises(ValueError, match="no column 'z', it has"):
        EXAMPLE.select(["age", "z"])


def document(*entries, **replaced):
    return json.dumps({"format": "geomdp schema", "version": 1, "columns": entries} | replaced)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "a schema must be JSON"),
        ("[]", "a schema must be an object; write"),
        ("{}", "at least 1 column"),
        (document(more=1), "no other keys but csv, .*, got .* and the keys .*'more'"),
        (document(version=2), "got format 'geomdp schema', version 2"),
        (document(version=3, columns={}), "got format 'geomdp schema', version 3"),
        (document(format="x"), "got format 'x', version 1"),
        (document(columns={}), "got format 'geomdp schema', version 1"),
        ('{"version": 2, "columns": {}}', "got format None, version 2"),
        ('{"a": ["x"], "a": ["y"]}', r"each key must occur once in an object, \['a'\]"),
        (document(7), "column number 0 must be an object with name and kind"),
        (document({"kind": "real"}), "column number 0 must be an object with name and kind"),
        (document({"name": "a", "kind": []}), "column 'a' must be declared .* kind is one of"),
        (document({"name": "a", "kind": "real"}), "column 'a': kind 'real' must have the keys"),
        (document({"name": 3, "kind": "boolean"}), "name must be text"),
    ],
)
def test_files_are_checked(text, message):
    with pytest.raises(ValueError, match=message):
        Schema.from_json(text)


def test_all_faults_of_a_file_come_together_each_with_the_line_to_write():
    age = {"edges": [2, 1], "bins": 3, "missing": "yes"}
    with pytest.raises(ValueError, match="bins") as error:
        Schema.from_dict({"good": bool, "age": age, "birth": {"kind": "date"}, "income": 5})
    lines = str(error.value).splitlines()
    names = [line.partition(":")[0].partition(" must")[0] for line in lines]
    assert names == [*["column 'age'"] * 3, "column 'birth'", "column 'income'"]
    for line in lines:
        written = re.search(r"write (?:for example )?(\".*?\}|.*?\})", line)[1]
        assert Schema.from_json("{" + written + "}").names[0] in line


def test_columns_may_be_called_like_keys_of_the_format():
    names = ["name", "kind", "format", "version", "columns", "drafted", "$schema"]
    schema = Schema.from_dict({name: ["a", "b"] for name in names})
    assert schema.names == tuple(names)
    assert Schema.from_json(schema.to_json()) == schema


CONTROLS = ["\x1b[31m", *"\0\n\u2028\u2029\x85\ud800\u202e\u2066\u202a"]


@pytest.mark.parametrize("text", CONTROLS, ids=ascii)
def test_names_and_labels_with_control_characters_are_refused(text):
    for columns in ({f"a{text}b": bool}, {"a": [f"x{text}"]}):
        with pytest.raises(ValueError, match=r"must have no control character, got '[ax]") as error:
            Schema.from_dict(columns)
        assert is_shown(str(error.value))


def test_a_mark_is_kept_until_it_is_confirmed():
    region = {"categories": ["a"], "missing": True, "drafted": True}
    age = {"edges": [0, 1], "drafted": True}
    schema = Schema.from_dict({"region": region, "age": age, "sex": ["f", "m"]})
    said = "categories and missing values of region, edges of age were read from the records"
    assert schema.caveat == said
    assert schema.select(["sex"]).caveat == ""
    one = schema.confirm("age")
    assert one.caveat == "categories and missing values of region were read from the records"
    assert one.column("age") == NumericColumn("age", (0, 1), confirmed=True)
    assert schema.confirm().caveat == ""
    assert schema.confirm().column("sex") == schema.column("sex")
    with pytest.raises(ValueError, match="no column 'z'"):
        schema.confirm("z")
    with pytest.raises(ValueError, match="either drafted or confirmed"):
        BooleanColumn("x", drafted=True, confirmed=True)
    many = Schema(tuple(BooleanColumn(f"c{i}", drafted=True) for i in range(12)))
    assert many.caveat.endswith("levels of c9, 2 more were read from the records")


#: The format for editors.
PUBLISHED = jsonschema.Draft202012Validator(
    json.loads(files("geomdp.data").joinpath("schema.schema.json").read_text("utf-8"))
)


def test_the_published_format_has_the_keys_of_the_code():
    """The format for editors names the kinds of the code, and for each kind the same keys."""
    kinds = {"skip": ({"reason"}, {"kind"})}
    for kind, column in format_of_schemas._KINDS.items():
        keys = {each.name for each in fields(column)} - {"name"}
        kinds[kind] = keys - {column.key}, {column.key} - {""}
    published = {
        entry["properties"]["kind"]["const"]: (
            set(entry["properties"]) - {"kind"} - set(entry.get("required", [])),
            set(entry.get("required", [])),
        )
        for entry in PUBLISHED.schema["$defs"].values()
        if entry.get("type") == "object"
    }
    assert published == kinds
    version = PUBLISHED.schema["properties"]["version"]["const"]
    assert version == format_of_schemas.VERSION


@pytest.mark.parametrize(
    "declaration",
    [5, [], ["a", "a"], [1.5], {"kind": "date"}, {"edges": [0]}, {"edges": ["0", "1"]},
     {"edges": [0, 1], "bounds": [0, 1]}, {"edges": [0, 1], "clip": True}, {"bounds": [0, 1, 2]},
     {"bounds": [0, 1], "missing": True}, {"missing": 1}, {"kind": "numeric"},
     {"categories": ["a"], "name": "b"}, {"edges": [0, 1], "name": "y"}, {"kind": "real"},
     {"edges": [0, 1], "other": True}, {"bounds": [0, 1], "clip": "yes"}, "north"],
)  # fmt: skip
def test_the_published_format_refuses_what_the_code_refuses(declaration):
    document = {"format": "geomdp schema", "version": 2, "columns": {"x": declaration}}
    with pytest.raises(ValueError, match="'x'"):
        Schema.from_dict(document)
    assert not PUBLISHED.is_valid(document)


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
    getattr(FRAME, f"to_{ending}")(path, index=False)
    assert infer_schema(path, max_categories=3, bins=4, rows=rows).schema == EXPECTED
    schema = EXPECTED.confirm()
    chunks = encode(read_chunks(path), schema, schema.universe())
    assert sum(len(chunk) for chunk in chunks) == len(FRAME)
    chosen = infer_schema(path, ["city"], max_categories=3, rows=rows)
    assert chosen.schema == EXPECTED.select(["city"])


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
    "truth in the first chunk": (["0", "1", "2.5", "3"], NumericColumn("a", (0, 2, 4))),
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


@pytest.mark.parametrize(
    ("separator", "encoding"),
    [*zip(CsvFormat.SEPARATORS, [*CsvFormat.ENCODINGS, "utf-8-sig"], strict=True)],
)
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


@given(st.floats(-1e12, 1e12), st.floats(1e-6, 1e12), st.integers(1, 40))
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


SAMPLES = [(rand_health_insurance, 20_190, 10), (fair_affairs, 6_366, 9)]


@pytest.mark.parametrize(("load", "rows", "columns"), SAMPLES)
def test_every_record_fits_the_declared_schema(load, rows, columns):
    sample = load()
    assert sample.frame.shape == (rows, columns)
    assert list(sample.frame.columns) == list(sample.schema.names)
    universe = sample.schema.universe()
    (codes,) = encode(sample.frame, sample.schema, universe)
    assert codes.shape == (rows, columns)
    for name, column in zip(universe.names, codes.T, strict=True):
        counts = np.bincount(column, minlength=universe.columns[name])
        # Every declared level occurs in some record. Other levels would be harmless, but useless.
        assert (counts > 0).all(), name


@pytest.mark.parametrize("load", [rand_health_insurance, fair_affairs])
def test_a_missing_statsmodels_names_the_extra(monkeypatch, load):
    for name in [name for name in sys.modules if name.split(".")[0] == "statsmodels"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "statsmodels", None)
    with pytest.raises(ImportError, match=r"geomdp\[samples\]"):
        load()
