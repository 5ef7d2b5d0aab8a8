"""What the terminal shows: short aligned rows, progress, warnings, and errors with an exit code."""

from __future__ import annotations

import contextlib
import io
import logging
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TypeAlias, TypeVar, cast

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from geomdp.data.columns import is_shown

if TYPE_CHECKING:
    from geomdp.mechanisms import Mechanism, Prediction
    from geomdp.privacy import Guarantee, Privacy
    from geomdp.tabulation.tasks import Task


# Short aligned rows that are readable on a terminal and in a log

#: Pairs of a name and a value.
Rows: TypeAlias = "list[tuple[str, str]]"
#: Number of characters per line in a log or a pipe, which have no width of their own.
LOG_WIDTH = 120


def visible(text: str) -> str:
    """`text` with a JSON escape for what is not shown as it is, so that it cannot forge a line."""
    if text.isprintable():  # always shown, and quick to find
        return text
    return "".join(each if is_shown(each) else f"\\u{ord(each):04x}" for each in text)


def print_rows(rows: Iterable[tuple[str, str]]) -> None:
    """Print pairs of a name and a value, with the values aligned."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in rows:
        grid.add_row(Text(visible(name)), Text(visible(value)))
    _print(grid)


def print_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table without lines between cells. Only its last column wraps."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for heading in headings[:-1]:
        table.add_column(heading, no_wrap=True)
    table.add_column(headings[-1], overflow="fold")
    for row in rows:
        table.add_row(*(Text(visible(cell)) for cell in row))
    _print(table)


def _print(table: Table) -> None:
    """Print a table on standard output; in a log or a pipe, without blanks at the ends of lines."""
    shown = Console(width=None if sys.stdout.isatty() else LOG_WIDTH, highlight=False)
    if shown.is_terminal:
        shown.print(table)
        return
    with shown.capture() as lines:
        shown.print(table)
    print("\n".join(line.rstrip() for line in lines.get().splitlines()))


@contextmanager
def printing(said: str) -> Iterator[None]:
    """Print results that are paid and written; if that fails, warn where they are."""
    try:
        yield
        sys.stdout.flush()
    except OSError as error:
        warn(f"standard output: {error.strerror}; {said}: do not pay again")
        sys.stdout = io.StringIO()


def warn(message: str) -> None:
    print_message(f"warning: {message}", "yellow")


def print_message(message: str, style: str = "") -> None:
    """Print on standard error: on one line in a log or a pipe, wrapped between words elsewhere."""
    shown = Console(stderr=True, highlight=False)
    text = Text(visible(" ".join(message.split())), style)
    shown.print(text, soft_wrap=not shown.is_terminal)


def implied(guarantee: Guarantee, asked: Privacy) -> str:
    """Words that name the guarantee `asked`, if `guarantee` claims another, stronger guarantee."""
    if not guarantee.is_claim or str(guarantee.privacy) == str(asked):
        return ""
    return f" (it implies {asked}, which was asked for)"


def in_words(prediction: Prediction) -> str:
    """A predicted error as text, with the kind of the prediction."""
    from geomdp.mechanisms import PredictionKind

    kinds = {
        PredictionKind.EXACT: "exact for every data set",
        PredictionKind.UPPER_BOUND: "upper bound for every data set; errors are often smaller",
        PredictionKind.PRIOR: "simulated on a public prior",
    }
    spread = f" +- {prediction.stderr:.1g}" if prediction.stderr > 0 else ""
    return f"{number(prediction.value)}{spread} per query ({kinds[prediction.kind]})"


def error_rows(
    mechanism: Mechanism,
    prediction: Prediction,
    said: str = "",
    *,
    weighted: bool = False,
    task: Task | None = None,
) -> Rows:
    """Rows on the error of the noise, and on that of the answers, as `prediction` states it."""
    from geomdp.mechanisms.additive_noise.base import additive_within

    unit = ", each error times its weight" if weighted else ""
    rows = [("rmse", in_words(prediction) + unit + said)]
    if (noise := additive_within(mechanism)) is not None:
        alone = number((task.predicted(noise) if task else noise.predicted_rmse).value)
        rows.insert(0, ("noise rmse", f"{alone} per query, before post-processing{unit}"))
    return rows


def number(value: float) -> str:
    return f"{value:.4g}"


def counted(declared: int | None) -> str:
    return "counted" if declared is None else "declared"


# Progress: the terminal shows warnings and the current step, and a log file lists all steps

#: The parent of all loggers of the library. Their messages name steps, and never quote a record.
STEPS = logging.getLogger("geomdp")
#: Logger of one message per process, which says that functions are being compiled.
COMPILATION = STEPS.getChild("compilation")
FORMAT = "%(asctime)s %(name)s: %(message)s"


@contextmanager
def working(step: str) -> Iterator[None]:
    """Log `step` and what the library reports until its end; show it on a terminal meanwhile."""
    console = Console(stderr=True)
    status = console.status(Text(visible(step)))
    # Each step takes the place of the previous one; what is compiled stays as a line.
    handler, level = _Shown(lambda text: status.update(Text(visible(text)))), STEPS.level
    announced = _Shown(lambda text: print_message(f"geomdp: {text}"))
    STEPS.addHandler(handler)
    COMPILATION.addHandler(announced)
    STEPS.setLevel(logging.INFO)
    STEPS.info(step)
    try:
        if console.is_terminal:
            status.start()
        yield
    finally:
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
    handler.setFormatter(logging.Formatter(FORMAT))
    STEPS.addHandler(handler)
    try:
        yield
    finally:
        STEPS.removeHandler(handler)
        with contextlib.suppress(OSError):  # `_LogFile` has warned of it
            handler.close()


class _LogFile(logging.FileHandler):
    """Appends a line for each message. When one cannot be written, it warns, and the log ends."""

    def format(self, record: logging.LogRecord) -> str:
        return visible(super().format(record))

    def handleError(self, record: logging.LogRecord) -> None:
        del record  # the warning is about the file
        self.setLevel(logging.CRITICAL + 1)
        warn(f"--log {self.baseFilename} ends here: {sys.exception()}")


class _Shown(logging.Handler):
    """Passes the text of each message to a function."""

    def __init__(self, show: Callable[[str], None]) -> None:
        super().__init__(logging.INFO)
        self._show = show

    def emit(self, record: logging.LogRecord) -> None:
        self._show(record.getMessage())


# Errors: messages on standard error and an exit code in place of a traceback

#: Exit codes for bad input, the usual one for wrong usage, and after Ctrl-C (128 + SIGINT).
BAD_INPUT, INTERRUPTED = 2, 130
#: Where a message about records has its next line, which is about another fault.
RECORD_FAULT = re.compile(r"\n(?=records must be )")

First = TypeVar("First")
Second = TypeVar("Second")


def check_together(
    first: Callable[[], First], second: Callable[[], Second], *checks: Callable[[], object]
) -> tuple[First, Second]:
    """The first two results, after all checks; several ``ValueError`` are one group."""
    results: list[object] = []
    errors: list[Exception] = []
    for part in (first, second, *checks):
        try:
            results.append(part())
        except ValueError as error:
            errors.append(error)
        except ExceptionGroup as group:
            ours, theirs = group.split(ValueError)
            if ours is None or theirs is not None:
                raise
            errors += ours.exceptions
    if len(errors) > 1:
        raise ExceptionGroup("bad input", errors)
    if errors:
        raise errors[0]
    return cast("First", results[0]), cast("Second", results[1])


@contextmanager
def naming_flags(*parameters: str) -> Iterator[None]:
    """Put ``--`` before a message of the library that begins with one of `parameters`."""
    try:
        yield
    except ValueError as error:
        if str(error).partition(" ")[0] in parameters:
            raise ValueError(f"--{error}") from error
        raise


def run_reporting_errors(command: Callable[[], int | None]) -> NoReturn:
    """Run `command` and exit with its code, or with one line for each error of the user."""
    # Imported here, so that --help appears without delay.
    from geomdp.privacy.ledger import BudgetExhausted

    try:
        code = command()
    except typer.TyperException as error:
        message = error.format_message()
        if not message:  # the command was called without arguments and has printed its help
            sys.exit(0)
        _fail(message)
    except OSError as error:
        reason = error.strerror or str(error)
        _fail(f"{error.filename}: {reason}" if error.filename is not None else reason)
    except (ValueError, BudgetExhausted) as error:
        _fail(*RECORD_FAULT.split(str(error)))
    except ExceptionGroup as group:
        if group.split(ValueError)[1] is not None:  # an error of this program
            raise
        _fail(*map(str, group.exceptions))
    except MemoryError as error:
        _fail(f"not enough memory: {error}")
    except (KeyboardInterrupt, typer.Abort):
        sys.exit(INTERRUPTED)
    sys.exit(code or 0)


def _fail(*messages: str) -> NoReturn:
    for message in messages:
        print_message(f"geomdp: error: {message}")
    sys.exit(BAD_INPUT)
