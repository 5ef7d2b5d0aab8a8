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
        "admitted": {"kind": "date", "days": ["2023-01-01", "2024-12-31"], "by": "quarter"},
        "income": {"kind": "real", "bounds": [0, 200000], "clip": true},
        "note": {"kind": "skip", "reason": "free text"}
      }
    }

The keys of ``columns`` are the names of columns, in order. The keys of each column are:

* ``kind``: one of the six above. It may be left out: one of the four next keys, which are required,
  tells the kind, and a column with none of them is boolean.
* ``categories`` (categorical): different texts or whole numbers.
* ``edges`` (numeric): the increasing edges of the bins.
* ``days`` (date): the first and the last day.
* ``bounds`` (real): the smallest and the largest number.
* ``"other": true`` (categorical): one more category for all values that are not listed.
* ``"loose": true`` (categorical): blanks at the ends and the case of letters do not matter.
* ``"missing": true`` (all but real): one more category for missing values, which are NULL and an
  empty field of a CSV file.
* ``"missing_texts": ["NA"]`` (all but real): ``missing``, and texts that also stand for a missing
  value.
* ``"by"`` (date): the bins, ``"year"``, ``"quarter"``, ``"month"`` (the default) or ``"weekday"``.
* ``"order": "dmy"`` (date): texts such as 29/02/2024; ``"mdy"`` for 02/29/2024.
* ``"decimal": ","`` and ``"thousands": "."`` (numeric, real): marks in texts such as 1.234,50.
* ``"clip": true`` (real): a finite number outside the bounds counts as the nearest bound.
* ``"reason"`` (skip): why no query uses the column.
* ``"drafted": true``: the column was read from the records. What is released with it has no
  privacy claim, until `Schema.confirm`, which writes ``"confirmed": true``, or the removal of this
  mark states that it is public.

A list in place of a column's object declares categories. In Python, the type ``bool`` declares a
boolean column. A text that is the label of a level, such as ``[18, 65)`` or ``2024 Q1``, is read as
this level; so synthetic records can be read by the schema that they were made with.

Beside ``columns``, a schema may have the key ``csv``, such as ``{"separator": ";", "encoding":
"latin-1"}``; see `CsvFormat`. The key ``$schema`` is for an editor, which completes the file with
the help of ``schema.schema.json`` (from the command ``geomdp schema editor``). Files of version 1
have a list of columns, each with the additional key ``name``, and are still read.

What no record can be is declared beside ``columns``, too, by the labels of levels as in results:

.. code-block:: json

    {
      "impossible": [{"smoker": ["never"], "cigarettes": ["1-9", "10+"]}],
      "refines": {"county": {"region": {"north": ["A", "B"], "south": ["C"]}}}
    }

`Schema.declare` says what they mean. Other columns of the records are ignored, as are those of kind
``skip``. All that is declared is public, so it must be known without the records.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from geomdp._validation import listed, require_type
from geomdp.data.columns import (
    COMMAS,
    BooleanColumn,
    CategoricalColumn,
    Column,
    CsvFormat,
    DateColumn,
    DiscreteColumn,
    NumericColumn,
    RealColumn,
    SkippedColumn,
    as_text,
    check_name,
)
from geomdp.data.frames import is_polars
from geomdp.data.possible import (
    Forbidden,
    JoinedColumn,
    Pattern,
    Refinement,
    forbidden,
    joined_columns,
    pattern_of,
    patterns_of,
    refinement_of,
)
from geomdp.workloads.finite import Histogram
from geomdp.workloads.tables import MarginalTables
from geomdp.workloads.universes import CategoricalProduct, SymmetricCube

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


FORMAT = "geomdp schema"
VERSION = 2
#: Largest number of drafted columns that a caveat lists by name.
LISTED = 10

_KINDS: dict[str, type[Column]] = {
    column.kind: column
    for column in (CategoricalColumn, BooleanColumn, NumericColumn, DateColumn, RealColumn)
}
#: What a schema file must be, for error messages.
REMEDY = f'write {{"format": "{FORMAT}", "version": {VERSION}, "columns": {{...}}}}'
#: A column of each kind, for error messages.
_EXAMPLES: dict[str, dict[str, object]] = {
    "categorical": {"kind": "categorical", "categories": ["north", "south"]},
    "boolean": {"kind": "boolean"},
    "numeric": {"kind": "numeric", "edges": [0, 18, 65, 120]},
    "date": {"kind": "date", "days": ["2023-01-01", "2024-12-31"]},
    "real": {"kind": "real", "bounds": [0, 200000]},
    "skip": {"kind": "skip"},
}


