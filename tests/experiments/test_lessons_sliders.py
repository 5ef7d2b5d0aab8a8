"""The lessons run without a browser: pictures fit, and a step of a control computes little."""

from __future__ import annotations

import cProfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

import geomdp
from experiments.lessons import slider_times
from experiments.lessons.slider_times import POSITIONS, OpenLesson, main, step_times
from geomdp.cli.lessons import Lesson, all_lessons

#: Limits for one step: cells that run, pictures that are drawn, and calls of the library's Python
#: functions. Work on whole arrays needs few calls. A solver in a loop, or a release, needs more.
CELLS, PICTURES, CALLS = 2, 2, 4000
#: Letters may pass an edge by this many inches or pixels, because the box of each letter includes
#: room for an accent.
OVERHANG, OVERHANG_PIXELS = 0.04, 3.0


@pytest.fixture(scope="module", params=all_lessons(), ids=lambda lesson: lesson.path.stem)
def lesson(request: pytest.FixtureRequest) -> Lesson:
    return request.param


class Opened(NamedTuple):
    """A lesson that ran from beginning to end, as the notebook runs it, and its figures."""

    lesson: OpenLesson
    figures: list[Figure]


@pytest.fixture(scope="module")
def opened(lesson: Lesson) -> Opened:
    # Without a notebook marimo renders no figure, so we keep all figures and draw them ourselves.
    figures: list[Figure] = []
    made = Figure.__init__

    def keep(figure: Figure, *args, **kwargs) -> None:
        made(figure, *args, **kwargs)
        figures.append(figure)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Figure, "__init__", keep)
        return Opened(OpenLesson(lesson.path), figures)


@contextmanager
def _drawn(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Figure]]:
    """The figures that are drawn inside the block."""
    figures: list[Figure] = []
    save = Figure.savefig

    def keep(figure: Figure, *args, **kwargs) -> None:
        save(figure, *args, **kwargs)
        figures.append(figure)

    with monkeypatch.context() as patched:
        patched.setattr(Figure, "savefig", keep)
        yield figures


@contextmanager
def _library_calls() -> Iterator[list[int]]:
    """How many functions of the library are called inside the block."""
    folder, count = str(Path(geomdp.__file__).parent), [0]
    # cProfile is written in C. A profiler in Python would take most of the time of the test.
    with cProfile.Profile(subcalls=False, builtins=False) as profile:
        yield count
    for entry in profile.getstats():
        if not isinstance(entry.code, str) and entry.code.co_filename.startswith(folder):
            count[0] += entry.callcount


@pytest.mark.ci
def test_every_cell_runs_and_every_picture_fits(opened: Opened) -> None:
    assert len([output for output in opened.lesson.outputs if output is not None]) >= 5
    assert opened.figures
    for figure in opened.figures:
        FigureCanvasAgg(figure).draw()
        drawn, page = figure.get_tightbbox().transformed(figure.dpi_scale_trans), figure.bbox
        assert drawn.x0 >= -OVERHANG_PIXELS
        assert drawn.y0 >= -OVERHANG_PIXELS
        assert drawn.x1 <= page.x1 + OVERHANG_PIXELS
        assert drawn.y1 <= page.y1 + OVERHANG_PIXELS


@pytest.mark.ci
def test_a_step_runs_few_cells_and_calls_few_functions(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    controls = opened.lesson.controls()
    assert controls
    for name, positions in controls.items():
        assert len(positions) > 1, name
        for position in (positions[0], positions[-1]):
            with _drawn(monkeypatch) as figures, _library_calls() as calls:
                ran = opened.lesson.move(name, position)
            assert 1 <= ran <= CELLS, (name, position)
            assert len(figures) <= PICTURES, (name, position)
            assert calls[0] <= CALLS, (name, position)


@pytest.mark.slow
def test_every_picture_fits_at_every_position(
    lesson: Lesson, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, unfit = OpenLesson(lesson.path), []
    for name, positions in opened.controls().items():
        for position in positions:
            with _drawn(monkeypatch) as figures:
                opened.move(name, position)
            unfit += [(name, position, what) for figure in figures for what in _overlaps(figure)]
    assert unfit == []


def _overlaps(figure: Figure) -> list[str]:
    """Messages: one if something passes an edge of the picture, and one if panels overlap."""
    width, height = figure.get_size_inches()
    box, found = figure.get_tightbbox(), []
    if min(box.x0, box.y0, width - box.x1, height - box.y1) < -OVERHANG:
        found.append(f"passes the edge: {box.extents.round(2)} of {width:g} x {height:g}")
    panels = [axes.get_tightbbox() for axes in figure.axes]
    if any(one.overlaps(other) for one, other in combinations(panels, 2)):
        found.append("panels overlap")
    return found


@pytest.mark.ci
def test_the_benchmark_prints_a_line_for_each_control(
    tmp_path: Path, capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "lesson.py"
    path.write_text(
        "import marimo\napp = marimo.App()\n"
        "@app.cell\ndef _(mo, size):\n    mo.md(str(size.value))\n    return\n"
        "@app.cell\ndef _():\n    import marimo as mo\n    return (mo,)\n"
        "@app.cell\ndef _(mo):\n    size = mo.ui.slider(0, 100, step=2)\n    return (size,)\n"
    )
    opened = OpenLesson(path)
    (positions,) = opened.controls().values()
    assert positions[0] == 0
    assert positions[-1] == 100
    assert len(positions) == POSITIONS
    assert opened.move("size", 4) == 1
    assert len(step_times(opened, "size")) == POSITIONS - 1
    monkeypatch.setattr(slider_times, "POSITIONS", 3)  # saves time: this is a real lesson
    main(["body"])
    printed = capsys.readouterr().out
    assert all(name in printed for name in ("median ms", "healthy", "second"))
