"""Writing a certificate to its files, in the format that `geomdp.bounds.checker` reads."""

from __future__ import annotations

import hashlib
import io
import json
from pathlib import Path
from typing import Any

import numpy as np

from geomdp._numerics.written_files import write_together

FORMAT = "geomdp packing certificate"
VERSION = 1
#: Largest number of entries of an array written as JSON. The JSON file has one line per entry, so
#: it would be long with larger arrays.
MAX_JSON_ENTRIES = 4096
#: The range of the numbers in a file, except 0. Products of up to three of them are in the range of
#: float64. Whole numbers are below `MOST`.
LEAST, LARGEST, MOST = 1e-100, 1e100, 1 << 256

Arrays = dict[str, np.ndarray[Any, Any]]


def write_certificate(path: Path, document: dict[str, Any]) -> None:
    """Write `document`, which can contain NumPy arrays, to `path` and, if needed, an .npz file."""
    if path.suffix != ".json":
        raise ValueError(f"a certificate's path must end in .json, got {str(path)!r}")
    arrays: Arrays = {}
    content = _without_arrays(document, "", arrays)
    plain = {"format": FORMAT, "version": VERSION, **content, "arrays": sorted(arrays)}
    digest = hashlib.sha256(json.dumps(plain, sort_keys=True, separators=(",", ":")).encode())
    for name in sorted(arrays):
        digest.update(name.encode() + np.ascontiguousarray(arrays[name]).tobytes())
    beside, contents = path.with_suffix(".npz"), {}
    if arrays:
        packed = io.BytesIO()
        np.savez_compressed(packed, **arrays)  # type: ignore[arg-type]
        contents[beside] = packed.getvalue()
    sealed = plain | {"digest": digest.hexdigest()}
    contents[path] = (json.dumps(sealed, indent=1) + "\n").encode()
    # Both files are written in full under other names and then renamed, so a failure changes
    # nothing.
    write_together(contents)
    if not arrays:
        beside.unlink(missing_ok=True)


def _without_arrays(value: Any, name: str, arrays: Arrays) -> Any:
    """`value` without NumPy types; large arrays go to `arrays` under `name` and their keys."""
    if isinstance(value, np.ndarray):
        _require(bool(np.abs(value).max(initial=0) <= LARGEST), name, f"at most {LARGEST:g}")
        if value.size <= MAX_JSON_ENTRIES:
            return value.tolist()
        arrays[name] = value
        return {"array": name}
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        inside = value == 0 or LEAST <= abs(value) <= LARGEST
        _require(inside, name, f"0, or from {LEAST:g} to {LARGEST:g}, got {value!r}")
    elif isinstance(value, int):
        _require(abs(value) < MOST, name, f"below 2^256, got {value.bit_length()} bits")
    if isinstance(value, dict):
        return {key: _without_arrays(item, f"{name}{key}.", arrays) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_arrays(item, f"{name}{i}.", arrays) for i, item in enumerate(value)]
    return value


def _require(inside: bool, name: str, limits: str) -> None:
    """Refuse a number outside the `limits`; `name` is the path to it, with a dot at the end."""
    if not inside:
        raise ValueError(
            f"{name.rstrip('.')} must be {limits}: a certificate holds no other number"
        )
