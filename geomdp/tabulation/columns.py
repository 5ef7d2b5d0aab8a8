"""Choose the columns of a schema for a release, and list the labels of their levels."""

from __future__ import annotations

from collections.abc import Sequence

from geomdp._validation import require_type
from geomdp.data.schema import Schema


def chosen_columns(
    schema: Schema, names: Sequence[str] | None, *, real: bool = False
) -> dict[str, tuple[str, ...]]:
    """Check the names of columns, and return each column with the labels of its levels, by code.

    Parameters
    ----------
    schema : Schema
        Declares the columns.
    names : sequence of str or None
        The columns to return; None means all columns of the kind that `real` selects.
    real : bool
        False for discrete columns, True for real columns, which have no labels.

    Raises
    ------
    ValueError
        If a column is unknown, given twice or of the other kind. The message names the column. Also
        if `names` is None and the schema has no column of the selected kind.

    Examples
    --------
    >>> import geomdp as gd
    >>> schema = gd.data.Schema.from_dict({"sex": ["female", "male"], "smokes": bool})
    >>> gd.tabulation.chosen_columns(schema, None)
    {'sex': ('female', 'male'), 'smokes': ('false', 'true')}
    >>> gd.tabulation.chosen_columns(schema, ["sex"])
    {'sex': ('female', 'male')}
    """
    require_type(schema, Schema, "schema")
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
