"""Packings made from codes: monotone marginals need many records (Nikolov 2022, Theorem 25)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from geomdp._typing import IntArray
from geomdp._validation import whole, whole_array
from geomdp.bounds.certificates import (
    MARGIN,
    PackingFamily,
    covering_bound,
    rungs_of,
    workload_subject,
)
from geomdp.bounds.problem import MEAN_L2, Bound, Metric, Problem, WorstCase
from geomdp.privacy import Adjacency
from geomdp.workloads import Marginals

# Reed-Solomon codes over prime fields: many words that differ in most positions.

#: Largest size of a field, and largest number of words that are listed.
MAX_PRIME, MAX_WORDS = 1 << 60, 1 << 20


@dataclass(frozen=True)
class ReedSolomon:
    """The words (p(0), ..., p(length - 1)) of all polynomials p of degree < `degree` over F_prime.

    Any two of the prime^degree words differ in at least length - degree + 1 positions.

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
            raise ValueError(f"at most 2^20 words can be listed, got {self.prime}^{self.degree}")
        numbers = np.arange(self.prime**self.degree)
        words = np.zeros((len(numbers), self.length), dtype=np.int64)
        for power in reversed(range(self.degree)):  # Horner's rule
            digits = numbers // self.prime**power % self.prime
            words = (words * np.arange(self.length) + digits[:, None]) % self.prime
        return words


def prime_at_most(number: int) -> int:
    """The largest prime that is at most `number`, which is at least 2."""
    return next(candidate for candidate in range(number, 1, -1) if _is_prime(candidate))


@cache
def _is_prime(number: int) -> bool:
    from flint import fmpz  # imported here because importing flint is slow

    return bool(fmpz(number).is_prime())


# Binary linear codes. The minimum distance is computed from all words.

#: Largest dimension of a code, all words of which are formed, and of a code that is searched.
MAX_DIMENSION, SEARCH_DIMENSION = 20, 14
#: Number of random generators tried for each new row; the search stops if none can be added.
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
    """A linear code of minimum `distance`, of random generators that keep all words apart; of a
    dimension up to 14, about length (1 - H(distance / length)), H the entropy (Gilbert-Varshamov).
    """
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


def _packed(rows: IntArray) -> npt.NDArray[np.uint8]:
    """Rows of bits, packed eight to a byte."""
    return np.packbits(rows.astype(np.uint8), axis=1)


