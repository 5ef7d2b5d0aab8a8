"""Codes: words of given length, of which any two differ in many positions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
import numpy.typing as npt

from geomdp._typing import IntArray
from geomdp._validation import whole, whole_array

# Reed-Solomon codes over prime fields: many words that differ in most positions.

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


# Binary linear codes. The minimum distance is computed from all words.

#: Largest dimension of a code. `LinearCode` forms all words; 2^20 words of 64 bits take 8 MB.
MAX_DIMENSION = 20
#: Dimension at which a greedy search stops. For each generator that it tries, the search adds the
#: generator to every word of the code so far: at most 2^13 words.
SEARCH_DIMENSION = 14
#: A greedy search tries up to this many random generators for each new row of the code. It stops
#: if none of them can be added.
TRIES = 400


@dataclass(frozen=True, eq=False)
class LinearCode:
    """The 2^r words that r generators span over F_2.

    Parameters
    ----------
    generators : (r, length) array of 0 and 1
        Linearly independent rows, r from 1 to 20.

    Examples
    --------
    Any two of the four words 000, 110, 011 and 101 differ in two bits:

    >>> import numpy as np
    >>> import geomdp as gd
    >>> code = gd.bounds.LinearCode(np.array([[1, 1, 0], [0, 1, 1]]))
    >>> code
    LinearCode(4 words of 3 bits, distance 2)
    >>> code.words(np.arange(4))
    array([[0, 0, 0],
           [1, 1, 0],
           [0, 1, 1],
           [1, 0, 1]])
    """

    generators: IntArray

    def __post_init__(self) -> None:
        rows = whole_array(self.generators, "generators", ndim=2)
        if 0 in rows.shape or not np.isin(rows, (0, 1)).all():
            raise ValueError(f"generators must be rows of 0 and 1, got shape {rows.shape}")
        whole(len(rows), "number of generators", maximum=MAX_DIMENSION)
        rows.setflags(write=False)
        object.__setattr__(self, "generators", rows)
        if self.distance == 0:
            raise ValueError("generators must be linearly independent")

    def __repr__(self) -> str:
        return f"LinearCode({self.count} words of {self.length} bits, distance {self.distance})"

    @property
    def length(self) -> int:
        """Number of bits of a word."""
        return int(self.generators.shape[1])

    @property
    def count(self) -> int:
        """Number of words 2^r."""
        return 1 << len(self.generators)

    @cached_property
    def distance(self) -> int:
        """Least number of bits in which two words differ: the least weight of a nonzero word."""
        span = _span(_packed(self.generators))
        return int(np.bitwise_count(span[1:]).sum(axis=1, dtype=np.int64).min())

    def words(self, numbers: IntArray) -> IntArray:
        """The words (b, length) with the given `numbers` (b,), whose bits choose the generators."""
        bits = numbers[:, None] >> np.arange(len(self.generators)) & 1
        return bits @ self.generators % 2


@cache
def greedy_code(length: int, distance: int) -> LinearCode:
    """A linear code of given `length` and minimum `distance`, grown generator by generator.

    A random generator is kept if all words stay at least `distance` apart. The code has at most 14
    generators. For a distance up to length / 2, it reaches about the Gilbert-Varshamov dimension
    length (1 - H(distance / length)), where H is the binary entropy.

    Examples
    --------
    >>> import geomdp as gd
    >>> gd.bounds.greedy_code(16, 4)
    LinearCode(512 words of 16 bits, distance 4)
    """
    whole(length, "length")
    whole(distance, "distance", maximum=length)
    rng = np.random.default_rng([0, length, distance])
    first = np.zeros((1, length), dtype=np.int64)
    first[0, :distance] = 1
    rows, span = first, _span(_packed(first))
    while len(rows) < min(length, SEARCH_DIMENSION):
        tried = rng.integers(2, size=(TRIES, length))
        for row, packed in zip(tried, _packed(tried), strict=True):
            shifted = span ^ packed
            if np.bitwise_count(shifted).sum(axis=1, dtype=np.int64).min() >= distance:
                rows, span = np.vstack([rows, row]), np.vstack([span, shifted])
                break
        else:
            break
    return LinearCode(rows)


def code_distances(length: int) -> tuple[int, ...]:
    """Minimum distances to try: 1, and the shares 2/16, 3/16, ..., 8/16 of `length`, rounded up."""
    return tuple(sorted({1, *(math.ceil(length * share / 16) for share in range(2, 9))}))


def _packed(rows: IntArray) -> npt.NDArray[np.uint8]:
    """Rows of bits, packed eight to a byte."""
    return np.packbits(rows.astype(np.uint8), axis=1)


def _span(packed: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """All words that packed generators span, in order of numbers whose bits choose generators."""
    span = np.zeros((1, packed.shape[1]), dtype=np.uint8)
    for row in packed:
        span = np.vstack([span, span ^ row])
    return span
