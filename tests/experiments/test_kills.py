"""After kill -9 or Ctrl-C, stored cells remain, and the resumed sweep equals one never stopped."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pandas as pd
import pytest

from experiments.engine.run import run_sweep
from experiments.engine.store import Contents, Store
from tests.experiments import trivial_sweep

ROOT = Path(__file__).parents[2]
KILLS = 20


def uninterrupted(folder: Path) -> pd.DataFrame:
    with Store(folder / "straight.sqlite", trivial_sweep.code()) as store:
        return run_sweep(trivial_sweep.compute, trivial_sweep.SWEEP, store).table()


def check_resumed(path: Path, folder: Path) -> None:
    """Resume a stopped sweep: it computes only missing cells and equals an uninterrupted sweep."""
    cells = trivial_sweep.SWEEP.cells()
    with Store(path, trivial_sweep.code()) as store:  # opening the file also checks every page
        done = store.contents(cells).completed
        computed: list[object] = []
        resumed = run_sweep(
            trivial_sweep.compute, trivial_sweep.SWEEP, store, observe=computed.append
        )
        assert len(computed) == len(cells) - done
        assert store.contents(cells) == Contents(completed=len(cells), failed=0, stale=0)
    pd.testing.assert_frame_equal(resumed.table(), uninterrupted(folder), check_exact=True)


def kill_forked(folder: Path, seed: int) -> None:
    path = folder / f"killed-{seed}.sqlite"
    program = [sys.executable, "-m", "tests.experiments.forked_kills"]
    result = subprocess.run(
        [*program, str(path), str(KILLS), str(seed)], cwd=ROOT, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    snapshots = [json.loads(line) for line in result.stdout.splitlines()]
    assert len(snapshots) == KILLS
    for before, after in zip([{}, *snapshots], snapshots, strict=False):
        # A stored cell is not computed again, so its seconds do not change.
        assert before.items() <= after.items()
    assert 0 < len(snapshots[-1]) < len(trivial_sweep.SWEEP.cells())
    check_resumed(path, folder)


def test_twenty_kills_of_a_sweep(tmp_path):
    kill_forked(tmp_path, seed=20240501)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_twenty_kills_of_a_sweep_at_many_seeds(tmp_path, seed):
    kill_forked(tmp_path, seed)


def kill_with_workers(path: Path, after: int, delay: float) -> None:
    """Kill a sweep `delay` seconds after outcome `after`; its two worker processes must end too."""
    command = [sys.executable, "-m", "tests.experiments.trivial_sweep", str(path), "2"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(1 + after)]
        assert all(lines), "the sweep ended before it could be killed"
        workers = [int(word) for word in lines[-1].split()]
        time.sleep(delay)
        process.kill()
    assert process.returncode == -signal.SIGKILL
    assert len(workers) == 2
    for worker in workers:
        wait_for_end(worker)


def wait_for_end(process: int) -> None:
    """Wait until the process has ended. After 30 seconds the test fails instead of hanging."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        with suppress(ProcessLookupError):
            os.kill(process, 0)
            # An orphan that has ended stays in the process table as a zombie, with status Z, until
            # init collects it.
            status = Path(f"/proc/{process}/stat")
            if status.exists() and status.read_text().rpartition(")")[2].split()[0] == "Z":
                return
            time.sleep(0.02)
            continue
        return
    raise AssertionError(f"process {process} outlives its sweep")


def test_a_kill_of_a_parallel_sweep_takes_its_processes_along(tmp_path):
    path = tmp_path / "killed.sqlite"
    kill_with_workers(path, after=30, delay=0.003)
    check_resumed(path, tmp_path)


@pytest.mark.parametrize("outcomes", [0, 20])
def test_ctrl_c_stops_a_parallel_sweep_once(tmp_path, outcomes):
    path = tmp_path / "interrupted.sqlite"
    command = [sys.executable, "-m", "tests.experiments.trivial_sweep", str(path), "2"]
    with subprocess.Popen(
        command,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(1 + outcomes)]
        # Like a terminal, send Ctrl-C to the command and to its worker processes at once.
        os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate()
    assert process.returncode == -signal.SIGINT
    assert errors.count("Traceback") == 1
    assert errors.rstrip().endswith("KeyboardInterrupt")
    for worker in lines[-1].split():
        wait_for_end(int(worker))
    check_resumed(path, tmp_path)


@pytest.mark.slow
def test_twenty_kills_of_a_parallel_sweep(tmp_path):
    path, chance = tmp_path / "killed.sqlite", random.Random(5)
    for _ in range(KILLS):
        kill_with_workers(path, chance.randint(1, 4), chance.uniform(0, 0.003))
    check_resumed(path, tmp_path)
