"""The command `release`: forms of answers, mixtures, ledgers, sources, and safe inputs."""

import base64
import errno
import io
import json
import logging
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster

from geomdp._numerics.files import write_together
from geomdp.advice.setting import DEFAULT_EFFORT
from geomdp.cli import outputs
from geomdp.cli.display import logged_to, working
from geomdp.data import Schema
from geomdp.privacy import Ledger, PureDP
from tests.data.test_spoilt_records import FILES, OF_FILE, SECRET, TWO

SCHEMA = Schema.from_dict({"region": ["north", "south"], "smoker": bool, "retired": bool})
N = 60


@pytest.fixture
def run(call_in_words):
    """Run a command line in a folder with survey.csv and schema.json."""
    Path("schema.json").write_text(SCHEMA.to_json())
    rng = np.random.default_rng(0)
    pd.DataFrame(
        {
            "region": rng.choice(["north", "south"], N),
            "smoker": rng.random(N) < 0.1,
            "retired": rng.random(N) < 0.3,
        }
    ).to_csv("survey.csv", index=False)
    return call_in_words


ASK = "release survey.csv --schema schema.json --epsilon 0.2 --mechanism laplace"
TABLES = f"{ASK} --workload marginals:2"


# --- what the file holds ------------------------------------------------------------------------


def test_csv_and_parquet_hold_the_same_tidy_table(run):
    out = run(f"{TABLES} --seed 1 --out a.csv --confidence 0.9").ok()
    assert "consistent: tables are those of one distribution" in " ".join(out.split())
    assert "by an estimate from this release" in " ".join(out.split())
    assert "with 90% intervals" in out
    tidy = pd.read_csv("a.csv")
    assert list(tidy.columns) == [
        "table", "region", "smoker", "retired",
        "answer", "count", "unbiased", "noise_std", "low", "high", "flag",
    ]  # fmt: skip
    assert len(tidy) == 12
    assert (tidy.answer >= 0).all()
    assert run(f"{TABLES} --seed 1 --out b.parquet --confidence 0.9")[0] == 0
    stored = pd.read_parquet("b.parquet")
    assert list(stored.columns) == list(tidy.columns)
    np.testing.assert_array_equal(stored["count"], tidy["count"])
    assert json.loads(Path("b.privacy.json").read_text())["answers"]["confidence"] == 0.9
    assert f"flagged {(tidy.flag == 'wide').sum()} of 12 answers" in out
    run(f"{TABLES} --seed 1 --out wider.csv --flag-above 1e-3")
    assert (pd.read_csv("wider.csv").flag == "wide").all()
    error = run(f"{TABLES} --out no.csv --flag-above 0")
    assert "--flag-above must be a finite number above 0, got 0.0" in error.err


# --- persons with several rows -------------------------------------------------------------------

PERSONS = "--adjacency add-remove --n 60 --person id --max-rows-per-person 2"


def test_persons_are_protected_paid_for_and_planned_for(run):
    """A person of 30 rows counts for 2, in a release, in its record, ledger, advice and budget."""
    frame = pd.read_csv("survey.csv").assign(id=["p"] * 30 + list(range(30)))
    frame.to_csv("survey.csv", index=False)
    ask = f"{TABLES} {PERSONS}"
    protects = "0.2-DP, add/remove; protects a person, of whom at most 2 rows are counted"
    code, out, _ = run(f"{ask} --out a.csv --ledger l --budget epsilon=1")
    assert (code, protects in out) == (0, True)
    record = json.loads(Path("a.privacy.json").read_text())
    assert (record["person"], record["guarantee"]["max_rows_per_person"]) == ("id", 2)
    # A person changes 2 rows, and each of them a cell of each of three tables.
    np.testing.assert_allclose(pd.read_csv("a.csv").noise_std, np.sqrt(2) * 6 / 0.2 / 60)
    sure = TABLES.replace("0.2", "1e6") + f" {PERSONS} --epsilon-above-10 --unbiased --out b.csv"
    assert run(sure)[0] == 0
    cells = pd.read_csv("b.csv")
    totals = cells.groupby("table")["count"].sum()
    np.testing.assert_allclose(totals, 32, atol=1e-3)  # 30 others and 2 rows of p
    assert "1-DP, add/remove of a person" in run("ledger l").out
    error = run(f"{TABLES} --adjacency add-remove --n 60 --out c.csv --ledger l").error()
    assert "--ledger l is for add/remove of a person by the column id, not for add/remove" in error
    plan = "--schema schema.json --n 60 --workload marginals:2 --adjacency add-remove"
    bound = "--max-rows-per-person 2"
    assert protects in run(f"advise {plan} {bound} --epsilon 0.2").out
    printed = [run(f"budget {plan} {more} --rmse 0.05").out for more in ("", bound)]
    rows, persons = (float(re.search(r"epsilon (\S+) is the least", out)[1]) for out in printed)
    assert persons == pytest.approx(2 * rows, rel=0.02)


