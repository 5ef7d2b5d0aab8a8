"""Ledgers add up spends, survive kills, can be shared by processes, and refuse damaged files."""

from __future__ import annotations

import math
import multiprocessing
import os
import re
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from geomdp.privacy import (
    ZCDP,
    Adjacency,
    ApproxDP,
    Approximate,
    BudgetExhausted,
    Exact,
    Guarantee,
    Heuristic,
    Ledger,
    Privacy,
    PureDP,
    zcdp_to_approx,
)
from geomdp.privacy.guarantees import SamplerStatus
from geomdp.privacy.ledger import WAIT, Spend, _connect


def claim(privacy: Privacy, sampler: SamplerStatus | None = None) -> Guarantee:
    return Guarantee(privacy, Adjacency.REPLACE_ONE, sampler or Exact())


def spent(path: Path, *epsilons: float) -> Ledger:
    """A ledger of 1-DP in a file, with spends called 0, 1, ..."""
    ledger = Ledger(PureDP(1.0), path=path)
    for i, epsilon in enumerate(epsilons):
        ledger.spend(claim(PureDP(epsilon)), str(i))
    return ledger


def test_pure_spends_add_up_to_exactly_the_budget() -> None:
    ledger = Ledger(PureDP(1.0))
    for i in range(10):
        ledger.spend(claim(PureDP(0.1)), f"release {i}")
    with pytest.raises(BudgetExhausted, match=r"one more \(0\.001-DP\) does not fit: budget 1-DP"):
        ledger.spend(claim(PureDP(0.001)), "one more")
    assert ledger.spends()[3] == Spend("release 3", PureDP(0.1))
    assert len(ledger.spends()) == 10


def test_zcdp_budget_takes_pure_spends_by_the_worst_pure_mechanism() -> None:
    ledger = Ledger(ZCDP(1.0))
    ledger.spend(claim(PureDP(1.0)), "pure")
    ledger.spend(claim(ZCDP(1 - math.tanh(0.5))), "gaussian")
    with pytest.raises(BudgetExhausted):
        ledger.spend(claim(ZCDP(1e-6)), "one more")
    with pytest.raises(ValueError, match="zCDP budget cannot pay"):
        Ledger(ZCDP(1.0)).spend(claim(ApproxDP(0.1, 1e-6)), "approximate")


def test_approximate_budget_adds_up_both_parameters() -> None:
    ledger = Ledger(ApproxDP(0.75, 1e-6))
    ledger.spend(claim(PureDP(0.5)), "pure")
    ledger.spend(claim(ApproxDP(0.125, 4e-7)), "first")
    ledger.spend(claim(ApproxDP(0.125, 6e-7)), "second")
    with pytest.raises(BudgetExhausted):
        ledger.spend(claim(PureDP(1e-6)), "one more")
    assert len(ledger.spends()) == 3
    other = Ledger(ApproxDP(5.0, 1e-6))
    other.spend(claim(ApproxDP(0.1, 1e-6)), "all of delta")
    with pytest.raises(BudgetExhausted):
        other.spend(claim(ApproxDP(0.1, 1e-9)), "more delta")


def test_approximate_samplers_cost_what_is_proved_of_them() -> None:
    ledger = Ledger(ApproxDP(1.0, 1e-6))
    spend = ledger.spend(claim(PureDP(0.5), Approximate(1e-9, "test")), "tv")
    assert spend.privacy.epsilon == 0.5
    assert spend.privacy.delta == pytest.approx((1 + math.exp(0.5)) * 1e-9, rel=1e-15, abs=0)
    with pytest.raises(ValueError, match="pure budget cannot pay"):
        Ledger(PureDP(1.0)).spend(claim(PureDP(0.5), Approximate(1e-9, "test")), "tv")


@pytest.mark.parametrize(
    "guarantee", [claim(PureDP(0.1), Heuristic("a chain")), claim(PureDP(0.1)).as_seeded()]
)
def test_no_proved_cost_is_refused(guarantee: Guarantee) -> None:
    ledger = Ledger(PureDP(1.0))
    with pytest.raises(ValueError, match="must have a proved cost"):
        ledger.spend(guarantee, "x")
    assert ledger.spends() == []


def test_another_adjacency_is_refused() -> None:
    with pytest.raises(ValueError, match="must be for add/remove, got replace-one"):
        Ledger(PureDP(1.0), adjacency=Adjacency.ADD_REMOVE).spend(claim(PureDP(0.1)), "x")


