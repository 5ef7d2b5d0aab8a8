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
    The command ``geomdp schema records.csv --no-look --out schema.json``:

    >>> from pathlib import Path
    >>> from unittest import mock
    >>> from geomdp.cli import main
    >>> _ = Path("records.csv").write_text("region,age")
    >>> words = ["geomdp", "schema", "records.csv", "--no-look", "--out", "schema.json"]
    >>> with mock.patch("sys.argv", words):
    ...     try:
    ...         main()
    ...     except SystemExit as ended:
    ...         print("exit code", ended.code)
    schema  schema.json
    to do   declare the kinds of columns: all are skipped until then
    exit code 0
    """
    # Imported here because the commands import typer, which is slow to import.
    from geomdp.cli.app import app
    from geomdp.cli.display import run_reporting_errors

    run_reporting_errors(lambda: app(standalone_mode=False))
