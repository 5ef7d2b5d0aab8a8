"""Command line of the experiments: list, run, reproduce, plot, site, status."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from rich.console import Console

# Refusals and --help must be quick, so only commands that go ahead import the engine's other
# modules, and with them NumPy, pandas and Matplotlib.
from experiments.catalogue import SCRIPTS, UnknownScriptError, module_of
from experiments.engine.figures import ROOT, Folders, Outputs, RecordError, read_record
from experiments.engine.script import LoadedScript, Preset, load

if TYPE_CHECKING:
    from experiments.engine.reproduce import Report
    from experiments.engine.run import Executor

app = typer.Typer(
    help="Run experiments, draw their figures and check their claims. Interrupted runs resume.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
#: Width of the output in characters if it goes to a log file, which has no width of its own.
LOG_WIDTH = 160
console = Console(width=None if sys.stdout.isatty() else LOG_WIDTH)

#: Exit codes of a shell for a process stopped by Ctrl-C (128 + SIGINT), and by SIGTERM.
INTERRUPTED, TERMINATED = 130, 143

Full = Annotated[
    bool,
    typer.Option(
        "--full/--quick",
        help="Run the sweep of the committed figures, or a smaller one with figures in quick/.",
    ),
]
Workers = Annotated[
    int,
    typer.Option(
        "--workers", min=1, help="Processes on this machine; with 1, no other process is started."
    ),
]
AllWorkers = Annotated[
    int | None,
    typer.Option(
        "--workers",
        min=1,
        help="Processes on this machine; by default one for each core, but at most 4.",
        show_default=False,
    ),
]
Scheduler = Annotated[
    str | None,
    typer.Option(
        "--scheduler",
        metavar="ADDRESS",
        help="Compute on the workers of this Dask scheduler (extra `cluster`).",
        show_default=False,
    ),
]
ResultsFolder = Annotated[Path, typer.Option("--results", help="Folder of the SQLite files.")]
FiguresFolder = Annotated[Path, typer.Option("--figures", help="Folder of the figures.")]
RESULTS, FIGURES = Folders().results, Folders().figures
#: Most processes that `reproduce` starts unasked: each needs about 400 MB, and few figures have
#: cells for more.
MOST_WORKERS = 4


@app.command("list")
def list_scripts() -> None:
    """Show every script with its headline, grouped by the question that the scripts answer."""
    from experiments.engine.terminal import scripts_table, show_left_out

    scripts = [*map(load, SCRIPTS)]
    console.print(scripts_table(scripts))
    show_left_out(console, scripts)


@app.command()
def run(
    names: Annotated[list[str], typer.Argument(help="Scripts to run; see `list`.")],
    full: Full = False,
    workers: Workers = 1,
    scheduler: Scheduler = None,
    results: ResultsFolder = RESULTS,
    figures: FiguresFolder = FIGURES,
) -> None:
    """Run scripts, draw their figures and check their claims."""
    modules = [_find(name) for name in dict.fromkeys(names)]
    with _executor(workers, scheduler) as executor:
        from experiments.engine.terminal import show_left_out, show_reports

        scripts = [*map(load, modules)]
        reports = _run_all(scripts, _preset(full), Folders(results, figures), executor)
        show_reports(console, reports)
        show_left_out(console, scripts)
    # Here a script that cannot run is a failure, because it was asked for by name.
    if len(reports) < len(scripts) or not all(report.passed for report in reports):
        raise typer.Exit(1)


@app.command("reproduce")
def reproduce_all(
    full: Full = False,
    workers: AllWorkers = None,
    scheduler: Scheduler = None,
    results: ResultsFolder = RESULTS,
    figures: FiguresFolder = FIGURES,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Also print every claim, goal and traceback.")
    ] = False,
) -> None:
    """Run every script; the exit code is 0 if no script fails and all claims hold.

    A script that needs a package that is not installed is named and left out.
    """
    folders, flag = Folders(results, figures), " --full" if full else ""
    if workers is None:
        workers = 1 if scheduler else min(os.cpu_count() or 1, MOST_WORKERS)
    with _executor(workers, scheduler) as executor:
        from experiments.engine.terminal import plain, show_reports, summary

        scripts = [*map(load, SCRIPTS)]
        reports = _run_all(scripts, _preset(full), folders, executor)
    if verbose:
        show_reports(console, reports)
    for line in summary(scripts, reports, flag, console.width):
        plain(console, line)
    plain(console, "all committed figures as pages: python -m experiments site (extra `site`)")
    plain(console, f"these figures: {folders.outputs('', _preset(full)).folder}")
    if not all(report.passed for report in reports):
        raise typer.Exit(1)


@app.command()
def plot(name: str, full: Full = False, figures: FiguresFolder = FIGURES) -> None:
    module = _find(name)
    outputs = Folders(figures=figures).outputs(name, _preset(full))
    if not outputs.csv.exists():
        _fail(f"{outputs.csv} does not exist; run the script first")
    from experiments.engine.reproduce import draw

    draw(load(module), outputs)
    console.print(*(str(path) for path in outputs.images), sep="\n")


@app.command()
def site(
    out: Annotated[
        Path, typer.Option("--out", metavar="FOLDER", help="Where the site goes.")
    ] = ROOT / "site",
    figures: FiguresFolder = FIGURES,
) -> None:
    """Build the site: figures, theorems, guide, lessons and reference, to open without a server.

    No figure is computed. The code of its pages runs, and all its links are checked.
    """
    try:
        from experiments.guide.build import SiteError, build_site
        from experiments.guide.figure_pages import MissingFigureError
    except ModuleNotFoundError as error:
        _fail(f"the site needs the extra `site`: pip install -e '.[site]' ({error})")
    scripts, folders = [*map(load, SCRIPTS)], Folders(figures=figures)
    try:
        with _reporting_errors():
            build_site(scripts, out, folders, RESULTS / "site")
    except (SiteError, MissingFigureError) as error:
        _fail(str(error))
    pages = len([*out.rglob("*.html")])
    console.print(f"{pages} pages, all links inside them resolve", highlight=False)
    console.print(str(out / "index.html"), markup=False, highlight=False, soft_wrap=True)


@app.command()
def status(results: ResultsFolder = RESULTS, figures: FiguresFolder = FIGURES) -> None:
    """Show which results and figures are stored, and whether the present code made them."""
    from rich.table import Table

    from experiments.engine.reproduce import contents
    from experiments.engine.terminal import show_left_out

    folders, scripts = Folders(results, figures), [*map(load, SCRIPTS)]
    table = Table("script", "preset", "completed", "failed", "by other code", "figure", "claims")
    for script in scripts:
        for preset in Preset:
            with _reporting_errors():
                held = contents(script, preset, folders)
            total = len(script.sweep(preset).cells())
            outputs = folders.outputs(script.name, preset)
            with _reporting_errors():
                record = read_record(outputs)
            table.add_row(
                script.name,
                preset.value,
                f"{held.completed}/{total}",
                str(held.failed),
                str(held.stale),
                *_figure_state(script, outputs, record),
            )
    console.print(table)
    show_left_out(console, scripts)


def _figure_state(
    script: LoadedScript, outputs: Outputs, record: dict[str, Any] | None
) -> tuple[str, str]:
    """Two cells of the table: which code made the figure (or "none"), and how many claims hold."""
    if record is None or not outputs.images[0].exists():
        return "none", ""
    made_by = "present code" if record["code"] == asdict(script.code) else "other code"
    passed = [claim["passed"] for claim in record["claims"]]
    return made_by, f"{sum(passed)} of {len(passed)} passed"


def _run_all(
    scripts: Sequence[LoadedScript], preset: Preset, folders: Folders, executor: Executor
) -> list[Report]:
    """Reproduce the scripts that can run here; one line names each that fails."""
    from experiments.engine.reproduce import reproduce_each
    from experiments.engine.terminal import Bar, headline, plain

    scripts = [script for script in scripts if script.left_out is None]
    before = signal.signal(signal.SIGTERM, _terminate)
    reports: list[Report] = []
    try:
        cells = {script.name: _pending(script, preset, folders) for script in scripts}
        costs = {script.name: _cost(script, preset, folders) for script in scripts}
        with _reporting_errors(), Bar(console, costs, cells) as bar:
            for report in reproduce_each(
                scripts, preset, folders, executor, lambda script: bar.advance(script.name)
            ):
                if line := headline(report):
                    plain(console, line)
                reports.append(report)
                bar.end()
    except KeyboardInterrupt as stop:
        console.print("interrupted; completed cells are stored, run again to resume")
        raise typer.Exit(TERMINATED if stop.args else INTERRUPTED) from None
    finally:
        signal.signal(signal.SIGTERM, before)
    # They came in the order in which they were complete.
    order = [script.name for script in scripts]
    return sorted(reports, key=lambda report: order.index(report.name))


def _terminate(number: int, frame: object) -> NoReturn:
    """End like Ctrl-C: `_run_all` leaves the terminal as it was and says how to go on."""
    del frame
    raise KeyboardInterrupt(number)


def _cost(script: LoadedScript, preset: Preset, folders: Folders) -> float:
    """Seconds of a cell of a sweep when it was last run, or as its docstring states."""
    try:
        record = read_record(folders.outputs(script.name, preset))
    except RecordError:
        record = None
    seconds = script.quick_seconds if record is None else max(0.1, float(record["seconds"]))
    return seconds / len(script.sweep(preset).cells())


def _pending(script: LoadedScript, preset: Preset, folders: Folders) -> int:
    """Number of cells to compute; all if the store cannot be opened, which the report will say."""
    from experiments.engine.reproduce import contents, failed_before
    from experiments.engine.store import StoreError

    total = len(script.sweep(preset).cells())
    if failed_before(script, folders.outputs(script.name, preset)):
        return total
    try:
        return total - contents(script, preset, folders).completed
    except StoreError:
        return total


@contextmanager
def _executor(workers: int, scheduler: str | None) -> Iterator[Executor]:
    """The executor that the flags ask for."""
    if scheduler is not None:
        if workers > 1:
            _fail("give either --workers or --scheduler: a cluster brings its own workers")
        if find_spec("distributed") is None:
            _fail("--scheduler needs the extra `cluster`: pip install -e '.[cluster]'")
        from experiments.engine.cluster import DaskCluster

        yield DaskCluster(scheduler)
    elif workers > 1:
        from experiments.engine.processes import Processes

        with Processes(workers) as processes:
            yield processes
    else:
        from experiments.engine.run import in_process

        yield in_process


@contextmanager
def _reporting_errors() -> Iterator[None]:
    """Turn unusable files, full disks and lost workers into a message and exit code 1."""
    from experiments.engine.run import ExecutorError
    from experiments.engine.store import StoreError

    try:
        yield
    except (StoreError, ExecutorError, RecordError, OSError) as error:
        _fail(str(error))


def _find(name: str) -> str:
    """The module of a script."""
    try:
        return module_of(name, SCRIPTS)
    except UnknownScriptError as error:
        _fail(str(error))


def _preset(full: bool) -> Preset:
    return Preset.FULL if full else Preset.QUICK


def _fail(message: str) -> NoReturn:
    console.print(message, style="red", highlight=False, markup=False)
    raise typer.Exit(1)


if __name__ == "__main__":
    app(prog_name="python -m experiments")
