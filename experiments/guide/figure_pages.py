"""Sources of the figures: a page for each figure, and an index by the question they answer."""

import inspect
import re
import sys
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from PIL import Image

from experiments.engine.figures import Folders, drawing, read_record, read_table
from experiments.engine.script import LoadedScript, Preset
from experiments.guide.charts import chart_html, panels_of
from experiments.guide.docstring_text import Place, typeset, typeset_prose
from experiments.guide.markup import card, contents, title
from geomdp.cli.display import visible

#: Largest width in pixels of the small pictures.
SMALL = 480
#: Markup of reStructuredText that `typeset_prose` keeps. In a claim it belongs to a label.
_MARKUP = re.compile(r"[\\\[@]|\*\*+|``+|:(?=[`/])|__+")


class MissingFigureError(ValueError):
    """A script of the catalogue has no committed figure."""


def write_figures(folder: Path, scripts: Sequence[LoadedScript], folders: Folders) -> None:
    """Write the pages and small pictures into a folder."""
    small = folder / "small"
    small.mkdir(parents=True, exist_ok=True)
    for name, text in figure_pages(scripts, folders).items():
        (folder / f"{name}.rst").write_text(text, encoding="utf-8")
    for script in scripts:
        _shrink(_picture(script, folders), small / f"{script.name}.png")


def figure_pages(scripts: Sequence[LoadedScript], folders: Folders) -> dict[str, str]:
    """The text of each page by its name: `index`, and one page for each script."""
    return {"index": _index(scripts), **{each.name: _page(each, folders) for each in scripts}}


def record_of(script: LoadedScript, folders: Folders) -> Mapping[str, Any]:
    """The committed record of a script; empty if there is none."""
    return read_record(folders.outputs(script.name, Preset.FULL)) or {}


def _index(scripts: Sequence[LoadedScript]) -> str:
    text = [
        ":html_theme.sidebar_secondary.remove: true\n\n",
        title("Figures by question"),
        "Each figure answers one question and comes from one script, which checks its claims. The\n"
        "data, configurations and verdicts lie beside the figure in ``paper_figures/``.\n\n",
    ]
    for package, group in groupby(scripts, key=lambda script: script.package):
        asked, _, rest = (sys.modules[package].__doc__ or "").strip().partition("? ")
        cards = "".join(
            card(
                f"figure-{one.name}", _typeset(one.headline), "", f"small/{one.name}", one.headline
            )
            for one in group
        )
        heading = title(f"{asked.rstrip('?')}?", "-")
        text.append(f"{heading}{rest}\n\n.. grid:: 1 2 2 3\n   :gutter: 3\n\n{cards}\n")
    names = [f"{script.name.replace('_', ' ')} <{script.name}>" for script in scripts]
    return "".join(text) + contents(names)


def _page(script: LoadedScript, folders: Folders) -> str:
    """One figure with its caption, chart, the text of its script, claims, goals and origin."""
    _picture(script, folders)
    headline = script.headline.rstrip(".")
    _, _, rest = inspect.cleandoc(script.module.__doc__ or "").partition("\n")
    record = record_of(script, folders)
    claims = "".join(map(claim_line, record.get("claims", ())))
    failure = f".. error:: {_escaped(str(record['failure']))}\n\n" if "failure" in record else ""
    return (
        f".. _figure-{script.name}:\n\n{title(headline)}{failure}{picture(script)}"
        f"{_chart(script, folders)}{_typeset(rest)}\n\n"
        f"{title(_count(record.get('claims', ())), '-')}{claims or 'None.'}\n\n"
        f"{_goals(record.get('goals', ()))}{title('Where it comes from', '-')}"
        f"{_origin(script, record)}"
    )


def picture(script: LoadedScript, caption: str = "") -> str:
    """The figure as wide as the page; a click leads to the drawing, or with a caption to its page.

    The page on which it is shown lies one folder below the start.
    """
    target = f"figures/{script.name}.html" if caption else f"_images/{script.name}.png"
    return (
        f".. figure:: ../pictures/{script.name}.png\n"
        f"   :alt: {script.headline}\n"
        f"   :target: ../{target}\n"
        f"   :width: 100%\n\n" + (f"   {caption}\n\n" if caption else "")
    )


def _chart(script: LoadedScript, folders: Folders) -> str:
    """The curves of the stored table as a chart of `static/chart.js`; empty without curves."""
    with drawing():
        table = read_table(folders.outputs(script.name, Preset.FULL))
        panels = panels_of(script.module.plot(table))
    if not panels:
        return ""
    sources = (f'<script src="../_static/{name}.js"></script>' for name in ("draw", "chart"))
    return f".. raw:: html\n\n   {chart_html(panels)}\n   {''.join(sources)}\n\n"


def claim_line(claim: Mapping[str, Any]) -> str:
    """An item of a list: verdict, claim, what was measured and what is allowed."""
    verdict = ":passed:`passed`" if claim["passed"] else ":failed:`FAILED`"
    name, measured, allowed = (_escaped(str(claim[key])) for key in ("name", "measured", "theory"))
    used = claim.get("used")
    share = "" if used is None else f", {used:.0%} of the allowed deviation used"
    return f"* {verdict} {name}.\n  Measured: {measured}. Claimed: {allowed}{share}.\n"


def _count(claims: Sequence[Mapping[str, Any]]) -> str:
    passed = sum(bool(claim["passed"]) for claim in claims)
    return f"Claims checked: {passed} of {len(claims)} passed"


def _goals(goals: Sequence[Mapping[str, Any]]) -> str:
    """The goals of a figure as a section; empty if the figure has none."""
    if not goals:
        return ""
    count = sum(bool(goal["reached"]) for goal in goals)
    heading = title(f"Goals: {count} of {len(goals)} reached", "-")
    return f"{heading}{''.join(map(_goal, goals))}\n\n"


def _goal(goal: Mapping[str, Any]) -> str:
    state = ":passed:`reached`" if goal["reached"] else "**open**"
    pieces = [_escaped(str(goal[key])) for key in ("name", "measured", "goal")]
    more = [_escaped(str(goal[key])) for key in ("beside", "reason") if goal[key]]
    words = "".join(f" {piece}." for piece in more)
    return f"* {state} {pieces[0]}.\n  Measured: {pieces[1]}. Goal: {pieces[2]}.{words}\n"


def _origin(script: LoadedScript, record: Mapping[str, Any]) -> str:
    """Script, command, data, seed and versions as a list of fields."""
    fields = {
        "Script": f"``{source_of(script)}``",
        "To run it again": f"``python -m experiments run {script.name} --full``",
        "Data": f"``paper_figures/{script.name}.csv``, record ``{script.name}.json``",
    }
    if record:
        versions = ", ".join(f"{name} {version}" for name, version in record["versions"].items())
        fields["Sweep"] = (
            f"{len(record['configurations'])} configurations, {record['trials']} trials each, "
            f"seed {record['seed']}, {record['seconds']:,.0f} s in all"
        )
        fields["Made by"] = f"commit ``{record['commit'] or 'none'}`` with {_escaped(versions)}"
    return "".join(f":{name}: {text}\n" for name, text in fields.items())


def source_of(script: LoadedScript) -> str:
    """The path of a script in the repository."""
    return f"{script.module.__name__.replace('.', '/')}.py"


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
    """A small picture of a figure, or of the upper part of a figure that is high."""
    with Image.open(source) as figure:
        image: Image.Image = figure
        image = image.crop((0, 0, image.width, min(image.height, 2 * image.width // 3)))
        image.thumbnail((SMALL, image.height))  # keeps the ratio, and never enlarges
        image.save(target)
