"""Output of the command line: the list of scripts, progress, and the results of a run."""

import importlib
import textwrap
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table
from rich.text import Text

from experiments.engine.cells import Cell, Outcome
from experiments.engine.claims import claims_table, goals_table
from experiments.engine.reproduce import Report
from experiments.engine.script import ComparesWithPeers, LoadedScript, Preset
from geomdp.cli.display import visible


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
    text = importlib.import_module(package).__doc__ if package else ""
    lines = (text or "").strip().splitlines()
    return lines[0] if lines else ""


def show_left_out(console: Console, scripts: Sequence[LoadedScript]) -> None:
    """Name the scripts that cannot run here, each with the extra to install."""
    for script in scripts:
        if script.left_out is not None:
            plain(console, f"left out: {script.name} {script.left_out}")


MOST_LINES = 40  # of `summary`
#: Seconds between two updates of the bar on a terminal, and between two lines without one.
ON_TERMINAL, WITHOUT = 1.0, 60.0


class Bar:
    """One bar for a whole run: figures done, time left, and the figure of the last cell.

    The time left is that of the work done so far, times the ratio of the costs left and done.
    Without a terminal, a plain line is printed once a minute, however long a cell takes.
    """

    def __init__(
        self,
        console: Console,
        costs: Mapping[str, float],
        cells: Mapping[str, int],
        clock: Callable[[], float] = time.monotonic,
        every: float | None = None,
    ) -> None:
        self.costs, self.console, self.clock = costs, console, clock
        self.total = sum(costs[name] * cells[name] for name in costs)
        self.every = every or (ON_TERMINAL if console.is_terminal else WITHOUT)
        self.name, self.number, self.spent = "", 0, 0.0
        self.started = clock()
        shown = [BarColumn(20), TextColumn("{task.description}")]
        self.progress = Progress(*shown, console=console, disable=not console.is_terminal)
        self.task = self.progress.add_task("", total=self.total or None)
        self.over = threading.Event()
        self.timer = threading.Thread(target=self._keep_showing, daemon=True)

    def __enter__(self) -> Self:
        self.progress.start()
        self.timer.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.over.set()
        self.timer.join()
        self.progress.stop()

    def advance(self, name: str) -> None:
        """Count one more cell of a figure."""
        self.name, self.spent = name, self.spent + self.costs[name]
        self._show()

    def end(self) -> None:
        """Count one more figure that is done."""
        self.number += 1
        self._show()

    def text(self) -> str:
        """Figures done of all, time left, and the figure of the last cell."""
        text = f"{self.number} of {len(self.costs)} figures"
        if self.spent > 0:
            left = max(0.0, self.total - self.spent)
            seconds = round((self.clock() - self.started) * left / self.spent)
            text += f", {seconds // 60}:{seconds % 60:02} left"
        return f"{text}, {self.name}" if self.name else text

    def _show(self) -> None:
        self.progress.update(self.task, completed=self.spent, description=self.text())

    def _keep_showing(self) -> None:
        while not self.over.wait(self.every):
            self._show()
            if not self.console.is_terminal:
                plain(self.console, self.text())


def plain(console: Console, text: str) -> None:
    """Print one line, with escapes in place of control characters; a terminal wraps it."""
    console.print(visible(text), markup=False, highlight=False, soft_wrap=True)


def headline(report: Report) -> str | None:
    """One line on a figure that failed or was computed again; None for others."""
    again = "its last run failed, so its cells were computed again" if report.again else ""
    if report.passed:
        return f"{report.name}: {again}, and it passed" if again else None
    failed = sum(not claim.passed for claim in report.claims)
    what = f"{failed} of {len(report.claims)} claims"
    if report.failures:
        what = f"{len(report.failures)} cells"
    elif report.broken is not None:
        what = "its plot, its claims or its files"
    return f"FAILED {report.name}: {what}" + (f"; {again}" if again else "")


