"""The folder that Sphinx reads: pages written by hand, and pages generated from the library."""

from __future__ import annotations

import inspect
import shutil
from collections.abc import Sequence
from pathlib import Path

from experiments.engine.figures import ROOT, Folders
from experiments.engine.script import LoadedScript
from experiments.guide.decisions import candidate_table, chart
from experiments.guide.gallery import write_gallery
from experiments.guide.reference import write_reference
from experiments.guide.theorem_pages import write_theorems
from geomdp.cli.lessons import Lesson, all_lessons

HERE = Path(__file__).parent
#: Files of the repository that pages include.
INCLUDED = ("CHANGELOG.md", "CONTRIBUTING.md", "README.md")


def assemble(folder: Path, scripts: Sequence[LoadedScript], folders: Folders) -> None:
    """Write everything that Sphinx reads into `folder`, which must not exist yet.

    Raises
    ------
    MissingFigureError
        If a script has no committed figure.
    OSError
        If a file cannot be read or written.
    """
    shutil.copytree(HERE / "pages", folder)
    write_gallery(folder / "gallery", scripts, folders)
    shutil.copytree(HERE / "static", folder / "static")
    shutil.copy(HERE / "conf.py", folder)
    included = folder / "repository"
    included.mkdir()
    for name in INCLUDED:
        shutil.copy(ROOT / name, included)
    made = folder / "made"
    made.mkdir()
    (made / "chart.rst").write_text(chart(), encoding="utf-8")
    (made / "candidates.rst").write_text(candidate_table(), encoding="utf-8")
    (made / "lessons.md").write_text(_lessons(all_lessons()), encoding="utf-8")
    write_reference(folder / "reference")
    write_theorems(folder / "theorems", scripts)
    figures = folder / "figures"
    figures.mkdir()
    for picture in folders.figures.glob("*.png"):
        shutil.copy(picture, figures)


def _lessons(lessons: Sequence[Lesson]) -> str:
    """The titles of the lessons as a numbered list."""
    return "".join(f"{lesson.number}. {inspect.cleandoc(lesson.title)}\n" for lesson in lessons)
