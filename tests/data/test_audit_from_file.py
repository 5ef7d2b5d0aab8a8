"""An audit from the file: two files that differ in one record, released by the command.

Every column is nasty in its own way: the neighbour's value once changed how the other records are
read, or looks as if it could. The auditor sees released counts alone.
"""

import csv
import decimal
import gzip
from functools import partial

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import geomdp as gd
from geomdp.cli import main
from geomdp.data import Schema

N = 1000
EPSILON = 0.5
#: Enough for an event that is sure on one file and impossible on the other, at level 1e-6: half of
#: the outputs test it, so both probabilities are known up to 0.32, and 0.68 / 0.32 > e^EPSILON.
TRIALS = 80


def day(number):
    return pa.array([number], pa.int32()).view(pa.date32())


def ticks(number, kind):
    return pa.array([number], pa.int64()).view(kind)


def times(array, count):
    """A column of `count` equal values."""
    return pa.concat_arrays([array] * count)


#: The value of all records, the value of the record that differs, and declared categories. Columns
#: without categories are numeric.
NASTY = {
    "id": (pa.array([2**53 + 1]), pa.array([None], pa.int64()), (2**53, 2**53 + 1, 2**53 + 2)),
    "big": (pa.array([2**64 - 1], pa.uint64()), pa.array([None], pa.uint64()), (2**64 - 1, 2**64)),
    "small": (pa.array([3]), pa.array([None], pa.int64()), ("3", "3.0")),
    "half": (pa.array([3.0]), pa.array([3.5]), ("3", "3.0")),
    "nan": (pa.array([3.0]), pa.array([float("nan")]), ("3", "3.0")),
    "infinite": (pa.array([3.0]), pa.array([float("inf")]), ("3", "inf")),
    "zero": (pa.array([0.0]), pa.array([-0.0]), ("0", "-0")),
    "blank": (pa.array(["30"]), pa.array(["\u00a030"]), None),
    "script": (pa.array(["30"]), pa.array(["\u0663\u0660"]), None),
    "tab": (pa.array(["30"]), pa.array(["30\v"]), None),
    "leading": (pa.array(["007"]), pa.array(["x"]), ("7", "007")),
    "fraction": (pa.array(["3"]), pa.array(["3.5"]), ("3", "3.0")),
    "form": (pa.array(["\u00e9"]), pa.array(["e\u0301"]), ("\u00e9", "e")),
    "truth": (pa.array([True]), pa.array([None], pa.bool_()), ("True", "1", "1.0")),
    "word": (pa.array(["True"]), pa.array(["1"]), ("True", "1")),
    "date": (day(19_782), day(3_000_000), ("2024-02-29", "19782")),
    "instant": (
        ticks(1_709_164_800_000_000, pa.timestamp("us")),
        ticks(1_709_164_800_000_001, pa.timestamp("us")),
        ("2024-02-29 00:00:00", "2024-02-29"),
    ),
    "time": (ticks(0, pa.time64("ns")), ticks(29_730_123_456_789, pa.time64("ns")), ("00:00:00",)),
    "money": (
        pa.array([decimal.Decimal("3.00")], pa.decimal128(5, 2)),
        pa.array([decimal.Decimal("0.01")], pa.decimal128(5, 2)),
        ("3", "3.00"),
    ),
    "marks": (pa.array(["a"]), pa.array(['"a\n,"']), ("a", '"a"')),
}


def declaration(name):
    categories = NASTY[name][2]
    if categories is None:
        return {"edges": [0, 29, 31, 100], "missing": True}
    return {"categories": list(map(str, categories)), "other": True, "missing": True}


def neighbours(names):
    """Two tables that differ in record 500."""
    usual = pa.table({name: times(NASTY[name][0], N) for name in names})
    other = {
        name: pa.concat_arrays(
            [times(NASTY[name][0], 500), NASTY[name][1], times(NASTY[name][0], 499)]
        )
        for name in names
    }
    return usual, pa.table(other)


def as_csv(table, path, opened=open):
    texts = [column.cast(pa.string()).to_pylist() for column in table.columns]
    with opened(path, "wt", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([table.column_names, *zip(*texts, strict=True)])
    return [str(path)]


def as_parquet(table, path):
    pq.write_table(table, path)
    return [str(path)]


def as_folder(table, path):
    path.mkdir()
    for number, start in enumerate(range(0, N, 300)):
        as_parquet(table.slice(start, 300), path / f"{number}.parquet")
    return [str(path)]


def as_query(table, path):
    pq.write_table(table, path)
    return ["--sql", f"SELECT * FROM '{path}'"]


def as_database(table, path):
    import duckdb

    with duckdb.connect(str(path)) as connection:
        connection.register("records", table)
        connection.execute("CREATE TABLE t AS SELECT * FROM records")
    return ["--sql", "FROM t", "--database", str(path)]


def as_postgresql(table, path, address):
    from adbc_driver_postgresql import dbapi

    # PostgreSQL has no unsigned numbers.
    fields = [
        field.with_type(pa.decimal128(20)) if field.type == pa.uint64() else field
        for field in table.schema
    ]
    with dbapi.connect(address, autocommit=True) as server, server.cursor() as cursor:
        cursor.adbc_ingest(path.name, table.cast(pa.schema(fields)), mode="replace")
    return ["--sql", f"SELECT * FROM {path.name}", "--database", address]


WAYS = {
    "csv": (".csv", as_csv),
    "csv.gz": (".csv.gz", lambda table, path: as_csv(table, path, gzip.open)),
    "parquet": (".parquet", as_parquet),
    "folder": ("", as_folder),
    "query": (".parquet", as_query),
    "duckdb file": (".duckdb", as_database),
    "postgresql": ("", as_postgresql),
}
GROUPS = [list(NASTY)[start : start + 5] for start in range(0, len(NASTY), 5)]


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("names", GROUPS, ids=", ".join)
def test_neighbouring_files_are_not_told_apart(request, tmp_path, monkeypatch, capsys, way, names):
    monkeypatch.chdir(tmp_path)
    schema = Schema.from_dict({name: declaration(name) for name in names})
    (tmp_path / "s.json").write_text(schema.to_json(), encoding="utf-8")
    flags = ["--schema", "s.json", "--workload", "marginals:1", "--epsilon", str(EPSILON)]
    flags += ["--mechanism", "laplace", "--out", "o.parquet", "--force"]
    ending, write = WAYS[way]
    if way == "postgresql":
        write = partial(write, address=request.getfixturevalue("postgresql"))
    first, second = (
        write(table, tmp_path / f"r{number}{ending}")
        for number, table in enumerate(neighbours(names))
    )

    def release(source):
        monkeypatch.setattr("sys.argv", ["geomdp", "release", *source, *flags])
        with pytest.raises(SystemExit, match=r"^0$"):
            main()
        capsys.readouterr()
        return N * pd.read_parquet("o.parquet")["answer"].to_numpy()

    result = gd.audit.audit_function(
        release, first, second, gd.PureDP(EPSILON), trials=TRIALS, level=1e-6
    )
    assert not result.refuted, str(result)
    assert np.isfinite(result.epsilon_lower_bound)
