"""Tables as strangers have them: from an unknown file to private tables in three commands."""

import csv
import json
import random
from collections import Counter
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import geomdp as gd
from geomdp.data import Schema
from geomdp.privacy import Ledger, PureDP


def hospital(rng: random.Random) -> tuple[list[str], list[list[str]], dict[str, object]]:
    """Commas in UTF-8: numbers of patients, days, four spellings of yes and no, free text."""
    wards = ["surgery", "cardiology", "ENT", "maternity", "Surgery "]
    rows = [
        [
            f"P-{100_000 + 7 * i}",
            f"{rng.randint(2024, 2025)}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}",
            "NA" if rng.random() < 0.03 else str(rng.randint(0, 101)),
            rng.choices(wards, [35, 30, 20, 14, 1])[0],
            rng.choices(["yes", "no", "Y", "N", ""], [20, 55, 5, 10, 10])[0],
            "" if rng.random() < 0.15 else f"{rng.lognormvariate(10.3, 0.7):.2f}",
            rng.choice(["fell, on ice", "cough", 'said "fine"', "-", "follow-up"]),
        ]
        for i in range(6000)
    ]
    names = ["patient", "admitted", "age", "ward", "smoker", "income", "note"]
    return names, rows, {"encoding": "utf-8", "delimiter": ","}


def rents(rng: random.Random) -> tuple[list[str], list[list[str]], dict[str, object]]:
    """Semicolons in latin-1: decimal commas, blanks between thousands, accents in the header."""
    regions = ["Île-de-France", "Provence", "Bretagne", "Alsace", "Corse"]
    rows = []
    for _ in range(3000):
        rent = f"{rng.lognormvariate(6.6, 0.4):,.2f}".replace(",", " ").replace(".", ",")
        day = f"{rng.randint(1, 28):02}/{rng.randint(1, 12):02}/{rng.randint(2020, 2024)}"
        words = rng.choices(["oui", "non", "ne sait pas"], [50, 45, 5])[0]
        rows.append([rng.choices(regions, [40, 25, 20, 14, 1])[0], rent, words, day,
                     str(rng.randint(1, 5)), str(rng.randint(0, 1))])  # fmt: skip
    names = ["Région", "Loyer (EUR)", "Propriétaire ?", "date d'entrée", "note 1-5", "enfant"]
    return names, rows, {"encoding": "latin-1", "delimiter": ";"}


def plain(text: str) -> float:
    return float(text.replace(" ", "").replace(",", "."))


def binned(value: float, edges: list[float]) -> str:
    """The label of the bin of a number, by the definition of numeric columns."""
    place = min(int(np.searchsorted(edges, value, side="right")), len(edges) - 1)
    close = "]" if place == len(edges) - 1 else ")"
    return f"[{edges[place - 1]:g}, {edges[place]:g}{close}"


def quarter(text: str) -> str:
    year, month = (text[:4], text[5:7]) if "-" in text else (text[6:], text[3:5])
    return f"{year} Q{(int(month) + 2) // 3}"


#: For each table: the maker, and the label that each column's text must get, written a second time.
TABLES = {
    "hospital": (hospital, {
        "admitted": lambda text, _: quarter(text),
        "age": lambda text, e: "(missing)" if text == "NA" else binned(float(text), e),
        "ward": lambda text, _: {"Surgery ": "surgery"}.get(text, text),
        "smoker": lambda text, _: {"y": "true", "n": "false", "": "(missing)"}[text[:1].lower()],
        "income": lambda text, e: "(missing)" if text == "" else binned(float(text), e),
        "note": lambda text, _: text,
    }),
    "rents": (rents, {
        "Région": lambda text, _: text,
        "Loyer (EUR)": lambda text, e: binned(plain(text), e),
        "Propriétaire ?": lambda text, _: text,
        "date d'entrée": lambda text, _: quarter(text),
        "note 1-5": lambda text, _: text,
        "enfant": lambda text, _: {"1": "true", "0": "false"}[text],
    }),
}  # fmt: skip


def write(path: str, names: list[str], rows: list[list[str]], form: dict[str, object]) -> None:
    with Path(path).open("w", newline="", encoding=form["encoding"]) as file:
        csv.writer(file, delimiter=form["delimiter"]).writerows([names, *rows])


