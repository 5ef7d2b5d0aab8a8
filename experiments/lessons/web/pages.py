"""The lessons as static pages: text of the notebooks, and pictures that a script redraws.

`lesson_pages` runs each notebook. Its text, formulas and answers become HTML. In place of a picture
that follows controls stands a figure, which `lesson.js` draws with the numbers that the notebook
computed. Without JavaScript the first picture of the notebook is shown. `lessons.toml` holds what
only the pages have: goals, questions that the page checks and notes for the teacher.
"""

import hashlib
import json
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from io import BytesIO
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

import geomdp
from experiments.engine.figures import replacing
from experiments.lessons.web.computed import NUMBERS
from experiments.lessons.web.plain_notebook import (
    Control,
    Notebook,
    Shown,
    embedded,
    plain,
    to_page,
)
from experiments.theorems import THEOREMS
from geomdp.cli.app import Lesson, all_lessons

FOLDER = Path(__file__).parent
#: The coloured symbols by the class of their marks, and what they mean.
SYMBOLS = {
    "K": ("K", "the body of the answers that data can have"),
    "KK": ("K − K", "the vectors by which one record can move a sum"),
    "h": ("h", "how far a body reaches in a direction"),
    "w": ("w", "Gaussian width: h in a random direction, on average"),
    "Z": ("Z", "noise, and what noise touched"),
}


@dataclass(frozen=True)
class LessonPage:
    """The body of a page, which needs a heading of its own: the number and the title."""

    number: int
    name: str
    title: str
    html: str


def lesson_pages(folder: Path) -> list[LessonPage]:
    """Write the scripts below `folder` and return the pages, which belong into `folder`.

    Lessons whose sources did not change since the last call are not run again.
    """
    static = folder / "_static" / "lessons"
    static.mkdir(parents=True, exist_ok=True)
    for name in ("draw.js", "lesson.js", "lesson.css"):
        (static.parent / name).write_bytes((FOLDER / name).read_bytes())
    return [_page(lesson, static) for lesson in all_lessons()]


def _page(lesson: Lesson, static: Path) -> LessonPage:
    stored = FOLDER / "__pycache__" / f"{lesson.path.stem}.json"
    library = sorted(Path(geomdp.__file__).parent.rglob("*.py"))
    lessons = sorted(FOLDER.parent.rglob("*.py"))
    sources = [*library, FOLDER / "lessons.toml", *lessons, script(lesson)]
    digest = hashlib.sha256(b"\0".join(path.read_bytes() for path in sources)).hexdigest()
    made = json.loads(stored.read_text("utf-8")) if stored.exists() else {}
    if made.get("digest") != digest:
        made = {"digest": digest, **_made(lesson)}
        with replacing(stored) as temporary:
            temporary.write_text(json.dumps(made), encoding="utf-8")
    (static / f"{lesson.name}.js").write_text(made["script"], encoding="utf-8")
    return LessonPage(lesson.number, lesson.name, made["title"], made["html"])


def script(lesson: Lesson) -> Path:
    """The script that draws the pictures of a lesson."""
    return FOLDER / f"{lesson.path.stem}.js"


def course() -> list[dict[str, Any]]:
    """What only the pages have, for each lesson from 0 on."""
    return tomllib.loads((FOLDER / "lessons.toml").read_text(encoding="utf-8"))["lesson"]


def _made(lesson: Lesson) -> dict[str, str]:
    """The page of a lesson and its script, from a run of the notebook."""
    notebook, more = Notebook(lesson.path, _image), course()[lesson.number]
    parts = [notebook.shown[place] for place in sorted(notebook.shown)]
    first, *others = [_part(part, notebook.controls) for part in parts]
    head, rest = first.split("</h1>", 1)
    body = _mark_exercises("\n".join([rest, *others]), more["extra"])
    asked, kinds = more["question"], more["symbols"].split()
    page = (
        f'<link rel="stylesheet" href="_static/lesson.css"><article class="lesson">'
        f"{_box(more)}{_symbols(kinds)}{body}"
        f"<h2>Three questions</h2>{''.join(_question(i, q) for i, q in enumerate(asked))}"
        f'<aside class="notes"><b>For the teacher.</b> {to_page(more["notes"])}</aside>'
        f'<div class="solved"><b>Answers to the questions</b>{_solved(asked)}</div></article>'
        f'<script src="_static/draw.js"></script>'
        f'<script src="_static/lesson.js"></script>'
        f'<script src="_static/lessons/{lesson.name}.js"></script>'
    )
    page = re.sub(
        r'<mrow class="symbol (\w+)">',
        lambda found: found[0] if found[1] in kinds else "<mrow>",
        page,
    )
    numbers = NUMBERS[lesson.name](notebook.values) | {"tables": _tables(notebook)}
    checks = ", ".join(f"{i}: (s, d) => {q['place']}" for i, q in enumerate(asked) if "place" in q)
    drawn = script(lesson).read_text(encoding="utf-8")
    figures = page.count("<figure data-follows=")
    if figures != len(re.findall(r"\bdraw\(s|threeBounds\(", drawn)):
        raise ValueError(
            f"{lesson.name} has {figures} figures; {script(lesson).name} must draw all"
        )
    data = json.dumps(plain(numbers), separators=(",", ":"))
    return {
        "title": re.sub(r"<h1>\d+\. ", "", head),
        "html": page,
        "script": f"Lesson.data = {data};\nLesson.checks = {{{checks}}};\n{drawn}",
    }


