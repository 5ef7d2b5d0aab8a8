"""The file of a certificate: one JSON object, and an .npz file for large arrays.

::

    {"format": "geomdp packing certificate", "version": 1, "digest": sha-256,
     "epsilon", "alpha", "metric", "separation_factor", "log_odds", "required_separation",
     "adjacency", "lower_bound", "arrays": names,
     "rungs": [{"log_others", "size", "distance", "separation", "largest_distance", "copies",
                "first", "last", "assumptions", "family": {"type": ..., ...}}, ...]}

For a guarantee that is not pure, "privacy" stands in place of "epsilon": {"definition": "ZCDP",
"rho"} or {"definition": "ApproxDP", "epsilon", "delta"}. All rungs are then orthogonal lines.

In the notation of `geomdp.bounds.certificates.rung`, log_others is ln(M - 1), size is s, distance
is d, separation is gamma and copies is T. Under replace-one, largest_distance is
(ln(M - 1) + log odds) / epsilon. Under add/remove, largest_distance is half of this number. A rung
proves that no number n of records from first to last is enough. The types of families are:

* ``listed``: "origin" (a text) and "datasets" (M, s), with row numbers of elements. The elements
  are given by "workload" (name and parameters) and their records "elements" (E, ...), or by their
  "answers" (E, k).
* ``random signs``: "queries" k, "failure", "tilt", "deviation", "seed" and "sets". The sets are
  ``singletons`` ("log_count") or ``reed-solomon`` ("prime", "size", "degree").
* ``code words``: "attributes" d, "generators" of the inner binary code, "symbols", "length" and
  "degree" of the outer code.
* ``orthogonal lines``: "pairs" (i, 2), with row numbers of elements, and "weights" (i,). The
  elements are given as in ``listed``. The rung has "first", "last", "scale" C, "copies" b, "steps"
  T_1..T_i and "known" (see `geomdp.bounds.lines.orthogonal_lines`). For each different number of
  steps, the list "known" has one object. Under pure privacy, this object has "prior", "allowances",
  "spacing" and "risk". Under any other guarantee, it has "risk" and "argument". The argument is
  "pairs" (the object also has "steps"), "differences" (also "weights") or "allowances" (also the
  entries for pure privacy). The family has "queries" if only the errors of these queries are
  bounded.
* ``query lines``: "pairs" (g, 2) and "queries" (g,). The elements are given as in ``listed``. The
  rung has "first", "last", "scale" C, "copies" b, "steps" T and "prior" (T + 1,) (see
  `geomdp.bounds.lines.query_lines`).
* ``separated elements``: "centre" c (k,). The elements are given as in ``listed``. The rung has
  "first", "last", "scale" t lambda, "copies" t, "separation" gamma and "spread" G^(1/p) (see
  `geomdp.bounds.packings.separated_elements`).
* ``distant elements``: no further entry. The elements are given as in ``listed``. The rung has the
  entries of ``separated elements``, with "distance" D in place of "spread" (see
  `geomdp.bounds.packings.distant_elements`).
* ``marginal blocks``: "attributes" d, "width", "part", "generators" of the binary code, "symbols",
  "length" and "degree" of the code of functions.

An array of more than 4096 entries is written as {"array": name}. The .npz file has the values under
this name. The names of the two files differ in the ending alone. "arrays" lists the names of these
arrays. The digest is the SHA-256 of two parts. The first part is the JSON text without the digest
(sorted keys, no blanks). The second part is the name and the bytes of each array, in order of name.

A reader can check the numbers without overflow or underflow, because a number outside an array is 0
or has an absolute value from 1e-100 to 1e100, a whole number is below 2^256, and entries of arrays
are at most 1e100 in absolute value. A certificate with other numbers is not written.
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
#: Largest number of entries of an array written as JSON. The JSON file has one line per entry, so
#: it would be long with larger arrays.
MAX_JSON_ENTRIES = 4096
#: The range of the numbers in a file, except 0. Products of up to three of them are in the range of
#: float64. Whole numbers are below `MOST`.
LEAST, LARGEST, MOST = 1e-100, 1e100, 1 << 256

Arrays = dict[str, np.ndarray[Any, Any]]


def write_certificate(path: Path, document: dict[str, Any]) -> None:
    """Write `document`, which can contain NumPy arrays, to `path` and its .npz file.

    Both files are first written in full under other names and then renamed, the .npz file first. If
    a file cannot be written, nothing changes. If no array is large enough for an .npz file, there
    is only the JSON file. An earlier .npz file of this name is then removed.

    Raises
    ------
    ValueError
        If `path` does not end in .json, or a number is outside the range that a certificate can
        hold.
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
    is `name`, followed by the keys that lead to the array within `value`.
    """
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
