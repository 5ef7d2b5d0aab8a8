"""From the values of one column, as they are stored, to the codes or scaled numbers of a record."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from geomdp._typing import FloatArray, IntArray
from geomdp.data.bad_values import BadValues
from geomdp.data.columns import (
    BOOLEAN_TEXTS,
    BooleanColumn,
    CategoricalColumn,
    Column,
    NumericColumn,
    RealColumn,
    as_text,
)

if TYPE_CHECKING:
    import pandas as pd

#: A whole number written as a decimal fraction.
WHOLE = re.compile(r"-?[0-9]+\.0*")
PRESENT = "present"


def column_values(
    series: pd.Series[Any], column: Column, rows: IntArray, bad: BadValues
) -> IntArray | FloatArray:
    """Codes, or numbers scaled to [-1, 1], of the values of a column.

    Parameters
    ----------
    series : Series
        The values (n,).
    column : Column
        Their declaration.
    rows : (n,) array of int
        Numbers of the records, for errors.
    bad : BadValues
        Takes the places of the values that do not fit. What is returned for these has no meaning.

    Returns
    -------
    (n,) array
        Missing values have the last code where the column declares them.
    """
    present = series.notna().to_numpy(dtype=bool)
    if present.all():
        return _present_values(series, column, rows, bad)
    if isinstance(column, RealColumn):
        values, missing = np.zeros(len(series)), False
    else:
        values, missing = np.full(len(series), len(column.labels) - 1), column.missing
    if not missing:
        bad.add(~present, PRESENT, column.name, rows)
    values[present] = _present_values(series[present], column, rows[present], bad)
    return values


def numbers_of(series: pd.Series[Any], name: str, rows: IntArray, bad: BadValues) -> FloatArray:
    """A column as float64 (n,), infinities included; missing values and texts are bad."""
    missing = series.isna().to_numpy(dtype=bool)
    bad.add(missing, PRESENT, name, rows)
    numbers = np.full(len(series), np.nan)
    numbers[~missing] = _numbers(series[~missing], name, rows[~missing], bad)
    return numbers


def distinct_texts(series: pd.Series[Any]) -> tuple[IntArray, list[str]]:
    """Texts of a column without missing values: `texts[places]`; few distinct ones are cheap."""
    import pandas as pd

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


def _present_values(
    series: pd.Series[Any], column: Column, rows: IntArray, bad: BadValues
) -> IntArray | FloatArray:
    """As `column_values`, for values none of which is missing."""
    match column:
        case CategoricalColumn(categories=categories):
            codes = {text: code for code, text in enumerate(categories)}
            unknown = len(categories) if column.other else -1
            wanted = "one of the declared categories"
        case BooleanColumn():
            codes, unknown, wanted = BOOLEAN_TEXTS, -1, "0, 1, true or false"
        case NumericColumn() | RealColumn():
            return _binned_or_scaled(_numbers(series, column.name, rows, bad), column, rows, bad)
    places, texts = distinct_texts(series)
    distinct = np.array([_code(text, codes, unknown) for text in texts], dtype=np.int64)
    found = distinct[places]
    bad.add(found < 0, wanted, column.name, rows)
    return found


def _binned_or_scaled(
    values: FloatArray, column: NumericColumn | RealColumn, rows: IntArray, bad: BadValues
) -> IntArray | FloatArray:
    """The bins of numbers, or the numbers mapped from their bounds to [-1, 1]."""
    if isinstance(column, NumericColumn):
        _check_range(values, column.edges[0], column.edges[-1], column.name, rows, bad)
        # The last edge itself belongs to the last bin.
        bins = np.searchsorted(column.edges, values, side="right") - 1
        return np.minimum(bins, len(column.edges) - 2).astype(np.int64)
    low, high = column.bounds
    if column.clip:
        bad.add(np.isinf(values), "finite", column.name, rows)
        values = np.clip(values, low, high)
    _check_range(values, low, high, column.name, rows, bad)
    return 2 * ((values - low) / (high - low)) - 1


def _code(text: str, codes: Mapping[str, int], unknown: int) -> int:
    """The code of a text; "3.0" counts as "3" unless it is a category of its own.

    A file spells whole numbers so where a column with a missing value was written as floats.
    """
    if text not in codes and WHOLE.fullmatch(text):
        text = text.partition(".")[0]
    return codes.get(text, unknown)


def _numbers(series: pd.Series[Any], name: str, rows: IntArray, bad: BadValues) -> FloatArray:
    """The numbers (n,) of values none of which is missing; NaN for one that is bad."""
    if series.dtype.kind in "iuf":
        return series.to_numpy(dtype=np.float64)
    places, texts = distinct_texts(series)
    numbers = np.array([parsed(text) for text in texts], dtype=np.float64)[places]
    bad.add(np.isnan(numbers), "a number", name, rows)
    return numbers


def _check_range(
    values: FloatArray, low: float, high: float, name: str, rows: IntArray, bad: BadValues
) -> None:
    outside = (values < low) | (values > high)
    bad.add(outside, f"between {as_text(low)} and {as_text(high)}", name, rows)
