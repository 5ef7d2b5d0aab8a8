"""Write the files of --out under other names, then rename all. Only --force replaces files."""

from __future__ import annotations

import csv
import fnmatch
import io
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from geomdp._numerics.written_files import write_together

if TYPE_CHECKING:
    import pandas as pd

#: Endings of the files of tables. The ending determines the format.
CSV, PARQUET = ".csv", ".parquet"


@dataclass(frozen=True)
class OutputFiles:
    """Where the answers and their privacy record go.

    Parameters
    ----------
    answers : Path
        A file name that ends in .csv or .parquet. The privacy record is in the same folder, with
        the ending .privacy.json.
    """

    answers: Path

    @property
    def record(self) -> Path:
        """The JSON privacy record."""
        return self.answers.with_suffix(".privacy.json")

    def check(self, overwrite: bool, inputs: Iterable[Path | None]) -> None:
        """Raise ``ValueError`` if the ending or the folder is wrong, or a file must not be written.

        An existing file may be written only with `overwrite`. An input must never be written.
        """
        check_place(self.answers, CSV, PARQUET)
        check_free((self.answers, self.record), overwrite, inputs)

    def write(
        self, answers: Mapping[str, list[str | None] | npt.NDArray[Any]], record: str
    ) -> None:
        """Write the columns of the answers, by name, and the record.

        The record is put in its place first, so that new answers never exist without their record.
        """
        if self.answers.suffix == CSV:
            content = _csv(answers)
        else:
            import pandas as pd  # imported here because pandas is slow to import

            content = encoded(pd.DataFrame(answers), self.answers)
        write_together({self.record: record.encode(), self.answers: content})


def _csv(columns: Mapping[str, list[str | None] | npt.NDArray[Any]]) -> bytes:
    """The CSV text that `encoded` gives, without pandas, whose import takes half a second."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    cells = (part.tolist() if isinstance(part, np.ndarray) else part for part in columns.values())
    writer.writerows(zip(*cells, strict=True))
    return text.getvalue().encode()


def encoded(frame: pd.DataFrame, path: Path) -> bytes:
    """A table in the format that the ending of `path` names.

    Numbers in CSV are the shortest decimals that are read back as the same float64.
    """
    if path.suffix == CSV:
        return frame.to_csv(index=False, lineterminator="\n").encode()
    buffer = io.BytesIO()
    frame.to_parquet(buffer, index=False)
    return buffer.getvalue()


def check_place(out: Path, *endings: str) -> None:
    """Raise ``ValueError`` if --out ends in none of `endings`, or its folder does not exist."""
    if out.suffix not in endings:
        raise ValueError(
            f"--out must name a file ending in {' or '.join(endings)}, got {str(out)!r}"
        )
    if not out.parent.is_dir():
        raise ValueError(f"--out must be in an existing folder, got {str(out)!r}")


def check_free(paths: Iterable[Path], overwrite: bool, inputs: Iterable[Path | None] = ()) -> None:
    """Raise ``ValueError`` if a file of --out is a folder, an input, or an existing file.

    An existing file is allowed with `overwrite`. An input (see `is_input`) is never allowed, even
    under another name: a link to a file counts as that file.
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
    """Whether `path` is an input file that `given` names, or would become an input file.

    Parameters
    ----------
    path : Path
        A file to be written. If the file exists, it may have other names, too.
    given : Path
        A file, a folder or a pattern. A folder names all files in it, at any depth. For a pattern,
        a new file is recognised only in a folder that already has an input.
    """
    from geomdp.data.sources.files import paths_at

    place = path.resolve()
    if given.is_dir() and any(_is_same(folder, given) for folder in place.parents):
        return True
    inputs = paths_at(given)
    if any(_is_same(path, file) for file in inputs):
        return True
    # A new file becomes an input if it is in the folder of an input and matches the pattern.
    beside = any(_is_same(place.parent, file.parent) for file in inputs)
    pattern = not given.is_file() and not given.is_dir()
    return pattern and beside and fnmatch.fnmatchcase(path.name, given.name)


def _is_same(path: Path, other: Path) -> bool:
    """Whether two names lead to one file or folder."""
    try:
        return os.path.samefile(path, other)
    except OSError:  # a name leads to no file or folder
        return False
