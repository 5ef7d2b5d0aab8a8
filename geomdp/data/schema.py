"""The schema of a table of records: declared, public columns, and a file format for schemas.

A schema file is one JSON object:

.. code-block:: json

    {
      "format": "geomdp schema",
      "version": 1,
      "columns": [
        {"name": "region", "kind": "categorical", "categories": ["north", "south"]},
        {"name": "smoker", "kind": "boolean"},
        {"name": "age", "kind": "numeric", "edges": [0, 18, 65, 120]},
        {"name": "income", "kind": "real", "bounds": [0, 200000]}
      ]
    }

`geomdp.data.columns` defines the four kinds. Each kind has the keys shown here and optional flags.
For all kinds but real, ``"missing": true`` adds a category for missing values. For categorical
columns, ``"other": true`` adds a category for all values that are not listed. For real columns,
``"clip": true`` moves finite numbers outside the bounds to the nearest bound.

Columns of the records that the schema does not declare are ignored. Categories, edges and bounds
are public, so they must be known without the records.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from geomdp._validation import listed
from geomdp.data.columns import (
    BooleanColumn,
    CategoricalColumn,
    Column,
    DiscreteColumn,
    NumericColumn,
    RealColumn,
)
from geomdp.data.dtypes import columns_of_dtypes
from geomdp.workloads.finite import Histogram
from geomdp.workloads.tables import MarginalTables
from geomdp.workloads.universe.universes import CategoricalProduct, SymmetricCube

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

FORMAT = "geomdp schema"
VERSION = 1

_KINDS: dict[str, type[Column]] = {
    column.kind: column for column in (CategoricalColumn, BooleanColumn, NumericColumn, RealColumn)
}
#: The keys that each kind requires in addition to name and kind.
_KEYS = {"categorical": {"categories"}, "boolean": set(), "numeric": {"edges"}, "real": {"bounds"}}


@dataclass(frozen=True, repr=False)
class Schema:
    """The declared columns of a table of records, in order.

    Parameters
    ----------
    columns : sequence of CategoricalColumn, BooleanColumn, NumericColumn or RealColumn
        At least 1, with distinct names.

    Raises
    ------
    ValueError
        If there are no columns, an entry has another type, or two names are equal.

    Examples
    --------
    >>> import geomdp as gd
    >>> schema = gd.data.Schema.from_dict(
    ...     {"region": ["north", "south"], "smoker": bool, "age": {"edges": [0, 18, 65, 120]}}
    ... )
    >>> schema
    Schema(region: 2, smoker: 2, age: 3)
    >>> schema.workload("marginals", k=2).n_queries
    16
    >>> gd.data.Schema.from_json(schema.to_json()) == schema
    True
    """

    columns: tuple[Column, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", listed(self.columns, "columns"))
        if not self.columns:
            raise ValueError("a schema must have at least 1 column, got 0")
        for column in self.columns:
            if not isinstance(column, Column):
                raise ValueError(f"columns must be declarations of columns, got {column!r}")
        repeated = sorted({name for name in self.names if self.names.count(name) > 1})
        if repeated:
            raise ValueError(f"a schema must have each column once, {repeated} occur more often")

    def __repr__(self) -> str:
        """Names of the columns, each with its number of levels or the word "real"."""
        levels = self.levels
        named = (f"{name}: {levels.get(name, 'real')}" for name in self.names)
        return f"Schema({', '.join(named)})"

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns, in order."""
        return tuple(column.name for column in self.columns)

    def column(self, name: str) -> Column:
        """The column called `name`; ``ValueError`` if there is none."""
        for column in self.columns:
            if column.name == name:
                return column
        raise ValueError(f"the schema has no column {name!r}, it has {list(self.names)}")

    def select(self, names: Sequence[str]) -> Schema:
        """The schema of the columns called `names`, in that order."""
        return Schema(tuple(self.column(name) for name in names))

    @property
    def discrete_columns(self) -> tuple[DiscreteColumn, ...]:
        """Categorical, boolean and binned columns, in order."""
        return tuple(column for column in self.columns if not isinstance(column, RealColumn))

    @property
    def real_columns(self) -> tuple[RealColumn, ...]:
        """Columns of reals, in order."""
        return tuple(column for column in self.columns if isinstance(column, RealColumn))

    @property
    def labels(self) -> dict[str, tuple[str, ...]]:
        """For every discrete column, in order, the texts that the codes 0, 1, ... represent."""
        return {column.name: column.labels for column in self.discrete_columns}

    @property
    def levels(self) -> dict[str, int]:
        """For every discrete column, in order, the number of codes.

        `MarginalTables` and `CategoricalProduct` take this mapping.
        """
        return {name: len(labels) for name, labels in self.labels.items()}

    def universe(self) -> CategoricalProduct | SymmetricCube:
        """The universe of encoded records.

        If all columns are discrete, the universe is the product of the sets of codes. If all d
        columns are real, the universe is the cube [-1, 1]^d.

        Raises
        ------
        ValueError
            If there are both discrete and real columns. `select` the columns of one type first.
        """
        if not self.real_columns:
            return CategoricalProduct(self.levels)
        if not self.discrete_columns:
            return SymmetricCube(len(self.columns))
        raise ValueError(
            "the columns of a universe must be all discrete or all real, got the real columns "
            f"{[column.name for column in self.real_columns]} and the discrete columns "
            f"{list(self.levels)}; select the columns of one type"
        )

    def workload(self, kind: str, *, k: int | None = None) -> MarginalTables | Histogram:
        """Queries about all discrete columns.

        Parameters
        ----------
        kind : str
            ``"marginals"`` for all k-way tables, ``"histogram"`` for the joint table.
        k : int, optional
            Number of columns of each table, for ``"marginals"`` only.

        Raises
        ------
        ValueError
            For another `kind`. If `k` is missing, out of range, or given for ``"histogram"``. If
            there is no discrete column.
        """
        if not self.levels:
            raise ValueError("the schema must have at least 1 discrete column, it has 0")
        if kind == "marginals" and k is not None:
            return MarginalTables(self.levels, k)
        if kind == "histogram" and k is None:
            return Histogram(math.prod(self.levels.values()))
        raise ValueError(
            "a workload must be 'marginals' with k, or 'histogram' without k; got "
            f"{kind!r} with k = {k!r}"
        )

    @classmethod
    def from_dict(cls, columns: Mapping[str, object]) -> Schema:
        """The schema with the given columns, in order.

        Parameters
        ----------
        columns : mapping of str to bool (the type), list, or mapping
            The key is the name of a column. The type ``bool`` declares a boolean column. A list
            declares a categorical column with these categories. A mapping has the keys of the file
            format without name and kind: ``{"edges": [0, 18, 65], "missing": True}``.

        Raises
        ------
        ValueError
            If a declaration has another form or is not valid. The error names the column.
        """
        return cls(tuple(_declared(name, value) for name, value in columns.items()))

    @classmethod
    def from_dtypes(cls, frame: pd.DataFrame | pl.DataFrame, missing: Sequence[str] = ()) -> Schema:
        """The schema that the types of the columns declare. No value is read.

        Parameters
        ----------
        frame : pandas or polars DataFrame
            Each column has boolean type, pandas' categorical type (``pd.cut`` also makes this type,
            with intervals as categories) or polars' ``Enum``. The categories must come from public
            knowledge. After ``astype("category")`` the categories come from the records, and no
            guarantee holds.
        missing : sequence of str
            Columns in which values can be missing. Each gets a category for missing values.

        Raises
        ------
        ValueError
            If a column has another type, declares no category or has a name that is not text. If a
            name in `missing` is not a column.
        """
        return cls(columns_of_dtypes(frame, missing))

    def to_json(self) -> str:
        """The schema as text in the file format."""
        columns = [column.to_dict() for column in self.columns]
        return json.dumps({"format": FORMAT, "version": VERSION, "columns": columns}, indent=2)

    @classmethod
    def from_json(cls, text: str) -> Schema:
        """The schema from text in the file format.

        Raises
        ------
        ValueError
            If the text is not JSON, or has another format. If a declaration is not valid. The error
            then gives the name or the number of the column.
        """
        try:
            document = json.loads(text)
        except (ValueError, RecursionError) as error:  # ValueError also for very long numbers
            raise ValueError(f"a schema must be JSON: {error}") from error
        expected = {"format", "version", "columns"}
        if not isinstance(document, dict) or set(document) != expected:
            raise ValueError(f"a schema must be an object with the keys {sorted(expected)}")
        if (document["format"], document["version"]) != (FORMAT, VERSION):
            raise ValueError(
                f"a schema must have format {FORMAT!r}, version {VERSION}, "
                f"got {document['format']!r}, {document['version']!r}"
            )
        if not isinstance(document["columns"], list):
            raise ValueError(f"columns must be a list, got {document['columns']!r}")
        return cls(tuple(_column(entry, i) for i, entry in enumerate(document["columns"])))


