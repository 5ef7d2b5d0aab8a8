"""Counts of all 1-way or 2-way tables of a Parquet file by DuckDB, PyArrow and pandas."""

from __future__ import annotations

import itertools
from pathlib import Path

import duckdb
import pandas as pd
import pyarrow.parquet as pq


def tables(columns: list[str], k: int) -> list[tuple[str, ...]]:
    """The k columns of each table: all sets of k columns."""
    return list(itertools.combinations(columns, k))


def by_duckdb(path: Path, columns: list[str], k: int) -> int:
    """Count by one query with a grouping set for each table; returns the number of records."""
    sets = ", ".join(f"({', '.join(table)})" for table in tables(columns, k))
    rows = duckdb.sql(
        f"SELECT {', '.join(columns)}, count(*) FROM '{path}' GROUP BY GROUPING SETS ({sets})"
    ).fetchall()
    return sum(row[-1] for row in rows) // len(tables(columns, k))


def by_pyarrow(path: Path, columns: list[str], k: int) -> int:
    """Read the file into memory and count by a grouping for each table."""
    records = pq.read_table(path, columns=columns)
    counted = [
        records.group_by(list(table)).aggregate([([], "count_all")])["count_all"].to_pylist()
        for table in tables(columns, k)
    ]
    return sum(counted[0])


def by_pandas(path: Path, columns: list[str], k: int) -> int:
    """Read the file as categorical columns and count by a grouping for each table."""
    records = pd.read_parquet(path, columns=columns).astype("category")
    counted = [records.groupby(list(table), observed=True).size() for table in tables(columns, k)]
    return int(counted[0].sum())
