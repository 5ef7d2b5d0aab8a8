"""The command `lessons`: list the notebooks of the course, or open one in the browser."""

from __future__ import annotations

import ast
import signal
import subprocess
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from geomdp.cli import display

#: Folder of the package. In an installed wheel, the lessons are in the subfolder lessons/ of this
#: folder. In a checkout, they are in experiments/lessons/, and experiments/ is beside this folder.
PACKAGE = Path(__file__).resolve().parents[1]
NAME_HELP = "Number or name of a lesson; without NAME, all lessons are listed."
PORT_HELP = "Port of the notebook; by default the first free one."

Name = Annotated[str | None, typer.Argument(help=NAME_HELP, show_default=False)]
Port = Annotated[
    int | None, typer.Option("--port", min=1, max=65535, help=PORT_HELP, show_default=False)
]
Browser = Annotated[
    bool, typer.Option("--browser/--no-browser", help="Open a browser, or print the address only.")
]


@dataclass(frozen=True)
class Lesson:
    """One notebook. The file ``lesson_01_body.py`` is lesson 1 with the name `body`."""

    path: Path

    @property
    def number(self) -> int:
        return int(self.path.stem.split("_")[1])

    @property
    def name(self) -> str:
        return self.path.stem.split("_", 2)[2]

    @property
    def title(self) -> str:
        """The first line of the notebook's docstring, without the number."""
        text = ast.get_docstring(ast.parse(self.path.read_text(encoding="utf-8"))) or ""
        return text.partition("\n")[0].removeprefix(f"Lesson {self.number}. ")


def all_lessons() -> list[Lesson]:
    shipped, checkout = PACKAGE / "lessons", PACKAGE.parent / "experiments" / "lessons"
    folder = shipped if shipped.is_dir() else checkout
    return [Lesson(path) for path in sorted(folder.glob("lesson_[0-9][0-9]_*.py"))]


def find_lesson(name: str) -> Lesson:
    """The lesson with this number, short name or file name; ``ValueError`` if there is none."""
    known = all_lessons()
    for lesson in known:
        if name in {str(lesson.number), lesson.name, lesson.path.stem, lesson.path.name}:
            return lesson
    names = ", ".join(f"{lesson.number} ({lesson.name})" for lesson in known)
    raise ValueError(
        f"NAME must be one of {names or 'the lessons (none is installed)'}, got {name!r}"
    )


def require_marimo() -> None:
    """Raise ``ValueError`` if marimo, which opens the notebooks, is not installed."""
    if find_spec("marimo") is None:
        raise ValueError(
            "the lessons are marimo notebooks and need the extra `lessons`: "
            "pip install 'geomdp[lessons]'"
        )


def open_lesson(lesson: Lesson, port: int | None, browser: bool) -> int:
    """Serve a lesson on this machine until Ctrl-C or SIGTERM; return the server's exit code."""
    require_marimo()
    flags = [] if browser else ["--headless"]
    if port is not None:
        flags += ["--port", str(port)]
    command = [sys.executable, "-m", "marimo", "run", *flags, str(lesson.path)]
    before = signal.signal(signal.SIGTERM, _end)
    try:
        # `run` kills the server if an exception, such as that of `_end`, ends its wait.
        return subprocess.run(command, check=False).returncode
    finally:
        signal.signal(signal.SIGTERM, before)


def _end(number: int, frame: object) -> NoReturn:
    """End with the exit code that shells give to a process stopped by a signal."""
    del frame
    raise SystemExit(128 + number)


def show_list(command: str) -> None:
    """Print the lessons, the command that opens the first (`command` and 1), and that of pages."""
    rows = [(str(lesson.number), lesson.name, lesson.title) for lesson in all_lessons()]
    display.print_table(["lesson", "name", "what it is about"], rows)
    print(f"\nto open one as a notebook: {command} 1")
    print("all as pages, without a server: python -m experiments site (in a checkout)")


def lessons(name: Name = None, port: Port = None, browser: Browser = True) -> None:
    """Open a lesson on the geometry of privacy; without NAME, list all lessons.

    Lessons are notebooks with sliders and exercises and need the extra `lessons`.
    """
    if name is None:
        show_list("geomdp lessons")
        return
    raise typer.Exit(open_lesson(find_lesson(name), port, browser))