@pytest.mark.statistical
@pytest.mark.parametrize("table", TABLES)
def test_three_commands_lead_from_a_strange_file_to_private_tables(call, table):
    make, labels = TABLES[table]
    names, rows, form = make(random.Random(11))
    write("d.csv", names, rows, form)
    code, out, err = call("schema", "d.csv", "--out", "s.json")
    assert code == 0
    assert "no privacy claim" in err
    assert all(name.split()[0] in out for name in names)
    release = ["release", "d.csv", "--schema", "s.json", "--workload", "marginals:2"]
    release += ["--epsilon", "1", "--mechanism", "laplace"]
    assert "no privacy claim" in call(*release, "--out", "before.csv").out
    call("schema", "confirm", "s.json").ok()
    assert "1-DP, replace-one" in call(*release, "--out", "after.csv").ok()
    declared = json.loads(Path("s.json").read_text(encoding="utf-8"))["columns"]
    assert {name for name in declared if declared[name]["kind"] != "skip"} == set(labels)
    coded = [
        {
            name: labels[name](text, declared[name].get("edges"))
            for name, text in zip(names, row, strict=True)
            if name in labels
        }
        for row in rows
    ]
    answers = pd.read_csv("after.csv", keep_default_na=False, dtype=str)
    inside = checked = 0
    for first, second in combinations(labels, 2):
        counts = Counter((row[first], row[second]) for row in coded)
        cells = answers[(answers[first] != "") & (answers[second] != "")]
        assert set(counts) <= set(zip(cells[first], cells[second], strict=True))
        for cell in cells.itertuples(index=False):
            given = dict(zip(answers.columns, cell, strict=True))
            share = counts[given[first], given[second]] / len(rows)
            inside += float(given["low"]) <= share <= float(given["high"])
            # A cell leaves 10 standard deviations with probability below e^-10.
            assert abs(share - float(given["answer"])) < 10 * float(given["noise_std"])
            checked += 1
    # 95% intervals. Noise of the cells of a table is independent before they are made consistent.
    assert inside > 0.85 * checked, (inside, checked)
    assert checked == len(answers)


# --- refusals -----------------------------------------------------------------------------------

GOOD = {
    "ward": {"kind": "categorical", "categories": ["ENT", "surgery"]},
    "age": {"kind": "numeric", "edges": [0, 50, 100]},
    "smoker": {"kind": "boolean"},
    "admitted": {"kind": "date", "days": ["2024-01-01", "2024-12-31"], "by": "month"},
}
HEADER = "ward,age,smoker,admitted\n"
ROW = "ENT,30,yes,2024-05-17\n"

#: Files that do not fit GOOD, and what the message must say about each.
FILES = {
    "missing value": ("ENT,,yes,2024-05-17\n", ["row 1, column 'age'", '"missing": true'], False),
    "unknown word": ("ENT,SECRET,yes,2024-05-17\n", ["'age' is not", '"missing_texts"'], False),
    "decimal comma": ('ENT,"3,5",yes,2024-05-17\n', ["'age' is not", '"decimal"'], False),
    "unknown category": ("SECRET,3,yes,2024-05-17\n", ["'ward'", '"other": true'], False),
    "another case": ("ent,3,yes,2024-05-17\n", ["'ward'", '"loose": true'], False),
    "outside": ("ENT,101,yes,2024-05-17\n", ["between 0 and 100", 'widen "edges"'], False),
    "no truth value": ("ENT,3,SECRET,2024-05-17\n", ["'smoker'", "yes or no"], False),
    "another order": ("ENT,3,no,17/05/2024\n", ["'admitted'", '"order": "dmy"'], False),
    "no such day": ("ENT,3,no,2024-02-30\n", ["'admitted'", "must be a day"], False),
    "another year": ("ENT,3,no,2023-05-17\n", ["2024-01-01 and 2024-12-31", '"days"'], False),
    "several": ("SECRET,101,SECRET,\n", ['"other"', '"edges"', "yes or no", '"missing"'], False),
    "few fields": ("ENT,3\n", ["row 1 has 2 fields, the header has 4"], False),
    "another separator": ("ward;age;smoker;admitted\n", ['"csv": {"separator": ";"}'], True),
    "tabs": ("ward\tage\tsmoker\tadmitted\n", ['"csv": {"separator": "\\t"}'], True),
    "another name": ("ward,Age,smoker,admitted\n", ["'ward', 'Age'", 'write "Age" for'], True),
    "misspelt": ("wards,age,smoker,admitted\n", ["write \"wards\" for 'ward'"], True),
    "no header": ("1,2,3,4\n", ["must start with a header line"], True),
    "latin-1": ("ENT,3,no,\xe9\n", ['"csv": {"encoding": "latin-1"}'], False),
}  # fmt: skip

#: Faulty declarations, and what the message must say to write.
SCHEMAS = {
    "unknown kind": ({"kind": "text"}, '{"kind": "skip"}'),
    "one day": ({"days": ["2024-01-01"]}, '"days": ["2023-01-01", "2024-12-31"]'),
    "no day": ({"days": ["2024-01-01", "2024-02-30"]}, '"days": ["2023-01-01", "2024-12-31"]'),
    "unknown bins": ({"days": ["2024-01-01", "2024-02-03"], "by": "week"}, "'quarter'"),
    "unknown order": ({"days": ["2024-01-01", "2024-02-03"], "order": "ydm"}, "'dmy'"),
    "equal marks": ({"edges": [0, 1], "decimal": ",", "thousands": ","}, "must differ"),
    "text for flag": ({"categories": ["a"], "missing": "NA"}, "must be true or false"),
    "text for list": ({"categories": ["a"], "missing_texts": "NA"}, "must be a list of texts"),
    "category twice": ({"categories": ["a", "A "], "loose": True}, "categories must differ"),
    "missing category": ({"categories": ["NA"], "missing_texts": ["NA"]}, "['NA'] are missing"),
}


