"""The command `geomdp`, with its lists, the lessons and the commands about schema files.

Only options and help are defined at import, so that --help is quick.
"""

from __future__ import annotations

import ast
import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

import geomdp as gd
from geomdp._numerics.files import write_together
from geomdp.cli import display, flags
from geomdp.cli.ask import ask
from geomdp.cli.audit import audit
from geomdp.cli.display import logged_to
from geomdp.cli.flags import AUTO, options, whole_number
from geomdp.cli.outputs import check_output, ledger
from geomdp.cli.plans import advise, bracket, budget, check_bound, curve, width
from geomdp.cli.release import covariance, release
from geomdp.cli.smooth import app as smooth

if TYPE_CHECKING:
    from geomdp.data.columns import Column


def mechanisms() -> None:
    """List the mechanisms."""
    from geomdp.advice.candidates import CANDIDATES, FITTED, PROJECTED, SHRUNK

    rows = [(row.flag, row.guarantees.value, row.summary) for row in CANDIDATES]
    display.print_table(["--mechanism", "with", "what it is"], rows)
    projected, fitted = PROJECTED.prefix, FITTED.prefix
    print(
        f"""
Answers are attainable if they are the exact answers of some table.
{projected}NAME moves the answers of NAME to the nearest attainable ones;
for a table of n records this move never makes the error larger.
{fitted}NAME takes the attainable answers that fit the noisy answers of NAME best;
the error is usually smaller than for {projected}NAME, but its proved bound is twice as large.
{SHRUNK.prefix}NAME moves answers towards those of uniform data before it moves them to
attainable ones; this helps if there are few records.
{AUTO} compares them without reading records; see `geomdp advise`. For few records, it
takes {fitted}NAME if this errs less in simulations on public data."""
    )


def workloads() -> None:
    """List the workload specifications."""
    from geomdp.tabulation.tasks import WORKLOAD_KINDS

    rows = [(kind.usage, kind.summary) for kind in WORKLOAD_KINDS]
    display.print_table(["--workload", "queries; every answer is a mean over records"], rows)


_option = options("""
[NAME]  Number or name of a lesson; without NAME, all lessons are listed.
--port N  Port of the notebook; by default the first free one.
--browser/--no-browser  Open a browser, or print the address only.
--log FILE  Append the steps of the command, with times, to FILE.
--look/--no-look  Read the values, and propose a kind, categories and bin edges for each column,
    which is NOT private; or read the names of the columns alone.
Arguments:
DATA  Records with a header: a .csv, .csv.gz or .parquet file, a folder of such files, or a quoted
    pattern.
FILE.json  A schema file.
[COLUMN]...  The columns; by default all drafted ones.
Result:
--out FILE.json  File for the draft; by default the draft is printed.
""")


# schema


class _DraftByDefault(TyperGroup):
    """The group of the commands about schemas. Without the name of a command, it runs `draft`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        named = not args or args[0] in {*self.commands, "--help"}
        return super().parse_args(ctx, args if named else ["draft", *args])


schema = typer.Typer(
    cls=_DraftByDefault,
    help="Draft a schema for records; `geomdp schema DATA` is short for `schema draft DATA`.",
    no_args_is_help=True,
)


@schema.command()
def draft(
    data: Annotated[Path, _option("DATA")],
    *,
    look: Annotated[bool, _option("--look/--no-look")] = True,
    out: Annotated[Path | None, _option("--out FILE.json")] = None,
    force: flags.Force = False,
) -> None:
    """Draft a schema for the records in DATA, and print what was decided about each column."""
    check_output(out, (".json",), force, inputs=(data,))
    if look:
        inferred = gd.data.infer_schema(data)
        text = inferred.schema.to_json() + "\n"
        if out is not None:
            headings = ["column", "kind", "read from the records", "to state"]
            display.print_table(headings, inferred.decisions)
        display.warn(
            "the draft depends on the records, so a release with it has no privacy claim. If you "
            "know what it says without the records, or have edited it so, state it with "
            f"`geomdp schema confirm {out or 'FILE'}`"
        )
    else:
        from geomdp.data.files import column_names, csv_format
        from geomdp.data.schema import document_of, document_text

        csv = csv_format(data)
        names = column_names(data, csv)
        why = "declare its kind: categorical, boolean, numeric, date or real"
        skipped = [gd.data.SkippedColumn(name, why) for name in names]
        text = document_text(document_of(skipped, csv)) + "\n"
    if out is None:
        print(text, end="")
        return
    write_together({out: text.encode()})
    rows = [("schema", str(out))]
    if not look:
        rows.append(("to do", "declare the kinds of columns: all are skipped until then"))
    display.print_rows(rows)


@schema.command()
def confirm(
    file: Annotated[Path, _option("FILE.json")],
    columns: Annotated[list[str] | None, _option("[COLUMN]...")] = None,
) -> None:
    """State that drafted columns in FILE are known without the records; FILE records it."""
    from geomdp.cli.inputs import read_schema

    drafted = read_schema(file, str(file))
    confirmed = drafted.confirm(*(columns or ()))
    if confirmed != drafted:
        write_together({file: (confirmed.to_json() + "\n").encode()})
    rows = [(column.name, _stated(column)) for column in confirmed.columns if column.confirmed]
    if rows:
        display.print_table(["column", "stated to be known without the records"], rows)
    else:
        display.print_rows([("confirmed", "no column")])
    if confirmed.caveat:
        display.warn(f"no privacy claim: {confirmed.caveat}")


def _stated(column: Column) -> str:
    given = column.to_dict()
    kind, _ = given.pop("kind"), given.pop("confirmed")
    words = (f"{key} {json.dumps(value, ensure_ascii=False)}" for key, value in given.items())
    return ", ".join([str(kind), *words])


@schema.command()
def editor() -> None:
    """Print the JSON Schema of schema files, from which an editor completes and checks them."""
    print(files("geomdp.data").joinpath("schema.schema.json").read_text(encoding="utf-8"), end="")


# lessons: the notebooks of the course

#: The lessons are in its subfolder lessons/, or in a checkout beside it in experiments/lessons/.
PACKAGE = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Lesson:
    """One notebook. The file ``lesson_01_body.py`` is lesson 1 with the name `body`."""

    path: Path

    @property
    def number(self) -> int:
        return int(self.path.stem.split("_")[1])

    @property
    def name(self) -> str:
        return self.path.stem.split("_", 2)[2]

    @property
    def title(self) -> str:
        """The first line of the notebook's docstring, without the number."""
        text = ast.get_docstring(ast.parse(self.path.read_text(encoding="utf-8"))) or ""
        return text.partition("\n")[0].removeprefix(f"Lesson {self.number}. ")


