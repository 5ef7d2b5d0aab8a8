"""The commands serve the lessons; pictures fit, and a step of a control computes little."""

import cProfile
import itertools
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

import geomdp
from experiments.lessons.web.plain_notebook import Control, Notebook, to_page
from geomdp.cli import app as commands
from geomdp.cli import main
from geomdp.cli.app import Lesson, all_lessons, find_lesson

ROOT = Path(__file__).parents[2]
LESSONS = all_lessons()


def test_lessons_are_numbered_from_zero_and_have_titles():
    assert [lesson.number for lesson in LESSONS] == [*range(len(LESSONS))]
    assert all(lesson.title for lesson in LESSONS)
    assert len({lesson.name for lesson in LESSONS}) == len(LESSONS)


def test_lessons_of_a_wheel_are_found_in_the_package(tmp_path, monkeypatch):
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wheel = pyproject["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel["force-include"] == {"experiments/lessons": "geomdp/lessons"}
    shutil.copytree(ROOT / "experiments" / "lessons", tmp_path / "lessons")
    monkeypatch.setattr(commands, "PACKAGE", tmp_path)
    shipped = all_lessons()
    assert [lesson.name for lesson in shipped] == [lesson.name for lesson in LESSONS]
    assert {lesson.path.parent for lesson in shipped} == {tmp_path / "lessons"}


@pytest.mark.parametrize("name", ["1", "body", "lesson_01_body", "lesson_01_body.py"])
def test_a_lesson_is_found_by_number_and_name(name):
    assert find_lesson(name).path.name == "lesson_01_body.py"


def test_an_unknown_lesson_is_refused_with_the_known_ones():
    with pytest.raises(
        ValueError, match=r"NAME must be one of 0 \(attack\), 1 \(body\), .* got 'zero'"
    ):
        find_lesson("zero")


def _geomdp(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["geomdp", "lessons", *arguments])
    with pytest.raises(SystemExit) as stop:
        main()
    return int(stop.value.code or 0)


def test_the_installed_command_lists_the_lessons(monkeypatch, capsys):
    assert _geomdp(monkeypatch) == 0
    printed = capsys.readouterr().out
    assert all(lesson.name in printed for lesson in LESSONS)
    assert "geomdp lessons 1" in printed


def test_the_command_names_the_extra_if_marimo_is_missing(monkeypatch, capsys):
    monkeypatch.setattr(commands, "find_spec", lambda name: None)
    assert _geomdp(monkeypatch, "1") == 2
    assert "pip install 'geomdp[lessons]'" in capsys.readouterr().err


def test_a_lesson_is_served_with_the_flags_asked_for(monkeypatch):
    """The server takes the place of the command, so that signals reach it."""
    called = []

    def execv(program: str, command: list[str]) -> None:
        called.append(command)
        raise SystemExit(3)

    monkeypatch.setattr(commands.os, "execv", execv)
    assert _geomdp(monkeypatch, "body", "--no-browser", "--port", "2719") == 3
    (command,) = called
    assert command[1:-1] == ["-m", "marimo", "run", "--headless", "--port", "2719"]
    assert Path(command[-1]) == find_lesson("body").path


@pytest.mark.parametrize("path", [lesson.path for lesson in LESSONS], ids=lambda path: path.stem)
def test_no_line_of_a_paragraph_begins_a_list(path):
    """In Markdown, a line that begins with a number and a dot begins a list."""
    lines = path.read_text(encoding="utf-8").splitlines()
    numbered = re.compile(r"\s*\d+\. ")
    for before, line in itertools.pairwise(lines):
        inside = before.strip() and not numbered.match(before) and not before.endswith('"""')
        assert not (inside and numbered.match(line)), line


#: Opens a lesson as `marimo run` does.
SERVED = """
import sys, types
import marimo
marimo.app_meta = lambda: types.SimpleNamespace(mode="run")
sys.path.insert(0, sys.argv[1])
import lesson_05_projection
lesson_05_projection.app.run()
"""


@pytest.mark.ci
def test_the_first_visit_of_the_lesson_on_projections_compiles_nothing(tmp_path):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", SERVED, str(find_lesson("projection").path.parent)]
    subprocess.run(command, cwd=ROOT, env=environment, check=True)
    assert not [*tmp_path.rglob("*.nbc")]  # files of compiled functions


# --- pictures and controls ------------------------------------------------------------------


#: Limits for one step: cells that run, pictures that are drawn, and calls of the library's Python
#: functions. Work on whole arrays needs few calls. A solver in a loop, or a release, needs more.
CELLS, PICTURES, CALLS = 6, 2, 4000
#: Largest number of positions of a control that are tried; they are evenly spaced.
POSITIONS = 12
#: Letters may pass an edge by this many inches or pixels, because the box of each letter includes
#: room for an accent.
OVERHANG, OVERHANG_PIXELS = 0.04, 3.0


@pytest.fixture(scope="module", params=all_lessons(), ids=lambda lesson: lesson.path.stem)
def lesson(request: pytest.FixtureRequest) -> Lesson:
    return request.param


@pytest.fixture(scope="module")
def opened(lesson: Lesson) -> Notebook:
    return Notebook(lesson.path)


def _positions(control: Control) -> list[Any]:
    """Positions of a control, at most `POSITIONS` of them."""
    if control.kind == "multiselect":
        return [control.values[:1], control.values]
    last = len(control.values) - 1
    chosen = np.unique(np.linspace(0, last, POSITIONS).round().astype(int))
    return [control.values[index] for index in chosen]


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
def test_every_cell_runs_and_every_picture_fits(opened):
    assert len(opened.shown) >= 5
    assert opened.figures
    for figure in opened.figures:
        FigureCanvasAgg(figure).draw()
        drawn, page = figure.get_tightbbox().transformed(figure.dpi_scale_trans), figure.bbox
        assert drawn.x0 >= -OVERHANG_PIXELS
        assert drawn.y0 >= -OVERHANG_PIXELS
        assert drawn.x1 <= page.x1 + OVERHANG_PIXELS
        assert drawn.y1 <= page.y1 + OVERHANG_PIXELS


@pytest.mark.ci
def test_a_step_runs_few_cells_and_calls_few_functions(opened):
    assert opened.controls
    for name, control in opened.controls.items():
        assert len(control.values) > 1, name
        for position in (_positions(control)[0], _positions(control)[-1]):
            with _library_calls() as calls:
                ran = opened.set(name, position)
            assert 1 <= ran <= CELLS, (name, position)
            assert len(opened.figures) <= PICTURES, (name, position)
            assert calls[0] <= CALLS, (name, position)


@pytest.mark.slow
def test_every_picture_fits_at_every_position(lesson):
    opened, unfit = Notebook(lesson.path), []
    for name, control in opened.controls.items():
        for position in _positions(control):
            opened.set(name, position)
            for figure in opened.figures:
                FigureCanvasAgg(figure).draw()
                unfit += [(name, position, what) for what in _overlaps(figure)]
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


def test_text_becomes_html_with_coloured_symbols():
    page = to_page(r"""
    The body $K - K$ and $h_K(u)$, *not* $a_1 * b_1$:

    $$w(K) \ge 0$$
    """)
    assert page.count("<math") == 4
    assert '<mrow class="symbol KK">' in page
    assert '<mrow class="symbol h"><msub>' in page
    assert '<mrow class="symbol w"><mi>w</mi></mrow>' in page
    assert page.count("<em>") == 1
    assert '<span class="formula"><math display="block">' in page
