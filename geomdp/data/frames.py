"""Sources of records, and data frames as sources. All records travel as Arrow batches, whose types
come from the frame or file, never from the values, so that no value changes how others are read.
"""

from __future__ import annotations

import abc
import datetime
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard, TypeVar

import numpy as np

from geomdp._typing import BoolArray
from geomdp.data.columns import CsvFormat, as_text

if TYPE_CHECKING:
    import dask.dataframe as dd
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    Table: TypeAlias = pd.DataFrame | pl.DataFrame | pa.Table | pa.RecordBatch
    #: One table of records, or an iterable of chunks of one table.
    Tables: TypeAlias = Table | Iterable[Table]

#: Largest number of rows of a chunk. A chunk of a hundred columns of short texts is below 1 GB.
CHUNK_ROWS = 1 << 17
#: Largest number of rows that one line of an error names.
NAMED = 5
#: A fraction of a second, as Arrow writes it, with zeros at its end.
ZEROS = re.compile(r"(:[0-9]{2})(?:\.0+|(\.[0-9]*?)0+)(?![0-9])")
#: What Python objects in a data frame must be, for error messages.
FITTING = "text in Unicode, a number, a truth value, a date or a time"
_UNFIT = object()

Result = TypeVar("Result")


class RecordsError(ValueError):
    """An error about records that quotes no value: its message has only names, rows and types."""


def without_values(read: Callable[[], Result], failure: str) -> Result:
    """The result of `read`, or a `RecordsError` that says `failure` and the type of error, without
    cause and context, which can quote values. An `OSError` of the system passes: it names a file.
    """
    try:
        return read()
    except (RecordsError, MemoryError):
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        kind = type(error).__name__
    raise RecordsError(f"{failure} ({kind})")


def quiet(batches: Iterator[pa.RecordBatch], failure: str) -> Iterator[pa.RecordBatch]:
    """The same batches, with the errors of `without_values`."""
    while (batch := without_values(lambda: next(batches, None), failure)) is not None:
        yield batch


@dataclass
class _Fault:
    """How many values of one column are wrong, where, and the remedy; not the private values."""

    remedy: str
    rows: list[int] = field(default_factory=list)
    count: int = 0


@dataclass
class BadValues:
    """The bad values of a chunk. An error has one line for each kind of fault of each column."""

    faults: dict[tuple[str, str], _Fault] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.faults)

    def add(
        self, column: str, first_row: int, bad: BoolArray, wanted: str, remedy: str = ""
    ) -> None:
        """Count the `bad` (n,) values of a column; value i is in row ``first_row + i``."""
        found = np.flatnonzero(bad)
        if len(found) == 0:
            return
        fault = self.faults.setdefault((wanted, column), _Fault(remedy))
        fault.rows += [first_row + int(row) for row in found[: NAMED - len(fault.rows)]]
        fault.count += len(found)

    def error(self) -> RecordsError:
        """An error that counts the bad values."""
        lines = []
        for (wanted, column), fault in sorted(self.faults.items(), key=lambda f: f[1].rows[0]):
            counted = "rows are counted from 0, without the header"
            if fault.count > len(fault.rows):
                counted += f"; at least {fault.count:,} in all"
            first, *others = map(str, fault.rows)
            nor = f", nor is row {others[0]}" if others else ""
            if len(others) > 1:
                nor = f", nor are rows {', '.join(others[:-1])} and {others[-1]}"
            where = f"row {first}, column {column!r} is not{nor}"
            remedy = f"; {fault.remedy}" if fault.remedy else ""
            lines.append(f"records must be {wanted}: {where} ({counted}){remedy}")
        return RecordsError("\n".join(lines))


