"""Noise on the T rows of the sparse projection A D of `SparseProject`, in float64 or rounded."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from geomdp._typing import FloatArray, IntArray
from geomdp.mechanisms.quotients import quotients
from geomdp.noise import LaplaceNoise
from geomdp.noise.exact import RoundedGaussians, RoundedNoise, RoundedVector, grid_for
from geomdp.noise.exact.scales import proved_gaussian_scale, proved_shortcut_scale
from geomdp.privacy import ZCDP, ApproxDP, shortcut_step_epsilon
from geomdp.privacy.calibration import gaussian_scale

#: The noise of this number of rows is drawn at a time. This bounds the memory: noise is drawn as
#: Python integers, which take 40 bytes each.
ROWS = 1 << 16


@dataclass(frozen=True)
class GaussianRows:
    """Gaussian noise on all T rows, calibrated to the l2 sensitivity of the whole vector.

    This sensitivity does not depend on T, so the noise on a row does not depend on T either.

    Examples
    --------
    >>> import geomdp as gd
    >>> noise = gd.mechanisms.GaussianRows()
    >>> round(noise.sigma(gd.ApproxDP(1.0, 1e-6), sensitivity=2.0, rows=64), 2)
    8.45
    """

    def sigma(self, privacy: ApproxDP | ZCDP, sensitivity: float, rows: int) -> float:
        """Standard deviation of the noise on a row, for the l2 `sensitivity` of all rows."""
        del rows
        return gaussian_scale(sensitivity, privacy)

    def draw(self, rng: np.random.Generator, sigma: float, rows: int) -> FloatArray:
        """Noise (rows,) in float64."""
        return sigma * rng.standard_normal(rows)

    def proved_scale(self, privacy: ApproxDP | ZCDP, change: int, rows: int) -> float:
        """Standard deviation that provably suffices if no row changes by more than `change`."""
        return proved_gaussian_scale(rows * change**2, privacy)

    def deviation(self, scale: float) -> float:
        """Standard deviation of noise of this scale."""
        return scale

    def rounded(self, scale: float, rows: int, grid: int) -> RoundedVector:
        """Noise on `rows` rows, correctly rounded to multiples of 2^-grid."""
        return RoundedGaussians(rows, scale, grid)


@dataclass(frozen=True)
class LaplaceRows:
    """Laplace noise on every row, with privacy composed over the T rows, as in Blum and Roth.

    Let s be the l2 sensitivity of the whole vector. Entries of A have the same modulus, so each row
    has sensitivity s / sqrt(T). Laplace noise of scale s sqrt(8 ln(1/delta)) / eps makes each row
    eps / sqrt(8 T ln(1/delta))-DP. For eps at most 1 and delta below 1/2, the T rows together are
    then (eps, delta)-DP (GEN-2b).

    Examples
    --------
    >>> import geomdp as gd
    >>> noise = gd.mechanisms.LaplaceRows()
    >>> round(noise.sigma(gd.ApproxDP(1.0, 1e-6), sensitivity=2.0, rows=64), 2)
    29.74
    """

    def sigma(self, privacy: ApproxDP | ZCDP, sensitivity: float, rows: int) -> float:
        """Standard deviation on a row, sqrt(2) times the Laplace scale; `sensitivity` is s.

        ``ValueError`` for ZCDP, and for eps above 1.
        """
        step = shortcut_step_epsilon(_approximate(privacy), rows)
        return math.sqrt(2) * sensitivity / math.sqrt(rows) / step

    def draw(self, rng: np.random.Generator, sigma: float, rows: int) -> FloatArray:
        """Noise (rows,) in float64."""
        return rng.laplace(0.0, sigma / math.sqrt(2), size=rows)

    def proved_scale(self, privacy: ApproxDP | ZCDP, change: int, rows: int) -> float:
        """Laplace scale that provably suffices if no row changes by more than `change`."""
        return proved_shortcut_scale(change, _approximate(privacy), rows)

    def deviation(self, scale: float) -> float:
        """Standard deviation of noise of this scale."""
        return math.sqrt(2) * scale

    def rounded(self, scale: float, rows: int, grid: int) -> RoundedVector:
        """Noise on `rows` rows, correctly rounded to multiples of 2^-grid."""
        return RoundedNoise(LaplaceNoise(rows, scale), grid)


def _approximate(privacy: ApproxDP | ZCDP) -> ApproxDP:
    if not isinstance(privacy, ApproxDP):
        raise ValueError(f"privacy must be ApproxDP for LaplaceRows, got {privacy}")
    return privacy


class RoundedRows:
    """Correctly rounded noise on the whole numbers T^(1/2) A D (X-GRID), for T = `rows`.

    The entries of A are +-T^(-1/2). So for every choice of the signs, adding a record changes each
    entry of T^(1/2) A D by 1, and replacing a record by at most 2 (`change`).
    """

    def __init__(
        self,
        noise: GaussianRows | LaplaceRows,
        privacy: ApproxDP | ZCDP,
        change: int,
        rows: int,
    ) -> None:
        scale = noise.proved_scale(privacy, change, rows)
        self.grid = grid_for(noise.deviation(scale))
        self._rows = rows
        # T and ROWS are powers of two, so all parts have the same size and share this sampler.
        self._part = noise.rounded(scale, min(rows, ROWS), self.grid)

    def draw(self) -> list[IntArray]:
        """Rounded noise in multiples of 2^-grid, in parts of at most 2^16 rows."""
        return [np.array(self._part.draw()) for _ in range(0, self._rows, ROWS)]

    def released(self, sums: FloatArray, noise: list[IntArray]) -> FloatArray:
        """A D with noise (T,): `sums`, T^(1/2) A D, plus a result of `draw`, over T^(1/2)."""
        noisy = np.concatenate(list(self._noisy(sums, noise)))
        return np.asarray(noisy / math.sqrt(self._rows))

    def _noisy(self, sums: FloatArray, noise: list[IntArray]) -> Iterator[FloatArray]:
        start = 0
        for part in noise:
            stop = start + len(part)
            yield quotients(sums[start:stop], part.tolist(), 1 << self.grid, 1)
            start = stop
