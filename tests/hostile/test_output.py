"""Labels and names of any text: files, terminal and notebook show them, and obey none."""

import csv
import io
import itertools
import json
import logging
import random
import re
import sys
import unicodedata
from collections.abc import Iterator
from functools import partial
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

import geomdp as gd
from geomdp.cli import display, main
from geomdp.cli.display import logged_to, run_reporting_errors, working
from geomdp.cli.outputs import OutputFiles, encoded
from geomdp.data.columns import is_shown
from geomdp.plotting.error_curves import ErrorCurve
from geomdp.privacy import Exact, Guarantee, Ledger, PureDP
from geomdp.tabulation import CovarianceTable

#: Number of labels, in groups that a test shows together.
LABELS, GROUP = 1000, 20
#: Pieces of labels: what a terminal, a spreadsheet, a browser or a reader of CSV would obey.
PIECES = (
    *(chr(code) for code in (*range(32), *range(127, 160))),
    *"\u2028\u2029\u202e\u2066\u200f\ufeff\udcff\ud800\U0010ffff\u0301\u200d\u00a0",
    *("\x1b[2J", "\x1b]0;title\x07", "\x1b[31m", "\r\n", "b\rc", "\x9b2J"),
    *("=1+1", "+", "-5", "@SUM(A1)", "=cmd|' /C calc'!A0", "-2 to 0", "\t=1"),
    *("<script>alert(1)</script>", "<b", "&lt;", "&#27;", "<!--", "</td>", "'", '"', '""'),
    *("[bold]", "[/]", "[link=x]", "\\", "%s", "{0}", "$x$", ",", ";", "", " ", "null", "NaN"),
    *("é", "男", "ä", "🙂", "x" * 300, "JL-L14", "`", "**", "#"),
)


def groups(pieces: tuple[str, ...] = PIECES) -> Iterator[list[str]]:
    """Distinct labels of one to four random pieces."""
    rng, seen = random.Random(0), set()
    while len(seen) < LABELS:
        group: list[str] = []
        while len(group) < GROUP:
            label = "".join(rng.choices(pieces, k=rng.randint(1, 4)))
            if label not in seen:
                seen.add(label)
                group.append(label)
        yield group


def controls(text: str) -> set[str]:
    """Characters of `text` that a terminal obeys or that change the order of what it shows."""
    return {
        character
        for character in text
        if unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp")
        or character in "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
    }


def printed(shown: str) -> str:
    """Output to a terminal without line breaks and the colours that we set ourselves."""
    return re.sub(r"\x1b\[[0-9;]*m|\n", "", shown)


def refuse(message: str) -> None:
    raise ValueError(message)


def test_files_hold_every_label_in_one_cell():
    for group in groups():
        columns = {"label": group, group[0] + "name": group, "answer": np.arange(float(GROUP))}
        text = encoded(columns, Path("a.csv")).decode()
        assert controls(text) <= {"\n"}
        header, *rows = csv.reader(io.StringIO(text, newline=""))
        assert len(rows) == GROUP
        assert [float(row[2]) for row in rows] == list(range(GROUP))
        frame = pd.read_parquet(io.BytesIO(encoded(columns, Path("a.parquet"))))
        assert frame.label.tolist() == [row[0] for row in rows]
        assert list(frame.columns) == header
        for label, (cell, *_) in zip(group, rows, strict=True):
            assert not controls(cell)
            assert cell == label or controls(label)  # other labels stay as they are
        document = {"labels": group}
        files = OutputFiles(Path("a.csv")).contents(columns, document)
        record = files[Path("a.privacy.json")].decode()
        assert controls(record) <= {"\n"}
        assert json.loads(record) == document


@pytest.mark.parametrize("terminal", [False, True])
def test_the_terminal_obeys_no_label(terminal, monkeypatch, capsys):
    if terminal:
        monkeypatch.setenv("FORCE_COLOR", "1")
        monkeypatch.setenv("COLUMNS", "80")
    for group in groups():
        display.print_rows([(label, label) for label in group])
        display.print_table(["label", "why"], [(label, label) for label in group])
        display.warn(" ".join(group))
        with pytest.raises(SystemExit):
            run_reporting_errors(partial(refuse, "".join(group)))
        shown = capsys.readouterr()
        assert not controls(printed(shown.out)), group
        assert not controls(printed(shown.err)), group
        assert len(shown.err.splitlines()) == 2 or terminal


