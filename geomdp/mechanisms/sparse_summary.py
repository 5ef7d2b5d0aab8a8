"""The released summary of sparse projection, which answers queries without the records."""

from __future__ import annotations

import hashlib
import io
import json
import math
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from geomdp._numerics.files import parsed, read_arrays, write_together
from geomdp._typing import FloatArray, IntArray
from geomdp._validation import finite_array, is_whole, positive, whole
from geomdp.mechanisms.sparse_sign_matrices import HashedSigns
from geomdp.privacy import Adjacency, Guarantee
from geomdp.workloads.single_queries import SparseQuery

# Encodings: public maps from elements of an open universe to columns of a hashed matrix. The
# elements are hashable objects, which need not be listed in advance.

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
    ...     n=1000, sparsity=1, queries=100, privacy=gd.ApproxDP(1.0, 1e-6), rows=256, rng=0
    ... )
    >>> summary = mechanism.release(np.full(1000, 7), rng=1)  # a simulation: the seed voids privacy
    >>> summary.save("summary.npz")
    >>> loaded = gd.mechanisms.SparseSummary.load("summary.npz")
    >>> round(loaded.answer(gd.workloads.SparseQuery([7], [1.0])).value, 2)
    1.01
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

        `value` estimates the sum of Q over the records, divided by n. It is unbiased if different
        elements have different columns, and can lie outside [0, 1]. `noise_std` is the standard
        deviation of the privacy noise in it. `distortion_std` is an upper bound on the standard
        deviation of the projection error over random hash keys: sqrt(2 / T) ||Q||_2 under
        replace-one. Under add/remove the number of records is private, so it uses the norm of the
        released vector; the mean of its square bounds the variance for every data set.

        A query that lists s elements takes O(s T / 64) hash evaluations.

        Raises
        ------
        ValueError
            If the sparsity of the query exceeds `sparsity`, or the encoding does not accept an
            element of the query.
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
        return SparseAnswer(
            value=float(projected @ self.vector) / self.n,
            noise_std=self.sigma * float(np.linalg.norm(projected)) / self.n,
            distortion_std=math.sqrt(2 / self.signs.rows)
            * float(np.linalg.norm(query.values))
            * length,
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


def measured_distortion(
    signs: HashedSigns, *, sparsity: int, trials: int, rng: np.random.Generator
) -> FloatArray:
    """Relative errors |<Ax, Ay> - <x, y>| / (||x|| ||y||) on public synthetic vectors: (trials,).

    x and y have `sparsity` random elements each and share half of them. The function never draws
    another key, however large the distortion.
    """
    sparsity, trials = whole(sparsity, "sparsity"), whole(trials, "trials")
    shared = (sparsity + 1) // 2
    errors = np.empty(trials)
    for trial in range(trials):
        # With 64 rows there are 2^64 columns. Draw from the first half, because the numbers of
        # these columns fit int64.
        elements = rng.integers(min(signs.elements, 1 << 63), size=2 * sparsity - shared)
        first, second = np.zeros((2, len(elements)))
        first[:sparsity] = rng.random(sparsity)
        second[len(elements) - sparsity :] = rng.random(sparsity)
        image = signs.project(elements, first) @ signs.project(elements, second)
        size = np.linalg.norm(first) * np.linalg.norm(second)
        errors[trial] = abs(image - first @ second) / size
    return errors
