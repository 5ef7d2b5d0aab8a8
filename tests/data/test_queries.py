"""In a query of DuckDB no type is found from values, and a query may end in comments."""

import os
import stat
import subprocess
import sys
import traceback
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from geomdp.data import CategoricalColumn, Query, Schema, encode, source_of
from geomdp.data.queries import spill_folder
from geomdp.workloads.universes import FiniteUniverse

DECLARED = "read_csv('c.csv', auto_detect = false, header = true, columns = {'age': 'VARCHAR'})"
#: Queries that read a text file whose types DuckDB finds from the values. The words that declare
#: the types stand elsewhere, or apply to another reader.
FOUND_FROM_VALUES = {
    "no declaration": "SELECT age FROM read_csv('c.csv')",
    "a name alone": "SELECT age FROM 'c.csv'",
    "a line of comment": "SELECT age FROM read_csv('c.csv') -- auto_detect=false",
    "a comment inside": "SELECT age FROM read_csv('c.csv' /*, auto_detect=false */)",
    "nested comments": "SELECT age FROM read_csv('c.csv' /* /* a */ , auto_detect=false */)",
    "a text": "SELECT age, 'read_csv(auto_detect = false)' AS b FROM read_csv('c.csv')",
    "an escaped text": r"SELECT age, E'\', auto_detect = false' AS b FROM read_csv('c.csv')",
    "a text between dollars": "SELECT age, $a$', auto_detect=false$a$ AS b FROM read_csv('c.csv')",
    "a quoted name": "SELECT age AS \"auto_detect=false\", age FROM read_csv('c.csv')",
    "a comparison": "SELECT age, auto_detect = false AS b FROM read_csv('c.csv') "
    "JOIN (SELECT true AS auto_detect) ON true",
    "a quoted reader": "SELECT age FROM \"read_csv\"('c.csv')",
    "a reader that detects": "SELECT age FROM read_csv_auto('c.csv', header = true)",
    "an argument": "FROM read_csv('c.csv', dateformat = $$, auto_detect=false, $$)",
    "a union": f"FROM {DECLARED} UNION ALL FROM read_csv('c.csv')",
    "no rows": f"FROM {DECLARED} UNION ALL FROM 'c.csv' WHERE false",
    "a subquery": "SELECT age FROM (VALUES ('30')) t(age) SEMI JOIN read_csv('c.csv') USING (age)",
    "SQL in a text": "FROM query('FROM read_csv(''c.csv'')')",
    "SQL in a text and a declaration": f"WITH a AS (FROM {DECLARED}) "
    "FROM query('FROM read_csv(''c.csv'')')",
    "a declaration that is not used": f"WITH a AS (FROM {DECLARED}) FROM 'c.csv'",
    "JSON": "SELECT age FROM read_json('j.json')",
    "a name of JSON": "SELECT age FROM 'j.json'",
}
#: Queries of a database whose view `v` reads a text file.
OF_VIEWS = {
    "a view": "FROM v",
    "a comment": "FROM v -- read_csv(auto_detect=false",
    "a text": "SELECT age, 'read_csv(, auto_detect=false)' AS b FROM v",
    "a union": f"FROM v UNION ALL FROM {DECLARED}",
    "no rows": "FROM v WHERE false UNION ALL FROM t",
    "a declaration that is not used": f"WITH a AS (FROM {DECLARED}) FROM v",
    "a macro": "FROM m()",
    "a scalar macro": "SELECT s() AS age",
    "a view with a declaration": "FROM w",
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "c.csv").write_text("age\n30\n40\n")
    (tmp_path / "j.json").write_text('{"age": "30"}')
    return tmp_path


@pytest.fixture
def database(folder):
    with duckdb.connect("v.duckdb") as connection:
        connection.execute("CREATE TABLE t AS SELECT '30' AS age")
        connection.execute("CREATE VIEW v AS FROM read_csv('c.csv')")
        connection.execute(f"CREATE VIEW w AS FROM {DECLARED}")
        connection.execute("CREATE MACRO m() AS TABLE FROM read_csv('c.csv')")
        connection.execute("CREATE MACRO s() AS (SELECT max(age) FROM read_csv('c.csv'))")
    return "v.duckdb"


def read(sql, database=None):
    """The column `age` of the result."""
    return [v for b in Query(sql, database).chunks(["age"]) for v in b["age"].to_pylist()]


@pytest.mark.parametrize("case", FOUND_FROM_VALUES)
def test_a_query_that_finds_types_from_values_is_refused(folder, case):
    duckdb.sql(FOUND_FROM_VALUES[case]).fetchall()  # DuckDB accepts the query
    with pytest.raises(ValueError, match="text file whose types DuckDB would find"):
        read(FOUND_FROM_VALUES[case])


