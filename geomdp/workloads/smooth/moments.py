"""Three algorithms that sum Chebyshev product moments over records, and the choice among them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from geomdp._typing import FloatArray
from geomdp._validation import positive, whole
from geomdp.workloads.smooth import local_moments
from geomdp.workloads.smooth.moment_sums import ROUNDOFF, MomentTransform

#: Largest number t^d of moments, for d variables and t degrees 0..t-1 in each variable: 2^22
#: float64 are 32 MB.
MAX_MOMENTS = 1 << 22
#: Largest number of entries of a table of expansions: 96 MB of float64. Up to four such tables are
#: in memory at a time.
MAX_TABLE = 12_000_000
#: For each d, the least t for which expansions or transforms are faster than recurrences. Measured
#: nanoseconds per record for d = 2 and t = 6, 8, 32: recurrences 21, 34, 172 and expansions 28, 26,
#: 38. For d = 3 and t = 10, 12, 16: recurrences 203, 314, 533 and transforms 214, 236, 239.
LEAST_SIZE = {1: 2, 2: 7, 3: 11}


class LocalExpansions(MomentTransform):
    """Expansions in cells for d <= 3, with proved errors within `tolerances` (t,) * d."""

    def __init__(self, tolerances: FloatArray) -> None:
        self.cells = local_moments.cells_needed(tolerances)
        # The angles of a small block fit in the cache. For d = 3 the angles are sorted by cell.
        # Larger blocks are then better, because more angles share a cell.
        self.rows = 1 << 18 if tolerances.ndim == 3 else 1 << 13
        super().__init__(tolerances.ndim, len(tolerances))

    @property
    def errors(self) -> FloatArray:
        """The error of the expansions, plus the error of angles that are rounded to float64."""
        expansions = local_moments.expansion_errors(self.d, self.size, self.cells)
        return expansions + angle_error(self.d, self.size)

    @property
    def amplification(self) -> float:
        return local_moments.amplification(self.d, self.size, self.cells)

    def _empty(self) -> FloatArray:
        return local_moments.empty_table(self.d, self.cells)

    def _add(self, table: FloatArray, points: FloatArray) -> None:
        angles = np.arccos(np.ascontiguousarray(points.T))
        if self.d == 3:
            angles = local_moments.sorted_by_cell(angles, self.cells)
        local_moments.add_records(table, angles)

    def _moments(self, table: FloatArray) -> FloatArray:
        return local_moments.moments_of(table, self.size)


class NonUniformFFT(MomentTransform):
    """A non-uniform FFT of type 1 for three variables (X-NUFFT), O(n w^3 + t^3 log t) for width w.

    FINUFFT promises a tolerance on average only, so it is called with a tenth of `tolerance`. Tests
    find no larger error, but this is not proved.
    """

    rows = 1 << 18
    proved = False
    #: Least tolerance. A kernel in float64 gives errors of about 1e-14 at best, so 1e-12 leaves a
    #: margin.
    FINEST: ClassVar[float] = 1e-12

    def __init__(self, size: int, tolerance: float) -> None:
        super().__init__(3, size)
        self.tolerance = tolerance

    @property
    def errors(self) -> FloatArray:
        """The tolerance, plus the error of angles that are rounded to float64."""
        return np.full((self.size,) * 3, self.tolerance + angle_error(3, self.size))

    @property
    def amplification(self) -> float:
        """The largest factor that undoes the damping by the kernel: about 2.5 per axis, cubed."""
        return 16.0

    def _empty(self) -> FloatArray:
        return np.zeros((self.size,) * 3)

    def _add(self, table: FloatArray, points: FloatArray) -> None:
        import finufft

        angles = np.arccos(points.T)
        modes = (2 * self.size - 1,) * 3
        waves = finufft.nufft3d1(
            *np.ascontiguousarray(angles),
            np.ones(len(points), dtype=np.complex128),
            modes,
            eps=self.tolerance / 10,
            isign=1,
            upsampfac=2.0,
            # The grid is small, so sorting the records would cost more than it saves.
            spread_sort=0,
            nthreads=1,
        ).real
        zero = self.size - 1
        for axis in range(3):
            up = np.take(waves, range(zero, 2 * zero + 1), axis)
            down = np.take(waves, range(zero, -1, -1), axis)
            waves = (up + down) / 2
        table += waves


class Recurrences(MomentTransform):
    """Chebyshev recurrences, and a product of two matrices, one for each half of the variables."""

    rows = 1 << 11

    @property
    def errors(self) -> FloatArray:
        """2 d t^2 u with u = 2^-53: t steps add 2 u each, which later steps multiply by <= t."""
        return np.full((self.size,) * self.d, self.d * 2 * self.size**2 * ROUNDOFF)

    def _empty(self) -> FloatArray:
        return np.zeros((self.size,) * self.d)

    def _add(self, table: FloatArray, points: FloatArray) -> None:
        polynomials = chebyshev_polynomials(points, self.size)
        half = (self.d + 1) // 2
        left = products(polynomials[:half])
        if half == self.d:
            table += left.sum(axis=1)
        else:
            table += (left @ products(polynomials[half:]).T).reshape(table.shape)


def moment_transform(
    d: int, size: int, tolerance: float | FloatArray, n: int = 1
) -> MomentTransform:
    """The fastest algorithm with errors at most `tolerance`, if float64 allows this precision.

    `tolerance` is the largest error, one or (t,) * d, of each moment, for one of the `n` records
    and for their mean, with rounding. For d <= 3 and t >= `LEAST_SIZE[d]`, the first choice is
    `LocalExpansions`, for a table of at most 96 MB, and for d = 3 the second is `NonUniformFFT`, if
    the errors are small enough. Otherwise the result is `Recurrences`, the most precise algorithm.
    ``ValueError`` unless t >= 2 and t^d <= 2^22, for t = `size` degrees in each of `d` variables.

    Examples
    --------
    >>> import geomdp as gd
    >>> transform = gd.workloads.smooth.moment_transform(2, 16, tolerance=1e-6, n=1000)
    >>> type(transform).__name__, transform.proved
    ('LocalExpansions', True)
    >>> bool((transform.errors + transform.rounding(1000) <= 1e-6).all())
    True
    """
    d, size, n = whole(d, "d"), whole(size, "degree", minimum=2), whole(n, "n")
    if size**d > MAX_MOMENTS:
        raise ValueError(f"degree^d must be at most {MAX_MOMENTS}, got {size}^{d}")
    wanted = np.broadcast_to(np.asarray(tolerance, dtype=np.float64), (size,) * d)
    positive(float(wanted.min()), "tolerance")
    for transform in _candidates(wanted):
        if (transform.errors + transform.rounding(n) <= wanted).all():
            return transform
    return Recurrences(d, size)


def _candidates(wanted: FloatArray) -> Iterator[MomentTransform]:
    d, size = wanted.ndim, len(wanted)
    if d > 3 or size < LEAST_SIZE[d]:
        return
    # Half of the tolerance is left for rounding.
    rest = wanted / 2 - angle_error(d, size)
    if (rest <= 0).any():
        return
    cells = local_moments.cells_needed(rest)
    if local_moments.table_entries(d, cells) <= MAX_TABLE:
        yield LocalExpansions(rest)
    if d == 3 and rest.min() >= NonUniformFFT.FINEST:
        yield NonUniformFFT(size, float(rest.min()))


def angle_error(d: int, size: int) -> float:
    """Bound d t 12 pi 2^-53: the angle, its position in the grid and its phase are rounded."""
    return d * size * 12 * math.pi * ROUNDOFF


def chebyshev_polynomials(points: FloatArray, size: int) -> FloatArray:
    """Values (d, t, n) of T_0..T_{t-1} at `points` (n, d), by T_{r+1} = 2 x T_r - T_{r-1}."""
    x = np.ascontiguousarray(points.T)
    values = np.empty((len(x), size, x.shape[1]))
    values[:, 0] = 1.0
    values[:, 1:2] = x[:, None, :]
    for r in range(2, size):
        np.multiply(2 * x, values[:, r - 1], out=values[:, r])
        values[:, r] -= values[:, r - 2]
    return values


def products(polynomials: FloatArray) -> FloatArray:
    """Products (t^d, n) of one of the `polynomials` (d, t, n) per variable, in row-major order."""
    d, size, n = polynomials.shape
    found = polynomials[0]
    for i in range(1, d):
        found = (found[:, None, :] * polynomials[i][None, :, :]).reshape(-1, n)
    return np.asarray(found).reshape(size**d, n)
