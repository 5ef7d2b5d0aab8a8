"""Make a source of records from a path, a data frame or a table."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from geomdp.data.sources.files import files_at
from geomdp.data.sources.frames import Frame, is_frame
from geomdp.data.sources.partitions import Partitions, is_dask
from geomdp.data.sources.source import Source

if TYPE_CHECKING:
    import dask.dataframe as dd
    import pandas as pd
    import polars as pl
    import pyarrow as pa


def source_of(
    records: str
    | os.PathLike[str]
    | pd.DataFrame
    | pl.DataFrame
    | pa.Table
    | dd.DataFrame
    | Source,
) -> Source:
    """The source that reads `records`.

    Parameters
    ----------
    records : path, DataFrame, Table or Source
        The path of a CSV or Parquet file, of a folder of such files, or a pattern (see `files_at`).
        A DataFrame of pandas, polars or Dask, or an Arrow table. A source, such as `Query`, is
        returned unchanged.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If `records` has another type. If the name of a file in a folder, or of a file that matches
        a pattern, does not end in .csv, .csv.gz or .parquet.

    Examples
    --------
    >>> import pandas as pd
    >>> import geomdp as gd
    >>> records = pd.DataFrame({"age": [30, 40, 50]})
    >>> gd.data.source_of(records)
    Frame(DataFrame of 3 rows)
    >>> records.to_csv("survey.csv", index=False)
    >>> gd.data.source_of("survey.csv")
    File(survey.csv)
    """
    if isinstance(records, Source):
        return records
    if isinstance(records, str | os.PathLike):
        return files_at(records)
    if is_dask(records):
        return Partitions(records)
    if is_frame(records):
        return Frame(records)
    raise ValueError(
        f"records must be a DataFrame, a table, a path or a source, got {type(records).__name__}"
    )
