"""Values of a certificate file: range checks on reading, and comparison with recomputed values."""

from __future__ import annotations

import decimal
import math
from typing import Any

import numpy as np
import numpy.typing as npt

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
    geomdp.bounds.checker.values.CertificateRejected: the digest does not match the content
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
