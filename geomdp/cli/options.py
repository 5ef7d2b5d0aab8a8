"""Options that several commands share, as annotated types."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from geomdp.cli.privacy_flags import AdjacencyFlag
from geomdp.privacy import Adjacency


def real(text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise typer.BadParameter(f"must be a number, got {text!r}") from error


def whole_number(text: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise typer.BadParameter(f"must be a whole number, got {text!r}") from error


def check_whole(flag: str, value: int | None, minimum: int) -> None:
    """Raise ``ValueError`` if a flag is given and its whole number is below `minimum`."""
    if value is not None and value < minimum:
        raise ValueError(f"{flag} must be a whole number, at least {minimum}, got {value}")


def check_normaliser(n: int | None, adjacency: Adjacency) -> None:
    """Raise ``ValueError`` if --n is below 1, or is missing although the true number is private."""
    check_whole("--n", n, minimum=1)
    if adjacency is Adjacency.ADD_REMOVE and n is None:
        raise ValueError("--adjacency add-remove needs --n: the true number of records is private")


def _adjacency(text: str) -> AdjacencyFlag:
    try:
        return AdjacencyFlag(text)
    except ValueError as error:
        known = " or ".join(AdjacencyFlag)
        raise typer.BadParameter(f"must be {known}, got {text!r}") from error


#: The value of --mechanism that lets `geomdp.advise` choose the mechanism.
AUTO = "auto"
QUERIES, PRIVACY, RECORDS, RESULT = "Queries", "Privacy", "Records", "Result"

WorkloadOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--workload",
        metavar="SPEC",
        help="The queries, for instance marginals:2; see `geomdp workloads`. Repeat the flag "
        "to ask several kinds of queries.",
        rich_help_panel=QUERIES,
        show_default=False,
    ),
]
TablesOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--tables",
        metavar="A,B,...",
        help="The columns of one table, beside or instead of --workload. Repeat the flag for "
        "several tables.",
        rich_help_panel=QUERIES,
        show_default=False,
    ),
]
WeightOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--weight",
        metavar="W",
        help="One weight for each --workload, then one for each --tables. In the total error, "
        "each error of that workload or table is multiplied by W, so a larger W makes its "
        "answers more accurate.",
        rich_help_panel=QUERIES,
        show_default=False,
    ),
]
ColumnsOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--columns",
        metavar="A,B,...",
        help="Columns that --workload asks about, in this order; by default all discrete columns.",
        rich_help_panel=QUERIES,
    ),
]
EpsilonOption: TypeAlias = Annotated[
    float | None,
    typer.Option("--epsilon", parser=real, metavar="E", help="Pure E-DP.", rich_help_panel=PRIVACY),
]
DeltaOption: TypeAlias = Annotated[
    float | None,
    typer.Option(
        "--delta",
        parser=real,
        metavar="D",
        help="With --epsilon: (E, D)-DP.",
        rich_help_panel=PRIVACY,
    ),
]
RhoOption: TypeAlias = Annotated[
    float | None,
    typer.Option(
        "--rho",
        parser=real,
        metavar="R",
        help="Instead of --epsilon: R-zCDP.",
        rich_help_panel=PRIVACY,
    ),
]
Above10Option: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--epsilon-above-10",
        metavar="",
        help="Allow an epsilon or rho above 10, which protects little.",
        rich_help_panel=PRIVACY,
    ),
]
ExactOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--exact/--allow-heuristic",
        metavar="",
        help="Use exact samplers only, or also Markov chains, which have no privacy guarantee.",
        rich_help_panel=PRIVACY,
    ),
]
AdjacencyOption: TypeAlias = Annotated[
    AdjacencyFlag,
    typer.Option(
        "--adjacency",
        parser=_adjacency,
        metavar="NAME",
        help="Neighbouring tables differ by one record: replaced (replace-one, n is public), or "
        "added or removed (add-remove).",
        rich_help_panel=PRIVACY,
    ),
]
SchemaOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--schema",
        metavar="FILE",
        help="Public description of the columns (JSON).",
        rich_help_panel=RECORDS,
    ),
]
SampleOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--sample",
        metavar="NAME",
        help="A bundled table with its schema: rand or affairs.",
        rich_help_panel=RECORDS,
    ),
]
SeedOption: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--seed",
        parser=whole_number,
        metavar="S",
        help="Make the noise reproducible, and therefore not private.",
        rich_help_panel=RESULT,
    ),
]
DataArgument: TypeAlias = Annotated[
    Path | None,
    typer.Argument(
        metavar="DATA",
        help="Records, one per row, with a header: a .csv, .csv.gz or .parquet file, a folder of "
        "such files, or a quoted pattern.",
        show_default=False,
    ),
]
CountOption: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--n",
        parser=whole_number,
        metavar="N",
        help="Number of records. Under replace-one, the default is to count them. Under "
        "add-remove, give a public number; sums are divided by it.",
        rich_help_panel=RECORDS,
    ),
]
PlannedCountOption: TypeAlias = Annotated[
    int,
    typer.Option(
        "--n", parser=whole_number, metavar="N", help="Number of records.", rich_help_panel=RECORDS
    ),
]
MechanismOption: TypeAlias = Annotated[
    str,
    typer.Option(
        "--mechanism",
        metavar="NAME",
        help="auto takes the mechanism with the least predicted error, without reading records; "
        "see `geomdp mechanisms`.",
        rich_help_panel=PRIVACY,
    ),
]
EffortOption: TypeAlias = Annotated[
    float | None,
    typer.Option(
        "--effort",
        parser=real,
        metavar="SECONDS",
        help="Largest set-up time of one mechanism; with more time, better mechanisms are found. "
        "The time is estimated from the number of operations, so all machines choose the same "
        "mechanism. The default is 2.",
        rich_help_panel=PRIVACY,
        show_default=False,
    ),
]
ForceOption: TypeAlias = Annotated[
    bool,
    typer.Option("--force", metavar="", help="Overwrite existing files.", rich_help_panel=RESULT),
]
LedgerOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--ledger",
        metavar="FILE",
        help="Pay from the privacy budget in this file; see `geomdp ledger`.",
        rich_help_panel=PRIVACY,
    ),
]
BudgetOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--budget",
        metavar="NAME=X,...",
        help="Create the ledger with this total, in one of three forms: 'epsilon=3', "
        "'epsilon=3,delta=1e-6' or 'rho=0.5'.",
        rich_help_panel=PRIVACY,
    ),
]
SqlOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--sql",
        metavar="QUERY",
        help="Instead of DATA: the rows of a SELECT. In DuckDB it can name files: SELECT * FROM "
        "'a/*.parquet'.",
        rich_help_panel=RECORDS,
    ),
]
DatabaseOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--database",
        metavar="WHERE",
        help="Where --sql runs: postgresql://USER@HOST/NAME, or a DuckDB file. USER should have "
        "the right to read and no other right.",
        rich_help_panel=RECORDS,
    ),
]
