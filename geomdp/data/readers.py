"""Read CSV and Parquet files in chunks, so that a file can be larger than memory."""

from __future__ import annotations

import errno
import gzip
import os
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from geomdp._validation import whole

if TYPE_CHECKING:
    import pandas as pd

#: Default number of rows of a chunk. A chunk of a hundred columns of short texts is below 1 GB.
CHUNK_ROWS = 32_768
CSV_ENDINGS = (".csv", ".csv.gz")
PARQUET_ENDINGS = (".parquet",)
#: Largest number of bytes of a header that is read without pandas.
LONGEST_HEADER = 1 << 20
#: Matches a field of a header if its name has no quotation mark. The name may stand between two
#: quotation marks.
PLAIN_NAME = re.compile(r'[^"]*|"[^"]+"')


def read_chunks(
    path: str | os.PathLike[str], columns: Sequence[str] | None = None, rows: int = CHUNK_ROWS
) -> Iterator[pd.DataFrame]:
    """Read a CSV or Parquet file as DataFrames. A chunk is read only when it is needed.

    CSV (``.csv``, ``.csv.gz``) is read as UTF-8 with commas and one header line. **All values are
    texts**, because types found from the values could differ between chunks. An empty field is a
    missing value. Any other field, such as "NA", is a text. If a row has too few fields, the last
    values are missing. A row with too many fields is an error. A blank line is a row of missing
    values. `encode` takes these texts. For files that already hold numeric codes, see
    `numeric_chunks`.

    Parquet (``.parquet``) keeps the types of the file.

    Parameters
    ----------
    path : str or path
        The file. Its ending determines the format.
    columns : sequence of str, optional
        Columns to return, in this order; by default all.
    rows : int
        Largest number of rows of a chunk.

    Returns
    -------
    iterator of DataFrame
        Chunks with at least one row, indexed by row number from 0. If the file has a header and no
        rows, there are no chunks.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        At the call, if `rows` is below 1, the ending is unknown, the header cannot be read, a name
        in the header is empty or repeated, or `columns` is empty, is a single text, or has a
        repeated name or a name that is not in the header. While chunks are read, if the file is
        malformed. If the file is the cause, the message names the file.

    Examples
    --------
    >>> import pandas as pd
    >>> import geomdp as gd
    >>> pd.DataFrame({"age": [30, 40, 50]}).to_csv("survey.csv", index=False)
    >>> for chunk in gd.data.read_chunks("survey.csv", rows=2):
    ...     print(chunk["age"].tolist())
    ['30', '40']
    ['50']
    """
    path, rows = Path(path), whole(rows, "rows")
    chosen = _chosen(path, header(path), columns)
    read = _csv_chunks if path.name.endswith(CSV_ENDINGS) else _parquet_chunks
    return read(path, chosen, rows)


def header(path: Path) -> list[str]:
    """Names of the columns of a CSV or Parquet file. A name may be empty or repeated.

    A missing file, an unknown ending and an unreadable header raise the errors of `read_chunks`.
    """
    if path.is_dir() or not path.exists():
        raise FileNotFoundError(errno.ENOENT, "no such file of records", str(path))
    if path.name.endswith(CSV_ENDINGS):
        return _csv_header(path)
    if path.name.endswith(PARQUET_ENDINGS):
        return _parquet_header(path)
    endings = ", ".join(CSV_ENDINGS + PARQUET_ENDINGS)
    raise ValueError(f"{path}: the name of a file of records must end in one of {endings}")


def checked_header(path: Path) -> list[str]:
    """The `header` of a file; ``ValueError`` if a name is empty or repeated."""
    return _chosen(path, header(path), None)


def _chosen(path: Path, names: list[str], columns: Sequence[str] | None) -> list[str]:
    """The columns to read, checked against the header."""
    empty = [position for position, name in enumerate(names) if not name]
    if empty:
        raise ValueError(f"{path}: columns number {empty} (from 0) have no name in the header")
    # The error has positions instead of names. If a file has no header, its first line is a record,
    # and an error must not show the values of a record.
    repeated = [position for position, name in enumerate(names) if names.count(name) > 1]
    if repeated:
        raise ValueError(f"{path}: columns number {repeated} (from 0) share a name in the header")
    if columns is None:
        return names
    if isinstance(columns, str):
        raise ValueError(f"columns must be a list of names, got {columns!r}")
    chosen = list(columns)
    if not chosen or len(set(chosen)) < len(chosen):
        raise ValueError(f"columns must list at least one name, each once, got {chosen}")
    missing = [name for name in chosen if name not in names]
    if missing:
        raise ValueError(
            f"{path}: columns {missing} are not among the {len(names)} names in the header"
        )
    return chosen


