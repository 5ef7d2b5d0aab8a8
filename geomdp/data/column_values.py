"""Encode the stored values of one column: as codes of levels, or as numbers in [-1, 1]."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from geomdp._typing import BoolArray, FloatArray, IntArray
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

#: A whole number written as a decimal fraction, such as "3.0".
WHOLE = re.compile(r"-?[0-9]+\.0*")
#: Requirement on a value, for error messages: a value must not be missing.
PRESENT = "present"


def column_values(
    series: pd.Series[Any], column: Column, rows: IntArray, bad: BadValues
) -> IntArray | FloatArray:
    """Encode the values of a column: as codes of levels, or as numbers scaled to [-1, 1].

    Parameters
    ----------
    series : Series
        The values (n,) as stored.
    column : Column
        The declaration of the column in the schema.
    rows : (n,) array of int
        Row numbers of the records, for error messages.
    bad : BadValues
        Collects the places of the values that do not fit. In the result, the entries of such
        values have no meaning.

    Returns
    -------
    (n,) array
        Codes, or real numbers for a `RealColumn`. If the column declares missing values, a missing
        value has the last code.
    """
    present = ~absent(series)
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


def absent(series: pd.Series[Any]) -> BoolArray:
    """Whether each value (n,) is missing. NaN is missing in columns of every type."""
    found = series.isna().to_numpy(dtype=bool)
    if series.dtype.kind == "f" and not isinstance(series.dtype, np.dtype):
        # Arrow and nullable columns can hold NaN beside NULL. pandas takes only NULL as missing.
        found = np.isnan(series.to_numpy(np.float64, na_value=np.nan))
    return found


def numbers_of(series: pd.Series[Any], name: str, rows: IntArray, bad: BadValues) -> FloatArray:
    """The values of a column as float64 (n,). Infinities are allowed.

    Texts that spell a number are converted. Missing values, and values that are not numbers,
    are noted in `bad`.
    """
    missing = absent(series)
    bad.add(missing, PRESENT, name, rows)
    numbers = np.full(len(series), np.nan)
    numbers[~missing] = _numbers(series[~missing], name, rows[~missing], bad)
    return numbers


def distinct_texts(series: pd.Series[Any]) -> tuple[IntArray, list[str]]:
    """Places (n,) and distinct texts: value i has the text ``texts[places[i]]``.

    The column must have no missing values. In a column of Python objects every value is
    converted; in any other column, each distinct value is converted once.
    """
    import pandas as pd

    if series.dtype == object:
        # `factorize` would merge True and 1, which are equal, although their texts differ.
        series = pd.Series([as_text(value) for value in series], dtype=object)
    places, distinct = pd.factorize(series)
    return places.astype(np.int64), [as_text(value) for value in distinct]


def parsed(text: str) -> float:
    """The number that a text spells, or NaN.

    The result for "1_000" is NaN, although Python reads this text as 1000.
    """
    try:
        return float("nan" if "_" in text else text)
    except ValueError:
        return float("nan")


def _present_values(
    series: pd.Series[Any], column: Column, rows: IntArray, bad: BadValues
) -> IntArray | FloatArray:
    """The result of `column_values` for a column without missing values."""
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
        # A value equal to the last edge belongs to the last bin.
        bins = np.searchsorted(column.edges, values, side="right") - 1
        return np.minimum(bins, len(column.edges) - 2).astype(np.int64)
    low, high = column.bounds
    if column.clip:
        bad.add(np.isinf(values), "finite", column.name, rows)
        values = np.clip(values, low, high)
    _check_range(values, low, high, column.name, rows, bad)
    return 2 * ((values - low) / (high - low)) - 1


def _code(text: str, codes: Mapping[str, int], unknown: int) -> int:
    """The code of a text; "3.0" has the code of "3" unless "3.0" is a category.

    Some programs write 3 as "3.0", for instance in a column with missing values.
    """
    if text not in codes and WHOLE.fullmatch(text):
        text = text.partition(".")[0]
    return codes.get(text, unknown)


def _numbers(series: pd.Series[Any], name: str, rows: IntArray, bad: BadValues) -> FloatArray:
    """The numbers (n,) of a column without missing values. A bad value becomes NaN."""
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
