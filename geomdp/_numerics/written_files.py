"""Write files so that none of the given paths ever holds half a file."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from pathlib import Path


def write_together(contents: Mapping[Path, bytes]) -> None:
    """Write several files in full under other names, then rename them in the order given.

    If a file cannot be written, ``OSError`` is raised and nothing at the given paths has changed.
    If a rename fails, its path and all later paths are unchanged. A symbolic link at one of the
    paths is replaced, not followed. Threads and processes may write the same path at the same time:
    it then holds what the last of them wrote.
    """
    # Each call has names of its own, so that calls at the same time do not share a partial file.
    call = secrets.token_hex(8)
    parts = {path: path.with_name(f".{path.name}.{call}.part") for path in contents}
    try:
        for path, part in parts.items():
            _write_new(part, contents[path])
        for path, part in parts.items():
            os.replace(part, path)
    finally:
        for part in parts.values():
            part.unlink(missing_ok=True)


def _write_new(path: Path, content: bytes) -> None:
    with path.open("xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
