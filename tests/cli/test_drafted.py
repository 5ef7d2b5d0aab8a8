"""A schema that was read from records leads to no privacy claim, whichever way it comes in."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import geomdp as gd
from geomdp.data import Schema

N = 40
REASON = "edges of age were read from the records"
FRAME = pd.DataFrame({"age": np.arange(20.0, 20 + N), "smoker": ["daily", "never"] * (N // 2)})
PUBLIC = Schema.from_dict(
    {"age": {"edges": [20, 40, 60]}, "smoker": {"categories": ["daily", "never"]}}
)
DRAFTED = Schema.from_dict(
    {**PUBLIC.to_dict()["columns"], "age": {"edges": [20, 40, 60], "drafted": True}}
)
REAL = {"a": {"bounds": [0, 100], "drafted": True}, "b": {"bounds": [0, 1]}}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    FRAME.to_csv("d.csv", index=False)
    FRAME.to_parquet("d.parquet")


@pytest.fixture
def run(call_in_words, folder):
    """Run a command in a folder with d.csv; output and errors are one line each."""

    def ended(*words):
        found = call_in_words(*words)
        return found._replace(err=" ".join(found.err.split()))

    return ended


def write(schema):
    Path("s.json").write_text(schema.to_json())


# --- from Python ----------------------------------------------------------------------------------

#: Ways to a schema that holds the drafted column.
SCHEMAS = {
    "the schema": lambda schema: schema,
    "json": lambda schema: Schema.from_json(schema.to_json()),
    "columns of dict": lambda schema: Schema.from_dict(schema.to_dict()["columns"]),
    "select": lambda schema: schema.select(["smoker", "age"]),
    "confirm another": lambda schema: schema.confirm("smoker"),
    "columns": lambda schema: Schema(schema.columns[::-1]),
    "replace": lambda schema: Schema(
        tuple(dataclasses.replace(column, missing=True) for column in schema.columns)
    ),
}


@pytest.mark.parametrize("way", SCHEMAS)
def test_no_way_of_handing_on_a_schema_loses_the_mark(way):
    schema = SCHEMAS[way](DRAFTED)
    assert schema.column("age").drafted
    guarantee = gd.release(FRAME, schema, "marginals:1", epsilon=1.0).guarantee
    assert str(guarantee).startswith("no privacy claim: edges")
    public = gd.release(FRAME, SCHEMAS[way](PUBLIC), "marginals:1", epsilon=1.0).guarantee
    assert str(public).startswith("1-DP")


def released(schema, **options):
    return gd.release(FRAME, schema, "marginals:1", epsilon=1.0, **options)


def summary(schema):
    return gd.SmoothSummary(2, n=N, smoothness=1, privacy=gd.PureDP(1.0), schema=schema)


def real(drafted):
    """The real columns, with or without the mark."""
    schema = Schema.from_dict(REAL)
    return schema if drafted else schema.confirm()


def saved_summary(drafted):
    summary(real(drafted)).release(np.zeros((N, 2))).save("s.npz")
    return gd.mechanisms.SmoothRelease.load("s.npz").guarantee


def marked(drafted):
    return DRAFTED if drafted else PUBLIC


def inferred(drafted):
    schema = gd.data.infer_schema("d.csv", ["age"], max_categories=5, bins=2).schema
    return released(schema if drafted else schema.confirm()).guarantee


#: Everything from Python that has a privacy record, for a schema with or without the mark.
RECORDS = {
    "release": lambda drafted: released(marked(drafted)).guarantee,
    "the release inside": lambda drafted: released(marked(drafted)).released.guarantee,
    "unbiased": lambda drafted: released(marked(drafted), unbiased=True).guarantee,
    "path": lambda drafted: (
        gd.release("d.csv", marked(drafted), "histogram", epsilon=1.0).guarantee
    ),
    "inferred": inferred,
    "repr": lambda drafted: repr(released(marked(drafted))).splitlines()[0].partition(": ")[2],
    "covariance": lambda drafted: (
        gd.tabulation.covariance(
            pd.DataFrame({"a": [1.0] * N, "b": [0.5] * N}), real(drafted), privacy=gd.PureDP(1.0)
        ).guarantee
    ),
    "smooth summary": lambda drafted: summary(real(drafted)).guarantee,
    "smooth release": saved_summary,
}


@pytest.mark.parametrize("way", RECORDS)
@pytest.mark.usefixtures("folder")
def test_no_record_claims_privacy_for_a_drafted_schema(way):
    said = str(RECORDS[way](True))
    assert said.startswith("no privacy claim: ")
    assert "were read from the records" in said
    assert str(RECORDS[way](False)).startswith("1-DP")


def test_only_the_columns_of_the_release_count():
    alone = gd.release(FRAME, DRAFTED, "marginals:1", epsilon=1.0, columns=["smoker"])
    assert str(alone.guarantee).startswith("1-DP")


def test_a_column_must_not_be_named_like_the_one_that_says_why_there_is_no_claim():
    schema = Schema.from_dict({"privacy": {"categories": ["daily", "never"], "drafted": True}})
    with pytest.raises(ValueError, match=r"columns \['privacy'\] must be renamed"):
        gd.release(FRAME.rename(columns={"smoker": "privacy"}), schema, "histogram", epsilon=1.0)


def test_a_bare_workload_or_universe_cannot_carry_the_mark_so_it_is_refused():
    for build in (DRAFTED.universe, lambda: DRAFTED.workload("marginals", k=1)):
        with pytest.raises(ValueError, match=f"{REASON}: call confirm"):
            build()


@pytest.mark.parametrize(
    "pay",
    [
        lambda ledger: released(DRAFTED, ledger=ledger),
        lambda ledger: gd.tabulation.covariance(
            pd.DataFrame({"a": [1.0], "b": [0.5]}),
            real(True),
            privacy=gd.PureDP(1.0),
            ledger=ledger,
        ),
        lambda ledger: summary(real(True)).release(np.zeros((N, 2)), ledger=ledger),
        lambda ledger: ledger.spend(released(DRAFTED).guarantee, "by hand"),
    ],
)
def test_a_ledger_refuses_what_it_cannot_account_for(pay):
    ledger = gd.Ledger(gd.PureDP(3.0))
    with pytest.raises(ValueError, match="must have a proved cost, got 'no privacy claim: "):
        pay(ledger)
    assert ledger.spends() == []


def test_a_record_keeps_the_reason():
    guarantee = released(DRAFTED).guarantee
    record = json.loads(json.dumps(guarantee.to_dict()))
    assert record["withdrawn"] == REASON
    assert gd.privacy.Guarantee.from_dict(record) == guarantee
    assert str(guarantee.as_seeded()) == f"seeded: no privacy claim: {REASON}"
    assert str(guarantee.without_claim("")) == f"no privacy claim: {REASON}"
    assert "withdrawn" in repr(guarantee)
    old = released(PUBLIC).guarantee.to_dict()
    del old["withdrawn"]  # as in files written before claims could be withdrawn
    assert gd.privacy.Guarantee.from_dict(old).is_claim


# --- from the command line ------------------------------------------------------------------------

RELEASE = ["--workload", "marginals:1", "--epsilon", "1", "--out", "a.csv", "--force"]
PLAN = ["--schema", "s.json", "--workload", "marginals:1", "--columns", "age", "--n", "40"]
ASK = ["ask", "d.csv", "--schema", "s.json", "--queries", "q.txt", "--state", "state.jsonl"]
SPARSE = [*ASK, "--technique", "sparse", "--threshold", "0.1", "--cutoff", "1"]

#: Commands that state a privacy claim on the terminal.
COMMANDS = {
    "release": ["release", "d.csv", "--schema", "s.json", *RELEASE],
    "sql": ["release", "--sql", "SELECT * FROM 'd.parquet'", "--schema", "s.json", *RELEASE],
    "infer": ["release", "d.csv", "--infer-schema", *RELEASE],
    "advise": ["advise", *PLAN, "--epsilon", "1"],
    "audit": ["audit", *PLAN, "--epsilon", "1", "--mechanism", "laplace", "--trials", "64"],
}


@pytest.mark.parametrize("command", ["release", "sql", "advise", "audit"])
def test_no_command_claims_privacy_for_a_drafted_schema(run, command):
    write(DRAFTED)
    code, out, err = run(*COMMANDS[command])
    assert code == 0
    assert f"no privacy claim: {REASON}" in out
    assert f"warning: no privacy claim: {REASON}" in err
    assert "geomdp schema confirm" in err
    write(PUBLIC)
    code, out, err = run(*COMMANDS[command])
    assert (code, err, "no privacy claim" in out) == (0, "", False)
    assert "1-DP, replace-one" in out


@pytest.mark.parametrize("way", ["release", "sql", "infer"])
def test_the_files_of_a_release_say_that_there_is_no_claim(run, way):
    write(DRAFTED)
    run(*COMMANDS[way])
    record = json.loads(Path("a.privacy.json").read_text())
    assert record["claim"] == record["guarantee"]["statement"]
    assert record["claim"].startswith("no privacy claim: edges of age")
    assert record["schema"]["columns"]["age"]["drafted"]
    assert set(pd.read_csv("a.csv")["privacy"]) == {record["claim"]}


def test_ask_writes_that_there_is_no_claim(run):
    Path("q.txt").write_text("smoker=daily\n")
    write(DRAFTED)
    code, _, err = run(*SPARSE, "--epsilon", "1")
    assert (code, REASON in err) == (0, True)
    first = json.loads(Path("state.jsonl").read_text().splitlines()[0])
    assert first["claim"].startswith(f"no privacy claim: {REASON}")


@pytest.mark.parametrize(
    "command",
    [COMMANDS["release"], COMMANDS["infer"], [*SPARSE, "--epsilon", "1"]],
    ids=["release", "infer", "ask"],
)
def test_a_ledger_file_is_charged_nothing(run, command):
    Path("q.txt").write_text("smoker=daily\n")
    write(DRAFTED)
    gd.Ledger(gd.PureDP(3.0), path="l.ledger").close()
    code, _, err = run(*command, "--ledger", "l.ledger")
    assert (code, "proved cost" in err) == (2, True)
    with gd.Ledger.existing("l.ledger") as ledger:
        assert ledger.spends() == []
    assert not Path("a.csv").exists()


# --- confirming -----------------------------------------------------------------------------------


def test_from_an_unknown_file_to_a_claim_in_three_commands(run):
    assert run("schema", "d.csv", "--look", "--out", "s.json")[0] == 0
    assert "no privacy claim" in run(*COMMANDS["release"])[1]
    code, out, err = run("schema", "confirm", "s.json", "smoker")
    assert (code, err) == (0, f"warning: no privacy claim: {REASON}")
    assert 'smoker categorical, categories ["daily", "never"]' in out
    assert f"no privacy claim: {REASON}" in run(*COMMANDS["release"])[1]
    assert run("schema", "confirm", "s.json")[0] == 0
    columns = json.loads(Path("s.json").read_text())["columns"]
    assert all(column["confirmed"] and "drafted" not in column for column in columns.values())
    assert "1-DP, replace-one" in run(*COMMANDS["release"]).ok()
    record = json.loads(Path("a.privacy.json").read_text())
    assert record["schema"]["columns"]["age"]["confirmed"]


def test_confirm_refuses_what_is_not_there_and_leaves_the_file(run):
    write(DRAFTED)
    before = Path("s.json").read_bytes()
    code, _, err = run("schema", "confirm", "s.json", "income")
    assert (code, "the schema has no column 'income'" in err) == (2, True)
    assert Path("s.json").read_bytes() == before
    write(PUBLIC)
    assert "confirmed no column" in run("schema", "confirm", "s.json").out


@pytest.mark.usefixtures("folder")
def test_all_faults_of_a_schema_file_are_printed_one_a_line(call):
    columns = {"age": {"edges": [1, 0]}, "sex": {"kind": "gender"}, "b": 3}
    document = {"format": "geomdp schema", "version": 2, "columns": columns}
    Path("s.json").write_text(json.dumps(document))
    ended = call(*COMMANDS["release"])
    assert ended.code == 2
    for name, line in zip(columns, ended.err.splitlines(), strict=True):
        assert line.startswith(f"geomdp: error: --schema s.json: column '{name}'")
        assert f'"{name}": {{"kind": ' in line


def test_a_draft_refuses_a_header_with_control_characters(run):
    Path("e.csv").write_text("age,\u202esmoker\n1,daily\n", encoding="utf-8")
    code, out, err = run("schema", "e.csv")
    assert (code, out) == (2, "")
    assert "a column's name must have no control character, got '\\u202esmoker'" in err


def test_the_format_for_editors_is_printed(run):
    assert json.loads(run("schema", "editor").ok())["title"] == "geomdp schema"


# --- large epsilon --------------------------------------------------------------------------------


def test_python_warns_of_a_large_epsilon():
    says = r"epsilon 10\.5 .* by a factor of up to e\^10\.5"
    with pytest.warns(UserWarning, match=says) as warned:
        gd.release(FRAME, PUBLIC, "marginals:1", epsilon=10.5)
    assert [Path(warning.filename) for warning in warned] == [Path(__file__)]


@pytest.mark.parametrize(
    "command",
    [
        ["release", "d.csv", "--schema", "s.json", "--workload", "marginals:1", "--out", "a.csv"],
        SPARSE,
        ["smooth", "summarize", "x.csv", "--bounds=x=0:1", "--smoothness", "1", "--out", "o.npz"],
    ],
    ids=["release", "ask", "smooth"],
)
def test_commands_ask_for_a_flag_above_ten(run, command):
    write(PUBLIC)
    Path("q.txt").write_text("smoker=daily\n")
    Path("x.csv").write_text("x\n" + "0.5\n" * 20)
    code, _, err = run(*command, "--epsilon", "11")
    assert code == 2
    assert "--epsilon 11 protects little: one record can change the odds" in err
    assert "add --epsilon-above-10" in err
    run(*command, "--epsilon", "11", "--epsilon-above-10").ok()


def test_codes_and_counts_of_a_drafted_schema_are_refused():
    """A mechanism that gets codes or counts cannot see the mark, so there are none."""
    workload = gd.workloads.MarginalTables(DRAFTED.levels, 1)
    for read in (
        lambda schema: list(gd.data.encode(FRAME, schema, workload.universe)),
        lambda schema: gd.data.count_records(gd.data.source_of(FRAME), schema, workload),
    ):
        with pytest.raises(ValueError, match=r"edges .* were read from the records: call confirm"):
            read(DRAFTED)
        assert read(DRAFTED.confirm())
