"""Run one script: compute its cells, write CSV, figure and record, and check its claims."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from experiments.engine.cells import Outcome, Sweep, configuration_fields
from experiments.engine.claims import Claim
from experiments.engine.figures import (
    Folders,
    Outputs,
    RecordError,
    drawing,
    read_record,
    read_table,
    write_figure,
    write_record,
    write_table,
)
from experiments.engine.goals import Goal
from experiments.engine.provenance import commit, versions
from experiments.engine.run import Executor, SweepResult, ignore, in_process, run_sweep
from experiments.engine.script import HasGoals, LoadedScript, Preset, TakesTime
from experiments.engine.store import Contents, Store, StoreError


@dataclass(frozen=True)
class Report:
    """The result of one script."""

    name: str  # Short name of the script
    outputs: Outputs  # Paths of the files of the script
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
    folders: Folders,
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
    return computed(script, preset, folders, executor, observe)()


def computed(
    script: LoadedScript,
    preset: Preset,
    folders: Folders,
    executor: Executor,
    observe: Callable[[Outcome[Any]], None],
) -> Callable[[], Report]:
    """Run the missing cells; the function that is returned does the rest of `reproduce`."""
    sweep, outputs = script.sweep(preset), folders.outputs(script.name, preset)
    if isinstance(script.module, TakesTime):
        executor = in_process
    with Store(folders.store(script.name, preset), script.code) as store:
        again = failed_before(script, outputs)
        if again:
            store.forget()
            # Without the record, a run that is stopped now is resumed, and not begun again.
            outputs.record.unlink()
        result = run_sweep(script.module.compute, sweep, store, executor, observe)
    return partial(_concluded, script, preset, outputs, result, again)


def _concluded(
    script: LoadedScript, preset: Preset, outputs: Outputs, result: SweepResult, again: bool
) -> Report:
    """Write the table, draw the figure, check the claims and write the record."""
    sweep = script.sweep(preset)
    if result.failures:
        return Report(script.name, outputs, result.failures, (), again=again)
    write_table(outputs, result.table())
    claims: tuple[Claim, ...] = ()
    goals: tuple[Goal, ...] = ()
    broken = None
    try:
        draw(script, outputs)
        table = read_table(outputs)
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
        write_record(
            outputs, {**_record(script, preset, sweep, result, (), ()), "failure": failure}
        )
    else:
        write_record(outputs, _record(script, preset, sweep, result, claims, goals))
    return Report(script.name, outputs, (), claims, broken, goals, again)


def failed_before(script: LoadedScript, outputs: Outputs) -> bool:
    """Whether the stored record says that the present code failed; a damaged one does not count."""
    try:
        record = read_record(outputs)
    except RecordError:
        return False
    if record is None or record["code"] != asdict(script.code):
        return False
    return "failure" in record or not all(claim["passed"] for claim in record["claims"])


def reproduce_each(
    scripts: Sequence[LoadedScript],
    preset: Preset,
    folders: Folders,
    executor: Executor,
    begin: Callable[[LoadedScript], None],
    observe: Callable[[Outcome[Any]], None],
) -> Iterator[Report]:
    """Like `reproduce` for each script, but an error of a file becomes a failure of its script.

    Such an error is a store that cannot be opened, or a full disk. Other scripts can still run.
    They cannot if the executor fails, so `ExecutorError` is raised. While other processes compute
    the cells of a script, this process draws the figure of the script before it, unless the script
    measures time.

    Parameters
    ----------
    scripts, preset, folders, executor, observe
        As for `reproduce`.
    begin : callable
        Called with each script before its cells are computed.
    """
    drawn: Future[Report] | None = None
    with ThreadPoolExecutor(1) as drawer:
        for script in scripts:
            if drawn is not None and isinstance(script.module, TakesTime):
                yield drawn.result()
                drawn = None
            begin(script)
            conclude: Callable[[], Report]
            try:
                conclude = computed(script, preset, folders, executor, observe)
            except (StoreError, OSError) as error:
                conclude = partial(_unusable, script, preset, folders, error)
            if drawn is not None:
                yield drawn.result()
            drawn = drawer.submit(_alone, conclude, script, preset, folders)
            if executor is in_process:
                yield drawn.result()
                drawn = None
        if drawn is not None:
            yield drawn.result()


def _alone(
    conclude: Callable[[], Report], script: LoadedScript, preset: Preset, folders: Folders
) -> Report:
    try:
        return conclude()
    except OSError as error:
        return _unusable(script, preset, folders, error)


def _unusable(script: LoadedScript, preset: Preset, folders: Folders, error: Exception) -> Report:
    return Report(script.name, folders.outputs(script.name, preset), (), (), broken=str(error))


def draw(script: LoadedScript, outputs: Outputs) -> None:
    """Draw the figure from the stored CSV alone."""
    with drawing():
        write_figure(outputs, script.module.plot(read_table(outputs)))


def contents(script: LoadedScript, preset: Preset, folders: Folders) -> Contents:
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
