"""Codes with a minimum distance: values of polynomials, and spans of binary words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from geomdp.bounds.checker.reading import require, whole_array, whole_number

Bits = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Polynomials:
    """Words of values of polynomials of degree < `degree` over a prime field."""

    prime: int
    length: int
    degree: int

    @property
    def log_count(self) -> float:
        """ln of the number of words."""
        return self.degree * math.log(self.prime)

    @property
    def differing(self) -> int:
        """Two polynomials agree in at most degree - 1 points."""
        return self.length - (self.degree - 1)

    def pair(self, rng: np.random.Generator) -> list[list[int]]:
        """Two random words that are not equal."""
        while True:
            words = []
            for _ in range(2):
                terms = [int(rng.integers(self.prime)) for _ in range(self.degree)]
                words.append(
                    [
                        sum(c * pow(i, e, self.prime) for e, c in enumerate(terms)) % self.prime
                        for i in range(self.length)
                    ]
                )
            if words[0] != words[1]:
                return words


def polynomials_of(part: Mapping[str, Any], prime_key: str, length_key: str) -> Polynomials:
    """The code of a part of the file, its parameters checked."""
    prime, length = whole_number(part, prime_key, 2), whole_number(part, length_key)
    degree = whole_number(part, "degree")
    require(prime < 1 << 62 and _is_prime(prime), f"{prime} is not a prime below 2^62")
    require(length <= prime, f"length {length} is above the size {prime} of the field")
    require(degree <= length, f"degree {degree} is above length {length}")
    return Polynomials(prime, length, degree)


def _is_prime(n: int) -> bool:
    """Trial division for small n, else Miller's test to the bases proved enough below 2^64."""
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


def generators_of(part: Mapping[str, Any]) -> Bits:
    """Generators of a binary linear code, their entries checked."""
    rows = whole_array(part, "generators", axes=2)
    require(bool(((rows == 0) | (rows == 1)).all()), "generators are not 0 or 1")
    require(len(rows) <= 20, "there are more than 20 generators")
    return rows


def word_of(generators: Bits, symbol: int) -> Bits:
    """The sum of the generators that the bits of `symbol` choose."""
    chosen = [row for i, row in enumerate(generators) if symbol >> i & 1]
    return np.asarray(np.sum([np.zeros_like(generators[0]), *chosen], axis=0) % 2)


def least_weight(generators: Bits) -> int:
    """Least weight of a word but 0, over all of them in the order of a Gray code."""
    masks = [int("".join(map(str, row)), 2) for row in generators.tolist()]
    word, least = 0, int(generators.shape[1])
    for step in range(1, 1 << len(masks)):
        word ^= masks[(step & -step).bit_length() - 1]
        least = min(least, word.bit_count())
    require(least > 0, "generators are dependent")
    return least
