"""The schema of a table of records: declared, public columns, and their format.

A schema is one JSON object. `Schema.from_dict` takes the same object, or its columns alone:

.. code-block:: json

    {
      "format": "geomdp schema",
      "version": 2,
      "columns": {
        "region": {"kind": "categorical", "categories": ["north", "south"], "other": true},
        "smoker": {"kind": "boolean", "missing": true},
        "age": {"kind": "numeric", "edges": [0, 18, 65, 120]},
        "income": {"kind": "real", "bounds": [0, 200000], "clip": true}
      }
    }

The keys of ``columns`` are the names of columns, in order. The keys of each column are:

* ``kind``: one of the four above. It may be left out: ``categories``, ``edges`` and ``bounds``
  tell the kind, and a column with none of them is boolean.
* ``categories`` (categorical, required): different texts or whole numbers.
* ``edges`` (numeric, required): the increasing edges of the bins.
* ``bounds`` (real, required): the smallest and the largest number.
* ``"other": true`` (categorical): one more category for all values that are not listed.
* ``"missing": true`` (all but real): one more category for missing values.
* ``"clip": true`` (real): a finite number outside the bounds counts as the nearest bound.
* ``"drafted": true``: the column was read from the records. What is released with it has no
  privacy claim, until `Schema.confirm`, or the removal of this mark, states that it is public.
* ``"confirmed": true``: the column was drafted, and then confirmed.

A list in place of a column's object declares categories. In Python, the type ``bool`` declares a
boolean column. The file may have the key ``$schema`` for an editor, which completes the file with
the help of ``schema.schema.json`` (from the command ``geomdp schema editor``). Files of version 1
have a list of columns, each with the additional key ``name``, and are still read.

Columns of the records that the schema does not declare are ignored. Categories, edges and bounds
are public, so they must be known without the records.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from geomdp._validation import listed
from geomdp.data.columns import (
    BooleanColumn,
    CategoricalColumn,
    Column,
    DiscreteColumn,
    NumericColumn,
    RealColumn,
    check_name,
)
from geomdp.data.dtypes import columns_of_dtypes
from geomdp.workloads.finite import Histogram
from geomdp.workloads.tables import MarginalTables
from geomdp.workloads.universe.universes import CategoricalProduct, SymmetricCube

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

FORMAT = "geomdp schema"
VERSION = 2
#: Largest number of drafted columns that a caveat lists by name.
LISTED = 10

_KINDS: dict[str, type[Column]] = {
    column.kind: column for column in (CategoricalColumn, BooleanColumn, NumericColumn, RealColumn)
}
#: What a schema file must be, for error messages.
REMEDY = f'write {{"format": "{FORMAT}", "version": {VERSION}, "columns": {{...}}}}'
#: A column of each kind, for error messages.
_EXAMPLES: dict[str, dict[str, object]] = {
    "categorical": {"kind": "categorical", "categories": ["north", "south"]},
    "boolean": {"kind": "boolean"},
    "numeric": {"kind": "numeric", "edges": [0, 18, 65, 120]},
    "real": {"kind": "real", "bounds": [0, 200000]},
}


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
    def caveat(self) -> str:
        """Why nothing released with this schema has a privacy claim; empty if all of it is public.

        For example "edges of income were read from the records". See `confirm`.
        """
        drafted = [column.caveat for column in self.columns if column.drafted]
        more = [f"{len(drafted) - LISTED} more"] if len(drafted) > LISTED else []
        said = ", ".join(drafted[:LISTED] + more)
        return f"{said} were read from the records" if drafted else ""

    def confirm(self, *names: str) -> Schema:
        """The schema after a statement that drafted columns are known without the records.

        Parameters
        ----------
        *names : str
            Columns that lose the mark `drafted` and get the mark `confirmed`; by default all that
            are drafted. Columns without the mark stay as they are.

        Raises
        ------
        ValueError
            If there is no column of such a name.
        """
        chosen = [self.column(name) for name in names or self.names]
        public = {c.name: replace(c, drafted=False, confirmed=True) for c in chosen if c.drafted}
        return Schema(tuple(public.get(column.name, column) for column in self.columns))

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
            If there are both discrete and real columns. `select` the columns of one type first. If
        columns were read from records: a universe does not carry that mark.
        """
        self.check_public()
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
            there is no discrete column. If columns were read from records: a workload does not
            carry that mark.
        """
        self.check_public()
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

    def check_public(self) -> None:
        """Raise ``ValueError`` if a column is drafted, because no claim can follow its records."""
        if self.caveat:
            raise ValueError(
                f"{self.caveat}: call confirm() if they are known without the records; "
                "geomdp.release takes the schema as it is, and makes no privacy claim"
            )

    @classmethod
    def from_dict(cls, columns: Mapping[str, object]) -> Schema:
        """The schema with the given columns, in order.

        Parameters
        ----------
        columns : mapping
            The object of a schema file (`geomdp.data.schema` describes the format), or its columns
            alone: the key is the name of a column, and the value is a mapping such as
            ``{"edges": [0, 18, 65], "missing": True}``, a list of categories, or the type ``bool``.

        Raises
        ------
        ValueError
            If a declaration has another form or is not valid. The message has one line for each
            fault, with the name of the column and what to write.
        """
        return cls(_columns(_declarations(columns)))

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

    def to_dict(self) -> dict[str, Any]:
        """The schema as the object of a schema file."""
        columns = {column.name: column.to_dict() for column in self.columns}
        return {"format": FORMAT, "version": VERSION, "columns": columns}

    def to_json(self) -> str:
        """The schema as the text of a schema file, with one line for each column."""
        return document_text(self.to_dict()["columns"])

    @classmethod
    def from_json(cls, text: str) -> Schema:
        """The schema from the text of a schema file.

        Raises
        ------
        ValueError
            If the text is not JSON, or an object has a key twice, and for the reasons of
            `from_dict`.
        """
        try:
            document = json.loads(text, object_pairs_hook=_distinct)
        except (ValueError, RecursionError) as error:  # ValueError also for very long numbers
            raise ValueError(f"a schema must be JSON: {error}") from error
        return cls.from_dict(document)


def document_text(columns: Mapping[str, object]) -> str:
    """The text of a schema file, with one line for each column."""
    lines = ",\n    ".join(_line(name, declaration) for name, declaration in columns.items())
    head = f'  "format": "{FORMAT}",\n  "version": {VERSION},\n  "columns": '
    return f"{{\n{head}{{\n    {lines}\n  }}\n}}"


def _line(name: str, declaration: object) -> str:
    """The declaration of a column, as a line of a schema file."""
    return json.dumps({name: declaration}, ensure_ascii=False)[1:-1]


def _distinct(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """A JSON object; ``ValueError`` if a key occurs more than once."""
    names = [name for name, _ in pairs]
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"each key must occur once in an object, {repeated} occur more often")
    return dict(pairs)


def _declarations(document: object) -> Iterator[tuple[object, object]]:
    """Names and declarations in a schema file of either version, or in a mapping of columns."""
    if not isinstance(document, Mapping):
        raise ValueError(f"a schema must be an object; {REMEDY}")
    # A column is declared by a list or an object, so a text or number belongs to a file.
    if not any(isinstance(document.get(key), str | int) for key in ("format", "version")):
        yield from document.items()
        return
    stated, columns = (document.get("format"), document.get("version")), document.get("columns")
    known = set(document) <= {"format", "version", "columns", "$schema"}
    if known and stated == (FORMAT, VERSION) and isinstance(columns, Mapping):
        yield from columns.items()
    elif known and stated == (FORMAT, 1) and isinstance(columns, list):
        for position, entry in enumerate(columns):
            if not isinstance(entry, Mapping) or "name" not in entry:
                raise ValueError(f"column number {position} must be an object with name and kind")
            yield entry["name"], {key: value for key, value in entry.items() if key != "name"}
    else:
        raise ValueError(
            f"a schema must have the format {FORMAT!r}, the version {VERSION}, an object of "
            f"columns and no other keys, got format {stated[0]!r}, version {stated[1]!r} and the "
            f"keys {list(document)}; {REMEDY}"
        )


def _columns(declarations: Iterator[tuple[object, object]]) -> tuple[Column, ...]:
    """The declared columns; ``ValueError`` with one line for each fault."""
    columns: list[Column] = []
    faults: list[str] = []
    for name, declaration in declarations:
        try:
            columns.append(_column(name, declaration))
        except ValueError as error:
            faults.append(str(error))
    if faults:
        raise ValueError("\n".join(faults))
    return tuple(columns)


def _column(name: Any, declaration: object) -> Column:
    """One column; the message of a ``ValueError`` has one line for each fault."""
    check_name(name)
    if declaration is bool:
        declaration = {"kind": "boolean"}
    elif isinstance(declaration, list | tuple):
        declaration = {"categories": declaration}
    given: dict[Any, Any] = dict(declaration) if isinstance(declaration, Mapping) else {}
    kinds = [kind for kind, column in _KINDS.items() if column.key and column.key in given]
    kind = given.pop("kind", kinds[0] if kinds else "boolean")
    # An empty object is more likely to be forgotten than meant as boolean.
    if not declaration or not isinstance(declaration, Mapping) or kind not in list(_KINDS):
        lines = " or ".join(_line(name, example) for example in _EXAMPLES.values())
        raise ValueError(
            f"column {name!r} must be declared by bool, a list of categories or a mapping whose "
            f"kind is one of {sorted(_KINDS)}, got {declaration!r}; write {lines}"
        )
    column, valid = _KINDS[kind], dict(_EXAMPLES[kind])
    remedy = f"; write for example {_line(name, valid)}"
    del valid["kind"]
    known = {key: value for key, value in given.items() if key in {*valid, *column.flags}}
    built, faults = None, []
    if len(known) < len(given) or not set(valid) <= set(known):
        faults.append(
            f"column {name!r}: kind {kind!r} must have the keys {sorted(valid)}, and no others "
            f"but {sorted(column.flags)}, got {sorted(map(str, given))}"
        )
    # Each key is also checked beside a valid example, so that all faults are found.
    for values in [*({key: value} for key, value in known.items()), known]:
        try:
            built = column(**{"name": name, **valid, **values})
        except ValueError as error:
            faults.append(str(error))
    if faults or built is None:
        raise ValueError("\n".join(fault + remedy for fault in dict.fromkeys(faults)))
    return built
