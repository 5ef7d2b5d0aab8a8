"""True answers to a class of queries as exact rational numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from geomdp._typing import FloatArray


@dataclass(frozen=True)
class ExactTruths:
    """The means `totals` / `n` of k queries, as exact rational numbers."""

    totals: FloatArray | Sequence[Fraction]
    n: int

    def __len__(self) -> int:
        return len(self.totals)

    def __getitem__(self, index: int) -> Fraction:
        return Fraction(self.totals[index]) / self.n

    def near(self) -> FloatArray:
        """The true answers in float64 (k,), each with a relative error of at most 2^-51."""
        return np.array(self.totals, dtype=np.float64) / self.n

    def gap(self, index: int, estimate: float) -> Fraction:
        return abs(self[index] - Fraction(estimate))
