"""The command `geomdp`, with its lists and the commands about schema files.

Only options and help are defined at import, so that --help is quick.
"""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

import geomdp as gd
from geomdp._numerics.files import write_together
from geomdp.cli import display, flags
from geomdp.cli.ask import ask
from geomdp.cli.audit import audit
from geomdp.cli.budget import budget
from geomdp.cli.covariance import covariance
from geomdp.cli.display import logged_to
from geomdp.cli.flags import AUTO, options
from geomdp.cli.lessons import lessons
from geomdp.cli.outputs import check_output, ledger
from geomdp.cli.plans import advise, bracket, check_bound, curve, width
from geomdp.cli.release import release
from geomdp.cli.smooth import app as smooth

if TYPE_CHECKING:
    from geomdp.data.columns import Column


def mechanisms() -> None:
    """List the mechanisms."""
    from geomdp.advice.candidates import CANDIDATES, FITTED, PROJECTED, SHRUNK

    rows = [(row.flag, row.guarantees.value, row.summary) for row in CANDIDATES]
    display.print_table(["--mechanism", "with", "what it is"], rows)
    print()
    print("Answers are attainable if they are the exact answers of some table.")
    print(f"{PROJECTED.prefix}NAME moves the answers of NAME to the nearest attainable ones;")
    print("for a table of n records this move never makes the error larger.")
    print(
        f"{FITTED.prefix}NAME takes the attainable answers that fit the noisy answers of NAME best;"
    )
    print(
        f"the error is usually smaller than for {PROJECTED.prefix}NAME, but its proved bound is "
        "twice as large."
    )
    print(
        f"{SHRUNK.prefix}NAME moves answers towards those of uniform data before it moves them to"
    )
    print("attainable ones; this helps if there are few records.")
    print(f"{AUTO} compares them without reading records; see `geomdp advise`. For few records, it")
    print(f"takes {FITTED.prefix}NAME if this errs less in simulations on public data.")


def workloads() -> None:
    """List the workload specifications."""
    from geomdp.tabulation.tasks import WORKLOAD_KINDS

    rows = [(kind.usage, kind.summary) for kind in WORKLOAD_KINDS]
    display.print_table(["--workload", "queries; every answer is a mean over records"], rows)


# schema

#: Why every column is skipped in a draft without --look.
TO_DECLARE = "declare its kind: categorical, boolean, numeric, date or real"

_option = options("""
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
        decided = [(d.name, d.kind, d.drafted, d.to_state) for d in inferred.decisions]
        if out is not None:
            display.print_table(["column", "kind", "read from the records", "to state"], decided)
        display.warn(
            "the draft depends on the records, so a release with it has no privacy claim. If you "
            "know what it says without the records, or have edited it so, state it with "
            f"`geomdp schema confirm {out or 'FILE'}`"
        )
    else:
        from geomdp.data.files import column_names, csv_format
        from geomdp.data.schema import document_text

        csv = csv_format(data)
        names = column_names(data, csv)
        skipped = [gd.data.SkippedColumn(name, TO_DECLARE) for name in names]
        text = document_text(skipped, csv) + "\n"
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
    stated = [column for column in confirmed.columns if column.confirmed]
    rows = [(column.name, _stated(column)) for column in stated]
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


@app.callback()
def geomdp(
    context: typer.Context,
    *,
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            metavar="",
            callback=_print_version,
            is_eager=True,
            help="Print the version.",
        ),
    ] = False,
    log: Annotated[
        Path | None,
        typer.Option(
            "--log", metavar="FILE", help="Append the steps of the command, with times, to FILE."
        ),
    ] = None,
) -> None:
    """Private answers to a fixed set of queries about a table of records."""
    del version  # `_print_version` has printed it
    context.with_resource(logged_to(log))


#: Headings of the groups of commands in the help, in order.
RECORDS, PLANS, LISTS = "With records", "Without records", "Lists and files"

app.command(rich_help_panel=RECORDS)(release)
app.command(rich_help_panel=RECORDS)(covariance)
app.command(rich_help_panel=RECORDS)(ask)
app.add_typer(smooth, name="smooth", rich_help_panel=RECORDS)
app.add_typer(schema, name="schema", rich_help_panel=RECORDS)
app.command(rich_help_panel=PLANS)(advise)
app.command(rich_help_panel=PLANS)(audit)
app.command(rich_help_panel=PLANS)(bracket)
app.command(rich_help_panel=PLANS)(budget)
app.command(rich_help_panel=PLANS)(check_bound)
app.command(rich_help_panel=PLANS)(curve)
app.command(rich_help_panel=PLANS)(width)
app.command(rich_help_panel=LISTS)(workloads)
app.command(rich_help_panel=LISTS)(mechanisms)
app.command(rich_help_panel=LISTS)(ledger)
app.command(rich_help_panel=LISTS)(lessons)
