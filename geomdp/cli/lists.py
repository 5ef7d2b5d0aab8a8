"""The commands `mechanisms`, `workloads`, and `schema`, which drafts and confirms schema files."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer
from typer.core import TyperGroup

import geomdp as gd
from geomdp._numerics.files import write_together
from geomdp.cli import display, flags
from geomdp.cli.flags import AUTO, options
from geomdp.cli.outputs import check_free, check_place

if TYPE_CHECKING:
    from geomdp.data.columns import Column
    from geomdp.data.inference import InferredSchema


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
Arguments:
DATA  Records with a header: a .csv, .csv.gz or .parquet file, a folder of such files, or a quoted
    pattern.
FILE.json  A schema file.
[COLUMN]...  The columns; by default all drafted ones.
Result:
--out FILE.json  File for the draft; by default the draft is printed.
""")

LookOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--look/--no-look",
        metavar="",
        help="Read the values, and propose a kind, categories and bin edges for each column, which "
        "is NOT private; or read the names of the columns alone.",
    ),
]


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
    look: LookOption = True,
    out: Annotated[Path | None, _option("--out FILE.json")] = None,
    force: flags.Force = False,
) -> None:
    """Draft a schema for the records in DATA, and print what was decided about each column."""
    if out is not None:
        check_place(out, ".json")
        check_free([out], force, inputs=(data,))
    if not look:
        text = _names_only(data)
    else:
        inferred = gd.data.infer_schema(data)
        text = inferred.schema.to_json() + "\n"
        _show(inferred, out)
    if out is None:
        print(text, end="")
        return
    write_together({out: text.encode()})
    rows = [("schema", str(out))]
    if not look:
        rows.append(("to do", "declare the kinds of columns: all are skipped until then"))
    display.print_rows(rows)


def _show(inferred: InferredSchema, out: Path | None) -> None:
    """Print what was decided about each column, on standard error if the draft is printed."""
    rows = [(d.name, d.kind, d.drafted, d.to_state) for d in inferred.decisions]
    if out is not None:
        display.print_table(["column", "kind", "read from the records", "to state"], rows)
    display.warn(
        "the draft depends on the records, so a release with it has no privacy claim. If you know "
        "what it says without the records, or have edited it so, state it with "
        f"`geomdp schema confirm {out or 'FILE'}`"
    )


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


def _names_only(data: Path) -> str:
    """The text of a schema file in which all columns are skipped. Reads no record."""
    from geomdp.data.files import column_names, csv_format
    from geomdp.data.schema import document_text

    csv = csv_format(data)
    skipped = [gd.data.SkippedColumn(name, TO_DECLARE) for name in column_names(data, csv)]
    return document_text(skipped, csv) + "\n"
