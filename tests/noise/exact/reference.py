"""Noise computed independently by mpmath at 400 bits, and draws of computable vectors as floats."""

from __future__ import annotations

import itertools

import mpmath
import numpy as np
from mpmath import mpf

from geomdp.noise.rounding import WORD_BITS, UniformBits, refined

#: Working precision of mpmath in bits, and number of words that are read of each uniform number.
REFERENCE_BITS = 400
REFERENCE_WORDS = 7


def seeded(seed):
    """A reproducible source of bytes."""
    return np.random.default_rng(seed).bytes


def floats(vector, n, seed):
    """`n` independent draws of a computable vector as floats (n, m)."""
    entropy = seeded(seed)
    rows = [refined(lambda draw: [float(x) for x in vector(draw)], entropy) for _ in range(n)]
    return np.array(rows)


class Scripted:
    """A source of bytes with stated words for the first number and random words for all others."""

    def __init__(self, *first_words):
        self._words = list(first_words)
        self._filler = seeded(0)

    def __call__(self, count):
        data = self._filler(count)
        if not self._words:
            return data
        own = self._words.pop(0) << (64 - WORD_BITS)
        return own.to_bytes(8, "little") + data[8:]


class Words:
    """A source of bytes: the first words are the given values, and later words are random."""

    def __init__(self, values):
        self._values, self._rest = list(values), seeded(9)

    def __call__(self, count):
        own, self._values = self._values[: count // 8], self._values[count // 8 :]
        data = b"".join((int(w) << (64 - WORD_BITS)).to_bytes(8, "little") for w in own)
        return data + self._rest(count - len(data))


class Reference:
    """The uniform numbers of a `Draw` to 434 bits, and random variables made of them by mpmath."""

    def __init__(self, entropy):
        self._bits = UniformBits(entropy)
        self._next = 0

    def uniforms(self, count):
        places = self._bits.words(self._next, self._next + count, REFERENCE_WORDS)
        self._next += count
        return [
            mpmath.fsum(mpf(word) / mpf(2) ** (WORD_BITS * (j + 1)) for j, word in enumerate(words))
            for words in zip(*places, strict=True)
        ]

    def laplaces(self, count):
        numbers = self.uniforms(2 * count)
        return [
            mpmath.log(u) - mpmath.log(v)
            for u, v in zip(numbers[:count], numbers[count:], strict=True)
        ]

    def gaussians(self, count):
        pairs = (count + 1) // 2
        numbers = self.uniforms(2 * pairs)
        values = []
        for u, v in zip(numbers[:pairs], numbers[pairs:], strict=True):
            length = mpmath.sqrt(-2 * mpmath.log(u))
            values += [
                length * mpmath.sin(2 * mpmath.pi * v),
                length * mpmath.cos(2 * mpmath.pi * v),
            ]
        return values[:count]

    def half_gamma(self, twice_shape):
        total = mpf(0)
        if twice_shape >= 2:
            total -= mpmath.fsum(map(mpmath.log, self.uniforms(twice_shape // 2)))
        if twice_shape % 2:
            u, v = self.uniforms(2)
            total += (mpmath.sqrt(-2 * mpmath.log(u)) * mpmath.cos(2 * mpmath.pi * v)) ** 2 / 2
        return total

    def wishart(self, order):
        """L L^T (order, order) for Bartlett's lower triangular factor L."""
        factor = np.full((order, order), mpf(0))
        for i in range(order):
            diagonal = [*self.gaussians(i), mpmath.sqrt(2 * self.half_gamma(order + 1 - i))]
            factor[i, : i + 1] = diagonal
        return factor @ factor.T

    def correlations(self, order):
        """Entries above the diagonal of the correlations of a Wishart matrix."""
        found = self.wishart(order)
        return [
            found[i, j] / mpmath.sqrt(found[i, i] * found[j, j])
            for i, j in itertools.combinations(range(order), 2)
        ]


def nearest(values, grid):
    """The whole numbers nearest to `values` times 2^grid, by mpmath."""
    return [int(mpmath.floor(value * mpf(2) ** grid + mpf(1) / 2)) for value in values]
