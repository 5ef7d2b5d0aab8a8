"""From records as they are stored to records as a workload's universe takes them.

An error names row (counted from 0 over all chunks) and column, never the value.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from geomdp._typing import BoolArray, FloatArray, IntArray
from geomdp.data.columns import (
    BOOLEAN_TEXTS,
    BooleanColumn,
    CategoricalColumn,
    Column,
    NumericColumn,
    RealColumn,
    as_text,
)
from geomdp.data.dtypes import is_lazy, is_polars
from geomdp.data.schema import Schema
from geomdp.workloads.universe.universes import (
    BooleanCube,
    CategoricalProduct,
    FiniteUniverse,
    SymmetricCube,
    UnitBall,
    Universe,
)

#: A whole number written as a decimal fraction.
WHOLE = re.compile(r"-?[0-9]+\.0*")

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

    #: One table of records, or chunks of it.
    Tables: TypeAlias = pd.DataFrame | pl.DataFrame | Iterable[pd.DataFrame | pl.DataFrame]


def encode(records: Tables, schema: Schema, universe: Universe) -> Iterator[npt.NDArray[Any]]:
    """Records in the encoding of `universe`, chunk by chunk, each when asked for.

    =====================  ====================================================================
    universe               uses
    =====================  ====================================================================
    `CategoricalProduct`   the discrete columns of its names, with its numbers of levels
    `BooleanCube`          all columns of the schema, in order, each discrete with 2 levels
    `FiniteUniverse`       all columns, discrete; the row-major number of their combination
    `SymmetricCube`        all columns, real
    `UnitBall`             all columns, real, divided by sqrt(d) so that the norm is at most 1
    =====================  ====================================================================

    Parameters
    ----------
    records : DataFrame of pandas or polars, or iterable of them
        For instance from `read_chunks`. Columns are taken by name; others are not looked at.
    schema : Schema
        Declares the columns.
    universe : Universe
        The universe of the workload to be answered.

    Returns
    -------
    iterator of array
        One record array per chunk: (n, c) or (n,) int64 codes, or (n, d) float64.

    Raises
    ------
    ValueError
        At once: the schema does not fit the universe. While reading, naming row and column: an
        unknown category, a missing value, not a number, a value outside edges or bounds; or a
        column that a chunk lacks or has twice.
    """
    columns = columns_for(universe, schema)
    return _encoded(column_codes(records, columns), columns, universe)


def numeric_chunks(records: Tables) -> Iterator[pd.DataFrame]:
    """Chunks with every column as float64, for files that hold codes already.

    Parameters
    ----------
    records : DataFrame or iterable of DataFrame
        For instance from `read_chunks`.

    Returns
    -------
    iterator of DataFrame
        The same columns and rows.

    Raises
    ------
    ValueError
        A value that is missing or not a number; names row and column.
    """
    import pandas as pd

    first_row = 0
    for chunk in _chunks(records):
        numbers = np.empty(chunk.shape)
        rows = np.arange(first_row, first_row + len(chunk))
        for position, name in enumerate(chunk.columns):
            numbers[:, position] = _numbers(chunk.iloc[:, position], str(name), rows)
        yield pd.DataFrame(numbers, index=chunk.index, columns=chunk.columns)
        first_row += len(chunk)


def column_codes(
    records: Tables, columns: Sequence[Column]
) -> Iterator[list[IntArray | FloatArray]]:
    """Chunk by chunk, the codes or scaled values (n,) of each column; errors as `encode`."""
    first_row = 0
    for chunk in _chunks(records):
        yield [_encode_column(_series(chunk, column.name), column, first_row) for column in columns]
        first_row += len(chunk)


def columns_for(universe: Universe, schema: Schema) -> tuple[Column, ...]:
    """The columns of `schema` that make up a record of `universe`, in its order.

    ``ValueError`` if the schema does not fit the universe.
    """
    match universe:
        case CategoricalProduct():
            return tuple(
                _with_levels(schema.column(name), levels)
                for name, levels in universe.columns.items()
            )
        case BooleanCube(d=d) if len(schema.columns) == d:
            return tuple(_with_levels(column, 2) for column in schema.columns)
        case FiniteUniverse(N=size):
            combinations = CategoricalProduct(_discrete(schema, universe)).size
            if combinations != size:
                raise ValueError(
                    f"{universe!r} must have one element per combination of the columns "
                    f"{list(schema.names)}, which are {combinations}"
                )
            return schema.columns
        case SymmetricCube(d=d) | UnitBall(d=d) if len(schema.columns) == d:
            if schema.discrete_columns:
                raise ValueError(f"{universe!r} takes real columns only, not {list(schema.levels)}")
            return schema.columns
        case BooleanCube() | SymmetricCube() | UnitBall():
            raise ValueError(
                f"{universe!r} must have one dimension per column of the schema, "
                f"which has {len(schema.columns)}"
            )
        case _:
            raise ValueError(f"records cannot be encoded for {universe!r}")


def _discrete(schema: Schema, universe: Universe) -> dict[str, int]:
    if schema.real_columns:
        names = [column.name for column in schema.real_columns]
        raise ValueError(f"{universe!r} takes discrete columns only, not {names}")
    return schema.levels


def _with_levels(column: Column, levels: int) -> Column:
    """`column`, checked to be discrete with the number of levels that the universe has."""
    if isinstance(column, RealColumn):
        raise ValueError(f"column {column.name!r} must be discrete here, it is real")
    if len(column.labels) != levels:
        raise ValueError(
            f"column {column.name!r} must have {levels} levels, the schema has {len(column.labels)}"
        )
    return column


def _chunks(records: Tables) -> Iterator[pd.DataFrame]:
    import pandas as pd

    if is_lazy(records):
        raise ValueError("records must be DataFrames, got a LazyFrame: call its collect() first")
    whole = isinstance(records, pd.DataFrame) or is_polars(records)
    for chunk in [records] if whole else records:
        frame = chunk.to_pandas() if is_polars(chunk) else chunk
        if not isinstance(frame, pd.DataFrame):
            raise ValueError(f"records must be DataFrames, got {type(chunk).__name__}")
        yield frame


def _encoded(
    chunks: Iterator[list[IntArray | FloatArray]], columns: tuple[Column, ...], universe: Universe
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


def _series(chunk: pd.DataFrame, name: str) -> pd.Series[Any]:
    """The one column called `name`."""
    places = np.flatnonzero(chunk.columns == name)
    if len(places) != 1:
        raise ValueError(f"records must have the column {name!r} once, got {len(places)} times")
    return chunk.iloc[:, int(places[0])]


def _encode_column(series: pd.Series[Any], column: Column, first_row: int) -> IntArray | FloatArray:
    """Codes or scaled values (n,) of a column; missing values have the last code where declared."""
    rows = np.arange(first_row, first_row + len(series))
    if isinstance(column, RealColumn) or not column.missing:
        return _encode_present(series, column, rows)
    present = series.notna().to_numpy(dtype=bool)
    codes = np.full(len(series), len(column.labels) - 1)
    codes[present] = _encode_present(series[present], column, rows[present])
    return codes


def _encode_present(
    series: pd.Series[Any], column: Column, rows: IntArray
) -> IntArray | FloatArray:
    """Codes or scaled values of the records number `rows`, none of which may be missing."""
    match column:
        case CategoricalColumn(name=name, categories=categories):
            codes = {text: code for code, text in enumerate(categories)}
            other = len(categories) if column.other else None
            wanted = "one of the declared categories"
            return _coded(series, codes, name, rows, wanted, other)
        case BooleanColumn(name=name):
            return _coded(series, BOOLEAN_TEXTS, name, rows, "0, 1, true or false")
        case NumericColumn(name=name, edges=edges):
            values = _numbers(series, name, rows)
            _check_range(values, edges[0], edges[-1], name, rows)
            # The last edge itself belongs to the last bin.
            bins = np.searchsorted(edges, values, side="right") - 1
            return np.minimum(bins, len(edges) - 2).astype(np.int64)
        case RealColumn(name=name, bounds=(low, high)):
            values = _numbers(series, name, rows)
            if column.clip:
                _refuse(~np.isfinite(values), "finite", name, rows)
                values = np.clip(values, low, high)
            _check_range(values, low, high, name, rows)
            return 2 * ((values - low) / (high - low)) - 1


def _coded(
    series: pd.Series[Any],
    codes: Mapping[str, int],
    name: str,
    rows: IntArray,
    wanted: str,
    other: int | None = None,
) -> IntArray:
    """Codes (n,) of the texts of a column; texts without one have the code `other`, if given."""
    places, texts = distinct_texts(series, name, rows)
    unknown = -1 if other is None else other
    distinct = np.array([_code(text, codes, unknown) for text in texts], dtype=np.int64)
    found = distinct[places]
    _refuse(found < 0, wanted, name, rows)
    return found


def _code(text: str, codes: Mapping[str, int], unknown: int) -> int:
    """The code of a text; "3.0" counts as "3" unless it is a category of its own.

    A file spells whole numbers so where a column with a missing value was written as floats.
    """
    if text not in codes and WHOLE.fullmatch(text):
        text = text.partition(".")[0]
    return codes.get(text, unknown)


def _numbers(series: pd.Series[Any], name: str, rows: IntArray) -> FloatArray:
    """A column as float64 (n,), infinities included."""
    if series.dtype.kind in "iuf":
        _refuse_missing(series, name, rows)
        return series.to_numpy(dtype=np.float64)
    places, texts = distinct_texts(series, name, rows)
    numbers = np.array([parsed(text) for text in texts], dtype=np.float64)[places]
    _refuse(np.isnan(numbers), "a number", name, rows)
    return numbers


def distinct_texts(series: pd.Series[Any], name: str, rows: IntArray) -> tuple[IntArray, list[str]]:
    """Texts of a column: `texts[places]`; few distinct ones make this cheap.

    `rows` (n,) are the numbers of the records, for the error about a missing value.
    """
    import pandas as pd

    _refuse_missing(series, name, rows)
    if series.dtype == object:
        # Hashing would take True, 1 and 1.0 for one value; their texts differ.
        series = pd.Series([as_text(value) for value in series], dtype=object)
    places, distinct = pd.factorize(series)
    return places.astype(np.int64), [as_text(value) for value in distinct]


def parsed(text: str) -> float:
    """The number a text spells, NaN if none; Python's own grouping "1_000" is not a number."""
    try:
        return float("nan" if "_" in text else text)
    except ValueError:
        return float("nan")


def _check_range(values: FloatArray, low: float, high: float, name: str, rows: IntArray) -> None:
    outside = (values < low) | (values > high)
    _refuse(outside, f"between {as_text(low)} and {as_text(high)}", name, rows)


def _refuse_missing(series: pd.Series[Any], name: str, rows: IntArray) -> None:
    _refuse(series.isna().to_numpy(dtype=bool), "present", name, rows)


def _refuse(bad: BoolArray, wanted: str, name: str, rows: IntArray) -> None:
    """``ValueError`` naming the first of the records `rows` where `bad` (n,) is True."""
    if bad.any():
        row = int(rows[np.argmax(bad)])
        raise ValueError(
            f"records must be {wanted}: row {row}, column {name!r} is not (rows count from 0, the "
            "header does not count)"
        )
