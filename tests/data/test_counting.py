"""Every source of the same records gives the same counts."""

import itertools
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import geomdp as gd
from geomdp.data import Query, Schema, count_records, encode, source_of
from geomdp.data.frames import CHUNK_ROWS
from geomdp.data.tallies import (
    CACHED_CELLS,
    CountedRecords,
    EncodedRecords,
    Tallies,
    covering_tables,
)

SCHEMA = Schema.from_dict(
    {
        "region": {"categories": ["north", 'it\'s"so"', "3", ""], "other": True, "missing": True},
        "size": {"categories": [1, 2, 30], "missing": True},
        "flag": {"kind": "boolean", "missing": True},
        "age": {"edges": [0, 0.1, 18, 65, 120], "missing": True},
        "code": {"categories": [f"c{i}" for i in range(300)]},
        "number": {"categories": list(range(200)), "other": True},
    }
)
#: All columns but the last.
NAMES = SCHEMA.names[:5]
ROWS = CHUNK_ROWS + 5000


def frame(rows=ROWS):
    rng = np.random.default_rng(3)

    def choice(values):
        return [values[i] for i in rng.integers(len(values), size=rows)]

    return pd.DataFrame(
        {
            "region": choice(["north", 'it\'s"so"', "3", "3.0", "elsewhere", None]),
            "size": choice([1.0, 2.0, 30.0, None]),
            "flag": choice(["0", "True", "FALSE", "1.0", None]),
            "age": choice([0.0, 0.1, 17.99, 18.0, 120.0, None]),
            "code": choice([f"c{i}" for i in range(300)]),
            "number": rng.integers(210, size=rows),
        }
    )


@pytest.fixture(scope="module")
def records():
    return frame()


@pytest.fixture(scope="module")
def everywhere(records, tmp_path_factory):
    """The same records in eight kinds of source."""
    folder = tmp_path_factory.mktemp("records")
    records.to_parquet(folder / "one.parquet")
    text = records.astype({"size": "Int64"})
    text.to_csv(folder / "one.csv", index=False)
    parts = folder / "parts" / "year=2020"
    parts.mkdir(parents=True)
    text[:50_000].to_csv(parts / "1.csv", index=False)
    text[50_000:].to_parquet(parts / "2.parquet")
    (parts / "_SUCCESS").touch()
    return {
        "parquet": folder / "one.parquet",
        "csv": folder / "one.csv",
        "folder": folder / "parts",
        "glob": str(folder / "parts" / "**" / "*.*"),
        "arrow": pa.Table.from_pandas(records),
        "pandas": records,
        "polars": pl.from_pandas(records),
        "query": Query(f"SELECT * FROM '{folder}/one.parquet' ORDER BY code"),
    }


def ways(k):
    return lambda schema: schema.workload("marginals", k=k)


WORKLOADS = {
    "1-way": (("region", "size", "flag", "code"), ways(1)),
    "numeric": (("age", "flag"), ways(1)),
    # The joint table has more than 2^20 cells, so each column is counted alone.
    "counted alone": (("region", "size", "flag", "code", "number"), ways(1)),
    "2-way": (NAMES, ways(2)),
    "3-way": (NAMES[:4], ways(3)),
    "joint": (("size", "age"), lambda s: gd.workloads.Histogram(4 * 5)),
    "prefixes": (("code",), lambda s: gd.workloads.Prefixes(300)),
    "signs": (("region", "flag"), lambda s: gd.workloads.RandomSigns(5, 18, 0)),
    "weighted products": (
        ("region", "flag"),
        lambda s: gd.workloads.ProductQueries(
            s.levels, [["region"], ["region", "flag"]], {"region": gd.workloads.Prefixes(6)}, [1, 2]
        ),
    ),
}


@pytest.mark.parametrize("name", WORKLOADS)
def test_every_source_gives_the_counts_of_the_encoded_records(records, everywhere, name):
    columns, make = WORKLOADS[name]
    schema = SCHEMA.select(columns)
    workload = make(schema)
    expected = workload.totals(encode(records, schema, workload.universe))
    for kind, where in everywhere.items():
        counted = count_records(source_of(where), schema, workload)
        assert isinstance(counted, CountedRecords)
        assert counted.count == expected.count == ROWS, kind
        np.testing.assert_array_equal(counted.totals(workload).sums, expected.sums, kind)


