"""Output of the command line: the list of scripts, progress, and the results of a run."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from itertools import groupby
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from experiments.engine.cells import Cell, Outcome
from experiments.engine.claims import claims_table
from experiments.engine.figures import read_table
from experiments.engine.goals import goals_table
from experiments.engine.reproduce import Report
from experiments.engine.script import LoadedScript, Preset, Reports


def scripts_table(scripts: Sequence[LoadedScript]) -> Table:
    """Every script with the first line of its docstring, grouped by folder."""
    table = Table("name", "what it shows", "cells quick", "cells full")
    for package, group in groupby(scripts, key=lambda script: script.package):
        table.add_section()
        folder = package.rpartition(".")[2]
        table.add_row(Text(folder, "bold"), Text(question(package), "bold"))
        for script in group:
            sizes = [str(len(script.sweep(preset).cells())) for preset in Preset]
            table.add_row(Text(f"  {script.name}"), Text(script.headline), *sizes)
    return table


def question(package: str) -> str:
    """First line of the docstring of a folder of scripts: the question they answer."""
    lines = (importlib.import_module(package).__doc__ or "").strip().splitlines()
    return lines[0] if lines else ""


def show_left_out(console: Console, scripts: Sequence[LoadedScript]) -> None:
    """Name the scripts that cannot run here, each with the extra to install."""
    for script in scripts:
        if script.left_out is not None:
            console.print(
                f"left out: {script.name} {script.left_out}",
                markup=False,
                highlight=False,
                soft_wrap=True,
            )


def progress(console: Console) -> Progress:
    """A bar for each script, counting cells."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=console,
    )


def show_reports(
    console: Console, scripts: Sequence[LoadedScript], reports: Sequence[Report]
) -> None:
    """Print failures with their tracebacks, the scripts' own tables, all claims and all goals."""
    for script, report in zip(scripts, reports, strict=True):
        # One defect often makes many cells fail with the same traceback, so each traceback is shown
        # once.
        for failure, cells in _by_traceback(report.failures).items():
            first = cells[0]
            console.print(
                f"{report.name}: {len(cells)} cells FAILED alike, first trial {first.trial} of "
                f"{first.configuration!r}",
                markup=False,
            )
            console.print(failure, markup=False, highlight=False)
        if report.failures:
            console.print(f"{report.name}: {len(report.failures)} cells failed, nothing written")
        elif report.broken is not None:
            console.print(f"{report.name}: its plot, its claims or its files FAILED", markup=False)
            console.print(report.broken, markup=False, highlight=False)
        elif isinstance(script.module, Reports):
            console.print(script.module.report(read_table(report.outputs)))
    claims = [(report.name, claim) for report in reports for claim in report.claims]
    if claims:
        console.print(claims_table(claims))
    goals = [(report.name, goal) for report in reports for goal in report.goals]
    if goals:
        console.print(goals_table(goals))
        reached = sum(goal.reached for _, goal in goals)
        console.print(f"{reached} goals reached, {len(goals) - reached} open")
    failed = sum(not claim.passed for _, claim in claims)
    console.print(f"{len(claims) - failed} claims passed, {failed} failed")
    if without := [report.name for report in reports if not report.claims]:
        console.print(f"no claims could be checked: {', '.join(without)}", markup=False)


def _by_traceback(failures: Sequence[Outcome[Any]]) -> dict[str, list[Cell[Any]]]:
    groups: dict[str, list[Cell[Any]]] = {}
    for outcome in failures:
        groups.setdefault(outcome.traceback or "", []).append(outcome.cell)
    return groups
