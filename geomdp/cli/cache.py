"""The command `cache`: where public set-ups are kept, and how much they take."""

from __future__ import annotations

from typing import Annotated

import typer

from geomdp.cli import display

ClearOption = Annotated[
    bool, typer.Option("--clear", metavar="", help="Delete them; they are computed again.")
]


def cache(*, clear: ClearOption = False) -> None:
    """Show the cache of public set-ups, or clear it. Nothing in it depends on any record."""
    from geomdp.cache import CacheFiles

    files = CacheFiles.of_user()
    count, size = files.size()
    rows = [
        ("folder", str(files.folder)),
        ("files", f"{count}, {size / 2**20:.1f} MiB of at most {files.limit / 2**20:g} MiB"),
    ]
    if clear:
        rows.append(("deleted", f"{files.clear()} files"))
    display.print_rows(rows)
