"""The command `geomdp`. Only options and help are defined at import, so that --help is quick."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from geomdp import __version__
from geomdp.cli.ask import ask
from geomdp.cli.audit import audit
from geomdp.cli.display import logged_to
from geomdp.cli.lessons import lessons
from geomdp.cli.lists import mechanisms, schema, workloads
from geomdp.cli.outputs import ledger
from geomdp.cli.plans import advise, bracket, check_bound, curve, width
from geomdp.cli.release import release
from geomdp.cli.smooth import app as smooth

app = typer.Typer(
    help="Private answers to a fixed set of queries about a table of records.",
    epilog="First: geomdp schema DATA --out schema.json, then edit that file. To try a release at "
    "once: geomdp release --sample rand --workload marginals:2 --epsilon 1 --out tables.csv",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _print_version(asked: bool) -> None:
    if asked:
        print(f"geomdp {__version__}")
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
app.command(rich_help_panel=RECORDS)(ask)
app.add_typer(smooth, name="smooth", rich_help_panel=RECORDS)
app.add_typer(schema, name="schema", rich_help_panel=RECORDS)
app.command(rich_help_panel=PLANS)(advise)
app.command(rich_help_panel=PLANS)(audit)
app.command(rich_help_panel=PLANS)(bracket)
app.command(rich_help_panel=PLANS)(check_bound)
app.command(rich_help_panel=PLANS)(curve)
app.command(rich_help_panel=PLANS)(width)
app.command(rich_help_panel=LISTS)(workloads)
app.command(rich_help_panel=LISTS)(mechanisms)
app.command(rich_help_panel=LISTS)(ledger)
app.command(rich_help_panel=LISTS)(lessons)
