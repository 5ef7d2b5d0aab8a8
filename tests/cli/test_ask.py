"""The command `ask`: answers, one payment for each run, and runs that cannot be continued."""

import errno
import io
import json
import os
import signal
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pandas as pd
import pytest

from geomdp.data import Schema
from geomdp.mechanisms import OnlineConstruction
from geomdp.privacy import Ledger, PureDP

SCHEMA = Schema.from_dict(
    {"region": ["north", "south", "east"], "smoker": bool, "income": {"bounds": [0, 10]}}
)
COMMAND = [sys.executable, "-c", "from geomdp.cli import main; main()"]
#: At this epsilon the noise is far below the printed digits.
NOISELESS = ["--epsilon", "1e9", "--epsilon-above-10"]


@pytest.fixture
def ask(call):
    """Run the command in a folder with a table of 400 records, a schema and a file of questions."""
    rows = {"region": ["north"] * 200 + ["south"] * 200, "smoker": [0, 1, 1, 1] * 100}
    pd.DataFrame(rows).to_csv("r.csv", index=False)
    Path("s.json").write_text(SCHEMA.to_json())
    Path("q.txt").write_text("region=north\nregion=east\nsmoker=true, region=south\n")
    return lambda *flags: call("ask", "r.csv", "--schema", "s.json", *flags)


ONLINE = ("--technique", "online", "--questions", "3")


def run(*flags, queries="q.txt", state="run.jsonl"):
    return ["--queries", queries, "--state", state, *flags]


def test_sparse_vector_compares_shares_with_the_threshold(ask):
    flags = run("--technique", "numeric-sparse", "--threshold", "0.4", "--cutoff", "2", *NOISELESS)
    out = ask(*flags).ok()
    assert out.splitlines() == [
        "region=north\tabove\t0.5", "region=east\tbelow", "smoker=true, region=south\tbelow",
    ]  # fmt: skip
    first, *lines = map(json.loads, Path("run.jsonl").read_text().splitlines())
    own = {"technique": "numeric-sparse", "threshold": 0.4, "cutoff": 2}
    assert first["mechanism"] == {"name": "NumericSparse", **own}
    assert [line["above"] for line in lines] == [True, False, False]


def test_a_mechanism_that_halts_says_so_and_answers_no_more(ask):
    code, out, err = ask(*run("--technique", "above-threshold", "--threshold", "0.4", *NOISELESS))
    assert code == 0
    assert out == "region=north\tabove\n"
    assert "no more answers" in err


def test_online_answers_come_from_exact_shares(ask, monkeypatch):
    """Answers exceed one if records outnumber the declared number."""
    seen, asked = [], OnlineConstruction.ask_truth

    def watched(self, query, truth):
        seen.append(truth)
        return asked(self, query, truth)

    monkeypatch.setattr(OnlineConstruction, "ask_truth", watched)
    flags = ("--adjacency", "add-remove", "--n", "150")
    out = ask(*run(*ONLINE, *flags, *NOISELESS)).ok()
    assert seen == [Fraction(4, 3), Fraction(0), Fraction(1)]
    answers = [float(line.split("\t")[1]) for line in out.splitlines()]
    assert answers == pytest.approx(list(map(float, seen)), abs=0.02)


def test_the_ledger_pays_once_for_each_run_and_before_it(ask, tmp_path):
    path = tmp_path / "survey.ledger"
    flags = ("--technique", "sparse", "--threshold", "0.4", "--cutoff", "1", "--epsilon", "1")
    budget = ("--ledger", path, "--budget", "epsilon=1.5")
    assert ask(*run(*flags, *budget))[0] == 0
    before = Path("run.jsonl").read_text()
    assert "a run cannot be continued" in ask(*run(*flags, *budget)).error()
    assert Path("run.jsonl").read_text() == before
    assert "does not fit" in ask(*run(*flags, *budget, state="second.jsonl")).error()
    assert not (tmp_path / "second.jsonl").exists()
    with Ledger(PureDP(1.5), path=path) as ledger:
        assert [spend.privacy for spend in ledger.spends()] == [PureDP(1.0)]


