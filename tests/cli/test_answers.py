"""The geomdp command: answers against direct counts, privacy records, and bad input."""

import json
import os
import re
import subprocess
import sys
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from geomdp.advice.candidates import CANDIDATES, Candidate, Guarantees
from geomdp.data import Schema
from geomdp.tabulation.tasks import (
    MAX_CELLS,
    MAX_QUERIES,
    SIGNS_SEED,
    WORKLOAD_KINDS,
    parse_workload,
)
from geomdp.workloads import RandomSigns

N = 400
#: At this epsilon the noise is far below `TOLERANCE`, so answers are compared with the truth.
NOISELESS = ["--epsilon", "1e9", "--epsilon-above-10"]
TOLERANCE = 1e-6

SCHEMA = Schema.from_dict(
    {
        "region": ["north", "east", "south"],
        "smoker": bool,
        "retired": bool,
        "age": {"edges": [0, 18, 40, 65, 120]},
        "income": {"bounds": [0, 200000]},
    }
)


def survey() -> pd.DataFrame:
    rng = np.random.default_rng(7)
    columns = {
        "region": rng.choice(["north", "east", "south"], N, p=[0.5, 0.3, 0.2]),
        "smoker": rng.random(N) < 0.3,
        "retired": rng.random(N) < 0.2,
        "age": rng.integers(0, 100, N),
        "income": rng.uniform(0, 1e5, N).round(),
    }
    return pd.DataFrame(columns)


@pytest.fixture
def run(call):
    """Run the command in a folder that holds survey.csv and schema.json."""
    survey().to_csv("survey.csv", index=False)
    Path("schema.json").write_text(SCHEMA.to_json())
    return call


RELEASE = ("release", "survey.csv", "--schema", "schema.json", "--out", "answers.csv")


#: Columns of a file of answers that are not columns of the records.
NUMBERS = ["answer", "count", "unbiased", "noise_std", "low", "high"]


def answers():
    """Answers, indexed by query. The index of a cell names columns and levels, such as a=x,b=y."""
    tidy = pd.read_csv("answers.csv", dtype=dict.fromkeys(["smoker", "retired"], str))
    if "query" in tidy:
        return tidy.set_index("query")["answer"]
    attributes = [name for name in tidy if name not in ("table", *NUMBERS)]
    labels = [
        ",".join(f"{name}={row[name]}" for name in attributes if pd.notna(row[name]))
        for row in tidy.to_dict("records")
    ]
    return tidy["answer"].set_axis(labels)


def record() -> dict[str, object]:
    return json.loads(Path("answers.privacy.json").read_text())


# --- answers ----------------------------------------------------------------------------------


def shares(*conditions):
    return [condition.mean() for condition in conditions]


def signs_of(frame):
    elements = 2 * frame.smoker.astype(int) + frame.retired.astype(int)
    return RandomSigns(5, 4, SIGNS_SEED).answers(elements.to_numpy())


