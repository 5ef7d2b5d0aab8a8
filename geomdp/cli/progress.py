"""Progress: a line on the terminal that names the current step, and the same steps in a log."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING

from rich.console import Console

if TYPE_CHECKING:
    from rich.status import Status

#: Seconds after which a step is named on the terminal.
PATIENCE = 0.5
#: The parent of every logger of the library; its messages name steps and never quote a record.
STEPS = logging.getLogger("geomdp")
#: Says once in a process that functions are compiled, as in the first run in an environment.
COMPILATION = STEPS.getChild("compilation")
FORMAT = "%(asctime)s %(name)s: %(message)s"


@contextmanager
def working(step: str) -> Iterator[None]:
    """Name `step`, and every step the library names meanwhile, in the log.

    If it takes longer than half a second and standard error is a terminal, a moving line there
    names the latest one.
    """
    console = Console(stderr=True)
    status = console.status(step)
    handler, level = _OnTerminal(status), STEPS.level
    announced = _OnALine(logging.INFO)
    timer = Timer(PATIENCE, status.start)
    timer.daemon = True
    STEPS.addHandler(handler)
    COMPILATION.addHandler(announced)
    STEPS.setLevel(logging.INFO)
    STEPS.info(step)
    try:
        if console.is_terminal:
            timer.start()
        yield
    finally:
        timer.cancel()
        if timer.is_alive():
            timer.join()
        status.stop()
        STEPS.removeHandler(handler)
        COMPILATION.removeHandler(announced)
        STEPS.setLevel(level)


@contextmanager
def logged_to(path: Path | None) -> Iterator[None]:
    """Append the steps, with their times, to a file; None for none."""
    if path is None:
        yield
        return
    handler = logging.FileHandler(path, encoding="utf-8")
    handler.setFormatter(logging.Formatter(FORMAT))
    STEPS.addHandler(handler)
    try:
        yield
    finally:
        STEPS.removeHandler(handler)
        handler.close()


class _OnTerminal(logging.Handler):
    """Shows each message in place of the one before."""

    def __init__(self, status: Status) -> None:
        super().__init__(logging.INFO)
        self._status = status

    def emit(self, record: logging.LogRecord) -> None:
        self._status.update(record.getMessage())


class _OnALine(logging.Handler):
    """Writes each message as a line of its own to standard error, terminal or not."""

    def emit(self, record: logging.LogRecord) -> None:
        print(f"geomdp: {record.getMessage()}", file=sys.stderr)
