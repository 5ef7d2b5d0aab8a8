"""The command `ledger`: list the spends of a privacy budget and the rest of the budget."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from geomdp.cli import display

LedgerArgument = Annotated[
    Path, typer.Argument(metavar="FILE", help="A file that --ledger created.", show_default=False)
]


def ledger(file: LedgerArgument) -> None:
    """List what the privacy budget in FILE was spent on, after verifying every entry."""
    from geomdp.cli.ledger_flags import remaining
    from geomdp.privacy import Ledger

    if not file.exists():
        raise ValueError(f"{file}: no such ledger; --ledger with --budget creates one")
    with Ledger.existing(file) as opened:
        spends = opened.spends()
        display.print_rows(
            [
                ("budget", f"{opened.budget}, {opened.adjacency.value}"),
                ("unspent", f"{remaining(opened)} left"),
                ("spends", str(len(spends))),
            ]
        )
    if spends:
        print()
        display.print_table(
            ["no.", "when (UTC)", "cost", "mechanism"],
            [
                (str(number), spend.time[:19].replace("T", " "), str(spend.privacy), spend.label)
                for number, spend in enumerate(spends, start=1)
            ],
        )
