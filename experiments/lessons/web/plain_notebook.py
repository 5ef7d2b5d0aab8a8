"""Run a lesson's notebook without marimo's server: controls are set, and outputs are plain HTML.

marimo splits the notebook into cells and knows which names each cell reads. The module `mo`, which
the cells use for text and controls, is replaced by `PlainMarimo`.
"""

import builtins
import html
import importlib.util
import re
import sys
from base64 import b64encode
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import marimo
import numpy as np
from markdown import Markdown
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from experiments.guide.mathematics import to_mathml
from experiments.lessons.drawing import unfolding

EXTENSIONS = ["tables", "fenced_code", "sane_lists", "pymdownx.blocks.details"]
_FORMULA = re.compile(r"\$\$(.+?)\$\$|\$([^$]+?)\$", re.DOTALL)
#: The symbols that keep one colour in formulas and pictures, by their MathML.
_SYMBOLS = (
    (r"<mi>K</mi><mo>&#x02212;</mo><mi>K</mi>", "KK"),
    (r"<msub><mi>h</mi><mi>K</mi></msub>", "h"),
    (r"(?<!</mi></mrow>)<mi>K</mi>", "K"),
    (r"<mi>h</mi>", "h"),
    (r"<mi>w</mi>", "w"),
    (r"<mi>Z</mi>", "Z"),
)


def to_page(text: str) -> str:
    """Markdown with formulas between dollar signs, as HTML with MathML in coloured symbols."""
    formulas: list[str] = []

    def keep(found: re.Match[str]) -> str:
        mathml = _coloured(to_mathml((found[1] or found[2]).strip()))
        if found[1]:
            mathml = mathml.replace('display="inline"', 'display="block"', 1)
            mathml = f'<span class="formula">{mathml}</span>'
        elif len(found[2]) > 40:
            mathml = f'<span class="long">{mathml}</span>'
        formulas.append(mathml)
        return f"⟦{len(formulas) - 1}⟧"

    marked = _FORMULA.sub(keep, unfolding(text))
    # In the markdown of a line, "_" and "*" of formulas must not become emphasis, hence the marks.
    page = Markdown(extensions=EXTENSIONS).convert(marked)
    page = page.replace("<table>", '<div class="wide"><table>').replace(
        "</table>", "</table></div>"
    )
    return re.sub(r"⟦(\d+)⟧", lambda found: formulas[int(found[1])], page)


def _coloured(mathml: str) -> str:
    """MathML in which each known symbol has a class, once: `K` inside of `K - K` has none."""
    pattern = re.compile("|".join(f"({spelling})" for spelling, _ in _SYMBOLS))

    def mark(found: re.Match[str]) -> str:
        kind = _SYMBOLS[(found.lastindex or 1) - 1][1]
        return f'<mrow class="symbol {kind}">{found[0]}</mrow>'

    return pattern.sub(mark, mathml)


def embedded(png: bytes, alt: str) -> str:
    """A picture that the page holds itself."""
    address = f"data:image/png;base64,{b64encode(png).decode()}"
    return f'<img src="{address}" alt="{html.escape(alt)}">'


@dataclass
class Control:
    """A slider, with its steps or its range, or a choice between options."""

    kind: str
    label: str
    value: Any
    #: The values that the control takes: the steps of a slider, or what the options stand for.
    values: list[Any]
    #: What the reader sees of each option; empty for a slider.
    options: list[str]
    #: Whether the slider's steps are evenly spaced, so that values between them make sense.
    even: bool = False

    @property
    def start(self) -> Any:
        """What the page's script takes: a number, or the places of the chosen options."""
        if self.kind == "multiselect":
            return [self.values.index(value) for value in self.value]
        return self.value if not self.options else self.values.index(self.value)


class PlainControls:
    """Stands for `mo.ui`, and keeps the controls in the order in which they are made."""

    def __init__(self) -> None:
        self.made: list[Control] = []

    def _make(self, *facts: Any) -> Control:
        self.made.append(Control(*facts))
        return self.made[-1]

    def slider(
        self,
        start: float | None = None,
        stop: float | None = None,
        step: float = 1,
        *,
        steps: Sequence[float] | None = None,
        value: float,
        label: str,
        **_: Any,
    ) -> Control:
        if steps is None:
            assert start is not None
            assert stop is not None
            values = [round(start + i * step, 9) for i in range(round((stop - start) / step) + 1)]
        else:
            values = [*steps]
        return self._make("slider", label, value, values, [], steps is None and step != 1)

    def dropdown(self, options: Any, *, value: Any, label: str) -> Control:
        values = [*options.values()] if isinstance(options, dict) else [*options]
        names = [*map(str, options)]
        return self._make("choice", label, values[names.index(str(value))], values, names)

    radio = dropdown

    def multiselect(self, options: Any, *, value: Sequence[Any], label: str) -> Control:
        return self._make("multiselect", label, [*value], [*options], [*map(str, options)])


