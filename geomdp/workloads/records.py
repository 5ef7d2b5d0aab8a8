"""Read records from arrays, DataFrames or iterables of chunks, as checked NumPy arrays."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

import numpy as np
import numpy.typing as npt

from geomdp._typing import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    import pandas as pd


#: Records: an array or a DataFrame with one row per record.
Records: TypeAlias = "npt.NDArray[Any] | pd.DataFrame"

#: Unit roundoff u of float64.
ROUNDOFF = 2.0**-53
#: `_above_one` splits an entry into the nearest multiple of 1 / SPLIT and a small rest. The square
#: of the multiple is exact in float64.
SPLIT = 2.0**26


def _is_frame(records: object) -> TypeGuard[pd.DataFrame]:
    """Whether `records` is a DataFrame, without an import of pandas."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(records, pandas.DataFrame)


def numeric_array(
    records: object, record_shape: tuple[int, ...], column_names: tuple[str, ...] | None
) -> npt.NDArray[Any]:
    """A chunk as a numeric array (n,) + `record_shape`, unchecked values; else ``ValueError``."""
    if _is_frame(records):
        array = _frame_array(records, column_names)
        if record_shape == () and array.shape[1] == 1:
            array = array[:, 0]
    elif isinstance(records, list | tuple) and not records:
        array = np.empty((0, *record_shape))
    elif np.ma.is_masked(records):
        raise ValueError("records must have no masked entries")
    else:
        try:
            array = np.asarray(records)
        except ValueError as error:  # ragged rows
            raise ValueError("records must form a rectangular array") from error
    if array.dtype.kind not in "biuf":
        raise ValueError(f"records must be numeric, got dtype {array.dtype}")
    if array.ndim != 1 + len(record_shape) or array.shape[1:] != record_shape:
        wanted = f"(n, {record_shape[0]})" if record_shape else "(n,)"
        raise ValueError(f"records must have shape {wanted}, got {array.shape}")
    return array


def _frame_array(frame: pd.DataFrame, column_names: tuple[str, ...] | None) -> npt.NDArray[Any]:
    """Columns of a DataFrame as one numeric array (n, c); missing values become NaN."""
    if not frame.columns.is_unique:
        raise ValueError(f"records must have each column once, got {list(frame.columns)}")
    if column_names is not None:
        missing = [name for name in column_names if name not in frame.columns]
        if missing:
            raise ValueError(f"records must have the columns {missing}, got {list(frame.columns)}")
        frame = frame[list(column_names)]
    columns = []
    for position, name in enumerate(frame.columns):
        series = frame.iloc[:, position]
        if series.dtype.kind not in "biuf":
            raise ValueError(f"records must be numeric, column {name!r} has dtype {series.dtype}")
        if isinstance(series.dtype, np.dtype):
            columns.append(series.to_numpy())
        elif series.dtype.kind in "iu" and not series.hasnans:  # Nullable and Arrow types
            columns.append(series.to_numpy(np.dtype(f"{series.dtype.kind}8")))
        else:
            columns.append(series.to_numpy(np.float64, na_value=np.nan))
    return np.column_stack(columns) if columns else np.empty((len(frame), 0))


def chunk_arrays(
    records: Records | Iterable[Records],
    record_shape: tuple[int, ...],
    column_names: tuple[str, ...] | None,
    rows: int,
) -> Iterator[npt.NDArray[Any]]:
    """Chunks of at most `rows` records as numeric arrays, read once; see `Universe.chunks`."""
    for chunk in _as_chunks(records, axes=1 + len(record_shape)):
        if _is_frame(chunk):
            # Convert part by part, to avoid a second copy of a large DataFrame.
            for start in range(0, max(len(chunk), 1), rows):
                part = chunk.iloc[start : start + rows]
                yield numeric_array(part, record_shape, column_names)
        else:
            array = numeric_array(chunk, record_shape, column_names)
            for start in range(0, len(array), rows):
                yield array[start : start + rows]


def _as_chunks(records: object, axes: int) -> Iterable[object]:
    if _is_frame(records) or hasattr(records, "__array__"):
        return [records]
    if isinstance(records, list | tuple):
        in_chunks = records and all(
            _is_frame(item) or (isinstance(item, np.ndarray) and item.ndim == axes)
            for item in records
        )
        return records if in_chunks else [records]
    if isinstance(records, str | bytes | Mapping) or not isinstance(records, Iterable):
        raise ValueError(
            "records must be an array, a DataFrame or an iterable of arrays or DataFrames, "
            f"got {type(records).__name__}"
        )
    return records


def _place(bad: BoolArray, first_row: int, names: tuple[str, ...] | None) -> tuple[str, int]:
    """Where the first True in `bad` (n, c) is: row and column in words, and the column number."""
    row, column = (int(i) for i in np.argwhere(bad)[0])
    label = str(column) if names is None else f"{names[column]!r}"
    return f"row {first_row + row}, column {label}", column


