"""Count the records of a source: DuckDB encodes and checks them, and batches of codes are counted.

The code of a value is the number of its label among the labels of the column. DuckDB finds the
codes. Single columns may be counted by `grouped` instead. If no code is found for a value, the
records are read again with the checks of `encode`. These checks recognise the spelling of the
value, or raise an error that names row and column.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np

from geomdp.data.columns import DiscreteColumn
from geomdp.data.counting.codes import code_expression
from geomdp.data.counting.covering import Table
from geomdp.data.counting.grouped import is_groupable, tally_groups
from geomdp.data.counting.tallies import Codes, Tallies
from geomdp.data.encoding import column_codes

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

    from geomdp.data.sources.source import Source

#: Number of records that are counted at a time: 128 or 256 KB of codes for each column.
BATCH_ROWS = 1 << 17


def tally(source: Source, columns: Sequence[DiscreteColumn], tables: Sequence[Table]) -> Tallies:
    """Counts of `tables` (tuples of column numbers) over the records of one part of a source.

    Raises
    ------
    ValueError
        For the reasons given at `encode`, or if the source cannot be read. For values that do not
        fit, the error names row and column.
    """
    import duckdb

    names = [column.name for column in columns]
    try:
        with source.relation(names) as relation:
            found = None if relation is None else _scanned(relation, columns, tables)
    except (duckdb.Error, OSError):
        # Usually a file is malformed. The error is not passed on, because its message can quote a
        # record. For a malformed file, `_read` raises another error, which says what is wrong, and
        # where. DuckDB raises an OSError if it finds the fault while batches are read.
        found = None
    return _read(source, columns, tables) if found is None else found


def _levels(columns: Sequence[DiscreteColumn]) -> list[int]:
    return [len(column.labels) for column in columns]


@dataclass(frozen=True)
class _Coding:
    """SQL expressions that compute the codes of `columns`.

    A value without a code gets the number that `unknown` has for its column.
    """

    columns: Sequence[DiscreteColumn]
    expressions: list[str]
    unknown: list[int]

    def decoded(self, batch: pa.RecordBatch) -> list[Codes] | None:
        """The codes of a batch, column by column, or None if a value has no code."""
        # DLPack can pass on the codes, because they are numbers and none is missing. `to_numpy`
        # would import pandas, which takes long.
        read = range(len(self.columns))
        codes = [cast("Codes", np.from_dlpack(batch.column(i))) for i in read]
        found = (code.max() == none for code, none in zip(codes, self.unknown, strict=True))
        return None if any(found) else codes


def _coding(relation: duckdb.DuckDBPyRelation, columns: Sequence[DiscreteColumn]) -> _Coding | None:
    """SQL for the codes of `columns`, or None if DuckDB cannot find or encode a column."""
    # DuckDB does not distinguish names by case.
    found = [name.casefold() for name in relation.columns]
    kinds = dict(zip(relation.columns, map(str, relation.types), strict=True))
    coding = _Coding(columns, [], [])
    for column in columns:
        if column.name not in kinds or found.count(column.name.casefold()) > 1:
            return None
        code = code_expression(column, column.name, kinds[column.name])
        if code is None:
            return None
        kind, unknown = ("UTINYINT", 255) if len(column.labels) < 255 else ("USMALLINT", 65535)
        coding.expressions.append(f"coalesce({code}, {unknown})::{kind}")
        coding.unknown.append(unknown)
    return coding


def _scanned(
    relation: duckdb.DuckDBPyRelation, columns: Sequence[DiscreteColumn], tables: Sequence[Table]
) -> Tallies | None:
    """The counts, or None if DuckDB cannot encode a column, or if a value has no code."""
    coding = _coding(relation, columns)
    if coding is None:
        return None
    if is_groupable(columns, tables):
        return tally_groups(relation, columns)
    tallies = Tallies.empty(_levels(columns), tables)
    named = ", ".join(f"{code} AS c{i}" for i, code in enumerate(coding.expressions))
    for batch in relation.project(named).to_arrow_reader(BATCH_ROWS):
        if batch.num_rows == 0:
            continue
        codes = coding.decoded(batch)
        if codes is None:
            return None
        tallies = tallies.with_records(codes)
    return tallies


def _read(source: Source, columns: Sequence[DiscreteColumn], tables: Sequence[Table]) -> Tallies:
    """The counts, from the chunks of the source. Values are checked and encoded as in `encode`."""
    tallies = Tallies.empty(_levels(columns), tables)
    chunks = source.chunks([column.name for column in columns])
    for codes in column_codes(chunks, columns):
        tallies = tallies.with_records([np.asarray(code, dtype=np.int64) for code in codes])
    return tallies
