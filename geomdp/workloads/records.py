"""Reading records: arrays, DataFrames and lazy chunks of them, as numeric NumPy arrays."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import pandas as pd

#: What holds records: an array with a row per record, or a DataFrame.
Records: TypeAlias = "npt.NDArray[Any] | pd.DataFrame"


def _is_frame(records: object) -> TypeGuard[pd.DataFrame]:
    """Whether `records` is a DataFrame, without importing pandas for it."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(records, pandas.DataFrame)


def numeric_array(
    records: object, record_shape: tuple[int, ...], column_names: tuple[str, ...] | None
) -> npt.NDArray[Any]:
    """One chunk of records as a numeric array (n,) + `record_shape`, values unchecked.

    Parameters
    ----------
    records : array, DataFrame, or list of rows
        Booleans, integers or floats.
    record_shape : tuple of int
        () or (d,).
    column_names : tuple of str or None
        Columns to take from a DataFrame; None takes all, by position.

    Raises
    ------
    ValueError
        Not numeric, not rectangular, of another shape, or a column is missing.
    """
    if _is_frame(records):
        array = _frame_array(records, column_names)
        if record_shape == () and array.shape[1] == 1:
            array = array[:, 0]
    elif isinstance(records, list | tuple) and not records:
        array = np.empty((0, *record_shape))
    else:
        try:
            array = np.asarray(records)
        except ValueError as error:  # ragged rows
            raise ValueError("records must form a rectangular array") from error
    if array.dtype.kind not in "biuf":
        raise ValueError(f"records must be numeric, got dtype {array.dtype}")
    if array.ndim != 1 + len(record_shape) or array.shape[1:] != record_shape:
        wanted = ", ".join(["n", *map(str, record_shape)]) + ("" if record_shape else ",")
        raise ValueError(f"records must have shape ({wanted}), got {array.shape}")
    return array


def _frame_array(frame: pd.DataFrame, column_names: tuple[str, ...] | None) -> npt.NDArray[Any]:
    """Columns of a DataFrame as one numeric array (n, c); missing values become NaN."""
    if column_names is not None:
        missing = [name for name in column_names if name not in frame.columns]
        if missing:
            raise ValueError(f"records must have the columns {missing}, got {list(frame.columns)}")
        frame = frame[list(column_names)]
        if frame.shape[1] != len(column_names):
            raise ValueError(f"records must have each column once, got {list(frame.columns)}")
    columns = []
    for position, name in enumerate(frame.columns):
        series = frame.iloc[:, position]
        if series.dtype.kind not in "biuf":
            raise ValueError(f"records must be numeric, column {name!r} has dtype {series.dtype}")
        extension = not isinstance(series.dtype, np.dtype)
        columns.append(
            series.to_numpy(np.float64, na_value=np.nan) if extension else series.to_numpy()
        )
    return np.column_stack(columns) if columns else np.empty((len(frame), 0))


def chunk_arrays(
    records: Records | Iterable[Records],
    record_shape: tuple[int, ...],
    column_names: tuple[str, ...] | None,
    rows: int,
) -> Iterator[npt.NDArray[Any]]:
    """Chunks of at most `rows` records as numeric arrays; an iterable is read once, lazily.

    See `Universe.chunks` for which lists are one array and which are chunks.
    """
    axes = 1 + len(record_shape)
    if _is_frame(records) or hasattr(records, "__array__"):
        whole_array = True
    elif isinstance(records, list | tuple):
        whole_array = not (records and all(_is_chunk(item, axes) for item in records))
    elif isinstance(records, str | bytes | Mapping) or not isinstance(records, Iterable):
        raise ValueError(
            "records must be an array, a DataFrame or an iterable of chunks of one, "
            f"got {type(records).__name__}"
        )
    else:
        whole_array = False
    for chunk in [records] if whole_array else records:
        if not _is_frame(chunk):
            chunk = numeric_array(chunk, record_shape, column_names)
        for start in range(0, max(len(chunk), 1), rows):
            # A DataFrame is converted part by part, so that no second copy of it is made.
            part = (
                chunk.iloc[start : start + rows]
                if _is_frame(chunk)
                else chunk[start : start + rows]
            )
            yield numeric_array(part, record_shape, column_names)


def _is_chunk(item: object, axes: int) -> bool:
    """Whether an item of a list is a chunk rather than one record."""
    return _is_frame(item) or (isinstance(item, np.ndarray) and item.ndim == axes)