def level_codes(
    array: npt.NDArray[Any],
    levels: tuple[int, ...],
    names: tuple[str, ...] | None,
    first_row: int,
) -> IntArray:
    """`array` (n, c) as int64 codes below `levels`, or ``ValueError`` with row and column."""
    if array.dtype.kind == "f":
        broken = array != np.floor(array)  # True for NaN. An infinity fails the next check.
        if broken.any():
            place, _ = _place(broken, first_row, names)
            raise ValueError(f"records must be whole numbers: {place} is not")
    outside = (array < 0) | (array >= np.array(levels))
    if outside.any():
        place, column = _place(outside, first_row, names)
        top = levels[column] - 1
        raise ValueError(f"records must be codes from 0 to {top}: {place} is outside")
    if array.dtype.kind == "f":
        # Beside one float, NumPy and pandas make floats of all codes, which rounds large ones.
        rounded = array >= 2.0 ** (np.finfo(array.dtype).nmant + 1)
        if rounded.any():
            place, _ = _place(rounded, first_row, names)
            raise ValueError(
                f"records must be stored as whole numbers: {place} is a float that may be rounded"
            )
    return np.ascontiguousarray(array, dtype=np.int64)


def _finite(array: npt.NDArray[Any], first_row: int) -> FloatArray:
    reals = np.ascontiguousarray(array, dtype=np.float64)
    broken = ~np.isfinite(reals)
    if broken.any():
        raise ValueError(f"records must be finite: {_place(broken, first_row, None)[0]} is not")
    return reals


def reals_in_ball(array: npt.NDArray[Any], first_row: int) -> FloatArray:
    """`array` (n, d) as rows of exact norm at most 1; ``ValueError`` if a row is clearly longer.

    `UnitBall` states the rule, with u = 2^-53 and t = (d + 8) u. Proof, up to terms of order (d
    u)^2: the relative error of a computed norm is at most (d / 2 + 2) u, and each entry of y = x /
    ||x|| is rounded once more. So the exact norm of y is at most 1 + (d / 2 + 3) u, the computed
    norm is at most 1 + (d + 5) u, and y is accepted. An accepted row has an exact norm of at most 1
    + (d + 9) u + (d / 2 + 2) u, and after multiplication by 1 - 2 t, which rounds once more, of at
    most 1 - (d / 2 + 4) u. A computed norm of at most 1 - t implies an exact norm below 1.
    """
    reals = _finite(array, first_row)
    tolerance = (reals.shape[1] + 8) * ROUNDOFF
    # The square of an entry above 1.4e154 overflows. The norm is then infinite, so the row is
    # rejected.
    with np.errstate(over="ignore"):
        norms = np.linalg.norm(reals, axis=1)
    outside = norms > 1 + tolerance
    if outside.any():
        row = first_row + int(np.argmax(outside))
        raise ValueError(f"records must have Euclidean norm at most 1: row {row} is above")
    near = np.flatnonzero(norms > 1 - tolerance)
    above = near[_above_one(reals[near])]
    if len(above):
        reals = reals.copy()  # The array of the caller is not changed.
        reals[above] *= 1 - 2 * tolerance
    return reals


def _above_one(rows: FloatArray) -> BoolArray:
    """Whether the exact norm of each row x of `rows` (n, d) near 1 is above 1; True if unknown.

    c holds the multiples of 2^-26 nearest to x, and f = x - c. ||x||^2 is the sum of c_i^2, exact
    in float64, plus the sum of f_i (x_i + c_i). As |f_i| <= 2^-27, the rounding error of the second
    sum is at most (d + 2) u 2^-27 (2 ||x|| + 2^-27 sqrt(d)) sqrt(d) < 2^-77 d^(3/2) for d < 2^50,
    and 0 if f is 0.
    """
    coarse = np.round(rows * SPLIT) / SPLIT
    fine = rows - coarse
    excess = ((coarse**2).sum(axis=1) - 1) + (fine * (rows + coarse)).sum(axis=1)
    doubt = np.where(fine.any(axis=1), 2.0**-77 * rows.shape[1] ** 1.5, 0.0)
    return np.asarray(excess > -doubt)


def reals_in_cube(array: npt.NDArray[Any], first_row: int) -> FloatArray:
    """`array` (n, d) as rows in [-1, 1]^d, or ``ValueError`` with row and column."""
    reals = _finite(array, first_row)
    outside = np.abs(reals) > 1
    if outside.any():
        place, _ = _place(outside, first_row, None)
        raise ValueError(f"records must lie in [-1, 1]: {place} is outside")
    return reals
