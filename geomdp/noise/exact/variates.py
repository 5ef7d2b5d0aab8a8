"""Uniform random numbers of any precision, with bits from the operating system, and their variates.

The variates are random numbers and vectors from independent uniform U, V, U_1, .. in [0, 1], in
balls: real intervals (`arb`). Linear maps of vectors of balls take floats as exact numbers.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import reduce
from itertools import pairwise
from operator import mul

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from flint import arb, arb_mat

from geomdp._typing import FloatArray
from geomdp.noise.mapped import Map

# Uniform random numbers

#: A source of random bytes: it returns the given number of independent uniform bytes.
Entropy = Callable[[int], bytes]

#: Number of bits of a word. FLINT stores whole numbers of up to 62 bits without allocating memory.
WORD_BITS = 62
#: Least number of words that one call to the operating system fetches. A call costs 0.6
#: microseconds even for few words.
BLOCK = 256

#: The interval [0, 1]. It contains every uniform number, before any bits are known.
_UNIT = arb(0.5, 0.5)
_WORD = arb(2) ** -WORD_BITS


class Undecided(ArithmeticError):  # noqa: N818 (a state, not a failure: refinement goes on)
    """Raised if the bits known so far do not decide a comparison or a rounding."""


class UniformBits:
    """An infinite list of independent uniform numbers on [0, 1], known to finitely many bits.

    The bits come in words of 62 bits. Words that were read never change. `entropy` is the source of
    the bits, by default `os.urandom`; anything else is for tests.
    """

    def __init__(self, entropy: Entropy | None = None) -> None:
        self._entropy = os.urandom if entropy is None else entropy
        # Entry [j][i] is word j of number i.
        self._words: list[list[int]] = []

    def words(self, first: int, last: int, count: int) -> list[list[int]]:
        """List j holds word j of numbers `first` to `last` - 1; ``OSError`` for too few bytes."""
        while len(self._words) < count:
            self._words.append([])
        for known in self._words[:count]:
            if len(known) < last:
                known.extend(self._fresh(max(last - len(known), BLOCK)).tolist())
        return [known[first:last] for known in self._words[:count]]

    def first_words(self, count: int) -> npt.NDArray[np.uint64]:
        """The first words of the first `count` numbers, which must be read before all others."""
        if self._words:
            raise RuntimeError("first_words must be called before any other word is read")
        fresh = self._fresh(max(count, BLOCK))
        self._words.append(fresh.tolist())
        return fresh[:count]

    def _fresh(self, count: int) -> npt.NDArray[np.uint64]:
        data = self._entropy(8 * count)
        if len(data) != 8 * count:
            raise OSError(f"the entropy source gave {len(data)} bytes of {8 * count}")
        return np.frombuffer(data, dtype="<u8").astype(np.uint64) >> np.uint64(64 - WORD_BITS)


class Draw:
    """One evaluation of a random vector, which reads `word_count` words of each number in order.

    An evaluation must make the same decisions at any precision, so it reads the same numbers. Its
    result is a box that contains the exact value of the vector for these numbers.
    """

    def __init__(self, bits: UniformBits, word_count: int) -> None:
        self._bits = bits
        self._word_count = word_count
        self._next = 0

    def _read(self, count: int) -> list[list[int]]:
        first = self._next
        self._next += count
        return self._bits.words(first, self._next, self._word_count)

    def uniforms(self, count: int) -> list[arb]:
        """The next `count` uniform numbers, as intervals of length about 2^-(62 * word_count)."""
        *leading, last = self._read(count)
        values = [(_UNIT + word) * _WORD for word in last]
        for words in reversed(leading):
            values = [(value + word) * _WORD for value, word in zip(values, words, strict=True)]
        return values

    def uniform(self) -> arb:
        return self.uniforms(1)[0]

    def leading(self, count: int) -> FloatArray:
        """The next `count` numbers U, still unread, as floats x: |x - U| <= 2^-53 x + 2^-62.

        Only the first words are used, so each x is the same at every precision.
        """
        first = self._next
        (words,) = self._bits.words(first, first + count, 1)
        return np.array(words, dtype=np.float64) * 2.0**-WORD_BITS

    def skip(self, count: int) -> None:
        self._next += count

    def ahead(self, count: int) -> Draw:
        """Another evaluation on the same numbers, which begins `count` numbers later."""
        other = Draw(self._bits, self._word_count)
        other._next = self._next + count
        return other

    def order(self, count: int) -> list[int]:
        """A uniform permutation: positions of the next `count` numbers by size, or `Undecided`."""
        prefixes = list(zip(*self._read(count), strict=True))
        positions = sorted(range(count), key=prefixes.__getitem__)
        for low, high in pairwise(positions):
            if prefixes[low] == prefixes[high]:
                raise Undecided
        return positions


# Random numbers and vectors from uniform numbers

#: A vector of balls.
Vector = list[arb]


def decided_below(first: arb, second: arb) -> bool:
    """Whether first < second; `Undecided` if the balls leave both answers possible."""
    if first < second:
        return True
    if first >= second:
        return False
    raise Undecided


def whole_part(value: arb) -> int:
    """The largest whole number that is at most `value`; `Undecided` if the ball allows several."""
    part = value.floor().unique_fmpz()
    if part is None:
        raise Undecided
    return int(part)


def whole_number(below: int, draw: Draw) -> int:
    """A uniform whole number in 0, .., k - 1 for k = `below`: floor(k U)."""
    return whole_part(draw.uniform() * below)


def exponentials(count: int, draw: Draw) -> Vector:
    """Independent exponential variables of mean 1: -ln U."""
    return [-value.log() for value in draw.uniforms(count)]


def laplaces(count: int, draw: Draw) -> Vector:
    """Independent variables of density exp(-|x|) / 2: ln(U / V), a difference of exponentials."""
    numbers = draw.uniforms(2 * count)
    return [(a / b).log() for a, b in zip(numbers[:count], numbers[count:], strict=True)]


def geometric_differences(means: Vector, draw: Draw) -> list[int]:
    """Differences of floor(m E), m in `means`: whole j with P(j) proportional to exp(-|j| / m)."""
    pairs = exponentials(2 * len(means), draw)
    firsts, seconds = pairs[: len(means)], pairs[len(means) :]
    return [
        whole_part(mean * first) - whole_part(mean * second)
        for mean, first, second in zip(means, firsts, seconds, strict=True)
    ]


def box_multiples(
    coefficients: list[int], counts: Sequence[int], epsilon: arb, draw: Draw
) -> list[int]:
    """A draw of `LatticeBoxNoise` in multiples of the units; see the notes of that class."""
    odds = 1 / (epsilon.exp() - 1)
    weights = [a * odds**j for j, a in enumerate(coefficients)]
    mark, passed, term = draw.uniform() * ball_sum(weights), weights[0], 0
    while term + 1 < len(weights) and not decided_below(mark, passed):
        term += 1
        passed += weights[term]
    steps = [whole_part(x / epsilon) for x in exponentials(term + 1, draw)]
    radius = term + sum(steps)
    return [whole_number(2 * radius * c + 1, draw) - radius * c for c in counts]


def staircase(epsilon: arb, share: arb, draw: Draw) -> arb:
    """A number with the density of `StaircaseNoise`, for steps of width 1."""
    steps = whole_part(exponentials(1, draw)[0] / epsilon)
    part, place = draw.uniforms(2)
    outer_weight = (1 - share) * (-epsilon).exp()
    if decided_below(part * (share + outer_weight), outer_weight):
        size = steps + share + (1 - share) * place
    else:
        size = steps + share * place
    return size if whole_number(2, draw) else -size


def gaussians(count: int, draw: Draw) -> Vector:
    """Independent standard Gaussian variables, in pairs: (-2 ln U)^(1/2) (sin, cos)(2 pi V)."""
    pairs = (count + 1) // 2
    numbers = draw.uniforms(2 * pairs)
    values = []
    for first, second in zip(numbers[:pairs], numbers[pairs:], strict=True):
        length = (-2 * first.log()).sqrt()
        sine, cosine = (2 * second).sin_cos_pi()
        values += [length * sine, length * cosine]
    return values[:count]


def half_gamma(twice_shape: int, draw: Draw) -> arb:
    """A gamma variable of shape `twice_shape` / 2: -ln(U_1 .. U_s), plus E cos^2(2 pi V) if odd."""
    total = arb(0)
    if twice_shape >= 2:
        total = -reduce(mul, draw.uniforms(twice_shape // 2)).log()
    if twice_shape % 2:
        first, second = draw.uniforms(2)
        total -= first.log() * (2 * second).cos_pi() ** 2
    return total


def gamma(shape: int, draw: Draw) -> arb:
    return half_gamma(2 * shape, draw)


def dirichlet(count: int, twice_shape: int, draw: Draw) -> Vector:
    """Shares of the Dirichlet law with `count` equal parameters `twice_shape` / 2."""
    if twice_shape == 2:
        parts = exponentials(count, draw)
    else:
        parts = [half_gamma(twice_shape, draw) for _ in range(count)]
    total = ball_sum(parts)
    return [part / total for part in parts]


def direction(dimension: int, draw: Draw) -> Vector:
    """A uniformly distributed unit vector: a Gaussian vector divided by its length."""
    vector = gaussians(dimension, draw)
    length = ball_sum([x * x for x in vector]).sqrt()
    return [x / length for x in vector]


def power_exponentials(count: int, exponent: arb, draw: Draw) -> Vector:
    """Independent variables of density proportional to exp(-x^p) on x > 0, for p > 1.

    An exponential X is kept with probability exp(X - X^p - c), at least 1/e on average, where c is
    the maximum of x - x^p, at x = p^(-1/(p - 1)).
    """
    top = exponent ** (-1 / (exponent - 1))
    highest = top - top**exponent
    kept: Vector = []
    while len(kept) < count:
        value, other = exponentials(2, draw)
        if decided_below(highest - value + value**exponent, other):
            kept.append(value)
    return kept


def bartlett_row(place: int, order: int, draw: Draw) -> Vector:
    """Row i = `place` of a lower triangular L such that L L^T has the law of G G^T (Bartlett 1933).

    G is a standard Gaussian matrix (p, p + 1) with p = `order`. The first i entries are Gaussian,
    and the diagonal entry is a chi variable with p + 1 - i degrees of freedom.
    """
    return [*gaussians(place, draw), (2 * half_gamma(order + 1 - place, draw)).sqrt()]


def bartlett_factor(order: int, draw: Draw) -> list[Vector]:
    return [bartlett_row(place, order, draw) for place in range(order)]


def ball_sum(values: Vector) -> arb:
    return sum(values, start=arb(0))


#: A matrix with a larger share of non-zero entries is multiplied as a dense matrix. One
#: multiplication in FLINT's dense product takes a fifth of the time of one in Python.
DENSE = 0.2

LinearMap = Callable[[Vector], Vector]


def dyadic(values: FloatArray) -> Vector:
    return [arb(value) for value in np.asarray(values, dtype=np.float64).tolist()]


def linear_map(matrix: Map) -> LinearMap:
    """The map x -> matrix @ x in ball arithmetic, for a dense, sparse or implicit matrix (m, k)."""
    m, k = matrix.shape
    listed = matrix if sp.issparse(matrix) else np.asarray(matrix)
    sparse = sp.csr_array(listed, copy=True)
    sparse.eliminate_zeros()
    if sparse.nnz > DENSE * m * k:
        exact = arb_mat(m, k, sparse.toarray().ravel().tolist())
        return lambda vector: (exact * arb_mat(k, 1, vector)).entries()
    # Convert each different entry once, because maps of tables have few different entries.
    distinct = {entry: arb(entry) for entry in set(sparse.data.tolist())}
    entries = [distinct[entry] for entry in sparse.data.tolist()]
    places, starts = sparse.indices.tolist(), sparse.indptr.tolist()

    def product(vector: Vector) -> Vector:
        terms = [entry * vector[place] for entry, place in zip(entries, places, strict=True)]
        return [ball_sum(terms[a:b]) for a, b in pairwise(starts)]

    return product


def gram(rows: list[Vector]) -> list[Vector]:
    """R R^T for the matrix R with these rows. Entries missing at the end of a row are 0."""
    width, count = max(map(len, rows)), len(rows)
    padded = [entry for row in rows for entry in (*row, *[arb(0)] * (width - len(row)))]
    matrix = arb_mat(count, width, padded)
    flat = (matrix * matrix.transpose()).entries()
    return [flat[i * count : (i + 1) * count] for i in range(count)]