def test_require_records_nothing() -> None:
    ledger = Ledger(PureDP(1.0))
    ledger.require(claim(PureDP(1.0)), "x")
    with pytest.raises(BudgetExhausted):
        ledger.require(claim(PureDP(1.1)), "x")
    assert ledger.spends() == []


@pytest.mark.parametrize(
    ("budget", "adjacency"),
    [(PureDP(2.0), Adjacency.REPLACE_ONE), (PureDP(1.0), Adjacency.ADD_REMOVE)],
)
def test_another_budget_is_refused(tmp_path: Path, budget: PureDP, adjacency: Adjacency) -> None:
    path = tmp_path / "budget.ledger"
    Ledger(PureDP(1.0), path=path).close()
    with pytest.raises(ValueError, match="holds a budget of 1-DP under replace-one, not"):
        Ledger(budget, adjacency=adjacency, path=path)


KILLED = """
import os, signal, sys
from geomdp.privacy import Adjacency, Exact, Guarantee, Ledger, PureDP
ledger = Ledger(PureDP(1.0), path=sys.argv[1])
ledger.spend(Guarantee(PureDP(0.8), Adjacency.REPLACE_ONE, Exact()), "killed")
os.kill(os.getpid(), signal.SIGKILL)
print("the answer")
"""


def test_a_kill_between_spend_and_answer_counts_the_spend(tmp_path: Path) -> None:
    path = tmp_path / "budget.ledger"
    child = subprocess.run(
        [sys.executable, "-c", KILLED, str(path)], capture_output=True, text=True, check=False
    )
    assert child.returncode == -signal.SIGKILL, child.stderr
    assert child.stdout == ""
    with Ledger(PureDP(1.0), path=path) as ledger:
        assert ledger.spends() == [Spend("killed", PureDP(0.8))]
        with pytest.raises(BudgetExhausted):
            ledger.spend(claim(PureDP(0.3)), "after the kill")


def spend_until_exhausted(path: str, label: str, start: object, granted: object) -> None:
    start.wait()  # type: ignore[attr-defined]
    count = 0
    with Ledger(PureDP(1.0), path=path) as ledger:
        while True:
            try:
                ledger.spend(claim(PureDP(0.02)), label)
            except BudgetExhausted:
                break
            count += 1
    granted.put(count)  # type: ignore[attr-defined]


def test_two_processes_create_and_share_one_budget(tmp_path: Path) -> None:
    """Both processes create the file at once and spend as fast as they can. Only 50 spends fit."""
    context = multiprocessing.get_context("spawn")
    start, granted, path = context.Barrier(2), context.Queue(), str(tmp_path / "shared.ledger")
    workers = [
        context.Process(target=spend_until_exhausted, args=(path, f"worker {i}", start, granted))
        for i in range(2)
    ]
    for worker in workers:
        worker.start()
    counts = [granted.get(timeout=60) for _ in workers]
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    assert sum(counts) == 50
    with Ledger(PureDP(1.0), path=path) as ledger:
        assert len(ledger.spends()) == 50


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    """A ledger file that lost its content must not give a new budget. No new ledger is empty."""
    path = tmp_path / "budget.ledger"
    spent(path, 0.9).close()
    path.write_bytes(b"")
    with pytest.raises(ValueError, match="is empty: a ledger is never empty"):
        Ledger(PureDP(1.0), path=path)
    assert path.read_bytes() == b""
    assert list(tmp_path.iterdir()) == [path]  # the creation has left no other file


@pytest.mark.parametrize("path", ["", ":memory:", Path(":memory:")])
def test_names_of_ledgers_that_no_other_run_sees_are_refused(path: str | Path) -> None:
    with pytest.raises(ValueError, match="path must name a file, or be None for memory"):
        Ledger(PureDP(1.0), path=path)


FORKED = """
import os, sys
from geomdp.privacy import Adjacency, Exact, Guarantee, Ledger, PureDP
ledger = Ledger(PureDP(1.0), path=sys.argv[1] if len(sys.argv) > 1 else None)
child = os.fork()
if child:
    os.waitpid(child, 0)
try:
    ledger.spend(Guarantee(PureDP(1.0), Adjacency.REPLACE_ONE, Exact()), "all of it")
    print("granted to the parent" if child else "granted to the child", flush=True)
except RuntimeError as error:
    print(error, flush=True)
"""


