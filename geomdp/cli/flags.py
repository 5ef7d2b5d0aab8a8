"""Flags that several commands share, as annotated types, and their meaning."""

from __future__ import annotations

import enum
import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypeVar

import typer
from rich.markup import escape

from geomdp.cli import display
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
    raise ValueError(
        f"give either --epsilon (with or without --delta) or --rho, got {given}; `geomdp budget` "
        "finds the least for the errors that you allow"
    )


Value = TypeVar("Value")


def reader(read: Callable[[str], Value], wanted: str) -> Callable[[str], Value]:
    """The parser of a flag that must be as `wanted` says."""

    def parser(text: str) -> Value:
        try:
            return read(text)
        except ValueError as error:
            raise typer.BadParameter(f"must be {wanted}, got {text!r}") from error

    return parser


real, whole_number = reader(float, "a number"), reader(int, "a whole number")


def check_whole(flag: str, value: int | None, minimum: int) -> None:
    """Raise ``ValueError`` if a flag is given and its whole number is below `minimum`."""
    if value is not None and value < minimum:
        raise ValueError(f"{flag} must be a whole number, at least {minimum}, got {value}")


def check_normaliser(n: int | None, adjacency: Adjacency) -> None:
    """Raise ``ValueError`` if --n is below 1, or is missing although the true number is private."""
    check_whole("--n", n, minimum=1)
    if adjacency is Adjacency.ADD_REMOVE and n is None:
        raise ValueError("--adjacency add-remove needs --n: the true number of records is private")


def check_person(column: str | None, max_rows: int | None) -> None:
    """Raise ``ValueError`` if the column of persons is named without a bound on their rows."""
    if (column is None) != (max_rows is None):
        given = "--max-rows-per-person" if column is None else "--person"
        raise ValueError(f"--person and --max-rows-per-person belong together, got {given} only")


def check_persons(max_rows: int | None, adjacency: Adjacency) -> None:
    """Raise ``ValueError`` if rows of a person are bounded where their number is public."""
    check_whole("--max-rows-per-person", max_rows, minimum=1)
    if max_rows is not None and adjacency is not Adjacency.ADD_REMOVE:
        raise ValueError(
            "--max-rows-per-person needs --adjacency add-remove: a public number of records tells "
            "how many rows a person has"
        )


#: The value of --mechanism that lets `geomdp.advise` choose the mechanism.
AUTO = "auto"


def options(texts: str) -> Callable[..., Any]:
    """The flags and arguments of a help text, each by its usage, such as ``--rho R``, and a parser.

    A line that ends in a colon names the group of the next flags; two blanks divide usage from
    meaning, which goes on in indented lines.
    """
    found: dict[str, tuple[str, str]] = {}
    panel = usage = ""
    for line in texts.strip().splitlines():
        if line.startswith(" "):
            found[usage] = panel, f"{found[usage][1]} {line.strip()}"
        elif line.endswith(":") and "  " not in line:
            panel = line.removesuffix(":")
        else:
            usage, _, meaning = line.partition("  ")
            found[usage] = panel, meaning

    def option(usage: str, parser: Callable[[str], object] | None = None) -> Any:
        (panel, meaning), (names, _, metavar) = found[usage], usage.partition(" ")
        meaning = escape(meaning)  # rich would read brackets as markup
        if not usage.startswith("-"):
            return typer.Argument(metavar=usage, help=meaning, show_default=False)
        shown: Any = {"metavar": metavar, "help": meaning, "rich_help_panel": panel or None}
        return typer.Option(names, parser=parser, **shown)

    return option


