"""Flags that several commands share, as annotated types, and their meaning."""

from __future__ import annotations

import enum
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from geomdp.privacy import ZCDP, Adjacency, ApproxDP, Privacy, PureDP
from geomdp.privacy.definitions import LARGEST_LOSS, LEAST_LOSS, weakness

if TYPE_CHECKING:
    from geomdp.data import Schema
    from geomdp.tabulation.tasks import Asked, Task


# The privacy flags: --epsilon alone, --epsilon with --delta, or --rho; and --adjacency


class AdjacencyFlag(enum.StrEnum):
    """Values of --adjacency."""

    REPLACE_ONE = "replace-one"
    ADD_REMOVE = "add-remove"

    def relation(self) -> Adjacency:
        return Adjacency[self.name]


def parse_released(
    epsilon: float | None, delta: float | None, rho: float | None, above_10: bool
) -> Privacy:
    """The privacy of a release; above 10, epsilon or rho needs the flag --epsilon-above-10."""
    privacy = parse_privacy(epsilon, delta, rho)
    meaning = weakness(privacy)
    if meaning and not above_10:
        raise ValueError(f"--{meaning}; to release with it, add --epsilon-above-10")
    # By the flag, the user has admitted what the library would warn of.
    warnings.filterwarnings("ignore", ".* protects little", UserWarning)
    return privacy


def parse_privacy(epsilon: float | None, delta: float | None, rho: float | None) -> Privacy:
    """The privacy definition that the flags state; ``ValueError`` names a wrong or missing flag."""
    if rho is not None and delta is not None:
        raise ValueError(f"--delta needs --epsilon and excludes --rho, got {delta!r}")
    for flag, value in (("--epsilon", epsilon), ("--rho", rho)):
        if value is not None and not LEAST_LOSS <= value <= LARGEST_LOSS:
            limits = f"from {LEAST_LOSS:g} to {LARGEST_LOSS:g}"
            raise ValueError(f"{flag} must be {limits}, got {value!r}")
    try:
        match epsilon, rho:
            case float(), None:
                return PureDP(epsilon) if delta is None else ApproxDP(epsilon, delta)
            case None, float():
                return ZCDP(rho)
    except ValueError as error:
        # The message begins with the name of a parameter. The flag has the same name.
        raise ValueError(f"--{error}") from error
    given = "neither" if rho is None else "both"
    raise ValueError(f"give either --epsilon (with or without --delta) or --rho, got {given}")


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
#: Headings of the groups of flags in the help of a command.
QUERIES, PRIVACY, RECORDS, RESULT = "Queries", "Privacy", "Records", "Result"


def option(usage: str, panel: str, text: str, parser: Callable[[str], object] | None = None) -> Any:
    """The flag that `usage` shows, such as ``--rho R``, in the group `panel` of the help."""
    names, _, metavar = usage.partition(" ")
    return typer.Option(names, metavar=metavar, help=text, rich_help_panel=panel, parser=parser)


