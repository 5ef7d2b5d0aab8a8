"""Commands that read no records: `advise`, `budget`, plans, `curve`, `bracket`, `check-bound`."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import geomdp as gd
from geomdp.advice import comparison, setting
from geomdp.bounds.checker import check_certificate
from geomdp.cli.plans import NOT_PRIVATE, NOTHING_EXCLUDED, parse_range
from geomdp.data import Schema
from geomdp.privacy.definitions import printed

SCHEMA = Schema.from_dict({"region": ["north", "east", "south"], "smoker": bool, "retired": bool})
ADVISE = "advise --schema schema.json --n 40 --workload marginals:1 --epsilon 1"
RELEASE = "release survey.csv --schema schema.json --epsilon 1 --out a.csv"


@pytest.fixture
def run(call_in_words):
    """Run a command line in a folder with survey.csv and schema.json."""
    Path("schema.json").write_text(SCHEMA.to_json())
    Path("survey.csv").write_text("region,smoker,retired\n" + "north,true,0\nsouth,false,1\n" * 20)
    return call_in_words


def test_a_plan_is_released_without_comparing_again(run, monkeypatch):
    out = run(f"{ADVISE} --save-plan plan.json").ok()
    assert "plan plan.json, for geomdp release --plan" in out
    planned = json.loads(Path("plan.json").read_text())["mechanism"]
    monkeypatch.setattr(gd, "advise", None)
    out = run(f"{RELEASE} --workload marginals:1 --plan plan.json").ok()
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
        ("--workload marginals:1 --plan plan.json --effort 1", "--plan excludes --mechanism"),
        ("--workload marginals:1 --mechanism laplace --effort 1", "--effort needs"),
        ("--workload marginals:1 --effort 0", "--effort must be a finite number above 0, got 0"),
    ],
)
def test_plans_that_do_not_fit_are_refused(run, flags, message):
    assert run(f"{ADVISE} --save-plan plan.json")[0] == 0
    before = sorted(path.name for path in Path().iterdir())
    assert message in run(f"{RELEASE} {flags}").error()
    assert sorted(path.name for path in Path().iterdir()) == before


def test_a_plan_with_a_heuristic_sampler_needs_to_be_allowed(run):
    pairs = "--workload marginals:2"
    line = f"advise --schema schema.json --n 40 {pairs} --epsilon 1 --save-plan plan.json"
    assert run(line)[0] == 0
    plan = json.loads(Path("plan.json").read_text())
    Path("plan.json").write_text(json.dumps(plan | {"mechanism": "knorm"}))
    assert "needs --allow-heuristic" in run(f"{RELEASE} {pairs} --plan plan.json").error()
    assert not Path("a.csv").exists()


def test_a_plan_for_persons_needs_the_same_number_of_rows(run):
    """Without this, a plan for persons would be released with the claim for rows, in silence."""
    rows = Path("survey.csv").read_text().split()
    rows = [f"{rows[0]},person", *(f"{row},p{i}" for i, row in enumerate(rows[1:]))]
    Path("survey.csv").write_text("\n".join(rows))
    asked = "--schema schema.json --n 40 --workload marginals:1 --adjacency add-remove"
    persons = "--max-rows-per-person 4"
    assert run(f"advise {asked} --epsilon 4 --save-plan rows.json").code == 0
    assert run(f"budget {asked} --rmse 0.1 {persons} --save-plan persons.json").code == 0
    for command in ("advise --epsilon 4", "budget --rmse 0.1"):
        rows_only = f"{command} {asked} {persons}".replace("--adjacency add-remove", "")
        assert "needs --adjacency add-remove" in run(rows_only).error()
    line = f"release survey.csv {asked} --ledger l --budget epsilon=1000 --epsilon-above-10"
    for plan, given, said in (
        ("persons", "", "4, got none"),
        ("persons", "--max-rows-per-person 3 --person person", "4, got 3"),
        ("rows", f"{persons} --person person", "none, got 4"),
    ):
        error = run(f"{line} --plan {plan}.json {given} --out a.csv").error()
        assert f"--max-rows-per-person must be that of --plan {plan}.json, {said}" in error
        assert not Path("a.csv").exists()
        assert not Path("l").exists()
    ended = run(f"{line} --plan persons.json {persons} --person person --out a.csv")
    assert ended.code == 0, ended.err
    assert "protects a person, of whom at most 4 rows are counted" in ended.out


def test_a_plan_for_more_records_warns_in_one_line(run):
    assert run(f"{ADVISE.replace('--n 40', '--n 120')} --save-plan plan.json").code == 0
    code, _, err = run(f"{RELEASE} --workload marginals:1 --plan plan.json")
    assert code == 0
    (line,) = err.splitlines()
    assert line.startswith("warning: --plan plan.json: the plan was made for 120 records, and ")
    assert line.endswith("there are 40: noise of shares and means is 3 times that planned")


def test_a_plan_is_written_to_a_new_file_only(run):
    for file, message in (("schema.json", "name a new file"), ("no/p.json", "be in an existing")):
        assert f"--save-plan must {message}" in run(f"{ADVISE} --save-plan {file}").error()


def test_effort_limits_what_advice_may_cost(run, monkeypatch):
    budgets, try_all = [], comparison.try_all

    def noted(asked: setting.Setting):
        budgets.append(asked.budget)
        return try_all(asked)

    monkeypatch.setattr(comparison, "try_all", noted)
    assert run(f"{ADVISE} --effort 0.5")[0] == 0
    assert run(f"{RELEASE} --workload marginals:1 --effort 0.25")[0] == 0
    assert run(ADVISE)[0] == 0
    of = setting.Budget.of_seconds
    assert budgets == [of(0.5), of(0.25), setting.DEFAULT_BUDGET]


# --- advise -----------------------------------------------------------------------------------

#: Largest number of records that any mechanism accepts.
LARGEST = 2**256


def test_half_the_error_can_need_a_number_of_records_that_is_not_accepted(run):
    query = "--columns smoker --workload histogram --epsilon 1"
    code, out, err = run(f"advise --schema schema.json {query} --n {LARGEST}")
    assert code == 0, err
    assert "no number of records found" in out


# --- curve ------------------------------------------------------------------------------------


@pytest.fixture
def curve(call, monkeypatch):
    # Lower bounds for 4 errors are enough here. `test_error_curve` tests the bounds themselves.
    monkeypatch.setattr("geomdp.advice.error_curve.EXCLUDED_ERRORS", 4)
    names = ("smoker", "retired", "veteran")
    Path("schema.json").write_text(Schema.from_dict(dict.fromkeys(names, bool)).to_json())
    rows = [("true", "false", "true"), ("false", "false", "true")] * 20
    pd.DataFrame(rows, columns=names).to_csv("survey.csv", index=False)
    return lambda *words: call("curve", *words)


ASK = ["--schema", "schema.json", "--workload", "marginals:1", "--epsilon", "1", "--n", "10:1000"]


def test_a_schema_alone_gives_predictions(curve):
    result = curve(*ASK, "--out", "mine.png")
    assert "least error" in result.ok()
    assert {path.suffix for path in Path().glob("mine.*")} == {".csv", ".png", ".svg"}
    table = pd.read_csv("mine.csv")
    assert set(table.quantity) == {"predicted", "excluded"}
    assert (table.n.min(), table.n.max()) == (10, 1000)
    # The figure marks and names the best mechanisms that the command prints. By default, no
    # mechanism in the table has a heuristic sampler.
    figure = Path("mine.svg").read_text()
    for n in (10, 1000):
        best = table[(table.quantity == "predicted") & (table.n == n)]
        name = best.loc[best.rmse.idxmin(), "curve"]
        assert f"with {n} records ({name})" in result.words
        assert f"least with {n} records:" in figure
        assert name in figure
    assert NOTHING_EXCLUDED not in result.words
    assert not table.sampler.fillna("").str.startswith("heuristic").any()
    assert "use --force" in curve(*ASK, "--out", "mine.png").error()


def test_a_guarantee_without_a_lower_bound_says_so(curve):
    weak = ["--schema", "schema.json", "--workload", "marginals:2", "--rho", "5", "--n", "10:1000"]
    assert NOTHING_EXCLUDED in curve(*weak).words
    assert "no shaded region: the" in Path("curve.svg").read_text()


def test_records_are_measured_with_a_warning(curve):
    Path("curve.csv").write_text("of an earlier run")
    result = curve("survey.csv", *ASK, "--force")
    assert result.code == 0, result.err
    assert NOT_PRIVATE in " ".join(result.err.split())
    table = pd.read_csv("curve.csv")
    assert "measured, not private" in set(table.quantity)
    assert "not private" in Path("curve.svg").read_text()


def test_numbers_of_records_are_four_a_decade():
    assert parse_range("100:1000000")[::4] == [100, 1000, 10_000, 100_000, 1_000_000]
    assert parse_range("5:6") == [5, 6]
    assert len(parse_range("1:10")) == 5


# --- bracket and check-bound ------------------------------------------------------------------


@pytest.fixture
def brackets(call):
    columns = {"smoker": bool, "retired": bool, "age": {"edges": [0, 18, 40, 65, 120]}}
    Path("schema.json").write_text(Schema.from_dict(columns).to_json())
    return call


TABLES = ["bracket", "--schema", "schema.json", "--columns", "smoker,retired,age"]
TARGET = ["--workload", "marginals:2", "--epsilon", "0.5", "--alpha", "0.05"]


def test_prints_both_sides_with_reasons(brackets):
    result = brackets(*TABLES, *TARGET)
    assert result.code == 0, result.err
    found = re.search(r"records\s+more than (\d+), at most (\d+)", result.out)
    assert found is not None
    lower, upper = map(int, found.groups())
    assert 0 < lower < upper
    printed = result.words
    target = "0.5-DP (replace-one) and mean l2 error per query at most 0.05"
    assert f"no mechanism has {target} with {lower}" in printed
    assert f"on every data set of {upper} records" in printed


def test_the_certificate_passes_the_check(brackets):
    result = brackets(*TABLES, *TARGET, "--metric", "worst-case", "--out", "lower.json")
    assert result.code == 0, result.err
    checked = check_certificate(Path("lower.json"))
    assert f"more than {checked.records}," in result.out
    assert json.loads(Path("lower.json").read_text())["metric"].startswith("worst-case")
    assert brackets("check-bound", "lower.json").code == 0
    refused = brackets(*TABLES, *TARGET, "--out", "lower.json")
    assert "--out would overwrite" in refused.error()
    assert brackets(*TABLES, *TARGET, "--out", "lower.json", "--force").code == 0
    assert brackets("check-bound", "lower.json").code == 0


@pytest.mark.parametrize(
    ("flags", "shown"),
    [("--rho 0.5", "0.5-zCDP"), ("--epsilon 1 --delta 1e-6", "(1, 1e-06)-DP")],
)
def test_other_guarantees_have_brackets(brackets, flags, shown):
    asked = "--workload marginals:1 --alpha 0.05 --out b.json"
    result = brackets(*TABLES, *asked.split(), *flags.split())
    assert f"{shown} (replace-one)" in result.words, result.err
    assert shown in brackets("check-bound", "b.json").ok()


# --- budget -------------------------------------------------------------------------------------

BUDGET = "budget --schema schema.json --n 500 --workload marginals:2"


def test_the_command_says_what_the_function_finds(run):
    out = run(f"{BUDGET} --zcdp --half-width region,smoker:0.02 --half-width 0.1").ok()
    targets = [gd.advice.HalfWidth(0.02, ["region", "smoker"]), gd.advice.HalfWidth(0.1)]
    workload = SCHEMA.workload("marginals", k=2)
    found = gd.budget_for(workload, n=500, targets=targets, privacy=gd.ZCDP)
    assert f"rho {printed(found.budget)} is the least budget" in out
    assert "of region,smoker: 0.02, at most 0.02, which binds" in out
    assert found.impossible.statement in out
    for row in found.predictions():
        assert f"{row.table} {row.weight:g} " in out


def test_a_cell_is_named_by_its_levels(run):
    out = run(f"{BUDGET} --rmse region=north,smoker=true:0.1 --zcdp").ok()
    assert "root mean squared error of region=north,smoker=true" in out


def test_the_certificate_is_written_and_verified_and_the_figure_drawn(run):
    line = "budget --schema schema.json --n 500 --workload marginals:1 --rmse 0.05 --out"
    out = run(f"{line} low.json").ok()
    assert "low.json; verify it with: geomdp check-bound low.json" in out
    assert run("check-bound low.json").code == 0
    assert run(f"{line} a.png").code == 0
    header = Path("a.csv").read_text().splitlines()[0]
    assert header == "epsilon,curve,error,limit"
    assert Path("a.png").exists()
    assert Path("a.svg").exists()
    assert "would overwrite" in run(f"{line} low.json").error()


def test_a_plan_releases_what_was_found(run):
    ask = f"{BUDGET} --half-width region,smoker:0.05 --half-width 0.2 --zcdp --save-plan plan.json"
    run(ask).ok()
    targets = [gd.advice.HalfWidth(0.05, ["region", "smoker"]), gd.advice.HalfWidth(0.2)]
    workload = SCHEMA.workload("marginals", k=2)
    found = gd.budget_for(workload, n=500, targets=targets, privacy=gd.ZCDP)
    assert found.weights is not None
    assert gd.advice.load_plan("plan.json") == found.plan
    frame = pd.DataFrame({"region": ["north", "east"] * 250, "smoker": [True, False] * 250})
    frame["retired"] = frame["smoker"]
    frame.to_csv("a.csv", index=False)
    line = "release a.csv --schema schema.json --workload marginals:2 --plan plan.json"
    run(f"{line} --out b.csv --ledger l --budget rho=1").ok()
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


def test_a_plan_that_leaves_out_what_is_declared_is_not_saved(run, monkeypatch):
    """Such a plan is for other queries than those of `release`."""
    schema = SCHEMA.declare(impossible=[{"region": ["south"], "smoker": ["true"]}])
    Path("schema.json").write_text(schema.to_json())
    line = f"{BUDGET} --rmse 0.1 --zcdp --save-plan plan.json"
    assert run(f"{line} --columns smoker,retired").code == 0
    Path("plan.json").unlink()
    monkeypatch.setattr(gd, "budget_for", None)  # refused before the search
    assert "--save-plan must be left out" in run(line).err
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


ASKED = "--schema schema.json --workload marginals:2"
CURVE = f"curve {ASKED} --epsilon 1 --n 10:1000"
BRACKET = f"bracket {ASKED} --epsilon 0.5 --alpha 0.05"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (f"{CURVE} --out mine.pdf", "--out must name a file ending in .png"),
        (f"{CURVE} --out nowhere/mine.png", "--out must be in an existing folder"),
        (f"{CURVE} --n 1000:10", "--n must be LOW:HIGH"),
        (f"{CURVE} --n 10:99999999", "--n must be LOW:HIGH"),
        (f"{CURVE} --measure", "--measure needs --sample"),
        (f"{CURVE} --sample rand", "give either --schema or --sample"),
        (f"{CURVE} missing.csv", "missing.csv"),
        (f"{BRACKET} --alpha 0", "alpha must be a finite number above 0, got 0.0"),
        (f"{BRACKET} --metric l3", "must be one of mean-l2, rms, worst-case, got 'l3'"),
        (f"{BRACKET} --out lower.csv", "--out must name a file ending in .json"),
        (f"{BRACKET} --alpha 0.9 --out lower.json", "has no certificate: n >= 1"),
        (BUDGET, "give an error to reach, for instance --half-width 0.02"),
        (f"{BUDGET} --rmse many", "--rmse must end with a finite number above 0"),
        (f"{BUDGET} --largest 0", "--largest must end with a finite number above 0"),
        (f"{BUDGET} --rmse region:0.1", "--rmse region:0.1: it must name a table or a query of"),
        (f"{BUDGET} --rmse 0.1 --zcdp --delta 1e-6", "--delta excludes --zcdp"),
        (f"{BUDGET} --rmse 0.1 --delta 2", "--delta must be above 0 and below 1/2"),
        (f"{BUDGET} --rmse 0.1 --out a.pdf", "--out"),
        (f"{BUDGET} --rmse 5 --zcdp", "any budget meets them"),
    ],
)
def test_bad_flags_are_refused_and_write_nothing(run, line, said):
    before = sorted(Path().iterdir())
    code, _, err = run(line)
    assert (code, said in err) == (2, True)
    assert sorted(Path().iterdir()) == before


def test_a_proof_without_a_file_leaves_the_answer(run):
    code, out, err = run(f"{BUDGET} --half-width 0.1 --zcdp --out low.json")
    assert code == 0
    assert "is the least budget" in out
    assert "--out low.json was not written, as the proof has no file" in err
    assert not Path("low.json").exists()


@pytest.mark.parametrize("command", ["release a.csv --schema schema.json --out b.csv", "advise"])
def test_a_command_without_a_budget_offers_to_find_one(run, command):
    code, _, err = run(f"{command} --workload marginals:1 --n 5")
    assert (code, "`geomdp budget` finds the least" in err) == (2, True)