LEVELS = {"region": ["north", "east", "south"], "smoker": [False, True], "retired": [False, True]}
#: Workloads and columns, the labels of some answers, and all answers, counted from the records.
COUNTED = {
    "marginals": (
        "marginals:2 --columns region,smoker,retired",
        ["region=north,smoker=false", "region=north,smoker=true"],
        lambda f: shares(
            *((f[a] == x) & (f[b] == y) for a, b in combinations(["region", "smoker", "retired"], 2)
              for x in LEVELS[a] for y in LEVELS[b])
        ),
    ),
    "histogram": (
        "histogram --columns retired,smoker",
        ["retired=false,smoker=false", "retired=false,smoker=true"],
        lambda f: shares(~f.retired & ~f.smoker, ~f.retired & f.smoker, f.retired & ~f.smoker,
                         f.retired & f.smoker),
    ),
    "prefixes": (
        "prefixes:age",
        ["age=<=[0, 18)", "age=<=[18, 40)"],
        lambda f: shares(f.age < 18, f.age < 40, f.age < 65, f.age < 121),
    ),
    "ranges": (
        "ranges:age --columns age",
        ["age=[0, 18) to [0, 18)", "age=[0, 18) to [18, 40)"],
        lambda f: shares(*(f.age.between(low, high - 1) for low, high in
                           combinations([0, 18, 40, 65, 121], 2))),
    ),
    "parities": (
        "parities:2 --columns smoker,retired",
        ["parity(smoker,retired)"],
        lambda f: shares((1 - 2 * f.smoker.astype(int)) * (1 - 2 * f.retired.astype(int))),
    ),
    "conjunctions": (
        "conjunctions:1 --columns smoker,retired",
        ["smoker=true", "retired=true"],
        lambda f: shares(f.smoker, f.retired),
    ),
    "signs": ("signs:5 --columns smoker,retired", ["sign1"], signs_of),
    "second moments": (
        "second-moments",
        ["income*income"],
        lambda f: shares((f.income / 1e5 - 1) ** 2),
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", COUNTED)
def test_answers_are_direct_counts(run, kind):
    spec, labels, count = COUNTED[kind]
    assert run(*RELEASE, "--workload", *spec.split(), *NOISELESS).code == 0
    assert list(answers().index[: len(labels)]) == labels
    np.testing.assert_allclose(answers(), count(survey()), atol=TOLERANCE)


def test_add_remove_divides_by_the_declared_number(run):
    flags = ("--adjacency", "add-remove", "--n", "800", "--workload", "conjunctions:1")
    result = run(*RELEASE, *flags, "--columns", "smoker", *NOISELESS, "--mechanism", "laplace")
    assert result.code == 0
    assert str(N) not in result.out  # the true number of records is private
    assert answers()["smoker=true"] == pytest.approx(survey().smoker.sum() / 800, abs=TOLERANCE)
    assert record()["n"] == {"value": 800, "source": "declared"}
    assert record()["guarantee"]["adjacency"] == "add/remove"


# --- the record -------------------------------------------------------------------------------


QUERY = ("--workload", "marginals:1", "--columns", "region,smoker")


def test_record_says_what_was_claimed_and_run(run):
    result = run(*RELEASE, *QUERY, "--epsilon", "0.5")
    content = record()
    assert content["claim"] == (
        "0.5-DP, replace-one; protects a row; noise correctly rounded to multiples of 2^-8; "
        "random bits from the operating system"
    )
    assert content["claim"] in result.words
    assert content["guarantee"]["parameters"] == {"epsilon": 0.5}
    assert content["guarantee"]["sampler"] == "exact"
    asked = {"spec": "marginals:1", "description": "2 1-way tables of 2 columns"}
    assert content["workload"] == {**asked, "columns": ["region", "smoker"], "queries": 5}
    assert content["n"] == {"value": N, "source": "counted"}
    declared = SCHEMA.select(["region", "smoker"])
    assert content["schema"] == {"source": "declared in schema.json", **declared.to_dict()}
    assert content["seed"] is None
    assert set(content["versions"]) >= {"python", "geomdp", "numpy", "python-flint"}
    # `noise_std` is the error of the noise. The bound on the error of fitted tables is twice that.
    errors = pd.read_csv("answers.csv")["noise_std"]
    np.testing.assert_allclose(
        2 * np.sqrt((errors**2).mean()), content["predicted_rmse"]["value"], rtol=2e-3
    )
    assert 0 <= content["estimated_rmse"] < content["predicted_rmse"]["value"]
    form = "consistent: tables are those of one distribution, the entropic fit to noisy answers"
    assert content["answers"] == {"form": form, "confidence": 0.95, "flag_above": 0.65}


def test_seed_reproduces_and_takes_the_claim(run):
    query = (*RELEASE, *QUERY, "--epsilon", "1", "--force")
    result = run(*query, "--seed", "3")
    first = answers()
    assert record()["claim"] == "seeded: no privacy claim"
    assert "seeded: no privacy claim" in result.out
    assert record()["seed"] == 3
    run(*query, "--seed", "3")
    pd.testing.assert_series_equal(answers(), first, check_exact=True)
    run(*query, "--seed", "4")
    assert (answers() != first).all()


# --- bad input --------------------------------------------------------------------------------


SURVEY = "survey.csv --schema schema.json --out a.csv"
PLAIN = "--workload marginals:1 --columns region,smoker --epsilon 1"


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        (f"{SURVEY} {PLAIN} --rho 1", ["--epsilon", "--rho", "both"]),
        (f"{SURVEY} {PLAIN} --epsilon 0", ["--epsilon", "from 1e-12", "got 0"]),
        (f"{SURVEY} {PLAIN} --epsilon one", ["--epsilon", "'one'"]),
        (f"{SURVEY} {PLAIN} --delta 0.5", ["--delta", "below 1/2", "0.5"]),
        (f"{SURVEY} --workload marginals:1 --rho 1 --delta 0.1", ["--delta", "--rho"]),
        (f"{SURVEY} {PLAIN} --n 0", ["--n", "at least 1", "0"]),
        (f"{SURVEY} {PLAIN} --n 399", ["--n", "400", "399"]),
        (f"{SURVEY} {PLAIN} --seed -1", ["--seed", "at least 0", "-1"]),
        (f"{SURVEY} {PLAIN} --adjacency add-remove", ["add-remove", "--n"]),
        (f"{SURVEY} {PLAIN} --mechanism best", ["--mechanism", "best", "laplace"]),
        (f"{SURVEY} {PLAIN} --mechanism gaussian", ["gaussian", "purely"]),
        (f"{SURVEY} {PLAIN} --infer-schema", ["--infer-schema", "excludes --schema"]),
        (f"{SURVEY} {PLAIN} --sample rand", ["DATA and --sample"]),
        (f"{SURVEY} --workload marginals:4 --columns age --epsilon 1", ["K", "at most 1"]),
        (f"{SURVEY} --workload marginals --epsilon 1", ["--workload", "marginals:K"]),
        (f"{SURVEY} --workload prefixes:height --epsilon 1", ["prefixes", "height", "age"]),
        (f"{SURVEY} --workload parities:1 --epsilon 1", ["2 levels", "region", "3"]),
        (f"{SURVEY} {PLAIN} --columns income", ["income", "discrete"]),
        (f"{SURVEY} {PLAIN} --columns age,age", ["age", "twice"]),
        (
            f"{SURVEY} --workload second-moments --columns age --epsilon 1",
            ["must name real columns of the schema (income), got 'age'"],
        ),
        (f"{SURVEY} {PLAIN} --schema missing.json", ["missing.json"]),
        (f"{SURVEY} {PLAIN} --schema survey.csv", ["must be JSON"]),
        (f"{SURVEY} {PLAIN} --out a.txt", [".csv"]),
        (f"{SURVEY} {PLAIN} --out no/a.csv", ["existing folder"]),
        (f"{SURVEY} {PLAIN} --out survey.csv", ["would overwrite the input"]),
        (f"{PLAIN} missing.csv --schema schema.json --out a.csv", ["missing.csv"]),
        (f"{PLAIN} survey.csv --out a.csv", ["--schema"]),
        (f"{PLAIN} --schema schema.json --out a.csv", ["DATA file, --sample or --sql"]),
        (f"{PLAIN} --sample iris --out a.csv", ["rand, affairs"]),
        (f"{PLAIN} schema.json --schema schema.json --out a.csv", ["schema.json"]),
    ],
)
def test_bad_flags_fail_in_one_line_and_write_nothing(run, line, parts):
    before = sorted(os.listdir())
    said = run(f"release {line}").error()
    for part in parts:
        assert part in said
    assert sorted(os.listdir()) == before


