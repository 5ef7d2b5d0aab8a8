"""The file of a certificate: one JSON object, and an .npz file beside it for large arrays.

::

    {"format": "geomdp packing certificate", "version": 1, "digest": sha-256,
     "epsilon", "alpha", "metric", "separation_factor", "log_odds", "required_separation",
     "adjacency", "lower_bound", "arrays": names,
     "rungs": [{"log_others", "size", "distance", "separation", "largest_distance", "copies",
                "first", "last", "assumptions", "family": {"type": ..., ...}}, ...]}

In the notation of `geomdp.bounds.certificates.rung`, log_others is ln(M - 1), size is s, distance
is d, separation is gamma and copies is T. Under replace-one, largest_distance is
(ln(M - 1) + log odds) / epsilon; under add/remove it is half of this. A rung proves
that no number n of records from first to last is enough. The types of families are:

* ``listed``: "datasets" (M, s), row numbers of elements, and either "workload" (name and
  parameters) with the records "elements" (E, ...), or the "answers" (E, k) of the elements;
* ``random signs``: "queries" k, "failure", "tilt", "deviation", "seed", and "sets", which are
  ``singletons`` ("log_count") or ``reed-solomon`` ("prime", "size", "degree");
* ``code words``: "attributes" d, "generators" of the inner binary code, "symbols", "length" and
  "degree" of the outer code;
* ``orthogonal lines``: "pairs" (i, 2), row numbers of elements, "weights" (i,), and workload,
  elements or answers as in ``listed``. Besides "first" and "last", such a rung has "scale" C,
  "copies" b, "steps" T_1..T_i and "known", which lists "prior", "allowances", "spacing" and
  "risk" for each different number of steps (see `geomdp.bounds.lines.orthogonal_lines`);
* ``separated elements``: "centre" c (k,), and workload, elements or answers as in ``listed``.
  Besides "first" and "last", such a rung has "scale" t lambda, "copies" t, "separation" gamma and
  "spread" G (see `geomdp.bounds.packings.guessing`);
* ``marginal blocks``: "attributes" d, "width", "part", "generators" of the binary code, "symbols",
  "length" and "degree" of the code of functions.

An array of more than 4096 entries is written as {"array": name}. Its values are under that name in
the .npz file, which is named like the JSON file apart from the ending. "arrays" lists all such
names. The digest is the SHA-256 of the JSON text without the digest (sorted keys, no blanks),
followed by the name and the bytes of each array, in order of name.
"""

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
#: Largest number of entries of an array written as JSON: a page or two of text.
MAX_JSON_ENTRIES = 4096

Arrays = dict[str, np.ndarray[Any, Any]]


def write_certificate(path: Path, document: dict[str, Any]) -> None:
    """Write `document`, which can contain NumPy arrays, to `path` and its .npz file.

    Both files are written in full, or neither is written. If no array is large enough for an .npz
    file, only the JSON file is written, and an earlier .npz file of this name is removed.

    Raises
    ------
    ValueError
        If `path` does not end in .json.
    """
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
    write_together(contents)
    if not arrays:
        beside.unlink(missing_ok=True)


def _without_arrays(value: Any, name: str, arrays: Arrays) -> Any:
    """`value` with lists and numbers in place of NumPy arrays and scalars.

    Arrays of more than `MAX_JSON_ENTRIES` entries are put into `arrays`. The key of such an array
    consists of `name` and of the keys that lead to the array within `value`.
    """
    if isinstance(value, np.ndarray):
        if value.size <= MAX_JSON_ENTRIES:
            return value.tolist()
        arrays[name] = value
        return {"array": name}
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, dict):
        return {key: _without_arrays(item, f"{name}{key}.", arrays) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_arrays(item, f"{name}{i}.", arrays) for i, item in enumerate(value)]
    return value