def test_projected_answers_are_one_flag_away(run):
    _, out, _ = run(f"{TABLES} --seed 1 --out a.csv --projected")
    assert "consistent: no cell is negative, each table adds up, tables agree" in out
    assert "estimate from this release" not in out
    # A step named with the mechanism asks for its answers.
    named = TABLES.replace("laplace", "projected-laplace")
    _, out, _ = run(f"{named} --seed 1 --out b.csv")
    assert "Projected(Laplace)" in out
    _, _, err = run(f"{TABLES} --seed 1 --out c.csv --projected --unbiased")
    assert "either --unbiased or --projected" in err


def test_unbiased_answers_are_the_noisy_ones(run):
    _, out, _ = run(f"{TABLES} --seed 1 --out a.csv --unbiased")
    assert "unbiased" in out
    tidy = pd.read_csv("a.csv")
    assert (tidy.answer < 0).any()
    code, out, _ = run(f"{ASK} --workload marginals:2 --seed 1 --out whole.csv --integers")
    assert (code, f"whole counts of {N} synthetic records" in out) == (0, True)
    assert "before counts are made whole" in out
    counts = pd.read_csv("whole.csv")
    assert counts["count"].dtype == np.int64
    assert (counts.groupby("table")["count"].sum() == N).all()


def test_synthetic_records_are_written_beside_the_answers(run):
    line = f"{ASK} --workload marginals:2 --seed 1 --out a.csv --synthetic s.csv"
    out = run(line).ok()
    assert f"{N} records drawn from the fitted distribution, s.csv" in out
    drawn, tidy = pd.read_csv("s.csv", dtype=str), pd.read_csv("a.csv", dtype=str)
    assert len(drawn) == N
    assert set(drawn["region"]) <= set(tidy["region"].dropna())
    assert "--synthetic would overwrite" in run(line.replace("a.csv", "c.csv")).err
    paid = "--ledger l.ledger --budget epsilon=9"
    for flags, message in (
        ("t.csv --unbiased", "--synthetic needs fitted tables and excludes --unbiased"),
        ("t.csv --projected", "excludes --projected"),
        ("t.csv --adjacency add-remove --n 100", "add/remove does not make the number of records"),
        ("c.csv", "must not name a file of --out"),
        ("s.txt", "ending in .csv"),
    ):
        asked = f"{ASK} --workload marginals:2 --out c.csv {paid} --synthetic {flags}"
        assert message in run(asked).error()
        assert not Path("t.csv").exists()


# --- mixtures -----------------------------------------------------------------------------------


