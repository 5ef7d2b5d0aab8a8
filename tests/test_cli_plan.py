"""The flag --effort limits the cost of advice; --save-plan and --plan keep advice in a file."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from geomdp.advice import setting
from geomdp.cli import inputs, main

SCHEMA = {
    "format": "geomdp schema",
    "version": 1,
    "columns": [
        {"name": "region", "kind": "categorical", "categories": ["north", "east", "south"]},
        {"name": "smoker", "kind": "boolean"},
        {"name": "retired", "kind": "boolean"},
    ],
}
ADVISE = "advise --schema schema.json --n 40 --workload marginals:1 --epsilon 1"
RELEASE = "release survey.csv --schema schema.json --epsilon 1 --out a.csv"


@pytest.fixture
def call(tmp_path, monkeypatch, capsys):
    """A function that runs a command line and returns its exit code, output and errors."""
    monkeypatch.chdir(tmp_path)
    Path("schema.json").write_text(json.dumps(SCHEMA))
    Path("survey.csv").write_text("region,smoker,retired\n" + "north,true,0\nsouth,false,1\n" * 20)

    def run(line: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["geomdp", *line.split()])
        with pytest.raises(SystemExit) as stop:
            main()
        printed = capsys.readouterr()
        return stop.value.code, " ".join(printed.out.split()), printed.err

    return run


def test_a_plan_is_released_without_comparing_again(call, monkeypatch):
    code, out, err = call(f"{ADVISE} --save-plan plan.json")
    assert (code, err) == (0, "")
    assert "plan plan.json, for geomdp release --plan" in out
    planned = json.loads(Path("plan.json").read_text())["mechanism"]

    def compare(asked):
        raise AssertionError("a plan needs no comparison")

    monkeypatch.setattr(inputs, "advise_on", compare)
    code, out, err = call(f"{RELEASE} --workload marginals:1 --plan plan.json")
    assert (code, err) == (0, "")
    assert "chosen by the plan in plan.json" in out
    made = json.loads(Path("a.privacy.json").read_text())["mechanism"]
    assert made["chosen_by"] == "the plan in plan.json"
    assert made["name"].lower().split("(")[0] in planned


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--workload marginals:2 --plan plan.json", "--plan plan.json: workload must be the one"),
        ("--workload marginals:1 --plan no.json", "no.json: No such file"),
        ("--workload marginals:1 --plan schema.json", "schema.json must hold a plan"),
        (
            "--workload marginals:1 --plan plan.json --mechanism laplace",
            "--plan excludes --mechanism",
        ),
        ("--workload marginals:1 --plan plan.json --effort 1", "--plan excludes --mechanism"),
        ("--workload marginals:1 --mechanism laplace --effort 1", "--effort needs"),
        ("--workload marginals:1 --effort 0", "--effort must be a finite number above 0, got 0"),
        ("--workload marginals:1 --effort inf", "--effort must be a finite number above 0"),
    ],
)
def test_plans_that_do_not_fit_are_refused(call, flags, message):
    assert call(f"{ADVISE} --save-plan plan.json")[0] == 0
    before = sorted(path.name for path in Path().iterdir())
    code, out, err = call(f"{RELEASE} {flags}")
    assert (code, out) == (2, "")
    assert message in err
    assert sorted(path.name for path in Path().iterdir()) == before


def test_a_plan_with_a_heuristic_sampler_needs_to_be_allowed(call):
    pairs = "--workload marginals:2"
    line = f"advise --schema schema.json --n 40 {pairs} --epsilon 1 --save-plan plan.json"
    assert call(line)[0] == 0
    plan = json.loads(Path("plan.json").read_text())
    Path("plan.json").write_text(json.dumps(plan | {"mechanism": "knorm"}))
    code, _, err = call(f"{RELEASE} {pairs} --plan plan.json")
    assert (code, "needs --allow-heuristic" in err) == (2, True)
    assert not Path("a.csv").exists()


def test_a_plan_is_written_to_a_new_file_only(call):
    for flags, message in (
        ("--save-plan schema.json", "--save-plan must name a new file"),
        ("--save-plan no/plan.json", "--save-plan must be in an existing folder"),
    ):
        code, out, err = call(f"{ADVISE} {flags}")
        assert (code, out) == (2, "")
        assert message in err


def test_effort_limits_what_advice_may_cost(call, monkeypatch):
    budgets = []
    advise_on = inputs.advise_on

    def noted(asked: setting.Setting):
        budgets.append(asked.budget)
        return advise_on(asked)

    monkeypatch.setattr(inputs, "advise_on", noted)
    monkeypatch.setattr("geomdp.advice.advisor.advise_on", noted)
    assert call(f"{ADVISE} --effort 0.5")[0] == 0
    assert call(f"{RELEASE} --workload marginals:1 --effort 0.25")[0] == 0
    assert call(ADVISE)[0] == 0
    of = setting.Budget.of_seconds
    assert budgets == [of(0.5), of(0.25), setting.DEFAULT_BUDGET]
