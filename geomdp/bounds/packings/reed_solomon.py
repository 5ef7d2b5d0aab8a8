"""Reed-Solomon codes over prime fields: many words that differ in most positions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

from geomdp._typing import IntArray
from geomdp._validation import whole

#: Largest size q of a field. The elements of a field must fit in int64. `random_sign_bound` chooses
#: q and the number s of positions so small that the element numbers i q + a of `ReedSolomonSets`,
#: with i < s and a < q, fit, too.
MAX_PRIME = 1 << 60
#: In a field of at most this size, a product of two elements plus a third element fits in int64.
MAX_INT64_PRIME = 1 << 31
#: Largest number of words that are listed.
MAX_WORDS = 1 << 20


@dataclass(frozen=True)
class ReedSolomon:
    """The words (p(0), ..., p(length - 1)) of all polynomials p of degree < `degree` over F_prime.

    The code has prime^degree words. Two polynomials agree in at most degree - 1 points, so any two
    words differ in at least length - degree + 1 positions.

    Parameters
    ----------
    prime : int
        Size q of the field, a prime below 2^60.
    length : int
        Number of positions s, at most q.
    degree : int
        Number of coefficients t, from 1 to s.

    Examples
    --------
    >>> import geomdp as gd
    >>> code = gd.bounds.ReedSolomon(prime=5, length=4, degree=2)
    >>> code.words().shape
    (25, 4)
    >>> code.differing
    3
    >>> code.words()[7]
    array([2, 3, 4, 0])
    """

    prime: int
    length: int
    degree: int

    def __post_init__(self) -> None:
        whole(self.prime, "prime", minimum=2, maximum=MAX_PRIME)
        if not _is_prime(self.prime):
            raise ValueError(f"prime must be a prime number, got {self.prime}")
        whole(self.length, "length", maximum=self.prime)
        whole(self.degree, "degree", maximum=self.length)

    @property
    def log_count(self) -> float:
        """ln of the number of words."""
        return self.degree * math.log(self.prime)

    @property
    def log_others(self) -> float:
        """ln(q^t - 1): the logarithm of the number of words that differ from a given word."""
        return self.log_count + math.log1p(-math.exp(-self.log_count))

    @property
    def differing(self) -> int:
        """Least number of positions in which two words differ."""
        return self.length - self.degree + 1

    def words(self) -> IntArray:
        """All words, one per row; the base-q digits of the row number are the coefficients.

        The least significant digit is the constant term. ``ValueError`` for more than 2^20 words.
        """
        if self.log_count > math.log(MAX_WORDS):
            raise ValueError(
                f"at most 2^20 words can be listed, the code has {self.prime}^{self.degree}"
            )
        numbers = np.arange(self.prime**self.degree)
        return self.evaluate(numbers[:, None] // self.prime ** np.arange(self.degree) % self.prime)

    def evaluate(self, coefficients: IntArray) -> IntArray:
        """The words of the polynomials in the rows of `coefficients`, constant terms first."""
        # In larger fields, products of elements can exceed int64, so Python's integers are used.
        dtype = np.int64 if self.prime <= MAX_INT64_PRIME else object
        points = np.arange(self.length, dtype=np.int64).astype(dtype)
        words = np.zeros((len(coefficients), self.length), dtype=dtype)
        for column in coefficients.astype(dtype).T[::-1]:  # Horner's rule
            words = (words * points + column[:, None]) % self.prime
        return words.astype(np.int64)

    def sample(self, n: int, rng: np.random.Generator) -> IntArray:
        """`n` independent uniform words."""
        return self.evaluate(rng.integers(self.prime, size=(n, self.degree)))


def prime_at_most(number: int) -> int:
    """The largest prime that is at most `number`; ``ValueError`` if `number` is below 2."""
    whole(number, "number", minimum=2)
    return next(candidate for candidate in range(number, 1, -1) if _is_prime(candidate))


@cache
def _is_prime(number: int) -> bool:
    from flint import fmpz  # imported here because importing flint is slow

    return bool(fmpz(number).is_prime())
