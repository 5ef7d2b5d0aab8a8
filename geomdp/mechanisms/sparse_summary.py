"""The released summary of sparse projection, which answers queries without the records.

Its matrix A of random signs has T rows and a column for each element of a universe. The entries
+-T^(-1/2) come from a key of r words, the coefficients of a polynomial over GF(2^64): its value
at the point of a block b of 64 rows and an element x is a uniform word, whose bits are the signs
of rows 64 b, ..., 64 b + 63 in column x. Any r entries are independent (BR-JL, X-GF).
"""

from __future__ import annotations

import hashlib
import io
import json
import math
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from geomdp._numerics.compilation import numba
from geomdp._numerics.files import parsed, read_arrays, write_together
from geomdp._typing import FloatArray, IntArray
from geomdp._validation import finite_array, is_whole, positive, whole
from geomdp.privacy import Adjacency, Guarantee
from geomdp.workloads.base import SparseQuery

# The field GF(2^64) = GF(2)[x] / (x^64 + x^4 + x^3 + x + 1), with elements as 64-bit words.
# Addition is XOR. Bit i of a word is the coefficient of x^i.

Words = npt.NDArray[np.uint64]

#: x^64 modulo the field polynomial.
REDUCTION = 0b11011
#: Entry c is c x^64 modulo the field polynomial, for each 4-bit polynomial c. A shift by four bits
#: loses the top four bits c. Adding entry c makes up for this loss.
FOLD = np.zeros(16, dtype=np.uint64)
for _overflow in range(16):
    for _bit in range(4):
        if _overflow >> _bit & 1:
            FOLD[_overflow] ^= np.uint64(REDUCTION << _bit)

_ONE, _FOUR, _SIXTY, _NIBBLE, _TOP = (np.uint64(value) for value in (1, 4, 60, 15, 63))
_REDUCTION = np.uint64(REDUCTION)


@numba.njit(cache=True)
def fill_multiples(factor: np.uint64, table: Words) -> None:
    """Fill `table` (16,) with c * factor for the sixteen 4-bit polynomials c."""
    table[0] = np.uint64(0)
    table[1] = factor
    for c in range(2, 16, 2):
        half = table[c >> 1]
        doubled = (half << _ONE) ^ (_REDUCTION * (half >> _TOP))
        table[c] = doubled
        table[c + 1] = doubled ^ factor


@numba.njit(cache=True)
def times(table: Words, word: np.uint64, fold: Words) -> np.uint64:
    """The product of `word` and a factor with the `table` of `fill_multiples`; `fold` is `FOLD`."""
    result: np.uint64 = table[word >> _SIXTY]
    shift = _SIXTY
    # Horner's rule takes one look-up for each of the sixteen 4-bit digits.
    for _ in range(15):
        shift -= _FOUR
        result = (result << _FOUR) ^ fold[result >> _SIXTY] ^ table[(word >> shift) & _NIBBLE]
    return result


@numba.njit(cache=True)
def multiply(first: Words, second: Words) -> Words:
    """Products (k,) of the words of `first` (k,) and `second` (k,), element by element."""
    table = np.empty(16, dtype=np.uint64)
    fold = FOLD
    result = np.empty_like(first)
    for i in range(len(first)):
        fill_multiples(first[i], table)
        result[i] = times(table, second[i], fold)
    return result


def inverse(word: int) -> int:
    """The multiplicative inverse w^(2^64 - 2) of a word w; ``ValueError`` for 0."""
    if word == 0:
        raise ValueError("0 has no inverse in GF(2^64)")
    result = np.ones(1, dtype=np.uint64)
    square = np.array([word], dtype=np.uint64)
    for _ in range(63):  # 2^64 - 2 = 2 + 4 + ... + 2^63
        square = multiply(square, square)
        result = multiply(result, square)
    return int(result[0])


# Evaluation of polynomials at all points of an affine subspace. Let V_j be the set of all words
# below 2^j. The subspace polynomial s_j(x) = product over v in V_j of (x - v) is linear over GF(2),
# and constant on every coset of V_j. Let s'_j = s_j / s_j(2^j), and let X_i be the product of the
# s'_j over all bits j that are 1 in i. A butterfly network evaluates a polynomial of degree below
# 2^k, written in the basis X_i, on a coset of V_k with (k/2) 2^k multiplications (Lin, Chung and
# Han 2014; X-GF).

#: Largest k. The values of a random polynomial of degree below 2^k are 2^k-wise independent. No
#: error bound of this library needs more than 2^12-wise independence.
MAX_LEVELS = 12


