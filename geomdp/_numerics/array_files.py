"""Read .npz files and JSON texts of unknown origin, and reject damaged or hostile input."""

from __future__ import annotations

import json
import math
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

#: Largest total size of the unpacked arrays of one file: 2^30 bytes.
MOST_BYTES = 1 << 30
#: Ending of the names of the array files in an .npz archive.
ENDING = ".npy"


def read_arrays(path: Path, names: Sequence[str]) -> dict[str, np.ndarray[Any, Any]]:
    """Read an .npz file that must hold exactly the arrays called `names`.

    ``ValueError`` before anything is unpacked if it holds others or would unpack to more than 2^30
    bytes, and if it is damaged. Nothing is unpickled, because a pickle can run code.
    """
    with path.open("rb") as stream:
        try:
            with zipfile.ZipFile(stream) as archive:
                return _members(archive, names)
        except ValueError:
            raise
        except Exception as error:  # damaged files raise many kinds of exceptions
            raise ValueError(f"the file must be an undamaged .npz file: {error}") from error


def _members(archive: zipfile.ZipFile, names: Sequence[str]) -> dict[str, np.ndarray[Any, Any]]:
    found = sorted(member.filename for member in archive.infolist())
    if found != sorted(name + ENDING for name in names):
        raise ValueError(
            f"the file must hold the arrays {sorted(names)} and no others, got {len(found)} members"
        )
    size = sum(member.file_size for member in archive.infolist())
    if size > MOST_BYTES:
        raise ValueError(
            f"the arrays of the file must take at most {MOST_BYTES} bytes unpacked, got {size}"
        )
    return {name: _array(archive, name + ENDING) for name in names}


def _array(archive: zipfile.ZipFile, member: str) -> np.ndarray[Any, Any]:
    with archive.open(member) as file:
        read_header = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }.get(np.lib.format.read_magic(file))
        if read_header is None:
            raise ValueError(f"{member} must be an array file of version 1.0 or 2.0")
        shape, _, dtype = read_header(file)
        # numpy allocates the size that the header states, even if the file holds fewer bytes.
        if math.prod(shape) * dtype.itemsize > archive.getinfo(member).file_size:
            raise ValueError(f"{member} must be as long as its header says, but it is shorter")
    with archive.open(member) as file:
        array = np.asarray(np.lib.format.read_array(file, allow_pickle=False))
    if array.dtype.kind == "U":
        # NumPy reads any 32-bit numbers as text, and fails only when it makes a string of them.
        codes = np.frombuffer(
            array.tobytes(), np.dtype(np.uint32).newbyteorder(array.dtype.byteorder)
        )
        if codes.max(initial=0) > sys.maxunicode:
            raise ValueError(f"{member} must hold Unicode text, got the code {codes.max():#x}")
    return array


def parsed(text: str) -> Any:
    """Parse a JSON document. ``ValueError`` if `text` is not JSON or is nested too deeply."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("JSON is nested too deeply") from None
