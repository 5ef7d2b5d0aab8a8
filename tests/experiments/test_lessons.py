"""The commands find the lessons and serve them; `test_lessons_sliders` runs them."""

from __future__ import annotations

import itertools
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

from geomdp.cli import app as commands
from geomdp.cli import main
from geomdp.cli.app import all_lessons, find_lesson
from tests.experiments.test_kills import wait_for_end

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
    called = []

    class Finished:
        returncode = 3

    def run(command: list[str], *, check: bool) -> Finished:
        called.append(command)
        return Finished()

    monkeypatch.setattr(commands.subprocess, "run", run)
    assert _geomdp(monkeypatch, "body", "--no-browser", "--port", "2719") == 3
    (command,) = called
    assert command[1:-1] == ["-m", "marimo", "run", "--headless", "--port", "2719"]
    assert Path(command[-1]) == find_lesson("body").path


#: A package `marimo` whose server writes its process id, and then waits.
SERVER = """import os, pathlib, time
pathlib.Path(os.environ["STARTED"]).write_text(str(os.getpid()))
time.sleep(120)
"""


def test_a_terminated_command_takes_its_server_along(tmp_path):
    (tmp_path / "marimo").mkdir()
    (tmp_path / "marimo" / "__init__.py").write_text("")
    (tmp_path / "marimo" / "__main__.py").write_text(SERVER)
    started = tmp_path / "started"
    path = os.pathsep.join([str(tmp_path), str(ROOT)])
    environment = {**os.environ, "PYTHONPATH": path, "STARTED": str(started)}
    command = [sys.executable, "-c", "from geomdp.cli import main; main()", "lessons", "1"]
    with subprocess.Popen(command, cwd=ROOT, env=environment) as process:
        while not (started.exists() and started.read_text()) and process.poll() is None:
            time.sleep(0.02)
        process.terminate()
    assert process.returncode == 128 + signal.SIGTERM
    wait_for_end(int(started.read_text()))


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
