"""True answers to a class of queries as exact rational numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from geomdp._typing import FloatArray


@dataclass(frozen=True)
class ExactTruths:
    """The means totals / n of k queries, as exact rational numbers.

    Parameters
    ----------
    totals : (k,) array of whole numbers, or sequence of Fraction
        Sums over the records. A float stands for its exact value.
    n : int
        Number of records, or the declared divisor of the sums.
    """

    totals: FloatArray | Sequence[Fraction]
    n: int

    def __len__(self) -> int:
        return len(self.totals)

    def __getitem__(self, index: int) -> Fraction:
        """True answer number `index`."""
        return Fraction(self.totals[index]) / self.n

    def near(self) -> FloatArray:
        """The true answers in float64 (k,), each with a relative error of at most 2^-51."""
        return np.array(self.totals, dtype=np.float64) / self.n

    def gap(self, index: int, estimate: float) -> Fraction:
        """Distance of true answer number `index` from an estimate."""
        return abs(self[index] - Fraction(estimate))
