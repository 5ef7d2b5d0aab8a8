"""The field GF(2^64) = GF(2)[x] / (x^64 + x^4 + x^3 + x + 1), with elements as 64-bit words.

Addition is XOR. Bit i of a word is the coefficient of x^i.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from geomdp._numerics.compilation import numba

Words = npt.NDArray[np.uint64]

#: x^64 modulo the field polynomial.
REDUCTION = 0b11011
#: Entry c is c x^64 modulo the field polynomial, for each 4-bit polynomial c. A shift by four bits
#: loses the top four bits c. Adding entry c makes up for this loss.
FOLD = np.zeros(16, dtype=np.uint64)
for _overflow in range(16):
    for _bit in range(4):
        if _overflow >> _bit & 1:
            FOLD[_overflow] ^= np.uint64(REDUCTION << _bit)

_ONE, _FOUR, _SIXTY, _NIBBLE, _TOP = (np.uint64(value) for value in (1, 4, 60, 15, 63))
_REDUCTION = np.uint64(REDUCTION)


@numba.njit(cache=True)
def fill_multiples(factor: np.uint64, table: Words) -> None:
    """Fill `table` (16,) with c * factor for the sixteen 4-bit polynomials c."""
    table[0] = np.uint64(0)
    table[1] = factor
    for c in range(2, 16, 2):
        half = table[c >> 1]
        doubled = (half << _ONE) ^ (_REDUCTION * (half >> _TOP))
        table[c] = doubled
        table[c + 1] = doubled ^ factor


@numba.njit(cache=True)
def times(table: Words, word: np.uint64, fold: Words) -> np.uint64:
    """The product of `word` and a factor with the `table` of `fill_multiples`; `fold` is `FOLD`."""
    result: np.uint64 = table[word >> _SIXTY]
    shift = _SIXTY
    # Horner's rule takes one look-up for each of the sixteen 4-bit digits.
    for _ in range(15):
        shift -= _FOUR
        result = (result << _FOUR) ^ fold[result >> _SIXTY] ^ table[(word >> shift) & _NIBBLE]
    return result


@numba.njit(cache=True)
def multiply(first: Words, second: Words) -> Words:
    """Products (k,) of the words of `first` (k,) and `second` (k,), element by element."""
    table = np.empty(16, dtype=np.uint64)
    fold = FOLD
    result = np.empty_like(first)
    for i in range(len(first)):
        fill_multiples(first[i], table)
        result[i] = times(table, second[i], fold)
    return result


def inverse(word: int) -> int:
    """The multiplicative inverse w^(2^64 - 2) of a word w; ``ValueError`` for 0."""
    if word == 0:
        raise ValueError("0 has no inverse in GF(2^64)")
    result = np.ones(1, dtype=np.uint64)
    square = np.array([word], dtype=np.uint64)
    for _ in range(63):  # 2^64 - 2 = 2 + 4 + ... + 2^63
        square = multiply(square, square)
        result = multiply(result, square)
    return int(result[0])
