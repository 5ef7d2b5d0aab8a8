"""A first draft of a schema from the values of the records. The draft is not private."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from geomdp._validation import whole
from geomdp.data.columns import (
    BOOLEAN_TEXTS,
    BooleanColumn,
    CategoricalColumn,
    Column,
    NumericColumn,
    is_shown,
)
from geomdp.data.encoding import ABSENT, WANTED, distinct_texts, parsed
from geomdp.data.files import column_names, read_chunks, record_files
from geomdp.data.frames import CHUNK_ROWS, BadValues, RecordsError
from geomdp.data.schema import Schema

if TYPE_CHECKING:
    import pyarrow as pa

INFERENCE_WARNING = (
    "This schema was read off the records: its categories and bin edges depend on the records, so "
    "no privacy guarantee covers the schema or anything computed with it. Before you release "
    "anything, replace the categories and edges by ones that you know from public sources."
)


@dataclass(frozen=True)
class InferredSchema:
    """A schema that depends on the records, and a warning to the user.

    Parameters
    ----------
    schema : Schema
        The draft.
    warning : str
        Why the schema is not private, in words.

    Examples
    --------
    >>> import pandas as pd
    >>> import geomdp as gd
    >>> pd.DataFrame({"region": ["north", "south"], "smoker": [0, 1]}).to_csv(
    ...     "survey.csv", index=False
    ... )
    >>> inferred = gd.data.infer_schema("survey.csv")
    >>> inferred.schema
    Schema(region: 2, smoker: 2)
    >>> inferred.warning.partition(":")[0]
    'This schema was read off the records'
    """

    schema: Schema
    warning: str = INFERENCE_WARNING


def infer_schema(
    path: str | os.PathLike[str],
    columns: Sequence[str] | None = None,
    *,
    max_categories: int = 20,
    bins: int = 8,
    rows: int = CHUNK_ROWS,
) -> InferredSchema:
    """Draft a schema from a file of records. **Not private**: edit it before any release.

    If all values of a column are 0, 1, true or false, the column becomes boolean.
    Any other column with at most `max_categories` distinct values becomes categorical. Any other
    column of numbers becomes numeric: `bins` bins of equal width range from the smallest to the
    largest value.

    Parameters
    ----------
    path : str or path
        A CSV or Parquet file, a folder of such files, or a pattern; see `files_at`.
    columns : sequence of str, optional
        Columns to describe; by default all.
    max_categories : int
        Largest number of distinct values of a categorical column.
    bins : int
        Number of bins of a numeric column.
    rows : int
        Number of rows that are read at a time.

    Returns
    -------
    InferredSchema
        The draft, and a warning that it is not private. All its columns have the mark `drafted`,
        which withdraws the privacy claim of a release; see `Schema.confirm`.

    Raises
    ------
    ValueError
        For the reasons given at `read_chunks` and `files_at`. If there are no rows. If a value is
        missing; this error names file, row and column. If a column has more than `max_categories`
        distinct values and some values are not finite numbers. If float64 cannot represent `bins`
        bins between the smallest and the largest value.

    Examples
    --------
    >>> import pandas as pd
    >>> import geomdp as gd
    >>> ages = pd.DataFrame({"age": range(0, 101), "smoker": [0] * 51 + [1] * 50})
    >>> ages.to_csv("survey.csv", index=False)
    >>> inferred = gd.data.infer_schema("survey.csv", bins=4)
    >>> inferred.schema.column("age").edges
    (0.0, 25.0, 50.0, 75.0, 100.0)
    """
    max_categories, bins = whole(max_categories, "max_categories"), whole(bins, "bins")
    names = column_names(path) if columns is None else columns
    summaries: dict[str, _Summary] = {}
    for file in record_files(path):
        first_row = 0
        for chunk in read_chunks(file, names, rows):
            for name in chunk.schema.names:
                summary = summaries.setdefault(name, _Summary(name, max_categories))
                summary.update(chunk[name], first_row, file)
            first_row += chunk.num_rows
    if not summaries:
        raise ValueError(f"{os.fspath(path)}: a schema cannot be inferred from 0 rows")
    return InferredSchema(Schema(tuple(summary.column(bins) for summary in summaries.values())))


@dataclass
class _Summary:
    """A summary of one column: distinct texts, up to a limit, and the range of the numbers."""

    name: str
    max_categories: int
    texts: set[str] = field(default_factory=set)
    low: float = math.inf
    high: float = -math.inf
    all_numbers: bool = True

    def update(self, values: pa.Array, first_row: int, file: Path) -> None:
        """Add to the summary the chunk of the column that starts at row `first_row` of `file`."""
        missing = BadValues()
        places, found = distinct_texts(values)
        absent = np.array([text == ABSENT for text in found], dtype=bool)[places]
        missing.add(absent, WANTED[ABSENT], self.name, first_row)
        if missing:
            raise RecordsError(f"{file}: {missing.error()}")
        used = set(np.unique(places).tolist())
        texts = [text for i, text in enumerate(found) if i in used and isinstance(text, str)]
        # Never stop at texts that are all boolean: a later chunk can hold others.
        if len(self.texts) <= max(self.max_categories, len(BOOLEAN_TEXTS)):
            self.texts.update(texts)
        if self.all_numbers:
            numbers = np.array([parsed(text) for text in texts])
            self.all_numbers = bool(np.isfinite(numbers).all())
            self.low = min(self.low, float(numbers.min()))
            self.high = max(self.high, float(numbers.max()))

    def column(self, bins: int) -> Column:
        """The declaration that fits the summary."""
        if self.texts <= set(BOOLEAN_TEXTS):
            return BooleanColumn(self.name, drafted=True)
        if len(self.texts) <= self.max_categories:
            order = (lambda text: (parsed(text), text)) if self.all_numbers else None
            if not all(map(is_shown, self.texts)):  # the message must not quote a value
                raise ValueError(
                    f"column {self.name!r} has values with control characters, which cannot be "
                    "categories; declare its other categories, or leave it out"
                )
            texts = tuple(sorted(self.texts, key=order))
            return CategoricalColumn(self.name, texts, drafted=True)
        if not self.all_numbers:
            raise ValueError(
                f"column {self.name!r} has more than {self.max_categories} distinct values, and "
                "some are not finite numbers; declare its categories, or leave it out"
            )
        with np.errstate(over="ignore", invalid="ignore"):
            edges = np.linspace(self.low, self.high, bins + 1)
        # The message does not show the smallest and largest value, which are values of records.
        if not (np.isfinite(edges).all() and (np.diff(edges) > 0).all()):
            raise ValueError(
                f"column {self.name!r}: float64 cannot represent {bins} bins of equal width "
                "between its smallest and its largest value; declare its edges, or leave it out"
            )
        return NumericColumn(self.name, tuple(float(edge) for edge in edges), drafted=True)