def test_tables_and_workloads_mix_with_weights(run):
    line = f"{ASK} --workload marginals:1 --tables smoker,region --out a.csv --unbiased"
    code, out, _ = run(f"{line} --weight 1 --weight 4")
    assert (code, "each error times its weight" in out) == (0, True)
    tidy = pd.read_csv("a.csv").set_index("table")
    assert list(tidy.index.unique()) == ["region", "smoker", "retired", "region x smoker"]
    errors = tidy.noise_std.groupby(level=0).first()
    assert errors["region"] == pytest.approx(4 * errors["region x smoker"])
    workload = json.loads(Path("a.privacy.json").read_text())["workload"]
    assert workload["spec"] == "marginals:1; smoker,region"
    code, out, _ = run("advise --schema schema.json --n 60 --epsilon 1 --tables region,smoker")
    assert (code, "the table region x smoker" in out) == (0, True)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ("", "give --workload"),
        ("--tables region,shoes", "--tables region,shoes: columns must name discrete columns"),
        ("--tables region --weight 1 --weight 2", "--weight must be given once for"),
        ("--tables region --weight 0", "--weight must be a finite number above 0"),
        ("--tables region --weight x", "--weight must be a number, got 'x'"),
        ("--tables region --confidence 1", "--confidence must be above 0 and below 1"),
        ("--tables region --confidence 0.9999999", "at most 0.999999, got 0.9999999"),
        ("--tables region --budget epsilon=1", "--budget needs --ledger"),
        ("--tables region --ledger l", "give --budget, for instance"),
        ("--tables region --ledger l --budget 3", "--budget must be 'epsilon=X'"),
        ("--tables region --ledger l --budget epsilon=0", "--epsilon must be from"),
        ("--tables region --ledger l --budget rho=1 --seed 1", "no proved cost"),
        ("--tables region --ledger schema.json", "is not a privacy ledger"),
        ("--tables region --person id", "belong together, got --person only"),
        ("--tables region --max-rows-per-person 2", "got --max-rows-per-person only"),
        ("--tables region --person id --max-rows-per-person 0", "must be a whole number"),
        ("--tables region --person id --max-rows-per-person 2", "needs --adjacency add-remove"),
        (f"--tables region {PERSONS}", "the header has no column 'id'"),
        (f"--tables region {PERSONS.replace('id', 'region')}", "must be no column of the queries"),
    ],
)
def test_bad_flags_are_refused_and_write_nothing(run, flags, said):
    before = sorted(os.listdir())
    code, _, err = run(f"{ASK} --out a.csv {flags}")
    assert (code, said in err) == (2, True)
    assert sorted(os.listdir()) == before


def test_several_errors_come_at_once(run):
    line = "release survey.csv --schema schema.json --epsilon 0 --n 0 --confidence 2 --out a.txt"
    code, out, err = run(line)
    assert (code, out) == (2, "")
    lines = err.splitlines()
    assert len(lines) == 5
    assert all(line.startswith("geomdp: error: ") for line in lines)
    for flag in ("--epsilon", "--n", "--confidence", "--out", "--workload"):
        assert sum(flag in line for line in lines) >= 1


# --- no output overwrites an input --------------------------------------------------------------


def test_no_output_overwrites_an_input(run):
    Path("hard.csv").hardlink_to("survey.csv")
    Path("symbolic.csv").symlink_to("survey.csv")
    Path("answers.privacy.json").symlink_to("schema.json")
    files = [*Path().iterdir()]
    before = [path.read_bytes() for path in files]
    asked = "--schema schema.json --workload marginals:1 --epsilon 1 --force --out"
    for line, given in (
        (f"{TABLES} --force --out survey.csv", "survey.csv"),
        (f"{TABLES} --force --out hard.csv", "survey.csv"),
        (f"{TABLES} --force --out symbolic.csv", "survey.csv"),
        (f"{TABLES} --force --out answers.csv", "schema.json"),
        (f"bracket --alpha 0.1 {asked} schema.json", "schema.json"),
        (f"curve survey.csv {asked} hard.png", "survey.csv"),
    ):
        assert f"would overwrite the input '{given}'" in run(line).error()
    assert [path.read_bytes() for path in files] == before


@pytest.mark.parametrize(
    ("pattern", "out", "refused"),
    [
        ("data/*/*.csv", "data/new/a.csv", True),
        ("data/**/*.csv", "data/new/deeper/a.csv", True),
        ("data/**/*.csv", "data/a.csv", True),
        ("data/**", "data/new/a.csv", True),
        ("d[a]ta/n?w/*.csv", "data/new/a.csv", True),
        ("link/*/*.csv", "data/new/a.csv", True),
        ("data/*/*.csv", "data/linked/a.csv", True),
        ("data/*/s*.csv", "data/new/a.csv", False),
        ("data/*/*.csv", "data/new/deeper/a.csv", False),
        ("data/*/*.csv", "elsewhere/new/a.csv", False),
    ],
)
def test_no_output_becomes_an_input(run, pattern, out, refused):
    for folder in ("data/old", "data/new/deeper", "elsewhere/new"):
        Path(folder).mkdir(parents=True)
    Path("survey.csv").rename("data/old/survey.csv")
    Path("link").symlink_to("data")
    Path("data/linked").symlink_to("../elsewhere")
    line = f"release {pattern} --schema schema.json --epsilon 1 --mechanism laplace"
    code, _, err = run(f"{line} --workload marginals:1 --out {out}")
    assert (code, "would overwrite the input" in err) == ((2, True) if refused else (0, False))
    assert Path(out).exists() is not refused


# --- a full disk --------------------------------------------------------------------------------