@pytest.mark.parametrize("case", OF_VIEWS)
def test_a_view_of_a_text_file_is_refused(database, case):
    with duckdb.connect(database, read_only=True) as connection:
        connection.execute(OF_VIEWS[case]).fetchall()
    with pytest.raises(ValueError, match="text file whose types DuckDB would find"):
        read(OF_VIEWS[case], database)


@pytest.mark.parametrize(
    "sql",
    [
        f"FROM {DECLARED}",
        f"SELECT age FROM {DECLARED} WHERE age <> 'read_csv('",
        f"SELECT age FROM {DECLARED} -- read_csv(",
        "SELECT age FROM READ_CSV('c.csv', /* all */ header := true, \"auto_detect\" := FALSE, "
        "columns := {'age': 'DECIMAL(3, 0)'})",
        "SELECT age FROM read_json('j.json', auto_detect=false, columns={'age':'VARCHAR'})",
        f"FROM {DECLARED} UNION ALL SELECT age FROM {DECLARED}",
    ],
)
def test_a_query_that_declares_the_types_is_read(folder, sql):
    assert int(read(sql)[0]) == 30


def test_tables_beside_a_view_of_a_text_file_are_read(database):
    assert read("FROM t", database) == ["30"]


ENDS = ["-- c", ";", ";;", "; -- c", " /* a ; /* b */ */ ; ; -- ;", "\n-- c", "-- ;\n;", "-- ü\n; "]


@pytest.mark.parametrize("end", ENDS)
def test_a_query_may_end_in_comments_and_semicolons(end):
    assert read(f"SELECT 'ä;' AS age {end}") == ["ä;"]


@pytest.mark.parametrize("end", ["; SELECT 2 AS age", ";;SELECT 2", "; -- c\n SELECT 2", ") --"])
def test_a_query_is_one_statement(end):
    with pytest.raises(ValueError, match=r"must be one SELECT statement|Parser Error"):
        read(f"SELECT 1 AS age {end}")


# --- columns from the names of folders ----------------------------------------------------------

#: Names of folders. DuckDB reads most of them as numbers or dates, if it finds the types.
NAMES = ["007", "8", "-0", "0x1F", "2024-2-9", "2024-02-29T00:00:00"]
SCHEMA = Schema((CategoricalColumn("age", ("7", "0", "31", *NAMES), other=True),))
AS_TEXTS = [
    "FROM read_parquet('p/*/*.parquet', hive_types_autocast = false)",
    "SELECT age FROM read_parquet(['p/**/*.parquet'], hive_types_autocast => FALSE)",
    "SELECT age FROM read_csv('p/*/*.csv', auto_detect = false, header = true, "
    "columns = {'n': 'INT'}, hive_types_autocast = false)",
]
FOUND_FROM_NAMES = [
    "FROM 'p/*/*.parquet'",
    'FROM "p/*/*.parquet"',
    "FROM read_parquet('p/**/*.parquet') -- hive_types_autocast = false",
    "FROM read_parquet(['p/*/r.parquet'], hive_types_autocast = true)",
    "SELECT n AS age FROM read_parquet($$p/age=*/*.parquet$$)",
    f"{AS_TEXTS[0]} UNION ALL FROM 'p/*/*.parquet'",
    "FROM read_csv('p/*/*.csv', auto_detect = false, header = true, columns = {'n': 'INT'})",
]


def add_folder(name):
    Path(f"p/age={name}").mkdir(parents=True)
    pq.write_table(pa.table({"n": [1]}), f"p/age={name}/r.parquet")
    Path(f"p/age={name}/r.csv").write_text("n\n1\n")


def codes(sql, database=None):
    """The codes of the records, in order of the codes, because DuckDB reads files in any order."""
    chunks = encode(Query(sql, database).chunks(["age"]), SCHEMA, FiniteUniverse(10))
    return sorted(code for chunk in chunks for code in chunk.tolist())


@pytest.mark.parametrize("sql", AS_TEXTS)
@pytest.mark.parametrize("names", [["007", "8"], *([name] for name in NAMES)])
def test_the_name_of_a_folder_does_not_change_the_codes_of_others(folder, sql, names):
    for name in names:
        add_folder(name)
    expected = sorted(3 + NAMES.index(name) for name in names)
    assert codes(sql) == expected
    add_folder("x")
    assert codes(sql) == [*expected, 9]


@pytest.mark.parametrize("sql", FOUND_FROM_NAMES)
def test_a_query_that_finds_types_from_names_of_folders_is_refused(folder, sql):
    add_folder("-0")
    with pytest.raises(ValueError, match="names of folders, such as age=7"):
        codes(sql)


