"""Progress: the terminal shows warnings and the current step, and a log file lists all steps."""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from geomdp.cli.display import print_message, visible, warn

if TYPE_CHECKING:
    from rich.status import Status

#: A step that takes longer than this number of seconds is shown on the terminal.
PATIENCE = 0.5
#: The parent of all loggers of the library. Their messages name steps, and never quote a record.
STEPS = logging.getLogger("geomdp")
#: Logger of one message per process, which says that functions are being compiled.
COMPILATION = STEPS.getChild("compilation")
FORMAT = "%(asctime)s %(name)s: %(message)s"


@contextmanager
def working(step: str) -> Iterator[None]:
    """Log `step` and what the library reports until its end; animate it on a terminal if slow."""
    console = Console(stderr=True)
    status = console.status(Text(visible(step)))
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
    """Append the steps of a command, with times, to the file `path`; None means no file."""
    if path is None:
        yield
        return
    handler = _LogFile(path, encoding="utf-8")
    handler.setFormatter(_OneLine(FORMAT))
    STEPS.addHandler(handler)
    try:
        yield
    finally:
        STEPS.removeHandler(handler)
        with contextlib.suppress(OSError):  # `_LogFile` has warned of it
            handler.close()


class _LogFile(logging.FileHandler):
    """Appends messages to a file. When one cannot be written, it warns, and the log ends there."""

    def handleError(self, record: logging.LogRecord) -> None:
        del record  # the warning is about the file
        self.setLevel(logging.CRITICAL + 1)
        warn(f"--log {self.baseFilename} ends here: {sys.exception()}")


class _OneLine(logging.Formatter):
    """Formats a message as one line without control characters."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        return visible(super().formatMessage(record))


class _OnTerminal(logging.Handler):
    """Shows each message on the terminal, in place of the previous message."""

    def __init__(self, status: Status) -> None:
        super().__init__(logging.INFO)
        self._status = status

    def emit(self, record: logging.LogRecord) -> None:
        self._status.update(Text(visible(record.getMessage())))


class _OnALine(logging.Handler):
    """Prints each message as a line on standard error."""

    def emit(self, record: logging.LogRecord) -> None:
        print_message(f"geomdp: {record.getMessage()}")