def _tables(notebook: Notebook) -> list[Any]:
    """For each cell that follows two controls and draws nothing: its HTML at all positions."""

    def html(place: int, positions: dict[str, Any]) -> str:
        for name, value in positions.items():
            notebook.set(name, value)
        return notebook.shown[place].html

    tables = []
    for place, part in list(notebook.shown.items()):
        if part.follows and not part.titles:
            before = {name: notebook.controls[name].value for name in part.follows}
            one, two = part.follows
            rows, columns = (notebook.controls[name].values for name in (one, two))
            tables.append([[html(place, {one: a, two: b}) for b in columns] for a in rows])
            html(place, before)
    return tables


def _image(figure: Figure, alt: str) -> str:
    file = BytesIO()
    figure.savefig(file, dpi=80)
    return embedded(file.getvalue(), alt)


def _part(part: Shown, controls: dict[str, Control]) -> str:
    """Text as it is, and a figure where a cell follows controls."""
    if not part.follows:
        return f"<figure>{part.html}</figure>" if part.html.startswith("<img") else part.html
    found = re.search('alt="([^"]*)"', part.html)
    name = found[1] if found else "result"
    inputs = "".join(_input(name, controls[name]) for name in part.follows)
    return (
        f'<figure data-follows="{" ".join(part.follows)}" data-name="{name}">'
        f'<div class="controls">{inputs}</div><noscript>{part.html}</noscript></figure>'
    )


def _input(name: str, control: Control) -> str:
    known: dict[str, Any] = {"start": control.start}
    label = to_page(control.label).removeprefix("<p>").removesuffix("</p>")
    if control.kind == "slider":
        known.update(values=control.values, even=control.even)
    facts = f"data-control='{escape(json.dumps(plain(known)))}'"
    if control.kind == "multiselect":
        boxes = "".join(
            f'<label><input type="checkbox" name="{name}" value="{i}"'
            f"{' checked' if i in control.start else ''}>{escape(option)}</label>"
            for i, option in enumerate(control.options)
        )
        return f"<fieldset {facts}><legend>{label}</legend>{boxes}</fieldset>"
    if control.options:
        options = "".join(
            f'<option value="{i}"{" selected" if i == control.start else ""}>{escape(option)}'
            "</option>"
            for i, option in enumerate(control.options)
        )
        return f'<label {facts}>{label} <select name="{name}">{options}</select></label>'
    near = min(range(len(control.values)), key=lambda i: abs(control.values[i] - control.value))
    return (
        f'<label {facts}>{label} <input type="range" name="{name}" min="0" '
        f'max="{len(control.values) - 1}" value="{near}"><output>{control.value:g}</output></label>'
    )


def _box(more: dict[str, Any]) -> str:
    goals = "".join(f"<li>{to_page(goal)[3:-4]}</li>" for goal in more["goals"])
    recap = to_page("**The smoking triangle.** " + more["recap"])
    theorem = {theorem.id: theorem for theorem in THEOREMS}[more["theorem"]]
    page = f"gallery/{theorem.id}.html"
    return (
        f'<div class="box"><p><b>{more["minutes"]} minutes.</b> Needs: {more["needs"]}.</p>'
        f"<p>Afterwards you can:</p><ul>{goals}</ul><p>Exercises are marked core or extra. "
        f'In a hurry: lessons 0, 1, 2, 4, 5 and 10.</p></div><div class="recap">{recap}'
        f'<p>Behind it: <a href="{page}">{escape(theorem.name)}</a>.</p></div>'
    )


def _symbols(kinds: Sequence[str]) -> str:
    entries = "".join(
        f'<div><dt class="{kind}">{SYMBOLS[kind][0]}</dt><dd>: {SYMBOLS[kind][1]}</dd></div>'
        for kind in kinds
    )
    return f'<dl class="symbols">{entries}</dl>' if kinds else ""


def _mark_exercises(page: str, extra: list[int]) -> str:
    def mark(found: re.Match[str]) -> str:
        kind = "extra" if int(found[1]) in extra else "core"
        return f'{found[0]}<span class="kind">{kind}</span>'

    return re.sub(r"<strong>Exercise (\d+)\.</strong>", mark, page)


def _question(index: int, asked: dict[str, Any]) -> str:
    why, text = escape(asked["why"]), to_page(asked["ask"])
    if "place" in asked:
        facts, inputs = 'data-place="1"', ""
    elif "options" in asked:
        facts = f'data-right="{asked["right"]}"'
        inputs = "".join(
            f'<label><input type="radio" name="question{index}" value="{i}"> '
            f"{to_page(option)[3:-4]}</label>"
            for i, option in enumerate(asked["options"])
        )
    else:
        facts = f'data-answer="{asked["answer"]}" data-within="{asked["within"]}"'
        inputs = f'<input type="text" size="8" aria-label="answer to question {index + 1}"> '
    return (
        f'<fieldset class="question" {facts} data-why="{why}"><legend>Question {index + 1}</legend>'
        f"{text}{inputs}</fieldset>"
    )


def _solved(asked: list[dict[str, Any]]) -> str:
    answers = []
    for question in asked:
        known = question["options"][question["right"]] if "options" in question else None
        known = known or str(question.get("answer", ""))
        answers.append(
            f"<li>{to_page(known + '. ' if known else '')}{escape(question['why'])}</li>"
        )
    return f"<ol>{''.join(answers)}</ol>"
