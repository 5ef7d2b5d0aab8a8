"""The command `schema`: draft a schema file, and confirm that what was drafted is public.

`geomdp schema DATA` is short for `geomdp schema draft DATA`.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer
from typer.core import TyperGroup

from geomdp._numerics.written_files import write_together
from geomdp.cli import display
from geomdp.cli.options import RESULT, ForceOption
from geomdp.cli.output_files import check_free, check_place

#: The kind of every column in a draft without --look. The user replaces this text by one of the
#: four kinds.
TO_DECLARE = "categorical, boolean, numeric or real"
CONFIRM = (
    "a release with drafted columns has no privacy claim: replace their categories and edges by "
    "values that are known without the records, and state it with `geomdp schema confirm FILE`"
)

RecordsArgument: TypeAlias = Annotated[
    Path,
    typer.Argument(
        metavar="DATA",
        help="Records with a header: a .csv, .csv.gz or .parquet file, a folder of such files, or "
        "a quoted pattern.",
        show_default=False,
    ),
]
LookOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--look",
        metavar="",
        help="Also read the values, and propose categories and bin edges. This is NOT private.",
    ),
]
DraftOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--out",
        metavar="FILE.json",
        help="File for the draft; by default the draft is printed.",
        rich_help_panel=RESULT,
    ),
]


SchemaArgument: TypeAlias = Annotated[
    Path, typer.Argument(metavar="FILE.json", help="A schema file.", show_default=False)
]
ConfirmedArgument: TypeAlias = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[COLUMN]...", help="The columns; by default all drafted ones.", show_default=False
    ),
]


class _DraftByDefault(TyperGroup):
    """The group of the commands about schemas. Without the name of a command, it runs `draft`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        named = not args or args[0] in {*self.commands, "--help"}
        return super().parse_args(ctx, args if named else ["draft", *args])


app = typer.Typer(
    cls=_DraftByDefault,
    help="Draft a schema for records; `geomdp schema DATA` is short for `schema draft DATA`.",
    no_args_is_help=True,
)


@app.command()
def draft(
    data: RecordsArgument,
    *,
    look: LookOption = False,
    out: DraftOption = None,
    force: ForceOption = False,
) -> None:
    """Draft a schema for the records in DATA; without --look, only column names are read."""
    from geomdp.data import infer_schema

    if out is not None:
        check_place(out, ".json")
        check_free([out], force, inputs=(data,))
    if look:
        drafted = infer_schema(data).schema
        display.warn(f"{drafted.caveat}; {CONFIRM}")
        text = drafted.to_json() + "\n"
    else:
        text = _draft(data)
    if out is None:
        print(text, end="")
        return
    write_together({out: text.encode()})
    rows = [("schema", str(out))]
    if not look:
        rows.append(("to do", f"edit the file: declare each column as {TO_DECLARE}"))
    display.print_rows(rows)


@app.command()
def confirm(file: SchemaArgument, columns: ConfirmedArgument = None) -> None:
    """State that drafted columns in FILE are known without the records; FILE records it."""
    from geomdp.cli.inputs import read_schema

    schema = read_schema(file, str(file))
    confirmed = schema.confirm(*(columns or ()))
    if confirmed != schema:
        write_together({file: (confirmed.to_json() + "\n").encode()})
    names = ", ".join(column.name for column in confirmed.columns if column.confirmed)
    rows = [("confirmed", names or "no column"), ("no claim", confirmed.caveat or "for no column")]
    display.print_rows(rows)


@app.command()
def editor() -> None:
    """Print the JSON Schema of schema files, from which an editor completes and checks them."""
    print(files("geomdp.data").joinpath("schema.schema.json").read_text(encoding="utf-8"), end="")


def _draft(data: Path) -> str:
    """The text of a schema file in which the kinds are still to be declared. Reads no record."""
    from geomdp.data import column_names
    from geomdp.data.columns import check_name
    from geomdp.data.schema import document_text

    names = column_names(data)
    for name in names:
        check_name(name)
    return document_text({name: {"kind": TO_DECLARE} for name in names}) + "\n"
