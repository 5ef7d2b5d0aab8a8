"""Exact sums of rounded reals and of their products, as whole numbers that may exceed 2^53.

Reals in [-1, 1] are rounded towards zero to multiples of 2^-40, so sums of products are multiples
of 2^-80. They are stored in this unit, as digits in base 2^20 that float64 holds exactly.
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
    """`count` whole-number sums that may exceed 2^53, as digits in base 2^20."""

    def __init__(self, count: int) -> None:
        self._digits: IntArray = np.zeros((DIGITS, count), dtype=np.int64)

    def add(self, numbers: FloatArray, place: int) -> None:
        """Add whole `numbers` (count,), of modulus at most 2^53, times 2^(20 `place`)."""
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
    places = digits.reshape(DIGITS, -1)
    if (places != np.rint(places)).any():
        raise ArithmeticError("digits of exact sums must be whole numbers")
    columns = zip(*places.tolist(), strict=True)
    return [sum(int(x) << DIGIT_BITS * i for i, x in enumerate(column)) for column in columns]


def fixed_point(reals: FloatArray) -> FloatArray:
    """Reals of modulus at most 1 in units of 2^-40, rounded towards zero: no modulus grows."""
    return np.trunc(reals * 2.0**REAL_BITS)


def add_numbers(sums: WideSums, rows: FloatArray) -> None:
    """Add the column sums of `rows` (n, count), from `fixed_point`, in units of 2^-80."""
    for start in range(0, len(rows), EXACT_ROWS):
        sums.add(rows[start : start + EXACT_ROWS].sum(axis=0), REAL_BITS // DIGIT_BITS)


def add_products(sums: WideSums, rows: FloatArray) -> None:
    """Add the products x_i x_j, i <= j, of every row x of `rows` (n, d), from `fixed_point`."""
    above = np.triu_indices(rows.shape[1])
    for start in range(0, len(rows), EXACT_ROWS):
        block = rows[start : start + EXACT_ROWS]
        high = np.floor(block / _BASE)
        low = block - high * _BASE
        mixed = high.T @ low
        for place, part in enumerate((low.T @ low, mixed + mixed.T, high.T @ high)):
            sums.add(part[above], place)