@pytest.mark.parametrize("make", [gd.workloads.Marginals, gd.workloads.Parities])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_conjunctions_and_parities_follow_from_tables(make, k):
    bits = np.random.default_rng(0).integers(2, size=(1000, 9))
    schema = Schema.from_dict({f"b{i}": bool for i in range(9)})
    workload = make(9, k)
    counted = count_records(source_of(pd.DataFrame(bits, columns=schema.names)), schema, workload)
    np.testing.assert_array_equal(counted.totals(workload).sums, workload.totals(bits).sums)


def test_a_mechanism_takes_counted_records_as_it_takes_records(records):
    schema = SCHEMA.select(["size", "flag"])
    workload = gd.workloads.MarginalTables(schema.levels, 1)
    mechanism = gd.mechanisms.Laplace(workload, n=ROWS, privacy=gd.PureDP(1.0))
    counted = count_records(source_of(records), schema, workload)
    codes = encode(records, schema, workload.universe)
    answers = mechanism.release(counted, rng=0).answers
    np.testing.assert_array_equal(answers, mechanism.release(codes, rng=0).answers)
    with pytest.raises(ValueError, match="records were counted for"):
        counted.totals(gd.workloads.MarginalTables([2, 2], 1))


def test_a_bad_value_late_in_a_source_is_named_by_row_and_column(tmp_path):
    """Encoding tests the message of each kind of bad value; here rows are counted over chunks."""
    bad = frame().astype({"size": "Int64", "number": "Int64"}).astype(object)
    bad.loc[ROWS - 3, "age"] = "121"
    bad = bad.astype(str).where(bad.notna(), None)
    bad.to_parquet(tmp_path / "r.parquet")
    bad.to_csv(tmp_path / "r.csv", index=False)
    said = f"between 0 and 120: row {ROWS - 3}, column 'age'"
    for where in (tmp_path / "r.parquet", tmp_path / "r.csv", pl.from_pandas(bad)):
        with pytest.raises(ValueError, match=said):
            count_records(source_of(where), SCHEMA, SCHEMA.workload("marginals", k=1))


def test_an_error_in_a_folder_names_the_file(tmp_path):
    schema = Schema.from_dict({"x": ["a", "b"]})
    for name, values in {"1.csv": ["a", "b"], "2.csv": ["a", "c"]}.items():
        pd.DataFrame({"x": values}).to_csv(tmp_path / name, index=False)
    with pytest.raises(ValueError, match=r"2\.csv: records must be .*: row 1, column 'x'"):
        count_records(source_of(tmp_path), schema, schema.workload("histogram"))


def test_real_columns_are_encoded_when_they_are_read():
    schema = Schema.from_dict({"x": {"bounds": [0, 4]}})
    workload = gd.workloads.SecondMoment(1)
    records = count_records(source_of(pd.DataFrame({"x": [0.0, 4.0, 2.0]})), schema, workload)
    assert isinstance(records, EncodedRecords)
    assert records.count == 3
    for _ in range(2):
        np.testing.assert_array_equal(np.concatenate(list(records))[:, 0], [-1, 1, 0])


def test_covering_tables_contain_every_table_and_stay_small():
    levels = [2, 3, 4, 5, 6, 7, 8, 9, 5, 400]
    tables = list(itertools.combinations(range(10), 2))
    covering = covering_tables(tables, levels)
    assert len(covering) < len(tables) / 2
    for table in tables:
        assert any(set(table) <= set(larger) for larger in covering)
    for larger in covering:
        assert larger in tables or np.prod([levels[i] for i in larger]) <= CACHED_CELLS


def test_files_that_are_no_records_are_refused(tmp_path):
    for where in (tmp_path, tmp_path / "*.csv", tmp_path / "no.csv"):
        with pytest.raises(FileNotFoundError, match="no such file of records"):
            source_of(where)
    (tmp_path / "notes.txt").touch()
    with pytest.raises(ValueError, match=r"must end in one of .csv, .csv.gz, .parquet, .*notes"):
        source_of(tmp_path)
    with pytest.raises(ValueError, match="a DataFrame, a table, a path or a source, got int"):
        source_of(3)
    with pytest.raises(ValueError, match="call its collect"):
        source_of(pl.LazyFrame({"x": [1]}))


