"""Records in CSV and Parquet files, read in blocks, so that a file can be larger than memory.

A CSV file that is not written by RFC 4180 in the format of the schema is refused as a whole. Then
no record can change how another record is read.
"""

from __future__ import annotations

import codecs
import contextlib
import csv as csv_module
import difflib
import errno
import glob
import gzip
import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from io import BufferedIOBase
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from geomdp._typing import BoolArray, IntArray
from geomdp._validation import whole
from geomdp.data.columns import COMMAS, CsvFormat
from geomdp.data.frames import CHUNK_ROWS, RecordsError, Source, without_values

if TYPE_CHECKING:
    import pyarrow as pa

CSV_ENDINGS = (".csv", ".csv.gz")
PARQUET_ENDINGS = (".parquet",)
#: Number of bytes of a CSV file that are read at a time.
BLOCK = 1 << 23
#: Largest number of bytes of one record, and of a header.
LONGEST_RECORD = 1 << 26
QUOTE, NEWLINE, RETURN = b'"\n\r'
#: Largest number of names of a header that an error shows.
SHOWN = 10


@dataclass(frozen=True, repr=False)
class File(Source):
    """One CSV or Parquet file."""

    path: Path
    rows: int = CHUNK_ROWS
    csv: CsvFormat = COMMAS

    @property
    def name(self) -> str:
        return str(self.path)

    def written_as(self, csv: CsvFormat) -> Source:
        return replace(self, csv=csv)

    def _batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        chosen = _chosen(self.path, columns, self.csv)
        if self.path.name.endswith(CSV_ENDINGS):
            return _csv_batches(self.path, chosen, self.rows, self.csv)
        return _parquet_batches(self.path, chosen, self.rows)


@dataclass(frozen=True, repr=False)
class Files(Source):
    """The files of a folder or of a pattern. Records come in the order of the files."""

    where: str
    paths: tuple[Path, ...]
    csv: CsvFormat = COMMAS

    @property
    def name(self) -> str:
        return f"{self.where} ({len(self.paths)} files)"

    @property
    def parts(self) -> tuple[Source, ...]:
        return tuple(File(path, csv=self.csv) for path in self.paths)

    def written_as(self, csv: CsvFormat) -> Source:
        return replace(self, csv=csv)


def read_chunks(
    path: str | os.PathLike[str],
    columns: Sequence[str] | None = None,
    rows: int = CHUNK_ROWS,
    csv: CsvFormat = COMMAS,
) -> Iterator[pa.RecordBatch]:
    """Read a CSV or Parquet file as Arrow batches. A chunk is read only when it is needed.

    CSV (``.csv``, ``.csv.gz``) has one header line. **All values are texts**, because types found
    from the values would let one record change the others. An empty field is a missing value ("NA"
    is a text), and a blank line a row of them. Parquet (``.parquet``) keeps the types of the file.

    Parameters
    ----------
    path : str or path
        The file. Its ending determines the format.
    columns : sequence of str, optional
        Columns to return, in this order; by default all.
    rows, csv : int, CsvFormat
        Largest number of rows of a chunk; separator and encoding of a CSV file.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        At the call, if `rows` is below 1, the ending is unknown, a name in the header is empty or
        repeated, or `columns` is no list of different names in the header. While chunks are read,
        if the file is malformed, with the row and what is wrong: too few or too many fields, a
        quotation mark that does not enclose a whole field, a carriage return without a line feed,
        or bytes outside the encoding.

    Examples
    --------
    >>> import pandas as pd
    >>> import geomdp as gd
    >>> pd.DataFrame({"age": [30, 40, 50]}).to_csv("survey.csv", index=False)
    >>> for chunk in gd.data.read_chunks("survey.csv", rows=2):
    ...     print(chunk["age"].to_pylist())
    ['30', '40']
    ['50']
    """
    path, rows = Path(path), whole(rows, "rows")
    return File(path, rows, csv).chunks(_chosen(path, columns, csv))


def header(path: Path, csv: CsvFormat = COMMAS) -> list[str]:
    """Names of the columns of a file, maybe empty or repeated, with the errors of `read_chunks`."""
    if path.is_dir() or not path.exists():
        raise FileNotFoundError(errno.ENOENT, "no such file of records", str(path))
    if path.name.endswith(CSV_ENDINGS):
        failure = f"{path}: the header cannot be read"
        return without_values(lambda: _csv_header(path, csv), failure)
    if path.name.endswith(PARQUET_ENDINGS):
        import pyarrow.parquet as pq

        read = without_values(lambda: pq.read_schema(path), f"{path}: not a Parquet file")
        return [str(name) for name in read.names]
    endings = ", ".join(CSV_ENDINGS + PARQUET_ENDINGS)
    raise RecordsError(f"{path}: the name of a file of records must end in one of {endings}")


