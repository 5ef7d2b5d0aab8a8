"""Run one script: compute its cells, write CSV, figure and record, and check its claims."""

import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, Self

from experiments.engine import figures
from experiments.engine.cells import Outcome, Sweep, configuration_fields
from experiments.engine.claims import Claim, Goal
from experiments.engine.provenance import commit, versions
from experiments.engine.run import (
    EachWork,
    Executor,
    SweepResult,
    Task,
    Work,
    ignore,
    in_process,
    pending,
    result,
)
from experiments.engine.script import HasGoals, LoadedScript, Preset, TakesTime
from experiments.engine.store import Contents, Store, StoreError


@dataclass(frozen=True)
class Report:
    """The result of one script."""

    name: str  # Short name of the script
    outputs: figures.Outputs  # Paths of the files of the script
    failures: tuple[Outcome[Any], ...]  # Cells that failed; if there are any, no output is written
    claims: tuple[Claim, ...]  # Empty if a cell, plot, goals or claims failed
    #: Traceback if the script's ``plot``, ``claims`` or ``goals`` failed, or the error of a file or
    #: process that could not be used.
    broken: str | None = None
    goals: tuple[Goal, ...] = ()  # Reached and open goals; they do not decide `passed`
    again: bool = False  # Whether stored cells were computed again, because the last run failed

    @property
    def passed(self) -> bool:
        """Whether no cell failed, `broken` is None, and every claim holds."""
        return (
            not self.failures and self.broken is None and all(claim.passed for claim in self.claims)
        )


def reproduce(
    script: LoadedScript,
    preset: Preset,
    folders: figures.Folders,
    executor: Executor = in_process,
    observe: Callable[[Outcome[Any]], None] = ignore,
) -> Report:
    """Run the missing cells, write CSV, figure and record, and check the claims.

    If a cell fails, the sweep still goes on, but no output is written, because the table would be
    incomplete. If ``plot``, ``claims`` or ``goals`` fails, the table is written, the record names
    the failure and holds no claims, and the figure is removed, even an older one. If the last run
    with this code failed after its cells, the stored cells are forgotten and computed again: a
    failure must not outlive its cause.
    """
    if isinstance(script.module, TakesTime):
        executor = in_process
    with _Sweeping(script, preset, folders) as sweeping:
        for outcome in executor(sweeping.work, sweeping.waiting):
            sweeping.record(outcome)
            observe(outcome)
        conclude = sweeping.concluding()
    return conclude()


class _Sweeping:
    """The sweep of one script at work: its store, and the cells that are left."""

    def __init__(self, script: LoadedScript, preset: Preset, folders: figures.Folders) -> None:
        self.script, self.preset = script, preset
        self.sweep, self.outputs = script.sweep(preset), folders.outputs(script.name, preset)
        self.work = Work(script.module.compute, script.code)
        self.store = Store(folders.store(script.name, preset), script.code)
        try:
            self.again = failed_before(script, self.outputs)
            self.waiting = self.sweep.cells() if self.again else pending(self.sweep, self.store)
        except BaseException:
            self.store.close()
            raise
        self.left = len(self.waiting)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.store.close()

    def record(self, outcome: Outcome[Any]) -> None:
        if self.again and self.left == len(self.waiting):
            # A run that is stopped before this loses nothing. One that is stopped after it is
            # resumed, and not begun again, because there is no record of the failure.
            self.store.forget()
            self.outputs.record.unlink(missing_ok=True)
        self.store.record(outcome)
        self.left -= 1

    def concluding(self) -> Callable[[], Report]:
        """What is left to do when all cells have been run; it does not need the store."""
        found = result(self.sweep, self.store)
        return partial(_concluded, self.script, self.preset, self.outputs, found, self.again)


def _concluded(
    script: LoadedScript, preset: Preset, outputs: figures.Outputs, found: SweepResult, again: bool
) -> Report:
    """Write the table, draw the figure, check the claims and write the record."""
    sweep = script.sweep(preset)
    if found.failures:
        return Report(script.name, outputs, found.failures, (), again=again)
    figures.write_table(outputs, found.table())
    claims: tuple[Claim, ...] = ()
    goals: tuple[Goal, ...] = ()
    broken = None
    try:
        draw(script, outputs)
        table = figures.read_table(outputs)
        if isinstance(script.module, HasGoals):
            goals = tuple(script.module.goals(table))
        claims = script.claims(table)
    except OSError:
        raise  # A full disk is not the script's failure, so its older figure stays.
    except Exception as error:
        broken = traceback.format_exc()
        for image in outputs.images:
            image.unlink(missing_ok=True)
        # The record leaves out the traceback, because a record must name no path of this machine.
        failure = "".join(traceback.format_exception_only(error)).strip()
        figures.write_record(
            outputs, {**_record(script, preset, sweep, found, (), ()), "failure": failure}
        )
    else:
        figures.write_record(outputs, _record(script, preset, sweep, found, claims, goals))
    return Report(script.name, outputs, (), claims, broken, goals, again)