def test_a_duckdb_file_is_opened_for_reading_only(tmp_path):
    import duckdb

    path = str(tmp_path / "records.duckdb")
    with duckdb.connect(path) as connection:
        connection.execute("CREATE TABLE t AS SELECT 'a' AS x FROM range(7)")
    schema, one = Schema.from_dict({"x": ["a"]}), gd.workloads.Histogram(1)
    assert count_records(Query("FROM t", path), schema, one).count == 7
    with pytest.raises(ValueError, match="the query"):
        count_records(Query("SELECT 1; DELETE FROM t", path), schema, one)


@pytest.mark.parametrize("first", ["x", "X"])
def test_a_collation_merges_no_texts(first):
    # Grouping by this collation would count "x" and "X" together, under the spelling that is first.
    sql = f"SELECT a COLLATE nocase AS a FROM (SELECT unnest(['{first}', 'x', 'X', 'x', 'y']) AS a)"
    schema = Schema.from_dict({"a": ["x", "X", "y"]})
    counted = count_records(Query(sql), schema, schema.workload("histogram"))
    assert counted.histogram().tolist() == [2 + (first == "x"), 1 + (first == "X"), 1]


def test_a_table_that_was_not_counted_is_an_error_with_the_tables_that_were():
    tallies = Tallies.empty([300, 300, 300], [(0, 1), (1, 2)]).with_records([np.zeros(5, int)] * 3)
    assert tallies.tables([(1,)])[0].tolist() == [5] + [0] * 299
    with pytest.raises(ValueError, match=r"columns \(0, 2\) was not counted .*\(0, 1\), \(1, 2\)"):
        tallies.tables([(0, 2)])


def test_counts_are_counted_again_after_a_round_trip_through_pickle():
    schema = SCHEMA.select(["region", "age", "code", "number"])
    counted = count_records(source_of(frame(100)), schema, schema.workload("marginals", k=1))
    copy = pickle.loads(pickle.dumps(counted))
    pair = (2, 3)  # not among the tables that were counted
    more, again = counted.with_tables([pair]), copy.with_tables([pair])
    np.testing.assert_array_equal(again.table(pair), more.table(pair))
    assert again.table(pair).sum() == again.count == 100


def test_sums_of_counted_tables_share_their_work() -> None:
    """`tables` gives many tables, with columns in any order; each has the counts of the records."""
    levels = (2, 3, 4, 2, 5)
    rng = np.random.default_rng(0)
    columns = [rng.integers(0, n, 200) for n in levels]
    counted = Tallies.empty(levels, [(0, 1, 2, 3), (2, 3, 4)]).with_records(columns)
    wanted = [(), (0,), (3, 2), (1, 0, 3), (2, 4), (4, 3, 2), (0, 1, 2, 3), (2, 3)]
    for table, found in zip(wanted, counted.tables(wanted), strict=True):
        expected = np.zeros([levels[i] for i in table], dtype=int)
        np.add.at(expected, tuple(columns[i] for i in table), 1 if table else 200)
        np.testing.assert_array_equal(found, expected)


def test_files_in_hidden_folders_are_no_records(tmp_path):
    for folder in (".", "part", "_temporary/0", ".hidden", "part/_notes"):
        (tmp_path / "r" / folder).mkdir(parents=True, exist_ok=True)
        (tmp_path / "r" / folder / "r.csv").write_text("a\n0\n1\n")
    schema = Schema((gd.data.CategoricalColumn("a", ("0", "1")),))
    assert count_records(source_of(tmp_path / "r"), schema, gd.workloads.Histogram(2)).count == 4


def test_counts_of_parts_add_up_to_the_counts_of_all_records():
    rng = np.random.default_rng(11)
    columns = [rng.integers(level, size=300) for level in (2, 3, 4)]
    first, rest, together = (
        Tallies.empty([2, 3, 4], [(0, 1), (1, 2)]).with_records([codes[rows] for codes in columns])
        for rows in (slice(0, 120), slice(120, None), slice(None))
    )
    added = first + rest
    assert added.count == 300
    for table, counts in together.cells.items():
        np.testing.assert_array_equal(added.cells[table], counts)
