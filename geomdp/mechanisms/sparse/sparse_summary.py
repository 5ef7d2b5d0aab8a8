"""The released summary of sparse projection, which answers queries without the records."""

from __future__ import annotations

import io
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from geomdp._numerics.array_files import parsed, read_arrays
from geomdp._numerics.written_files import write_together
from geomdp._typing import FloatArray
from geomdp._validation import finite_array, positive, whole
from geomdp.mechanisms.sparse.elements import DigestedElements, ElementEncoding, IntegerElements
from geomdp.mechanisms.sparse.hashing.signs import HashedSigns
from geomdp.privacy import Adjacency, Guarantee
from geomdp.workloads.single_queries.single_query import SparseQuery

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
