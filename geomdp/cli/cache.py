"""The command `cache`: the folder that stores results of public set-ups, and its size.

Some mechanisms need a computation before their first use, such as the search for an optimal
ellipsoid. This computation is called the set-up of the mechanism. Set-ups depend on public inputs
alone, never on records.
"""

from __future__ import annotations

from typing import Annotated

import typer

from geomdp.cli import display

ClearOption = Annotated[
    bool, typer.Option("--clear", metavar="", help="Delete all files; set-ups are computed again.")
]


def cache(*, clear: ClearOption = False) -> None:
    """Show or clear the cache of public set-ups. No file in it depends on any record."""
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
