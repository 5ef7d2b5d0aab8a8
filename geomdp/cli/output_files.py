"""Files of --out: all of them are written, or none; nothing is overwritten unasked."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from geomdp.mechanisms import Release


@dataclass(frozen=True)
class OutputFiles:
    """Where the answers and their privacy record go.

    Parameters
    ----------
    answers : Path
        CSV file, its name ending in .csv. The record stands beside it, ending in .privacy.json.
    """

    answers: Path

    @property
    def record(self) -> Path:
        """The JSON privacy record."""
        return self.answers.with_suffix(".privacy.json")

    def check(self, overwrite: bool) -> None:
        """Raise ``ValueError`` if the place is wrong or, without `overwrite`, a file exists."""
        check_place(self.answers, ".csv")
        check_free((self.answers, self.record), overwrite)

    def write(self, answers: str, record: str) -> None:
        """Write both texts, the record first: there are never answers without one."""
        write_together({self.record: record.encode(), self.answers: answers.encode()})


def check_place(out: Path, ending: str) -> None:
    """Raise ``ValueError`` unless --out ends in `ending` and its folder exists."""
    if out.suffix != ending:
        raise ValueError(f"--out must name a file ending in {ending}, got {str(out)!r}")
    if not out.parent.is_dir():
        raise ValueError(f"--out must be in an existing folder, got {str(out)!r}")


def check_free(paths: Iterable[Path], overwrite: bool) -> None:
    """Raise ``ValueError`` if a file of --out is a folder or, without `overwrite`, exists."""
    for path in paths:
        if path.is_dir():
            raise ValueError(f"--out needs the file {str(path)!r}, which is a folder")
        if path.exists() and not overwrite:
            raise ValueError(f"--out would overwrite {str(path)!r}; say --force to allow it")


def write_together(contents: Mapping[Path, bytes]) -> None:
    """Write several files in full under other names, then rename them in the order given."""
    parts = {path: path.with_name(f".{path.name}.{os.getpid()}.part") for path in contents}
    try:
        for path, part in parts.items():
            _write_new(part, contents[path])
        for path, part in parts.items():
            os.replace(part, path)
    finally:
        for part in parts.values():
            part.unlink(missing_ok=True)


def answers_csv(labels: list[str], release: Release) -> str:
    """The answers as CSV: query, answer, predicted_rmse (the same root mean square for all)."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["query", "answer", "predicted_rmse"])
    predicted = f"{release.predicted_rmse.value:.6g}"
    for label, answer in zip(labels, release.answers, strict=True):
        # The shortest decimal that reads back as the same float64.
        writer.writerow([label, np.format_float_positional(answer, trim="-"), predicted])
    return text.getvalue()


def _write_new(path: Path, content: bytes) -> None:
    with path.open("xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