def test_a_view_of_divided_files_takes_names_as_texts(folder):
    add_folder("-0")
    for name, sql in (("v", AS_TEXTS[0]), ("w", FOUND_FROM_NAMES[0])):
        with duckdb.connect(f"{name}.duckdb") as connection:
            connection.execute(f"CREATE VIEW {name} AS {sql}")
    assert codes("FROM v", "v.duckdb") == [3 + NAMES.index("-0")]
    with pytest.raises(ValueError, match="names of folders, such as age=7"):
        codes("FROM w", "w.duckdb")


# --- errors of failed reads say what failed and where, and never quote a value ------------------

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


@pytest.mark.parametrize("kind", BROKEN)
def test_the_error_of_a_query_names_no_value(tmp_path, kind):
    path = tmp_path / "records.csv"
    path.write_text(f"1\n2\n{SECRET}\n", encoding="utf-8")
    sql = BROKEN[kind].format(path=path)
    said = message_of(lambda: list(Query(sql).chunks(["x"])))
    assert "7134" not in said
    assert ("line 3 of a CSV file" in said) is (kind == "file")


def test_the_error_of_a_query_says_what_failed_and_where():
    for sql, said in [
        ("SELECT\n x::INT AS x FROM (VALUES ('a')) t(x)", "Conversion Error at line 2, column"),
        ("SELECT no AS x FROM (SELECT 1 AS y)", 'Binder Error: Referenced column "no" not found'),
        ("SELECT x FROM nothing", "Catalog Error: Table with name nothing does not exist"),
        ("SELEC 1", 'Parser Error: syntax error at or near "SELEC"'),
        ("FROM 'none/*.parquet'", "No files found that match the pattern"),
    ]:
        assert said in message_of(lambda sql=sql: list(Query(sql).chunks(["x"])))


def test_a_refused_connection_names_the_reason():
    address = f"postgresql://user:{SECRET}@127.0.0.1:1/x"
    with pytest.raises(ValueError, match="refuses the connection: Connection refused"):
        list(Query("SELECT 1 AS x", address).chunks(["x"]))


def test_a_malformed_row_late_in_a_large_file_is_named_without_its_values(tmp_path):
    path = tmp_path / "records.csv"
    path.write_text("a,b,c\n" + "1,0,1\n" * 200_000 + f"1,{SECRET},0,1\n")
    with pytest.raises(ValueError, match="row 200000 has 4 fields") as caught:
        list(source_of(path).chunks(["a"]))
    assert SECRET not in "".join(traceback.format_exception(caught.value))


# --- records that do not fit into memory are written to a folder of this user -------------------


def run_program(program, folder, **environment):
    """Run a Python program in a folder; return what it printed."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment}
    command = [sys.executable, "-c", program]
    return subprocess.check_output(command, cwd=folder, env=environment, text=True).split()


def test_all_databases_spill_to_a_private_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = spill_folder(os.getpid())
    assert stat.S_IMODE(Path(folder).stat().st_mode) == 0o700
    duckdb.connect("records.duckdb").close()
    for database in (None, "records.duckdb"):
        setting = Query("SELECT current_setting('temp_directory') AS x", database)
        (chunk,) = setting.chunks(["x"])
        assert chunk["x"].to_pylist() == [folder]


def test_a_forked_process_does_not_delete_the_folder_of_its_parent(tmp_path):
    program = (
        "import os, sys, pathlib\n"
        "from geomdp.data.queries import spill_folder\n"
        "folder = pathlib.Path(spill_folder(os.getpid()))\n"
        "child = os.fork()\n"
        "if child == 0:\n    sys.exit()\n"  # the child runs the exit functions that it inherited
        "_, status = os.waitpid(child, 0)\n"
        "print(status, folder.is_dir())\n"
    )
    assert run_program(program, tmp_path, TMPDIR=str(tmp_path)) == ["0", "True"]
    assert not [*tmp_path.iterdir()]  # the parent deletes it at its end


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_that_end_normally_delete_their_folders(tmp_path, method):
    program = (
        "import multiprocessing, os, pathlib\n"
        "from concurrent.futures import ProcessPoolExecutor\n"
        "from geomdp.data.queries import spill_folder\n"
        f"context = multiprocessing.get_context({method!r})\n"
        "with ProcessPoolExecutor(1, mp_context=context) as executor:\n"
        "    process = executor.submit(os.getpid).result()\n"
        "    folder = pathlib.Path(executor.submit(spill_folder, process).result())\n"
        "    print(folder.is_dir())\n"
        "print(folder.exists())\n"
    )
    assert run_program(program, tmp_path, TMPDIR=str(tmp_path)) == ["True", "False"]
    assert not [*tmp_path.iterdir()]
