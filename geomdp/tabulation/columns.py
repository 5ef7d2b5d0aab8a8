"""The columns of a schema that queries are about, with what their codes stand for."""

from __future__ import annotations

from collections.abc import Sequence

from geomdp.data.schema import Schema


def chosen_columns(
    schema: Schema, names: Sequence[str] | None, *, real: bool = False
) -> dict[str, tuple[str, ...]]:
    """The columns to ask about with the labels of their codes; by default all of their sort.

    Those are discrete columns, or with `real` the others, which have no labels.

    Raises
    ------
    ValueError
        Naming the column: unknown, given twice, or of the other sort; or if there is none.
    """
    sort, other = ("real", "discrete") if real else ("discrete", "real")
    labels = schema.labels
    if real:
        labels = {column.name: () for column in schema.real_columns}
    if names is None:
        if not labels:
            raise ValueError(f"the schema must have at least 1 {sort} column, it has 0")
        return labels
    for name in names:
        if name not in schema.names:
            raise ValueError(
                f"columns must name columns of the schema ({', '.join(schema.names)}), got {name!r}"
            )
        if name not in labels:
            raise ValueError(
                f"columns must name {sort} columns ({', '.join(labels)}); {name!r} is {other}"
            )
        if names.count(name) > 1:
            raise ValueError(f"columns must name each column once, got {name!r} twice")
    return {name: labels[name] for name in names}
