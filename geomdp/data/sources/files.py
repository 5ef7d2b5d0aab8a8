"""Sources of records in files.

DuckDB scans a file only if DuckDB and `read_chunks` read the same values.
"""

from __future__ import annotations

import errno
import glob
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from geomdp.data.readers import (
    CSV_ENDINGS,
    PARQUET_ENDINGS,
    checked_header,
    header,
    read_chunks,
)
from geomdp.data.sources.connection import connected
from geomdp.data.sources.source import Source
from geomdp.data.sql_names import quoted_text

if TYPE_CHECKING:
    import duckdb
    import pandas as pd

#: Number of bytes of a CSV file that `is_plain_csv` checks at a time.
BLOCK = 1 << 24
GLOB_CHARACTERS = "*?["
COMMA, QUOTE, NEWLINE, RETURN = b',"\n\r'
BESIDE_QUOTE = (b' "', b'" ', b'\t"', b'"\t')


@dataclass(frozen=True, repr=False)
class File(Source):
    """One CSV or Parquet file."""

    path: Path

    @property
    def name(self) -> str:
        """The path of the file."""
        return str(self.path)

    def chunks(self, columns: Sequence[str]) -> Iterator[pd.DataFrame]:
        """The chunks of `read_chunks`."""
        return read_chunks(self.path, columns)

    @contextmanager
    def relation(self, columns: Sequence[str]) -> Iterator[duckdb.DuckDBPyRelation | None]:
        """The file as a DuckDB relation; None if DuckDB and pandas could read different values."""
        del columns
        query = _reader(self.path)
        if query is None:
            yield None
            return
        with connected() as connection:
            yield connection.sql(query)


@dataclass(frozen=True, repr=False)
class Files(Source):
    """The files of a folder or of a pattern. Records come in the order of the files."""

    where: str
    paths: tuple[Path, ...]

    @property
    def name(self) -> str:
        """The folder or pattern, and the number of files."""
        return f"{self.where} ({len(self.paths)} files)"

    @property
    def parts(self) -> tuple[Source, ...]:
        """One source for each file."""
        return tuple(File(path) for path in self.paths)

    def chunks(self, columns: Sequence[str]) -> Iterator[pd.DataFrame]:
        """The chunks of all files, one file after the other."""
        for part in self.parts:
            yield from part.chunks(columns)


def files_at(path: str | os.PathLike[str]) -> Source:
    """The source of a file, of the files in a folder, or of the files that match a pattern.

    Parameters
    ----------
    path : str or path
        A file, a folder, or a pattern with ``*``, ``?`` or ``**`` such as ``a/*.parquet``. Files
        in a folder are read at any depth, in the order of their paths. A file in a folder is
        skipped if its name starts with a dot or an underscore, or if it lies in a subfolder with
        such a name. Files must be CSV or Parquet.

    Raises
    ------
    FileNotFoundError
        If there is no such file, or no file in the folder or for the pattern.
    ValueError
        If the name of a file in the folder, or of a file that matches the pattern, does not end in
        .csv, .csv.gz or .parquet. For a single file, this error is raised only when the file is
        read.
    """
    files = record_files(path)
    return File(files[0]) if files == (Path(path),) else Files(os.fspath(path), files)


def record_files(path: str | os.PathLike[str]) -> tuple[Path, ...]:
    """The files that `files_at` reads, in order; at least one. Errors are as in `files_at`."""
    place = Path(path)
    found = paths_at(place)
    if not found:
        raise FileNotFoundError(errno.ENOENT, "no such file of records", str(place))
    endings = CSV_ENDINGS + PARQUET_ENDINGS
    other = [str(file) for file in found if not file.name.endswith(endings)]
    if other and found != (place,):
        raise ValueError(
            f"files of records must end in one of {', '.join(endings)}, not {other[0]}"
        )
    return found


