"""All mutants, read from the TOML files of this folder: one file for each folder of figures."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

from experiments.catalogue import SCRIPTS
from experiments.planting.edits import Edit

#: Module of each figure by its short name.
FIGURES = {script.rpartition(".")[2]: script for script in SCRIPTS}


@dataclass(frozen=True)
class Mutant:
    """One mistake in the code, the figure that must show it, and the tests of the part."""

    name: str  # What is wrong, unique in the catalogue
    figure: str  # Short name of a script
    #: The function, as ``module:function`` or ``module:Class.method``.
    where: str
    old: str  # Occurs once in the text of the function
    new: str  # Takes its place
    tests: tuple[str, ...]  # Test files, or single tests as ``file::test``

    @property
    def edit(self) -> Edit:
        """The edit alone."""
        return Edit(self.where, self.old, self.new)


def _read(path: Path) -> list[Mutant]:
    rows = tomllib.loads(path.read_text(encoding="utf-8"))["mutant"]
    return [Mutant(**{**row, "tests": tuple(row["tests"])}) for row in rows]


MUTANTS: dict[str, Mutant] = {
    mutant.name: mutant
    for path in sorted(Path(__file__).parent.glob("*.toml"))
    for mutant in _read(path)
}
