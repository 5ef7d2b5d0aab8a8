"""Sources of the gallery: the committed figures, grouped by the question they answer."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from PIL import Image

from experiments.engine.figures import Folders, read_record
from experiments.engine.script import LoadedScript, Preset
from experiments.guide.docstring_text import Place, typeset, typeset_prose
from geomdp.cli.display import visible

#: Largest width in pixels of the small pictures on the first page.
SMALL = 480
#: Markup of reStructuredText that `typeset_prose` keeps. In a claim it belongs to a label.
_MARKUP = re.compile(r"[\\\[@]|\*\*+|``+|:(?=[`/])|__+")


class MissingFigureError(ValueError):
    """A script of the catalogue has no committed figure."""


def write_gallery(folder: Path, scripts: Sequence[LoadedScript], folders: Folders) -> None:
    """Write the pages and small pictures into a folder."""
    pages = gallery_pages(scripts, folders)
    small = folder / "small"
    small.mkdir(parents=True, exist_ok=True)
    for name, text in pages.items():
        (folder / f"{name}.rst").write_text(text, encoding="utf-8")
    for script in scripts:
        _shrink(_picture(script, folders), small / f"{script.name}.png")


def gallery_pages(scripts: Sequence[LoadedScript], folders: Folders) -> dict[str, str]:
    """The text of each page by its name: `index`, and one page for each question."""
    questions, pages = [], {}
    for package, group in groupby(scripts, key=lambda script: script.package):
        shown = [*group]
        question = (sys.modules[package].__doc__ or "").strip()
        name = package.rpartition(".")[2]
        questions.append((name, question, shown))
        sections = [_section(script, folders) for script in shown]
        asked, _, rest = question.partition("? ")
        pages[name] = f"{_title(asked.rstrip('?') + '?')}{rest}\n\n" + "\n".join(sections)
    return {"index": _index(questions), **pages}


def _index(questions: Sequence[tuple[str, str, Sequence[LoadedScript]]]) -> str:
    text = [
        ":html_theme.sidebar_secondary.remove: true\n\n",
        _title("Figures"),
        "Each figure answers one question and comes from one script, which checks its claims. The\n"
        "data, configurations and verdicts lie beside the figure in ``paper_figures/``.\n\n",
    ]
    for name, question, shown in questions:
        cards = "".join(_card(script) for script in shown)
        asked, _, rest = question.partition("? ")
        heading = _title(f"{asked.rstrip('?')}?", "-")
        text.append(f"{heading}{rest} :doc:`All on one page <{name}>`.\n\n")
        text.append(f".. grid:: 1 2 2 3\n   :gutter: 3\n\n{cards}\n")
    contents = "".join(f"   {name}\n" for name, _, _ in questions)
    return "".join(text) + f".. toctree::\n   :hidden:\n\n{contents}"


def _card(script: LoadedScript) -> str:
    return (
        f"   .. grid-item-card::\n"
        f"      :img-top: small/{script.name}.png\n"
        f"      :img-alt: {script.headline}\n"
        f"      :link: figure-{script.name}\n"
        f"      :link-type: ref\n\n"
        f"      {_typeset(script.headline)}\n\n"
    )


def _section(script: LoadedScript, folders: Folders) -> str:
    """One figure with its caption, the text of its script, its claims and its goals."""
    _picture(script, folders)
    headline = script.headline.rstrip(".")
    _, _, rest = inspect.cleandoc(script.module.__doc__ or "").partition("\n")
    record = read_record(folders.outputs(script.name, Preset.FULL)) or {}
    claims = "".join(_claim(claim) for claim in record.get("claims", ()))
    source = script.module.__name__.replace(".", "/")
    return (
        f".. _figure-{script.name}:\n\n{_title(headline, '-')}"
        f".. figure:: ../figures/{script.name}.png\n"
        f"   :alt: {headline}\n"
        f"   :target: ../_images/{script.name}.png\n"
        f"   :width: 100%\n\n"
        f"   ``{source}.py``\n\n"
        f"{_typeset(rest)}\n\n"
        f".. dropdown:: {_count(record.get('claims', ()))}\n\n{claims or '   None.'}\n\n"
        f"{_goals(record.get('goals', ()))}"
    )


def _claim(claim: dict[str, object]) -> str:
    verdict = "passed" if claim["passed"] else "FAILED"
    pieces = [_escaped(str(claim[key])) for key in ("name", "measured", "theory")]
    return f"   * **{verdict}**: {pieces[0]}. Measured: {pieces[1]}. Claimed: {pieces[2]}.\n"


def _count(claims: Sequence[dict[str, object]]) -> str:
    passed = sum(bool(claim["passed"]) for claim in claims)
    return f"Claims checked: {passed} of {len(claims)} passed"


def _goals(goals: Sequence[dict[str, object]]) -> str:
    """The goals of a figure, in a box that opens; empty if the figure has none."""
    if not goals:
        return ""
    count = sum(bool(goal["reached"]) for goal in goals)
    lines = "".join(_goal(goal) for goal in goals)
    return f".. dropdown:: Goals: {count} of {len(goals)} reached\n\n{lines}\n\n"


def _goal(goal: dict[str, object]) -> str:
    state = "reached" if goal["reached"] else "open"
    pieces = [_escaped(str(goal[key])) for key in ("name", "measured", "goal")]
    more = [_escaped(str(goal[key])) for key in ("beside", "reason") if goal[key]]
    words = "".join(f" {piece}." for piece in more)
    return f"   * **{state}**: {pieces[0]}. Measured: {pieces[1]}. Goal: {pieces[2]}.{words}\n"


def _typeset(text: str) -> str:
    return "\n".join(typeset(text.splitlines(), Place("geomdp", None)))


def _escaped(text: str) -> str:
    """A claim, typeset on one line. No label inside it is markup of its own or a control."""
    text = visible(" ".join(text.split()))
    plain = _MARKUP.sub(lambda found: re.sub(".", r"\\\g<0>", found[0]), text)
    return typeset_prose(plain, Place("geomdp", None))


def _picture(script: LoadedScript, folders: Folders) -> Path:
    path = folders.outputs(script.name, Preset.FULL).images[0]
    if not path.exists():
        raise MissingFigureError(f"{path} does not exist; run the script {script.name} with --full")
    return path


def _shrink(source: Path, target: Path) -> None:
    with Image.open(source) as picture:
        picture.thumbnail((SMALL, picture.height))  # keeps the ratio, and never enlarges
        picture.save(target)


def _title(text: str, mark: str = "=") -> str:
    return f"{text}\n{mark * len(text)}\n\n"