def _span(packed: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """All words that packed generators span, in order of numbers whose bits choose generators."""
    span = np.zeros((1, packed.shape[1]), dtype=np.uint8)
    for row in packed:
        span = np.vstack([span, span ^ row])
    return span


#: Ratio of successive numbers of tuples, and degrees, as shares of a code's length, that are tried.
LENGTH_RATIO, DEGREE_SHARES = 2**0.25, tuple(i / 8 for i in range(1, 9))
#: Numbers of bits of the binary codes that are tried, and their minimum distances besides 1, in
#: sixteenths of the number of bits.
INNER_LENGTHS, DISTANCE_SHARES = (16, 24, 32, 48, 64), range(2, 9)


def marginal_bound(
    attributes: int,
    width: int,
    *,
    epsilon: float,
    alpha: float,
    metric: Metric = MEAN_L2,
    adjacency: Adjacency = Adjacency.REPLACE_ONE,
) -> Bound:
    """Unconditional lower bound on records for all monotone conjunctions of l = `width` attributes.

    For constant l and small enough alpha, the packings of the proof give at least a constant times
    d / (alpha epsilon) for l = 1 and d = `attributes`, and a constant times
    min{d^((l+1)/2) / (alpha epsilon), d / (alpha^2 epsilon)} for l >= 2; for large d, the codes
    that are tried can give less. Source: Nikolov 2022, Theorem 25; JL-T25.

    Parameters
    ----------
    attributes, width : int
        The workload `Marginals(attributes, width)`.
    epsilon, alpha, metric, adjacency : as for `Problem`
        Privacy, error, how the error is measured, and the neighbour relation.

    Examples
    --------
    >>> import geomdp as gd
    >>> gd.bounds.marginal_bound(16, 1, epsilon=1.0, alpha=0.05)
    Bound(sc > 15, 0 assumptions)
    """
    problem = Problem(epsilon, alpha, metric, adjacency)
    whole(width, "width", maximum=whole(attributes, "attributes"))
    blocks = _marginal_blocks(attributes, width, problem)
    families = _code_words(attributes) if width == 1 else blocks
    rungs, reasons = rungs_of(families, problem)
    few = f"{attributes} attributes are too few for a code or a Hadamard block of width {width}"
    return covering_bound(rungs, problem, reasons[-1:] or [few])


def _code_words(attributes: int) -> Iterator[CodeWords]:
    """Packings by binary codes alone (outer length 1) and by concatenated codes."""
    for inner in _codes(attributes):
        symbols = prime_at_most(inner.count)
        length = min(attributes // inner.length, symbols)
        for degree in _degrees(length):
            yield CodeWords(attributes, ReedSolomon(symbols, length, degree), inner)


def _marginal_blocks(attributes: int, width: int, problem: Problem) -> Iterator[MarginalBlocks]:
    """Blocks for all combinations of part size, binary code, number of tuples and degree to try."""
    for part in (1 << i for i in range(1, attributes.bit_length())):
        rest = attributes - (width - 1) * part
        # A code needs two attributes.
        for code in _codes(rest) if rest >= 2 else ():
            symbols, each = prime_at_most(code.count), rest // code.length
            if symbols < each:
                continue
            most = min((part - 1) ** (width - 1), symbols // each)
            for length in _lengths(most, problem):
                for degree in _degrees(length * each):
                    functions = ReedSolomon(symbols, length * each, degree)
                    yield MarginalBlocks(attributes, width, part, code, functions)


def _codes(attributes: int) -> Iterator[LinearCode]:
    """Binary codes of 3 or more words, without those with fewer words than a more distant code."""
    for bits in sorted({min(attributes, length) for length in INNER_LENGTHS}):
        most = 2
        distances = {1, *(math.ceil(bits * share / 16) for share in DISTANCE_SHARES)}
        for distance in sorted(distances, reverse=True):
            code = greedy_code(bits, distance)
            if code.count > most:
                most = code.count
                yield code


def _lengths(most: int, problem: Problem) -> list[int]:
    """Values of s to try: sqrt(2 s) / s, an upper bound on the separation, must suffice."""
    room = 2 / problem.required_separation**2
    most = max(1, math.floor(min(room, most)))
    lengths = [1]
    while lengths[-1] < most:
        lengths.append(min(most, math.ceil(lengths[-1] * LENGTH_RATIO + 1e-9)))
    return lengths


def _degrees(length: int) -> list[int]:
    """At most eight degrees from 1 to `length`."""
    return sorted({max(1, round(share * length)) for share in DEGREE_SHARES})


@dataclass(frozen=True, eq=False)
class CodeWords(PackingFamily):
    """Data sets of one record each, for 1-way marginals: words of a concatenated code.

    The answers of a record are the record itself. Each symbol of a word of an outer Reed-Solomon
    code is written as a word of an inner binary code; the remaining attributes are 0.
    """

    attributes: int
    outer: ReedSolomon
    inner: LinearCode

    size = 1

    @property
    def subject(self) -> object:
        return workload_subject(Marginals(self.attributes, 1))

    @property
    def log_others(self) -> float:
        return self.outer.log_others

    def separation(self, metric: Metric) -> float:
        """sqrt(D / d), or 1 for `WorstCase`, rounded down: two records differ in D attributes."""
        differing = self.outer.differing * self.inner.distance
        share = 1.0 if isinstance(metric, WorstCase) else differing / self.attributes
        return math.sqrt(share) * (1 - MARGIN)

    def document(self) -> dict[str, Any]:
        codes = _code_entries(self.inner, self.outer)
        return {"type": "code words", "attributes": self.attributes, **codes}


# Packings for marginals from Hadamard blocks and codes (Nikolov 2022, Theorem 25; JL-T25). The
# queries are conjunctions of l of d attributes, split into l - 1 parts of d' attributes (a power of
# two) and a last part. Let h_1..h_J be the J = d' - 1 non-constant columns of Sylvester's d' x d'
# Hadamard matrix, and v_j = (1 + h_j) / 2. The data set X_f of a function f has one record for each
# of the first s tuples j of column numbers: (v_{j_1}, ..., v_{j_{l-1}}, f(j)). f(j) is B words of a
# binary code with minimum distance D, and then 0. The s B words encode a word of a Reed-Solomon
# code, whose words differ in at least c symbols. The paper takes B = 1.


@dataclass(frozen=True, eq=False)
class MarginalBlocks(PackingFamily):
    """Data sets for conjunctions of l of d attributes, one for each word of `functions`."""

    attributes: int
    width: int
    part: int
    code: LinearCode
    functions: ReedSolomon

    @property
    def rest(self) -> int:
        """Number of attributes d - (l - 1) d' of the last part."""
        return self.attributes - (self.width - 1) * self.part

    @property
    def subject(self) -> object:
        return workload_subject(Marginals(self.attributes, self.width))

    @property
    def log_others(self) -> float:
        return self.functions.log_others

    @property
    def size(self) -> int:
        return self.functions.length // (self.rest // self.code.length)

    def separation(self, metric: Metric) -> float:
        """2^-(l-1) d'^((l-1)/2) sqrt(c D / k) / s for k = C(d, l) queries, rounded down.

        For `WorstCase`, k is the number of queries that take one attribute of each part: their
        largest difference is at least the root mean square.
        """
        others = self.width - 1
        square = self.functions.differing * self.code.distance * (self.part / 4) ** others
        worst = isinstance(metric, WorstCase)
        block = self.part**others * self.rest
        queries = block if worst else math.comb(self.attributes, self.width)
        return math.sqrt(square / queries) / self.size * (1 - MARGIN)

    def document(self) -> dict[str, Any]:
        return {
            "type": "marginal blocks",
            "attributes": self.attributes,
            "width": self.width,
            "part": self.part,
            **_code_entries(self.code, self.functions),
        }


def _code_entries(binary: LinearCode, outer: ReedSolomon) -> dict[str, Any]:
    """The two codes as written to a certificate file."""
    lengths = {"length": outer.length, "degree": outer.degree}
    return {"generators": binary.generators, "symbols": outer.prime, **lengths}
