import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geomdp.data import (
    BooleanColumn,
    CategoricalColumn,
    NumericColumn,
    RealColumn,
    Schema,
)
from geomdp.workloads import CategoricalProduct, MarginalTables, SymmetricCube

EXAMPLE = Schema(
    (
        CategoricalColumn("region", ("north", "south", "east")),
        BooleanColumn("smoker"),
        NumericColumn("age", (0, 18, 65, 120)),
        RealColumn("income", (0, 200_000)),
    )
)

finite = st.floats(allow_nan=False, allow_infinity=False, width=32)
names = st.text(min_size=1, max_size=8)


@st.composite
def columns(draw):
    name = draw(names)
    kind = draw(st.integers(0, 3))
    if kind == 0:
        texts = draw(st.lists(st.text(max_size=5), min_size=1, max_size=6, unique=True))
        return CategoricalColumn(name, tuple(texts))
    if kind == 1:
        return BooleanColumn(name)
    edges = sorted(draw(st.lists(finite, min_size=2, max_size=6, unique=True)))
    if kind == 2:
        return NumericColumn(name, tuple(edges))
    return RealColumn(name, (edges[0], edges[-1]))


@given(st.lists(columns(), min_size=1, max_size=6, unique_by=lambda column: column.name))
def test_a_schema_survives_its_file(declared):
    schema = Schema(tuple(declared))
    assert Schema.from_json(schema.to_json()) == schema
    assert hash(Schema.from_json(schema.to_json())) == hash(schema)


def test_the_documented_example():
    text = """{"format": "geomdp schema", "version": 1, "columns": [
        {"name": "region", "kind": "categorical", "categories": ["north", "south", "east"]},
        {"name": "smoker", "kind": "boolean"},
        {"name": "age", "kind": "numeric", "edges": [0, 18, 65, 120]},
        {"name": "income", "kind": "real", "bounds": [0, 200000]}]}"""
    assert Schema.from_json(text) == EXAMPLE


def test_labels_and_levels():
    assert EXAMPLE.names == ("region", "smoker", "age", "income")
    assert EXAMPLE.labels == {
        "region": ("north", "south", "east"),
        "smoker": ("false", "true"),
        "age": ("[0, 18)", "[18, 65)", "[65, 120]"),
    }
    assert EXAMPLE.levels == {"region": 3, "smoker": 2, "age": 3}
    assert MarginalTables(EXAMPLE.levels, 2).n_queries == 3 * 2 + 3 * 3 + 2 * 3


def test_the_universe_of_a_schema():
    assert EXAMPLE.select(["age", "smoker"]).universe() == CategoricalProduct(
        {"age": 3, "smoker": 2}
    )
    assert EXAMPLE.select(["income"]).universe() == SymmetricCube(1)
    with pytest.raises(ValueError, match=r"real columns \['income'\] and .* \['region', 'smoker'"):
        EXAMPLE.universe()


def test_whole_numbers_are_categories_by_their_digits():
    assert CategoricalColumn("c", (3, "x", np.int64(-1))).categories == ("3", "x", "-1")
    with pytest.raises(ValueError, match=r"categories must differ, \['3'\] do not"):
        CategoricalColumn("c", (3, "3"))


@pytest.mark.parametrize("name", ["", None, 3])
def test_names_are_checked(name):
    for build in (
        BooleanColumn,
        lambda name: CategoricalColumn(name, ("a",)),
        lambda name: NumericColumn(name, (0, 1)),
        lambda name: RealColumn(name, (0, 1)),
    ):
        with pytest.raises(ValueError, match="name must be text"):
            build(name)


@pytest.mark.parametrize("categories", [(), "abc", None, (1.5,), (True,), (None,), ({},)])
def test_categories_are_checked(categories):
    with pytest.raises(ValueError, match="column 'c': "):
        CategoricalColumn("c", categories)


BAD_NUMBERS = [(), (1,), (1, 1), (2, 1), (0, math.nan), (0, math.inf), ("0", "1"), (False, True), 5]


@pytest.mark.parametrize("edges", [*BAD_NUMBERS, (0, 2, 1), "01"])
def test_edges_are_checked(edges):
    with pytest.raises(ValueError, match="column 'c': edges must be"):
        NumericColumn("c", edges)


@pytest.mark.parametrize("bounds", [*BAD_NUMBERS, (0, 1, 2), (-1.7e308, 1.7e308)])
def test_bounds_are_checked(bounds):
    with pytest.raises(ValueError, match="column 'c': bounds must be"):
        RealColumn("c", bounds)


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
        ("[]", "an object with the keys"),
        ("{}", "an object with the keys"),
        (document(more=1), "an object with the keys"),
        (document(version=2), "version 1, got 'geomdp schema', 2"),
        (document(format="x"), "got 'x', 1"),
        (document(columns={}), "columns must be a list"),
        (document(), "at least 1 column"),
        (document(7), "column number 0 must be an object with name and kind"),
        (document({"name": "a"}), "column number 0 must be an object with name and kind"),
        (document({"name": "a", "kind": "date"}), "column 'a': kind must be one of"),
        (document({"name": "a", "kind": []}), "column 'a': kind must be one of"),
        (document({"name": "a", "kind": "real"}), "column 'a': kind 'real' must have the keys"),
        (
            document({"name": "a", "kind": "boolean", "bins": 3}),
            "column 'a': kind 'boolean' must have the keys",
        ),
        (
            document({"name": "a", "kind": "numeric", "edges": [0, math.nan]}),
            "column 'a': edges must be finite numbers, got nan",
        ),
        (document({"name": 3, "kind": "boolean"}), "name must be text"),
    ],
)
def test_files_are_checked(text, message):
    with pytest.raises(ValueError, match=message):
        Schema.from_json(text)
