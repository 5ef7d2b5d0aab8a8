"""Write the report of a preset from what is stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from experiments.engine.figures import replacing
from experiments.engine.reproduce import Folders
from experiments.engine.script import LoadedScript, Preset
from experiments.report.gathered import gather
from experiments.report.page import page


@dataclass(frozen=True)
class Built:
    """Where the report is and what it holds."""

    path: Path  # The file
    #: Numbers of figures, and of claims by verdict.
    figures: int
    passed: int
    failed: int
    missing: tuple[str, ...]  # Scripts without a figure at this preset


def build_report(scripts: Sequence[LoadedScript], preset: Preset, folders: Folders) -> Built:
    """Write ``report.html`` beside the figures of a preset; nothing is computed.

    Parameters
    ----------
    scripts : sequence of LoadedScript
        The scripts, in the order of the page.
    preset : Preset
        Whose outputs are shown.
    folders : Folders
        Where outputs are.

    Raises
    ------
    OSError
        If a file cannot be read or written.
    """
    found = gather(scripts, preset, folders)
    path = folders.outputs("report", preset).folder / "report.html"
    with replacing(path) as temporary:
        temporary.write_text(page(found, preset), encoding="utf-8")
    verdicts = [claim["passed"] for entry in found for claim in entry.claims]
    return Built(
        path=path,
        figures=sum(entry.has_figure for entry in found),
        passed=sum(verdicts),
        failed=len(verdicts) - sum(verdicts),
        missing=tuple(entry.name for entry in found if not entry.has_figure),
    )
