"""The command `schema`: draft a schema file, by default from the names of the columns alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from geomdp._numerics.written_files import write_together
from geomdp.cli import display
from geomdp.cli.options import RESULT, ForceOption
from geomdp.cli.output_files import check_free, check_place

#: The kind of every column in a draft without --look. The user replaces this text by one of the
#: four kinds.
TO_DECLARE = "categorical, boolean, numeric or real"
LOOKED = (
    "categories and bin edges were read from the records, which is not private: replace them by "
    "values that are known without the records"
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


def schema(
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
        display.warn(LOOKED)
        text = infer_schema(data).schema.to_json() + "\n"
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


def _draft(data: Path) -> str:
    """The text of a schema file in which the kinds are still to be declared. Reads no record."""
    from geomdp.data import column_names
    from geomdp.data.schema import FORMAT, VERSION

    columns = [{"name": name, "kind": TO_DECLARE} for name in column_names(data)]
    document = {"format": FORMAT, "version": VERSION, "columns": columns}
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"