def test_heuristic_sampler_must_be_asked_for(run):
    query = (*RELEASE, "--workload", "marginals:2", "--columns", "region,smoker,retired")
    query += ("--epsilon", "1", "--mechanism", "knorm")
    assert "--allow-heuristic" in run(*query).error()
    words = run(*query, "--allow-heuristic").words
    assert record()["claim"].startswith("heuristic")
    # The diagnostics of the chains, which depend on the workload alone, are shown and recorded.
    assert "split R-hat at most 1." in words
    assert "bulk ESS at least" in record()["guarantee"]["sampler_details"]["reason"]


def test_nothing_is_overwritten_unasked(run):
    query = (*RELEASE, *QUERY, "--epsilon", "1")
    assert run(*query).code == 0
    before = Path("answers.csv").read_text()
    assert "--force" in run(*query).error()
    Path("answers.csv").unlink()
    assert "answers.privacy.json" in run(*query).error()  # the record alone is also protected
    assert run(*query, "--force").code == 0
    assert Path("answers.csv").read_text() != before


# --- the other commands -----------------------------------------------------------------------


def test_advice_is_explained(run):
    asked = "--workload marginals:2 --columns region,smoker,retired --epsilon 1 --n 200"
    query = ("advise", "--schema", "schema.json", *asked.split())
    result = run(*query)
    assert (result.code, result.err) == (0, "")
    assert len(result.out.splitlines()) <= 12
    for part in ("best", "of 200 records", "half of rmse with", "next best", "--verbose"):
        assert part in result.words
    assert "left out" not in result.words
    words = run(*query, "--verbose", "--allow-heuristic").words
    for part in ("least predicted error", "With 200 records", "Next is", "set-up", "left out"):
        assert part in words
    for part in ("Laplace", "Ball", "KNorm", "split R-hat at most 1.", "bulk ESS at least"):
        assert part in words


def test_pure_noise_states_what_it_proves_and_what_was_asked(run):
    query = ("--workload", "histogram", "--columns", "region")
    asked = ("--epsilon", "1", "--delta", "1e-6")
    advised = run("advise", "--schema", "schema.json", *query, *asked, "--n", "400").words
    assert "privacy 1-DP, replace-one;" in advised
    assert "(it implies (1, 1e-06)-DP, which was asked for)" in advised
    paid = ("--ledger", "budget", "--budget", "rho=0.5")
    result = run(*RELEASE, *query, "--rho", "0.5", "--mechanism", "ball", *paid)
    assert result.code == 0, result.err
    words = result.words
    # 1.04363 tanh(1.04363 / 2) = 0.5.
    assert "privacy 1.04363-DP, replace-one;" in words
    assert "(it implies 0.5-zCDP, which was asked for)" in words
    assert record()["claim"].startswith("1.04363-DP, replace-one")
    assert record()["asked"] == "0.5-zCDP"
    # The release has used up the whole budget of rho = 0.5.
    refused = run(*RELEASE, *query, "--rho", "1e-6", *paid, "--force")
    assert "does not fit" in refused.err


