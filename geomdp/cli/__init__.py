"""The `geomdp` command."""

from __future__ import annotations

from typing import NoReturn

__all__ = ["main"]


def main() -> NoReturn:
    """Run the command line with the arguments in ``sys.argv``, then exit.

    The exit code is 0 after success, 130 after Ctrl-C, 2 after an error of the user (one line on
    standard error), and 1 if `audit` refutes a claim, if `check-bound` rejects a bound, or after an
    error of this program, whose traceback is printed.

    Examples
    --------
    A ledger that does not exist is an error of the user:

    >>> from unittest import mock
    >>> from geomdp.cli import main
    >>> with mock.patch("sys.argv", ["geomdp", "ledger", "none.ledger"]):
    ...     try:
    ...         main()
    ...     except SystemExit as ended:
    ...         print("exit code", ended.code)
    exit code 2
    """
    # Imported here because the commands import typer, which is slow to import.
    from geomdp.cli.app import app
    from geomdp.cli.display import run_reporting_errors

    run_reporting_errors(lambda: app(standalone_mode=False))
