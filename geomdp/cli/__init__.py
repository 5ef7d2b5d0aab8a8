"""The `geomdp` command."""

from __future__ import annotations

from typing import NoReturn

__all__ = ["main"]


def main() -> NoReturn:
    """Run the command line; exits 0, or 2 with one line on standard error for bad input."""
    # Here, so that importing this package stays cheap.
    from geomdp.cli.app import app
    from geomdp.cli.errors import run_reporting_errors

    run_reporting_errors(lambda: app(standalone_mode=False))
