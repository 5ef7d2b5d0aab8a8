"""The command `bracket` prints both bounds, writes valid certificates and refuses bad input."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from geomdp.bounds.checker import check_certificate
from tests.test_cli import Run, run

__all__ = ["run"]  # the fixture

TABLES = ["bracket", "--schema", "schema.json", "--columns", "smoker,retired,age"]
TARGET = ["--workload", "marginals:2", "--epsilon", "0.5", "--alpha", "0.05"]


def test_prints_both_sides_with_reasons(run: Run) -> None:
    result = run(*TABLES, *TARGET)
    assert result.code == 0, result.err
    found = re.search(r"records\s+more than (\d+), at most (\d+)", result.out)
    assert found is not None
    lower, upper = map(int, found.groups())
    assert 0 < lower < upper
    printed = " ".join(result.out.split())
    target = "0.5-DP (replace-one) and mean l2 error per query at most 0.05"
    assert f"no mechanism has {target} with {lower}" in printed
    assert f"on every data set of {upper} records" in printed


def test_the_certificate_passes_the_check(run: Run) -> None:
    result = run(*TABLES, *TARGET, "--metric", "worst-case", "--out", "lower.json")
    assert result.code == 0, result.err
    checked = check_certificate(Path("lower.json"))
    assert f"more than {checked.records}," in result.out
    assert json.loads(Path("lower.json").read_text())["metric"].startswith("worst-case")
    assert run("check-bound", "lower.json").code == 0
    refused = run(*TABLES, *TARGET, "--out", "lower.json")
    assert "--out would overwrite" in refused.error()
    assert run(*TABLES, *TARGET, "--out", "lower.json", "--force").code == 0
    assert run("check-bound", "lower.json").code == 0


def test_conjunctions_of_two_of_three_bits(run: Run) -> None:
    """For so few columns, some constructions of packings find no code and do not apply."""
    names = ("smoker", "retired", "veteran")
    columns = [{"name": name, "kind": "boolean"} for name in names]
    document = {"format": "geomdp schema", "version": 1, "columns": columns}
    Path("three.json").write_text(json.dumps(document))
    asked = ["--workload", "conjunctions:2", "--epsilon", "1", "--alpha", "0.05"]
    result = run("bracket", "--schema", "three.json", *asked)
    assert result.code == 0, result.err
    found = re.search(r"records\s+more than (\d+), at most (\d+)", result.out)
    assert found is not None
    lower, upper = map(int, found.groups())
    assert 0 < lower < upper


@pytest.mark.parametrize(
    ("flags", "shown"),
    [
        (["--rho", "0.5"], "0.5-zCDP (replace-one)"),
        (["--epsilon", "1", "--delta", "1e-6"], "(1, 1e-06)-DP (replace-one)"),
    ],
)
def test_other_guarantees_have_brackets(run: Run, flags: list[str], shown: str) -> None:
    result = run(*TABLES, "--workload", "marginals:1", "--alpha", "0.05", *flags, "--out", "b.json")
    assert result.code == 0, result.err
    assert shown in " ".join(result.out.split())
    checked = run("check-bound", "b.json")
    assert checked.code == 0
    assert shown.partition(" ")[0] in checked.out


def test_a_bracket_needs_one_guarantee(run: Run) -> None:
    given = [*TABLES, "--workload", "marginals:1", "--alpha", "0.05"]
    assert "--epsilon (with or without --delta) or --rho" in run(*given).error()
    assert "excludes --rho" in run(*given, "--rho", "1", "--delta", "1e-6").error()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (["--alpha", "0"], "alpha must be a finite number above 0, got 0.0"),
        (["--alpha", "x"], "must be a number, got 'x'"),
        (["--epsilon", "-1"], "--epsilon must be from 1e-12 to 1e+12"),
        (["--metric", "l3"], "must be one of mean-l2, rms, worst-case, got 'l3'"),
        (["--out", "lower.csv"], "--out must name a file ending in .json"),
        (["--out", "no/lower.json"], "--out must be in an existing folder"),
        (["--alpha", "0.9", "--out", "lower.json"], "has no certificate: n >= 1"),
    ],
)
def test_bad_input_is_one_line(run: Run, change: list[str], message: str) -> None:
    result = run(*TABLES, *TARGET, *change)
    assert result.code == 2
    assert message in result.err
    assert not Path("lower.json").exists()
