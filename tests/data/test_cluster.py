"""Counts on a Dask cluster do not depend on how data are divided or on workers that die."""

import itertools

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster

import geomdp as gd
from geomdp.data import Schema, count_records, encode, source_of
from tests.data.test_possible import SCHEMA as DECLARED
from tests.data.test_possible import frame as possible_records

SCHEMA = Schema.from_dict({"a": ["x", "y", "z"], "b": bool, "c": {"edges": [0, 1, 2, 5]}})
WORKLOAD = gd.workloads.MarginalTables(SCHEMA.levels, 2)
ROWS = 3000

# Dask warns about ports and locks of the cluster. These warnings do not matter here.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    a, b = rng.choice(["x", "y", "z"], size=ROWS), rng.integers(2, size=ROWS)
    return pd.DataFrame({"a": a, "b": b, "c": rng.uniform(0, 5, size=ROWS)})


@pytest.fixture(scope="module")
def expected(frame):
    return WORKLOAD.totals(encode(frame, SCHEMA, WORKLOAD.universe)).sums.tolist()


def test_files_give_the_same_counts_however_they_are_divided(client, frame, expected, tmp_path):
    for start, end in itertools.pairwise([0, 100, 101, 1500, ROWS]):
        frame[start:end].to_parquet(tmp_path / f"{start:05}.parquet")
    counted = count_records(source_of(tmp_path), SCHEMA, WORKLOAD, client=client)
    assert counted.totals(WORKLOAD).sums.tolist() == expected


def test_an_error_names_the_partition(client, frame):
    bad = frame.copy()
    bad.loc[ROWS - 1, "a"] = "w"
    divided = dd.from_pandas(bad, npartitions=3, sort=False)
    with pytest.raises(ValueError, match=r"partition 2: .*categories: row 999, column 'a'"):
        count_records(source_of(divided), SCHEMA, WORKLOAD, client=client)


def test_a_release_on_a_cluster_is_the_release_without_one(client):
    """The schema of these records makes some combinations impossible, and columns are joined."""
    records = possible_records(np.random.default_rng(3))
    divided = dd.from_pandas(records, npartitions=4, sort=False)
    asked = {"epsilon": 1.0, "mechanism": gd.mechanisms.Laplace, "rng": 0}
    near = gd.release(records, DECLARED, "marginals:2", **asked)
    far = gd.release(divided, DECLARED, "marginals:2", client=client, **asked)
    np.testing.assert_array_equal(near.answers, far.answers)


def test_reals_are_not_counted_on_a_cluster(client):
    schema = Schema.from_dict({"x": {"bounds": [0, 1]}})
    source = source_of(pd.DataFrame({"x": [0.5]}))
    with pytest.raises(ValueError, match="a cluster counts tables"):
        count_records(source, schema, gd.workloads.SecondMoment(1), client=client)


@pytest.mark.slow
def test_what_a_killed_worker_had_counted_is_counted_again(frame, expected, tmp_path):
    def partition(number):
        # The worker that first meets partition 2 dies with all that it has counted.
        import os
        import time

        mark = tmp_path / "died"
        if number == 2 and not mark.exists():
            time.sleep(1)
            mark.touch()
            os._exit(1)
        return frame[number * 500 : (number + 1) * 500]

    parts = [dask.delayed(partition)(number) for number in range(6)]
    divided = dd.from_delayed(parts, meta=frame.iloc[:0], verify_meta=False)
    two = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(**two) as cluster, Client(cluster) as client:
        counted = count_records(source_of(divided), SCHEMA, WORKLOAD, client=client)
    assert (tmp_path / "died").exists()
    assert counted.totals(WORKLOAD).sums.tolist() == expected
