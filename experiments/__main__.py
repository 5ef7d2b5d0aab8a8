"""Command line of the experiments: list, run, reproduce, plot, report, guide, lessons, status."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.progress import TaskID
from rich.table import Table

from experiments.catalogue import SCRIPTS
from experiments.engine.figures import Outputs, RecordError, read_record
from experiments.engine.processes import Processes
from experiments.engine.reproduce import Folders, Report, contents, draw, reproduce_alone
from experiments.engine.run import Executor, ExecutorError, in_process
from experiments.engine.script import LoadedScript, Preset, UnknownScriptError, find, load
from experiments.engine.store import StoreError
from experiments.engine.terminal import progress, scripts_table, show_left_out, show_reports
from geomdp.cli.planning.lessons import (
    Browser,
    Lesson,
    Name,
    Port,
    all_lessons,
    find_lesson,
    open_lesson,
    show_list,
)

app = typer.Typer(
    help="Run experiments, draw their figures and check their claims. Interrupted runs resume.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
#: Width of the output in characters if it goes to a log file, which has no width of its own.
LOG_WIDTH = 160
console = Console(width=None if sys.stdout.isatty() else LOG_WIDTH)

#: Exit code of a shell for a process stopped by Ctrl-C (128 + SIGINT).
INTERRUPTED = 130

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


@app.command("list")
def list_scripts() -> None:
    """Show every script with its headline, grouped by the question that the scripts answer."""
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
    scripts = [_find(name) for name in dict.fromkeys(names)]
    with _executor(workers, scheduler) as executor:
        passed = _run_all(scripts, _preset(full), Folders(results, figures), executor)
    # Here a script that cannot run is a failure, because it was asked for by name.
    if not passed or any(script.left_out for script in scripts):
        raise typer.Exit(1)


@app.command("reproduce")
def reproduce_all(
    full: Full = False,
    workers: Workers = 1,
    scheduler: Scheduler = None,
    results: ResultsFolder = RESULTS,
    figures: FiguresFolder = FIGURES,
) -> None:
    """Run every script; the exit code is 0 if no script fails and all claims hold.

    A script that needs a package that is not installed is named and left out.
    """
    scripts = [*map(load, SCRIPTS)]
    with _executor(workers, scheduler) as executor:
        passed = _run_all(scripts, _preset(full), Folders(results, figures), executor)
    flag = "" if full else " --quick"
    console.print(f"to read it all in a browser: python -m experiments report{flag}")
    if not passed:
        raise typer.Exit(1)


@app.command()
def plot(name: str, full: Full = False, figures: FiguresFolder = FIGURES) -> None:
    """Draw one figure again from its stored CSV; nothing is computed."""
    script = _find(name)
    outputs = Folders(figures=figures).outputs(script.name, _preset(full))
    if not outputs.csv.exists():
        _fail(f"{outputs.csv} does not exist; run the script first")
    draw(script, outputs)
    console.print(*(str(path) for path in outputs.images), sep="\n")


@app.command()
def report(full: Full = True, figures: FiguresFolder = FIGURES) -> None:
    """Put all stored figures, claims and theorems on pages; nothing is computed."""
    try:
        from experiments.report import build_report
    except ModuleNotFoundError as error:
        _fail(f"the report needs the extra `report`: pip install -e '.[report]' ({error})")
    with _reporting_errors():
        built = build_report([*map(load, SCRIPTS)], _preset(full), Folders(figures=figures))
    if built.missing:
        console.print(f"no figure at this preset: {', '.join(built.missing)}", highlight=False)
    console.print(
        f"{built.figures} figures, {built.passed} claims passed, {built.failed} failed",
        highlight=False,
    )
    console.print(str(built.path), markup=False, highlight=False, soft_wrap=True)


@app.command()
def guide(
    out: Annotated[
        Path, typer.Option("--out", metavar="FOLDER", help="Where the guide and its sources go.")
    ] = RESULTS / "guide",
    examples: Annotated[
        bool,
        typer.Option("--examples/--no-examples", help="Also run the examples of all docstrings."),
    ] = True,
    figures: FiguresFolder = FIGURES,
) -> None:
    """Build the guide and the reference, run their code and check their links."""
    try:
        from experiments.guide.build import GuideError, build_guide
        from experiments.guide.gallery import MissingFigureError
    except ModuleNotFoundError as error:
        _fail(f"the guide needs the extra `guide`: pip install -e '.[guide]' ({error})")
    try:
        with _reporting_errors():
            built = build_guide(
                [*map(load, SCRIPTS)], out, Folders(figures=figures), examples=examples
            )
    except (GuideError, MissingFigureError) as error:
        _fail(str(error))
    ran = f", {built.examples} examples ran" if examples else ""
    console.print(f"{built.pages} pages, all links inside them resolve{ran}", highlight=False)
    console.print(str(built.index), markup=False, highlight=False, soft_wrap=True)


@app.command("lessons")
def open_lessons(
    name: Name = None,
    export: Annotated[
        Path | None,
        typer.Option(
            "--export",
            metavar="FOLDER",
            help="Write the lesson, or all lessons, as static pages that open offline.",
            show_default=False,
        ),
    ] = None,
    port: Port = None,
    browser: Browser = True,
) -> None:
    """Open a lesson in the browser, export lessons, or list them without NAME and --export."""
    try:
        chosen = all_lessons() if name is None else [find_lesson(name)]
        if export is not None:
            _export(chosen, export)
        elif name is None:
            show_list("python -m experiments lessons")
        else:
            raise typer.Exit(open_lesson(chosen[0], port, browser))
    except (ValueError, OSError) as error:
        _fail(str(error))


def _export(lessons: Sequence[Lesson], folder: Path) -> None:
    try:
        from experiments.report.lesson_pages import export_lessons
    except ModuleNotFoundError as error:
        _fail(f"--export needs the extra `lessons`: pip install -e '.[lessons]' ({error})")
    for path in export_lessons(lessons, folder):
        console.print(str(path), markup=False, highlight=False, soft_wrap=True)


@app.command()
def status(results: ResultsFolder = RESULTS, figures: FiguresFolder = FIGURES) -> None:
    """Show which results and figures are stored, and whether the present code made them."""
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
) -> bool:
    """Reproduce the scripts that can run here and show their results; True if all passed."""
    show_left_out(console, scripts)
    scripts = [script for script in scripts if script.left_out is None]
    reports: list[Report] = []
    try:
        with _reporting_errors(), progress(console) as bars:
            tasks: list[TaskID] = []
            for script in scripts:
                total = len(script.sweep(preset).cells())
                done = _completed(script, preset, folders)
                tasks.append(bars.add_task(script.name, start=False, total=total, completed=done))
            for script, task in zip(scripts, tasks, strict=True):
                bars.start_task(task)
                reports.append(
                    reproduce_alone(
                        script,
                        preset,
                        folders,
                        executor,
                        observe=lambda _outcome, task=task: bars.advance(task),  # type: ignore[misc]
                    )
                )
    except KeyboardInterrupt:
        console.print("interrupted; completed cells are stored, run again to resume")
        raise typer.Exit(INTERRUPTED) from None
    show_reports(console, scripts, reports)
    return all(report.passed for report in reports)


def _completed(script: LoadedScript, preset: Preset, folders: Folders) -> int:
    """Number of completed cells; 0 if the store cannot be opened, which the report will say."""
    try:
        return contents(script, preset, folders).completed
    except StoreError:
        return 0


@contextmanager
def _executor(workers: int, scheduler: str | None) -> Iterator[Executor]:
    """The executor that the flags ask for."""
    if scheduler is not None:
        if workers > 1:
            _fail("give either --workers or --scheduler: a cluster brings its own workers")
        try:
            from experiments.engine.cluster import DaskCluster
        except ModuleNotFoundError as error:
            _fail(f"--scheduler needs the extra `cluster`: pip install -e '.[cluster]' ({error})")
        yield DaskCluster(scheduler)
    elif workers > 1:
        with Processes(workers) as processes:
            yield processes
    else:
        yield in_process


@contextmanager
def _reporting_errors() -> Iterator[None]:
    """Turn unusable files, full disks and lost workers into a message and exit code 1."""
    try:
        yield
    except (StoreError, ExecutorError, RecordError, OSError) as error:
        _fail(str(error))


def _find(name: str) -> LoadedScript:
    try:
        return find(name, SCRIPTS)
    except UnknownScriptError as error:
        _fail(str(error))


def _preset(full: bool) -> Preset:
    return Preset.FULL if full else Preset.QUICK


def _fail(message: str) -> NoReturn:
    console.print(message, style="red", highlight=False, markup=False)
    raise typer.Exit(1)


if __name__ == "__main__":
    app(prog_name="python -m experiments")