class Source(abc.ABC):
    """Records that can be read more than once. The constructor of a source reads none."""

    @property
    @abc.abstractmethod
    def name(self) -> str:
        """Name of the records in messages."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name})"

    @property
    def parts(self) -> tuple[Source, ...]:
        """The parts of this source, in order. A cluster reads each part separately."""
        return (self,)

    def written_as(self, csv: CsvFormat) -> Source:
        """The same records. If they are CSV files, `csv` says how they are written."""
        del csv
        return self

    def chunks(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Chunks of the chosen columns, each made when it is needed; errors quote no value."""
        for batch in quiet(self._batches(columns), f"{self.name} cannot be read"):
            if batch.num_rows > 0:
                yield batch

    def _batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The batches of `chunks`; errors may quote values, and batches may be empty."""
        for part in self.parts:
            yield from part.chunks(columns)


@dataclass(frozen=True, repr=False, eq=False)
class Frame(Source):
    """A data frame of pandas or polars, or an Arrow table."""

    frame: Table

    @property
    def name(self) -> str:
        return f"{type(self.frame).__name__} of {_length(self.frame)} rows"

    def _batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        return batches_of(self.frame, columns)


@dataclass(frozen=True, repr=False, eq=False)
class Partitions(Source):
    """The partitions of a Dask DataFrame, in order."""

    frame: dd.DataFrame

    @property
    def name(self) -> str:
        return f"Dask DataFrame of {self.frame.npartitions} partitions"

    @property
    def parts(self) -> tuple[Source, ...]:
        frame: Any = self.frame  # Dask's methods have no type annotations
        delayed = frame.to_delayed()
        return tuple(Partition(number, part) for number, part in enumerate(delayed))


@dataclass(frozen=True, repr=False, eq=False)
class Partition(Source):
    """One partition. Reading computes the partition and brings its records into this process."""

    number: int
    delayed: Any

    @property
    def name(self) -> str:
        return f"partition {self.number}"

    def _batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        return batches_of(self.delayed.compute(), columns)


# Polars and Dask are optional, so they are not imported.


def is_polars(frame: object) -> TypeGuard[pl.DataFrame]:
    return _is(frame, "polars", "DataFrame")


def is_dask(records: object) -> TypeGuard[dd.DataFrame]:
    return _is(records, "dask", "DataFrame")


def is_frame(records: object) -> bool:
    """Whether this is a data frame or Arrow table; ``ValueError`` for a LazyFrame of polars."""
    if _is(records, "polars", "LazyFrame"):
        raise RecordsError("records must be DataFrames, got a LazyFrame: call its collect() first")
    return is_polars(records) or _is(records, "pandas", "DataFrame") or _is_arrow(records)


def _is_arrow(records: object) -> bool:
    return _is(records, "pyarrow", "Table") or _is(records, "pyarrow", "RecordBatch")


def _is(value: object, library: str, name: str) -> bool:
    kind = type(value)
    return kind.__name__ == name and kind.__module__.partition(".")[0] == library


def _length(frame: Any) -> int:
    return frame.num_rows if _is_arrow(frame) else len(frame)


def batches_of(records: Tables, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The given columns as Arrow batches of at most `CHUNK_ROWS` rows."""
    first_row = 0
    for chunk in [records] if is_frame(records) else records:
        if not is_frame(chunk):
            raise RecordsError(f"records must be DataFrames, got {type(chunk).__name__}")
        frame: Any = chunk
        found = list(frame.schema.names if _is_arrow(frame) else frame.columns)
        check_columns(columns, found, "records")
        if is_polars(frame):
            frame = frame.select(columns).to_arrow()
        if not _is_arrow(frame):
            places = [found.index(name) for name in columns]
            yield from _pandas_batches(frame, columns, places, first_row)
        elif _is(frame, "pyarrow", "Table"):
            yield from frame.select(list(columns)).to_batches(CHUNK_ROWS)
        else:
            yield frame.select(list(columns))
        first_row += _length(frame)


def check_columns(columns: Sequence[str], found: Sequence[str], where: str) -> None:
    """``ValueError`` unless each of `columns` is once among those `found`."""
    for name in columns:
        if (times := found.count(name)) != 1:
            raise RecordsError(f"{where} must have the column {name!r} once, got {times} times")