def all_lessons() -> list[Lesson]:
    shipped, checkout = PACKAGE / "lessons", PACKAGE.parent / "experiments" / "lessons"
    folder = shipped if shipped.is_dir() else checkout
    return [Lesson(path) for path in sorted(folder.glob("lesson_[0-9][0-9]_*.py"))]


def find_lesson(name: str) -> Lesson:
    """The lesson with this number, short name or file name; ``ValueError`` if there is none."""
    known = all_lessons()
    for lesson in known:
        if name in {str(lesson.number), lesson.name, lesson.path.stem, lesson.path.name}:
            return lesson
    names = ", ".join(f"{each.number} ({each.name})" for each in known)
    names = names or "the lessons (none is installed)"
    raise ValueError(f"NAME must be one of {names}, got {name!r}")


def lessons(
    name: Annotated[str | None, _option("[NAME]")] = None,
    port: Annotated[int | None, _option("--port N", whole_number)] = None,
    browser: Annotated[bool, _option("--browser/--no-browser")] = True,
) -> None:
    """Open a lesson on the geometry of privacy; without NAME, list all lessons.

    Lessons are notebooks with sliders and exercises and need the extra `lessons`.
    """
    if name is None:
        rows = [(str(lesson.number), lesson.name, lesson.title) for lesson in all_lessons()]
        display.print_table(["lesson", "name", "what it is about"], rows)
        print("\nto open one as a notebook: geomdp lessons 1")
        print("all as pages, without a server: python -m experiments site (in a checkout)")
        return
    lesson = find_lesson(name)
    if find_spec("marimo") is None:
        raise ValueError(
            "the lessons are marimo notebooks and need the extra `lessons`: "
            "pip install 'geomdp[lessons]'"
        )
    if port is not None and not 1 <= port <= 65535:
        raise ValueError(f"--port must be a whole number from 1 to 65535, got {port}")
    chosen = ["--headless"] * (not browser)
    chosen += [] if port is None else ["--port", str(port)]
    command = [sys.executable, "-m", "marimo", "run", *chosen, str(lesson.path)]
    os.execv(sys.executable, command)  # the server takes the place of this process


# The command

app = typer.Typer(
    help="Private answers to a fixed set of queries about a table of records.",
    epilog="First: geomdp schema DATA --out schema.json, then edit that file. To try a release at "
    "once: geomdp release --sample rand --workload marginals:2 --epsilon 1 --out tables.csv",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _print_version(asked: bool) -> None:
    if asked:
        print(f"geomdp {gd.__version__}")
        raise typer.Exit


Version = Annotated[
    bool,
    typer.Option(
        "--version", metavar="", callback=_print_version, is_eager=True, help="Print the version."
    ),
]


@app.callback()
def geomdp(
    context: typer.Context,
    *,
    version: Version = False,
    log: Annotated[Path | None, _option("--log FILE")] = None,
) -> None:
    """Private answers to a fixed set of queries about a table of records."""
    del version  # `_print_version` has printed it
    context.with_resource(logged_to(log))


#: The commands by the heading of their group in the help.
GROUPS: dict[str, Sequence[Callable[..., None]]] = {
    "With records": (release, covariance, ask),
    "Without records": (advise, audit, bracket, budget, check_bound, curve, width),
    "Lists and files": (workloads, mechanisms, ledger, lessons),
}
for heading, commands in GROUPS.items():
    for command in commands:
        app.command(rich_help_panel=heading)(command)
app.add_typer(smooth, name="smooth", rich_help_panel="With records")
app.add_typer(schema, name="schema", rich_help_panel="With records")
