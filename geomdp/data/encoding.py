"""The code of a record: a function of that record and of the schema alone.

Values arrive as Arrow columns, whose types come from the file, the frame or the database. The code
of a value depends on the value, on its type and on the declaration of the column, never on
another value:

=================  ===========================================================================
stored value       text that is compared with categories, or read as a number
=================  ===========================================================================
text               the text itself, letter for letter
truth value        True or False
whole number       its decimal digits
other number       the shortest decimal that rounds to it, for example 2.5 (3.0 is written 3)
decimal            its decimal digits
date and time      2024-02-29, 08:15:30 or 2024-02-29 08:15:30.5, without zeros at the end of a
                   fraction; a time zone follows as +0100
missing            none: NULL, NaN, None, NaT and NA, and an empty field of a CSV file
=================  ===========================================================================

A column of numbers with bins or bounds takes whole and other numbers as they are. A whole number in
a column of floats may have been rounded by the program that wrote it, if it is so large that floats
no longer tell it from its neighbours. Such a number is an error in a categorical column. An error
counts the bad values of a chunk and names the first rows, from 0 over all chunks. It never shows a
value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from geomdp._typing import BoolArray, FloatArray, IntArray
from geomdp._validation import require_type
from geomdp.data.columns import (
    BOOLEAN_TEXTS,
    MISSING,
    BooleanColumn,
    CategoricalColumn,
    Column,
    DateColumn,
    NumericColumn,
    RealColumn,
    SkippedColumn,
    as_text,
    day_of,
    loosened,
    number_of,
)
from geomdp.data.frames import (
    FITTING,
    BadValues,
    RecordsError,
    batches_of,
    quiet,
    text_of_time,
    without_values,
)
from geomdp.data.possible import Forbidden, JoinedColumn
from geomdp.data.schema import Schema
from geomdp.workloads.universes import (
    BooleanCube,
    CategoricalProduct,
    FiniteUniverse,
    SymmetricCube,
    UnitBall,
    Universe,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from geomdp.data.frames import Tables

#: Notes which values (n,) of a column are bad, what they must be, and the remedy.
Note: TypeAlias = Callable[..., None]
#: A whole number written as a decimal fraction, such as "3.0". Some programs write 3 so.
WHOLE_FRACTION = re.compile(r"-?[0-9]+\.0*")
#: Marks of values without a code. Codes are 0 or larger.
ABSENT, UNFIT, ROUNDED, OUTSIDE = -1, -2, -3, -4
#: What values of some marks must be, and what the schema would need for values as they are.
WANTED = {
    ABSENT: "present",
    ROUNDED: "a whole number that a float cannot have rounded (store it as an integer or as text)",
}
MISSING_REMEDY = 'add "missing": true to the column'
TEXTS_REMEDY = 'if they stand for missing values, add them as "missing_texts": ["NA", ...]'
CATEGORY_REMEDY = (
    'add the categories to the column, or "other": true, or "loose": true if only blanks at the '
    "ends and the case of letters differ"
)
ORDER_REMEDY = f'add "order": "dmy" or "mdy" for texts such as 29/02/2024; {TEXTS_REMEDY}'
POSSIBLE_REMEDY = 'if such records exist, take the combination out of "impossible" or "refines"'
MARKS_REMEDY = f'add "decimal" and "thousands" for texts such as 1.234,50; {TEXTS_REMEDY}'


def encode(records: Tables, schema: Schema, universe: Universe) -> Iterator[npt.NDArray[Any]]:
    """Encode records for `universe`, chunk by chunk. A chunk is read only when it is needed.

    The code of a record depends on this record and on the schema alone.

    =====================  ====================================================================
    universe               columns of the schema that are used
    =====================  ====================================================================
    `CategoricalProduct`   the columns that the universe names, each discrete with the number of
                           levels that the universe states
    `BooleanCube`          all columns, in order, each discrete with 2 levels
    `FiniteUniverse`       all columns, discrete; an element is a combination of levels, and
                           combinations are numbered in row-major order
    `SymmetricCube`        all d columns, real, scaled to [-1, 1]
    `UnitBall`             all d columns, real, scaled to [-1, 1] and divided by sqrt(d), which
                           makes the norm at most 1
    =====================  ====================================================================

    Parameters
    ----------
    records : DataFrame of pandas or polars, Arrow table or batch, or iterable of them
        For instance from `read_chunks`. Columns are taken by name; those that the universe does not
        need are ignored.
    schema, universe : Schema, Universe
        Declares the columns; the universe of the workload to be answered.

    Returns
    -------
    iterator of array
        One array per chunk of n records: int64 codes (n, c) for c discrete columns, float64 (n, d)
        for d real columns, or int64 numbers (n,) of the elements of a `FiniteUniverse`.

    Raises
    ------
    ValueError
        At the call, if the schema was drafted from records or does not fit the universe. While
        chunks are read, with rows and columns, if a value does not fit its column or a record is
        declared impossible; also if a chunk is not a table, does not have each column once, or has
        one of a type without texts, such as lists.

    Examples
    --------
    >>> import pandas as pd
    >>> import geomdp as gd
    >>> schema = gd.data.Schema.from_dict({"smoker": bool, "age": {"edges": [0, 18, 65, 120]}})
    >>> records = pd.DataFrame({"age": [30, 70], "smoker": [True, False]})
    >>> next(gd.data.encode(records, schema, schema.universe()))
    array([[1, 1],
           [0, 2]])
    """
    columns = columns_for(universe, schema)
    failure = "the records cannot be read"
    codes = Read(schema, columns).codes(lambda names: quiet(batches_of(records, names), failure))
    return encoded(codes, columns, universe)


def column_codes(
    batches: Iterable[pa.RecordBatch], columns: Sequence[Column | SkippedColumn], tables: Forbidden
) -> Iterator[list[npt.NDArray[Any]]]:
    """For each batch, the codes, scaled values or texts (n,) of `columns`."""
    first_row = 0
    known = {column.name for column in columns}
    tables = {names: table for names, table in tables.items() if {*names} <= known}
    for batch in batches:
        bad = BadValues()
        values = [
            _readable(batch.column(i), column, first_row, bad) for i, column in enumerate(columns)
        ]
        if not bad:  # else some codes have no meaning
            codes: dict[str, Any] = {c.name: v for c, v in zip(columns, values, strict=True)}
            for names, table in tables.items():
                found, said = table[tuple(codes[name] for name in names)], "possible by the schema"
                bad.add(" x ".join(names), first_row, found, said, POSSIBLE_REMEDY)
        if bad:
            raise bad.error()
        first_row += batch.num_rows
        yield values


@dataclass(frozen=True)
class Read:
    """How records are read: the columns, some joined, and their schema."""

    schema: Schema
    columns: tuple[Column | JoinedColumn, ...]

    @property
    def levels(self) -> list[int]:
        return [len(column.labels) for column in self.columns if not isinstance(column, RealColumn)]

    def codes(
        self, batches: Callable[[list[str]], Iterable[pa.RecordBatch]], person: str | None = None
    ) -> Iterator[list[npt.NDArray[Any]]]:
        """For `batches` of named columns: the codes (n,) of each, and the texts of `person`."""
        last = [] if person is None else [SkippedColumn(person)]
        names = (c.names if isinstance(c, JoinedColumn) else (c.name,) for c in self.columns)
        parts = [*(self.schema.column(name) for own in names for name in own), *last]
        chunks = batches([column.name for column in parts])
        for values in column_codes(chunks, parts, self.schema.forbidden):
            left = iter(values)
            yield [
                c.numbers([np.asarray(next(left)) for _ in c.names])
                if isinstance(c, JoinedColumn)
                else next(left)
                for c in (*self.columns, *last)
            ]


def _readable(
    values: pa.Array, column: Column | SkippedColumn, first_row: int, bad: BadValues
) -> npt.NDArray[Any]:
    """The result of `column_values`, or an error that names the column and quotes no value."""
    rows = f"rows {first_row} to {first_row + len(values) - 1}"
    failure = f"column {column.name!r} cannot be read in {rows}"
    return without_values(lambda: column_values(values, column, first_row, bad), failure)


def column_values(
    values: pa.Array, column: Column | SkippedColumn, first_row: int, bad: BadValues
) -> npt.NDArray[Any]:
    """Codes (n,) of levels, numbers (n,) in [-1, 1] or texts; without meaning for `bad` values."""
    if not _has_texts(values.type):
        raise RecordsError(
            f"column {column.name!r} must hold texts, numbers, truth values, dates or times, got "
            f"the type {values.type}"
        )
    note = partial(bad.add, column.name, first_row)
    if isinstance(column, SkippedColumn):
        places, texts = distinct_texts(values)
        marks = np.array([0 if t and isinstance(t, str) else t or ABSENT for t in texts])[places]
        for mark, wanted in {**WANTED, UNFIT: FITTING}.items():
            note(marks == mark, wanted)
        return np.array(texts, dtype=object)[places]
    if isinstance(column, CategoricalColumn | BooleanColumn | DateColumn):
        return _coded(values, column, note)
    numbers, absent = _numbers(values, column, note)
    if isinstance(column, RealColumn):
        (low, high), remedy = column.bounds, 'widen "bounds" of the column, or add "clip": true'
        if column.clip:
            note(np.isinf(numbers), "finite")
            numbers = np.clip(numbers, low, high)
    else:
        low, high, remedy = column.edges[0], column.edges[-1], 'widen "edges" of the column'
    outside = (numbers < low) | (numbers > high)  # NaN is noted elsewhere, here and below
    note(outside, f"between {as_text(low)} and {as_text(high)}", remedy)
    if isinstance(column, RealColumn):
        note(absent, WANTED[ABSENT])
        return np.asarray(2 * ((numbers - low) / (high - low)) - 1)
    bins = np.searchsorted(column.edges, numbers, side="right") - 1
    bins = np.minimum(bins, len(column.edges) - 2).astype(np.int64)  # the last edge is inside
    if column.missing:
        bins[absent] = len(column.labels) - 1
    else:
        note(absent, WANTED[ABSENT], MISSING_REMEDY)
    return bins


def _coded(
    values: pa.Array, column: CategoricalColumn | BooleanColumn | DateColumn, note: Note
) -> IntArray:
    """The codes (n,) of texts that are categories, truth values or days of `column`."""
    places, texts = distinct_texts(values)
    if isinstance(column, DateColumn):
        code, wanted, remedy = _day_coder(column)
    else:
        code, wanted, remedy = _category_coder(column)
    missing = len(column.labels) - 1 if column.missing else ABSENT
    labels = {label: level for level, label in enumerate(column.labels)}

    def coded(text: str | int) -> int:
        if isinstance(text, int):
            return missing if text == ABSENT else text
        return missing if text in column.missing_texts else labels.get(text, code(text))

    found = np.array([coded(text) for text in texts], dtype=np.int64)[places]
    if len(found) and found.min() < 0:
        inside = f"a day between {' and '.join(getattr(column, 'days', ()))}"
        note(found == ABSENT, WANTED[ABSENT], MISSING_REMEDY)
        note(found == ROUNDED, WANTED[ROUNDED])
        note(found == UNFIT, wanted, remedy)
        note(found == OUTSIDE, inside, 'change "days" of the column')
    return found


def _category_coder(
    column: CategoricalColumn | BooleanColumn,
) -> tuple[Callable[[str], int], str, str]:
    """The code of a text, what a text must be, and what to write in the schema for others."""
    loose = isinstance(column, CategoricalColumn) and column.loose
    if isinstance(column, BooleanColumn):
        codes, unknown = BOOLEAN_TEXTS, UNFIT
        wanted, remedy = "true or false, yes or no, 0 or 1", TEXTS_REMEDY
    else:
        compared = (loosened(text) if loose else text for text in column.categories)
        codes = {text: code for code, text in enumerate(compared)}
        unknown = len(column.categories) if column.other else UNFIT
        wanted, remedy = "one of the declared categories", CATEGORY_REMEDY

    def code(text: str) -> int:
        found = loosened(text) if loose else text
        if found not in codes and WHOLE_FRACTION.fullmatch(found):
            found = found.partition(".")[0]
        return codes.get(found, unknown)

    return code, wanted, remedy


def _day_coder(column: DateColumn) -> tuple[Callable[[str], int], str, str]:
    """As `_category_coder`, for days."""
    codes = {label: code for code, label in enumerate(column.labels)}

    def code(text: str) -> int:
        day = day_of(text, column.order)
        if day is None:
            return UNFIT
        first, last = column.days
        return codes[column.period(day)] if first <= day.isoformat() <= last else OUTSIDE

    return code, "a day", ORDER_REMEDY


def _numbers(
    values: pa.Array, column: NumericColumn | RealColumn, note: Note
) -> tuple[FloatArray, BoolArray]:
    """The numbers (n,) of a column, NaN if missing or bad, and which values (n,) are missing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(values.type) and pa.types.is_primitive(values.type.value_type):
        values = values.dictionary_decode()
    if pa.types.is_integer(values.type) or pa.types.is_floating(values.type):
        numbers = _filled(pc.cast(values, pa.float64(), safe=False), np.nan)
        return numbers, np.isnan(numbers)
    if pa.types.is_union(values.type):
        places, stored = np.arange(len(values)), values.to_pylist()
    else:
        places, stored = distinct_texts(values)
    bins: dict[object, float] = {}
    texts: tuple[str, ...] = ()
    if isinstance(column, NumericColumn):
        bins = dict(zip(column.labels, column.edges[:-1], strict=False))
        texts = (*column.missing_texts, *[MISSING] * column.missing)
    gone = [v is None or v == ABSENT or v != v or v in texts for v in stored]
    absent = np.array(gone, dtype=bool)[places]
    # Marks of a text do not hold for the texts of other types, such as decimals.
    marks = (column.decimal, column.thousands) if _is_text(values.type) else (".", "")

    def number(value: object) -> float:
        if isinstance(value, str):
            return bins.get(value, number_of(value, *marks))
        return value if isinstance(value, float) else np.nan

    spelt = np.array([*map(number, stored)], dtype=np.float64)
    numbers = np.where(absent, np.nan, spelt[places])
    note(np.isnan(numbers) & ~absent, "a number", MARKS_REMEDY)
    return numbers, absent


