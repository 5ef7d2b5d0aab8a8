"""Write files so that none of the given paths ever holds half a file."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path


def write_together(contents: Mapping[Path, bytes]) -> None:
    """Write several files in full under other names, then rename them in the order given.

    If a file cannot be written (``OSError``), nothing has changed; if a rename fails, its path and
    all later ones are unchanged. A symbolic link is replaced, not followed. Other writers may run
    at once.
    """
    with room_for(dict.fromkeys(contents, 0)) as write:
        write(contents)


@contextmanager
def room_for(sizes: Mapping[Path, int]) -> Iterator[Callable[[Mapping[Path, bytes]], None]]:
    """Take `sizes` bytes of the disk, so that a full disk shows now; yield `write_together`."""
    # Each call has names of its own, so that calls at the same time do not share a partial file.
    call = secrets.token_hex(8)
    parts = {path: path.with_name(f".{path.name}.{call}.part") for path in sizes}

    def write(contents: Mapping[Path, bytes]) -> None:
        for path, content in contents.items():
            _write(path, parts[path], content)
        for path in contents:
            os.replace(parts[path], path)

    try:
        for path, part in parts.items():
            if sizes[path] > 0:
                _write(path, part, bytes(sizes[path]))
        yield write
    finally:
        for part in parts.values():
            part.unlink(missing_ok=True)


def _write(path: Path, part: Path, content: bytes) -> None:
    """Replace the content of `part`; an ``OSError`` names `path`, for which `part` stands."""
    try:
        # The bytes that the file has already are overwritten first, and stay taken until then.
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o666)
        with os.fdopen(descriptor, "wb", buffering=0) as file:
            left = memoryview(content)
            while left:
                left = left[os.write(descriptor, left) :]
            file.truncate()
            os.fsync(descriptor)
    except OSError as error:
        error.filename = str(path)
        raise