def test_a_ledger_prints_no_forged_line(tmp_path, monkeypatch, capsys):
    path = tmp_path / "survey.ledger"
    with Ledger(PureDP(1e4), path=path) as ledger:
        for number, group in enumerate(itertools.islice(groups(), 5)):
            label = f"{number}\x1b[2J\n99   2026-01-01 00:00:00  0.1-DP  forged" + group[0]
            ledger.spend(Guarantee(PureDP(1.0), gd.Adjacency.REPLACE_ONE, Exact()), label)
    monkeypatch.setattr(sys, "argv", ["geomdp", "ledger", str(path)])
    with pytest.raises(SystemExit) as stop:
        main()
    shown = capsys.readouterr().out
    assert stop.value.code == 0
    assert not controls(printed(shown))
    assert not any(line.startswith("99") for line in shown.splitlines())


def test_a_log_has_one_line_for_each_step(tmp_path, capsys, monkeypatch):
    # pytest would keep the messages, and cannot pass lone surrogates between its processes.
    monkeypatch.setattr(logging.getLogger("geomdp"), "propagate", False)
    log = tmp_path / "log"
    with logged_to(log):
        for group in groups():
            with working("".join(group)):
                pass
    lines = log.read_text(encoding="utf-8").split("\n")
    assert len(lines) == LABELS // GROUP + 1
    assert not controls("".join(lines))
    assert not capsys.readouterr().out