@pytest.mark.parametrize("case", FILES)
def test_a_file_that_does_not_fit_is_refused_with_what_to_write(call, case):
    text, wanted, is_header = FILES[case]
    Path("d.csv").write_text(text + ROW if is_header else HEADER + ROW + text, encoding="latin-1")
    Path("s.json").write_text(Schema.from_dict(GOOD).to_json())
    asked = "--workload marginals:1 --epsilon 1 --out a.csv --ledger l --budget epsilon=1"
    code, _, err = call(f"release d.csv --schema s.json {asked}")
    assert (code, "SECRET" in err) == (2, False)
    assert not Path("a.csv").exists()
    for words in wanted:
        assert words in err, err
    if case == "several":
        assert err.count("geomdp: error: records must be") == len(err.splitlines()) == 4


@pytest.mark.parametrize("case", SCHEMAS)
def test_a_faulty_declaration_is_refused_with_what_to_write(case):
    declaration, wanted = SCHEMAS[case]
    with pytest.raises(ValueError, match="column 'age'") as error:
        Schema.from_dict({**GOOD, "age": declaration})
    assert wanted in str(error.value)


@pytest.mark.parametrize("given", [{"separator": "."}, {"encoding": "utf-16"}, {"sep": ";"}, 5])
def test_a_faulty_format_is_refused_with_what_to_write(given):
    with pytest.raises(ValueError, match=r'must be one of|"csv": \{"separator": ";"\}'):
        Schema.from_dict({"format": "geomdp schema", "version": 2, "csv": given, "columns": GOOD})


# --- impossible cells and refinements -----------------------------------------------------------

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
    "enfant": bool,
    "zone": ["nord", "sud"],
}
ZONES = {"nord": ["Île-de-France", "Bretagne", "Alsace"], "sud": ["Provence", "Corse"]}


@pytest.fixture
def run(call):
    """Run a command beside three tables; hospital.csv and rents.csv fit their declarations."""
    names, rows, form = hospital(random.Random(1))
    records = pd.DataFrame(rows, columns=names)
    records["building"] = np.where(records.ward.isin(["ENT", "maternity"]), "west", "east")
    records.to_csv("broken.csv", index=False)
    possible = ~((records.ward == "ENT") & records.admitted.str.startswith("2024"))
    records[possible].to_csv("hospital.csv", index=False)
    Path("hospital.json").write_text(Schema.from_dict(HOSPITAL).declare(**DECLARED).to_json())
    names, rows, form = rents(random.Random(1))
    zone = ["sud" if row[0] in ZONES["sud"] else "nord" for row in rows]
    rows = [[*row, own] for row, own in zip(rows, zone, strict=True)]
    write("rents.csv", [*names, "zone"], rows, form)
    csv_format = gd.data.CsvFormat(form["delimiter"], form["encoding"])
    schema = replace(Schema.from_dict(RENTS), csv=csv_format)
    schema = schema.declare(refines={"Région": {"zone": ZONES}})
    Path("rents.json").write_text(schema.to_json(), encoding="utf-8")
    return call


def test_a_hospital(run):
    run(f"release hospital.csv --schema hospital.json {ASK} --out h.csv").ok()
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
    asked = f"{ASK} --integers --out r.csv --synthetic s.csv"
    out = run(f"release rents.csv --schema rents.json {asked}").ok()
    assert "5 cells are declared impossible, and are 0" in out
    table = pd.read_csv("r.csv")
    children = table[table.table == "Région x enfant"].pivot_table("count", "Région", "enfant")
    zones = table[table.table == "enfant x zone"].pivot_table("count", "zone", "enfant")
    for zone, inside in ZONES.items():
        assert children.loc[inside].sum().tolist() == zones.loc[zone].tolist()
    # Synthetic records are read by the schema that they were made with.
    drawn = gd.data.source_of("s.csv")
    schema = Schema.from_json(Path("rents.json").read_text(encoding="utf-8"))
    assert gd.data.count_records(drawn, schema, schema.workload("histogram")).count == 3000


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
    run(f"ask hospital.csv {line} --epsilon 1 --state s.jsonl").ok()
    first = json.loads(Path("s.jsonl").read_text().splitlines()[0])
    assert first["schema"]["impossible"] == DECLARED["impossible"]
