"""Write the report of a preset from its stored records, tables and figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from experiments.engine.figures import Folders, replacing
from experiments.engine.script import LoadedScript, Preset
from experiments.report.gathered import Gathered, gather
from experiments.report.markup import CLAIM_PAGE, START, THEOREM_PAGE, page_of
from experiments.report.page import BEHAVIOUR, STYLE, contents_of, page, story
from experiments.report.section import section
from experiments.report.tables import all_claims, theorem_index

SOURCES = Path(__file__).parent


@dataclass(frozen=True)
class Built:
    """Where the report is and what it holds."""

    path: Path  # The start page
    #: Number of figures, of claims that passed, and of claims that failed.
    figures: int
    passed: int
    failed: int
    missing: tuple[str, ...]  # Scripts without a figure at this preset


def build_report(scripts: Sequence[LoadedScript], preset: Preset, folders: Folders) -> Built:
    """Write the folder ``report`` beside the figures of a preset; nothing is computed."""
    found = gather(scripts, preset, folders)
    folder = folders.outputs("report", preset).folder / "report"
    files = _files(found, preset)
    for name, content in files.items():
        with replacing(folder / name) as temporary:
            temporary.write_bytes(content)
    for stale in folder.iterdir():
        # Delete the pages and pictures that an earlier report has left.
        if stale.suffix in (".html", ".webp") and stale.name not in files:
            stale.unlink()
    verdicts = [claim["passed"] for entry in found for claim in entry.claims]
    return Built(
        path=folder / START,
        figures=sum(entry.has_figure for entry in found),
        passed=sum(verdicts),
        failed=len(verdicts) - sum(verdicts),
        missing=tuple(entry.name for entry in found if not entry.has_figure),
    )


def _files(found: Sequence[Gathered], preset: Preset) -> dict[str, bytes]:
    """Contents of all files of the report by name."""
    contents = contents_of(found)
    bodies = {
        START: story(found, contents, preset),
        CLAIM_PAGE: all_claims(found),
        THEOREM_PAGE: theorem_index(found),
    }
    for file, group in groupby(found, key=lambda entry: page_of(entry.script)):
        bodies[file] = "\n".join(section(entry, preset) for entry in group)
    pages = {entry.file: page(contents, entry, bodies[entry.file]) for entry in contents}
    sources = {STYLE: SOURCES / "page.css", BEHAVIOUR: SOURCES / "page.js"}
    return {
        **{name: text.encode() for name, text in pages.items()},
        **{name: path.read_bytes() for name, path in sources.items()},
        **{f"{each.name}.webp": each.picture.data for each in found if each.picture is not None},
    }
