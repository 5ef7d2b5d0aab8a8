"""Build the workload that a user asks for: one specification, or several tables with weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

from geomdp._validation import positive
from geomdp.data.schema import Schema
from geomdp.tabulation.columns import chosen_columns
from geomdp.tabulation.specs import MAX_CELLS, parse_workload, takes_reals
from geomdp.tabulation.tasks import ColumnLabels, Table, Task, cell_labels
from geomdp.workloads import ChosenTables

#: A specification such as ``"marginals:2"``, or the names of the columns of one table.
Asked: TypeAlias = str | Sequence[str]


def task_of(
    schema: Schema,
    asked: Sequence[Asked],
    *,
    columns: Sequence[str] | None = None,
    weights: Sequence[float] | None = None,
) -> Task:
    """Combine specifications and tables over the columns of a schema into one workload.

    Parameters
    ----------
    schema : Schema
        Declares the columns.
    asked : sequence of str or of sequence of str
        Specifications, or tables given by the names of their columns. If `asked` has several
        entries, each entry must consist of tables.
    columns : sequence of str, optional
        Columns to which the specifications apply; by default all real columns for
        ``second-moments``, and all discrete columns for other specifications.
    weights : sequence of float, optional
        One positive weight for each entry of `asked`; by default 1. In the total error, the errors
        of the queries of an entry are multiplied by its weight. A single entry keeps weight 1.

    Raises
    ------
    ValueError
        For no entry, a wrong specification, column or weight, several entries that are not all
        tables, or too many queries. The message says what is wrong.

    Examples
    --------
    >>> import geomdp as gd
    >>> schema = gd.data.Schema.from_dict({"sex": ["female", "male"], "smokes": bool, "old": bool})
    >>> task = gd.tabulation.task_of(schema, ["marginals:1", ("sex", "smokes")], weights=[1.0, 2.0])
    >>> task.row
    ('queries', '10: 3 1-way tables of 3 columns (weight 1); the table sex x smokes (weight 2)')
    >>> task.labels[-2:]
    ['sex=male,smokes=false', 'sex=male,smokes=true']
    """
    if not asked:
        raise ValueError("workload must be at least 1 specification or table, got 0")
    given = [1.0] * len(asked) if weights is None else weights
    if len(given) != len(asked):
        raise ValueError(
            f"weights must have {len(asked)} entries, one for each workload or table, "
            f"got {len(given)}"
        )
    checked = [positive(weight, "weights") for weight in given]
    parts = [_part(schema, each, columns) for each in asked]
    task = parts[0] if len(parts) == 1 else _mixed(schema, parts, checked)
    return replace(task, schema=schema.select(task.columns))


def _part(schema: Schema, asked: Asked, columns: Sequence[str] | None) -> Task:
    if isinstance(asked, str):
        return parse_workload(asked, chosen_columns(schema, columns, real=takes_reals(asked)))
    labels = chosen_columns(schema, asked)
    # Columns of a table are always in the order of the schema.
    ordered = {name: labels[name] for name in schema.names if name in labels}
    task = parse_workload(f"marginals:{len(ordered)}", ordered)
    return replace(task, description=f"the table {' x '.join(ordered)}")


def _mixed(schema: Schema, parts: Sequence[Task], weights: Sequence[float]) -> Task:
    for part in parts:
        if not part.tables:
            raise ValueError(
                f"each of several workloads must consist of tables, got {part.description}"
            )
    used = {name for part in parts for name in part.columns}
    labels: ColumnLabels = {name: found for name, found in schema.labels.items() if name in used}
    tables = [_in_order(table, labels) for part in parts for table in part.tables]
    n_cells = sum(table.n_cells for table in tables)
    if n_cells > MAX_CELLS:
        raise ValueError(f"workload must have at most {MAX_CELLS} queries, got {n_cells}")
    workload = ChosenTables(
        {name: len(levels) for name, levels in labels.items()},
        [table.columns for table in tables],
        [weight for part, weight in zip(parts, weights, strict=True) for _ in part.tables],
    )
    weighted = len(set(weights)) > 1
    words = [_in_words(part, weight, weighted) for part, weight in zip(parts, weights, strict=True)]
    return Task(
        workload,
        tuple(labels),
        "; ".join(words),
        [label for table in tables for label in cell_labels(labels, table.columns)],
        tuple(tables),
        workload.weights,
    )


def _in_order(table: Table, labels: ColumnLabels) -> Table:
    names = tuple(name for name in labels if name in table.columns)
    return Table(names, tuple(tuple(labels[name]) for name in names))


def _in_words(part: Task, weight: float, weighted: bool) -> str:
    return f"{part.description} (weight {weight:g})" if weighted else part.description
