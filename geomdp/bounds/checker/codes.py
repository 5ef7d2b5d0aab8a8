"""Codes with a proved minimum distance: Reed-Solomon codes and binary linear codes."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from geomdp.bounds.checker.values import Part, require

Bits = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Polynomials:
    """A Reed-Solomon code: values at 0, ..., `length` - 1 of polynomials of degree < `degree`."""

    prime: int
    length: int
    degree: int

    @property
    def log_count(self) -> float:
        return self.degree * math.log(self.prime)

    @property
    def differing(self) -> int:
        """Least number of differing positions: two polynomials agree in < `degree` points."""
        return self.length - (self.degree - 1)

    def pair(self, rng: np.random.Generator) -> list[list[int]]:
        """Two different random words; each costs `length` times `degree` operations."""
        while True:
            words = [self._word(rng) for _ in range(2)]
            if words[0] != words[1]:
                return words

    def _word(self, rng: np.random.Generator) -> list[int]:
        terms = [int(rng.integers(self.prime)) for _ in range(self.degree)]
        word = [0] * self.length
        for term in terms:  # Horner's rule
            word = [(value * i + term) % self.prime for i, value in enumerate(word)]
        return word


def polynomials_of(part: Part, prime_key: str, length_key: str) -> Polynomials:
    """The code that a part of the certificate describes, with its parameters checked."""
    prime, length, degree = part.whole(prime_key, 2), part.whole(length_key), part.whole("degree")
    require(prime < 1 << 62 and _is_prime(prime), f"{prime} is not a prime below 2^62")
    require(length <= prime, f"length {length} is above the size {prime} of the field")
    require(degree <= length, f"degree {degree} is above length {length}")
    return Polynomials(prime, length, degree)


def _is_prime(n: int) -> bool:
    """Whether n < 2^64 is prime; the Miller-Rabin test with these seven bases is exact."""
    if n < 1 << 20:
        return n > 1 and all(n % f for f in range(2, math.isqrt(n) + 1))
    if n % 2 == 0:
        return False
    shift = (n - 1 & 1 - n).bit_length() - 1
    for base in (2, 325, 9375, 28178, 450775, 9780504, 1795265022):  # Sinclair's bases
        value = pow(base, (n - 1) >> shift, n)
        if value in (0, 1, n - 1):
            continue
        if not any((value := value * value % n) == n - 1 for _ in range(shift - 1)):
            return False
    return True


def generators_of(part: Part) -> Bits:
    """Generators of a binary linear code, with their entries checked."""
    rows = part.whole_array("generators", axes=2)
    require(bool(((rows == 0) | (rows == 1)).all()), "bits of generators are not 0 or 1")
    require(len(rows) <= 20, "there are more than 20 generators")
    part.work.spend(200 << len(rows))  # `least_weight` spends about 200 operations on a word.
    return rows


def word_of(generators: Bits, symbol: int) -> Bits:
    """The sum modulo 2 of the generators that the bits of `symbol` choose."""
    chosen = [row for i, row in enumerate(generators) if symbol >> i & 1]
    return np.asarray(np.sum([np.zeros_like(generators[0]), *chosen], axis=0) % 2)


def least_weight(generators: Bits) -> int:
    """Least weight (number of 1 bits) of a nonzero word; the words follow a Gray code."""
    masks = [int("".join(map(str, row)), 2) for row in generators.tolist()]
    word, least = 0, int(generators.shape[1])
    for step in range(1, 1 << len(masks)):
        word ^= masks[(step & -step).bit_length() - 1]
        least = min(least, word.bit_count())
    require(least > 0, "generators are dependent")
    return least
