"""What records cannot be: how it is declared, and that records that break it are refused."""

import itertools
import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import geomdp as gd
from geomdp.data import possible
from geomdp.workloads.universes import FiniteUniverse

PLAIN = gd.data.Schema.from_dict(
    {
        "region": ["north", "south"],
        "county": ["A", "B", "C"],
        "smoker": ["never", "former", "current"],
        "daily": ["none", "1-9", "10+"],
        "age": {"edges": [0, 18, 65, 120]},
    }
)
SKIP = [
    {"smoker": ["never", "former"], "daily": ["1-9", "10+"]},
    {"smoker": ["current"], "daily": ["none"]},
]
NESTED = {"county": {"region": {"north": ["A", "B"], "south": ["C"]}}}
SCHEMA = PLAIN.declare(impossible=SKIP, refines=NESTED)


def frame(rng, n=40):
    """Records that SCHEMA allows."""
    county, smoker = rng.choice(list("ABC"), n), rng.choice(["never", "former", "current"], n)
    return pd.DataFrame(
        {
            "region": np.where(county == "C", "south", "north"),
            "county": county,
            "smoker": smoker,
            "daily": np.where(smoker == "current", rng.choice(["1-9", "10+"], n), "none"),
            "age": rng.integers(0, 120, n),
        }
    )


def spoilt(rng):
    """The same, but rows 3 and 31 smoke without being smokers, and row 7 is in a wrong region."""
    records = frame(rng).astype(object)
    records.loc[[3, 31], ["smoker", "daily"]] = ["never", "10+"]
    records.loc[7, ["region", "county"]] = ["south", "A"]
    return records.assign(age=records.age.astype(int))


def allowed(labels, combination):
    """Whether a combination is possible, by the words of the declarations alone."""
    one = dict(zip(labels, combination, strict=True))
    skipped = one["daily"] == "none"
    north = one["county"] in "AB"
    return skipped == (one["smoker"] != "current") and north == (one["region"] == "north")


def test_declarations_survive_their_file():
    text = SCHEMA.to_json()
    assert gd.data.Schema.from_json(text) == SCHEMA != PLAIN
    assert hash(gd.data.Schema.from_json(text)) == hash(SCHEMA)
    assert gd.data.Schema.from_dict(SCHEMA.to_dict()) == SCHEMA
    document = json.loads(text)
    assert document["impossible"] == SKIP
    assert document["refines"] == NESTED
    assert PLAIN.to_json() == gd.data.Schema(PLAIN.columns).to_json()
    assert SCHEMA.confirm() == SCHEMA


def test_a_selection_keeps_what_is_declared_about_its_columns():
    chosen = SCHEMA.select(["smoker", "region", "daily"])
    assert (len(chosen.impossible), chosen.refines) == (2, ())
    assert SCHEMA.select(["county", "region"]).impossible == ()
    assert SCHEMA.select(["county", "region"]).refines == SCHEMA.refines


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ({"impossible": [{"smoker": ["never"]}]}, "at least 2 columns"),
        ({"impossible": ["smoker"]}, "at least 2 columns"),
        ({"impossible": [{"smoker": ["x"], "daily": ["none"]}]}, r"levels of 'smoker' .*\['x'\]"),
        ({"impossible": [{"smoker": "never", "daily": ["none"]}]}, "different levels of 'smoker'"),
        ({"impossible": [{"smoker": [], "daily": ["none"]}]}, "different levels of 'smoker'"),
        ({"impossible": [{"colour": ["red"], "daily": ["none"]}]}, "discrete columns .*'colour'"),
        ({"refines": {"county": {"region": {"north": ["A"]}}}}, r"\['B', 'C'\] left out"),
        ({"refines": {"county": {"county": {"A": ["A"], "B": ["B"], "C": ["C"]}}}}, "twice"),
        ({"refines": {"county": {"region": {"north": ["A", "B"], "south": ["A", "C"]}}}},
         "every level of 'county' once, .* got A twice"),
        ({"refines": {"county": "region"}}, "must be written"),
        ({"refines": {"county": {"region": {"west": ["A", "B", "C"]}}}}, "levels of 'region'"),
        ({"refines": {"town": {"region": {"north": ["A"]}}}}, "discrete columns .*'town'"),
    ],
)  # fmt: skip
def test_wrong_declarations_are_refused(declared, message):
    with pytest.raises(ValueError, match=message):
        PLAIN.declare(**declared)
    with pytest.raises(ValueError, match=message):
        gd.data.Schema.from_dict(PLAIN.to_dict() | declared)


def test_what_is_impossible_is_a_list_in_a_file():
    for given in ({}, "", None, {"smoker": ["never"]}):
        with pytest.raises(ValueError, match="impossible must be a list, got"):
            gd.data.Schema.from_dict(PLAIN.to_dict() | {"impossible": given})