@pytest.mark.parametrize("in_memory", [True, False])
def test_a_forked_child_cannot_spend(
    tmp_path: Path, in_memory: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In memory, both could spend the whole budget. SQLite files must be reopened after a fork."""
    arguments = [] if in_memory else [str(tmp_path / "budget.ledger")]
    run = subprocess.run(
        [sys.executable, "-c", FORKED, *arguments], capture_output=True, text=True, check=True
    )
    of_child, of_parent = run.stdout.splitlines()
    assert "belongs to the process that forked this one" in of_child
    assert of_parent == "granted to the parent"
    # The same without a fork: the process number is changed instead.
    with Ledger(PureDP(1.0), path=None if in_memory else tmp_path / "own.ledger") as ledger:
        with monkeypatch.context() as patched:
            patched.setattr(os, "getpid", lambda: 0)
            name = "^a ledger in memory" if in_memory else "own.ledger"
            with pytest.raises(RuntimeError, match=f"{name} belongs to the process that forked"):
                ledger.spend(claim(PureDP(0.1)), "by a child")
        assert ledger.spends() == []


def overspends(path: Path) -> bool:
    """Whether a ledger of 1-DP with 0.8 spent grants 0.4 more."""
    try:
        with Ledger(PureDP(1.0), path=path) as ledger:
            ledger.spend(claim(PureDP(0.4)), "more")
    except (BudgetExhausted, ValueError, OSError):
        return False
    return True


@pytest.mark.parametrize("every", [11, pytest.param(1, marks=pytest.mark.slow)])
def test_no_flipped_bit_lets_more_be_spent(tmp_path: Path, every: int) -> None:
    """Flip, one at a time, all bits of bytes that are not 0, or every eleventh of these bits."""
    path = tmp_path / "budget.ledger"
    spent(path, 0.4, 0.4).close()
    content = path.read_bytes()
    places = [8 * byte + bit for byte, value in enumerate(content) if value for bit in range(8)]
    for place in places[::every]:
        flipped = bytearray(content)
        flipped[place // 8] ^= 1 << place % 8
        path.write_bytes(flipped)
        assert not overspends(path), f"bit {place % 8} of byte {place // 8}"


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM {table} WHERE id = (SELECT max(id) FROM {table})",
        "DELETE FROM {table} WHERE id = (SELECT min(id) + 1 FROM {table})",
        "UPDATE {table} SET id = id + 10",
        "DELETE FROM {table}",
        "DROP TABLE {table}",
        "DELETE FROM head",
        "UPDATE head SET count = 2",
    ],
)
def test_lost_and_moved_spends_are_noticed(tmp_path: Path, statement: str) -> None:
    path = tmp_path / "budget.ledger"
    with spent(path, 0.4, 0.4) as ledger:
        edit(path, statement.format(table="entries"))
        with pytest.raises((ValueError, OSError), match=r"damaged|no such table"):
            ledger.spend(claim(PureDP(0.1)), "open since before")
    assert not overspends(path)


def test_an_older_copy_is_noticed_by_a_process_that_read_the_newer_one(tmp_path: Path) -> None:
    path = tmp_path / "budget.ledger"
    with Ledger(PureDP(1.0), path=path) as ledger:
        older = path.read_bytes()
        ledger.spend(claim(PureDP(0.8)), "x")
        path.write_bytes(older)
        for _ in range(2):  # a new change counter, so that SQLite reads the file anew
            edit(path, "VACUUM")
        with pytest.raises(ValueError, match="was replaced: it lacks entries"):
            ledger.spend(claim(PureDP(0.8)), "again")


def test_repr_names_budget_spends_and_place(tmp_path: Path) -> None:
    path = tmp_path / "budget.ledger"
    with spent(path, 0.5) as ledger:
        assert repr(ledger) == f"Ledger(1-DP, replace-one: 1 spend so far, {path})"
    assert repr(Ledger(ZCDP(0.5))) == "Ledger(0.5-zCDP, replace-one: 0 spends so far, in memory)"


def test_foreign_and_corrupt_files_are_refused_and_left_alone(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("not a database, and long enough to be sure of it " * 20)
    with pytest.raises(ValueError, match="is not a privacy ledger"):
        Ledger(PureDP(1.0), path=text)
    assert text.read_text().startswith("not a database")
    other = tmp_path / "other.sqlite"
    edit(other, "CREATE TABLE things (x)")
    before = other.read_bytes()
    with pytest.raises(ValueError, match="is not a privacy ledger"):
        Ledger(PureDP(1.0), path=other)
    assert other.read_bytes() == before


def edit(path: Path, statement: str) -> None:
    """Change the file of a ledger by SQL, without the class `Ledger`."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement)


def test_altered_entries_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "budget.ledger"
    spent(path, 0.5).close()
    edit(path, "UPDATE entries SET content = replace(content, '0.5', '0.1')")
    with pytest.raises(ValueError, match="is damaged: entry 2 is not as it was written"):
        Ledger(PureDP(1.0), path=path)


def test_files_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="no such folder"):
        Ledger(PureDP(1.0), path=tmp_path / "no such folder" / "budget.ledger")
    path = tmp_path / "budget.ledger"
    with Ledger(PureDP(1.0), path=path) as ledger:
        # The connection is made read-only. Permissions of the file do not stop the root user.
        ledger._file._connection.execute("PRAGMA query_only = ON")
        with pytest.raises(OSError, match="cannot be opened, read or written"):
            ledger.spend(claim(PureDP(0.1)), "x")
        assert ledger.spends() == []


