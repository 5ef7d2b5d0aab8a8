"""Encodings: public maps from elements of an open universe to columns of a hashed matrix.

The elements of an open universe are hashable objects, which need not be listed in advance.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from geomdp._typing import IntArray
from geomdp._validation import is_whole

#: Bits of a digest. Matrices with more rows have fewer columns. With the largest number of rows,
#: 2^24, a matrix has 2^46 columns, so every digest is the number of a column.
DIGEST_BITS = 46


@runtime_checkable
class ElementEncoding(Protocol):
    """A public map from elements to whole numbers, the numbers of columns."""

    def encode(self, elements: Iterable[Hashable]) -> IntArray:
        """Numbers (k,) of `elements`; equal elements get equal numbers."""


@dataclass(frozen=True)
class IntegerElements:
    """The encoding of whole numbers as themselves, without collisions.

    Examples
    --------
    >>> import geomdp as gd
    >>> gd.mechanisms.IntegerElements().encode([3, 1000])
    array([   3, 1000])
    """

    def encode(self, elements: Iterable[Hashable]) -> IntArray:
        """The elements (k,) as int64; ``ValueError`` unless whole numbers from 0 to 2^63 - 1."""
        values = list(elements)
        for value in values:
            if not is_whole(value) or not 0 <= value < 1 << 63:
                raise ValueError(
                    "elements must be whole numbers from 0 to 2^63 - 1; use DigestedElements for "
                    "other types"
                )
        return np.array(values, dtype=np.int64)


@dataclass(frozen=True)
class DigestedElements:
    """The encoding of strings, bytes, whole numbers and tuples of these by 46 bits of a digest.

    The digest is BLAKE2b. Two different elements collide with probability 2^-46 if the digest
    behaves like a random function. A collision costs accuracy, but not privacy.

    Examples
    --------
    >>> import geomdp as gd
    >>> numbers = gd.mechanisms.DigestedElements().encode(["apple", "pear", "apple"])
    >>> bool(numbers[0] == numbers[2]), bool(numbers[0] == numbers[1])
    (True, False)
    """

    def encode(self, elements: Iterable[Hashable]) -> IntArray:
        """Digests (k,) as int64; ``ValueError`` for an element of another type."""
        digests = (hashlib.blake2b(_canonical(element), digest_size=8) for element in elements)
        words = [int.from_bytes(digest.digest(), "little") for digest in digests]
        return np.array([word >> (64 - DIGEST_BITS) for word in words], dtype=np.int64)


def _canonical(element: Hashable) -> bytes:
    """Bytes that differ for different elements: a letter for the type, the length, the content."""
    match element:
        case bool() | np.timedelta64():
            kind = type(element).__name__
            raise ValueError(f"elements must be str, bytes, int or tuples of these, got {kind}")
        case int() | np.integer():
            content, letter = str(int(element)).encode(), b"i"
        case str():
            # Strings from files that are not UTF-8 can hold lone surrogates.
            content, letter = element.encode(errors="surrogatepass"), b"s"
        case bytes():
            content, letter = element, b"b"
        case tuple():
            content, letter = b"".join(_canonical(part) for part in element), b"t"
        case _:
            kind = type(element).__name__
            raise ValueError(f"elements must be str, bytes, int or tuples of these, got {kind}")
    return letter + str(len(content)).encode() + b":" + content
