"""A first draft of a schema from the values of the records. The draft is not private."""

from __future__ import annotations

import datetime
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from geomdp._validation import whole
from geomdp.data.columns import (
    BOOLEAN_TEXTS,
    BooleanColumn,
    Calendar,
    CategoricalColumn,
    Column,
    DateColumn,
    DayOrder,
    NumericColumn,
    RealColumn,
    SkippedColumn,
    as_text,
    day_of,
    is_shown,
    loosened,
    number_of,
)
from geomdp.data.encoding import ABSENT, distinct_texts
from geomdp.data.files import column_names, csv_format, read_chunks, record_files
from geomdp.data.frames import CHUNK_ROWS
from geomdp.data.schema import Schema, split

if TYPE_CHECKING:
    import pyarrow as pa

#: Texts that stand for a missing value in a column of numbers, days or truth values.
MISSING_TEXTS = frozenset(
    spelt
    for text in ("na", "n/a", "#n/a", "nan", "null", "none", "unknown", "missing", "-", "--", "?")
    for spelt in (text, text.capitalize(), text.upper())
) | {"NaN"}
#: Ways to write numbers: the decimal mark, and the mark between thousands.
MARKS = (
    *((".", ""), (",", ""), (".", ","), (",", "."), (",", " "), (",", "\u00a0"), (",", "\u202f")),
    *((".", "'"), (".", " ")),
)
#: Number of distinct values that are counted in a column; others are only called more.
COUNTED = 100_000
#: A column of whole numbers that are all different, and more than this, numbers the records.
IDENTIFIERS = 1000


class Decision(NamedTuple):
    """What a draft decided about a column, and what the curator must know to confirm it."""

    name: str
    kind: str
    drafted: str
    to_state: str


@dataclass(frozen=True)
class InferredSchema:
    """A schema that depends on the records, and what was decided about each column."""

    schema: Schema
    decisions: tuple[Decision, ...]


def infer_schema(
    path: str | os.PathLike[str],
    columns: Sequence[str] | None = None,
    *,
    max_categories: int = 20,
    bins: int = 8,
    rows: int = CHUNK_ROWS,
) -> InferredSchema:
    """Draft a schema from a file of records. **Not private**: edit it before any release.

    The separator and the encoding of CSV files are found from the files. Each column gets the first
    kind that fits all its values:

    * boolean, if all are words for true and false;
    * date, if all are days: in years, quarters or months, for the years that occur;
    * categorical, if there are at most `max_categories` distinct values. If some differ only in
      blanks at the ends and the case of letters, they count as the same;
    * numeric, if all are numbers, with decimal points or commas and marks between thousands: about
      `bins` bins of equal width, with edges that are round numbers;
    * skip otherwise, with the reason.

    Missing values, and texts such as "NA" for them beside numbers, days or truth values, get a
    category of their own. All columns have the mark `drafted`, which withdraws the privacy claim of
    a release; see `Schema.confirm`. ``ValueError`` if there are no rows, or if no column gets
    another kind than skip (with the reason for each).

    Parameters
    ----------
    path : str or path
        A CSV or Parquet file, a folder of such files, or a pattern; see `source_of`.
    columns : sequence of str, optional
        Columns to describe; by default all.
    max_categories, bins, rows : int
        Largest number of distinct values of a categorical column, about the number of bins of a
        numeric column, and the number of rows that are read at a time.

    Examples
    --------
    >>> import pandas as pd
    >>> import geomdp as gd
    >>> pd.DataFrame({"age": range(0, 101)}).to_csv("survey.csv", index=False)
    >>> gd.data.infer_schema("survey.csv", bins=4).schema.column("age").edges
    (0.0, 25.0, 50.0, 75.0, 100.0)
    """
    max_categories, bins = whole(max_categories, "max_categories"), whole(bins, "bins")
    csv = csv_format(path)
    names = column_names(path, csv) if columns is None else list(columns)
    summaries = {name: _Summary(name) for name in names}
    for file in record_files(path):
        for chunk in read_chunks(file, names, rows, csv):
            for name in chunk.schema.names:
                summaries[name].update(chunk[name])
    if not summaries or not any(summary.count for summary in summaries.values()):
        raise ValueError(
            f"{os.fspath(path)}: a schema cannot be inferred from 0 rows; `geomdp schema "
            "--no-look` drafts the names of the columns alone"
        )
    drafted = [summary.column(max_categories, bins) for summary in summaries.values()]
    kept, skipped = split(drafted)
    if not kept:
        reasons = "; ".join(f"{column.name!r}: {column.reason}" for column in skipped)
        raise ValueError(f"{os.fspath(path)}: no column can be drafted; {reasons}")
    decisions = tuple(map(_decision, drafted, summaries.values()))
    return InferredSchema(Schema(kept, skipped, csv), decisions)