def test_an_existing_ledger_is_opened_without_knowing_its_budget(tmp_path):
    path = tmp_path / "survey.ledger"
    budget = ApproxDP(2.0, 1e-6)
    for opened in (Ledger.existing, lambda path: Ledger(budget, path=path, create=False)):
        with pytest.raises(OSError, match="cannot be opened"):
            opened(path)
    assert not path.exists()
    with Ledger(budget, adjacency=Adjacency.ADD_REMOVE, path=path) as ledger:
        ledger.spend(Guarantee(PureDP(0.5), Adjacency.ADD_REMOVE, Exact()), "first")
    with Ledger.existing(path) as again:
        assert again.budget == budget
        assert again.adjacency is Adjacency.ADD_REMOVE
        assert again.left() == {"epsilon": 1.5, "delta": 1e-6}
        (spend,) = again.spends()
        assert datetime.fromisoformat(spend.time).utcoffset() == timedelta(0)
    assert Ledger(ZCDP(0.5)).left() == {"rho": 0.5}


def test_writers_wait_for_each_other_and_spends_survive_a_power_cut(tmp_path):
    """By default, Python waits only 5 seconds, and SQLite does not sync the folder at a commit."""
    Ledger(PureDP(1.0), path=tmp_path / "a.ledger").close()
    with closing(_connect(tmp_path / "a.ledger")) as connection:
        assert connection.execute("PRAGMA busy_timeout").fetchone() == (1000 * WAIT,)
        assert connection.execute("PRAGMA synchronous").fetchone() == (3,)  # EXTRA


def test_arguments_of_another_type_are_refused() -> None:
    ledger = Ledger(PureDP(1.0))
    with pytest.raises(ValueError, match="guarantee must be a Guarantee, got PureDP"):
        ledger.spend(PureDP(0.1), "release")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="label must be a str, got object"):
        ledger.spend(claim(PureDP(0.1)), object())  # type: ignore[arg-type]
    assert ledger.spends() == []


def test_the_zcdp_ledger_that_an_error_recommends_implies_the_approximate_budget() -> None:
    for epsilon in (0.5 + 0.04 * i for i in range(40)):
        ledger = Ledger(ApproxDP(epsilon, 1e-6))
        with pytest.raises(ValueError, match=r"ZCDP\(") as refused:
            ledger.spend(claim(ZCDP(0.01)), "a release")
        found = re.search(r"ZCDP\(([0-9.e+-]+)\)", str(refused.value))
        assert found is not None
        implied = zcdp_to_approx(ZCDP(float(found[1])), 1e-6).epsilon
        assert epsilon * (1 - 2e-5) <= implied <= epsilon


def test_an_entry_that_is_not_utf_8_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "edited.ledger"
    Ledger(PureDP(1.0), path=path).spend(claim(PureDP(0.5)), "a release")
    path.write_bytes(path.read_bytes().replace(b'"a release"', b'"a rele\xffse"'))
    with pytest.raises(ValueError, match=r"changed|damaged"):
        Ledger(PureDP(1.0), path=path, create=False).spends()
