"""The command `release` on folders, queries and a cluster."""

import json
import sys

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
    """The command in a folder with the same 300 records as one file and as a folder of three."""
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame({"region": ["north"] * 200 + ["south"] * 100, "smoker": [0, 1, 1] * 100})
    frame.to_csv("r.csv", index=False)
    (tmp_path / "parts").mkdir()
    for i in range(3):
        frame[100 * i : 100 * (i + 1)].to_parquet(tmp_path / "parts" / f"{i}.parquet")
    (tmp_path / "s.json").write_text(json.dumps(SCHEMA))

    def call(*flags):
        arguments = ["geomdp", "release", *flags, *FLAGS, "--out", "a.csv", "--force"]
        monkeypatch.setattr(sys, "argv", arguments)
        with pytest.raises(SystemExit) as exited:
            main()
        err = capsys.readouterr().err
        return exited.value.code, err, pd.read_csv("a.csv") if exited.value.code == 0 else None

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
        (["r.csv", "--database", "x.duckdb"], "--database goes with --sql"),
        (["r.csv", "--sql", "SELECT 1"], "--sql goes with --schema, not with DATA"),
        (["--sql", "SELECT region FROM 'r.csv'"], "column 'smoker' once"),
        (["nothing"], "no such file of records"),
    ],
)
def test_wrong_sources_fail_in_one_line(release, flags, message):
    code, err, _ = release(*flags)
    assert code == 2
    assert message in err
    assert len(err.splitlines()) == 1