def subspace_maps(levels: int) -> Words:
    """The maps s'_0, ..., s'_(levels-1): entry (j, i) of the array (levels, 64) is s'_j(2^i)."""
    levels = whole(levels, "levels", minimum=0, maximum=MAX_LEVELS)
    values = np.uint64(1) << np.arange(64, dtype=np.uint64)
    maps = np.empty((levels, 64), dtype=np.uint64)
    for j in range(levels):
        pivot = values[j]
        scale = np.full(64, inverse(int(pivot)), dtype=np.uint64)
        maps[j] = multiply(scale, values)
        # s_0(x) = x and s_(j+1)(x) = s_j(x)^2 + s_j(2^j) s_j(x).
        values = multiply(values, values) ^ multiply(np.full(64, pivot), values)
    return maps


@numba.njit(cache=True)
def apply_map(images: Words, word: np.uint64) -> np.uint64:
    """The image of `word` under a GF(2)-linear map, given by its `images` (64,) of unit words."""
    result = np.uint64(0)
    for i in range(64):
        if (word >> np.uint64(i)) & np.uint64(1):
            result ^= images[i]
    return result


@numba.njit(cache=True)
def evaluate_on_coset(coefficients: Words, origin: Words, shifts: Words, out: Words) -> None:
    """Write the values of a polynomial at theta + v, for all words v below 2^k, to `out` (2^k,).

    `coefficients` (2^k,) are in the basis X_i; `origin` (k,) holds s'_j(theta), `shifts` (k, 2^k)
    s'_j(v).
    """
    table = np.empty(16, dtype=np.uint64)
    fold = FOLD
    size = len(coefficients)
    out[:] = coefficients
    half = size >> 1
    level = len(origin) - 1
    while half > 0:
        for start in range(0, size, 2 * half):
            # s'_level is constant on theta + start + V_level. On the next coset of V_level, the
            # value is this constant plus 1.
            fill_multiples(origin[level] ^ shifts[level, start], table)
            for i in range(start, start + half):
                low = out[i] ^ times(table, out[i + half], fold)
                out[i + half] ^= low
                out[i] = low
        half >>= 1
        level -= 1


# The sign matrix.

#: Signs per word. One evaluation of the polynomial gives the signs of this many rows.
WORD_BITS = 64
#: Largest number of rows, with 2^46 columns: one for each digest of `DigestedElements`.
MAX_ROWS = 1 << 24