def failed_before(script: LoadedScript, outputs: figures.Outputs) -> bool:
    """Whether the stored record says that the present code failed; a damaged one does not count."""
    try:
        record = figures.read_record(outputs)
    except figures.RecordError:
        return False
    if record is None or record["code"] != asdict(script.code):
        return False
    return "failure" in record or not all(claim["passed"] for claim in record["claims"])


def reproduce_each(
    scripts: Sequence[LoadedScript],
    preset: Preset,
    folders: figures.Folders,
    executor: Executor,
    observe: Callable[[LoadedScript], None],
) -> Iterator[Report]:
    """Like `reproduce` for each script, but an error of a file becomes a failure of its script."""
    alone = [script for script in scripts if isinstance(script.module, TakesTime)]
    drawer = ThreadPoolExecutor(1)
    try:
        yield from _together(
            [script for script in scripts if script not in alone],
            preset,
            folders,
            executor,
            observe,
            drawer,
        )
        for script in alone:

            def tell(_outcome: Outcome[Any], script: LoadedScript = script) -> None:
                observe(script)

            run = partial(reproduce, script, preset, folders, in_process, tell)
            yield _reported(run, script, preset, folders)
    finally:
        drawer.shutdown(cancel_futures=True)


def _together(
    scripts: Sequence[LoadedScript],
    preset: Preset,
    folders: figures.Folders,
    executor: Executor,
    observe: Callable[[LoadedScript], None],
    drawer: ThreadPoolExecutor,
) -> Iterator[Report]:
    """The reports of scripts whose cells share the executor, each as soon as it is complete."""
    drawn: deque[Future[Report]] = deque()
    with ExitStack() as stores:
        at_work: dict[int, _Sweeping] = {}

        def conclude(number: int) -> None:
            with at_work.pop(number) as sweeping:
                try:
                    rest = sweeping.concluding()
                except StoreError as error:
                    rest = partial(_unusable, sweeping.script, preset, folders, error)
            drawn.append(drawer.submit(_reported, rest, sweeping.script, preset, folders))

        for number, script in enumerate(scripts):
            try:
                at_work[number] = stores.enter_context(_Sweeping(script, preset, folders))
            except (StoreError, OSError) as error:
                yield _unusable(script, preset, folders, error)
        # A script whose store fails leaves `at_work`, and the rest of its cells is not begun.
        tasks = (
            Task(number, sweeping.work, cell)
            for number, sweeping in list(at_work.items())
            for cell in sweeping.waiting
            if number in at_work
        )
        for number in [number for number, sweeping in at_work.items() if not sweeping.left]:
            conclude(number)
        while drawn and executor is in_process:
            yield drawn.popleft().result()
        for outcome in executor(EachWork(), tasks):
            task = outcome.cell
            if (sweeping := at_work.get(task.number)) is None:
                continue  # its store could not be written to
            try:
                sweeping.record(replace(outcome, cell=task.cell))
                observe(sweeping.script)
            except (StoreError, OSError) as error:
                del at_work[task.number]
                yield _unusable(sweeping.script, preset, folders, error)
            else:
                if not sweeping.left:
                    conclude(task.number)
            while drawn and (executor is in_process or drawn[0].done()):
                yield drawn.popleft().result()
        if at_work:
            names = ", ".join(sweeping.script.name for sweeping in at_work.values())
            raise RuntimeError(f"the executor returned too few outcomes of {names}")
    for future in drawn:
        yield future.result()


def _reported(
    conclude: Callable[[], Report], script: LoadedScript, preset: Preset, folders: figures.Folders
) -> Report:
    try:
        return conclude()
    except (StoreError, OSError) as error:
        return _unusable(script, preset, folders, error)


def _unusable(
    script: LoadedScript, preset: Preset, folders: figures.Folders, error: Exception
) -> Report:
    return Report(script.name, folders.outputs(script.name, preset), (), (), broken=str(error))


def draw(script: LoadedScript, outputs: figures.Outputs) -> None:
    """Draw the figure from the stored CSV alone."""
    with figures.drawing():
        figures.write_figure(outputs, script.module.plot(figures.read_table(outputs)))


def contents(script: LoadedScript, preset: Preset, folders: figures.Folders) -> Contents:
    """Counts of completed, failed and stale cells in a store; a missing store is not created."""
    path = folders.store(script.name, preset)
    if not path.exists():
        return Contents(completed=0, failed=0, stale=0)
    with Store(path, script.code) as store:
        return store.contents(script.sweep(preset).cells())


def _record(
    script: LoadedScript,
    preset: Preset,
    sweep: Sweep[Any],
    result: SweepResult,
    claims: tuple[Claim, ...],
    goals: tuple[Goal, ...],
) -> dict[str, object]:
    record: dict[str, object] = {
        "script": script.module.__name__,
        "preset": preset.value,
        "seed": sweep.seed,
        "trials": sweep.trials,
        "configurations": [configuration_fields(c) for c in sweep.configurations],
        "seconds": round(result.seconds, 3),
        "commit": commit(),
        "code": asdict(script.code),
        "versions": versions(),
        "claims": [claim.to_dict() for claim in claims],
    }
    if goals:
        record["goals"] = [goal.to_dict() for goal in goals]
    return record
