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
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

# Values of a certificate file: range checks on reading, and comparison with recomputed values.

#: Relative or absolute difference allowed between two evaluations of the same few operations.
CLOSE = 1e-9
#: Limits of numbers, see the module: products of up to three such numbers are in the range of
#: float64. Whole numbers up to `MOST_EXACT` are exact in float64.
LEAST, LARGEST, MOST, MOST_EXACT = 1e-100, 1e100, 1 << 256, 1 << 53


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
#: Largest number of digits of a whole number.
MAX_DIGITS = 1000
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
    content = hashlib.sha256(json.dumps(document, sort_keys=True, separators=(",", ":")).encode())
    for name in sorted(arrays):
        content.update(name.encode("utf-8") + np.ascontiguousarray(arrays[name]).tobytes())
    require(stated == content.hexdigest(), "the digest does not match the content")
    size = len(text) + sum(values.nbytes for values in arrays.values())
    return Part(_restored(document, arrays), Work(BASE_WORK + WORK_PER_BYTE * size))


def _parsed(text: bytes) -> dict[str, Any]:
    try:
        document = json.loads(text, parse_int=_whole, parse_constant=_no_number)
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


def _arrays(path: Path) -> Arrays:
    """All arrays of an .npz file. Their sizes are checked before they are unpacked."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            size = sum(member.file_size for member in members)
            require(size <= MAX_ARRAYS, f"the arrays are larger than {MAX_ARRAYS} bytes")
            names = [member.filename.removesuffix(".npy") for member in members]
            return dict(zip(names, map(_array, map(archive.read, members)), strict=True))
    except CertificateRejected:
        raise
    except Exception as error:  # zipfile and NumPy raise many kinds for damaged files
        raise CertificateRejected(f"{path.name} is not a file of plain arrays: {error}") from error


def _array(content: bytes) -> npt.NDArray[Any]:
    """One array of numbers in NumPy's format; rejected if the header states another length."""
    file = io.BytesIO(content)
    version = np.lib.format.read_magic(file)
    require(version in ((1, 0), (2, 0)), f"an array has format {version}")
    known = np.lib.format
    header = known.read_array_header_1_0 if version == (1, 0) else known.read_array_header_2_0
    shape, by_columns, dtype = header(file)
    rest = content[file.tell() :]
    require(dtype.kind in "iuf", "an array does not hold numbers")
    complete = math.prod(shape) * dtype.itemsize == len(rest)
    require(complete, "the length of an array does not match its header")
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


# The privacy guarantee.

#: Relative error allowed in the numbers from which `Guarantee.overlap` is computed. It is above the
#: rounding errors of float64, and below 1e-12, the `OVERLAP_MARGIN` of `geomdp.bounds.count_risks`.
ROUNDING = 2e-13
#: Bounds are computed only for privacy losses below this number. e^loss overflows at about 709.
MOST_LOSS = 600.0


@dataclass(frozen=True)
class Guarantee:
    """(epsilon, delta)-DP, pure if delta is 0, or rho-zCDP; unused parameters are 0.

    It bounds how far outputs on two data sets differ. Let two data sets be r changes apart, and let
    P and Q be the distributions of the output on them. Their overlap is 1 - TV, where TV = max_S
    P(S) - Q(S) is the total variation. It is at most the sum of the two error probabilities of a
    test that guesses the data set from the output.

    * (epsilon, delta)-DP: TV <= tanh(r epsilon / 2) (1 + 2 delta / (e^epsilon - 1)). Proof: group
      privacy gives epsilon' = r epsilon and delta' = delta (e^epsilon' - 1) / (e^epsilon - 1). Add
      P(S) <= e^epsilon' Q(S) + delta' and 1 - Q(S) <= e^epsilon' (1 - P(S)) + delta', and solve for
      P(S) - Q(S).
    * rho-zCDP: TV <= tanh(x), where x > 0 solves 2 x tanh(x) = r^2 rho. Proof: by group privacy,
      both Kullback-Leibler divergences are at most r^2 rho. Let p = P(S), q = Q(S) and d = p - q.
      By data processing, d ln(p (1 - q) / (q (1 - p))) <= 2 r^2 rho. For fixed d, the left side is
      least at p + q = 1. With d = tanh(x) it is then 4 x tanh(x). The Renyi divergence of order 2
      gives a chi-square divergence of at most e^(2 r^2 rho) - 1.
    """

    epsilon: float
    delta: float
    rho: float

    @property
    def is_pure(self) -> bool:
        return self.rho == 0 and self.delta == 0

    def __str__(self) -> str:
        """The guarantee in words, rounded down: a mechanism with it also has the exact one."""
        if self.rho > 0:
            return f"{rounded_down(self.rho)}-zCDP"
        if self.delta > 0:
            return f"({rounded_down(self.epsilon)}, {rounded_down(self.delta)})-DP"
        return f"{rounded_down(self.epsilon)}-DP"

    def overlap(self, changes: int) -> float:
        """A lower bound, at least 0, on the overlap of outputs on data sets `changes` apart."""
        half = self.epsilon * changes / 2
        if self.rho > 0:
            half = _half_loss(self.rho * changes**2)
        if 2 * half >= MOST_LOSS:
            return 0.0
        # 1 - tanh(h) = e^-h / cosh(h).
        shared = math.exp(-half) / math.cosh(half) * (1 - ROUNDING)
        if self.delta > 0:
            shared -= 2 * self.delta * math.tanh(half) / math.expm1(self.epsilon) * (1 + ROUNDING)
        return max(0.0, shared)

    def of_group(self, changes: int) -> tuple[float, float]:
        """epsilon and delta for data sets `changes` apart, by group privacy; not for zCDP."""
        epsilon = self.epsilon * changes
        require(epsilon < MOST_LOSS, "one step of a line loses too much privacy")
        return epsilon, self.delta * math.expm1(epsilon) / math.expm1(self.epsilon)

    def chi_square(self, changes: int) -> float:
        """Largest chi-square divergence, under zCDP, of outputs on data sets `changes` apart."""
        require(self.rho > 0, "the chi-square divergence is bounded under zCDP only")
        require(2 * self.rho * changes**2 < MOST_LOSS, "one step of a line loses too much privacy")
        return math.expm1(2 * self.rho * changes**2)


