"""Exact sums of rounded reals and of their products, as whole numbers that may exceed 2^53.

Reals in [-1, 1] are rounded towards zero to multiples of 2^-40. A sum of rounded reals is a whole
multiple of 2^-40, and a sum of products of two rounded reals is a whole multiple of 2^-80. Both
kinds of sum are stored in units of 2^-80 as digits in base 2^20. Every digit is small enough to be
exact in float64.
"""

from __future__ import annotations

import numpy as np

from geomdp._typing import FloatArray, IntArray

#: Bits after the binary point of a rounded real. Rounding moves a real by less than 10^-12. For
#: 1-DP, a mean of fewer than 10^11 records needs noise of a scale above 10^-12.
REAL_BITS = 40
#: Bits of a digit, and number of digits of a sum. The last digit is not limited to 20 bits. For n
#: records, it is at most about n.
DIGIT_BITS, DIGITS = 20, 5
#: Number of rows that are added up at a time in float64. Products of two digits are at most 2^40.
#: So a sum of 2^12 products is a whole number of at most 2^52, which is exact in any order of
#: summation.
EXACT_ROWS = 1 << 12

_BASE = 1 << DIGIT_BITS


class WideSums:
    """Whole-number sums that may exceed 2^53, as digits in base 2^20.

    Parameters
    ----------
    count : int
        Number of sums.
    """

    def __init__(self, count: int) -> None:
        self._digits: IntArray = np.zeros((DIGITS, count), dtype=np.int64)

    def add(self, numbers: FloatArray, place: int) -> None:
        """Add `numbers` times 2^(20 `place`) to the sums.

        `numbers` (count,) are whole numbers of modulus at most 2^53, one for each sum.
        """
        digits = self._digits
        digits[place] += numbers.astype(np.int64)
        # Shifts round down, also for negative numbers. So the loop leaves every digit except the
        # last in [0, 2^20).
        for i in range(place, DIGITS - 1):
            digits[i + 1] += digits[i] >> DIGIT_BITS
            digits[i] &= _BASE - 1

    def digits(self) -> FloatArray:
        """All digits (5 count,), the least significant digits of all sums first."""
        return self._digits.astype(np.float64).ravel()


def whole_numbers(digits: FloatArray) -> list[int]:
    """The sums as Python integers, from the output of `WideSums.digits`."""
    places = digits.reshape(DIGITS, -1)
    if (places != np.rint(places)).any():
        raise ArithmeticError("digits of exact sums must be whole numbers")
    columns = zip(*places.tolist(), strict=True)
    return [sum(int(x) << DIGIT_BITS * i for i, x in enumerate(column)) for column in columns]


def fixed_point(reals: FloatArray) -> FloatArray:
    """Convert reals of modulus at most 1 to units of 2^-40, and round them towards zero.

    Rounding increases no modulus, so rows in a ball or a cube around 0 stay in it.
    """
    return np.trunc(reals * 2.0**REAL_BITS)


def add_numbers(sums: WideSums, rows: FloatArray) -> None:
    """Add the column sums of `rows` (n, count) to `sums`, in units of 2^-80.

    `rows` is an output of `fixed_point`.
    """
    for start in range(0, len(rows), EXACT_ROWS):
        sums.add(rows[start : start + EXACT_ROWS].sum(axis=0), REAL_BITS // DIGIT_BITS)


def add_products(sums: WideSums, rows: FloatArray) -> None:
    """Add the products x_i x_j, i <= j, of every row x of `rows` to `sums`, in units of 2^-80.

    `rows` (n, d) is an output of `fixed_point`. Each entry is split into two digits of modulus at
    most 2^20: the entry equals 2^20 `high` + `low`.
    """
    above = np.triu_indices(rows.shape[1])
    for start in range(0, len(rows), EXACT_ROWS):
        block = rows[start : start + EXACT_ROWS]
        high = np.floor(block / _BASE)
        low = block - high * _BASE
        mixed = high.T @ low
        for place, part in enumerate((low.T @ low, mixed + mixed.T, high.T @ high)):
            sums.add(part[above], place)
