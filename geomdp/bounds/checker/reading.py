"""Reading a certificate file, with checks of size, depth and digest before the content is used.

A certificate is one JSON object, and an .npz file for large arrays::

    {"format": "geomdp packing certificate", "version": 1, "digest": sha-256,
     "epsilon", "alpha", "metric", "separation_factor", "log_odds", "required_separation",
     "adjacency", "lower_bound", "arrays": names,
     "rungs": [{"log_others", "size", "distance", "separation", "largest_distance", "copies",
                "first", "last", "assumptions", "family": {"type": ..., ...}}, ...]}

For a guarantee that is not pure, "privacy" stands in place of "epsilon": {"definition": "ZCDP",
"rho"} or {"definition": "ApproxDP", "epsilon", "delta"}. All rungs are then orthogonal lines.

A rung proves that no number n of records from first to last is enough. In the notation of `check`,
log_others is ln(M - 1), size is s, distance is d, separation is gamma and copies is T.
largest_distance is (ln(M - 1) + log odds) / epsilon, or half of it under add/remove. The types of
families, with the symbols of the modules that check them, are:

* ``listed``: "origin" (a text) and "datasets" (M, s), with row numbers of elements. The elements
  are given by "workload" (name and parameters) and their records "elements" (E, ...), or by their
  "answers" (E, k).
* ``random signs``: "queries" k, "failure", "tilt", "deviation", "seed" and "sets". The sets are
  ``singletons`` ("log_count") or ``reed-solomon`` ("prime", "size", "degree").
* ``code words``: "attributes" d, "generators" of the inner binary code, "symbols", "length" and
  "degree" of the outer code.
* ``marginal blocks``: "attributes" d, "width", "part", "generators" of the binary code, "symbols",
  "length" and "degree" of the code of functions.

The other families give their elements as in ``listed``. Their rungs have "first", "last", "scale"
(C, or t lambda for the last two), "copies" (b or t), and further entries:

* ``orthogonal lines``: "pairs" (i, 2), with row numbers of elements, "weights" (i,), and "queries"
  if only their errors are bounded. The rung has "steps" T_1..T_i and "known": one object for each
  different number of steps. Under pure privacy, it has "prior", "allowances", "spacing" and "risk".
  Otherwise, it has "risk" and "argument": "pairs" (also "steps"), "differences" (also "weights") or
  "allowances" (also the entries for pure privacy).
* ``query lines``: "pairs" (g, 2) and "queries" (g,). The rung has "steps" T and "prior" (T + 1,).
* ``separated elements``: "centre" c (k,). The rung has "separation" gamma and "spread" G^(1/p).
* ``distant elements``: the rung has "separation" gamma and "distance" D.

An array of more than 4096 entries is written as {"array": name}, and the .npz file, whose name
differs in the ending alone, has its values under this name. "arrays" lists these names. The digest
is the SHA-256 of the JSON text without the digest (sorted keys, no blanks), followed by the name
and the bytes of each array, in order of name. To avoid overflow, a number outside an array is 0 or
from 1e-100 to 1e100 in absolute value, a whole number is below 2^256, and entries of arrays are at
most 1e100 in absolute value.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from geomdp.bounds.checker.values import CertificateRejected, Part, Work, require

#: Largest number of bytes of the JSON text, and of all unpacked arrays of the .npz file.
MAX_TEXT, MAX_ARRAYS = 1 << 24, 1 << 30
#: Largest number of digits of a whole number, and largest depth of a list or an object. The object
#: at the top of the file has depth 0.
MAX_DIGITS, MAX_DEPTH = 1000, 16
#: Number of operations that a check may use: `BASE_WORK` (a few seconds) for every file, plus
#: `WORK_PER_BYTE` for each byte of the JSON text and of the unpacked arrays.
BASE_WORK, WORK_PER_BYTE = 1 << 32, 1 << 17

Arrays = dict[str, npt.NDArray[Any]]


def read(path: Path) -> Part:
    """The certificate at `path`, after its digest and its limits on time and memory are checked."""
    with path.open("rb") as file:
        text = file.read(MAX_TEXT + 1)
    require(len(text) <= MAX_TEXT, f"the file is longer than {MAX_TEXT} bytes")
    document = _parsed(text)
    require(document.get("format") == "geomdp packing certificate", "the format is unknown")
    require(document.get("version") == 1, "the version is unknown")
    names = document.get("arrays")
    require(isinstance(names, list), "arrays is not a list of names")
    arrays = _arrays(path.with_suffix(".npz")) if names else {}
    require(sorted(arrays) == names, "arrays does not list the names in the .npz file")
    stated = document.pop("digest", None)
    content = hashlib.sha256(
        json.dumps(document, sort_keys=True, separators=(",", ":")).encode("utf-8")
    )
    for name in sorted(arrays):
        content.update(name.encode("utf-8") + np.ascontiguousarray(arrays[name]).tobytes())
    require(stated == content.hexdigest(), "the digest does not match the content")
    size = len(text) + sum(values.nbytes for values in arrays.values())
    return Part(_restored(document, arrays), Work(BASE_WORK + WORK_PER_BYTE * size))


def _parsed(text: bytes) -> dict[str, Any]:
    try:
        document = json.loads(text, parse_int=_whole, parse_constant=_no_number)
        require(_depth_is_limited(document), f"the nesting is deeper than {MAX_DEPTH} levels")
    except RecursionError as error:
        raise CertificateRejected("lists and objects are nested too deeply") from error
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise CertificateRejected(f"the file is not JSON: {error}") from error
    if not isinstance(document, dict):
        raise CertificateRejected("the file is not a JSON object")
    return document


def _whole(digits: str) -> int:
    require(len(digits) <= MAX_DIGITS, f"a whole number has more than {MAX_DIGITS} digits")
    return int(digits)


def _no_number(word: str) -> float:
    raise CertificateRejected(f"{word} is not a finite number")


def _depth_is_limited(document: Any) -> bool:
    level = [document]
    for _ in range(MAX_DEPTH + 1):
        inner: list[Any] = []
        for value in level:
            if isinstance(value, dict):
                inner += value.values()
            elif isinstance(value, list):
                inner += value
        level = [value for value in inner if isinstance(value, dict | list)]
        if not level:
            return True
    return False


def _arrays(path: Path) -> Arrays:
    """All arrays of an .npz file. Their sizes are checked before they are unpacked."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            size = sum(member.file_size for member in members)
            require(size <= MAX_ARRAYS, f"the arrays are larger than {MAX_ARRAYS} bytes")
            return {
                member.filename.removesuffix(".npy"): _array(archive.read(member))
                for member in members
            }
    except CertificateRejected:
        raise
    except Exception as error:  # zipfile and NumPy raise many kinds for damaged files
        raise CertificateRejected(f"{path.name} is not a file of plain arrays: {error}") from error


def _array(content: bytes) -> npt.NDArray[Any]:
    """One array of numbers in NumPy's format; rejected if the header states another length."""
    file = io.BytesIO(content)
    version = np.lib.format.read_magic(file)
    require(version in ((1, 0), (2, 0)), f"an array has format {version}")
    header = (
        np.lib.format.read_array_header_1_0
        if version == (1, 0)
        else np.lib.format.read_array_header_2_0
    )
    shape, by_columns, dtype = header(file)
    rest = content[file.tell() :]
    require(dtype.kind in "iuf", "an array does not hold numbers")
    require(
        math.prod(shape) * dtype.itemsize == len(rest),
        "the length of an array does not match its header",
    )
    flat = np.frombuffer(rest, dtype)
    return flat.reshape(shape, order="F" if by_columns else "C")


def _restored(value: Any, arrays: Arrays) -> Any:
    """`value` with every {"array": name} replaced by the array of that name."""
    if isinstance(value, list):
        return [_restored(item, arrays) for item in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {"array"}:
        name = value["array"]
        require(isinstance(name, str) and name in arrays, f"array {name!r} is missing")
        return arrays[name]
    return {key: _restored(item, arrays) for key, item in value.items()}
