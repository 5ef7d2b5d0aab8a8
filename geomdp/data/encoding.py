"""Encode stored records as records of the universe of a workload.

An error names the rows (counted from 0 over all chunks) and columns of up to ten bad values, but
never a value itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from geomdp._typing import FloatArray, IntArray
from geomdp._validation import require_type
from geomdp.data.bad_values import BadValues
from geomdp.data.column_values import column_values, numbers_of
from geomdp.data.columns import Column, RealColumn
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

#: Largest number of chunks that are searched for more bad values after the first chunk with a bad
#: value. With chunks of 32,768 rows, 64 chunks hold two million rows.
SEARCHED = 64

Read = TypeVar("Read")

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

    #: One table of records, or an iterable of chunks of one table.
    Tables: TypeAlias = pd.DataFrame | pl.DataFrame | Iterable[pd.DataFrame | pl.DataFrame]


def encode(records: Tables, schema: Schema, universe: Universe) -> Iterator[npt.NDArray[Any]]:
    """Encode records for `universe`, chunk by chunk. A chunk is read only when it is needed.

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
    records : DataFrame of pandas or polars, or iterable of them
        For instance from `read_chunks`. Columns are taken by name. Columns that the universe does
        not need are ignored.
    schema : Schema
        Declares the columns.
    universe : Universe
        The universe of the workload to be answered.

    Returns
    -------
    iterator of array
        One array per chunk of n records: int64 codes (n, c) for c discrete columns, float64 (n, d)
        for d real columns, or int64 numbers (n,) of the elements of a `FiniteUniverse`.

    Raises
    ------
    ValueError
        At the call, if the schema does not fit the universe. While chunks are read, if a value does
        not fit its column: an unknown category, a missing value that the column does not declare, a
        text that is not a number, a number outside the edges, or a number outside bounds to which
        the column does not clip. Such an error names rows and columns. Also while chunks are read,
        if a chunk is not a DataFrame, lacks a column, or has two columns of the same name.

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
    return _encoded(column_codes(records, columns), columns, universe)


def numeric_chunks(records: Tables) -> Iterator[pd.DataFrame]:
    """Chunks with every column as float64, for files that contain codes already.

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
        For values that are missing or not numbers. The error names rows and columns.

    Examples
    --------
    >>> import pandas as pd
    >>> import geomdp as gd
    >>> pd.DataFrame({"x": [0, 1], "y": [2, 3]}).to_csv("codes.csv", index=False)
    >>> next(gd.data.numeric_chunks(gd.data.read_chunks("codes.csv"))).to_numpy()
    array([[0., 2.],
           [1., 3.]])
    """
    import pandas as pd

    def read(chunk: pd.DataFrame, rows: IntArray, bad: BadValues) -> pd.DataFrame:
        numbers = np.empty(chunk.shape)
        for position, name in enumerate(chunk.columns):
            numbers[:, position] = numbers_of(chunk.iloc[:, position], str(name), rows, bad)
        return pd.DataFrame(numbers, index=chunk.index, columns=chunk.columns)

    return _checked(records, read)


def column_codes(
    records: Tables, columns: Sequence[Column]
) -> Iterator[list[IntArray | FloatArray]]:
    """For each chunk, yield the codes or scaled values (n,) of each column.

    Errors are as in `encode`.
    """

    def read(chunk: pd.DataFrame, rows: IntArray, bad: BadValues) -> list[IntArray | FloatArray]:
        return [column_values(_series(chunk, c.name), c, rows, bad) for c in columns]

    return _checked(records, read)


def _checked(
    records: Tables, read: Callable[[pd.DataFrame, IntArray, BadValues], Read]
) -> Iterator[Read]:
    """Yield the result of `read` for each chunk, until a chunk has a bad value.

    `read` gets the chunk, the row numbers of its records and a `BadValues` to fill. After the first
    chunk with a bad value, up to `SEARCHED` more chunks are searched for bad values. Then a
    ``ValueError`` names the first bad values.
    """
    first_row, searched, bad = 0, 0, BadValues()
    for chunk in _chunks(records):
        result = read(chunk, np.arange(first_row, first_row + len(chunk)), bad)
        first_row += len(chunk)
        if not bad:
            yield result
        elif bad.enough or searched == SEARCHED:
            break
        else:
            searched += 1
    if bad:
        raise bad.error()


def columns_for(universe: Universe, schema: Schema) -> tuple[Column, ...]:
    """The columns of `schema` that make up a record of `universe`, in the order of the universe.

    Raise ``ValueError`` if `schema` has the wrong type or does not fit the universe.
    """
    require_type(schema, Schema, "schema")
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
                    f"{list(schema.names)}; there are {combinations} combinations"
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
    """Return `column`; ``ValueError`` if it is real or has another number of levels."""
    if isinstance(column, RealColumn):
        raise ValueError(
            f"column {column.name!r} must be discrete for this universe, but it is real"
        )
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
    """The column called `name`; ``ValueError`` if there is no such column, or more than one."""
    places = np.flatnonzero(chunk.columns == name)
    if len(places) != 1:
        raise ValueError(f"records must have the column {name!r} once, got {len(places)} times")
    return chunk.iloc[:, int(places[0])]
