"""Records are read from a PostgreSQL server that is started for the tests."""

import shutil
import subprocess
from pathlib import Path

import pandas as pd
import pytest

import geomdp as gd
from geomdp.data import CountedRecords, Query, Schema, count_records, encode

SERVERS = sorted(Path("/usr/lib/postgresql").glob("*/bin")) if shutil.which("runuser") else []
PROGRAMS = SERVERS[-1] if SERVERS else None

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(PROGRAMS is None, reason="PostgreSQL is not installed (Debian: postgresql)"),
]
SCHEMA = Schema.from_dict(
    {
        "region": {"categories": ["north", "south"], "missing": True},
        "flag": bool,
        "age": {"edges": [0, 18, 65, 120]},
        "income": {"edges": [0, 10.5, 99]},
    }
)
TABLE = """
CREATE TABLE people AS SELECT
    (ARRAY['north', 'south', NULL])[1 + i % 3] AS region,
    i % 2 = 0 AS flag,
    i % 121 AS age,
    (i % 990 / 10.0)::NUMERIC(5, 1) AS income
FROM generate_series(0, 99999) AS i;
CREATE SEQUENCE numbers
"""


def run(*command, user):
    """Run a program, as `user` if one is given; `initdb` and `pg_ctl` refuse to run as root."""
    as_user = ["runuser", "-u", user, "--"] if user else []
    subprocess.run([*as_user, *map(str, command)], check=True, capture_output=True, timeout=120)


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    """Start a server with the table `people`; yield its connection string, which names a socket."""
    import os
    import tempfile

    # Other users cannot enter the temporary folders of pytest, but the user of the server must.
    with tempfile.TemporaryDirectory(prefix="geomdp-postgresql-") as name:
        folder, user = Path(name), "postgres" if os.getuid() == 0 else None
        if user:
            shutil.chown(folder, user)
        data = folder / "data"
        run(PROGRAMS / "initdb", "-D", data, "-U", "tester", "-A", "trust", user=user)
        settings = f"-k {folder} -c listen_addresses=''"
        log = folder / "log"
        run(PROGRAMS / "pg_ctl", "-D", data, "-o", settings, "-l", log, "-w", "start", user=user)
        try:
            uri = f"postgresql:///postgres?host={folder}&user=tester"
            run(PROGRAMS / "psql", uri, "-c", TABLE, user=user)
            yield uri
        finally:
            run(PROGRAMS / "pg_ctl", "-D", data, "-m", "immediate", "stop", user=user)


def test_a_query_gives_the_counts_of_the_encoded_records(database):
    rows = [
        (["north", "south", None][i % 3], i % 2 == 0, i % 121, i % 990 / 10) for i in range(100_000)
    ]
    frame = pd.DataFrame(rows, columns=SCHEMA.names)
    workload = gd.workloads.MarginalTables(SCHEMA.levels, 2)
    expected = workload.totals(encode(frame, SCHEMA, workload.universe))
    counted = count_records(Query("SELECT * FROM people", database), SCHEMA, workload)
    assert isinstance(counted, CountedRecords)
    assert counted.count == 100_000
    assert counted.totals(workload).sums.tolist() == expected.sums.tolist()


def test_a_release_of_a_query(database):
    query = Query("SELECT region, flag FROM people WHERE age < 50", database)
    schema = SCHEMA.select(["region", "flag"])
    released = gd.release(query, schema, "marginals:2", epsilon=1.0, rng=0)
    assert abs(released.answers.sum() - 1) < 0.01


def test_a_bad_value_is_named_by_row_and_column(database):
    query = Query("SELECT * FROM people UNION ALL SELECT 'east', true, 1, 1", database)
    workload = gd.workloads.MarginalTables(SCHEMA.levels, 2)
    with pytest.raises(ValueError, match="categories: row 100000, column 'region' is not"):
        count_records(query, SCHEMA, workload)


@pytest.mark.parametrize("sql", ["SELECT nothing FROM people", "SELEC"])
def test_an_error_of_the_server_is_one_line_without_the_password(database, sql):
    workload = gd.workloads.MarginalTables(SCHEMA.levels, 1)
    with pytest.raises(ValueError, match="PostgreSQL refuses") as error:
        count_records(Query(sql, database), SCHEMA, workload)
    assert "\n" not in str(error.value)
    nowhere = "postgresql://tester:secret@127.0.0.1:1/postgres"
    with pytest.raises(ValueError, match="PostgreSQL refuses") as error:
        count_records(Query("SELECT 1", nowhere), SCHEMA, workload)
    assert "secret" not in str(error.value)


def rows_of(database):
    """The number of rows of the table `people`."""
    (chunk,) = Query("SELECT count(*) AS n FROM people", database).chunks(["n"])
    return chunk["n"].to_pylist()[0]


@pytest.mark.parametrize(
    "sql",
    [
        "COPY people TO PROGRAM 'touch {file}'",
        "SELECT 1 AS x) AS r) TO PROGRAM 'touch {file}' --",
        "SELECT 1 AS x\n) AS r; COPY people TO PROGRAM 'touch {file}'; SELECT * FROM (SELECT 1",
        "DELETE FROM people WHERE age = 1 RETURNING age AS x",
        "WITH gone AS (DELETE FROM people RETURNING age) SELECT age AS x FROM gone",
        "SELECT 1 AS x; DELETE FROM people",
        "SELECT 1 AS x INTO copied FROM people",
        "SELECT setval('numbers', 7) AS x",
        "UPDATE people SET age = 1 RETURNING age AS x",
        "TRUNCATE people",
        "",
    ],
)
def test_a_query_can_only_read(database, sql):
    # The user of the server must be able to write the file, so that its absence proves something.
    file = Path(database.partition("host=")[2].partition("&")[0]) / "made"
    with pytest.raises(ValueError, match=r"refuses the query|the query cannot be read"):
        list(Query(sql.format(file=file), database).chunks(["x"]))
    assert not file.exists()
    assert rows_of(database) == 100_000


def test_a_query_may_end_in_a_comment_or_a_semicolon(database):
    for end in ("-- comment", ";", " /* comment */ ;", "\n-- comment"):
        (chunk,) = Query(f"SELECT age FROM people LIMIT 3 {end}", database).chunks(["age"])
        assert chunk["age"].to_pylist() == [0, 1, 2]