@pytest.fixture
def disk(monkeypatch):
    """A disk of `room` bytes for unfinished files of answers; more raise ENOSPC."""
    write, room = os.write, {"left": 1 << 30, "calls": 0}

    def limited(descriptor, content):
        if not os.readlink(f"/proc/self/fd/{descriptor}").endswith(".part"):
            return write(descriptor, content)
        room["calls"] += 1
        taken = min(len(content), room["left"])
        if taken == 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        room["left"] -= taken
        return write(descriptor, bytes(content[:taken]))

    monkeypatch.setattr(os, "write", limited)
    return room


PAID = f"{TABLES} --ledger l --budget epsilon=1"


@pytest.mark.parametrize("room", [0, 1000])
def test_a_full_disk_shows_before_anything_is_paid(run, disk, room):
    disk["left"] = room
    code, _, err = run(f"{PAID} --out a.csv")
    assert code == 2
    assert re.search(r"a(.privacy.json|.csv): No space left on device$", err.strip())
    assert not Path("l").exists()
    assert not list(Path().glob(".*.part"))
    disk["left"] = 1 << 30
    assert "epsilon 0.8 of 1 left" in run(f"{PAID} --out a.csv")[1]


@pytest.mark.parametrize(("left", "elsewhere"), [(1, 0), (1500, 0), (1500, 1 << 30)])
def test_answers_that_were_paid_are_saved_elsewhere_or_printed(
    run, disk, monkeypatch, tmp_path, left, elsewhere
):
    """The disk has room when it is reserved, but another program or a copy-on-write takes it."""
    spend = Ledger.spend

    def spend_and_fill(ledger, *arguments):
        disk["left"] = left
        return spend(ledger, *arguments)

    def saved(contents):
        disk["left"] += elsewhere
        write_together(contents)

    Path("temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    monkeypatch.setattr(outputs, "write_together", saved)
    monkeypatch.setattr(Ledger, "spend", spend_and_fill)
    code, out, err = run(f"{PAID} --out a.csv")
    assert code == 2
    (folder,) = (tmp_path / "temporary").iterdir()
    place = f"in {folder}" if elsewhere else "on standard output"
    assert f"0.2-DP was charged to l, and the answers are {place}: do not pay again" in err
    assert not list(Path().glob("a.*"))
    with Ledger.existing(Path("l")) as ledger:
        assert len(ledger.spends()) == 1
    if elsewhere:
        files = [(folder / f"a.{end}").read_bytes() for end in ("privacy.json", "csv")]
    else:
        printed = re.findall(r"in base64: ([A-Za-z0-9+/= ]+?)(?= a\.csv|$)", out)
        files = list(map(base64.b64decode, printed))
    assert "correctly rounded" in files[0].decode()
    assert len(pd.read_csv(io.BytesIO(files[1]))) == 12


def test_room_for_the_answers_is_enough(run, monkeypatch):
    """No file is longer than what was taken for it, so that a full disk cannot show later."""
    taken, room = {}, outputs.room_for
    monkeypatch.setattr(outputs, "room_for", lambda sizes: taken.update(sizes) or room(sizes))
    columns = {'"' * 40 + str(i): ['"' * 90, "é" * 50] for i in range(4)}
    Path("schema.json").write_text(Schema.from_dict(columns).to_json())
    frame = {name: labels * 30 for name, labels in columns.items()}
    pd.DataFrame(frame).to_csv("survey.csv", index=False)
    for workload, out in (("marginals:3", "a.csv"), ("conjunctions:2", "b.parquet")):
        assert run(f"{ASK} --workload {workload} --epsilon 1e-3 --out {out}")[0] == 0
    assert len(taken) == 4
    assert all(path.stat().st_size <= size for path, size in taken.items())


def test_a_full_standard_output_is_no_error(run):
    """The answers are in their files, so the exit code asks nobody to try, and pay, again."""
    command = [sys.executable, "-c", "from geomdp.cli import main; main()", *PAID.split()]
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run([*command, "--out", "a.csv"], stdout=full, stderr=-1, text=True)
    assert ended.returncode == 0
    assert ended.stderr == (
        "warning: standard output: No space left on device; 0.2-DP was charged to l, and the "
        "answers are in a.csv: do not pay again\n"
    )
    assert len(pd.read_csv("a.csv")) == 12
    assert Path("a.privacy.json").exists()


# --- one budget ---------------------------------------------------------------------------------


def test_a_ledger_is_created_continued_and_exhausted(run):
    line = f"{TABLES} --force --out a.csv --ledger survey.ledger"
    error = run(f"{line} --budget epsilon=0.1").error()
    assert "0 spends so far, left is epsilon 0.1 of 0.1" in error
    assert not Path("survey.ledger").exists()
    out = run(f"{line} --budget epsilon=0.5").ok()
    assert "epsilon 0.3 of 0.5 left (survey.ledger)" in out
    assert "epsilon 0.1 of 0.5 left" in run(line)[1]
    before = Path("a.csv").read_bytes()
    Path("survey.csv").write_text("nonsense")  # the refusal comes before the records are read
    refused = run(line).error()
    assert "does not fit: budget 0.5-DP, 2 spends so far, left is epsilon 0.1 of 0.5" in refused
    assert Path("a.csv").read_bytes() == before
    out = run("ledger survey.ledger").ok()
    assert "0.5-DP, replace-one" in out
    assert "epsilon 0.1 of 0.5 left" in out
    assert out.count("0.2-DP Laplace") == 2


def test_a_ledger_keeps_its_budget_and_relation(run):
    Ledger(PureDP(1.0), path="survey.ledger").close()
    line = f"{TABLES} --out a.csv --ledger survey.ledger"
    assert "holds a budget of 1-DP" in run(f"{line} --budget epsilon=2")[2]
    assert "is for replace-one" in run(f"{line} --adjacency add-remove --n 60")[2]
    assert not Path("a.csv").exists()
    assert "no such ledger" in run("ledger missing.ledger").error()


def test_bad_records_are_not_paid_for(run):
    Ledger(PureDP(1.0), path="survey.ledger").close()
    for row, said in (("west,true,true", "row 0, column 'region'"), ("", "at least 1 record")):
        Path("survey.csv").write_text(f"region,smoker,retired\n{row}")
        assert said in run(f"{TABLES} --out a.csv --ledger survey.ledger").error()
    assert Ledger.existing("survey.ledger").spends() == []


@pytest.mark.parametrize("name", ["a text", "too many fields", "bytes", "a header of values"])
@pytest.mark.parametrize("given", [["r.csv"], ["--sql", OF_FILE]], ids=["DATA", "--sql"])
def test_the_command_prints_no_value_of_a_file_that_does_not_fit(call, caplog, name, given):
    content = FILES[name] if isinstance(FILES[name], bytes) else FILES[name].encode()
    Path("r.csv").write_bytes(content)
    Path("s.json").write_text(TWO.to_json())
    rest = ["--schema", "s.json", "--workload", "marginals:2", "--epsilon", "1", "--out", "o.csv"]
    ended = call("release", *given, *rest)
    assert ended.code != 0
    assert SECRET not in ended.out + ended.err + caplog.text
    assert "Traceback" not in ended.err


# --- progress -----------------------------------------------------------------------------------


def test_steps_go_to_a_log(run):
    assert run(f"--log steps.log {TABLES} --out a.csv")[0] == 0
    text = Path("steps.log").read_text()
    steps = ["checking the request", "reading records", "preparing the mechanism", "releasing"]
    places = [text.index(step) for step in steps]
    assert places == sorted(places)
    assert "north" not in text


def test_a_full_disk_ends_the_log_only(run):
    code, out, err = run(f"--log /dev/full {PAID} --out a.csv")
    assert (code, "epsilon 0.8 of 1 left" in out) == (0, True)
    assert err == "warning: --log /dev/full ends here: [Errno 28] No space left on device\n"
    assert len(pd.read_csv("a.csv")) == 12


def test_a_step_is_named_on_a_terminal(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("FORCE_COLOR", "1")
    with logged_to(tmp_path / "steps.log"), working("first step"):
        time.sleep(0.3)
        logging.getLogger("geomdp.advice").info("second step")
        time.sleep(0.3)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "first step" in shown.err
    assert "second step" in shown.err
    assert len((tmp_path / "steps.log").read_text().splitlines()) == 2


# --- schema -------------------------------------------------------------------------------------


def test_a_draft_of_a_schema_looks_at_no_value(run):
    Path("survey.csv").write_text("region,age\nSECRET,not a number\n")
    out = run("schema survey.csv --no-look --out draft.json").ok()
    assert "declare the kinds of columns" in out
    draft = json.loads(Path("draft.json").read_text())
    assert list(draft["columns"]) == ["region", "age"]
    assert "SECRET" not in Path("draft.json").read_text()
    line = "release survey.csv --schema draft.json --tables age --epsilon 1 --out a.csv"
    assert "at least 1 column that is not skipped" in run(line).error()
    error = run("schema survey.csv --out survey.csv --force").error()
    assert "--out must name a file ending in .json" in error
    Path("link.json").symlink_to("survey.csv")
    assert "would overwrite the input" in run("schema survey.csv --out link.json --force").error()


def test_a_look_at_the_values_is_called_what_it_is(run):
    code, out, err = run("schema survey.csv")
    assert code == 0
    assert "the draft depends on the records, so a release with it has no privacy claim" in err
    assert "geomdp schema confirm FILE" in err
    assert run("schema survey.csv --look") == (code, out, err)
    own = {"categories": ["north", "south"], "drafted": True}
    assert json.loads(out)["columns"]["region"] == {"kind": "categorical", **own}


def test_help_states_the_default_effort_and_the_rights_of_a_user(run):
    """The flag has no value by default, so its help text must name the limit that then applies."""
    _, out, _ = run("release --help")
    text = " ".join(re.sub("[\u2500-\u257f]", " ", out).split())
    assert f"The default is {DEFAULT_EFFORT:g}." in text
    assert "USER should have the right to read and no other right." in text


# --- folders, patterns, queries and a cluster ----------------------------------------------------

FLAGS = ["--schema", "s.json", "--workload", "marginals:1", "--epsilon", "1", "--seed", "3"]


@pytest.fixture
def release(call):
    """Run `release` where r.csv and the three files of the folder `parts` hold the same records."""
    frame = pd.DataFrame({"region": ["north"] * 200 + ["south"] * 100, "smoker": [0, 1, 1] * 100})
    frame.to_csv("r.csv", index=False)
    Path("parts").mkdir()
    for i in range(3):
        frame[100 * i : 100 * (i + 1)].to_parquet(f"parts/{i}.parquet")
    Path("s.json").write_text(SCHEMA.select(["region", "smoker"]).to_json())

    def run(*flags):
        flags = flags if "--out" in flags else (*flags, "--out", "a.csv")
        code, _, err = call("release", *flags, *FLAGS, "--force")
        return code, err, pd.read_csv(flags[-1]) if code == 0 else None

    return run


def test_a_folder_a_pattern_and_a_query_give_the_answers_of_the_file(release):
    _, _, expected = release("r.csv")
    for where in (["parts"], ["parts/*.parquet"], ["--sql", "FROM 'parts/*.parquet'"]):
        code, err, found = release(*where)
        assert code == 0, err
        pd.testing.assert_frame_equal(found, expected)


@pytest.mark.filterwarnings("ignore")
def test_a_cluster_gives_the_answers_of_the_file(release):
    _, _, expected = release("r.csv")
    settings = {"processes": False, "dashboard_address": None, "protocol": "tcp"}
    with LocalCluster(n_workers=1, **settings) as cluster, Client(cluster) as client:
        code, err, found = release("parts", "--scheduler", client.scheduler.address)
    assert code == 0, err
    pd.testing.assert_frame_equal(found, expected)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["r.csv", "--database", "x.duckdb"], "--database needs --sql"),
        (["r.csv", "--sql", "SELECT 1"], "got DATA and --sql"),
        (["--sql", "SELECT region FROM 'parts/*.parquet'"], "column 'smoker' once"),
        (["--sql", "SELECT * FROM 'r.csv'"], "text file whose types DuckDB would find"),
        (["nothing"], "no such file of records"),
    ],
)
def test_wrong_sources_fail_in_one_line(release, flags, message):
    code, err, _ = release(*flags)
    assert (code, message in err, len(err.splitlines())) == (2, True, 1)


@pytest.mark.usefixtures("release")
def test_a_schema_is_drafted_for_a_folder(call):
    for where in ("parts", "parts/*.parquet"):
        columns = json.loads(call("schema", where).out)["columns"]
        assert list(columns) == ["region", "smoker"]
        assert columns["region"]["categories"] == ["north", "south"]
    pd.DataFrame({"region": ["north"], "age": [3]}).to_csv("parts/3.csv", index=False)
    error = call("schema", "parts").error()
    assert "files must have the same columns: " in error
    assert "parts/3.csv differ in ['age', 'smoker']" in error
    assert "no such file of records" in call("schema", "no/*.csv").error()
