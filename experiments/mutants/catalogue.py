"""All mutants, read from the TOML files of this folder: one file for each folder of scripts."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

from experiments.planting.edits import Edit


@dataclass(frozen=True)
class Mutant:
    """One mistake in the code, the figure that runs with it, and the tests of the changed code."""

    name: str  # What is wrong, unique in the catalogue
    folder: str  # Folder of `experiments` that the figure's script lies in
    figure: str  # Short name of the script
    #: The changed function, as ``module:function`` or ``module:Class.method``.
    where: str
    old: str  # Text that occurs once in the function
    new: str  # Text that takes the place of `old`
    tests: tuple[str, ...]  # Whole test files, relative to the repository

    @property
    def script(self) -> str:
        """Module of the script."""
        return f"experiments.{self.folder}.{self.figure}"

    @property
    def edit(self) -> Edit:
        """The edit that plants the mistake."""
        return Edit(self.where, self.old, self.new)


def _read(path: Path) -> list[Mutant]:
    rows = tomllib.loads(path.read_text(encoding="utf-8"))["mutant"]
    return [Mutant(folder=path.stem, **{**row, "tests": tuple(row["tests"])}) for row in rows]


MUTANTS: dict[str, Mutant] = {
    mutant.name: mutant
    for path in sorted(Path(__file__).parent.glob("*.toml"))
    for mutant in _read(path)
}
