"""The processor time for which a student waits when a control of a lesson is moved by one step.

Run ``python -m experiments.lessons.slider_times`` for all lessons, or add the numbers or names of
some lessons. A step sets a control and runs the cells that depend on it, as the notebook does, up
to the finished picture. The aim is a time below 150 ms on one core, so that a student sees the
picture within 200 ms.
"""

from __future__ import annotations

import argparse
import builtins
import gc
import importlib.util
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import marimo
import numpy as np
from marimo._output.formatters.formatters import register_formatters
from matplotlib import pyplot as plt

from geomdp.cli.lessons import all_lessons, find_lesson

#: Largest number of positions to which a control is moved. If a control has more positions, evenly
#: spaced ones are used.
POSITIONS = 12


class OpenLesson:
    """A lesson without a browser.

    All cells have run once. Moving a control reruns the cells that depend on the control.
    """

    def __init__(self, path: Path) -> None:
        register_formatters()  # without them marimo shows a figure as text and never draws it
        app, self._cells = _notebook(path)
        self.outputs, defined = app.run()
        self._values: dict[str, Any] = dict(defined)
        plt.close("all")

    def controls(self) -> dict[str, list[Any]]:
        """At most `POSITIONS` positions of each control, in the form that the browser sends."""
        elements = marimo.ui
        kinds = (elements.slider, elements.dropdown, elements.radio, elements.multiselect)
        return {
            name: _positions(value)
            for name, value in self._values.items()
            if isinstance(value, kinds)
        }

    def move(self, name: str, position: Any) -> int:
        """Put a control to a position, run the cells that depend on the control, and count them."""
        self._values[name]._update(position)
        changed, ran = {name}, 0
        for cell in self._cells:
            if _read(cell) & changed:
                self._run(cell)
                changed |= cell.defs
                ran += 1
        return ran

    def _run(self, cell: marimo.Cell) -> None:
        output, defined = cell.run(**{name: self._values[name] for name in _read(cell)})
        marimo.as_html(output)
        self._values.update(defined)
        plt.close("all")


def _notebook(path: Path) -> tuple[marimo.App, list[marimo.Cell]]:
    """A notebook and its cells, in an order in which they can run.

    marimo hands out each cell when it is declared, and gives no list of cells.
    """
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
    return notebook.app, _ordered(found)


def _ordered(cells: list[marimo.Cell]) -> list[marimo.Cell]:
    """The cells in an order in which each comes after the cells that define the names it reads."""
    known: set[str] = set()
    ordered: list[marimo.Cell] = []
    while len(ordered) < len(cells):
        ready = [cell for cell in cells if cell not in ordered and _read(cell) <= known]
        if not ready:
            unknown = set().union(*map(_read, cells)) - known
            raise ValueError(f"no order of the cells defines these names before use: {unknown}")
        ordered += ready
        known.update(*(cell.defs for cell in ready))
    return ordered


def _read(cell: marimo.Cell) -> set[str]:
    """The names that a cell takes from other cells."""
    return cell.refs - vars(builtins).keys()


def _positions(control: Any) -> list[Any]:
    """Positions of a control in their order, at most `POSITIONS` of them."""
    if isinstance(control, marimo.ui.slider):
        if control.steps is not None:
            every = list(range(len(control.steps)))
        else:
            step = 1 if control.step is None else control.step
            count = round((control.stop - control.start) / step) + 1
            every = [control.start + index * step for index in range(count)]
    elif isinstance(control, marimo.ui.radio):
        every = list(control.options)
    else:
        every = [[option] for option in control.options]
    chosen = np.unique(np.linspace(0, len(every) - 1, POSITIONS).round().astype(int))
    return [every[index] for index in chosen]


def step_times(lesson: OpenLesson, name: str) -> list[float]:
    """Processor time in milliseconds of every step of a control except the first."""
    gc.collect()  # Otherwise the time could include freeing the memory of earlier controls.
    times = []
    for position in lesson.controls()[name]:
        start = time.process_time()
        lesson.move(name, position)
        times.append(1000 * (time.process_time() - start))
    return times[1:]


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a line for each control."""
    parser = argparse.ArgumentParser(description="Time the controls of the lessons.")
    parser.add_argument("lessons", nargs="*", metavar="NAME", help="number or name; default: all")
    named = parser.parse_args(arguments).lessons
    print(f"{'lesson':<20}{'control':<16}{'median ms':>10}{'largest ms':>12}")
    for lesson in map(find_lesson, named) if named else all_lessons():
        opened = OpenLesson(lesson.path)
        for name in opened.controls():
            times = step_times(opened, name)
            row = f"{lesson.number:>2} {lesson.name:<17}{name:<16}"
            print(f"{row}{statistics.median(times):>10.0f}{max(times):>12.0f}", flush=True)


if __name__ == "__main__":
    main()
