"""Tables as strangers have them: from an unknown file to private tables in three commands."""

import csv
import json
import random
from collections import Counter
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import geomdp as gd
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
    code, out, _ = call(*release, "--out", "before.csv")
    assert (code, "no privacy claim" in out) == (0, True)
    out = call("schema", "confirm", "s.json").ok()
    code, out, _ = call(*release, "--out", "after.csv")
    assert (code, "no privacy claim" in out, "1-DP, replace-one" in out) == (0, False, True)
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


#: Public columns of each table, a question about two of them, and the pairs that vary.
ASKS = {
    "hospital": ("age,ward,smoker", "age", "ward"),
    "rents": ("Région,Propriétaire ?,note 1-5", "Région", "note 1-5"),
    "rand": ("hlthg,hlthf,hlthp,physlm", "hlthg", "hlthf"),
}


@pytest.mark.ci
@pytest.mark.parametrize("table", ASKS)
def test_what_users_ask_for_works_on_strange_files(call, table):
    """A budget, its plan with weights, whole tables, and synthetic records, read again."""
    columns, first, second = ASKS[table]
    if table == "rand":
        place, source, n = ["--sample", "rand"], ["--sample", "rand"], 20190
    else:
        names, rows, form = TABLES[table][0](random.Random(11))
        write("d.csv", names, rows, form)
        call("schema", "d.csv", "--out", "s.json")
        call("schema", "confirm", "s.json")
        place, source, n = ["--schema", "s.json"], ["d.csv", "--schema", "s.json"], len(rows)
    asked = ["--columns", columns, "--workload", "marginals:2"]

    def run(*words: object) -> str:
        code, out, err = call(*words)
        assert code == 0, err
        return out

    targets = ["--half-width", f"{first},{second}:0.02", "--half-width", "0.06", "--zcdp"]
    run("budget", *place, *asked, "--n", n, *targets, "--save-plan", "p.json", "--out", "p.png")
    plan = gd.advice.load_plan("p.json")
    paying = ["--plan", "p.json", "--ledger", "l", "--budget", "rho=1"]
    out = run("release", *source, *asked, *paying, "--out", "a.csv")
    assert f"{plan.privacy}, replace-one" in out
    answers = pd.read_csv("a.csv")
    wide = (answers["unbiased"] - answers["low"])[answers["low"] > 0]
    assert wide.max() <= 0.06 * (1 + 1e-9)
    assert wide[answers["table"] == f"{first} x {second}"].max() <= 0.02 * (1 + 1e-9)
    private = ["--epsilon", "0.01", "--integers", "--synthetic", "syn.csv", "--out", "w.csv"]
    run("release", *source, *asked, *private)
    if "rand" not in place:  # its synthetic records are read by its own schema
        exact = ["--epsilon", "900", "--epsilon-above-10", "--unbiased", "--mechanism", "laplace"]
        schema = gd.data.Schema.from_json(Path("s.json").read_text(encoding="utf-8"))
        chosen = schema.select(columns.split(","))
        Path("t.json").write_text(chosen.to_json(), encoding="utf-8")
        run("release", "syn.csv", "--schema", "t.json", *asked, *exact, "--out", "again.csv")
        whole, again = pd.read_csv("w.csv"), pd.read_csv("again.csv")
        # Both round each of at most 60 joint cells at random, which moves a cell by a standard
        # deviation of at most 15^(1/2); six of the difference.
        assert (whole["count"] - again["count"]).abs().max() < 33
        found = gd.release("d.csv", schema, "marginals:2", columns=columns.split(","), epsilon=0.05)
        same = gd.release(found.synthetic(rng=0), chosen, "marginals:2", epsilon=1.0)
        assert same.mechanism.n == n


