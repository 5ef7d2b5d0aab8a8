"""Write the files of --out under other names, then rename all. Only --force replaces files."""

from __future__ import annotations

import base64
import csv
import fnmatch
import glob
import io
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from geomdp._numerics.files import room_for, write_together
from geomdp.cli import display
from geomdp.cli.display import visible

if TYPE_CHECKING:
    from geomdp.data import Schema
    from geomdp.tabulation.tasks import Task

#: Endings of the files of tables. The ending determines the format.
CSV, PARQUET = ".csv", ".parquet"
#: A spreadsheet takes text that begins with one of these characters for a formula.
FORMULA = "=+-@"
#: The columns of a table by name: lists of labels, None for no label, and arrays of numbers.
Columns: TypeAlias = Mapping[str, Sequence[str | None] | npt.NDArray[Any]]


@dataclass(frozen=True)
class OutputFiles:
    """Where the answers (.csv or .parquet) and their privacy record go."""

    answers: Path

    @property
    def record(self) -> Path:
        return self.answers.with_suffix(".privacy.json")

    def check(self, overwrite: bool, inputs: Iterable[Path | None]) -> None:
        """Raise ``ValueError`` for a wrong ending or folder, or a file that must not be written."""
        check_place(self.answers, CSV, PARQUET)
        check_free((self.answers, self.record), overwrite, inputs)

    def room(self, task: Task, schema: Schema) -> dict[Path, int]:
        """Bytes that the files of a release need at most, in the order in which they are written.

        A row has a label in at most two columns, an escaped character needs at most six bytes, and
        five numbers with their commas need less than 140. The rest fits into the room of a record.
        """
        longest = max(len(label.encode("utf-8", "replace")) for label in task.labels)
        row = 12 * longest + len(task.columns) + 140
        rest = record_room(schema)
        return {self.record: rest, self.answers: rest + row * task.workload.n_queries}

    def contents(self, answers: Columns, record: str) -> dict[Path, bytes]:
        """The files, record first, so that new answers never exist without their record."""
        lines = map(visible, record.split("\n"))  # only line breaks stand between JSON texts
        return {
            self.record: "\n".join(lines).encode(),
            self.answers: encoded(answers, self.answers),
        }


def record_room(schema: Schema) -> int:
    """Bytes that a privacy record needs at most, and thus the names and labels of the schema."""
    return 2**16 + 12 * len(schema.to_json())


def warn_of_formulas(columns: Columns, path: Path) -> None:
    """Warn if a spreadsheet would run labels or names in the CSV file `path` as formulas.

    They are written as they are, because "-5 to 0" and "+" can be answers in surveys.
    """
    found = []
    for name, column in columns.items():
        texts = [name] if isinstance(column, np.ndarray) else [name, *column]
        count = sum(text is not None and _is_formula(text) for text in texts)
        found += [f"{count} cells of {name}"] * bool(count)
    if found and path.suffix == CSV:
        display.warn(
            f"a spreadsheet would run {', '.join(found)} in {path} as formulas; import them as text"
        )


def _is_formula(text: str) -> bool:
    """Whether a spreadsheet would take a cell with this text for a formula, not for a number."""
    try:
        float(text)
    except ValueError:
        return len(text) > 1 and text[0] in FORMULA
    return False


def encoded(columns: Columns, path: Path) -> bytes:
    """A table in the format of the ending of `path`. CSV has the shortest exact decimals."""
    shown = {
        visible(name): column
        if isinstance(column, np.ndarray)
        else [cell if cell is None else visible(cell) for cell in column]
        for name, column in columns.items()
    }
    if path.suffix == CSV:
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(shown)
        cells = (part.tolist() if isinstance(part, np.ndarray) else part for part in shown.values())
        writer.writerows(zip(*cells, strict=True))
        return text.getvalue().encode()
    import pandas as pd  # imported here because pandas is slow to import

    buffer = io.BytesIO()
    pd.DataFrame(shown).to_parquet(buffer, index=False)
    return buffer.getvalue()


@contextmanager
def paid_files(sizes: Mapping[Path, int]) -> Iterator[Callable[[Mapping[Path, bytes], str], None]]:
    """Take room for files before a release is paid; yield the function that writes them after.

    If the files can't be written, they are saved elsewhere, and ``OSError`` says where and what was
    charged, so that nobody pays twice.
    """
    with room_for(sizes) as write:

        def write_or_save(contents: Mapping[Path, bytes], charged: str) -> None:
            try:
                write(contents)
            except OSError as error:
                reason = f"{error.strerror}; {charged}, and {_saved(contents)}: do not pay again"
                raise OSError(error.errno, reason, error.filename) from error

        yield write_or_save


def _saved(contents: Mapping[Path, bytes]) -> str:
    """Save files in a new folder for temporary files, or else print them; say where they are."""
    try:
        folder = Path(tempfile.mkdtemp(prefix="geomdp-"))
        write_together({folder / path.name: content for path, content in contents.items()})
    except OSError:
        for path, content in contents.items():
            print(f"{visible(path.name)} in base64:\n{base64.encodebytes(content).decode()}")
        return "the answers are on standard output"
    return f"the answers are in {folder}"


def check_place(out: Path, *endings: str) -> None:
    """Raise ``ValueError`` if --out ends in none of `endings`, or its folder does not exist."""
    if out.suffix not in endings:
        raise ValueError(
            f"--out must name a file ending in {' or '.join(endings)}, got {str(out)!r}"
        )
    if not out.parent.is_dir():
        raise ValueError(f"--out must be in an existing folder, got {str(out)!r}")


def check_free(paths: Iterable[Path], overwrite: bool, inputs: Iterable[Path | None] = ()) -> None:
    """Raise ``ValueError`` if a file is a folder, exists (without `overwrite`), or is an input.

    A link to an input counts as that input.
    """
    given = [path for path in inputs if path is not None]
    for path in paths:
        if path.is_dir():
            raise ValueError(f"--out would write the file {str(path)!r}, but that is a folder")
        for other in given:
            if is_input(path, other):
                raise ValueError(
                    f"--out would overwrite the input {str(other)!r} by {str(path)!r}, or add "
                    "that file to it; --force allows neither"
                )
        if path.exists() and not overwrite:
            raise ValueError(f"--out would overwrite {str(path)!r}; use --force to allow it")


def is_input(path: Path, given: Path) -> bool:
    """Whether `path` is, or would become, a file of `given`: a file, a folder or a pattern."""
    from geomdp.data.files import paths_at

    place = path.resolve()
    if given.is_dir() and any(_is_same(folder, given) for folder in place.parents):
        return True
    if any(_is_same(path, file) for file in paths_at(given)):
        return True
    # A new file becomes an input if its name and its folder match a pattern. A last part ** matches
    # folders, too, at any depth.
    pattern = given if given.name == "**" else given.parent
    folders = glob.iglob(str(pattern), recursive=True)
    matches = fnmatch.fnmatchcase(path.name, given.name) and not given.is_file()
    return matches and any(_is_same(place.parent, Path(folder)) for folder in folders)


def _is_same(path: Path, other: Path) -> bool:
    try:
        return os.path.samefile(path, other)
    except OSError:  # a name leads to no file or folder
        return False