_option = options("""
Queries:
--workload SPEC  The queries, for instance marginals:2; see `geomdp workloads`. Repeat the flag to
    ask several kinds of queries.
--tables A,B,...  The columns of one table, beside or instead of --workload. Repeat the flag for
    several tables. Quoted brackets ask a column by 'region,age[prefixes]', 'region,age[ranges]', or
    'region,age[mean]' for its count, total and mean by region.
--weight W  One weight for each --workload, then one for each --tables. In the total error, each
    error of that workload or table is multiplied by W, so a larger W makes its answers more
    accurate.
--columns A,B,...  Columns that --workload asks about, in this order; by default all discrete
    columns.
Privacy:
--epsilon E  Pure E-DP.
--delta D  With --epsilon: (E, D)-DP.
--rho R  Instead of --epsilon: R-zCDP.
--epsilon-above-10  Allow an epsilon or rho above 10, which protects little.
--exact/--allow-heuristic  Use exact samplers only, or also Markov chains, which have no privacy
    guarantee.
--adjacency NAME  Neighbouring tables differ by one record: replaced (replace-one, n is public), or
    added or removed (add-remove).
--max-rows-per-person K  Protect a person with any number of rows, of which at most K are counted,
    not a row. Needs --adjacency add-remove.
--mechanism NAME  auto takes the mechanism with the least predicted error, without reading records;
    see `geomdp mechanisms`.
--effort SECONDS  Largest set-up time of one mechanism; with more time, better mechanisms are found.
    The time is estimated from the number of operations, so all machines choose the same mechanism.
    The default is 2.
--ledger FILE  Pay from the privacy budget in this file; see `geomdp ledger`.
--budget NAME=X,...  Create the ledger with this total, in one of three forms: 'epsilon=3',
    'epsilon=3,delta=1e-6' or 'rho=0.5'.
Records:
--schema FILE  Public description of the columns (JSON).
--sample NAME  A bundled table with its schema: rand or affairs.
--n N  Number of records. Under replace-one, the default is to count them. Under add-remove, give a
    public number; sums are divided by it.
--sql QUERY  Instead of DATA: the rows of a SELECT. In DuckDB it can name files: SELECT * FROM
    'a/*.parquet'.
--database WHERE  Where --sql runs: postgresql://USER@HOST/NAME, or a DuckDB file. USER should have
    the right to read and no other right.
Result:
--seed S  Make the noise reproducible, and therefore not private.
--force  Overwrite existing files.
Arguments:
DATA  Records, one per row, with a header: a .csv, .csv.gz or .parquet file, a folder of such files,
    or a quoted pattern.
""")
Workload: TypeAlias = Annotated[list[str] | None, _option("--workload SPEC")]
Tables: TypeAlias = Annotated[list[str] | None, _option("--tables A,B,...")]
Weight: TypeAlias = Annotated[list[str] | None, _option("--weight W")]
Columns: TypeAlias = Annotated[str | None, _option("--columns A,B,...")]
Epsilon: TypeAlias = Annotated[float | None, _option("--epsilon E", real)]
Delta: TypeAlias = Annotated[float | None, _option("--delta D", real)]
Rho: TypeAlias = Annotated[float | None, _option("--rho R", real)]
Above10: TypeAlias = Annotated[bool, _option("--epsilon-above-10")]
ExactOnly: TypeAlias = Annotated[bool, _option("--exact/--allow-heuristic")]
Neighbours: TypeAlias = Annotated[
    AdjacencyFlag, _option("--adjacency NAME", reader(AdjacencyFlag, " or ".join(AdjacencyFlag)))
]
MaxRows: TypeAlias = Annotated[int | None, _option("--max-rows-per-person K", whole_number)]
Mechanism: TypeAlias = Annotated[str, _option("--mechanism NAME")]
Effort: TypeAlias = Annotated[float | None, _option("--effort SECONDS", real)]
LedgerFile: TypeAlias = Annotated[Path | None, _option("--ledger FILE")]
Budget: TypeAlias = Annotated[str | None, _option("--budget NAME=X,...")]
SchemaFile: TypeAlias = Annotated[Path | None, _option("--schema FILE")]
Sample: TypeAlias = Annotated[str | None, _option("--sample NAME")]
Count: TypeAlias = Annotated[int | None, _option("--n N", whole_number)]
Sql: TypeAlias = Annotated[str | None, _option("--sql QUERY")]
Database: TypeAlias = Annotated[str | None, _option("--database WHERE")]
Seed: TypeAlias = Annotated[int | None, _option("--seed S", whole_number)]
Force: TypeAlias = Annotated[bool, _option("--force")]
Data: TypeAlias = Annotated[Path | None, _option("DATA")]


# The queries that --workload, --tables, --weight and --columns describe together


@dataclass(frozen=True)
class Question:
    """Queries as written on the command line; weights of `workloads`, then of `tables`."""

    workloads: tuple[str, ...]
    tables: tuple[tuple[str, ...], ...] = ()
    weights: tuple[float, ...] | None = None
    columns: tuple[str, ...] | None = None

    def __str__(self) -> str:
        tables = [f"--tables {','.join(table)}" for table in self.tables]
        return " ".join([*(f"--workload {spec}" for spec in self.workloads), *tables])

    @property
    def spec(self) -> str:
        return "; ".join([*self.workloads, *map(",".join, self.tables)])

    @property
    def asked(self) -> list[Asked]:
        return [*self.workloads, *self.tables]

    def task(self, schema: Schema) -> Task:
        """The workload for the columns of `schema`. Errors name the flags."""
        from geomdp.tabulation.tasks import task_of  # slow import

        try:
            task = task_of(schema, self.asked, columns=self.columns, weights=self.weights)
        except ValueError as error:
            flag = "--" if self.columns is not None and str(error).startswith("columns ") else ""
            raise ValueError(f"{self}: {flag}{error}") from error
        for said in filter(None, (task.disordered, task.undeclared)):
            display.warn(said)
            warnings.filterwarnings("ignore", re.escape(said[:20]), UserWarning)
        return task


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