@dataclass
class _Summary:
    """The distinct texts of a column, up to a limit, and the kinds that fit all of them."""

    name: str
    count: int = 0  # of all values
    absent: int = 0  # NULL or empty
    texts: set[str] = field(default_factory=set)
    missing_texts: set[str] = field(default_factory=set)
    numbers: dict[tuple[str, str], tuple[float, float]] = field(
        default_factory=lambda: dict.fromkeys(MARKS, (math.inf, -math.inf))
    )
    whole: bool = True
    days: dict[str, tuple[datetime.date, datetime.date]] = field(
        default_factory=lambda: dict.fromkeys(DayOrder, (datetime.date.max, datetime.date.min))
    )
    unreadable: int = 0

    def update(self, values: pa.Array) -> None:
        places, found = distinct_texts(values)
        used, counts = np.unique(places, return_counts=True)
        texts = []
        for place, times in zip(used.tolist(), counts.tolist(), strict=True):
            text = found[place]
            self.count += times
            if isinstance(text, str):
                texts.append(text)
            elif text == ABSENT:
                self.absent += times
            else:
                self.unreadable += times
        spelt = [text for text in texts if text not in MISSING_TEXTS]
        self.missing_texts.update(text for text in texts if text in MISSING_TEXTS)
        if len(self.texts) <= COUNTED:
            self.texts.update(texts)
        self.whole &= all(text.isdecimal() for text in spelt)
        for marks, (low, high) in [*self.numbers.items()]:
            numbers = [*takewhile(math.isfinite, (number_of(text, *marks) for text in spelt))]
            del self.numbers[marks]
            if len(numbers) == len(spelt):
                self.numbers[marks] = min([low, *numbers]), max([high, *numbers])
        for order, (first, last) in [*self.days.items()]:
            each = takewhile(lambda day: day is not None, (day_of(text, order) for text in spelt))
            days = [day for day in each if day is not None]
            del self.days[order]
            if len(days) == len(spelt):
                self.days[order] = min([first, *days]), max([last, *days])

    def column(self, max_categories: int, bins: int) -> Column | SkippedColumn:
        drafted = self._kind(max_categories, bins)
        if isinstance(drafted, SkippedColumn | RealColumn):
            return drafted
        texts = () if isinstance(drafted, CategoricalColumn) else tuple(sorted(self.missing_texts))
        missing = self.absent > 0 or len(texts) > 0
        return replace(drafted, missing=missing, missing_texts=texts, drafted=True)

    def _kind(self, max_categories: int, bins: int) -> Column | SkippedColumn:
        """The kind that fits all values but the missing ones."""
        spelt, present = self.texts - self.missing_texts, self.count - self.absent
        if self.unreadable:
            return SkippedColumn(self.name, "values that are neither texts, numbers nor days")
        if not self.texts:
            return SkippedColumn(self.name, "no values")
        if not all(map(is_shown, self.texts)):
            return SkippedColumn(self.name, "values with control characters")
        if spelt and spelt <= set(BOOLEAN_TEXTS):
            return BooleanColumn(self.name)
        if spelt and self.days:
            order, (first, last) = next(iter(self.days.items()))
            years = last.year - first.year + 1
            by = Calendar.YEAR if years > 5 else Calendar.QUARTER if years > 1 else Calendar.MONTH
            days = (f"{first.year:04}-01-01", f"{last.year:04}-12-31")
            return DateColumn(self.name, days, by, order)
        if self.whole and len(spelt) > IDENTIFIERS and len(spelt) == present:
            return SkippedColumn(self.name, "whole numbers, all different: an identifier")
        if len(set(map(loosened, self.texts))) <= max_categories:
            return self._categories()
        if spelt and self.numbers:
            (decimal, thousands), (low, high) = next(iter(self.numbers.items()))
            edges = round_edges(low, high, bins)
            if edges is None:
                return SkippedColumn(self.name, f"numbers between which {bins} bins cannot be told")
            return NumericColumn(self.name, edges, decimal=decimal, thousands=thousands)
        different = len(self.texts) == present
        return SkippedColumn(self.name, "all different: an identifier" if different else "texts")

    def _categories(self) -> CategoricalColumn:
        marks = next(iter(self.numbers), None)

        def place(text: str) -> tuple[float, str]:
            return (0.0 if marks is None else number_of(text, *marks), text)

        kept: dict[str, str] = {}
        for text in sorted(self.texts, key=lambda text: (text != text.strip(), *place(text))):
            kept.setdefault(loosened(text), text.strip())
        if set(kept.values()) == self.texts:
            return CategoricalColumn(self.name, tuple(sorted(self.texts, key=place)))
        return CategoricalColumn(self.name, tuple(sorted(kept.values(), key=place)), loose=True)


def round_edges(low: float, high: float, bins: int) -> tuple[float, ...] | None:
    """About `bins` + 1 edges that are round numbers; None if float64 cannot hold them."""
    with np.errstate(all="ignore"):
        width = (high - low) / bins
        if not (math.isfinite(width) and width > 0):
            return None
        power = 10.0 ** math.floor(math.log10(width))
        step = next(f * power for f in (1, 2, 2.5, 5, 10) if f * power >= width * (1 - 1e-9))
        first, last = math.floor(low / step), math.ceil(high / step)
        edges = [float(f"{i * step:.12g}") for i in range(first, last + 1)]
    increasing = np.isfinite(edges).all() and (np.diff(edges) > 0).all()
    return tuple(edges) if increasing and edges[0] <= low and high <= edges[-1] else None


def _decision(column: Column | SkippedColumn, summary: _Summary) -> Decision:
    state = "nothing; it is left out"
    match column:
        case SkippedColumn():
            count = len(summary.texts)
            distinct = f"more than {COUNTED:,}" if count > COUNTED else f"{count:,}"
            found = f"{distinct} distinct values, {column.reason}"
        case BooleanColumn():
            found, state = "words for true and false", "nothing"
        case DateColumn():
            found = f"by {column.by}, {column.days[0]} to {column.days[1]}"
            state = "the first and the last possible day"
        case NumericColumn(edges=edges):
            found = f"{len(edges) - 1} bins from {as_text(edges[0])} to {as_text(edges[-1])}"
            state = "the smallest and the largest possible number"
        case _:
            found, state = f"{len(getattr(column, 'categories', ()))} categories", "all categories"
    if summary.absent or getattr(column, "missing", False):
        found += f", missing: {', '.join(['empty', *getattr(column, 'missing_texts', ())])}"
    return Decision(column.name, column.kind, found, state)
