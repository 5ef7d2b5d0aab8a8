"""A Dask cluster gives the results of one process, even if a worker or scheduler is killed."""

import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, cast

import pandas as pd
import pytest
from distributed import Future
from distributed.scheduler import KilledWorker, WorkerState

from experiments.engine.cells import Outcome, Sweep
from experiments.engine.cluster import DaskCluster, _outcome
from experiments.engine.provenance import Code
from experiments.engine.run import ExecutorError, ignore, in_process, run_sweep
from experiments.engine.store import Contents, Store
from tests.experiments import trivial_sweep
from tests.experiments.sweep_program import CODE
from tests.experiments.trivial_sweep import Config

ROOT = Path(__file__).parents[2]
#: 200 cells of 5 ms each, so that a killed worker loses the cells that it is running.
SWEEP = Sweep(tuple(Config(n, seconds=0.005) for n in range(50)), trials=4, seed=7)


class Machines:
    """A scheduler and its workers as processes of this machine, to be killed one by one."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.address = f"tcp://127.0.0.1:{self.port}"
        self._folder, self._stack = folder, stack

    def start_scheduler(self) -> subprocess.Popen[bytes]:
        where = ["--host", "127.0.0.1", "--port", str(self.port)]
        return self._start("scheduler", *where)

    def start_worker(self) -> subprocess.Popen[bytes]:
        one = ["--nworkers", "1", "--nthreads", "1", "--no-nanny"]
        return self._start("worker", self.address, *one, "--local-directory", str(self._folder))

    def _start(self, *arguments: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "dask", *arguments, "--no-dashboard"]
        log = self._stack.enter_context((self._folder / f"{arguments[0]}.log").open("ab"))
        process = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log)
        self._stack.callback(process.wait)
        self._stack.callback(process.kill)
        return process


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[Machines]:
    with ExitStack() as stack:
        yield Machines(tmp_path, stack)


def run(
    path: Path, machines: Machines, observe: Callable[[Outcome[Any]], None] = ignore
) -> pd.DataFrame:
    cluster = DaskCluster(machines.address)
    with Store(path, CODE) as store:
        table = run_sweep(trivial_sweep.compute, SWEEP, store, cluster, observe).table()
        assert store.contents(SWEEP.cells()) == Contents(completed=200, failed=0, stale=0)
    return table


def in_one_process(folder: Path) -> pd.DataFrame:
    with Store(folder / "straight.sqlite", CODE) as store:
        return run_sweep(trivial_sweep.compute, SWEEP, store, in_process).table()


def after(outcomes: int, action: Callable[[], object]) -> Callable[[Outcome[Any]], None]:
    """An observer that calls `action` once, after this number of outcomes."""
    count = 0

    def observe(outcome: Outcome[Any]) -> None:
        nonlocal count
        count += 1
        if count == outcomes:
            action()

    return observe


@pytest.mark.ci
def test_a_killed_worker_loses_nothing(tmp_path, machines):
    machines.start_scheduler()
    workers = [machines.start_worker() for _ in range(2)]
    found = run(tmp_path / "s.sqlite", machines, after(60, workers[0].kill))
    assert workers[0].wait() == -signal.SIGKILL
    pd.testing.assert_frame_equal(found, in_one_process(tmp_path), check_exact=True)
    # A worker with other code refuses the sweep, and nothing is stored.
    with Store(tmp_path / "t.sqlite", Code("edited", CODE.library)) as store:
        with pytest.raises(ExecutorError, match="differs from the code of this sweep"):
            run_sweep(trivial_sweep.compute, SWEEP, store, DaskCluster(machines.address))
        assert store.contents(SWEEP.cells()) == Contents(completed=0, failed=0, stale=0)


@pytest.mark.slow
def test_a_lost_scheduler_is_awaited(tmp_path, machines):
    running = [machines.start_scheduler()]
    with pytest.raises(ExecutorError, match="has no workers; start some with `dask worker"):
        DaskCluster(machines.address, patience=20.0)._connected()
    running.append(machines.start_worker())

    def lose_and_restart() -> None:
        for process in running:
            process.kill()
            process.wait()
        machines.start_scheduler()
        machines.start_worker()

    found = run(tmp_path / "s.sqlite", machines, after(60, lose_and_restart))
    pd.testing.assert_frame_equal(found, in_one_process(tmp_path), check_exact=True)


@pytest.mark.parametrize("allowed", [0, 3, 9])
def test_the_failure_of_a_deadly_cell_counts_the_deaths(allowed):
    """A scheduler gives up at the first death beyond its setting ``allowed-failures``."""

    class Killed:
        def result(self) -> None:
            raise KilledWorker("cell", WorkerState.__new__(WorkerState), allowed)

    outcome = _outcome(cast("Future", Killed()), SWEEP.cells()[0])
    assert f"the worker died in every run of this cell (runs: {allowed + 1})" in (
        outcome.traceback or ""
    )


def test_an_address_without_scheduler_is_named(tmp_path, machines):
    with Store(tmp_path / "s.sqlite", CODE) as store:
        cluster = DaskCluster(machines.address, patience=0.5)
        with pytest.raises(ExecutorError, match=f"no Dask scheduler at {machines.address}"):
            run_sweep(trivial_sweep.compute, SWEEP, store, cluster)
        cluster = DaskCluster("nonsense://there", patience=0.5)
        with pytest.raises(ExecutorError, match="no Dask scheduler at nonsense"):
            run_sweep(trivial_sweep.compute, SWEEP, store, cluster)
