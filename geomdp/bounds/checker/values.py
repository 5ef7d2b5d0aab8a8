"""Values of a certificate file: checked as they are read, compared with recomputed ones."""

from __future__ import annotations

import decimal
import math
from typing import Any

import numpy as np
import numpy.typing as npt

#: Relative difference of two float64 evaluations of the same few operations.
CLOSE = 1e-9
#: Numbers are 0 or within these moduli, and whole numbers are below this one: products and squares
#: of a few of them are float64.
LEAST, LARGEST, MOST = 1e-100, 1e100, 1 << 256
#: Whole numbers in arrays are float64 exactly up to here.
MOST_EXACT = 1 << 53


class CertificateRejected(ValueError):  # noqa: N818 - what happened, not what went wrong
    """A certificate does not prove what it says; the message names the first failure."""


def require(condition: bool, message: str) -> None:
    """Reject unless `condition` holds."""
    if not condition:
        raise CertificateRejected(message)


def require_close(stated: float, found: float, name: str) -> None:
    """Reject unless a stated number is the recomputed one, up to rounding."""
    same = stated == found or math.isclose(stated, found, rel_tol=CLOSE, abs_tol=CLOSE)
    require(same, f"{name} is {found:.12g}, the file says {stated:.12g}")


def rounded_down(value: float) -> str:
    """The largest decimal of six digits that is at most `value`."""
    return _rounded(value, decimal.ROUND_FLOOR)


def rounded_up(value: float) -> str:
    """The smallest decimal of six digits that is at least `value`."""
    return _rounded(value, decimal.ROUND_CEILING)


def _rounded(value: float, direction: str) -> str:
    # The shortest decimal of a float stands for it: 0.3 is written 0.3, not 0.299999.
    shortest = decimal.Decimal(repr(value))
    return f"{float(decimal.Context(prec=6, rounding=direction).plus(shortest)):.6g}"


class Work:
    """The operations that a check may still take, so that no file keeps it busy for long.

    Parameters
    ----------
    allowance : int
        Number of operations of about a nanosecond.
    """

    def __init__(self, allowance: int) -> None:
        self._left = allowance

    def spend(self, operations: int) -> None:
        """Take `operations` from the allowance; reject if it does not cover them."""
        require(operations <= self._left, "the check takes too long for a file of this size")
        self._left -= operations


class Part:
    """An object within a certificate file.

    Parameters
    ----------
    values : dict
        Its values by name, as in the file; large arrays are NumPy arrays.
    work : Work
        The operations that the whole check may still take.
    """

    def __init__(self, values: dict[str, Any], work: Work) -> None:
        self.values, self.work = values, work

    def word(self, key: str) -> str:
        """A text."""
        value = self.values.get(key)
        if not isinstance(value, str):
            raise CertificateRejected(f"{key} is not a text")
        return value

    def number(self, key: str) -> float:
        """A number that is 0 or between 1e-100 and 1e100 in modulus."""
        value = self.values.get(key)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise CertificateRejected(f"{key} is not a finite number")
        require(abs(value) <= LARGEST, f"{key} is not a finite number up to {LARGEST:g}")
        require(value == 0 or abs(value) >= LEAST, f"{key} is too small: below {LEAST:g} and not 0")
        return float(value)

    def whole(self, key: str, least: int = 1, most: int = MOST - 1) -> int:
        """A whole number from `least` to `most`."""
        value = self.values.get(key)
        if isinstance(value, bool) or not isinstance(value, int):
            raise CertificateRejected(f"{key} is not a whole number")
        limit = "below 2^256" if most == MOST - 1 else f"at most {most}"
        require(least <= value <= most, f"{key} is not at least {least} and {limit}")
        return value

    def array(self, key: str, axes: int | None = None) -> npt.NDArray[np.float64]:
        """An array of numbers up to 1e100 in modulus, with at least one entry."""
        try:
            values = np.asarray(self.values[key])
        except (KeyError, ValueError) as error:
            raise CertificateRejected(f"{key} is not an array of numbers") from error
        require(values.dtype.kind in "iuf", f"{key} is not an array of numbers")
        require(axes is None or values.ndim == axes, f"{key} does not have {axes} axes")
        require(values.size > 0, f"{key} is empty")
        # Written so that NaN fails.
        inside = bool((np.abs(values.astype(np.float64)) <= LARGEST).all())
        require(inside, f"{key} holds numbers that are not finite or above {LARGEST:g}")
        return values.astype(np.float64)

    def whole_array(self, key: str, axes: int | None = None) -> npt.NDArray[np.int64]:
        """An array of whole numbers up to 2^53 in modulus."""
        values = self.array(key, axes)
        exact = bool(((values == np.rint(values)) & (np.abs(values) <= MOST_EXACT)).all())
        require(exact, f"{key} holds numbers that are not whole, or above 2^53")
        return values.astype(np.int64)

    def part(self, key: str) -> Part:
        """An object within this one."""
        value = self.values.get(key)
        if not isinstance(value, dict):
            raise CertificateRejected(f"{key} is missing")
        return Part(value, self.work)

    def parts(self, key: str) -> list[Part]:
        """A list of at least one object."""
        values = self.values.get(key)
        if not isinstance(values, list) or not values:
            raise CertificateRejected(f"{key} is not a list of objects")
        require(all(isinstance(value, dict) for value in values), f"{key} holds no objects")
        return [Part(value, self.work) for value in values]
