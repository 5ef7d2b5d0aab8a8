"""The command `budget`: it says what `budget_for` finds, and refuses bad flags before any work."""

from __future__ import annotations

from pathlib import Path

import pytest

import geomdp as gd
from geomdp.data import Schema
from geomdp.privacy.definitions import printed

SCHEMA = Schema.from_dict({"region": ["north", "east", "south"], "smoker": bool, "retired": bool})
BUDGET = "budget --schema schema.json --n 500 --workload marginals:2"


@pytest.fixture
def run(call):
    """Run a command line in a folder with schema.json; code, output on one line, and errors."""
    Path("schema.json").write_text(SCHEMA.to_json())

    def ended(line):
        found = call(line)
        return found._replace(out=found.words)

    return ended


def test_the_command_says_what_the_function_finds(run):
    code, out, err = run(f"{BUDGET} --zcdp --half-width region,smoker:0.02 --half-width 0.1")
    assert (code, err) == (0, "")
    targets = [gd.advice.HalfWidth(0.02, ["region", "smoker"]), gd.advice.HalfWidth(0.1)]
    workload = SCHEMA.workload("marginals", k=2)
    found = gd.budget_for(workload, n=500, targets=targets, privacy=gd.ZCDP)
    assert f"rho {printed(found.budget)} is the least budget" in out
    assert "of region,smoker: 0.02, at most 0.02, which binds" in out
    assert found.impossible.statement in out
    for row in found.predictions():
        assert f"{row.table} {row.weight:g} " in out


def test_a_cell_is_named_by_its_levels(run):
    code, out, err = run(f"{BUDGET} --rmse region=north,smoker=true:0.1 --zcdp")
    assert (code, err) == (0, "")
    assert "root mean squared error of region=north,smoker=true" in out


def test_the_certificate_is_written_and_verified_and_the_figure_drawn(run):
    line = f"{BUDGET} --rmse 0.05 --out"
    code, out, err = run(f"{line} low.json")
    assert (code, err) == (0, "")
    assert "low.json; verify it with: geomdp check-bound low.json" in out
    assert run("check-bound low.json").code == 0
    assert run(f"{line} a.png").code == 0
    header = Path("a.csv").read_text().splitlines()[0]
    assert header == "epsilon,curve,error,limit"
    assert Path("a.png").exists()
    assert Path("a.svg").exists()
    for name in ("low.json", "a.png"):
        assert "would overwrite" in run(f"{line} {name}").error()


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ("", "give an error to reach, for instance --half-width 0.02"),
        ("--rmse many", "--rmse must end with a finite number above 0"),
        ("--largest 0", "--largest must end with a finite number above 0"),
        ("--rmse region:nan", "--rmse must end with a finite number above 0"),
        ("--rmse region:0.1", "--rmse region:0.1: it must name a table or a query of"),
        ("--rmse 0.1 --zcdp --delta 1e-6", "--delta excludes --zcdp"),
        ("--rmse 0.1 --delta 2", "--delta must be above 0 and below 1/2"),
        ("--rmse 0.1 --out a.pdf", "--out"),
        ("--rmse 5 --zcdp", "any budget meets them"),
    ],
)
def test_bad_flags_are_refused(run, flags, said):
    code, _, err = run(f"{BUDGET} {flags}")
    assert code != 0
    assert said in err
    assert not Path("low.json").exists()


def test_a_proof_without_a_file_leaves_the_answer(run):
    code, out, err = run(f"{BUDGET} --half-width 0.1 --zcdp --out low.json")
    assert code == 0
    assert "is the least budget" in out
    assert "--out low.json was not written, as the proof has no file" in err
    assert not Path("low.json").exists()


@pytest.mark.parametrize("command", ["release a.csv --schema schema.json --out b.csv", "advise"])
def test_a_command_without_a_budget_offers_to_find_one(run, command):
    code, _, err = run(f"{command} --workload marginals:1 --n 5")
    assert code != 0
    assert "`geomdp budget` finds the least" in err
