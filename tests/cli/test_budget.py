"""The command `budget`: it says what `budget_for` finds, and refuses bad flags before any work."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
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


def test_a_plan_releases_what_was_found(run):
    ask = f"{BUDGET} --half-width region,smoker:0.05 --half-width 0.2 --zcdp --save-plan plan.json"
    code, _, err = run(ask)
    assert (code, err) == (0, "")
    targets = [gd.advice.HalfWidth(0.05, ["region", "smoker"]), gd.advice.HalfWidth(0.2)]
    workload = SCHEMA.workload("marginals", k=2)
    found = gd.budget_for(workload, n=500, targets=targets, privacy=gd.ZCDP)
    assert found.weights is not None
    assert gd.advice.load_plan("plan.json") == found.plan
    frame = pd.DataFrame({"region": ["north", "east"] * 250, "smoker": [True, False] * 250})
    frame["retired"] = frame["smoker"]
    frame.to_csv("a.csv", index=False)
    line = "release a.csv --schema schema.json --workload marginals:2 --plan plan.json"
    code, _, err = run(f"{line} --out b.csv --ledger l --budget rho=1")
    assert (code, err) == (0, "")
    asked = {"privacy": found.privacy, "weights": found.weights, "mechanism": found.plan}
    released = gd.release(frame, SCHEMA, "marginals:2", **asked)
    answers = pd.read_csv("b.csv")
    assert np.allclose(answers["noise_std"], released.noise_std)
    wide = (answers["unbiased"] - answers["low"])[answers["low"] > 0] - 1e-9
    assert wide[answers["table"] == "region x smoker"].max() <= 0.05
    assert wide.max() <= 0.2
    with pytest.raises(ValueError, match=r"budget_for\(...\).plan"):
        gd.release(frame, SCHEMA, "marginals:2", epsilon=1, mechanism=found.mechanism)


def test_weights_of_a_plan_exclude_others(run):
    pair = "--workload marginals:2 --workload marginals:1 --schema schema.json"
    found = f"budget {pair} --n 4 --half-width region,smoker:0.5 --half-width 2 --zcdp"
    assert run(f"{found} --save-plan plan.json").code == 0
    assert gd.advice.load_plan("plan.json").weights is not None
    Path("a.csv").write_text("region,smoker,retired\n" + "north,yes,no\n" * 4)
    line = f"release a.csv {pair} --plan plan.json --epsilon-above-10 --out b.csv"
    error = run(f"{line} --weight 1 --weight 5").error()
    assert "--weight must be left out: --plan plan.json has weights of its own" in error
    assert not Path("b.csv").exists()
    assert run(line).code == 0


@pytest.mark.parametrize("declared", ["impossible", "refines"])
def test_a_plan_that_leaves_out_what_is_declared_is_not_saved(run, declared, monkeypatch):
    """Such a plan is for other queries than those of `release`."""
    own = {
        "impossible": [{"region": ["south"], "smoker": ["true"]}],
        "refines": {"region": {"smoker": {"true": ["north"], "false": ["east", "south"]}}},
    }
    schema = SCHEMA.declare(**{declared: own[declared]})
    Path("schema.json").write_text(schema.to_json())
    line = f"{BUDGET} --rmse 0.1 --save-plan plan.json"
    assert run(f"{line} --columns smoker,retired").code == 0
    Path("plan.json").unlink()
    assert run(f"{BUDGET} --rmse 0.1").code == 0
    monkeypatch.setattr(gd, "budget_for", None)  # refused before the search
    code, _, err = run(line)
    assert code == 2
    assert "--save-plan must be left out" in err
    assert "use `geomdp advise --save-plan`" in err
    assert not Path("plan.json").exists()


def test_one_mechanism_has_the_same_errors_in_all_commands(run):
    budget = run(f"{BUDGET} --rmse 0.05 --zcdp --save-plan plan.json").out
    asked = "--schema schema.json --n 500 --workload marginals:2"
    rho = gd.advice.load_plan("plan.json").parameters["rho"]
    advised = run(f"advise {asked} --rho {rho}").out
    rows = ["region,smoker,retired", *["north,yes,no"] * 500]
    Path("a.csv").write_text("\n".join(rows) + "\n")
    released = run(f"release a.csv {asked} --plan plan.json --projected --out b.csv").out
    noise, rmse = re.findall(r"rmse ([0-9.e-]+) per query", budget)
    for out in (advised, released):
        assert f"noise rmse {noise} per query" in out
        assert f" rmse {rmse} per query (upper bound" in out


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
