"""Schemas that declare what is impossible, on the command line, for tables of strangers."""

from __future__ import annotations

import csv
import json
import random
from pathlib import Path

import pandas as pd
import pytest

from geomdp.privacy import Ledger, PureDP
from tests.cli.test_strangers import hospital, rents

ASK = "--workload marginals:2 --epsilon 1 --mechanism laplace"
HOSPITAL = {
    "ward": {"categories": ["surgery", "cardiology", "ENT", "maternity"], "loose": True},
    "smoker": {"missing": True},
    "admitted": {"days": ["2024-01-01", "2025-12-31"], "by": "year"},
    "building": ["east", "west"],
}
#: Maternity and ENT lie in the west; no one was admitted to the ENT ward in 2024.
DECLARED = {
    "refines": {
        "ward": {"building": {"east": ["surgery", "cardiology"], "west": ["ENT", "maternity"]}}
    },
    "impossible": [{"ward": ["ENT"], "admitted": ["2024"]}],
}
RENTS = {
    "Région": ["Île-de-France", "Provence", "Bretagne", "Alsace", "Corse"],
    "Propriétaire ?": ["oui", "non", "ne sait pas"],
    "enfant": {},
    "zone": ["nord", "sud"],
}
ZONES = {"nord": ["Île-de-France", "Bretagne", "Alsace"], "sud": ["Provence", "Corse"]}


def written(name, make, more, keep, columns, declared, encoding="utf-8", separator=","):
    names, rows, _ = make(random.Random(1))
    records = [dict(zip(names, row, strict=True)) for row in rows]
    records = [record | more(record) for record in records]
    with open(f"{name}.csv", "w", encoding=encoding, newline="") as file:
        table = csv.DictWriter(file, [*names, *more(records[0])], delimiter=separator)
        table.writeheader()
        table.writerows(record for record in records if keep(record))
    document = {"format": "geomdp schema", "version": 2, "columns": columns, **declared}
    if separator != ",":
        document["csv"] = {"separator": separator, "encoding": encoding}
    Path(f"{name}.json").write_text(json.dumps(document), encoding="utf-8")


def building(record):
    return {"building": "west" if record["ward"] in ("ENT", "maternity") else "east"}


@pytest.fixture
def run(call):
    columns = HOSPITAL | {"smoker": {"kind": "boolean", "missing": True}}
    possible = lambda r: not (r["ward"] == "ENT" and r["admitted"][:4] == "2024")  # noqa: E731
    written("hospital", hospital, building, possible, columns, DECLARED)
    written("broken", hospital, building, lambda _: True, columns, DECLARED)
    zone = lambda r: {"zone": "sud" if r["Région"] in ZONES["sud"] else "nord"}  # noqa: E731
    refines = {"refines": {"Région": {"zone": ZONES}}}
    columns = RENTS | {"enfant": {"kind": "boolean"}}
    written("rents", rents, zone, lambda _: True, columns, refines, "latin-1", ";")
    return call


def test_a_hospital(run):
    code, _, error = run(f"release hospital.csv --schema hospital.json {ASK} --out h.csv")
    assert (code, error) == (0, "")
    table = pd.read_csv("h.csv", dtype={"admitted": str})
    empty = table[(table.ward == "ENT") & (table.admitted == "2024")]
    assert len(empty) == 1
    assert (empty[["answer", "count", "unbiased", "noise_std", "low", "high"]] == 0).all(axis=None)
    wards = table[table.table == "ward x smoker"].pivot_table("answer", "ward", "smoker")
    west = wards.loc[["ENT", "maternity"]].sum()
    own = table[(table.table == "smoker x building") & (table.building == "west")]
    assert west.to_numpy() == pytest.approx(own.sort_values("smoker").answer.to_numpy(), abs=1e-9)
    record = json.loads(Path("h.privacy.json").read_text())
    assert record["schema"]["refines"] == DECLARED["refines"]
    assert record["workload"]["queries"] == len(table)


def test_rents(run):
    code, out, error = run(f"release rents.csv --schema rents.json {ASK} --integers --out r.csv")
    assert (code, error) == (0, "")
    assert "5 cells are declared impossible, and are 0" in out
    table = pd.read_csv("r.csv")
    children = table[table.table == "Région x enfant"].pivot_table("count", "Région", "enfant")
    zones = table[table.table == "enfant x zone"].pivot_table("count", "zone", "enfant")
    for zone, inside in ZONES.items():
        assert children.loc[inside].sum().tolist() == zones.loc[zone].tolist()


def test_impossible_records_are_refused_and_nothing_is_paid(run):
    paid = "--ledger l.db --budget epsilon=2 --out b.csv"
    error = run(f"release broken.csv --schema hospital.json {ASK} {paid}").error()
    assert "records must be possible by the schema: row" in error
    assert "column 'ward x admitted' is not" in error
    assert "in all" in error
    assert "ENT" not in error
    assert not Path("b.csv").exists()
    with Ledger(PureDP(2.0), path="l.db") as account:
        assert account.spends() == []


def test_questions_one_by_one_refuse_them_too(run):
    Path("q.txt").write_text("ward=ENT\n")
    line = "--schema hospital.json --queries q.txt --technique above-threshold --threshold 0.5"
    error = run(f"ask broken.csv {line} --epsilon 1 --state s.jsonl").error()
    assert "column 'ward x admitted' is not" in error
    code, _, _ = run(f"ask hospital.csv {line} --epsilon 1 --state s.jsonl")
    assert code == 0
    first = json.loads(Path("s.jsonl").read_text().splitlines()[0])
    assert first["schema"]["impossible"] == DECLARED["impossible"]


def test_plans_with_and_without_declarations(run):
    plain = json.loads(Path("hospital.json").read_text())
    for key in DECLARED:
        del plain[key]
    Path("plain.json").write_text(json.dumps(plain))
    errors = []
    for schema in ("hospital", "plain"):
        asked = f"--schema {schema}.json --n 5000 --workload marginals:2 --rho 0.5"
        code, out, _ = run(f"advise {asked}")
        assert code == 0
        (row,) = [line for line in out.splitlines() if line.startswith("rmse")]
        errors.append(float(row.split()[1]))
    assert errors[0] < errors[1]
    code, _, error = run("width --schema hospital.json --workload marginals:1 --seed 0")
    assert code == 0
    assert "is not used here" in error
    assert "is not used here" not in run(f"advise {asked}").err


def test_commands_about_schemas_keep_declarations(run):
    document = json.loads(Path("hospital.json").read_text())
    document["columns"]["building"] = {"categories": ["east", "west"], "drafted": True}
    Path("drafted.json").write_text(json.dumps(document))
    code, _, _ = run("schema confirm drafted.json")
    assert code == 0
    confirmed = json.loads(Path("drafted.json").read_text())
    assert {key: confirmed[key] for key in DECLARED} == DECLARED


def test_wrong_declarations_are_refused(run):
    document = json.loads(Path("hospital.json").read_text())
    document["impossible"] = [{"ward": ["ENT"], "admitted": ["2023"]}]
    Path("wrong.json").write_text(json.dumps(document))
    error = run(f"release hospital.csv --schema wrong.json {ASK} --out w.csv").error()
    assert "impossible must list different levels of 'admitted' (2024, 2025), got ['2023']" in error