def guarantee_of(document: Part) -> Guarantee:
    """The guarantee that the file states, as "epsilon" or as "privacy" with a definition."""
    if "privacy" not in document.values:
        epsilon = document.number("epsilon")
        require(epsilon > 0, "epsilon is not above 0")
        return Guarantee(epsilon, 0.0, 0.0)
    require("epsilon" not in document.values, "the file states both epsilon and privacy")
    stated = document.part("privacy")
    definition = stated.word("definition")
    if definition == "ZCDP":
        require(set(stated.values) == {"definition", "rho"}, "zCDP has the parameter rho only")
        rho = stated.number("rho")
        require(rho > 0, "rho is not above 0")
        return Guarantee(0.0, 0.0, rho)
    if definition == "ApproxDP":
        names = {"definition", "epsilon", "delta"}
        require(set(stated.values) == names, "(epsilon, delta)-DP has these two parameters only")
        epsilon, delta = stated.number("epsilon"), stated.number("delta")
        require(epsilon > 0, "epsilon is not above 0")
        require(0 < delta < 0.5, "delta is not above 0 and below 1/2")
        return Guarantee(epsilon, delta, 0.0)
    raise CertificateRejected(f"the definition of privacy {definition!r} is unknown")


def _half_loss(divergence: float) -> float:
    """A number x with 2 x tanh(x) >= `divergence`, and hardly larger, by bisection."""
    least = divergence * (1 + ROUNDING / 8)
    low, high = 0.0, divergence + 1
    for _ in range(2000):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (low, middle) if 2 * middle * math.tanh(middle) >= least else (middle, high)
    return high


# The three measures of error, under the names that certificate files use.

Norm = Callable[[npt.NDArray[np.float64]], npt.NDArray[np.float64]]


@dataclass(frozen=True)
class Measure:
    """A norm of the errors of k queries, rows of (b, k), whose p-th moment is at most alpha^p."""

    norm: Norm
    #: p: 1 for a mean, 2 for a root mean square.
    moment: int
    largest: bool

    def log_odds(self, factor: float) -> float:
        """ln(q / (1 - q)) for q = 1 - (2 / c)^moment, where c = `factor` is above 2."""
        # By Markov's inequality, the norm of the errors of a mechanism of error alpha is below c
        # alpha / 2 with probability at least q.
        # x^2 - 1 = (x - 1) (x + 1): near x = 1, the difference of x^2 and 1 would lose digits.
        half = factor / 2
        return math.log((half - 1) * (half + 1) if self.moment == 2 else half - 1)


def _mean_square_root(rows: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return np.asarray(np.sqrt((rows**2).mean(axis=1)))


def _largest(rows: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return np.asarray(np.maximum(rows.max(axis=1), -rows.min(axis=1)))


MEASURES = {
    "mean l2 error per query": Measure(_mean_square_root, 1, largest=False),
    "root mean squared error per query": Measure(_mean_square_root, 2, largest=False),
    "worst-case error over the queries": Measure(_largest, 1, largest=True),
}


@dataclass(frozen=True)
class Stated:
    """The privacy and error of the bound, with the constants that follow from them."""

    guarantee: Guarantee
    alpha: float
    required: float
    log_odds: float
    changes: int
    measure: Measure

    def pure_epsilon(self, kind: str) -> float:
        """Privacy loss of one replaced record, for proofs of the `kind` that needs pure privacy."""
        require(self.guarantee.is_pure, f"{kind} prove bounds for pure privacy only")
        return self.guarantee.epsilon * self.changes


# The result of checking one rung. A rung is one step of a certificate.


@dataclass(frozen=True)
class Verified:
    """The checked proof of one rung: its workload, what was verified, and what is still assumed."""

    #: A key that identifies the workload; `queries` are the workload in words.
    subject: tuple[object, ...]
    queries: str
    verified: tuple[str, ...]
    conditions: tuple[str, ...] = ()
    #: Upper bound on the probability, over public draws, that a condition does not hold.
    failure: float = 0.0


@dataclass(frozen=True, kw_only=True)
class VerifiedPacking(Verified):
    """The result of checking a packing."""

    #: ln M, where M is the number of data sets.
    log_count: float
    #: Number of records s of each data set.
    size: int
    #: Number of replaced records that suffices to turn any of the data sets into any other.
    distance: int
    #: Least distance between the answers of two data sets, as the check computes it.
    separation: float
    #: Bound on the rounding error of `separation`.
    slack: float