def _chosen(path: Path, columns: Sequence[str] | None, csv: CsvFormat) -> list[str]:
    """The `columns` of a file, by default all; ``ValueError`` for names that do not fit."""
    names = header(path, csv)
    empty = [position for position, name in enumerate(names) if not name]
    if empty:
        raise RecordsError(f"{path}: columns number {empty} (from 0) have no name in the header")
    # The first line may be a record, so errors have positions instead of names.
    repeated = [position for position, name in enumerate(names) if names.count(name) > 1]
    if repeated:
        raise RecordsError(f"{path}: columns number {repeated} (from 0) share a name in the header")
    if columns is None:
        return names
    if isinstance(columns, str):
        raise RecordsError(f"columns must be a list of names, got {columns!r}")
    chosen = list(columns)
    if not chosen or len(set(chosen)) < len(chosen):
        raise RecordsError(f"columns must list at least one name, each once, got {chosen}")
    missing = [name for name in chosen if name not in names]
    if missing:
        found, absent = _what_is_there(path, chosen, missing, names, csv), map(repr, missing)
        raise RecordsError(f"{path}: the header has no column {', '.join(absent)}{found}")
    return chosen


def _what_is_there(
    path: Path, chosen: list[str], missing: list[str], names: list[str], csv: CsvFormat
) -> str:
    """What the header has in place of missing columns, and no value if it may be a record."""
    folded = {name.casefold(): name for name in names}
    if {name.casefold() for name in chosen} & set(folded):
        meant = [
            f"write {json.dumps(folded[near], ensure_ascii=False)} for {name!r}"
            for name in missing
            for near in difflib.get_close_matches(name.casefold(), folded, 1)
        ]
        shown = ", ".join(map(repr, names[:SHOWN])) + (", ..." if len(names) > SHOWN else "")
        return "; ".join([f"; it has {shown}", *meant])
    if path.name.endswith(CSV_ENDINGS):
        for separator in CsvFormat.SEPARATORS:
            other = replace(csv, separator=separator)
            if set(chosen) & set(header(path, other)):
                line = json.dumps({"csv": other.to_dict()}, ensure_ascii=False)[1:-1]
                return f", but it has with another separator; add {line} to the schema"
    return ", and no other name of the schema; a file of records must start with a header line"


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[BufferedIOBase]:
    """The bytes of a CSV file, after the byte order mark that some programs put first."""
    with gzip.open(path) if path.name.endswith(".gz") else path.open("rb") as file:
        if file.read(len(codecs.BOM_UTF8)) != codecs.BOM_UTF8:
            file.seek(0)
        yield file


def _csv_header(path: Path, csv: CsvFormat) -> list[str]:
    with _opened(path) as file:
        text = file.readline(LONGEST_RECORD)
        while text.count(b'"') % 2 and (more := file.readline(LONGEST_RECORD)):
            text += more
            if len(text) > LONGEST_RECORD:
                raise RecordsError(f"{path}: the header is longer than {LONGEST_RECORD} bytes")
    if not text.strip():
        raise RecordsError(
            f"{path}: the file must start with a header line, got an empty line or no line"
        )
    _check_quotes(text, csv, f"{path}: in the header")
    try:
        decoded = text.decode(csv.encoding)
    except UnicodeDecodeError:
        decoded = None
    if decoded is None:
        raise RecordsError(f"{path}: the header is not {csv.encoding}; {_other_encoding(csv)}")
    return next(csv_module.reader([decoded], strict=True, delimiter=csv.separator))


def _other_encoding(csv: CsvFormat) -> str:
    """What to write in a schema if a file is not written in the declared encoding."""
    line = json.dumps({"csv": replace(csv, encoding="latin-1").to_dict()}, ensure_ascii=False)
    return f"for other files of Western languages add {line[1:-1]} to the schema"


def _csv_batches(
    path: Path, columns: list[str], rows: int, csv: CsvFormat
) -> Iterator[pa.RecordBatch]:
    names, first_row = header(path, csv), 0
    with _opened(path) as file:
        for block in _whole_records(path, file):
            table = _parsed(path, block, names, columns, first_row, csv)
            first_row += table.num_rows
            yield from table.to_batches(rows)


