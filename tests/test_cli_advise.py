"""The command `advise`: the number of records that halves the error."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

import geomdp as gd
from geomdp.cli import main
from geomdp.cli.plans import records_for_half

#: Largest number of records that any mechanism accepts.
LARGEST = 2**256


def test_half_the_error_can_need_a_number_of_records_that_is_not_accepted(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    columns = [{"name": "smoker", "kind": "boolean"}]
    schema = {"format": "geomdp schema", "version": 1, "columns": columns}
    Path("schema.json").write_text(json.dumps(schema))
    line = f"advise --schema schema.json --workload histogram --epsilon 1 --n {LARGEST}"
    monkeypatch.setattr(sys, "argv", ["geomdp", *line.split()])
    with pytest.raises(SystemExit) as stop:
        main()
    printed = capsys.readouterr()
    assert stop.value.code == 0, printed.err
    assert "no number of records found" in printed.out


def test_the_search_goes_up_to_the_last_number_that_is_accepted():
    """Doubling n to 12,000,000 is refused, but a smaller n halves the error."""
    # Sums of whole numbers up to 2^30 are exact for fewer than 2^23 records.
    workload, most = gd.workloads.Explicit(np.eye(64) * 2.0**30), 2**23 - 1
    noise = gd.mechanisms.Geometric(workload, n=1_500_000, privacy=gd.PureDP(5e-6))
    mechanism = gd.mechanisms.Projected(noise)
    target = mechanism.predicted_rmse.value / 2
    assert mechanism.with_n(6_000_000).predicted_rmse.value > target
    assert mechanism.with_n(most).predicted_rmse.value < target
    with pytest.raises(ValueError, match=f"n must be at most {most}"):
        mechanism.with_n(12_000_000)
    found = records_for_half(mechanism)
    assert found is not None
    assert mechanism.with_n(found).predicted_rmse.value <= target
    # The search stops within one percent of the least such n.
    assert mechanism.with_n(int(found * 0.99)).predicted_rmse.value > target


def test_the_search_reports_faults_other_than_too_many_records(monkeypatch):
    """A fault of the set-up for some n must not look like a limit on the number of records."""
    mechanism = gd.mechanisms.Laplace(gd.workloads.Histogram(3), n=100, privacy=gd.PureDP(1.0))

    def failing(self, n):
        raise ValueError("the set-up failed")

    monkeypatch.setattr(gd.mechanisms.Laplace, "with_n", failing)
    with pytest.raises(ValueError, match="the set-up failed"):
        records_for_half(mechanism)