def test_columns_without_a_possible_combination_are_refused_when_they_are_used():
    levels = {"smoker": ["never", "former", "current"], "daily": ["none", "1-9", "10+"]}
    schema = PLAIN.declare(impossible=[levels])
    frame = pd.DataFrame({"smoker": ["never"], "daily": ["none"]})
    with pytest.raises(ValueError, match=r"must leave a possible .* got none for smoker, daily"):
        gd.release(frame, schema, [("smoker", "daily")], epsilon=1.0)


def combinations(labels, names, patterns):
    """The combinations of codes of columns that match no pattern."""
    return [
        codes
        for codes in itertools.product(*(range(len(labels[name])) for name in names))
        if not any(all(labels[n][codes[names.index(n)]] in own for n, own in p) for p in patterns)
    ]


@pytest.mark.parametrize("all_linked", [True, False])
def test_joined_columns_have_the_possible_combinations(all_linked):
    """Random patterns, against a list of all combinations."""
    rng = np.random.default_rng(0)
    for _ in range(40):
        labels = {name: tuple("uvwxy"[: rng.integers(1, 6)]) for name in "abcd"}
        patterns = []
        for _ in range(rng.integers(1, 4)):
            names = sorted(rng.choice(list("abcd"), rng.integers(2, 4), replace=False))
            own = ((n, tuple(rng.permutation(labels[n])[: rng.integers(1, 3)])) for n in names)
            patterns.append(tuple(own))
        if not combinations(labels, [*labels], patterns):
            continue
        tables = possible.forbidden(patterns, labels)
        joined = possible.joined_columns(labels, tables, all_linked=all_linked)
        assert sorted(name for column in joined for name in column.names) == list("abcd")
        for column in joined:
            inside = [p for p in patterns if {*dict(p)} <= {*column.names}]
            expected = combinations(labels, column.names, inside)
            assert list(map(tuple, column.codes.tolist())) == expected
            if all_linked:
                apart = [p for p in patterns if {*dict(p)}.isdisjoint(column.names)]
                assert len(inside) + len(apart) == len(patterns)
            elif len(column.names) > 1:
                assert len(expected) - 1 <= sum(len(labels[n]) - 1 for n in column.names)


def test_the_code_of_a_record_depends_on_this_record_alone():
    records = frame(np.random.default_rng(1))
    universe = gd.workloads.CategoricalProduct(
        {name: len(column.codes) for name, column in SCHEMA.joined.items()}
    )
    assert universe.levels == (3, 4, 3)
    (codes,) = gd.data.encode(records, SCHEMA, universe)
    for row in range(0, len(records), 7):
        (alone,) = gd.data.encode(records.iloc[[row]], SCHEMA, universe)
        assert alone.tolist() == codes[[row]].tolist()
    # Different possible records have different codes.
    kinds = records.assign(age=np.searchsorted([18, 65], records.age, side="right"))
    assert len(np.unique(codes, axis=0)) == len(kinds.drop_duplicates())


def test_impossible_records_are_refused_before_anything_is_paid(tmp_path):
    records = spoilt(np.random.default_rng(2))
    records.to_csv(tmp_path / "r.csv", index=False)
    records.to_parquet(tmp_path / "r.parquet")
    query = gd.data.Query(f"SELECT * FROM '{tmp_path / 'r.parquet'}'")
    for way in (records, pa.Table.from_pandas(records), tmp_path / "r.csv", query):
        ledger = gd.Ledger(gd.PureDP(5.0))
        with pytest.raises(ValueError, match="possible by the schema") as error:
            gd.release(way, SCHEMA, "marginals:2", epsilon=1.0, ledger=ledger)
        lines = str(error.value).splitlines()
        assert "row 3, column 'smoker x daily' is not, nor is row 31" in lines[0]
        assert "row 7, column 'region x county' is not" in lines[1]
        for level in ("never", "10+", "south", "'A'"):
            assert level not in str(error.value)
        assert ledger.spends() == []


def test_impossible_records_are_refused_by_every_encoding(tmp_path):
    records = spoilt(np.random.default_rng(2))
    for universe in (SCHEMA.universe(), FiniteUniverse(2 * 3 * 3 * 3 * 3)):
        with pytest.raises(ValueError, match="row 3, column 'smoker x daily' is not"):
            list(gd.data.encode(records, SCHEMA, universe))
    # A faulty record is refused for its value first.
    records.loc[12, "county"] = "Z"
    with pytest.raises(ValueError, match="row 12, column 'county' is not"):
        list(gd.data.encode(records, SCHEMA, SCHEMA.universe()))


def test_columns_that_are_not_asked_are_not_checked():
    records = spoilt(np.random.default_rng(2)).drop(columns=["daily", "county"])
    schema = SCHEMA.select(["smoker", "age"])
    workload = schema.workload("marginals", k=2)
    counted = gd.data.count_records(gd.data.source_of(records), schema, workload)
    assert counted.count == len(records)
