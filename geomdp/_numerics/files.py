"""Read files of unknown origin, and write files so that no path ever holds half a file.

Damaged or hostile .npz files and JSON texts are rejected.
"""

from __future__ import annotations

import json
import math
import os
import secrets
import sys
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

# Reading

#: Largest total size of the unpacked arrays of one file: 2^30 bytes.
MOST_BYTES = 1 << 30
#: Ending of the names of the array files in an .npz archive.
ENDING = ".npy"


def read_arrays(path: Path, names: Sequence[str]) -> dict[str, np.ndarray[Any, Any]]:
    """Read an .npz file of exactly the arrays `names`, without unpickling, which can run code;
    ``ValueError`` for others, for damage, and, before it unpacks, for more than 2^30 bytes.
    """
    with path.open("rb") as stream:
        try:
            with zipfile.ZipFile(stream) as archive:
                members = archive.infolist()
                if sorted(m.filename for m in members) != sorted(name + ENDING for name in names):
                    wanted = f"the arrays {sorted(names)} and no others"
                    raise ValueError(f"the file must hold {wanted}, got {len(members)} members")
                if (size := sum(member.file_size for member in members)) > MOST_BYTES:
                    limit = f"at most {MOST_BYTES} bytes unpacked"
                    raise ValueError(f"the arrays of the file must take {limit}, got {size}")
                return {name: _array(archive, name + ENDING) for name in names}
        except ValueError:
            raise
        except Exception as error:  # damaged files raise many kinds of exceptions
            raise ValueError(f"the file must be an undamaged .npz file: {error}") from error


def _array(archive: zipfile.ZipFile, member: str) -> np.ndarray[Any, Any]:
    with archive.open(member) as file:
        version = np.lib.format.read_magic(file)
        if version not in ((1, 0), (2, 0)):
            raise ValueError(f"{member} must be an array file of version 1.0 or 2.0, got {version}")
        one, two = np.lib.format.read_array_header_1_0, np.lib.format.read_array_header_2_0
        shape, _, dtype = (one if version == (1, 0) else two)(file)
        # numpy allocates the size that the header states, even if the file holds fewer bytes.
        if math.prod(shape) * dtype.itemsize > archive.getinfo(member).file_size:
            raise ValueError(f"{member} must be as long as its header says, but it is shorter")
    with archive.open(member) as file:
        array = np.asarray(np.lib.format.read_array(file, allow_pickle=False))
    if array.dtype.kind == "U":
        # NumPy reads any 32-bit numbers as text, and fails only when it makes a string of them.
        kind = np.dtype(np.uint32).newbyteorder(array.dtype.byteorder)
        codes = np.frombuffer(array.tobytes(), kind)
        if codes.max(initial=0) > sys.maxunicode:
            raise ValueError(f"{member} must hold Unicode text, got the code {codes.max():#x}")
    return array


def parsed(text: str) -> Any:
    """Parse a JSON document. ``ValueError`` if `text` is not JSON or is nested too deeply."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("JSON is nested too deeply") from None


# Writing


def write_together(contents: Mapping[Path, bytes]) -> None:
    """Write files in full under other names, then rename them in the order given: nothing changes
    if one cannot be written (``OSError``), and only earlier paths change if a rename fails.
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