def _whole_records(path: Path, file: BufferedIOBase) -> Iterator[bytes]:
    """Blocks of whole records of a CSV file, without the header."""
    rest, is_header = b"", True
    while block := file.read(BLOCK):
        rest += block
        if QUOTE not in rest and not is_header:
            end = rest.rfind(b"\n") + 1
        else:
            ends = _record_ends(rest)
            if is_header and len(ends):
                rest, ends, is_header = rest[ends[0] + 1 :], ends[1:] - (ends[0] + 1), False
            end = int(ends[-1]) + 1 if len(ends) else 0
        if end:
            yield rest[:end]
        elif len(rest) > LONGEST_RECORD:
            raise RecordsError(
                f"{path}: a record is longer than {LONGEST_RECORD} bytes; a quotation mark may be "
                "without its pair"
            )
        rest = rest[end:]
    if rest and not is_header:
        yield rest


def _record_ends(text: bytes) -> IntArray:
    """Places of the line breaks in `text` (whole records) that end a record."""
    letters = np.frombuffer(text, dtype=np.uint8)
    breaks = np.flatnonzero(letters == NEWLINE)
    return breaks[_outside(breaks, np.flatnonzero(letters == QUOTE))]


def _outside(places: IntArray, quotes: IntArray) -> BoolArray:
    """Whether each place lies outside quotation marks: an even number of them stands before it."""
    return np.asarray(np.searchsorted(quotes, places) % 2 == 0)


def _check_quotes(text: bytes, csv: CsvFormat, where: str, first_row: int | None = None) -> None:
    """Check that quotation marks of whole records enclose fields, as RFC 4180 says."""
    if QUOTE not in text and RETURN not in text:
        return
    letters = np.frombuffer(b"\n" + text + b"\n", dtype=np.uint8)
    quotes = np.flatnonzero(letters == QUOTE)
    returns = np.flatnonzero(letters == RETURN)
    opening, closing, comma = quotes[::2], quotes[1::2], ord(csv.separator)
    around = [
        opening[~np.isin(letters[opening - 1], (comma, NEWLINE, QUOTE))],
        closing[~np.isin(letters[closing + 1], (comma, NEWLINE, RETURN, QUOTE))],
        quotes[len(quotes) - len(quotes) % 2 :],  # the last one, if it has no pair
        returns[_outside(returns, quotes) & (letters[returns + 1] != NEWLINE)],
    ]
    faults = [
        "a quotation mark that does not begin a field, in a field without quotation marks",
        "a quotation mark that does not end the field, and is not doubled",
        "a quotation mark without its pair",
        "a carriage return without a line feed",
    ]
    for found, fault in zip(around, faults, strict=True):
        if len(found):
            row = "" if first_row is None else f"row {_row_at(text, int(found[0]) - 1, first_row)}"
            raise RecordsError(f"{where}{row} has {fault}")


def _row_at(text: bytes, place: int, first_row: int) -> int:
    """Number of the record with the byte at `place`, if `text` begins with record `first_row`."""
    return first_row + int(np.searchsorted(_record_ends(text), place))


def _parsed(
    path: Path, block: bytes, names: list[str], columns: list[str], first_row: int, csv: CsvFormat
) -> pa.Table:
    """The fields of whole records as texts. Errors name the first malformed row."""
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    _check_quotes(block, csv, f"{path}: ", first_row)
    if csv.encoding != COMMAS.encoding:
        block = _in_utf8(path, block, first_row, csv)
    if block.startswith(codecs.BOM_UTF8):  # of a record; Arrow drops the first
        block = codecs.BOM_UTF8 + block
    convert = arrow_csv.ConvertOptions(
        column_types=dict.fromkeys(columns, pa.string()),
        include_columns=columns,
        null_values=[""],
        strings_can_be_null=True,
    )

    def parse(threads: bool, note: Callable[[Any], str] | None) -> pa.Table:
        # One thread parses the block as a whole, which finds the row with a fault.
        size = {} if threads else {"block_size": len(block) + 1}
        return arrow_csv.read_csv(
            pa.BufferReader(block),
            arrow_csv.ReadOptions(column_names=names, use_threads=threads, **size),
            arrow_csv.ParseOptions(
                delimiter=csv.separator,
                ignore_empty_lines=False,
                newlines_in_values=QUOTE in block,
                invalid_row_handler=note,
            ),
            convert,
        )

    try:
        return parse(True, None)
    except pa.ArrowInvalid:
        pass  # a fault, or a record longer than the blocks of the threads
    _in_utf8(path, block, first_row, COMMAS)  # first, because Arrow decodes the rows that it notes
    invalid: list[tuple[int, int]] = []

    def note(row: Any) -> str:
        invalid.append((first_row + row.number - 1, row.actual_columns))
        return "error"

    try:
        return parse(False, note)
    except pa.ArrowInvalid:
        pass
    fault = "cannot be read"
    if invalid:
        row, fields = invalid[0]
        fault = f"row {row} has {fields} fields, the header has {len(names)}"
    raise RecordsError(f"{path}: {fault}")