def _is_text(kind: pa.DataType) -> bool:
    """Whether the values of an Arrow type are texts, or Python objects, which can be texts."""
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        return _is_text(kind.value_type)
    texts = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return pa.types.is_union(kind) or any(has(kind) for has in texts)


def _has_texts(kind: pa.DataType) -> bool:
    """Whether the values of an Arrow type have texts, by the table at the top of this file."""
    import pyarrow as pa

    types = pa.types
    if types.is_dictionary(kind):
        return _has_texts(kind.value_type)
    if isinstance(kind, pa.BaseExtensionType):
        return _has_texts(kind.storage_type)
    if types.is_union(kind):
        return kind.mode == "dense" and [f.type for f in kind] == [pa.large_string(), pa.float64()]
    if types.is_temporal(kind):
        return not (types.is_duration(kind) or types.is_interval(kind))
    simple = (types.is_null, types.is_boolean, types.is_integer, types.is_floating)
    texts = (types.is_string, types.is_large_string, types.is_string_view, types.is_decimal)
    return any(has(kind) for has in simple + texts)


def distinct_texts(values: pa.Array) -> tuple[IntArray, list[str | int]]:
    """Places (n,) in a list of distinct texts, or of marks of values that have none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(values, pa.ExtensionArray):
        values = values.storage
    if pa.types.is_union(values.type):
        return np.arange(len(values)), _texts(values)
    if not pa.types.is_dictionary(values.type):
        # Arrow cannot look up the values of these types; the texts stay the same.
        if pa.types.is_float16(values.type):
            values = values.cast(pa.float32())
        elif pa.types.is_string_view(values.type):
            values = values.cast(pa.large_string())
        values = values.dictionary_encode()
    texts = [*_texts(values.dictionary), ABSENT]
    return _filled(pc.cast(values.indices, pa.int64()), len(texts) - 1), texts


def _filled(values: pa.Array, fill: float) -> npt.NDArray[Any]:
    """Arrow numbers (n,) of 64 bits as a NumPy array, with `fill` for NULL, without pandas."""
    import pyarrow as pa
    import pyarrow.compute as pc

    dtype = np.float64 if pa.types.is_floating(values.type) else np.int64
    if len(values) == 0:
        return np.empty(0, dtype)
    stored = np.frombuffer(values.buffers()[1], dtype)[values.offset :][: len(values)]
    if values.null_count == 0:
        return stored
    return np.where(np.from_dlpack(pc.cast(values.is_null(), pa.uint8())) == 1, fill, stored)


def _texts(values: pa.Array) -> list[str | int]:
    """The text of each value, by the table at the top of this file."""
    import pyarrow as pa

    kind, types = values.type, pa.types
    if types.is_temporal(kind):
        # `to_pylist` would fail for times that Python cannot represent, and its errors quote them.
        # Arrow writes them as "<value out of range: ...>".
        return [
            ABSENT if text is None else UNFIT if text.startswith("<") else text_of_time(text)
            for text in values.cast(pa.string()).to_pylist()
        ]
    if types.is_union(kind) or types.is_floating(kind):
        limit = 2.0 ** (53 if types.is_union(kind) else {16: 11, 32: 24, 64: 53}[kind.bit_width])
        return [
            value if isinstance(value, str) else _text_of_float(value, limit)
            for value in values.to_pylist()
        ]
    return [ABSENT if value is None else as_text(value) for value in values.to_pylist()]


def _text_of_float(value: float | None, limit: float) -> str | int:
    """The text of a float; `limit` is the first whole number that may be a rounded one."""
    if value is None or value != value:  # NaN alone differs from itself
        return ABSENT
    return ROUNDED if abs(value) >= limit and value.is_integer() else as_text(value)


def columns_for(universe: Universe, schema: Schema) -> tuple[Column | JoinedColumn, ...]:
    """The columns, some joined, of a record of `universe`; ``ValueError`` for no fit."""
    require_type(schema, Schema, "schema")
    schema.check_public()
    match universe:
        case CategoricalProduct():
            joined = {} if set(universe.names) <= set(schema.names) else schema.joined
            return tuple(
                _with_levels(joined.get(name) or schema.column(name), levels)
                for name, levels in universe.columns.items()
            )
        case FiniteUniverse(N=size):
            if schema.real_columns:
                names = [column.name for column in schema.real_columns]
                raise ValueError(f"{universe!r} takes discrete columns only, not {names}")
            combinations = CategoricalProduct(schema.levels).size
            if combinations != size:
                raise ValueError(
                    f"{universe!r} must have one element per combination of the columns "
                    f"{list(schema.names)}; there are {combinations} combinations"
                )
            return schema.columns
        case BooleanCube(d=d) | SymmetricCube(d=d) | UnitBall(d=d):
            if len(schema.columns) != d:
                raise ValueError(
                    f"{universe!r} must have one dimension per column of the schema, "
                    f"which has {len(schema.columns)}"
                )
            if isinstance(universe, BooleanCube):
                return tuple(_with_levels(column, 2) for column in schema.columns)
            if schema.discrete_columns:
                raise ValueError(f"{universe!r} takes real columns only, not {list(schema.levels)}")
            return schema.columns
    raise ValueError(f"records cannot be encoded for {universe!r}")


def _with_levels(column: Column | JoinedColumn, levels: int) -> Column | JoinedColumn:
    """Return `column`; ``ValueError`` if it is real or has another number of levels."""
    said = f"column {column.name!r} must"
    if isinstance(column, RealColumn):
        raise ValueError(f"{said} be discrete for this universe, but it is real")
    if len(column.labels) != levels:
        raise ValueError(f"{said} have {levels} levels, the schema has {len(column.labels)}")
    return column


def encoded(
    chunks: Iterator[list[npt.NDArray[Any]]],
    columns: tuple[Column | JoinedColumn, ...],
    universe: Universe,
) -> Iterator[npt.NDArray[Any]]:
    for values in chunks:
        match universe:
            case FiniteUniverse():
                levels = tuple(len(c.labels) for c in columns if not isinstance(c, RealColumn))
                yield np.asarray(np.ravel_multi_index(np.stack(values), levels), dtype=np.int64)
            case UnitBall(d=d):
                yield np.stack(values, axis=1) / np.sqrt(d)
            case _:
                yield np.stack(values, axis=1)
