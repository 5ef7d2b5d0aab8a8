"""A task: a workload to release, with names for its columns, queries and tables."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from geomdp._typing import FloatArray
from geomdp.data.schema import Schema
from geomdp.workloads.base import Workload

#: The chosen columns in order, each with the labels of its codes 0, 1, ....
ColumnLabels = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class Table:
    """A table. Each cell is a query, and the cells are in row-major order.

    Parameters
    ----------
    columns : tuple of str
        The columns of the table.
    levels : tuple of tuple of str
        The labels of the levels of each of these columns.

    Examples
    --------
    >>> import geomdp as gd
    >>> table = gd.tabulation.Table(("sex", "smokes"), (("female", "male"), ("no", "yes")))
    >>> table.n_cells
    4
    """

    columns: tuple[str, ...]
    levels: tuple[tuple[str, ...], ...]

    @property
    def n_cells(self) -> int:
        """Number of cells."""
        return math.prod(map(len, self.levels))


@dataclass(frozen=True)
class Task:
    """A workload to release, with names for its columns, queries and tables.

    Parameters
    ----------
    workload : Workload
        The queries.
    columns : tuple of str
        The names of the columns that the workload is about, in order.
    description : str
        The queries in words.
    labels : list of str
        One label for each query, in order.
    tables : tuple of Table
        The tables in order, if the queries are the cells of tables; otherwise empty.
    weights : (m,) array, optional
        The factor of each query in the workload; by default 1.
    schema : Schema, optional
        The declaration of `columns`. By default the task knows no more than their labels.

    Examples
    --------
    >>> import geomdp as gd
    >>> columns = {"sex": ["female", "male"], "smokes": ["no", "yes"]}
    >>> task = gd.tabulation.parse_workload("marginals:1", columns)
    >>> task.row
    ('queries', '4: 2 1-way tables of 2 columns')
    >>> task.labels
    ['sex=female', 'sex=male', 'smokes=no', 'smokes=yes']
    """

    workload: Workload
    columns: tuple[str, ...]
    description: str
    labels: list[str]
    tables: tuple[Table, ...] = ()
    weights: FloatArray | None = None
    schema: Schema | None = None

    @property
    def caveat(self) -> str:
        """Why no release has a privacy claim, as `Schema.caveat` states; empty if it can have."""
        return "" if self.schema is None else self.schema.caveat

    @property
    def row(self) -> tuple[str, str]:
        """The queries in words, as a row to print."""
        return ("queries", f"{self.workload.n_queries}: {self.description}")

    @property
    def tables_share_columns(self) -> bool:
        """Whether some column is in two tables. Noisy tables can disagree about such a column."""
        columns = [name for table in self.tables for name in table.columns]
        return len(set(columns)) < len(columns)


def cell_labels(columns: ColumnLabels, names: Sequence[str]) -> list[str]:
    """Labels of the cells of one table in row-major order, such as sex=male,smoker=no."""
    cells = itertools.product(*(columns[name] for name in names))
    return [",".join(map("=".join, zip(names, cell, strict=True))) for cell in cells]
