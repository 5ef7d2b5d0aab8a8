"""The modules of `experiments` and `tests` that files import, directly or through others."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
#: The packages whose modules are followed. The library is not followed: it has its own hash.
FOLLOWED = ("experiments", "tests")


def with_imports(files: Iterable[Path]) -> set[Path]:
    """The `files`, and all followed modules that they import, directly or through others."""
    found: set[Path] = set()
    unread = list(files)
    while unread:
        path = unread.pop()
        if path not in found:
            found.add(path)
            unread += _imported(path)
    return found


@cache
def _imported(path: Path) -> tuple[Path, ...]:
    """Files of the followed modules that the file imports, also within its functions."""
    names = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    followed = [name for name in names if name.partition(".")[0] in FOLLOWED]
    # A name is a module, a package, or an object in a module. An object has no file.
    places = [ROOT.joinpath(*name.split(".")) for name in followed]
    candidates = [file for at in places for file in (at.with_suffix(".py"), at / "__init__.py")]
    return tuple(file for file in candidates if file.is_file())
