"""Count single columns: DuckDB groups the values, and each distinct value is encoded once.

The general method (see `scan`) translates each record into codes. Grouping is twice as fast, as
DuckDB can group dictionary-encoded texts without unpacking the texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from geomdp._typing import IntArray
from geomdp.data.bad_values import BadValues
from geomdp.data.column_values import column_values
from geomdp.data.columns import DiscreteColumn, NumericColumn
from geomdp.data.counting.covering import Table
from geomdp.data.counting.tallies import Tallies
from geomdp.data.sql_names import quoted_name

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

#: Number of groups that are fetched at a time.
BATCH_GROUPS = 1 << 17
#: Largest number of columns of one statement. GROUPING gives each column one bit of a BIGINT.
MOST_GROUPED = 62


def is_groupable(columns: Sequence[DiscreteColumn], tables: Sequence[Table]) -> bool:
    """Whether each table has one column, there are at most 62 columns, and no column is numeric.

    Grouping a numeric column saves nothing, because almost every record may have its own value.
    """
    single = max(map(len, tables)) == 1 and len(columns) <= MOST_GROUPED
    return single and not any(isinstance(column, NumericColumn) for column in columns)


def tally_groups(
    relation: duckdb.DuckDBPyRelation, columns: Sequence[DiscreteColumn]
) -> Tallies | None:
    """Counts of the levels of each column; None if a value does not fit the declaration.

    After None, the caller reads the records again, because an error must name the rows.
    """
    kinds = dict(zip(relation.columns, map(str, relation.types), strict=True))
    names = [_compared_exactly(column.name, kinds[column.name]) for column in columns]
    groups = relation.query(
        "records",
        f"SELECT {', '.join(names)}, count(*), GROUPING({', '.join(names)}) FROM records "
        f"GROUP BY GROUPING SETS ({', '.join(f'({name})' for name in names)})",
    )
    assert groups is not None  # a SELECT has a result
    levels = tuple(len(column.labels) for column in columns)
    cells: dict[Table, IntArray] = {(i,): np.zeros(n, np.int64) for i, n in enumerate(levels)}
    for batch in groups.to_arrow_reader(BATCH_GROUPS):
        *values, numbers, grouping = batch.columns
        # In a row of the batch that is a group of column i, bit i of GROUPING (from the left) is 0,
        # and all other bits are 1.
        everything = (1 << len(columns)) - 1
        for i, column in enumerate(columns):
            mine = np.flatnonzero(grouping.to_numpy() == everything - (1 << (len(columns) - 1 - i)))
            if len(mine) == 0:
                continue
            found = _codes(values[i].take(mine), column)
            if found is None:
                return None
            np.add.at(cells[i,], found, numbers.to_numpy()[mine])
    return Tallies(levels, int(cells[0,].sum()), cells)


def _compared_exactly(name: str, kind: str) -> str:
    """SQL for grouping by a column, so that different texts are in different groups.

    A column may have a collation that ignores case or accents. DuckDB would then count all
    spellings under the spelling that it reads first. One record could then change how other records
    are counted.
    """
    value = quoted_name(name)
    return f'{value} COLLATE "binary"' if kind == "VARCHAR" else value


def _codes(values: pa.Array, column: DiscreteColumn) -> IntArray | None:
    """The codes that `encode` gives to `values`, or None if a value does not fit."""
    import pandas as pd

    # The type `object` keeps the values as they are. By default, pandas turns whole numbers into
    # floats if a value is missing.
    series = pd.Series(values.to_pylist(), dtype=object)
    bad = BadValues()
    found = column_values(series, column, np.arange(len(series)), bad)
    return None if bad else found.astype(np.int64)