@pytest.mark.parametrize(
    ("table", "group", "number", "value", "ordered"),
    [
        ("hospital", "ward", "income", float, "age"),
        ("rents", "Région", "Loyer (EUR)", plain, "note 1-5"),
    ],
)
def test_numbers_by_group_of_a_strange_file(call, table, group, number, value, ordered):
    make, labels = TABLES[table]
    names, rows, form = make(random.Random(11))
    write("d.csv", names, rows, form)
    call("schema", "d.csv", "--out", "s.json")
    call("schema", "confirm", "s.json")
    release = ["release", "d.csv", "--schema", "s.json", "--rho", "2"]
    tables = ["--tables", f"{group},{number}[mean]", "--tables", f"{group},{ordered}[prefixes]"]
    out = call(*release, *tables, "--quantiles", "0.5", "--out", "a.csv").ok()
    assert "a.means.csv" in out
    frame = pd.DataFrame(rows, columns=names)
    frame[group] = [labels[group](text, None) for text in frame[group]]
    known = frame[frame[number] != ""]
    true = known[number].map(value).groupby(known[group]).agg(["count", "sum", "mean"])
    means = pd.read_csv("a.means.csv").set_index(group)
    assert set(means.index) == set(true.index)
    for name, row in means.iterrows():
        # An interval of twice the probability of no failure: 2.24 standard deviations or more.
        wide = 3 * (row["count_high"] - row["count_low"])
        assert abs(row["count"] - true.loc[name, "count"]) < wide
        if true.loc[name, "count"] > 500:  # the bins are wider than the noise
            assert row["low"] <= true.loc[name, "mean"] <= row["high"]
            assert row["total_low"] <= true.loc[name, "sum"] <= row["total_high"]
    quantiles = pd.read_csv("a.quantiles.csv").set_index(group)
    known = frame[~frame[ordered].isin(["NA", ""])]
    for name, own in known[ordered].astype(int).groupby(known[group]):
        if len(own) > 500:
            median = np.quantile(own, 0.5, method="inverted_cdf")
            assert quantiles.loc[name, "low"] <= median <= quantiles.loc[name, "high"]


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
    "no edges": ({"kind": "numeric"}, '"edges": [0, 18, 65, 120]'),
    "unsorted edges": ({"edges": [2, 1]}, '"edges": [0, 18, 65, 120]'),
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


def release(call, columns: dict[str, object], more: dict[str, object]) -> str:
    """The errors of a release with this schema, which must be refused before anything is paid."""
    document = {"format": "geomdp schema", "version": 2, **more, "columns": columns}
    Path("s.json").write_text(json.dumps(document))
    question = ["--workload", "marginals:1", "--epsilon", "1", "--out", "a.csv"]
    paying = ["--ledger", "l", "--budget", "epsilon=1"]
    code, _, err = call("release", "d.csv", "--schema", "s.json", *question, *paying)
    assert (code, "SECRET" in err) == (2, False)
    assert not Path("a.csv").exists()
    return err


@pytest.mark.parametrize("case", FILES)
def test_a_file_that_does_not_fit_is_refused_with_what_to_write(call, case):
    text, wanted, is_header = FILES[case]
    Path("d.csv").write_text(text + ROW if is_header else HEADER + ROW + text, encoding="latin-1")
    err = release(call, GOOD, {})
    for words in wanted:
        assert words in err, err
    if case == "several":
        assert len(err.splitlines()) == 4
        assert all(line.startswith("geomdp: error: records must be") for line in err.splitlines())


@pytest.mark.parametrize("case", SCHEMAS)
def test_a_faulty_declaration_is_refused_with_what_to_write(call, case):
    declaration, wanted = SCHEMAS[case]
    Path("d.csv").write_text(HEADER + ROW)
    err = release(call, {**GOOD, "age": declaration}, {})
    assert "column 'age'" in err
    assert wanted in err


@pytest.mark.parametrize(
    "csv_format", [{"separator": "."}, {"encoding": "utf-16"}, {"sep": ";"}, 5]
)
def test_a_faulty_format_is_refused_with_what_to_write(call, csv_format):
    Path("d.csv").write_text(HEADER + ROW)
    err = release(call, GOOD, {"csv": csv_format})
    assert "csv" in err
    assert any(words in err for words in ("must be one of", '"csv": {"separator": ";"}'))


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