def _pandas_batches(
    frame: pd.DataFrame, columns: Sequence[str], places: Sequence[int], first_row: int
) -> Iterator[pa.RecordBatch]:
    """Batches of the columns at `places` of a pandas frame, under the names `columns`."""
    import pyarrow as pa

    for start in range(0, max(len(frame), 1), CHUNK_ROWS):
        rows, arrays, bad = frame.iloc[start : start + CHUNK_ROWS], [], BadValues()
        for place, name in zip(places, columns, strict=True):
            array, unfit = _arrow_array(rows.iloc[:, place])
            arrays.append(array)
            bad.add(name, first_row + start, unfit, FITTING)
        if bad:
            raise bad.error()
        yield pa.RecordBatch.from_arrays(arrays, names=list(columns))


def _arrow_array(series: pd.Series[Any] | pd.Index[Any]) -> tuple[pa.Array, BoolArray]:
    """A pandas column (n,) in Arrow's memory, of its own type; true where not `FITTING` (n,)."""
    import pandas as pd
    import pyarrow as pa

    dtype, unfit = series.dtype, np.zeros(len(series), dtype=bool)
    if isinstance(dtype, pd.CategoricalDtype):
        codes = np.asarray(pd.Categorical(series).codes)
        levels, unfit = _arrow_array(dtype.categories)
        array = pa.DictionaryArray.from_arrays(pa.array(codes, mask=codes < 0), levels)
        return array, np.append(unfit, False)[codes]  # the code of a missing value is -1
    if isinstance(dtype, np.dtype) and dtype.kind in "biufM":
        native = series.to_numpy().astype(dtype.newbyteorder("="), copy=False)
        return pa.array(native, from_pandas=dtype.kind == "M"), unfit  # NaT is missing
    if isinstance(dtype, pd.StringDtype | pd.ArrowDtype | pd.BooleanDtype) or (
        dtype.kind in "iuf" and not isinstance(dtype, np.dtype | pd.SparseDtype)
    ):
        array = pa.array(series)
        return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array, unfit
    return _union(list(series))


def _union(values: list[Any]) -> tuple[pa.Array, BoolArray]:
    """Objects (n,) as a union of texts and floats, each by itself; which are not `FITTING`."""
    import pyarrow as pa

    def converted_alone(value: Any) -> str | float | object | None:
        try:
            return _text_or_float(value)
        except Exception:  # any error of any library; it can quote the value
            return _UNFIT

    converted = [converted_alone(value) for value in values]
    is_float = np.array([isinstance(value, float) for value in converted], dtype=bool)
    unfit = np.array([value is _UNFIT for value in converted], dtype=bool)
    texts = [value if isinstance(value, str) else None for value in converted]
    offsets = np.arange(len(values), dtype=np.int32)
    floats = [value if isinstance(value, float) else None for value in converted]
    kinds = pa.array(is_float.astype(np.int8))
    children = [pa.array(texts, type=pa.large_string()), pa.array(floats, type=pa.float64())]
    union = pa.UnionArray.from_dense(kinds, pa.array(offsets), children, ["text", "float"])
    return union, unfit


def _text_or_float(value: Any) -> str | float | object | None:
    """A Python object as text or float, None if it is missing, `_UNFIT` if it is another object."""
    import pandas as pd
    import pyarrow as pa

    match value:
        case str():
            value.encode()  # fails for a lone surrogate, which UTF-8 cannot write
            return str(value)
        case float() | np.floating():
            return float(value)
        case np.datetime64() | np.timedelta64() if np.isnat(value):
            return None
        case np.timedelta64():  # a whole number for NumPy
            return _UNFIT
        case bool() | int() | np.bool_() | np.integer():
            return as_text(value)
        case None | Decimal() if value is None or value.is_nan():
            return None
        case Decimal() | pd.Interval() | pd.Period():
            return as_text(value)
        case _ if value is pd.NA or value is pd.NaT:
            return None
        case datetime.date() | datetime.time() | np.datetime64():
            scalar = pd.Timestamp(value) if isinstance(value, np.datetime64) else value
            return text_of_time(pa.array([scalar], from_pandas=True).cast(pa.string())[0].as_py())
    return _UNFIT


def text_of_time(text: str) -> str:
    """The text of a date or time: Arrow's, without zeros at the end of a fraction."""
    return ZEROS.sub(r"\1\2", text)