@contextmanager
def _malformed_csv(path: Path, part: str) -> Iterator[None]:
    """Turn errors about a malformed file into ``ValueError``, whose message quotes no value.

    `part` says which part of the file was read.
    """
    import pandas as pd

    try:
        yield
    except pd.errors.ParserError as error:  # its message has numbers of lines and fields only
        raise ValueError(f"{path}: {part} cannot be read: {str(error).strip()}") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: {part} cannot be read: it is not utf-8") from error
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise ValueError(f"{path}: {part} cannot be read: the gzip data are damaged") from error


def _csv_header(path: Path) -> list[str]:
    plain = _plain_header(path)
    if plain is not None:
        return plain
    import pandas as pd

    try:
        with _malformed_csv(path, "the header"):
            header = pd.read_csv(
                path,
                header=None,
                nrows=1,
                dtype=str,
                keep_default_na=False,
                skip_blank_lines=False,
                encoding="utf-8",
            )
    except pd.errors.EmptyDataError as error:
        raise ValueError(
            f"{path}: the file must start with a header line, got an empty line or no line"
        ) from error
    return [str(name) for name in header.iloc[0]]


def _plain_header(path: Path) -> list[str] | None:
    """The names in an ASCII header if no name contains a comma or a quotation mark.

    Quotation marks around a whole name are no part of the name. The result is None for any other
    header, a blank header, a header without a line break, a header with a NUL or a carriage return
    inside, and a compressed file. Then pandas reads the header, or says what is wrong.
    """
    if not path.name.endswith(".csv"):
        return None
    with path.open("rb") as file:
        line = file.readline(LONGEST_HEADER)
    text = line.removesuffix(b"\n").removesuffix(b"\r")
    if text == line or not text.isascii() or not text.strip() or b"\r" in text or b"\0" in text:
        return None
    fields = text.decode().split(",")
    if not all(PLAIN_NAME.fullmatch(field) for field in fields):
        return None
    return [field.strip('"') for field in fields]


def _csv_chunks(path: Path, columns: list[str], rows: int) -> Iterator[pd.DataFrame]:
    import pandas as pd

    with _malformed_csv(path, "a row"):
        # All columns are parsed. If pandas may skip columns, it does not notice that a row has
        # too many fields.
        reader = pd.read_csv(
            path,
            dtype=str,
            keep_default_na=False,
            na_values=[""],
            skip_blank_lines=False,
            encoding="utf-8",
            chunksize=rows,
        )
        with reader:
            for chunk in reader:
                if not isinstance(chunk.index, pd.RangeIndex):
                    # If the first row has more fields than the header, pandas makes the first
                    # columns the index of the frame.
                    raise ValueError(f"{path}: the first row has more fields than the header")
                if len(chunk) > 0:
                    yield chunk[columns]


def _parquet_header(path: Path) -> list[str]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return [str(name) for name in pq.read_schema(path).names]
    except pa.ArrowInvalid as error:
        raise ValueError(f"{path}: not a Parquet file: {error}") from error
    except OSError as error:
        if error.errno is not None:  # raised by the system, not by Arrow for damaged content
            raise
        raise ValueError(f"{path}: the Parquet file is damaged: {error}") from error


def _parquet_chunks(path: Path, columns: list[str], rows: int) -> Iterator[pd.DataFrame]:
    import pandas as pd
    import pyarrow as pa
    import pyarrow.parquet as pq

    first_row = 0
    try:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=rows, columns=columns):
                chunk = batch.to_pandas(ignore_metadata=True)[columns]
                chunk.index = pd.RangeIndex(first_row, first_row + len(chunk))
                first_row += len(chunk)
                if len(chunk) > 0:
                    yield chunk
    except (pa.ArrowInvalid, OSError) as error:
        raise ValueError(f"{path}: the Parquet file cannot be read: {error}") from error
