"""The queries that --workload, --tables, --weight and --columns describe together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from geomdp.data import Schema
    from geomdp.tabulation.mixtures import Asked
    from geomdp.tabulation.tasks import Task


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
        from geomdp.tabulation.mixtures import task_of  # slow import

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