def summary(
    scripts: Sequence[LoadedScript], reports: Sequence[Report], flag: str, width: int
) -> list[str]:
    """The end of a run in at most `MOST_LINES` lines of `width`, less two for the page."""
    claims = [claim for report in reports for claim in report.claims]
    failed = sum(not claim.passed for claim in claims)
    left_out = _by_extra(scripts)
    counts = f"{len(reports)} figures: {len(claims) - failed} claims passed, {failed} failed"
    goals = [goal for report in reports for goal in report.goals]
    if goals:
        reached = sum(goal.reached for goal in goals)
        counts += f"; {reached} goals reached, {len(goals) - reached} open"
    first = _wrapped([counts], width)
    last = _wrapped(
        [
            f"left out (pip install -e '.[{extra}]' brings them): {', '.join(names)}"
            for extra, names in left_out.items()
        ],
        width,
    )
    blocks = [_wrapped(block, width) for report in reports for block in _failed(report, flag)]
    room = MOST_LINES - 2 - len(first) - len(last)
    middle: list[str] = []
    for number, block in enumerate(blocks):
        # Keep a line for the number of failures without room.
        more = number + 1 < len(blocks)
        if len(middle) + len(block) + more > room:
            middle.append(f"and {len(blocks) - number} more failures: see --verbose")
            break
        middle += block
    return [*first, *middle, *last]


def _by_extra(scripts: Sequence[LoadedScript]) -> dict[str, list[str]]:
    """The scripts that cannot run here, by the extra to install."""
    found: dict[str, list[str]] = {}
    for script in scripts:
        if script.left_out is not None and isinstance(script.module, ComparesWithPeers):
            found.setdefault(script.module.NEEDS.extra, []).append(script.name)
    return found


def _failed(report: Report, flag: str) -> list[list[str]]:
    """For each failure of a figure, its lines before they are wrapped."""
    again = f"  again: python -m experiments run {report.name}{flag}"
    if report.failures:
        last = [(each.traceback or "").strip().splitlines()[-1:] for each in report.failures]
        return [[f"FAILED {report.name}: {len(last)} cells: {' '.join(last[0])}", again]]
    if report.broken is not None:
        error = report.broken.strip().splitlines()[-1]
        return [[f"FAILED {report.name}: its plot, its claims or its files: {error}", again]]
    return [
        [
            f"FAILED {report.name}: {claim.name}",
            f"  measured {claim.measured}; stated {claim.theory}",
            again,
        ]
        for claim in report.claims
        if not claim.passed
    ]


def _wrapped(lines: Sequence[str], width: int) -> list[str]:
    """The lines, broken between words; a word that is too long, such as a path, stays whole."""
    return [
        part
        for line in lines
        for part in textwrap.wrap(
            line, width, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
        )
    ]


def show_reports(console: Console, reports: Sequence[Report]) -> None:
    """Print failures with their tracebacks, where the tables are, all claims and all goals."""
    for report in reports:
        # One defect often makes many cells fail with the same traceback, so each traceback is shown
        # once.
        for failure, cells in _by_traceback(report.failures).items():
            first = cells[0]
            plain(
                console,
                f"{report.name}: {len(cells)} cells FAILED alike, first trial {first.trial} of "
                f"{first.configuration!r}",
            )
            _show_traceback(console, failure)
        if report.failures:
            plain(console, f"{report.name}: {len(report.failures)} cells failed, nothing written")
        elif report.broken is not None:
            plain(console, f"{report.name}: its plot, its claims or its files FAILED")
            _show_traceback(console, report.broken)
        else:
            plain(console, f"{report.name}: {report.outputs.csv}")
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


def _show_traceback(console: Console, text: str) -> None:
    for line in text.splitlines():
        plain(console, line)


def _by_traceback(failures: Sequence[Outcome[Any]]) -> dict[str, list[Cell[Any]]]:
    groups: dict[str, list[Cell[Any]]] = {}
    for outcome in failures:
        groups.setdefault(outcome.traceback or "", []).append(outcome.cell)
    return groups