def test_width_of_a_box_is_exact(run):
    query = ("width", "--schema", "schema.json", "--workload", "conjunctions:1")
    result = run(*query, "--columns", "smoker,retired")
    # The Gaussian width of [0, 1]^2 is 2 / sqrt(2 pi) = 0.7979.
    assert "0.7979 (exact)" in result.out
    query = ("--workload", "marginals:2", "--columns", "region,smoker,age", "--seed", "1")
    assert "at level 99.9%" in run("width", "--schema", "schema.json", *query).out


def test_lists_show_every_row(run):
    listed = run("mechanisms").out
    assert all(row.flag in listed for row in CANDIDATES)
    listed = run("workloads").out
    assert all(kind.usage in listed for kind in WORKLOAD_KINDS)


@pytest.mark.parametrize("row", CANDIDATES, ids=lambda row: row.flag)
def test_every_listed_mechanism_releases(run, row: Candidate):
    # The recursive mechanism needs seven columns or more, because with fewer its recursion has only
    # one level. Coarse and tight-cone get three columns here, and all others get two.
    sizes = {"recursive": 7, "coarse": 3, "tight-cone": 3}
    names = [f"c{i}" for i in range(sizes.get(row.flag, 2))]
    is_real = row.flag == "second-moment"
    sort = {"bounds": [0, 1]} if is_real else bool
    Path("schema.json").write_text(Schema.from_dict(dict.fromkeys(names, sort)).to_json())
    bits = np.random.default_rng(0).integers(2, size=(N, len(names)))
    pd.DataFrame(bits, columns=names).to_csv("survey.csv", index=False)
    concentrated = row.guarantees is Guarantees.CONCENTRATED
    privacy = ("--rho", "0.5") if concentrated else ("--epsilon", "1")
    asked = {"second-moment": "second-moments", "pair-marginals": "conjunctions:2",
             "coarse": "marginals:1", "staircase": "signs:1"}  # fmt: skip
    spec = asked.get(row.flag, "marginals:2")
    query = (*RELEASE, "--workload", spec, "--mechanism", row.flag, *privacy)
    run(*query, "--allow-heuristic").ok()
    columns_described = dict.fromkeys(names, () if is_real else ("0", "1"))
    assert len(answers()) == len(parse_workload(spec, columns_described).labels)


@pytest.mark.parametrize("step", ["projected", "fitted", "shrunk"])
def test_projected_answers_are_attainable(run, step):
    query = (*RELEASE, "--workload", "histogram", "--columns", "region", "--epsilon", "0.001")
    assert run(*query, "--mechanism", f"{step}-laplace").code == 0
    assert answers().min() >= -TOLERANCE
    assert answers().sum() == pytest.approx(1, abs=TOLERANCE)


def test_too_many_queries_are_refused():
    columns = {f"c{i}": [str(level) for level in range(20)] for i in range(15)}
    with pytest.raises(ValueError, match=rf"at most {MAX_CELLS} queries, got 155117520"):
        parse_workload("marginals:15", {f"c{i}": ["a", "b"] for i in range(30)})
    with pytest.raises(ValueError, match=rf"at most {MAX_QUERIES} queries"):
        parse_workload("histogram", columns)


# --- start-up -----------------------------------------------------------------------------------

#: A program that runs commands, of which none may import a module that takes a tenth of a second.
PROGRAM = """
import sys
import geomdp
from geomdp.cli import main
for line in sys.argv[1:]:
    sys.argv = ["geomdp", *line.split()]
    try:
        main()
    except SystemExit as stop:
        print("ended:", stop.code)
heavy = ["numba", "scipy.optimize", "scipy.stats", "cvxpy", "pandas", "matplotlib", "pyarrow"]
print("loaded:", [name for name in heavy if name in sys.modules])
"""
BAD = "--sample rand --epsilon 0 --workload marginals:2"


def test_nothing_heavy_is_imported_before_it_is_used():
    refused = [f"release {BAD} --out a.csv", f"advise {BAD} --n 100", f"audit {BAD}"]
    helped = ["--help", "release --help", "--version", ""]
    command = [sys.executable, "-c", PROGRAM, *refused, *helped]
    printed = subprocess.check_output(command, stderr=subprocess.DEVNULL, text=True)
    assert printed.endswith("loaded: []\n")
    ended = re.findall("^ended: (.*)", printed, re.MULTILINE)
    assert ended[:3] == ["2"] * 3
    assert set(ended[3:]) <= {"0", "None"}
    assert printed.count("Usage: ") == 3
