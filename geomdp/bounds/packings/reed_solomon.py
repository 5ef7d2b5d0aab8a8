"""Reed-Solomon codes over prime fields: many words that differ in most positions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

from geomdp._typing import IntArray
from geomdp._validation import whole

#: Largest field: its elements, and element numbers of a universe of blocks, must be int64.
MAX_PRIME = 1 << 60
#: Largest field in which a product plus an element is an int64.
MAX_INT64_PRIME = 1 << 31
#: Most words that are listed.
MAX_WORDS = 1 << 20
#: Witnesses for which the test of Miller and Rabin is exact below 3.3e24 (Sorenson, Webster 2015).
WITNESSES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41)


@dataclass(frozen=True)
class ReedSolomon:
    """The words (p(0), ..., p(length - 1)) of all polynomials p of degree < `degree` over F_prime.

    prime^degree words; two polynomials agree in at most degree - 1 points, so any two words differ
    in at least length - degree + 1 positions.

    Parameters
    ----------
    prime : int
        Size q of the field, below 2^60.
    length : int
        Number of positions s, at most q.
    degree : int
        Number of coefficients t, from 1 to s.
    """

    prime: int
    length: int
    degree: int

    def __post_init__(self) -> None:
        whole(self.prime, "prime", minimum=2, maximum=MAX_PRIME)
        if not is_prime(self.prime):
            raise ValueError(f"prime must be a prime number, got {self.prime}")
        whole(self.length, "length", maximum=self.prime)
        whole(self.degree, "degree", maximum=self.length)

    @property
    def log_count(self) -> float:
        """ln of the number of words."""
        return self.degree * math.log(self.prime)

    @property
    def log_others(self) -> float:
        """ln of the number of words less one."""
        return self.log_count + math.log1p(-math.exp(-self.log_count))

    @property
    def differing(self) -> int:
        """Least number of positions in which two words differ."""
        return self.length - self.degree + 1

    def words(self) -> IntArray:
        """All words, by the number whose base-q digits are the coefficients: (q^t, length).

        Raises
        ------
        ValueError
            For more than 2^20 words.
        """
        if self.log_count > math.log(MAX_WORDS):
            raise ValueError(f"at most 2^20 words are listed, got {self.prime}^{self.degree}")
        numbers = np.arange(self.prime**self.degree)
        return self.evaluate(numbers[:, None] // self.prime ** np.arange(self.degree) % self.prime)

    def evaluate(self, coefficients: IntArray) -> IntArray:
        """Words of polynomials with `coefficients` (b, t), lowest first: (b, length)."""
        # Products of elements of larger fields need Python's integers.
        dtype = np.int64 if self.prime <= MAX_INT64_PRIME else object
        points = np.arange(self.length, dtype=np.int64).astype(dtype)
        words = np.zeros((len(coefficients), self.length), dtype=dtype)
        for column in coefficients.astype(dtype).T[::-1]:  # Horner's rule
            words = (words * points + column[:, None]) % self.prime
        return words.astype(np.int64)

    def sample(self, n: int, rng: np.random.Generator) -> IntArray:
        """`n` independent uniform words."""
        return self.evaluate(rng.integers(self.prime, size=(n, self.degree)))


@cache
def is_prime(number: int) -> bool:
    """Whether a whole number below 2^64 is prime: Miller and Rabin with fixed witnesses, exact."""
    if number < 2:
        return False
    if number in WITNESSES:
        return True
    if any(number % witness == 0 for witness in WITNESSES):
        return False
    odd, twos = number - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    for witness in WITNESSES:
        power = pow(witness, odd, number)
        if power in (1, number - 1):
            continue
        for _ in range(twos - 1):
            power = power * power % number
            if power == number - 1:
                break
        else:
            return False
    return True


def prime_at_most(number: int) -> int:
    """Largest prime up to `number`; ``ValueError`` below 2."""
    for candidate in range(whole(number, "number", minimum=2), 1, -1):
        if is_prime(candidate):
            return candidate
    raise AssertionError("2 is prime")
