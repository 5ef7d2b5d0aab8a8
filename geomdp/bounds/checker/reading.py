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

import decimal
import hashlib
import io
import json
import math
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

# Values of a certificate file: range checks on reading, and comparison with recomputed values.

#: Relative or absolute difference allowed between two evaluations of the same few operations.
CLOSE = 1e-9
#: A number outside an array is 0 or has an absolute value from LEAST to LARGEST, and a whole number
#: is below MOST. Entries of arrays are at most LARGEST in absolute value. So squares, and products
#: of up to three such numbers, stay below the largest float64 number.
LEAST, LARGEST, MOST = 1e-100, 1e100, 1 << 256
#: Whole numbers up to this number are exact in float64.
MOST_EXACT = 1 << 53


class CertificateRejected(ValueError):  # noqa: N818 (the name says what the checker did)
    """A certificate does not prove its bound; the message names the first check that fails.

    Examples
    --------
    >>> from pathlib import Path
    >>> import geomdp as gd
    >>> bound = gd.bounds.marginal_bound(16, 1, epsilon=1.0, alpha=0.05)
    >>> bound.certificate.save("bound.json")
    >>> text = Path("bound.json").read_text()
    >>> _ = Path("bound.json").write_text(text.replace('"epsilon": 1.0', '"epsilon": 2.0'))
    >>> gd.bounds.check_certificate("bound.json")
    Traceback (most recent call last):
        ...
    geomdp.bounds.checker.reading.CertificateRejected: the digest does not match the content
    """


def require(condition: bool, message: str) -> None:
    if not condition:
        raise CertificateRejected(message)


def require_close(stated: float, found: float, name: str) -> None:
    """Reject if `stated` and `found`, both without unit, differ by more than rounding."""
    same = stated == found or math.isclose(stated, found, rel_tol=CLOSE, abs_tol=CLOSE)
    require(same, f"{name} is {found:.12g}, the file says {stated:.12g}")


def require_at_most(stated: float, found: float, name: str) -> None:
    """Reject unless 0 < `stated` <= `found`; the proof must also hold for any smaller number."""
    above = f"{name} is {found:.15g} up to rounding, the file says {stated:.15g}"
    require(0 < stated <= found, above)


def rounded_down(value: float) -> str:
    """The decimal that prints `value`, rounded down to six significant digits."""
    return _rounded(value, decimal.ROUND_FLOOR)


def rounded_up(value: float) -> str:
    """The decimal that prints `value`, rounded up to six significant digits."""
    return _rounded(value, decimal.ROUND_CEILING)


def _rounded(value: float, direction: str) -> str:
    # Round the shortest decimal that denotes the float: 0.3 stays 0.3, not 0.299999.
    shortest = decimal.Decimal(repr(value))
    return f"{float(decimal.Context(prec=6, rounding=direction).plus(shortest)):.6g}"


class Work:
    """The number of operations, of about a nanosecond each, that a check has left."""

    def __init__(self, allowance: int) -> None:
        self._left = allowance

    def spend(self, operations: int) -> None:
        require(operations <= self._left, "the check takes too long for a file of this size")
        self._left -= operations


class Part:
    """A JSON object within a certificate file, and the operations that the whole check has left."""

    def __init__(self, values: dict[str, Any], work: Work) -> None:
        self.values, self.work = values, work

    def word(self, key: str) -> str:
        value = self.values.get(key)
        if not isinstance(value, str):
            raise CertificateRejected(f"{key} is not a text")
        return value

    def number(self, key: str) -> float:
        """The number at `key`: 0, or of absolute value from 1e-100 to 1e100."""
        value = self.values.get(key)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise CertificateRejected(f"{key} is not a finite number")
        require(abs(value) <= LARGEST, f"{key} is not a finite number up to {LARGEST:g}")
        require(value == 0 or abs(value) >= LEAST, f"{key} is too small: below {LEAST:g} and not 0")
        return float(value)

    def whole(self, key: str, least: int = 1, most: int = MOST - 1) -> int:
        """The whole number at `key`, from `least` to `most`."""
        value = self.values.get(key)
        if isinstance(value, bool) or not isinstance(value, int):
            raise CertificateRejected(f"{key} is not a whole number")
        limit = "below 2^256" if most == MOST - 1 else f"at most {most}"
        require(least <= value <= most, f"{key} must be at least {least} and {limit}")
        return value

    def array(self, key: str, axes: int | None = None) -> npt.NDArray[np.float64]:
        """The array at `key`: at least one number, and no absolute value above 1e100."""
        try:
            values = np.asarray(self.values[key])
        except (KeyError, ValueError) as error:
            raise CertificateRejected(f"{key} is not an array of numbers") from error
        require(values.dtype.kind in "iuf", f"{key} is not an array of numbers")
        require(axes is None or values.ndim == axes, f"{key} does not have {axes} axes")
        require(values.size > 0, f"{key} is empty")
        # A comparison with NaN is false, so NaN is rejected, too.
        inside = bool((np.abs(values.astype(np.float64)) <= LARGEST).all())
        require(inside, f"{key} holds NaN, or numbers above {LARGEST:g} in absolute value")
        return values.astype(np.float64)

    def whole_array(self, key: str, axes: int | None = None) -> npt.NDArray[np.int64]:
        """The array at `key`: at least one whole number, and no absolute value above 2^53."""
        values = self.array(key, axes)
        exact = bool(((values == np.rint(values)) & (np.abs(values) <= MOST_EXACT)).all())
        require(exact, f"{key} holds numbers that are not whole, or above 2^53")
        return values.astype(np.int64)

    def part(self, key: str) -> Part:
        value = self.values.get(key)
        if not isinstance(value, dict):
            raise CertificateRejected(f"{key} is missing")
        return Part(value, self.work)

    def parts(self, key: str) -> list[Part]:
        """The list at `key`, which has at least one object."""
        values = self.values.get(key)
        if not isinstance(values, list) or not values:
            raise CertificateRejected(f"{key} is not a list of objects")
        require(all(isinstance(value, dict) for value in values), f"{key} is not a list of objects")
        return [Part(value, self.work) for value in values]


def excluded_records(rung: Part, least: int, reach: float) -> tuple[int, int]:
    """The checked range of records that a step excludes: from `least` to `reach`, rounded down."""
    first, last = rung.whole("first"), rung.whole("last")
    require(first == least, f"first is {least}, the file says {first}")
    require(math.isfinite(reach), "alpha is too small for float64")
    require(last <= reach * (1 + 1e-15), f"last is {math.floor(reach)}, the file says {last}")
    require(last + 1 > reach * (1 - 1e-10), f"last is {math.floor(reach)}, not {last}")
    return first, last


# Reading of the files.

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
