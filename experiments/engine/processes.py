"""An executor on this machine: processes that compute one cell at a time and may be killed."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from typing import Any, Self

from experiments.engine.cells import Cell, Outcome
from experiments.engine.run import EachWork, ExecutorError, Task, Work

#: A cell counts as failed after this many deaths of its process. A Dask scheduler with its default
#: settings gives up after one more death.
DEATHS = 3


class Processes:
    """Runs cells in `count` processes of this machine; a context manager and an `Executor`.

    Each process holds one cell, so a process that is killed loses this cell alone. The cell runs
    again in another process. A cell counts as failed when `DEATHS` processes have died while they
    held it. Processes are spawned, not forked. They start when cells wait for them and serve one
    sweep after another. They end with the ``with`` block, or with the process that made them, even
    if that process is killed.
    """

    def __init__(self, count: int) -> None:
        if count < 1:
            raise ValueError(f"count must be at least 1, got {count}")
        self.count = count
        self._processes: list[_Process] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._stop(self._processes)

    @property
    def identifiers(self) -> tuple[int, ...]:
        """Ids of the processes that run."""
        return tuple(process.identifier for process in self._processes)

    def __call__(
        self, work: Work | EachWork, cells: Iterable[Cell[Any]] | Iterable[Task]
    ) -> Iterator[Outcome[Any]]:
        """Outcomes of all `cells`, as they complete."""
        self._stop(self._busy())  # these belong to a sweep that was broken off
        again: list[Any] = []  # cells whose process died
        rest = iter(cells)
        deaths, unbegun = Counter[tuple[object, ...]](), 0
        while True:
            self._hand_out(work, again, rest)
            if not self._busy():
                return
            ready: list[Outcome[Any]] = []
            for process in self._answering():
                answer = process.answer()
                if isinstance(answer, Exception):
                    raise ExecutorError(f"in a process: {answer}") from answer
                if answer is not None:
                    ready.append(answer)
                    unbegun = 0
                elif not process.alive:
                    self._processes.remove(process)
                    cell, seconds = process.stop()
                    # Only a process that has begun its cell counts against the cell. Others died
                    # while they started, or were idle and already dead when the cell was sent.
                    deaths[cell.key] += process.begun
                    unbegun += not process.begun
                    if deaths[cell.key] < DEATHS:
                        again.append(cell)
                    else:
                        ready.append(died(cell, seconds, "the process", DEATHS))
            if unbegun > DEATHS * self.count:
                raise ExecutorError(f"{unbegun} processes in a row died before they ran a cell")
            # Idle processes get new cells before the caller writes the outcomes to disk.
            self._hand_out(work, again, rest)
            yield from ready

    def _busy(self) -> list[_Process]:
        return [process for process in self._processes if process.cell is not None]

    def _answering(self) -> list[_Process]:
        """Busy processes that have sent something or died; waits for the first."""
        by_connection = {process.connection: process for process in self._busy()}
        return [by_connection[ready] for ready in wait(list(by_connection))]  # type: ignore[index]

    def _hand_out(self, work: Work | EachWork, again: list[Any], rest: Iterator[Any]) -> None:
        while len(self._busy()) < self.count:
            cell = again.pop() if again else next(rest, None)
            if cell is None:
                return
            idle = [process for process in self._processes if process.cell is None]
            if not idle:
                idle = [_Process()]
                self._processes += idle
            idle[0].start(work, cell)

    def _stop(self, processes: Sequence[_Process]) -> None:
        for process in list(processes):
            self._processes.remove(process)
            process.stop()


def died(cell: Cell[Any], seconds: float, what: str, deaths: int) -> Outcome[Any]:
    """Outcome of a cell that was run `deaths` times, each time by another process, which died."""
    reason = (
        f"{what} died in every run of this cell (runs: {deaths}): "
        "killed, out of memory, or a crash in compiled code\n"
    )
    return Outcome(cell, seconds, None, reason)


class _Process:
    """One process, which holds at most one cell."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs,), daemon=True)
        # Ctrl-C signals every process of the group, but only the caller should react to it. A
        # process that starts while the signal is blocked inherits the block. The resource tracker
        # must run before the block is set, because starting the tracker would lift the block.
        resource_tracker.ensure_running()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            self._process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        theirs.close()  # now the connection closes when the process ends
        self.alive = True
        self.cell: Cell[Any] | None = None
        self.begun = False  # whether the process has told that it has received the cell
        self._since = 0.0

    @property
    def identifier(self) -> int:
        """Process id."""
        assert self._process.pid is not None
        return self._process.pid

    def start(self, work: Work, cell: Cell[Any]) -> None:
        """Send a cell. If the process is already dead, `answer` finds that out."""
        self.cell, self.begun, self._since = cell, False, time.perf_counter()
        try:
            self.connection.send((work, cell))
        except OSError:
            self.alive = False

    def answer(self) -> Outcome[Any] | Exception | None:
        """The outcome or an error; None if the process has just begun its cell or has died."""
        try:
            received = self.connection.recv()
        except (EOFError, OSError):
            self.alive = False
            self._process.join()
            code = self._process.exitcode
            # Negative codes are signals, which may hit a process at any time.
            if not self.begun and code is not None and code >= 0:
                return ExecutorError(f"it ended with code {code} before it ran a cell")
            return None
        if received is None:
            self.begun = True
            return None
        self.cell = None
        return received  # type: ignore[no-any-return]

    def stop(self) -> tuple[Cell[Any], float]:
        """Kill the process; return its cell, if any, and the seconds since a cell was last sent."""
        self._process.kill()
        self._process.join()
        self._process.close()
        self.connection.close()
        return self.cell, time.perf_counter() - self._since  # type: ignore[return-value]


def _serve(connection: Connection[Any, Any]) -> None:
    """The loop of a process: answer each (work, cell) until the parent ends.

    The first answer is None: the cell has begun. The second is the outcome or an error.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    while True:
        try:
            work, cell = connection.recv()
            connection.send(None)
            answer: Outcome[Any] | Exception = work.checked(cell)
        except EOFError:
            return
        except ExecutorError as error:
            answer = error
        except Exception as error:
            # `checked` turns an exception of the cell into its outcome. Any other exception means
            # that the script cannot be loaded here.
            answer = ExecutorError(f"it cannot load the script: {error}")
        connection.send(answer)


def _end_with_parent() -> None:
    """End this process when its parent is killed, because nobody would read its outcomes."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


@contextmanager
def timed(seconds: list[float]) -> Iterator[None]:
    """Append the processor seconds of the block to `seconds`.

    Objects that existed before the block are hidden from the garbage collector. Without this, after
    thirty scripts in one process, the collector's searches took three quarters of the measured
    time.
    """
    gc.freeze()
    try:
        start = time.process_time()
        yield
        seconds.append(time.process_time() - start)
    finally:
        gc.unfreeze()
