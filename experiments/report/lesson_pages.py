"""Lessons as static pages of text, formulas, pictures and answers.

Pages that marimo exports load JavaScript from the network. The pages made here load nothing and
run no code. They keep what the notebook shows when it opens: a slider becomes a line with its
value, a hidden answer becomes a block that the reader can unfold, and formulas become MathML.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from html import escape
from html.parser import HTMLParser
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from experiments.report.mathematics import to_mathml
from geomdp.cli.lessons import Lesson, require_marimo

#: Tags without a closing tag.
VOID = {"br", "hr", "img", "input", "source", "wbr"}
#: Elements of marimo that only contain other elements.
TRANSPARENT = {"marimo-ui-element", "marimo-dict"}
#: Kinds of output that hold HTML.
SHOWN = ("text/html", "text/markdown")
#: Marks around a formula in the text of a notebook, and the display attribute of its MathML.
FORMULAS = {("||(", "||)"): "inline", ("||[", "||]"): "block"}


def export_lessons(lessons: Sequence[Lesson], folder: Path) -> list[Path]:
    """Write one page for each lesson, and an index of the lessons, into `folder`."""
    require_marimo()
    style = (Path(__file__).parent / "page.css").read_text(encoding="utf-8")
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for lesson in lessons:
        path = folder / f"{lesson.path.stem}.html"
        path.write_text(_document(lesson.title, "\n".join(_shown(lesson)), style), "utf-8")
        written.append(path)
    links = "".join(
        f'<li value="{lesson.number}"><a href="{lesson.path.stem}.html">'
        f"{escape(lesson.title)}</a></li>"
        for lesson in lessons
    )
    index = folder / "index.html"
    index.write_text(_document("Lessons", f"<h1>Lessons</h1><ol>{links}</ol>", style), "utf-8")
    return [index, *written]


def _document(title: str, body: str, style: str) -> str:
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<link rel="icon" href="data:,"><title>{escape(title)}</title><style>{style}\n'
        "body { display: block; max-width: 56rem; }\n"  # no column of contents
        "img { max-width: 100%; background: white; } details { margin: 0.5rem 0; }\n"
        ".control { color: var(--muted); } table { border-collapse: collapse; }\n"
        "td, th { padding: 0.2rem 0.8rem; border-bottom: 1px solid var(--line); }\n"
        ".paragraph { display: block; margin: 0.8rem 0; }\n"
        ".control .paragraph, summary .paragraph { display: inline; }</style></head>\n"
        f"<body><main>{body}</main></body></html>\n"
    )


def _shown(lesson: Lesson) -> list[str]:
    """What the cells of a lesson show, as HTML."""
    with TemporaryDirectory() as name:
        # marimo stores outputs in the folder of the notebook. A copy is run, because this folder
        # may be read-only.
        copied = Path(shutil.copy(lesson.path, name))
        command = [sys.executable, "-m", "marimo", "export", "session", str(copied)]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        stored = copied.parent / "__marimo__" / "session" / f"{copied.name}.json"
        if run.returncode or not stored.exists():
            raise ValueError(f"{lesson.path.name} did not run: {run.stderr.strip()[-500:]}")
        cells = json.loads(stored.read_text(encoding="utf-8"))["cells"]
    shown = []
    for output in (output for cell in cells for output in cell["outputs"]):
        if output["type"] != "data":
            raise ValueError(f"{lesson.path.name} has a cell that failed: {output}")
        for kind, text in output["data"].items():
            if kind in SHOWN:
                shown.append(static(text))
            elif text:  # a cell that shows nothing has an empty output of the kind text/plain
                raise ValueError(
                    f"{lesson.path.name} has an output of the kind {kind!r}, must be one of {SHOWN}"
                )
    return shown


def static(text: str) -> str:
    """HTML of a notebook without the elements that need marimo's JavaScript."""
    writer = _StaticWriter()
    writer.feed(text)
    writer.close()
    return "".join(writer.pieces)


class _StaticWriter(HTMLParser):
    """Copies HTML and replaces the elements of marimo."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.pieces: list[str] = []
        self._formula: list[str] | None = None
        #: For each open accordion: its remaining labels, and the number of open tags inside it.
        self._accordions: list[list[Any]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        if tag == "marimo-tex":
            self._formula = []
        elif tag == "marimo-accordion":
            self._accordions.append([json.loads(values["data-labels"]), 0])
        elif tag == "marimo-mime-renderer":
            self.pieces.append(_picture(values))
        elif tag == "marimo-json-output":
            # A list of controls: each entry is "text/html:" and its HTML.
            entries = json.loads(values["data-json-data"])
            self.pieces += [static(entry.partition(":")[2]) for entry in entries]
        elif tag in TRANSPARENT:
            return
        elif tag.startswith("marimo-") and "data-initial-value" in values:
            self.pieces.append(_control(values))
        elif tag.startswith("marimo-"):
            raise ValueError(f"<{tag}> has no static form")
        else:
            self._open(tag, values)

    def _open(self, tag: str, attrs: dict[str, str]) -> None:
        if self._accordions and tag not in VOID:
            self._accordions[-1][1] += 1
            if self._accordions[-1][1] == 1:
                label = static(self._accordions[-1][0].pop(0))
                self.pieces.append(f"<details><summary>{label}</summary>")
        if not attrs.get("src", "data:").startswith("data:"):
            raise ValueError(f"<{tag}> loads {attrs['src']!r}, which the page must hold itself")
        # Of marimo's classes, the style sheet of these pages knows only "paragraph".
        written = "".join(
            f' {name}="{escape(value)}"'
            for name, value in attrs.items()
            if name != "class" or value.split() == ["paragraph"]
        )
        self.pieces.append(f"<{tag}{written}>")

    def handle_endtag(self, tag: str) -> None:
        if tag == "marimo-tex":
            self.pieces.append(_formula("".join(self._formula or [])))
            self._formula = None
        elif tag == "marimo-accordion":
            self._accordions.pop()
        elif not tag.startswith("marimo-"):
            self.pieces.append(f"</{tag}>")
            if self._accordions and tag not in VOID:
                self._accordions[-1][1] -= 1
                if self._accordions[-1][1] == 0:
                    self.pieces.append("</details>")

    def handle_data(self, data: str) -> None:
        if self._formula is None:
            self.pieces.append(escape(data, quote=False))
        else:
            self._formula.append(data)


def _formula(text: str) -> str:
    for (start, end), display in FORMULAS.items():
        if text.startswith(start) and text.endswith(end):
            mathml = to_mathml(text[len(start) : -len(end)].strip())
            return mathml.replace('display="inline"', f'display="{display}"')
    raise ValueError(f"formula must stand between ||( ||) or ||[ ||], got {text!r}")


def _picture(values: dict[str, str]) -> str:
    if json.loads(values["data-mime"]) != "application/vnd.marimo+mimebundle":
        raise ValueError(f"a picture has the unknown format {values['data-mime']}")
    bundle = json.loads(json.loads(values["data-data"]))
    width = bundle["__metadata__"]["image/png"]["width"]
    return f'<img src="{escape(bundle["image/png"])}" width="{width}" alt="">'


def _control(values: dict[str, str]) -> str:
    """The value of a slider or menu when the notebook opens."""
    label = static(json.loads(values.get("data-label", "null")) or "")
    value = json.loads(values["data-initial-value"])
    if steps := json.loads(values.get("data-steps", "[]")):
        value = steps[value]
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return f'<div class="control">{label}: <b>{escape(text)}</b></div>'
