"""From exceptions to lines on standard error and exit code 2."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NoReturn, TypeVar, cast

import typer

#: Exit code for bad input, as is usual for wrong usage of a command.
BAD_INPUT = 2
#: Exit code of a shell for a process stopped by Ctrl-C (128 + SIGINT).
INTERRUPTED = 130


First = TypeVar("First")
Second = TypeVar("Second")


def check_together(
    first: Callable[[], First], second: Callable[[], Second], *checks: Callable[[], object]
) -> tuple[First, Second]:
    """Run all parts of reading a command's flags, so that one run shows everything wrong with them.

    Returns the results of the first two parts, once none of the parts has raised ``ValueError`` or
    a group of them; one such error is raised itself, several as one group. A part may be a call of
    this function.
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
    """Name the flags of these parameters in errors of the library, which begin with parameters."""
    try:
        yield
    except ValueError as error:
        if str(error).partition(" ")[0] in parameters:
            raise ValueError(f"--{error}") from error
        raise


def run_reporting_errors(command: Callable[[], int | None]) -> NoReturn:
    """Run `command` and exit: 0, its own code, or 2 after a line on standard error for each error.

    Wrong usage, a ``ValueError`` (bad parameters or records; its message never holds the value of
    a record), an exhausted budget, a file that cannot be read or written and a table too large for
    this machine are the caller's errors. Anything else is ours and keeps its traceback.
    """
    # Here, so that help comes at once.
    from geomdp.privacy.ledger import BudgetExhausted

    try:
        code = command()
    except typer.TyperException as error:
        message = error.format_message()
        if not message:  # a command without arguments has printed its help instead
            sys.exit(0)
        _fail(message)
    except OSError as error:
        reason = error.strerror or str(error)
        _fail(f"{error.filename}: {reason}" if error.filename is not None else reason)
    except (ValueError, BudgetExhausted) as error:
        _fail(str(error))
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
    for message in messages:
        print("geomdp: error:", " ".join(message.split()), file=sys.stderr)
    sys.exit(BAD_INPUT)
