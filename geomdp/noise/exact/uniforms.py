"""Uniform random numbers of any precision, with bits from the operating system."""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from flint import arb

from geomdp._typing import FloatArray

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