def paths_at(path: str | os.PathLike[str]) -> tuple[Path, ...]:
    """The file, the files in the folder, or the files that match the pattern, in order.

    If there are no such files, the result is empty.
    """
    place = Path(path)
    if place.is_file():
        return (place,)
    if place.is_dir():
        inside = (file for file in place.rglob("*") if not _hidden(file.relative_to(place)))
    else:
        inside = (Path(name) for name in glob.iglob(str(place), recursive=True))
    return tuple(sorted(file for file in inside if file.is_file()))


def _hidden(path: Path) -> bool:
    """Whether the name of a file, or of a folder on the way to it, starts with a dot or underscore.

    Programs that write folders of files keep unfinished files and notes under such names.
    """
    return any(name.startswith((".", "_")) for name in path.parts)


def column_names(path: str | os.PathLike[str]) -> list[str]:
    """Names of the columns of records in files, read from the headers. No record is read.

    Parameters
    ----------
    path : str or path
        A file, a folder or a pattern; see `files_at`.

    Returns
    -------
    list of str
        The names, in the order of the first file.

    Raises
    ------
    FileNotFoundError
        If there is no such file, or no file in the folder or for the pattern.
    ValueError
        If the name of a file does not end in .csv, .csv.gz or .parquet. If a file is empty or
        damaged, or starts with a blank line. If a name in a header is empty or repeated. If files
        have different columns.

    Examples
    --------
    >>> import pandas as pd
    >>> import geomdp as gd
    >>> pd.DataFrame({"age": [30], "smoker": [1]}).to_csv("survey.csv", index=False)
    >>> gd.data.column_names("survey.csv")
    ['age', 'smoker']
    """
    first, *others = record_files(path)
    names = checked_header(first)
    for other in others:
        if set(checked_header(other)) != set(names):
            different = sorted(set(checked_header(other)) ^ set(names))
            raise ValueError(
                f"files must have the same columns: {first} and {other} differ in {different}"
            )
    return names


def _reader(path: Path) -> str | None:
    """SQL that reads a file; None if DuckDB and `read_chunks` could read different values."""
    if any(character in str(path) for character in GLOB_CHARACTERS):
        return None
    if path.name.endswith(PARQUET_ENDINGS):
        return f"FROM read_parquet({quoted_text(str(path))}, hive_partitioning = false)"
    if not path.name.endswith(".csv") or not is_plain_csv(path):
        return None
    kinds = ", ".join(f"{quoted_text(name)}: 'VARCHAR'" for name in header(path))
    return (
        f"FROM read_csv({quoted_text(str(path))}, auto_detect = false, header = true, "
        f"columns = {{{kinds}}}, delim = ',', quote = '\"', escape = '\"', nullstr = '', "
        "strict_mode = true)"
    )


def is_plain_csv(path: Path) -> bool:
    """True only if DuckDB reads the same values from a CSV file as pandas, or raises an error.

    In three cases DuckDB reads other values without an error. DuckDB skips blank lines. If a line
    has one field too many, and the last field is empty, DuckDB ignores the last field. DuckDB drops
    a space or tab next to a quotation mark. This function searches the file for the three cases in
    blocks, without parsing.
    """
    last = bytes([NEWLINE, NEWLINE])  # an empty first line is then found like any blank line
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            text = last + block
            if not _is_plain(text):
                return False
            last = text[-2:]
    # A comma at the end of the file begins an empty last field, although no line break follows.
    return last[-1] != COMMA


def _is_plain(text: bytes) -> bool:
    """Whether `text` is sure to contain none of the three cases of `is_plain_csv`.

    `text` is the last 2 bytes of the previous block, followed by the block to check.
    """
    if QUOTE in text and any(pair in text for pair in BESIDE_QUOTE):
        return False
    letters = np.frombuffer(text, dtype=np.uint8)
    ends = np.flatnonzero(letters[2:] == NEWLINE) + 2
    before = letters[ends - 1]
    before = np.where(before == RETURN, letters[ends - 2], before)
    return not ((before == COMMA) | (before == NEWLINE)).any()
