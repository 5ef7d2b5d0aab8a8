"""Answers that are not whole numbers, in unseeded releases: how sums and noise become exact.

On small universes, answers are rounded to a unit. Sums of entries of real records, or of products
of entries, are exact and get correctly rounded noise. Ellipsoid noise is proved to be large enough.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import scipy
from flint import arb_mat, ctx

from geomdp._numerics.linalg import AffineHull
from geomdp._typing import FloatArray, IntArray
from geomdp.bodies import Body, Box, LinearImage, Scaled
from geomdp.data.tallies import CountedRecords
from geomdp.mechanisms.base import answer_hull
from geomdp.mechanisms.release import LARGEST_SUM
from geomdp.noise import Noise
from geomdp.noise.exact import (
    Computable,
    RoundedNoise,
    RoundedVector,
    matrix_entries,
    noise_vector,
    public_grid,
)
from geomdp.privacy import Adjacency
from geomdp.workloads import BoxSecondMoment, Explicit, Means, SecondMoment, Workload
from geomdp.workloads.base import CHUNK_ROWS, Totals
from geomdp.workloads.universes import Records

# Ellipsoid noise on a few answers that determine all answers, with a proof.

#: Certified slack tau (X-GRID). A rounded release uses the ellipsoid found in float64, with all
#: axes 1 + tau times as long. The error of the release is larger by the same factor. The slack
#: leaves room for the rounding errors in the computation of the ellipsoid.
SLACK = 1e-6
#: Largest universe for which all pairs of elements are checked. The distances between all pairs of
#: 4096 points take a second.
MAX_CHECKED = 1 << 12
#: Working precision, in bits, for the residual of an approximate inverse.
RESIDUAL_BITS = 256
#: Number of rows of the matrix of distances that are computed together: at most 16 MB.
ROWS = 512
#: Twice the largest relative error of one rounding in float64.
UNIT = 2.0**-52


@dataclass(frozen=True, eq=False)
class CertifiedRows:
    """Noise on the sums of the r answers at `places`, which determine all m answers.

    `lift` (m, r) maps these entries of a vector of means minus `offset` (m,) to all of it.
    """

    places: IntArray
    noise: Noise
    lift: FloatArray
    offset: FloatArray
    slack: float = SLACK

    def answers(self, noisy: FloatArray) -> FloatArray:
        return np.asarray(self.offset + self.lift @ (noisy - self.offset[self.places]))


def certified_rows(
    workload: Workload,
    root: FloatArray,
    adjacency: Adjacency,
    noise_of: Callable[[FloatArray], Noise],
) -> CertifiedRows | None:
    """Noise of a larger ellipsoid on r answers, proved to hold all their differences; or None."""
    if not can_be_checked(workload):
        return None
    places = independent_rows(root)
    square = root[places] * (1 + SLACK)
    points = workload.evaluate(workload.universe.elements())[:, places]
    if not holds_differences(square, points, adjacency):
        return None
    return lifted(workload, root, places, adjacency, noise_of(square))


def can_be_checked(workload: Workload) -> bool:
    """Whether answers are known to be whole numbers, and all pairs of elements can be checked."""
    size = workload.universe.size
    return size is not None and size <= MAX_CHECKED and workload.whole_answers


def independent_rows(columns: FloatArray) -> IntArray:
    """Indices of r rows that determine all rows of a matrix (m, r) of full rank."""
    pivots = scipy.linalg.qr(columns.T, mode="r", pivoting=True)[1]
    return np.asarray(pivots[: columns.shape[1]], dtype=np.int64)


def lifted(
    workload: Workload,
    columns: FloatArray,
    places: IntArray,
    adjacency: Adjacency,
    noise: Noise,
    slack: float = SLACK,
) -> CertifiedRows:
    """Noise on the answers at `places`; `columns` (m, r) span all answers minus an offset."""
    offset = np.zeros(len(columns))
    if adjacency is Adjacency.REPLACE_ONE:
        offset = answer_hull(workload, adjacency).offset
    lift = np.asarray(np.linalg.solve(columns[places].T, columns.T).T, dtype=np.float64)
    return CertifiedRows(places, noise, lift, offset, slack)


def holds_differences(root: FloatArray, points: FloatArray, adjacency: Adjacency) -> bool:
    """Whether {root u : ||u||_2 <= 1} is proved to hold all differences of whole points (N, r)."""
    pulled = pulled_back(root, points, adjacency)
    if pulled is None:
        return False
    images, error = pulled
    bound = proved_bound(longest_difference(images, adjacency), error, len(root))
    return bool(bound <= 1)


def pulled_back(
    root: FloatArray, points: FloatArray, adjacency: Adjacency
) -> tuple[FloatArray, float] | None:
    """A^-1 p for whole points p (N, r) and the root A, with a bound on Euclidean errors; or None.

    Under replace-one, p is a point minus the first point. Let X be an approximate inverse of A,
    R = I - A X, and v a vector. Then A^-1 v = X v + A^-1 R v and ||A^-1|| <= ||X|| / (1 - ||R||). R
    is computed in ball arithmetic; a bound on the float64 rounding of X v is added.
    """
    if np.linalg.matrix_rank(root) < len(root):
        return None
    inverse, rank = np.linalg.inv(root), len(root)
    with ctx.workprec(RESIDUAL_BITS):
        product = arb_mat(root.tolist()) * arb_mat(inverse.tolist())
        rest = product - arb_mat(
            rank, rank, [int(i == j) for i in range(rank) for j in range(rank)]
        )
        residual = float(sum((x * x for x in rest.entries()), start=rest[0, 0] * 0).sqrt().upper())
    if not residual < 0.5:
        return None
    # A difference of whole numbers is exact if its modulus is below 2^53.
    moved = points - points[0] if adjacency is Adjacency.REPLACE_ONE else points
    rounding = rank * UNIT * np.linalg.norm(np.abs(moved) @ np.abs(inverse).T, axis=1).max()
    solved = 2 * residual * np.linalg.norm(inverse) * np.linalg.norm(moved, axis=1).max()
    return moved @ inverse.T, float(rounding + solved)


def euclidean(first: FloatArray, second: FloatArray) -> FloatArray:
    from scipy.spatial.distance import cdist  # slow import

    return np.asarray(cdist(first, second))


def longest_difference(
    images: FloatArray,
    adjacency: Adjacency,
    metric: Callable[[FloatArray, FloatArray], FloatArray] = euclidean,
) -> float:
    """Largest distance between two rows of `images` (N, r); under add/remove, from a row to 0."""
    if adjacency is Adjacency.ADD_REMOVE:
        return float(metric(images, np.zeros((1, images.shape[1]))).max())
    starts = range(0, len(images), ROWS)
    return max(float(metric(images[i : i + ROWS], images).max()) for i in starts)


def proved_bound(longest: float, error: float, rank: int) -> float:
    """A bound on a distance of points known up to `error`, from its computed value `longest`."""
    # The factor above 1 covers rounding in `longest` and in this bound.
    return (longest + 2 * error) * (1 + 4 * (rank + 8) * UNIT)


# Answers rounded to a unit, for small universes.

#: Let L be the largest l1 norm of an answer vector. The unit is chosen to make L at most 2^28
#: units. Sums of 2^24 records are then exact in float64. Rounding moves an answer or a mean by at
#: most 2^-28 L. For comparison, take Laplace noise for l1 sensitivity 2 L / n. Rounding moves a
#: mean by about a thousandth of the standard deviation of this noise at n epsilon = 10^6, and by a
#: hundredth at n epsilon = 10^7.
NORM_BITS = 28
#: Largest N^2 m for N elements and m queries. All pairs of elements are compared. At this limit,
#: the comparison takes a second.
MAX_PAIRS = 1 << 29
#: The rounding of a record's answers changes each answer by at most 2^-28 times the largest l1 norm
#: of an answer vector. Rounding therefore counts as negligible if the error of the noise is at
#: least this share of that norm.
FAR_ABOVE_UNITS = 2.0**-16


class Measurement(abc.ABC):
    """Answers rounded to a public grid, and noise on this grid or a finer one (X-GRID)."""

    #: Noise is rounded to multiples of 2^-grid.
    grid: int
    #: Share by which the noise was made larger, to cover rounding errors of its parameters.
    slack: float
    #: Largest number of records for which sums are exact.
    capacity: int

    @abc.abstractmethod
    def rounding(self, hull: AffineHull | None) -> FloatArray:
        """Largest change (m,) of means by rounding, after a projection on `hull` if given."""

    @abc.abstractmethod
    def draw(self) -> list[int]:
        """Noise in multiples of 2^-grid, from the random bits of the operating system."""

    @abc.abstractmethod
    def totals(self, records: Records | Iterable[Records] | CountedRecords) -> Totals:
        """Check the records, and return their number and the exact sums that `answers` takes."""

    @abc.abstractmethod
    def answers(self, sums: FloatArray, multiples: list[int], n: int) -> FloatArray:
        """Noisy means (m,) of all answers, from exact sums over n records and noise from `draw`."""


@dataclass(frozen=True, eq=False)
class Units:
    """The answers of all elements, rounded to whole multiples `rows` (N, m) of 2^-`bits`."""

    source: Workload
    bits: int
    rows: FloatArray = field(repr=False)

    @cached_property
    def workload(self) -> Explicit:
        """The rounded queries as a workload with whole answers; its records are element numbers."""
        return Explicit(self.rows.T)

    @property
    def factor(self) -> float:
        """2^bits. Multiplying by this number converts answers, bodies and noise scales to units."""
        return 2.0**self.bits

    def with_noise(self, noise: Noise) -> ScaledAnswers:
        """Measure all answers, with noise that is proved private for sums of `workload`."""
        grid = public_grid(noise)
        return ScaledAnswers(self, RoundedNoise(noise, grid), None)

    def with_rows(self, rows: CertifiedRows | None) -> ScaledAnswers | None:
        """Measure only the answers in `rows`; None if `rows` is None."""
        if rows is None:
            return None
        grid = public_grid(rows.noise)
        return ScaledAnswers(self, RoundedNoise(rows.noise, grid), rows, rows.slack)


def units_of(workload: Workload) -> Units | None:
    """The answers in units; None if whole, of l1 norm 2^28 or more, or of too large a universe."""
    size = workload.universe.size
    if workload.whole_answers or size is None or size > MAX_CHECKED:
        return None
    if size**2 * workload.n_queries > MAX_PAIRS:
        return None
    # The answers of a record are looked up by its element number. Their rounding therefore cannot
    # depend on other records. If a chunk of records were evaluated together, the rounding could
    # depend on the whole chunk.
    answers = workload.evaluate(workload.universe.elements())
    largest = float(np.abs(answers).sum(axis=1).max())
    if not 0 < largest < 2.0**NORM_BITS:
        return None
    bits = NORM_BITS - math.ceil(math.log2(largest))
    return Units(workload, bits, np.rint(answers * 2.0**bits))


def is_upright_box(body: Body) -> bool:
    """Whether a body is known to be a box with edges along the axes: its own bounding box."""
    if isinstance(body, Scaled):
        return is_upright_box(body.body)
    if isinstance(body, LinearImage):
        alone = (np.count_nonzero(body.matrix, axis=0) <= 1).all()
        return bool(alone and (np.count_nonzero(body.matrix, axis=1) <= 1).all()) and (
            is_upright_box(body.body)
        )
    return isinstance(body, Box)


class ScaledAnswers(Measurement):
    """Sums of answers in units, with `noise` proved private on the answers in `rows`, or on all."""

    def __init__(
        self,
        units: Units,
        noise: RoundedVector,
        rows: CertifiedRows | None,
        slack: float = 0.0,
    ) -> None:
        self._units, self._noise, self._rows, self.slack = units, noise, rows, slack
        self.grid = units.bits + noise.grid
        self.capacity = int(LARGEST_SUM // np.abs(units.rows).sum(axis=1).max()) - 1

    def rounding(self, hull: AffineHull | None) -> FloatArray:
        """As in `Measurement`: a mean moves at most as far as an answer of some element."""
        universe, rows = self._units.source.universe, self._rows
        released = self._units.rows
        if rows is not None:
            released = rows.offset + (released - rows.offset)[:, rows.places] @ rows.lift.T
        released = released / self._units.factor
        if hull is not None:
            released = hull.embed(hull.coordinates(released))
        answers = self._units.source.evaluate(universe.elements())
        return np.asarray(np.abs(released - answers).max(axis=0))

    def draw(self) -> list[int]:
        return self._noise.draw()

    def totals(self, records: Records | Iterable[Records] | CountedRecords) -> Totals:
        """Number of records and the sums of all answers (m,), in units."""
        counts = self._counts(records)
        return Totals(int(counts.sum()), counts.astype(np.float64) @ self._units.rows)

    def _counts(self, records: Records | Iterable[Records] | CountedRecords) -> IntArray:
        universe = self._units.source.universe
        if isinstance(records, CountedRecords):
            records.require(universe)
            return records.histogram()
        size = len(self._units.rows)
        counts = np.zeros(size, dtype=np.int64)
        for chunk in universe.chunks(records, CHUNK_ROWS):
            counts += np.bincount(universe.numbers(chunk), minlength=size)
        return counts

    def answers(self, sums: FloatArray, multiples: list[int], n: int) -> FloatArray:
        measured = sums if self._rows is None else sums[self._rows.places]
        if (measured != np.rint(measured)).any():
            raise ArithmeticError("sums of units must be whole numbers")
        unit = 1 << self._noise.grid
        pairs = zip(measured.tolist(), multiples, strict=True)
        noisy = np.array([(int(s) * unit + j) / (n * unit) for s, j in pairs])
        answers = noisy if self._rows is None else self._rows.answers(noisy)
        return np.asarray(answers / self._units.factor)


def far_above_rounding(workload: Workload, noise: float) -> bool:
    """Whether rounding of answers is negligible against an error `noise` of the means."""
    return workload.whole_answers or noise >= FAR_ABOVE_UNITS * workload.l1_radius()


# Exact sums of rounded reals and of their products, as whole numbers that may exceed 2^53. Reals in
# [-1, 1] are rounded towards zero to multiples of 2^-40, so sums of products are multiples of
# 2^-80. They are stored in this unit, as digits in base 2^20 that float64 holds exactly.

# Exact sums of rounded reals and of their products, as whole numbers that may exceed 2^53. Reals in
# [-1, 1] are rounded towards zero to multiples of 2^-40, so sums of products are multiples of
# 2^-80. They are stored in this unit, as digits in base 2^20 that float64 holds exactly.

#: Bits after the binary point of a rounded real. Rounding moves a real by less than 10^-12. For
#: 1-DP, a mean of fewer than 10^11 records needs noise of a scale above 10^-12.
REAL_BITS = 40
#: Bits of a digit, and number of digits of a sum. The last digit is not limited to 20 bits. For n
#: records, it is at most about n.
DIGIT_BITS, DIGITS = 20, 5
#: Number of rows that are added up at a time in float64. Products of two digits are at most 2^40.
#: So a sum of 2^12 products is a whole number of at most 2^52, which is exact in any order of
#: summation.
EXACT_ROWS = 1 << 12

_BASE = 1 << DIGIT_BITS


class WideSums:
    """`count` whole-number sums that may exceed 2^53, as digits in base 2^20."""

    def __init__(self, count: int) -> None:
        self._digits: IntArray = np.zeros((DIGITS, count), dtype=np.int64)

    def add(self, numbers: FloatArray, place: int) -> None:
        """Add whole `numbers` (count,), of modulus at most 2^53, times 2^(20 `place`)."""
        digits = self._digits
        digits[place] += numbers.astype(np.int64)
        # Shifts round down, also for negative numbers. So the loop leaves every digit except the
        # last in [0, 2^20).
        for i in range(place, DIGITS - 1):
            digits[i + 1] += digits[i] >> DIGIT_BITS
            digits[i] &= _BASE - 1

    def digits(self) -> FloatArray:
        """All digits (5 count,), the least significant digits of all sums first."""
        return self._digits.astype(np.float64).ravel()


def whole_numbers(digits: FloatArray) -> list[int]:
    places = digits.reshape(DIGITS, -1)
    if (places != np.rint(places)).any():
        raise ArithmeticError("digits of exact sums must be whole numbers")
    columns = zip(*places.tolist(), strict=True)
    return [sum(int(x) << DIGIT_BITS * i for i, x in enumerate(column)) for column in columns]


def fixed_point(reals: FloatArray) -> FloatArray:
    """Reals of modulus at most 1 in units of 2^-40, rounded towards zero: no modulus grows."""
    return np.trunc(reals * 2.0**REAL_BITS)


def add_numbers(sums: WideSums, rows: FloatArray) -> None:
    """Add the column sums of `rows` (n, count), from `fixed_point`, in units of 2^-80."""
    for start in range(0, len(rows), EXACT_ROWS):
        sums.add(rows[start : start + EXACT_ROWS].sum(axis=0), REAL_BITS // DIGIT_BITS)


def add_products(sums: WideSums, rows: FloatArray) -> None:
    """Add the products x_i x_j, i <= j, of every row x of `rows` (n, d), from `fixed_point`."""
    above = np.triu_indices(rows.shape[1])
    for start in range(0, len(rows), EXACT_ROWS):
        block = rows[start : start + EXACT_ROWS]
        high = np.floor(block / _BASE)
        low = block - high * _BASE
        mixed = high.T @ low
        for place, part in enumerate((low.T @ low, mixed + mixed.T, high.T @ high)):
            sums.add(part[above], place)


# Exact sums of entries of real records, or of products of entries.


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