def _in_utf8(path: Path, block: bytes, first_row: int, csv: CsvFormat) -> bytes:
    """Whole records in UTF-8; an error names the first row that is not in the encoding."""
    try:
        text = block.decode(csv.encoding)
    except UnicodeDecodeError as error:
        row = _row_at(block, error.start, first_row)
    else:
        return text.encode()
    raise RecordsError(f"{path}: row {row} is not {csv.encoding}; {_other_encoding(csv)}")


def _parquet_batches(path: Path, columns: list[str], rows: int) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds = pq.read_schema(path)
    texts = [n for n in columns if kinds.field(n).type in (pa.string(), pa.large_string())]
    # Texts stay as places in a list of distinct texts: this is twice as fast. Without `pre_buffer`,
    # Arrow does not read the whole file ahead.
    with pq.ParquetFile(path, read_dictionary=texts, pre_buffer=False) as file:
        for batch in file.iter_batches(batch_size=rows, columns=columns):
            yield batch.select(columns)


def record_files(path: str | os.PathLike[str]) -> tuple[Path, ...]:
    """The files that `source_of` reads, in order; at least one."""
    place = Path(path)
    found = paths_at(place)
    if not found:
        raise FileNotFoundError(errno.ENOENT, "no such file of records", str(place))
    endings = CSV_ENDINGS + PARQUET_ENDINGS
    other = [file for file in found if not file.name.endswith(endings)]
    if other and found != (place,):
        raise ValueError(
            f"files of records must end in one of {', '.join(endings)}, not {other[0]}"
        )
    return found


def paths_at(path: str | os.PathLike[str]) -> tuple[Path, ...]:
    """The file, the files in the folder, or those that match the pattern, in order; maybe none."""
    place = Path(path)
    if place.is_file():
        return (place,)
    if place.is_dir():
        # Names of unfinished files start with a dot or an underscore.
        every = ((file, file.relative_to(place).parts) for file in place.rglob("*"))
        inside = (file for file, own in every if not any(n.startswith((".", "_")) for n in own))
    else:
        inside = (Path(name) for name in glob.iglob(str(place), recursive=True))
    return tuple(sorted(file for file in inside if file.is_file()))


def column_names(path: str | os.PathLike[str], csv: CsvFormat = COMMAS) -> list[str]:
    """Names of the columns in the order of the first file. No record is read."""
    first, *others = record_files(path)
    names = _chosen(first, None, csv)
    for other in others:
        different = sorted(set(_chosen(other, None, csv)) ^ set(names))
        if different:
            said = f"{first} and {other} differ in {different}"
            raise ValueError(f"files must have the same columns: {said}")
    return names


def csv_format(path: str | os.PathLike[str]) -> CsvFormat:
    """The separator that gives the first header the most fields, and the encoding of the files."""
    files = [file for file in record_files(path) if file.name.endswith(CSV_ENDINGS)]
    encoding = CsvFormat.ENCODINGS[max(map(_encoding_at, files), default=0)]
    counts = {}
    for separator in CsvFormat.SEPARATORS if files else ():
        csv = CsvFormat(separator, encoding)
        with contextlib.suppress(RecordsError):  # the separator stands beside a quotation mark
            counts[csv] = len(header(files[0], csv))
    return max(counts, key=counts.__getitem__, default=COMMAS)


def _encoding_at(path: Path) -> int:
    """The place in `CsvFormat.ENCODINGS` of the encoding of a file."""
    decoder, utf8, controls = codecs.getincrementaldecoder("utf-8")(), True, False
    with _opened(path) as file:
        while block := file.read(BLOCK):
            letters = np.frombuffer(block, dtype=np.uint8)
            controls |= bool(((letters >= 0x80) & (letters < 0xA0)).any())
            try:
                decoder.decode(block)
            except UnicodeDecodeError:
                utf8 = False
    return 0 if utf8 else 1 + controls
