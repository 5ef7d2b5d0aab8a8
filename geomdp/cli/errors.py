"""Errors of a command: messages on standard error and an exit code in place of a traceback."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NoReturn, TypeVar, cast

import typer

#: Exit code for bad input: the usual code for wrong usage of a command.
BAD_INPUT = 2
#: Where a message about records has its next line, which is about another fault.
RECORD_FAULT = re.compile(r"\n(?=records must be )")
#: Exit code of a shell for a process stopped by Ctrl-C (128 + SIGINT).
INTERRUPTED = 130


First = TypeVar("First")
Second = TypeVar("Second")


def check_together(
    first: Callable[[], First], second: Callable[[], Second], *checks: Callable[[], object]
) -> tuple[First, Second]:
    """The results of `first` and `second`, after all checks of a command's flags.

    Several ``ValueError`` are raised as one group. Any other exception is raised at once. The
    functions can call `check_together` themselves.
    """
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
    """Run `command`, and exit with the returned code; None means 0.

    The code is 2 after an error of the user (usage, ``ValueError``, exhausted budget, files, too
    large tables), which is printed on one line, and 130 after Ctrl-C. Any other exception is an
    error of this program, and its traceback is printed.
    """
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
        ours = group.split(ValueError)[1]
        if ours is not None:
            raise
        _fail(*map(str, group.exceptions))
    except MemoryError as error:
        _fail(f"not enough memory: {error}")
    except (KeyboardInterrupt, typer.Abort):
        sys.exit(INTERRUPTED)
    sys.exit(code or 0)


def _fail(*messages: str) -> NoReturn:
    from geomdp.cli.display import print_message

    for message in messages:
        print_message(f"geomdp: error: {message}")
    sys.exit(BAD_INPUT)