class PlainMarimo:
    """Stands for the module `mo`: text is HTML, and a control shows nothing where it is defined."""

    def __init__(self) -> None:
        self.ui = PlainControls()

    def md(self, text: str) -> str:
        return to_page(text)

    def vstack(self, parts: Iterable[Any], **_: Any) -> str:
        return "\n".join(part for part in parts if isinstance(part, str))

    hstack = vstack

    def image(self, src: bytes, *, alt: str, **_: Any) -> str:
        return embedded(src, alt)

    def plain_text(self, text: str) -> str:
        return f'<div class="wide"><pre>{html.escape(text)}</pre></div>'


@dataclass(frozen=True)
class Shown:
    """A cell that shows something: its HTML, and the names of the controls that it follows."""

    html: str
    follows: tuple[str, ...]
    #: The titles of each picture that the cell draws.
    titles: tuple[str, ...]


class Notebook:
    """A lesson whose cells have run once. `picture` gets each figure and gives its HTML.

    Setting a control runs the cells that depend on it.
    """

    def __init__(self, path: Path, picture: Callable[[Figure, str], str] = lambda *_: "") -> None:
        self._cells = _cells(path)
        self._picture, self.figures = picture, list[Figure]()
        self._mo = PlainMarimo()
        self.values: dict[str, Any] = {}
        self.shown: dict[int, Shown] = {}
        sys.path.insert(0, str(path.parent))  # for what the notebooks import from each other
        try:
            for place in _ordered(self._cells):
                self._run(place)
        finally:
            sys.path.remove(str(path.parent))
        named = {id(value): name for name, value in self.values.items()}
        self.controls = {named[id(control)]: control for control in self._mo.ui.made}
        self._follow()

    def set(self, name: str, value: Any) -> int:
        """Give a control this value, run the cells that depend on it, and count them."""
        self.controls[name].value = value
        changed, ran = {name}, 0
        self.figures.clear()
        for place in _ordered(self._cells):
            if _read(self._cells[place]) & changed:
                self._run(place)
                changed |= self._cells[place].defs
                ran += 1
        return ran

    def _run(self, place: int) -> None:
        cell, before = self._cells[place], len(self.figures)
        output, defined = cell.run(**{name: self.values[name] for name in _read(cell)})
        self.values.update(defined)
        self.values.update(mo=self._mo, picture=self._keep, slider=self._mo.ui.slider)
        self.values["md"] = self._mo.md
        if isinstance(output, str) and (output or len(self.figures) > before):
            known = self.shown[place].follows if place in self.shown else ()
            titles = tuple(map(_titles, self.figures[before:]))
            self.shown[place] = Shown(output, known, titles)
        plt.close("all")

    def _keep(self, figure: Figure, alt: str, *above: Any) -> str:
        self.figures.append(figure)
        return self._mo.vstack([*above, self._picture(figure, alt)])

    def _follow(self) -> None:
        """Note for each cell that shows something which controls it follows, also indirectly."""
        follows = {name: {name} for name in self.controls}
        for place in _ordered(self._cells):
            cell = self._cells[place]
            found = set().union(*(follows.get(name, set()) for name in _read(cell)))
            follows.update({name: found for name in cell.defs if name not in self.controls})
            if place in self.shown:
                known = self.shown[place]
                names = tuple(name for name in self.controls if name in found)
                self.shown[place] = Shown(known.html, names, known.titles)


def _titles(figure: Figure) -> str:
    sides = ("left", "center", "right")
    return " ".join(axes.get_title(loc=side) for axes in figure.axes for side in sides)


def _cells(path: Path) -> list[marimo.Cell]:
    """The cells of a notebook. marimo hands out each when it is declared, and keeps no list."""
    found: list[marimo.Cell] = []

    class Recording(marimo.App):
        def cell(self, function: Any) -> marimo.Cell:
            found.append(super().cell(function))
            return found[-1]

    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    notebook = importlib.util.module_from_spec(spec)
    original, marimo.App = marimo.App, Recording
    try:
        spec.loader.exec_module(notebook)
    finally:
        marimo.App = original
    return found


def _ordered(cells: Sequence[marimo.Cell]) -> list[int]:
    """The places of the cells, each after those of the cells that define the names it reads."""
    known: set[str] = set()
    ordered: list[int] = []
    while len(ordered) < len(cells):
        ready = [
            place
            for place, cell in enumerate(cells)
            if place not in ordered and _read(cell) <= known
        ]
        if not ready:
            unknown = set().union(*map(_read, cells)) - known
            raise ValueError(f"no order of the cells defines these names before use: {unknown}")
        ordered += ready
        known.update(*(cells[place].defs for place in ready))
    return ordered


def _read(cell: marimo.Cell) -> set[str]:
    """The names that a cell takes from other cells."""
    return cell.refs - vars(builtins).keys()


def plain(value: Any) -> Any:
    """Arrays and tuples as lists of numbers rounded to six digits, to be written as JSON."""
    if isinstance(value, dict):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [plain(entry) for entry in value]
    if isinstance(value, (float, np.floating)):
        return None if np.isnan(value) else float(f"{value:.6g}")
    return int(value) if isinstance(value, np.integer) else value
