"""The command `release` on folders, patterns, queries and a cluster; `schema` on folders."""

import json
import os
import sys
from pathlib import Path

import pandas as pd
import pytest
from distributed import Client, LocalCluster

from geomdp.cli import main

SCHEMA = {
    "format": "geomdp schema",
    "version": 1,
    "columns": [
        {"name": "region", "kind": "categorical", "categories": ["north", "south"]},
        {"name": "smoker", "kind": "boolean"},
    ],
}
FLAGS = ["--schema", "s.json", "--workload", "marginals:1", "--epsilon", "1", "--seed", "3"]


@pytest.fixture
def release(tmp_path, monkeypatch, capsys):
    """Run `release` where r.csv and the three files of the folder `parts` hold the same records."""
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame({"region": ["north"] * 200 + ["south"] * 100, "smoker": [0, 1, 1] * 100})
    frame.to_csv("r.csv", index=False)
    (tmp_path / "parts").mkdir()
    for i in range(3):
        frame[100 * i : 100 * (i + 1)].to_parquet(tmp_path / "parts" / f"{i}.parquet")
    (tmp_path / "s.json").write_text(json.dumps(SCHEMA))

    def call(*flags):
        flags = flags if "--out" in flags else (*flags, "--out", "a.csv")
        arguments = ["geomdp", "release", *flags, *FLAGS, "--force"]
        monkeypatch.setattr(sys, "argv", arguments)
        with pytest.raises(SystemExit) as exited:
            main()
        err = capsys.readouterr().err
        answers = pd.read_csv(flags[-1]) if exited.value.code == 0 else None
        return exited.value.code, err, answers

    return call


def test_a_folder_a_pattern_and_a_query_give_the_answers_of_the_file(release):
    _, _, expected = release("r.csv")
    for where in (["parts"], ["parts/*.parquet"], ["--sql", "FROM 'parts/*.parquet'"]):
        code, err, found = release(*where)
        assert code == 0, err
        pd.testing.assert_frame_equal(found, expected)


@pytest.mark.filterwarnings("ignore")
def test_a_cluster_gives_the_answers_of_the_file(release):
    _, _, expected = release("r.csv")
    cluster = LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None, protocol="tcp"
    )
    with cluster, Client(cluster) as client:
        code, err, found = release("parts", "--scheduler", client.scheduler.address)
    assert code == 0, err
    pd.testing.assert_frame_equal(found, expected)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["r.csv", "--database", "x.duckdb"], "--database needs --sql"),
        (["r.csv", "--sql", "SELECT 1"], "--sql needs --schema, and excludes DATA"),
        (["--sql", "SELECT region FROM 'parts/*.parquet'"], "column 'smoker' once"),
        (["--sql", "SELECT * FROM 'r.csv'"], "text file whose types DuckDB would find"),
        (["nothing"], "no such file of records"),
    ],
)
def test_wrong_sources_fail_in_one_line(release, flags, message):
    code, err, _ = release(*flags)
    assert code == 2
    assert message in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize("where", ["parts", "parts/*.parquet", "*/?.parquet", "**/*.parquet"])
def test_no_output_goes_to_an_input_of_a_folder_or_a_pattern(release, where):
    os.link("parts/1.parquet", "link.parquet")
    os.symlink("parts/2.parquet", "symbolic.parquet")
    before = {path: path.read_bytes() for path in Path("parts").iterdir()}
    for out in ("parts/0.parquet", "link.parquet", "symbolic.parquet", "parts/9.parquet"):
        code, err, _ = release(where, "--out", out)
        assert code == 2
        assert f"--out would overwrite the input '{where}' by '{out}'" in err
    assert {path: path.read_bytes() for path in Path("parts").iterdir()} == before
    code, err, _ = release("parts/*.parquet", "--out", "parts/a.csv")  # not in the pattern
    assert code == 0, err


def test_a_schema_is_drafted_for_a_folder(release, monkeypatch, capsys):
    def drafted(*flags):
        monkeypatch.setattr(sys, "argv", ["geomdp", "schema", *flags])
        with pytest.raises(SystemExit) as exited:
            main()
        return exited.value.code, capsys.readouterr()

    for where in ("parts", "parts/*.parquet"):
        code, printed = drafted(where)
        assert code == 0
        assert list(json.loads(printed.out)["columns"]) == ["region", "smoker"]
        code, printed = drafted(where, "--look")
        assert json.loads(printed.out)["columns"]["region"]["categories"] == ["north", "south"]
    pd.DataFrame({"region": ["north"], "age": [3]}).to_csv("parts/3.csv", index=False)
    code, printed = drafted("parts")
    assert code == 2
    assert "files must have the same columns: " in printed.err
    assert "parts/3.csv differ in ['age', 'smoker']" in printed.err
    code, printed = drafted("no/*.csv")
    assert (code, "no such file of records" in printed.err) == (2, True)
