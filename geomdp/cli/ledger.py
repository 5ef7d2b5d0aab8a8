"""A privacy budget in a file: the command `ledger`, and the flags --ledger and --budget.

`ledger` lists the spends and the rest of the budget. The flags create or continue it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from geomdp.cli import display
from geomdp.cli.flags import parse_privacy
from geomdp.privacy import Adjacency, Guarantee, Ledger, Privacy
from geomdp.privacy.definitions import printed, printed_down
from geomdp.privacy.ledger import ROUNDING

LedgerArgument = Annotated[
    Path, typer.Argument(metavar="FILE", help="A file that --ledger created.", show_default=False)
]


def ledger(file: LedgerArgument) -> None:
    """List what the privacy budget in FILE was spent on, after verifying every entry."""
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


# The flags --ledger and --budget

#: Names of the parameters that --budget accepts.
NAMES = ("epsilon", "delta", "rho")


def open_ledger(path: Path, budget: str | None, adjacency: Adjacency) -> Ledger:
    """The ledger in the file of --ledger, which --budget creates; ``ValueError`` if they differ."""
    total = None if budget is None else parse_budget(budget)
    if total is not None:
        return Ledger(total, adjacency=adjacency, path=path)
    if not path.exists():
        raise ValueError(
            f"--ledger {path} does not exist: give --budget, for instance --budget epsilon=3, to "
            "create it"
        )
    ledger = Ledger.existing(path)
    if ledger.adjacency is not adjacency:
        ledger.close()
        raise ValueError(
            f"--ledger {path} is for {ledger.adjacency.value}, not for {adjacency.value}"
        )
    return ledger


def parse_budget(text: str) -> Privacy:
    """The budget of a text such as ``epsilon=3,delta=1e-6`` or ``rho=0.5``, or ``ValueError``."""
    given: dict[str, float] = {}
    for part in text.split(","):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        try:
            number = float(value)
        except ValueError:
            number = None
        if not equals or name not in NAMES or name in given or number is None:
            raise ValueError(
                f"--budget must be 'epsilon=X', 'epsilon=X,delta=Y' or 'rho=X' with numbers, got "
                f"{text!r}"
            )
        given[name] = number
    try:
        return parse_privacy(given.get("epsilon"), given.get("delta"), given.get("rho"))
    except ValueError as error:
        raise ValueError(f"--budget {text}: {error}") from error


@dataclass(frozen=True)
class Payment:
    """The flags --ledger and --budget: the privacy budget that a release is charged to, if any."""

    path: Path | None
    budget: str | None

    def check(self, *, provable: bool) -> None:
        """Raise ``ValueError`` if the flags are wrong, or the release has no `provable` cost."""
        if self.path is None and self.budget is not None:
            raise ValueError(f"--budget needs --ledger, got --budget {self.budget} alone")
        if self.budget is not None:
            parse_budget(self.budget)
        if self.path is not None and not provable:
            raise ValueError(
                "--ledger excludes --seed, --infer-schema and --allow-heuristic, because a release "
                "with one of them has no proved cost"
            )

    @contextmanager
    def opened(self, adjacency: Adjacency) -> Iterator[Ledger | None]:
        """Yield the ledger, open within the context; None without --ledger."""
        if self.path is None:
            yield None
            return
        with open_ledger(self.path, self.budget, adjacency) as ledger:
            yield ledger

    def charged(self, guarantee: Guarantee) -> str:
        """Words that say what a release with this guarantee has cost, after it was paid."""
        return f"{guarantee.privacy} was charged to {self.path or 'no ledger'}"


def left_in(ledger: Ledger | None) -> list[tuple[str, str]]:
    """A row of output with the rest of the budget; no row if there is no ledger."""
    return [] if ledger is None else [("budget", f"{remaining(ledger)} left ({ledger.path})")]


def remaining(ledger: Ledger) -> str:
    """The rest of the budget, as text such as ``epsilon 0.5 of 3``. A spend of it is granted."""
    # With this allowance, 0.1 of a budget of 0.5 is left after a spend of 0.4.
    left = {name: rest * (1 + ROUNDING) for name, rest in ledger.left().items()}
    limits = ledger.budget.parameters()
    return ", ".join(
        f"{name} {printed_down(left[name])} of {printed(limit)}" for name, limit in limits.items()
    )