def test_a_killed_run_has_paid_and_left_no_noise(ask, tmp_path):
    flags = ["--technique", "sparse", "--threshold", "0.4", "--cutoff", "3", "--epsilon", "1"]
    budget = ["--ledger", "survey.ledger", "--budget", "epsilon=1.5"]
    arguments = ["ask", "r.csv", "--schema", "s.json", *run(*flags, *budget, queries="-")]
    with subprocess.Popen(
        [*COMMAND, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        process.stdin.write("region=north\n")
        process.stdin.flush()
        answer = process.stdout.readline()  # the answer comes before the next question is sent
        recorded = (tmp_path / "run.jsonl").read_text()
        os.kill(process.pid, signal.SIGKILL)
    assert answer.startswith("region=north\t")
    # The file holds the record of the run and the answers, but no noise or noisy threshold.
    assert [sorted(json.loads(line)) for line in recorded.splitlines()] == [
        ["asked", "claim", "guarantee", "mechanism", "n", "schema", "versions"],
        ["above", "index", "query", "value"],
    ]
    assert ask(*run(*flags, *budget, state="second.jsonl"))[0] == 2  # only 0.5 is left


def test_a_wrong_line_of_a_stream_costs_nothing(ask, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("region=west\nnonsense\nregion=north\n"))
    flags = ("--technique", "above-threshold", "--threshold", "0.4", *NOISELESS)
    code, out, err = ask(*run(*flags, queries="-"))
    assert code == 0
    assert out == "region=north\tabove\n"
    assert "level of region must be one of north, south, east; got 'west'" in err
    assert "a question must be COLUMN=LEVEL" in err


# --- the record of a run ------------------------------------------------------------------------


def first_line():
    return json.loads(Path("run.jsonl").read_text().splitlines()[0])


def test_the_state_says_what_was_released(ask, call):
    """A reader finds all that the record of `release` states, and the flags of the technique."""
    schema = SCHEMA.select(["region", "smoker"])
    Path("s.json").write_text(schema.to_json())
    assert ask(*run(*ONLINE, "--epsilon", "1", "--alpha", "0.3"))[0] == 0
    record = first_line()
    assert record["claim"].startswith("1-DP, replace-one")
    assert record["guarantee"]["statement"] == record["claim"]
    assert record["guarantee"]["parameters"] == {"epsilon": 1.0}
    assert record["asked"] == "1-DP"
    assert record["schema"] == {"source": "declared in s.json", **schema.to_dict()}
    assert record["n"] == {"value": 400, "source": "counted"}
    mechanism = {"name": "OnlineConstruction", "technique": "online", "questions": 3, "alpha": 0.3}
    assert record["mechanism"] == mechanism
    flags = "r.csv --schema s.json --epsilon 1 --tables region --mechanism laplace --out a.csv"
    call(f"release {flags}")
    released = json.loads(Path("a.privacy.json").read_text())
    assert record["versions"] == released["versions"]
    missing = set(released) - set(record)
    # `ask` has none of these.
    assert missing == {"predicted_rmse", "estimated_rmse", "answers", "workload", "seed", "person"}


def test_the_state_says_what_was_declared_and_which_alpha_was_found(ask):
    flags = ("--adjacency", "add-remove", "--n", "160", "--columns", "smoker")
    Path("q.txt").write_text("smoker=true\n")
    assert ask(*run(*ONLINE, *flags, *NOISELESS))[0] == 0
    record = first_line()
    assert record["n"] == {"value": 160, "source": "declared"}
    assert record["guarantee"]["adjacency"] == "add/remove"
    assert list(record["schema"]["columns"]) == ["smoker"]
    assert 0 < record["mechanism"]["alpha"] < 0.1


# --- a full disk --------------------------------------------------------------------------------

PAID = ("--technique", "sparse", "--threshold", "0.4", "--cutoff", "2", "--epsilon", "0.5")
LEDGER = ("--ledger", "l", "--budget", "epsilon=1")


@pytest.mark.parametrize(
    ("writes", "said"),
    [
        (0, "nothing was charged"),
        (1, "0.5-DP was charged to l, and no question was answered"),
        (2, "0.5-DP was charged to l, and the answers are in run.jsonl, but for the last one"),
        (3, "0.5-DP was charged to l, and the answers are in run.jsonl, but for the last one"),
    ],
)
def test_a_full_disk_says_what_was_charged(ask, monkeypatch, writes, said):
    """The disk is full after a number of writes: the reserve, the record, then the answers."""
    sync, left = os.fsync, list(range(writes))

    def limited(descriptor):
        if not left:
            raise OSError(errno.ENOSPC, "No space left on device")
        left.pop()
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", limited)
    code, out, err = ask(*run(*PAID, *LEDGER))
    assert code == 2
    assert f"geomdp: error: run.jsonl: No space left on device; {said}" in err
    assert len(err.splitlines()) == 1
    state = Path("run.jsonl")
    assert state.exists() is (writes > 1)
    written = state.read_text().splitlines()[1:] if writes > 1 else []
    assert len(written) == max(0, writes - 2)
    # The answer that the disk did not take is on standard output.
    assert len(out.splitlines()) == max(0, writes - 1)
    assert Path("l").exists() is (writes > 0)
    if writes > 0:
        with Ledger.existing(Path("l")) as ledger:
            assert len(ledger.spends()) == 1
    left += range(10)
    assert ask(*run(*PAID, *LEDGER))[0] == (2 if writes > 1 else 0)


def test_a_full_standard_output_loses_no_answer(ask):
    arguments = ["ask", "r.csv", "--schema", "s.json", *run(*PAID, *LEDGER)]
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run([*COMMAND, *arguments], stdout=full, stderr=-1, text=True)
    assert ended.returncode == 0
    assert ended.stderr == (
        "warning: standard output: No space left on device; 0.5-DP was charged to l, and the "
        "answers are in run.jsonl: do not pay again\n"
    )
    answered = [json.loads(line) for line in Path("run.jsonl").read_text().splitlines()[1:]]
    assert len(answered) >= 2


# --- flags --------------------------------------------------------------------------------------


ABOVE = "--technique above-threshold --threshold 0"


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--technique online", "--technique online needs --questions"),
        ("--technique online --questions 3", "--alpha must be given"),
        ("--technique sparse --threshold 0", "--technique sparse needs --cutoff"),
        (f"{ABOVE} --cutoff 2", "--technique above-threshold does not take --cutoff"),
        (f"{ABOVE} --alpha 1", "--technique above-threshold does not take --alpha"),
        (f"{ABOVE} --n 7", "--n must be the number of records, 400, got 7"),
        (f"{ABOVE} --queries bad.txt", "bad.txt, line 2: a question must be COLUMN=LEVEL"),
        (f"{ABOVE} --adjacency add-remove", "--adjacency add-remove needs --n"),
    ],
)
def test_wrong_flags_leave_no_state(ask, tmp_path, flags, message):
    (tmp_path / "bad.txt").write_text("region=north\nregion\n")
    assert message in ask(*run("--epsilon", "1", *flags.split())).error()
    assert not (tmp_path / "run.jsonl").exists()
