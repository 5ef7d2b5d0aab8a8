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
    """Expansions about the centres of cells, for up to three variables; see `local_moments`.

    For any t, a record takes 5, 36 or 120 additions for d = 1, 2 or 3. There are enough cells to
    keep the interpolation error of each moment at or below its entry in `tolerances`, of shape
    (t,) * d. The error bounds of the expansions are proved.
    """

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
        """Bound on the sum of absolute values of the terms of an expansion."""
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
    """A non-uniform fast Fourier transform of type 1, for three variables (X-NUFFT).

    The transform computes sum_x exp(i <k, a(x)>) for all |k_i| < t, where a(x) are the angles of
    record x. The moments are the real parts, averaged over the signs of each k_i. The cost is
    O(n w^3 + t^3 log t) for a kernel of width w. The transform needs little memory.

    `tolerance` is the error allowed, at least `FINEST`. The FINUFFT library promises a tolerance on
    average only. So the library is called with a tenth of `tolerance`. At the public points of the
    tests, no moment then has an error above `tolerance`, but this is not proved for all points.
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
    """Chebyshev recurrences for blocks of records, and then products of matrices, for any d.

    For d > 1, the variables are split into two halves. For each half there is a matrix. It has a
    row for each product of polynomials of these variables, and a column for each record. The
    product of one matrix and the transpose of the other takes 2 n t^d operations.
    """

    rows = 1 << 11

    @property
    def errors(self) -> FloatArray:
        """Rounding of the recurrences, for u = 2^-53: d times 2 t^2 u.

        Each of t steps adds an error of 2 u, which later steps multiply by at most t.
        """
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

    Parameters
    ----------
    d : int
        Number of variables.
    size : int
        t >= 2, with t^d at most 2^22.
    tolerance : float or (t,) * d array
        Largest allowed error of each moment, for one record and for the mean over n records,
        including rounding.
    n : int
        Number of records.

    Returns
    -------
    MomentTransform
        Let d <= 3 and t >= `LEAST_SIZE[d]`. Then the first choice is `LocalExpansions`, if the
        table is at most 96 MB and the errors are small enough. For d = 3, the second choice is
        `NonUniformFFT`, if the errors are small enough. In all other cases, the result is
        `Recurrences`, the most precise algorithm.

    Raises
    ------
    ValueError
        For parameters out of range.

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
    """Transforms that are faster than recurrences. Their errors may still exceed `wanted`."""
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
    """Bound on the error that rounded angles cause in a product of cosines.

    Three numbers are rounded: the angle a = arccos x, the position of a in the grid, and the phase
    r a. Each rounding changes the angle by at most 4 pi 2^-53. Together they change it by at most
    12 pi 2^-53. A factor cos(r a) with r < t changes by at most t times this number. There are d
    factors.
    """
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