@dataclass(frozen=True, eq=False)
class HashedSigns:
    """The matrix A of a `key` of r = 2^k uniform words: T `rows`, a power of two from 64 to 2^24.

    Any r entries are independent and uniform. k is from 1 to 12.
    """

    rows: int
    key: Words
    #: The subspace maps, and the images under them of words below 2^k and of multiples of 2^k.
    _tables: tuple[Words, Words, Words] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        rows = whole(self.rows, "rows", minimum=WORD_BITS, maximum=MAX_ROWS)
        key = np.ascontiguousarray(self.key, dtype=np.uint64)
        levels = len(key).bit_length() - 1
        if rows & (rows - 1):
            raise ValueError(f"rows must be a power of two, got {rows}")
        if key.ndim != 1 or len(key) < 2 or len(key) & (len(key) - 1):
            raise ValueError(f"key must have shape (2^k,) with k at least 1, got {key.shape}")
        maps = subspace_maps(levels)
        size = len(key)
        blocks = rows // WORD_BITS
        shifts = _images(maps, np.arange(size, dtype=np.uint64))
        cosets = _images(maps, np.arange(0, max(blocks, size), size, dtype=np.uint64))
        for name, value in (("rows", rows), ("key", key), ("_tables", (maps, shifts, cosets))):
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        return f"HashedSigns({self.rows} rows, {self.independence}-wise independent)"

    @classmethod
    def draw(cls, rows: int, independence: int, rng: np.random.Generator) -> HashedSigns:
        """A random matrix with entries that are at least `independence`-wise independent."""
        independence = whole(independence, "independence", minimum=2)
        length = 1 << (independence - 1).bit_length()
        return cls(rows, rng.integers(0, 1 << 64, size=length, dtype=np.uint64))

    @property
    def independence(self) -> int:
        """The number r for which the entries are r-wise independent."""
        return len(self.key)

    @property
    def elements(self) -> int:
        """Number of columns; elements are the whole numbers below this number."""
        return 1 << (WORD_BITS - self._block_bits)

    @property
    def _block_bits(self) -> int:
        return (self.rows // WORD_BITS - 1).bit_length()

    def words(self, elements: IntArray) -> Words:
        """Signs of columns in words (c, T / 64): bit i of word b is 1 if row 64 b + i has a -1."""
        checked = self._check(elements)
        out = np.empty((len(checked), self.rows // WORD_BITS), dtype=np.uint64)
        _fill_words(self.key, *self._tables, checked, out)
        return out

    def columns(self, elements: IntArray) -> FloatArray:
        """The columns of A for `elements` (c,), as the rows of an array (c, T)."""
        bits = np.unpackbits(self.words(elements).view(np.uint8), axis=1, bitorder="little")
        return np.asarray((1.0 - 2.0 * bits) / np.sqrt(self.rows))

    def project(self, elements: IntArray, weights: FloatArray) -> FloatArray:
        """The product A v (T,), where v has the entries `weights` (c,) at `elements` (c,)."""
        return np.asarray(self.signed_sums(elements, weights) / np.sqrt(self.rows))

    def signed_sums(self, elements: IntArray, weights: FloatArray) -> FloatArray:
        """T^(1/2) A v (T,), where v has the entries `weights` (c,) at `elements` (c,).

        It is exact for whole weights with absolute values that add up to less than 2^53.
        """
        weights = np.ascontiguousarray(weights, dtype=np.float64)
        total = np.zeros(self.rows)
        step = max(1, (1 << 21) // (self.rows // WORD_BITS))  # 16 MB of words at a time
        for start in range(0, len(elements), step):
            words = self.words(elements[start : start + step])
            _add_signed(words, weights[start : start + len(words)], total)
        return total

    def _check(self, elements: IntArray) -> Words:
        array = np.asarray(elements)
        if array.ndim != 1 or array.dtype.kind not in "iu":
            raise ValueError(f"elements must be whole numbers (k,), got {array.dtype}")
        if array.size and not (int(array.min()) >= 0 and int(array.max()) < self.elements):
            raise ValueError(f"elements must lie in 0..{self.elements - 1}")
        return array.astype(np.uint64) << np.uint64(self._block_bits)


def _images(maps: Words, words: Words) -> Words:
    """An array (levels, n): the images of `words` (n,) under each of `maps` (levels, 64)."""
    bits = (words[:, None] >> np.arange(64, dtype=np.uint64)) & np.uint64(1)
    return np.stack([np.bitwise_xor.reduce(bits * images, axis=1) for images in maps])


@numba.njit(cache=True)
def _fill_words(
    key: Words, maps: Words, shifts: Words, cosets: Words, origins: Words, out: Words
) -> None:
    """Fill row i of `out` (c, blocks) with the values of the polynomial at origins[i] + b, each b.

    `shifts` has the images under `maps` of the words below 2^k, `cosets` those of multiples of 2^k.
    """
    levels, size, blocks = len(maps), len(key), out.shape[1]
    values = np.empty(size, dtype=np.uint64)
    own = np.empty(levels, dtype=np.uint64)
    origin = np.empty(levels, dtype=np.uint64)
    for row in range(len(origins)):
        for level in range(levels):
            own[level] = apply_map(maps[level], origins[row])
        for coset in range(cosets.shape[1]):
            for level in range(levels):
                origin[level] = own[level] ^ cosets[level, coset]
            evaluate_on_coset(key, origin, shifts, values)
            start = coset * size
            count = min(size, blocks - start)
            out[row, start : start + count] = values[:count]


@numba.njit(cache=True, fastmath=True)
def _add_signed(words: Words, weights: FloatArray, total: FloatArray) -> None:
    for row in range(words.shape[0]):
        weight = weights[row]
        for block in range(words.shape[1]):
            word = words[row, block]
            start = 64 * block
            for i in range(64):
                total[start + i] += weight - 2.0 * weight * np.float64(
                    (word >> np.uint64(i)) & np.uint64(1)
                )


# Encodings: public maps from elements of an open universe to columns of a hashed matrix. The
# elements are hashable objects, which need not be listed in advance.

#: Bits of a digest, so that every digest is the number of a column for every number of rows.
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

    Two different elements collide with probability 2^-46 if the digest (BLAKE2b) behaves like a
    random function. A collision costs accuracy, but not privacy.

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
        case int() | np.integer() if is_whole(element):
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


# The summary.

#: Name of the layout of summary files. `load` refuses a file that states another layout.
FORMAT = "geomdp sparse summary 1"
#: Encodings that can be saved, by their names in a file.
ENCODINGS = {kind.__name__: kind for kind in (IntegerElements, DigestedElements)}


class SparseAnswer(NamedTuple):
    """An answer to a query Q: its value and the standard deviations of its two errors."""

    value: float
    noise_std: float
    distortion_std: float


@dataclass(frozen=True, eq=False)
class SparseSummary:
    """The release of `SparseProject`: a noisy projected histogram and the public hash key.

    Parameters
    ----------
    vector : (T,) array
        A D + noise, where D is the histogram of the records.
    signs : HashedSigns
        The matrix A.
    n : int
        Number of records (replace-one), or the declared normaliser (add/remove).
    sparsity : int
        Largest number m of elements that a query may list.
    sigma : float
        Standard deviation of the noise per row.
    encoding : ElementEncoding
        Map from elements to columns.
    guarantee : Guarantee
        The privacy record.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> mechanism = gd.SparseProject(
    ...     n=1000, sparsity=1, queries=100, privacy=gd.ZCDP(0.1), rows=256, rng=0
    ... )
    >>> summary = mechanism.release(np.full(1000, 7), rng=1)  # a simulation: the seed voids privacy
    >>> summary.save("summary.npz")
    >>> loaded = gd.mechanisms.SparseSummary.load("summary.npz")
    >>> round(loaded.answer(gd.workloads.SparseQuery([7], [1.0])).value, 1)
    1.0
    """

    vector: FloatArray
    signs: HashedSigns
    n: int
    sparsity: int
    sigma: float
    encoding: ElementEncoding
    guarantee: Guarantee

    def __repr__(self) -> str:
        return (
            f"SparseSummary({self.signs.rows} rows, n={self.n}, sparsity={self.sparsity}, "
            f"noise {self.sigma:.3g} per row; {self.guarantee})"
        )

    def answer(self, query: SparseQuery) -> SparseAnswer:
        """Estimate the mean of `query` Q as <A Q, vector> / n. Every call is post-processing.

        `value` is unbiased if different elements have different columns, and can lie outside [0,
        1]. `noise_std` is the standard deviation of the privacy noise in it. `distortion_std` is an
        upper bound on that of the projection error over random hash keys: sqrt(2 / T) ||Q||_2 under
        replace-one. Under add/remove the number of records is private, so it uses the norm of the
        released vector; the mean of its square bounds the variance for every data set. A query that
        lists s elements takes O(s T / 64) hash evaluations.

        ``ValueError`` if the sparsity of the query exceeds `sparsity`, or the encoding does not
        accept an element of the query.
        """
        if query.sparsity > self.sparsity:
            raise ValueError(
                f"query must have sparsity at most {self.sparsity}, got {query.sparsity}"
            )
        numbers = self.encoding.encode(query.support)
        projected = self.signs.project(numbers, query.values)
        known = self.guarantee.adjacency is Adjacency.REPLACE_ONE
        length = 1.0 if known else float(np.linalg.norm(self.vector)) / self.n
        # For 4-wise independent signs the variance of <A Q, A D> is at most 2 ||Q||^2 ||D||^2 / T.
        # Under replace-one ||D||_2 <= n. The mean of ||vector||^2 is ||D||^2 plus the mean squared
        # noise.
        size = float(np.linalg.norm(query.values))
        return SparseAnswer(
            value=float(projected @ self.vector) / self.n,
            noise_std=self.sigma * float(np.linalg.norm(projected)) / self.n,
            distortion_std=math.sqrt(2 / self.signs.rows) * size * length,
        )

    def save(self, path: str | Path) -> None:
        """Write the summary to an .npz file, completely or not at all.

        ``ValueError`` if `encoding` has another type than `IntegerElements` and `DigestedElements`.
        """
        name = type(self.encoding).__name__
        if name not in ENCODINGS:
            raise ValueError(f"encoding must be one of {sorted(ENCODINGS)} to be saved, got {name}")
        record = {
            "format": FORMAT,
            "n": self.n,
            "sparsity": self.sparsity,
            "sigma": self.sigma,
            "encoding": name,
            "guarantee": self.guarantee.to_dict(),
        }
        file = io.BytesIO()
        np.savez(file, vector=self.vector, key=self.signs.key, record=json.dumps(record))
        write_together({Path(path): file.getvalue()})

    @classmethod
    def load(cls, path: str | Path) -> SparseSummary:
        """Read a summary that `save` wrote; ``FileNotFoundError`` if there is no such file.

        ``ValueError`` if the file has another layout, or a contradictory privacy record.
        """
        try:
            arrays = read_arrays(Path(path), ("vector", "key", "record"))
            vector, key, record = arrays["vector"], arrays["key"], parsed(str(arrays["record"]))
            found = record["format"]
            if found != FORMAT:
                raise ValueError(f"format must be {FORMAT!r}, got {found!r}")
            return cls(
                vector=finite_array(vector, "vector", ndim=1),
                signs=HashedSigns(len(vector), key),
                n=whole(record["n"], "n"),
                sparsity=whole(record["sparsity"], "sparsity"),
                sigma=positive(record["sigma"], "sigma"),
                encoding=ENCODINGS[record["encoding"]](),
                guarantee=Guarantee.from_dict(record["guarantee"]),
            )
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{path} is not a sparse summary: {error}") from error
