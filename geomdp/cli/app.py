"""The command `geomdp`: its commands, each in a module of its own.

These modules hold options and help only. What a command works with is imported when it runs, so
that help and version come at once.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from geomdp import __version__
from geomdp.cli.asking.command import ask
from geomdp.cli.cache import cache
from geomdp.cli.ledger import ledger
from geomdp.cli.planning.advise import advise
from geomdp.cli.planning.audit import audit
from geomdp.cli.planning.bracket import bracket
from geomdp.cli.planning.check_bound import check_bound
from geomdp.cli.planning.curve import curve
from geomdp.cli.planning.lists import mechanisms, workloads
from geomdp.cli.planning.width import width
from geomdp.cli.progress import logged_to
from geomdp.cli.releasing.command import release
from geomdp.cli.schema import schema
from geomdp.cli.smooth_queries.commands import app as smooth

app = typer.Typer(
    help="Private answers to a fixed set of queries about a table of records.",
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
            "--version", callback=_print_version, is_eager=True, help="Print the version."
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
    del version  # its callback has printed it
    context.with_resource(logged_to(log))


app.command()(release)
app.command()(advise)
app.command()(ask)
app.command()(bracket)
app.command()(curve)
app.command()(check_bound)
app.command()(audit)
app.add_typer(smooth, name="smooth")
app.command()(ledger)
app.command()(schema)
app.command()(width)
app.command()(mechanisms)
app.command()(workloads)
app.command()(cache)
