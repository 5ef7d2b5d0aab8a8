"""Exact sums of entries of real records or of products of entries, with correctly rounded noise."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from geomdp._numerics.linalg import AffineHull
from geomdp._numerics.wide_sums import (
    EXACT_ROWS,
    REAL_BITS,
    WideSums,
    add_numbers,
    add_products,
    fixed_point,
    whole_numbers,
)
from geomdp._typing import FloatArray
from geomdp.data.counting.tallies import CountedRecords
from geomdp.mechanisms.additive_noise.certified_rows import SLACK
from geomdp.mechanisms.additive_noise.units import Measurement
from geomdp.noise import Noise
from geomdp.noise.exact import Computable, RoundedVector, matrix_entries, noise_vector
from geomdp.workloads import BoxSecondMoment, Means, SecondMoment, Workload
from geomdp.workloads.base import Totals
from geomdp.workloads.universe.universes import Records


def has_real_records(workload: Workload) -> bool:
    """Whether answers are entries of real records, or constants times products of two entries."""
    return isinstance(workload, Means | SecondMoment | BoxSecondMoment)


class RealRecords(Measurement):
    """Sums of records x in a ball or a cube, or of products x_i x_j, in multiples of 2^-80.

    Entries are rounded towards zero to multiples of 2^-40, so rounded records stay in the body and
    `noise` needs no slack. `entries` is this noise on the upper triangle of matrices.
    """

    grid = 2 * REAL_BITS
    # A sum is stored as digits in base 2^20, least significant digit first. The last digit holds
    # the whole rest of the sum, so it can exceed 2^20. This digit is at most about the number of
    # records, and must be below 2^53.
    capacity = 1 << 52

    def __init__(
        self,
        workload: Workload,
        noise: Computable,
        slack: float = 0.0,
        entries: Computable | None = None,
    ) -> None:
        self._workload, self.slack = workload, slack
        self._stretch = np.ones(workload.n_queries)
        if isinstance(workload, SecondMoment | BoxSecondMoment):
            rows, columns = np.triu_indices(workload.d)
            self._stretch[rows != columns] = np.sqrt(2.0)
            noise = matrix_entries(noise, workload.d) if entries is None else entries
        #: The noise before rounding, on sums of entries x_i, or of products x_i x_j with i <= j.
        self.vector = noise
        self._rounded = RoundedVector(noise, self.grid)

    def rounding(self, hull: AffineHull | None) -> FloatArray:
        """2^-40 for entries, 2^-39 for products, sqrt(2) 2^-39 if scaled by sqrt(2)."""
        del hull  # The affine hull of the answers is R^m, so projecting on it changes nothing.
        products = isinstance(self._workload, SecondMoment | BoxSecondMoment)
        return self._stretch * 2.0 ** (-REAL_BITS + products)

    def draw(self) -> list[int]:
        """Noise in multiples of 2^-80."""
        return self._rounded.draw()

    def sums(self) -> WideSums:
        """Sums before any record is added: all 0."""
        return WideSums(self._workload.n_queries)

    def add(self, sums: WideSums, chunk: FloatArray) -> None:
        """Add a chunk of valid records (b, d) to `sums`."""
        rows = fixed_point(chunk)
        if isinstance(self._workload, SecondMoment | BoxSecondMoment):
            add_products(sums, rows)
        else:
            add_numbers(sums, rows)

    def totals(self, records: Records | Iterable[Records] | CountedRecords) -> Totals:
        if isinstance(records, CountedRecords):
            raise ValueError(
                "counts of records are not accepted for records of real numbers: give the records"
            )
        count, sums = 0, self.sums()
        for chunk in self._workload.universe.chunks(records, EXACT_ROWS):
            count += len(chunk)
            self.add(sums, chunk)
        return Totals(count, sums.digits())

    def answers(self, sums: FloatArray, multiples: list[int], n: int) -> FloatArray:
        """As in `Measurement`; sums and noise are added exactly, quotients are rounded once."""
        size = n << self.grid
        noisy = [(s + j) / size for s, j in zip(whole_numbers(sums), multiples, strict=True)]
        return np.asarray(np.array(noisy) * self._stretch)


def enlarged_ellipsoid(
    workload: Workload,
    root: FloatArray,
    noise_of: Callable[[FloatArray], Noise],
    slack: float = SLACK,
) -> RealRecords:
    """Noise of an ellipsoid with axes times 1 + `slack`, to cover rounding in `root` (m, m)."""
    return RealRecords(workload, noise_vector(noise_of(root * (1 + slack))), slack)