Workload: TypeAlias = Annotated[
    list[str] | None,
    option(
        "--workload SPEC",
        QUERIES,
        "The queries, for instance marginals:2; see `geomdp workloads`. Repeat the flag to ask "
        "several kinds of queries.",
    ),
]
Tables: TypeAlias = Annotated[
    list[str] | None,
    option(
        "--tables A,B,...",
        QUERIES,
        "The columns of one table, beside or instead of --workload. Repeat the flag for several "
        "tables.",
    ),
]
Weight: TypeAlias = Annotated[
    list[str] | None,
    option(
        "--weight W",
        QUERIES,
        "One weight for each --workload, then one for each --tables. In the total error, each "
        "error of that workload or table is multiplied by W, so a larger W makes its answers more "
        "accurate.",
    ),
]
Columns: TypeAlias = Annotated[
    str | None,
    option(
        "--columns A,B,...",
        QUERIES,
        "Columns that --workload asks about, in this order; by default all discrete columns.",
    ),
]
Epsilon: TypeAlias = Annotated[float | None, option("--epsilon E", PRIVACY, "Pure E-DP.", real)]
Delta: TypeAlias = Annotated[
    float | None, option("--delta D", PRIVACY, "With --epsilon: (E, D)-DP.", real)
]
Rho: TypeAlias = Annotated[
    float | None, option("--rho R", PRIVACY, "Instead of --epsilon: R-zCDP.", real)
]
Above10: TypeAlias = Annotated[
    bool,
    option(
        "--epsilon-above-10", PRIVACY, "Allow an epsilon or rho above 10, which protects little."
    ),
]
ExactOnly: TypeAlias = Annotated[
    bool,
    option(
        "--exact/--allow-heuristic",
        PRIVACY,
        "Use exact samplers only, or also Markov chains, which have no privacy guarantee.",
    ),
]
Neighbours: TypeAlias = Annotated[
    AdjacencyFlag,
    option(
        "--adjacency NAME",
        PRIVACY,
        "Neighbouring tables differ by one record: replaced (replace-one, n is public), or added "
        "or removed (add-remove).",
        _adjacency,
    ),
]
SchemaFile: TypeAlias = Annotated[
    Path | None, option("--schema FILE", RECORDS, "Public description of the columns (JSON).")
]
Sample: TypeAlias = Annotated[
    str | None,
    option("--sample NAME", RECORDS, "A bundled table with its schema: rand or affairs."),
]
Seed: TypeAlias = Annotated[
    int | None,
    option(
        "--seed S", RESULT, "Make the noise reproducible, and therefore not private.", whole_number
    ),
]
Data: TypeAlias = Annotated[
    Path | None,
    typer.Argument(
        metavar="DATA",
        help="Records, one per row, with a header: a .csv, .csv.gz or .parquet file, a folder of "
        "such files, or a quoted pattern.",
        show_default=False,
    ),
]
Count: TypeAlias = Annotated[
    int | None,
    option(
        "--n N",
        RECORDS,
        "Number of records. Under replace-one, the default is to count them. Under add-remove, "
        "give a public number; sums are divided by it.",
        whole_number,
    ),
]
Mechanism: TypeAlias = Annotated[
    str,
    option(
        "--mechanism NAME",
        PRIVACY,
        "auto takes the mechanism with the least predicted error, without reading records; see "
        "`geomdp mechanisms`.",
    ),
]
Effort: TypeAlias = Annotated[
    float | None,
    option(
        "--effort SECONDS",
        PRIVACY,
        "Largest set-up time of one mechanism; with more time, better mechanisms are found. The "
        "time is estimated from the number of operations, so all machines choose the same "
        "mechanism. The default is 2.",
        real,
    ),
]
Force: TypeAlias = Annotated[bool, option("--force", RESULT, "Overwrite existing files.")]
LedgerFile: TypeAlias = Annotated[
    Path | None,
    option(
        "--ledger FILE", PRIVACY, "Pay from the privacy budget in this file; see `geomdp ledger`."
    ),
]
Budget: TypeAlias = Annotated[
    str | None,
    option(
        "--budget NAME=X,...",
        PRIVACY,
        "Create the ledger with this total, in one of three forms: 'epsilon=3', "
        "'epsilon=3,delta=1e-6' or 'rho=0.5'.",
    ),
]
Sql: TypeAlias = Annotated[
    str | None,
    option(
        "--sql QUERY",
        RECORDS,
        "Instead of DATA: the rows of a SELECT. In DuckDB it can name files: SELECT * FROM "
        "'a/*.parquet'.",
    ),
]
Database: TypeAlias = Annotated[
    str | None,
    option(
        "--database WHERE",
        RECORDS,
        "Where --sql runs: postgresql://USER@HOST/NAME, or a DuckDB file. USER should have the "
        "right to read and no other right.",
    ),
]


# The queries that --workload, --tables, --weight and --columns describe together


@dataclass(frozen=True)
class Question:
    """Queries as written on the command line; None means weights of 1 and all columns of a kind.

    `weights` are first those of `workloads`, and then those of `tables`.
    """

    workloads: tuple[str, ...]
    tables: tuple[tuple[str, ...], ...] = ()
    weights: tuple[float, ...] | None = None
    columns: tuple[str, ...] | None = None

    def __str__(self) -> str:
        tables = [f"--tables {','.join(table)}" for table in self.tables]
        return " ".join([*(f"--workload {spec}" for spec in self.workloads), *tables])

    @property
    def spec(self) -> str:
        return "; ".join([*self.workloads, *(",".join(table) for table in self.tables)])

    @property
    def asked(self) -> list[Asked]:
        return [*self.workloads, *self.tables]

    def task(self, schema: Schema) -> Task:
        """The workload for the columns of `schema`. Errors name the flags."""
        from geomdp.tabulation.tasks import task_of  # slow import

        try:
            return task_of(schema, self.asked, columns=self.columns, weights=self.weights)
        except ValueError as error:
            raise ValueError(f"{self}: {error}") from error


def parse_question(
    workloads: Sequence[str] | None,
    tables: Sequence[str] | None,
    weights: Sequence[str] | None,
    columns: str | None,
) -> Question:
    """The queries that the flags describe; ``ValueError`` names a wrong or missing flag."""
    specs, crossed = tuple(workloads or ()), tuple(map(split_columns, tables or ()))
    if not specs and not crossed:
        raise ValueError("give --workload, for instance --workload marginals:2, or --tables A,B")
    numbers = tuple(map(_weight, weights or ()))
    if numbers and len(numbers) != len(specs) + len(crossed):
        raise ValueError(
            f"--weight must be given once for each of the {len(specs)} --workload and "
            f"{len(crossed)} --tables, got {len(numbers)} times"
        )
    chosen = None if columns is None else split_columns(columns)
    return Question(specs, crossed, numbers or None, chosen)


def split_columns(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(","))


def _weight(text: str) -> float:
    try:
        number = float(text)
    except ValueError as error:
        raise ValueError(f"--weight must be a number, got {text!r}") from error
    if not 0 < number < float("inf"):
        raise ValueError(f"--weight must be a finite number above 0, got {text!r}")
    return number