@dataclass(frozen=True, repr=False)
class Schema:
    """The declared columns of a table of records, in order.

    ``ValueError`` if there are no columns, an entry has another type, or two names are equal.

    Parameters
    ----------
    columns : sequence of CategoricalColumn, BooleanColumn, NumericColumn, DateColumn or RealColumn
        At least 1, with distinct names.
    skipped : sequence of SkippedColumn
        Columns of the records that are known and not used.
    csv : CsvFormat
        How CSV files of the records are written.
    impossible, refines : sequence
        What no record can be; see `declare`.

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
    skipped: tuple[SkippedColumn, ...] = ()
    csv: CsvFormat = COMMAS
    impossible: tuple[Pattern, ...] = ()
    refines: tuple[Refinement, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", listed(self.columns, "columns"))
        object.__setattr__(self, "skipped", listed(self.skipped, "skipped"))
        require_type(self.csv, CsvFormat, "csv")
        if not self.columns:
            raise ValueError(
                "a schema must have at least 1 column that is not skipped, got 0; write for "
                f"example {_line('age', _EXAMPLES['numeric'])}"
            )
        for column in self.columns:
            if not isinstance(column, Column):
                raise ValueError(f"columns must be declarations of columns, got {column!r}")
        for each in self.skipped:
            require_type(each, SkippedColumn, "a skipped column")
        names = [*self.names, *(column.name for column in self.skipped)]
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            raise ValueError(f"a schema must have each column once, {repeated} occur more often")
        for key, read in (("impossible", pattern_of), ("refines", refinement_of)):
            given = listed(getattr(self, key), key)
            labels = self.labels if given else {}
            object.__setattr__(self, key, tuple(read(each, labels) for each in given))
        _ = self.forbidden  # raises an error if no record is possible

    def __repr__(self) -> str:
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
        if any(column.name == name for column in self.skipped):
            raise ValueError(f"column {name!r} has the kind skip in the schema; declare its kind")
        raise ValueError(f"the schema has no column {name!r}, it has {list(self.names)}")

    def select(self, names: Sequence[str]) -> Schema:
        """The schema of the columns called `names`, in that order, without skipped columns.

        It keeps what is declared impossible about these columns alone.
        """
        chosen = set(names)
        return Schema(
            tuple(self.column(name) for name in names),
            csv=self.csv,
            impossible=tuple(each for each in self.impossible if {*dict(each)} <= chosen),
            refines=tuple(each for each in self.refines if {*each[:2]} <= chosen),
        )

    def declare(
        self,
        *,
        impossible: Sequence[Mapping[str, Sequence[str]]] = (),
        refines: Mapping[str, Mapping[str, Mapping[str, Sequence[str]]]] | None = None,
    ) -> Schema:
        """A new schema, with more declarations of what no record can be.

        It must be known without the records, because it is public. Records that break it are
        refused. Impossible cells of tables are 0 without noise, and others have less noise, because
        a record can change less; tables of a column are sums of those of one that refines it.
        ``ValueError`` if a column or level is unknown, or no record is possible.

        Parameters
        ----------
        impossible : sequence of mappings
            Each has at least two discrete columns, with labels of levels: no record has one of
            these levels in every column.
        refines : mapping
            For a column, the coarser column that it refines, and for each level of the coarser one
            its own levels: ``{"county": {"region": {"north": ["A", "B"], "south": ["C"]}}}``. Each
            level of the finer column must occur.

        Examples
        --------
        >>> import pandas as pd
        >>> import geomdp as gd
        >>> schema = gd.data.Schema.from_dict({"smoker": bool, "daily": ["none", "1-9", "10+"]})
        >>> schema = schema.declare(impossible=[{"smoker": ["false"], "daily": ["1-9", "10+"]}])
        >>> records = pd.DataFrame({"smoker": [True, False], "daily": ["1-9", "10+"]})
        >>> try:
        ...     gd.release(records, schema, "marginals:2", epsilon=1.0)
        ... except ValueError as reason:
        ...     print(str(reason).partition(" (")[0])
        records must be possible by the schema: row 1, column 'smoker x daily' is not
        """
        given_refines = {} if refines is None else refines
        require_type(given_refines, Mapping, "refines")
        added = tuple(
            (fine, coarse, inside)
            for fine, given in given_refines.items()
            for coarse, inside in (given.items() if isinstance(given, Mapping) else [("", given)])
        )
        return replace(
            self,
            impossible=(*self.impossible, *listed(impossible, "impossible")),  # type: ignore[arg-type]
            refines=(*self.refines, *added),  # type: ignore[arg-type]
        )

    @cached_property
    def forbidden(self) -> Forbidden:
        """Which combinations of levels are declared impossible, by the columns concerned."""
        if not (self.impossible or self.refines):
            return {}
        labels = self.labels
        refined = (each for own in self.refines for each in patterns_of(own, labels))
        return forbidden([*self.impossible, *refined], labels)

    @cached_property
    def joined(self) -> dict[str, JoinedColumn]:
        """The discrete columns by name, some of them joined (`joined_columns`)."""
        columns = joined_columns(self.labels, self.forbidden, all_linked=False)
        return {column.name: column for column in columns}

    @property
    def caveat(self) -> str:
        """Why a release has no privacy claim, such as "edges of income were read from the records";
        empty if all of the schema is public. See `confirm`.
        """
        drafted = [column.caveat for column in self.columns if column.drafted]
        more = [f"{len(drafted) - LISTED} more"] if len(drafted) > LISTED else []
        said = ", ".join(drafted[:LISTED] + more)
        return f"{said} were read from the records" if drafted else ""

    def confirm(self, *names: str) -> Schema:
        """The schema after a statement that drafted columns are known without the records.

        The columns `names`, by default all that are drafted, lose the mark `drafted` and get the
        mark `confirmed`. ``ValueError`` if a name has no column.
        """
        chosen = [self.column(name) for name in names or self.names]
        public = {c.name: replace(c, drafted=False, confirmed=True) for c in chosen if c.drafted}
        columns = tuple(public.get(column.name, column) for column in self.columns)
        return replace(self, columns=columns)

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
        """For every discrete column, in order, its number of codes, for `CategoricalProduct`."""
        return {name: len(labels) for name, labels in self.labels.items()}

    def universe(self) -> CategoricalProduct | SymmetricCube:
        """The universe of encoded records.

        For discrete columns, it is the product of the sets of codes; for d real columns, the cube
        [-1, 1]^d. ``ValueError`` if there are columns of both types (`select` those of one type
        first), or columns that were read from records, because a universe does not carry that mark.
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
        """Queries about all discrete columns; ``ValueError`` if there is none, or one was read from
        records, as for `universe`.

        Parameters
        ----------
        kind : str
            ``"marginals"`` for all k-way tables, ``"histogram"`` for the joint table.
        k : int, optional
            Number of columns of each table, for ``"marginals"`` only.
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
        """The schema with the given columns; a ``ValueError`` has one line for each fault.

        Parameters
        ----------
        columns : mapping
            The object of a schema file (`geomdp.data.schema` describes the format), or its columns
            alone: the key is the name of a column, and the value is a mapping such as
            ``{"edges": [0, 18, 65], "missing": True}``, a list of categories, or the type ``bool``.
        """
        declared, csv, more = _declarations(columns)
        found, faults = [], []
        for name, declaration in declared:
            try:
                found.append(_column(name, declaration))
            except ValueError as error:
                faults.append(str(error))
        if faults:
            raise ValueError("\n".join(faults))
        schema = cls(*split(found), csv)
        return schema.declare(**more) if more else schema

    @classmethod
    def from_dtypes(cls, frame: pd.DataFrame | pl.DataFrame, missing: Sequence[str] = ()) -> Schema:
        """The schema that the types of the columns declare. No value is read.

        ``ValueError`` for a type other than those below, or without categories.

        Parameters
        ----------
        frame : pandas or polars DataFrame
            Each column has boolean type, pandas' categorical type (``pd.cut`` also makes this type,
            with intervals as categories) or polars' ``Enum``. The categories must come from public
            knowledge. After ``astype("category")`` the categories come from the records, and no
            guarantee holds.
        missing : sequence of str
            Columns in which values can be missing. Each gets a category for missing values.
        """
        names = list(frame.columns)
        if not all(isinstance(name, str) for name in names):
            raise ValueError(f"columns must have texts as names, got {names!r}")
        if isinstance(missing, str) or not set(missing) <= set(names):
            raise ValueError(f"missing must list columns of the frame, {names}, got {missing!r}")
        types = list(frame.schema.values()) if is_polars(frame) else list(frame.dtypes)
        gaps = [name in missing for name in names]
        return cls(tuple(map(_column_of_dtype, names, types, gaps)))

    def to_dict(self) -> dict[str, Any]:
        """The schema as the object of a schema file."""
        document = document_of((*self.columns, *self.skipped), self.csv)
        if self.impossible:
            document["impossible"] = [{n: list(own) for n, own in each} for each in self.impossible]
        for fine, coarse, parts in self.refines:
            inside = {level: list(own) for level, own in parts}
            document.setdefault("refines", {}).setdefault(fine, {})[coarse] = inside
        return document

    def to_json(self) -> str:
        """The schema as the text of a schema file, with one line for each column."""
        return document_text(self.to_dict())

    @classmethod
    def from_json(cls, text: str) -> Schema:
        """The schema from the text of a schema file.

        ``ValueError`` if the text is not JSON, an object has a key twice, or as for `from_dict`.
        """
        try:
            document = json.loads(text, object_pairs_hook=_distinct)
        except (ValueError, RecursionError) as error:  # ValueError also for very long numbers
            raise ValueError(f"a schema must be JSON: {error}") from error
        return cls.from_dict(document)


@dataclass(frozen=True)
class Table:
    """Columns crossed: their labelled levels, whose combinations in row-major order are cells."""

    columns: tuple[str, ...]
    levels: tuple[tuple[str, ...], ...]

    @property
    def n_cells(self) -> int:
        return math.prod(map(len, self.levels))


def places_of(tables: Sequence[Table]) -> list[slice]:
    """The place of each table among the cells of all of them."""
    ends = itertools.accumulate((table.n_cells for table in tables), initial=0)
    return [slice(*pair) for pair in itertools.pairwise(ends)]


def document_of(columns: Sequence[Column | SkippedColumn], csv: CsvFormat) -> dict[str, Any]:
    """The object of a schema file that declares nothing impossible."""
    written = {"csv": csv.to_dict()} if csv != COMMAS else {}
    declared = {column.name: column.to_dict() for column in columns}
    return {"format": FORMAT, "version": VERSION, **written, "columns": declared}


def document_text(document: Mapping[str, Any]) -> str:
    """The text of a schema file, with one line for each column and each declaration."""
    lines = {key: _line(key, value) for key, value in document.items()}
    columns = ",\n    ".join(_line(*each) for each in document["columns"].items())
    lines["columns"] = f'"columns": {{\n    {columns}\n  }}'
    return "{\n  " + ",\n  ".join(lines.values()) + "\n}"


def _line(name: str, declaration: object) -> str:
    return json.dumps({name: declaration}, ensure_ascii=False)[1:-1]


def _distinct(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """A JSON object; ``ValueError`` if a key occurs more than once."""
    names = [name for name, _ in pairs]
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"each key must occur once in an object, {repeated} occur more often")
    return dict(pairs)


def _declarations(
    document: object,
) -> tuple[list[tuple[object, object]], CsvFormat, dict[str, Any]]:
    """The columns (name, declaration), the format and what else is declared in a schema file."""
    if not isinstance(document, Mapping):
        raise ValueError(f"a schema must be an object; {REMEDY}")
    stated, columns = (document.get("format"), document.get("version")), document.get("columns")
    # A column is declared by a list or an object, so a text or number belongs to a file.
    if not any(isinstance(each, str | int) for each in stated):
        inside = columns.values() if isinstance(columns, Mapping) else ()
        if any(isinstance(each, Mapping) for each in inside):
            raise ValueError(f"a schema file must state its format and version; {REMEDY}")
        return list(document.items()), COMMAS, {}
    more = {key: document[key] for key in ("impossible", "refines") if key in document}
    known = set(document) <= {"format", "version", "columns", "csv", "$schema", *more}
    if known and stated == (FORMAT, VERSION) and isinstance(columns, Mapping):
        if not isinstance(more.get("impossible", []), list):
            raise ValueError(f"impossible must be a list, got {more['impossible']!r}")
        if not isinstance(more.get("refines", {}), Mapping):
            raise ValueError(f"refines must be an object, got {more['refines']!r}")
        return list(columns.items()), _csv(document.get("csv", {})), more
    if known and not more and stated == (FORMAT, 1) and isinstance(columns, list):
        return [_named(position, entry) for position, entry in enumerate(columns)], COMMAS, {}
    raise ValueError(
        f"a schema must have the format {FORMAT!r}, the version {VERSION}, an object of "
        f"columns and no other keys but csv, impossible and refines, got format {stated[0]!r}, "
        f"version {stated[1]!r} and the keys {list(document)}; {REMEDY}"
    )


def _csv(given: object) -> CsvFormat:
    known = [each.name for each in fields(CsvFormat)]
    if not isinstance(given, Mapping) or not set(given) <= set(known):
        raise ValueError(f'csv must be an object with the keys {known}, got {given!r}; write '
                         '"csv": {"separator": ";"}')  # fmt: skip
    return CsvFormat(**given)


def _named(position: int, entry: object) -> tuple[object, object]:
    if not isinstance(entry, Mapping) or "name" not in entry:
        raise ValueError(f"column number {position} must be an object with name and kind")
    return entry["name"], {key: value for key, value in entry.items() if key != "name"}


def split(
    columns: Sequence[Column | SkippedColumn],
) -> tuple[tuple[Column, ...], tuple[SkippedColumn, ...]]:
    """Columns, and apart from them those that are skipped."""
    kept = tuple(column for column in columns if not isinstance(column, SkippedColumn))
    return kept, tuple(column for column in columns if isinstance(column, SkippedColumn))


def _column(name: Any, declaration: object) -> Column | SkippedColumn:
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
    if not declaration or not isinstance(declaration, Mapping) or kind not in list(_EXAMPLES):
        lines = " or ".join(_line(name, example) for example in _EXAMPLES.values())
        raise ValueError(
            f"column {name!r} must be declared by bool, a list of categories or a mapping whose "
            f"kind is one of {', '.join(_EXAMPLES)}, got {declaration!r}; write {lines}"
        )
    column: type[Column | SkippedColumn] = _KINDS.get(kind, SkippedColumn)
    valid = dict(_EXAMPLES[kind])
    remedy = f"; write for example {_line(name, valid)}"
    del valid["kind"]
    keys = {each.name for each in fields(column)} - {"name"}
    known = {key: value for key, value in given.items() if key in keys}
    built, faults = None, []
    if len(known) < len(given) or not set(valid) <= set(known):
        faults.append(
            f"column {name!r}: kind {kind!r} must have the keys {sorted(valid)}, and no "
            f"others but {sorted(keys - set(valid))}, got {sorted(map(str, given))}"
        )
    # Each key is also checked beside a valid example, so that all faults are found. The two marks
    # of numbers are checked together, because they must differ.
    marks = {key: known[key] for key in ("decimal", "thousands") if key in known}
    alone = [{key: value} for key, value in known.items() if key not in marks]
    for values in [*alone, marks, known]:
        try:
            built = column(**{"name": name, **valid, **values})
        except ValueError as error:
            faults.append(str(error))
    if faults or built is None:
        raise ValueError("\n".join(fault + remedy for fault in dict.fromkeys(faults)))
    return built


def _column_of_dtype(name: str, dtype: Any, missing: bool) -> DiscreteColumn:
    """The column that a type of pandas or polars declares; ``ValueError`` if it declares none."""
    kind = str(dtype)
    if kind in ("bool", "boolean", "Boolean"):
        return BooleanColumn(name, missing=missing)
    # The categories of polars' type Categorical come from the records, so it is refused.
    categories = getattr(dtype, "categories", None)
    if categories is None or kind.startswith("Categorical"):
        raise ValueError(
            f"column {name!r} of type {kind} declares no categories: make it boolean, "
            "categorical (pandas) or Enum (polars) with publicly known categories, or declare it "
            "with Schema.from_dict"
        )
    if len(categories) == 0:
        raise ValueError(f"column {name!r} must declare at least 1 category, got 0")
    return CategoricalColumn(name, tuple(map(as_text, categories)), missing=missing)
