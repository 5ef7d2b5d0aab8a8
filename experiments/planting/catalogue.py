"""All planted edits, read from TOML files: mutants of the figures, and faults of the library."""

import tomllib
from dataclasses import dataclass
from pathlib import Path

from experiments.planting.edits import Edit

FOLDER = Path(__file__).parents[1]


@dataclass(frozen=True)
class PlantedEdit:
    """One mistake in the code, and the tests that should notice it."""

    name: str  # Unique in its catalogue; for a mutant, it says what is wrong
    where: str  # The changed function, as ``module:function`` or ``module:Class.method``
    old: str  # Text that occurs once in the function
    new: str  # Text that takes the place of `old`
    tests: tuple[str, ...]  # Test files relative to the repository, or tests as ``file::test``
    breaks: str = ""  # What is wrong while the fault is planted; empty for a mutant
    #: Short name of the script that runs with the mutant, and the folder of `experiments` that the
    #: script lies in; empty for a fault.
    figure: str = ""
    folder: str = ""

    @property
    def script(self) -> str:
        """Module of the script."""
        return f"experiments.{self.folder}.{self.figure}"

    @property
    def edit(self) -> Edit:
        """The edit that plants the mistake."""
        return Edit(self.where, self.old, self.new)


def _read(path: Path, folder: str = "") -> tuple[PlantedEdit, ...]:
    rows = tomllib.loads(path.read_text(encoding="utf-8"))["edit"]
    return tuple(
        PlantedEdit(**{**row, "tests": tuple(row["tests"])}, folder=folder) for row in rows
    )


#: Mutants by name. There is one file for each folder of scripts.
MUTANTS = {
    mutant.name: mutant
    for path in sorted(FOLDER.glob("mutants/*.toml"))
    for mutant in _read(path, folder=path.stem)
}
#: One file for each part of the library that faults break.
FAULT_FILES = {
    part: FOLDER / "privacy" / "faults" / f"{part.replace(' ', '_')}.toml"
    for part in (
        "noise",
        "exact noise",
        "additive mechanisms",
        "interactive mechanisms",
        "privacy",
        "bounds",
    )
}
PARTS = {part: _read(path) for part, path in FAULT_FILES.items()}
#: Faults by name.
FAULTS = {fault.name: fault for faults in PARTS.values() for fault in faults}