class _Page(HTMLParser):
    """Collects the tags and the text of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.filterwarnings("ignore:Glyph .* missing from font")
def test_a_notebook_shows_labels_as_text(monkeypatch):
    monkeypatch.setattr("geomdp.tabulation.tabulate.ROWS_IN_NOTEBOOK", LABELS)
    monkeypatch.setattr("geomdp.mechanisms.base.FIRST_IN_TABLE", 2 * LABELS)
    all_shown = tuple(piece for piece in PIECES if is_shown(piece) and piece.strip())
    labels = {label for group in groups(all_shown) for label in group}
    labels = sorted({unicodedata.normalize("NFC", label).strip() for label in labels})
    schema = gd.data.Schema([gd.data.CategoricalColumn("<i>x</i>", labels)])
    frame = pd.DataFrame({"<i>x</i>": labels})
    laplace = gd.mechanisms.Laplace
    answers = gd.release(frame, schema, "marginals:1", epsilon=1.0, mechanism=laplace, rng=0)
    wide = pd.DataFrame(np.zeros((2, len(labels))), columns=labels)
    figure = Figure()
    for label in labels[:: len(labels) // 100]:  # a thousand would take seconds
        figure.text(0, 0, label, parse_math=False)
    columns = gd.workloads.MarginalTables(dict.fromkeys(labels, 2), 1)
    said = answers.guarantee, answers.predicted_rmse
    release = gd.mechanisms.Release(np.zeros(columns.n_queries), *said, columns)
    for shown, ours, expected in (
        (answers, set(), labels),
        (release, {"b"}, labels),
        (CovarianceTable(wide, wide.iloc[0], *said, None, None, None), set(), labels),
        (ErrorCurve(wide, figure), set(), [text.get_text() for text in figure.texts]),
    ):
        page = _Page(shown._repr_html_())
        assert page.tags & {"script", "b", "i"} == ours
        assert all(label[:40] in page.text for label in expected)


# --- spreadsheets -------------------------------------------------------------------------------

CATEGORIES = ["=cmd|' /C calc'!A0", "-5", "+", "@SUM(1)", "-5 to 0"]
SCHEMA = {
    "format": "geomdp schema",
    "version": 2,
    "columns": {"answer to 3": {"kind": "categorical", "categories": CATEGORIES}},
}


@pytest.fixture
def call(tmp_path, monkeypatch, capsys):
    """Run a command in a folder with survey.csv and schema.json; return code, output and errors."""
    monkeypatch.chdir(tmp_path)
    Path("schema.json").write_text(json.dumps(SCHEMA))
    pd.DataFrame({"answer to 3": CATEGORIES * 12}).to_csv("survey.csv", index=False)

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["geomdp", *arguments])
        with pytest.raises(SystemExit) as stop:
            main()
        shown = capsys.readouterr()
        return stop.value.code, shown.out, shown.err

    return run


QUESTION = ["--workload", "marginals:1", "--epsilon", "1", "--mechanism", "laplace"]
RELEASE = ["release", "survey.csv", "--schema", "schema.json", *QUESTION]


def test_the_command_names_columns_that_a_spreadsheet_would_run(call):
    code, _, err = call(*RELEASE, "--out", "a.csv")
    assert code == 0
    assert "a spreadsheet would run 3 cells of answer to 3 in a.csv as formulas" in err
    assert pd.read_csv("a.csv")["answer to 3"].tolist() == CATEGORIES
    assert call(*RELEASE, "--out", "b.parquet")[2] == ""


# --- names in commands --------------------------------------------------------------------------


def test_hostile_schemas_are_refused_or_written_safely(call):
    """Whatever the schema allows, the command ends without a traceback and keeps its claim.

    It refuses a label in almost every group of any pieces, and none in the other groups.
    """
    claims, half = [], LABELS // GROUP // 6
    shown = groups(tuple(filter(is_shown, PIECES)))
    halves = (*itertools.islice(groups(), half), *itertools.islice(shown, half))
    for number, group in enumerate(halves):
        labels = [label for label in group if label.strip()]
        name = "c" + group[0]
        columns = {name: {"kind": "categorical", "categories": labels}}
        Path("schema.json").write_text(json.dumps({**SCHEMA, "columns": columns}))
        with Path("survey.csv").open("w", newline="", errors="replace") as file:
            csv.writer(file).writerows([[name], *([label] for label in labels)])
        code, out, err = call(*RELEASE, "--n", str(len(labels)), "--out", f"{number}.csv")
        assert not controls(printed(out + err)), group
        assert code in (0, 2)
        assert (code == 2) == ("geomdp: error: " in err)
        if code == 0:
            record = Path(f"{number}.privacy.json").read_text(encoding="utf-8")
            assert not controls(record + Path(f"{number}.csv").read_text(encoding="utf-8")) - {"\n"}
            claims.append(json.loads(record)["claim"])
    assert len(set(claims)) == 1
    assert len(claims) > half - 4  # a mark of byte order at the start of a line is refused


# --- addresses ----------------------------------------------------------------------------------

PASSWORD = "hunter2-secret"


def addresses() -> Iterator[str]:
    """Addresses of databases, each with a password, that are malformed or lead nowhere."""
    rng = random.Random(1)
    schemes = ("postgresql://", "postgres://", "postgresql:/", "postgre://", "POSTGRESQL://", "")
    users = (f"u:{PASSWORD}@", f"u:{PASSWORD}@@", f"u:%zz{PASSWORD}@", f"{PASSWORD}@")
    hosts = ("127.0.0.1:1", "[::1", "h o s t", "127.0.0.1:99999", "", "\x1b[2J", "%zz", "a,b:1:2")
    tails = ("/d", "?x=y", "/d?sslmode=no", "/d?port=x", "#", "/\udcff", f"?password={PASSWORD}")
    while True:
        yield "".join(rng.choice(part) for part in (schemes, users, hosts, tails))


def test_no_address_reaches_an_error_with_its_password(call, caplog):
    for address in itertools.islice(addresses(), 16):
        line = ["release", "--sql", "select 1", "--database", address, "--schema", "schema.json"]
        code, out, err = call("--log", "log", *line, *QUESTION, "--out", "a.csv")
        assert code == 2
        assert "geomdp: error: " in err
        for text in (out, err, caplog.text, Path("log").read_text()):
            assert PASSWORD not in text
        assert not controls(printed(out + err))
