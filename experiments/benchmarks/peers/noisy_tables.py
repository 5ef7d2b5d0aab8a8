"""Tables of counts with independent noise, by OpenDP and by diffprivlib.

OpenDP takes the scale of the noise. diffprivlib takes an epsilon for neighbours that differ by one
added or removed record. Here all tools are compared under replace-one. Replacing a record is a
removal and an addition, so the scale is twice the scale for one added or removed record.
"""

import itertools
import warnings
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from types import ModuleType

import duckdb
import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow.parquet as pq

Array = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]


def opendp_tables(tables: Sequence[Counts], epsilon: float) -> Array:
    """Noisy cells (m,) of all tables: discrete Laplace noise, epsilon-DP under replace-one."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    # One record is counted once in every table. If it is replaced, at most two cells of a table
    # change, each by 1.
    scale = 2 * len(tables) / epsilon
    noisy = dp.m.make_laplace(*space, scale=scale)(
        [int(count) for table in tables for count in table.ravel()]
    )
    return np.asarray(noisy, dtype=np.float64)


def diffprivlib_tables(columns: Counts, levels: Sequence[int], epsilon: float, seed: int) -> Array:
    """Noisy cells (m,) of all 2-way tables of `columns`; all tables get equal shares of epsilon."""
    pairs = [(i, j) for i in range(len(levels)) for j in range(i + 1, len(levels))]
    cells = []
    for number, (i, j) in enumerate(pairs):
        found, _ = _diffprivlib().tools.histogramdd(
            columns[:, [i, j]],
            # A histogram of diffprivlib is epsilon-DP for one added or removed record.
            epsilon=epsilon / (2 * len(pairs)),
            bins=[np.arange(levels[i] + 1) - 0.5, np.arange(levels[j] + 1) - 0.5],
            range=[(-0.5, levels[i] - 0.5), (-0.5, levels[j] - 0.5)],
            random_state=seed * len(pairs) + number,
        )
        cells.append(np.asarray(found, dtype=np.float64).ravel())
    return np.concatenate(cells)


@cache
def _diffprivlib() -> ModuleType:
    """The module `diffprivlib`.

    Its decision trees are not used here, but they import names that newer versions of scikit-learn
    do not have. These names are set before the import.
    """
    import sklearn.tree._tree as trees

    for name in ("DOUBLE", "DTYPE"):
        if not hasattr(trees, name):
            setattr(trees, name, np.float64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import diffprivlib

    return diffprivlib


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
