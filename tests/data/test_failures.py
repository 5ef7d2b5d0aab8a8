"""Errors of failed reads say what failed and where, and never quote the value of a record."""

import sys
import traceback
from pathlib import Path

import pytest

import geomdp as gd
from geomdp.cli import main
from geomdp.data import Query, Schema, count_records, source_of

SECRET = "secret7134"
#: Queries that fail at a secret value. The value is in a file, in one of a few rows, or in a row
#: that comes after more rows than DuckDB reads at a time.
BROKEN = {
    "converted": f"SELECT CAST(v AS INT) AS x FROM (VALUES ('1'), ('{SECRET}')) t(v)",
    "streamed": f"SELECT CAST(CASE WHEN i = 290000 THEN '{SECRET}' ELSE '1' END AS INT) AS x "
    "FROM range(300000) t(i)",
    "raised": f"SELECT CASE WHEN i > 5 THEN error('{SECRET}') ELSE 'a' END AS x FROM range(9) t(i)",
    "overflow": "SELECT (v + 713400000)::INT + 2147483647::INT AS x FROM (VALUES (0)) t(v)",
    "file": "SELECT x FROM read_csv('{path}', columns = {{x: 'INT'}}, auto_detect = false)",
}


def message_of(read):
    """The traceback of the failed read."""
    with pytest.raises(ValueError, match="the query fails") as caught:
        read()
    return "".join(traceback.format_exception(caught.value))


#: Malformed addresses of servers. Errors of the driver or of DuckDB would quote the secret part.
ADDRESSES = [
    f"postgresql://user:{SECRET} word@127.0.0.1:1/x",
    f"postgresql://user:%zz{SECRET}@127.0.0.1:1/x",
    f"postgresql://user:{SECRET}/word@127.0.0.1:1/x",
    f"postgresql://user:word@{SECRET}@127.0.0.1:1/x",
    f"postgresql://user:{SECRET}@[127.0.0.1:1/x",
    f"postgresql:/user:{SECRET}@127.0.0.1:1/x",
    f"Postgresql://user:{SECRET}@127.0.0.1:1/x",
]


@pytest.mark.parametrize("kind", BROKEN)
def test_the_error_of_a_query_names_no_value(tmp_path, kind):
    path = tmp_path / "records.csv"
    path.write_text(f"1\n2\n{SECRET}\n", encoding="utf-8")
    sql = BROKEN[kind].format(path=path)
    schema = Schema.from_dict({"x": {"edges": [0, 5, 10]}})
    workload = gd.workloads.Histogram(2)
    for read in (
        lambda: list(Query(sql).chunks(["x"])),
        lambda: count_records(Query(sql), schema, workload),
    ):
        said = message_of(read)
        assert SECRET not in said
        assert "7134" not in said


def test_the_error_of_a_query_says_what_failed_and_where():
    for sql, said in [
        (
            "SELECT\n CAST(x AS INT) AS x FROM (VALUES ('a')) t(x)",
            "Conversion Error at line 2, col",
        ),
        ("SELECT no AS x FROM (SELECT 1 AS y)", 'Binder Error: Referenced column "no" not found'),
        ("SELECT x FROM nothing", "Catalog Error: Table with name nothing does not exist"),
        ("SELEC 1", 'Parser Error: syntax error at or near "SELEC"'),
        ("FROM 'none/*.parquet'", "No files found that match the pattern"),
    ]:
        assert said in message_of(lambda sql=sql: list(Query(sql).chunks(["x"])))


@pytest.mark.parametrize("address", ADDRESSES)
def test_a_malformed_address_is_not_quoted(address, tmp_path, monkeypatch, capsys):
    """An address can hold a password, and errors of the driver quote parts of the address."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=r"refuses the connection|database must be") as caught:
        list(Query("SELECT 1 AS x", address).chunks(["x"]))
    assert SECRET not in "".join(traceback.format_exception(caught.value))
    flags = ["--sql", "SELECT 1 AS x", "--database", address, "--schema", "s.json"]
    flags += ["--workload", "marginals:1", "--epsilon", "1", "--out", "a.csv"]
    Path("s.json").write_text(Schema.from_dict({"x": bool}).to_json(), encoding="utf-8")
    monkeypatch.setattr(sys, "argv", ["geomdp", "release", *flags])
    with pytest.raises(SystemExit) as exited:
        main()
    printed = capsys.readouterr()
    assert exited.value.code == 2
    assert "refuses the connection" in printed.err or "database must be" in printed.err
    assert SECRET not in printed.err + printed.out


def test_a_refused_connection_names_the_reason():
    address = f"postgresql://user:{SECRET}@127.0.0.1:1/x"
    with pytest.raises(ValueError, match="refuses the connection: Connection refused"):
        list(Query("SELECT 1 AS x", address).chunks(["x"]))


def test_the_row_of_a_csv_file_that_a_query_reads_is_named(tmp_path):
    path = tmp_path / "records.csv"
    path.write_text(f"1\n2\n{SECRET}\n", encoding="utf-8")
    sql = BROKEN["file"].format(path=path)
    assert "line 3 of a CSV file" in message_of(lambda: list(Query(sql).chunks(["x"])))


def test_a_malformed_row_late_in_a_large_file_is_named_without_its_values(tmp_path):
    path = tmp_path / "records.csv"
    rows = "1,0,1\n" * 200_000 + f"1,{SECRET},0,1\n"
    path.write_text("a,b,c\n" + rows, encoding="utf-8")
    schema = Schema.from_dict({name: {"categories": ["0", "1"]} for name in "abc"})
    workload = gd.workloads.MarginalTables(schema.levels, 2)
    with pytest.raises(ValueError, match="row 200000 has 4 fields") as caught:
        count_records(source_of(path), schema, workload)
    assert SECRET not in "".join(traceback.format_exception(caught.value))