def _declared(name: str, value: object) -> Column:
    """One column from its entry in `from_dict`."""
    if value is bool:
        return BooleanColumn(name)
    if isinstance(value, Mapping):
        found = [kind for kind, keys in _KEYS.items() if keys and keys <= set(value)]
        # A boolean column has none of these keys. If there are keys of several kinds, `_column`
        # raises an error.
        kind = found[0] if len(found) == 1 else "boolean"
        return _column({"name": name, "kind": kind, **value}, 0)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return CategoricalColumn(name, tuple(value))
    raise ValueError(
        f"column {name!r} must be declared by bool, a list of categories or a mapping, "
        f"got {value!r}"
    )


def _column(entry: object, position: int) -> Column:
    """One column from its JSON object."""
    if not isinstance(entry, dict) or not {"name", "kind"} <= set(entry):
        raise ValueError(f"column number {position} must be an object with name and kind")
    name, kind = entry["name"], entry["kind"]
    if not isinstance(kind, str) or kind not in _KINDS:
        raise ValueError(f"column {name!r}: kind must be one of {sorted(_KINDS)}, got {kind!r}")
    keys = {"name", "kind"} | _KEYS[kind]
    optional = set(_KINDS[kind].flags)
    if not keys <= set(entry) <= keys | optional:
        raise ValueError(
            f"column {name!r}: kind {kind!r} must have the keys {sorted(keys)}, and no others but "
            f"{sorted(optional)}, got {sorted(entry)}"
        )
    parameters = {key: value for key, value in entry.items() if key != "kind"}
    return _KINDS[kind](**parameters)
