"""From exceptions to one line on standard error and exit code 2."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import NoReturn

import typer

#: Exit code for bad input, as is usual for wrong usage of a command.
BAD_INPUT = 2
#: Exit code of a shell for a process stopped by Ctrl-C (128 + SIGINT).
INTERRUPTED = 130


def run_reporting_errors(command: Callable[[], int | None]) -> NoReturn:
    """Run `command` and exit: 0, its own code, or 2 after one line on standard error.

    Wrong usage, a ``ValueError`` (bad parameters or records; its message never holds the value of
    a record), a file that cannot be read or written and a table too large for this machine are the
    caller's errors. Anything else is ours and keeps its traceback.
    """
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
    except ValueError as error:
        _fail(str(error))
    except MemoryError as error:
        _fail(f"not enough memory: {error}")
    except (KeyboardInterrupt, typer.Abort):
        sys.exit(INTERRUPTED)
    sys.exit(code or 0)


def _fail(message: str) -> NoReturn:
    print("geomdp: error:", " ".join(message.split()), file=sys.stderr)
    sys.exit(BAD_INPUT)
