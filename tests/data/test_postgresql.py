"""Records are read from a PostgreSQL server that is started for the tests."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from adbc_driver_postgresql import dbapi

import geomdp as gd
from geomdp.data import Query, Schema, count_records, encode
from geomdp.data.tallies import CountedRecords
from tests.data.test_record_law import NUMBERS, PLAIN, Way, accepted, table

pytestmark = pytest.mark.slow
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


@pytest.fixture(scope="module")
def database(postgresql):
    """The address of a server with the table `people`."""
    with dbapi.connect(postgresql, autocommit=True) as server, server.cursor() as cursor:
        for statement in TABLE.split(";"):
            cursor.execute(statement)
    return postgresql


def test_a_query_gives_the_counts_of_the_encoded_records(database):
    i = np.arange(100_000)
    regions = np.array(["north", "south", None])[i % 3]
    rows = zip(regions, i % 2 == 0, i % 121, i % 990 / 10, strict=True)
    frame = pd.DataFrame(rows, columns=SCHEMA.names)
    workload = gd.workloads.MarginalTables(SCHEMA.levels, 2)
    expected = workload.totals(encode(frame, SCHEMA, workload.universe))
    counted = count_records(Query("SELECT * FROM people", database), SCHEMA, workload)
    assert isinstance(counted, CountedRecords)
    assert counted.count == 100_000
    assert counted.totals(workload).sums.tolist() == expected.sums.tolist()


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
    with pytest.raises(ValueError, match=r"refuses the query|the query (must be one|cannot be)"):
        list(Query(sql.format(file=file), database).chunks(["x"]))
    assert not file.exists()
    assert rows_of(database) == 100_000


def test_the_code_of_a_record_is_its_own(postgresql, tmp_path):
    def stored(column, folder):
        name = f"law_{next(NUMBERS)}"
        with dbapi.connect(postgresql, autocommit=True) as server, server.cursor() as cursor:
            cursor.adbc_ingest(name, table(column))
        return Query(f"SELECT x FROM {name}", postgresql)

    columns = PLAIN.filter(lambda column: "\0" not in "".join(map(str, column.to_pylist())))
    accepted(Way(stored, columns), 36, tmp_path)  # PostgreSQL stores no zero byte
