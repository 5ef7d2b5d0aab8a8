"""What one record can change in the sums of answers, and how these sums become exact."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

import numpy as np
from flint import arb

from geomdp._numerics.linalg import AffineHull, svec
from geomdp._typing import FloatArray, IntArray
from geomdp.bodies import Body, neighbour_body
from geomdp.data.tallies import CountedRecords, Counts, RecordCounts, Table
from geomdp.mechanisms.base import (
    LARGEST_SUM,
    AnyRecords,
    answer_hull,
    checked_workload,
    l1_sensitivity,
    l2_sensitivity,
    quotients,
    totals_of,
)
from geomdp.mechanisms.strategies.design import Measurement
from geomdp.noise import Noise
from geomdp.noise.few_queries import GeometricNoise, LatticeBoxNoise
from geomdp.noise.gaussian import GaussianNoise, ResidualNoise, isotropic, residual_numbers
from geomdp.noise.knorm import MappedNoise, sum_of_images
from geomdp.noise.rounding import (
    Computable,
    Draw,
    Numbers,
    Rounded,
    Vector,
    exact_numbers,
    grid_for,
    public_grid,
)
from geomdp.privacy import Adjacency
from geomdp.workloads import (
    BoxSecondMoment,
    Explicit,
    Means,
    SecondMoment,
    Workload,
    explicit_answers,
)
from geomdp.workloads.base import CHUNK_ROWS, Totals
from geomdp.workloads.structure import Residuals
from geomdp.workloads.tables import COUNT_ROWS, ProductQueries, TableQueries
from geomdp.workloads.universes import Universe

# What one record can change.

#: Largest number of answers that are listed: N m for N elements and m queries.
MAX_ANSWERS = 1 << 22
#: Differences of whole numbers of modulus below this, and all units of them, are exact in float64.
LARGEST_ANSWER = 2.0**52


@dataclass(frozen=True, eq=False)
class Lattice:
    """Units (m,) that divide all changes of the sums, and the largest changes (m,) in units."""

    units: FloatArray = field(repr=False)
    counts: IntArray = field(repr=False)


@dataclass(frozen=True, eq=False)
class Change:
    """What one record can change in the sums of answers to a workload."""

    workload: Workload
    adjacency: Adjacency

    @cached_property
    def l1(self) -> float:
        """Upper bound D_1 on the l1 norm of a change; ``ValueError`` if it is 0 or infinite."""
        return l1_sensitivity(self.workload, self.adjacency)

    @cached_property
    def l2(self) -> float:
        """Upper bound D_2 on the l2 norm of a change, as `l1`."""
        return l2_sensitivity(self.workload, self.adjacency)

    @cached_property
    def hull(self) -> AffineHull:
        """The public subspace that contains the mean answers of every data set."""
        return answer_hull(self.workload, self.adjacency)

    @property
    def body(self) -> Body:
        """The convex hull of all changes."""
        return neighbour_body(self.workload, self.adjacency)

    @cached_property
    def lattice(self) -> Lattice | None:
        """The lattice with the largest units, from all answers; None if these are many or large."""
        if not checked_workload(self.workload).whole_answers:
            raise ValueError(
                f"workload must have whole numbers as answers, got {self.workload!r}: if its "
                "answers are multiples of a unit, divide the queries by that unit"
            )
        size = self.workload.universe.size
        if size is None or size * self.workload.n_queries > MAX_ANSWERS:
            return None
        answers = explicit_answers(self.workload)
        if np.abs(answers).max() >= LARGEST_ANSWER:
            return None
        rows = answers.astype(np.int64)
        if self.adjacency is Adjacency.REPLACE_ONE:
            divisors = np.gcd.reduce(rows - rows[0], axis=0)
            largest = rows.max(axis=0) - rows.min(axis=0)
        else:
            divisors, largest = np.gcd.reduce(rows, axis=0), np.abs(rows).max(axis=0)
        units = np.maximum(1, divisors)
        return Lattice(units.astype(np.float64), largest // units)


# How sums become exact.


@dataclass(frozen=True, eq=False)
class ExactSums:
    """Sums of whole answers, which are exact below 2^53. Base of all other exact sums (X-GRID)."""

    workload: Workload

    #: Sums are in units of 2^-bits.
    bits = 0

    @property
    def step(self) -> int:
        """A power of two. Sums are whole multiples of 1 / step."""
        return 1

    @property
    def capacity(self) -> int:
        """Largest number of records with exact sums."""
        return math.ceil(LARGEST_SUM / Fraction(self.workload.l1_radius())) - 1

    def totals(self, records: AnyRecords) -> Totals:
        """Check the records, and return their number and their exact sums."""
        return totals_of(self.workload, records)

    def grid(self, noise: Noise) -> int:
        """The k of the grid of 2^-k to which noise on these sums is rounded."""
        return 0 if isinstance(noise, GeometricNoise | LatticeBoxNoise) else public_grid(noise)

    def numbers(self, noise: Noise) -> list[Numbers]:
        """Noise on these sums, in independent parts."""
        return [exact_numbers(noise)]

    def rounded(self, noise: Noise) -> Rounded:
        """Noise on these sums, rounded to `grid`."""
        return Rounded(self.numbers(noise), self.grid(noise))

    def quotients(self, sums: FloatArray, multiples: list[int], grid: int, n: int) -> FloatArray:
        """(sums + multiples 2^-grid) / n: the exact quotients, rounded once."""
        return quotients(sums, multiples, 1 << grid, n, self.step)

    def restored(self, means: FloatArray) -> FloatArray:
        """Means of the answers of `workload` (m,), from means of these sums."""
        return means

    def rounding(self, rows: FewRows | None, hull: AffineHull | None) -> FloatArray:
        """Largest change (m,) of means by rounding, if `rows` are measured, projected on `hull`."""
        del rows, hull
        return np.zeros(self.workload.n_queries)


def counts_of(
    universe: Universe, records: AnyRecords, rows: int, tables: Sequence[Table]
) -> Iterator[Counts]:
    """Counts of all records with the given `tables`, or of one chunk of `rows` after the other."""
    if isinstance(records, CountedRecords):
        records.require(universe)
        yield records.with_tables(tables)
        return
    for chunk in universe.chunks(records, rows):
        yield RecordCounts(universe, chunk)


#: The largest l1 norm L of an answer vector is made at most 2^28 units. Sums of 2^24 records are
#: then exact in float64, and rounding moves a mean by at most 2^-28 L.
NORM_BITS = 28
#: Largest universe, and largest N^2 m for N elements and m queries, for which all pairs of elements
#: are compared, in a second.
MAX_CHECKED, MAX_PAIRS = 1 << 12, 1 << 29
#: Rounding counts as negligible if the error of the noise is at least this share of L.
FAR_ABOVE_UNITS = 2.0**-16


@dataclass(frozen=True, eq=False)
class Units(ExactSums):
    """The answers of all elements, rounded to whole multiples `rows` (N, m) of 2^-`bits`."""

    rows: FloatArray = field(repr=False)
    bits: int

    @cached_property
    def answers(self) -> Explicit:
        """The rounded queries as a workload with whole answers; its records are element numbers."""
        return Explicit(self.rows.T)

    @property
    def factor(self) -> float:
        """2^bits. Multiplying by this number converts answers, bodies and noise scales to units."""
        return 2.0**self.bits

    @property
    def capacity(self) -> int:
        return int(LARGEST_SUM // np.abs(self.rows).sum(axis=1).max()) - 1

    def totals(self, records: AnyRecords) -> Totals:
        # The answers of a record are looked up by its element number, so that their rounding cannot
        # depend on other records of its chunk.
        counts = np.zeros(len(self.rows), dtype=np.int64)
        for part in counts_of(self.workload.universe, records, CHUNK_ROWS, ()):
            counts += part.histogram()
        return Totals(int(counts.sum()), counts.astype(np.float64) @ self.rows)

    def restored(self, means: FloatArray) -> FloatArray:
        return np.asarray(means / self.factor)

    def rounding(self, rows: FewRows | None, hull: AffineHull | None) -> FloatArray:
        # A mean moves at most as far as an answer of some element.
        moved = self.restored(self.rows if rows is None else rows.recomputed(self.rows))
        if hull is not None:
            moved = hull.embed(hull.coordinates(moved))
        exact = self.workload.evaluate(self.workload.universe.elements())
        return np.asarray(np.abs(moved - exact).max(axis=0))


def units_of(workload: Workload) -> Units | None:
    """The answers in units; None if of l1 norm 2^28 or more, or of too large a universe."""
    size = workload.universe.size
    if size is None or size > MAX_CHECKED or size**2 * workload.n_queries > MAX_PAIRS:
        return None
    answers = workload.evaluate(workload.universe.elements())
    largest = float(np.abs(answers).sum(axis=1).max())
    if not 0 < largest < 2.0**NORM_BITS:
        return None
    bits = NORM_BITS - math.ceil(math.log2(largest))
    return Units(workload, np.rint(answers * 2.0**bits), bits)


# Exact sums of rounded reals and of their products, as whole numbers that may exceed 2^53. Reals in
# [-1, 1] are rounded towards zero to multiples of 2^-40, so sums of products are multiples of
# 2^-80. They are stored in this unit, as digits in base 2^20 that float64 holds exactly.

#: Bits after the binary point of a rounded real.
REAL_BITS = 40
#: Bits of a digit, and number of digits of a sum. For n records, the last digit is at most about n.
DIGIT_BITS, DIGITS = 20, 5
#: Number of rows that are added up at a time in float64: 2^12 products of digits, at most 2^52.
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
        # Shifts round down, also for negative numbers: all digits but the last are in [0, 2^20).
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


def has_real_records(workload: Workload) -> bool:
    """Whether answers are entries of real records, or constants times products of two entries."""
    return isinstance(workload, Means | SecondMoment | BoxSecondMoment)


class RealRecords(ExactSums):
    """Sums of records x in a ball or a cube, or of products x_i x_j, in multiples of 2^-80.

    Entries are rounded towards zero to multiples of 2^-40, so rounded records stay in the body and
    the noise needs no slack for it.
    """

    # The last digit of a sum is at most about the number of records, and must be below 2^53.
    capacity = 1 << 52

    @property
    def order(self) -> int | None:
        """d for products of two entries, with off-diagonals times sqrt(2) (svec); else None."""
        workload = self.workload
        return workload.d if isinstance(workload, SecondMoment | BoxSecondMoment) else None

    @property
    def _stretch(self) -> FloatArray:
        if self.order is None:
            return np.ones(self.workload.n_queries)
        return svec(np.ones((self.order, self.order)))

    def grid(self, noise: Noise) -> int:
        del noise
        return 2 * REAL_BITS

    def numbers(self, noise: Noise) -> list[Numbers]:
        """Noise on answers as noise on sums of entries x_i, or of x_i x_j with i <= j."""
        if isinstance(noise, GaussianNoise):  # it fills R^m, so it needs no basis
            found = isotropic(noise.dimension, noise.scale)
        else:
            found = exact_numbers(noise)
        balls = found.balls
        return [Numbers(balls if self.order is None else matrix_entries(balls, self.order))]

    def empty(self) -> WideSums:
        """Sums before any record is added: all 0."""
        return WideSums(self.workload.n_queries)

    def add(self, sums: WideSums, chunk: FloatArray) -> None:
        """Add a chunk of valid records (b, d) to `sums`."""
        rows = fixed_point(chunk)
        if self.order is None:
            add_numbers(sums, rows)
        else:
            add_products(sums, rows)

    def totals(self, records: AnyRecords) -> Totals:
        if isinstance(records, CountedRecords):
            raise ValueError(
                "counts of records are not accepted for records of real numbers: give the records"
            )
        count, sums = 0, self.empty()
        for chunk in self.workload.universe.chunks(records, EXACT_ROWS):
            count += len(chunk)
            self.add(sums, chunk)
        return Totals(count, sums.digits())

    def quotients(self, sums: FloatArray, multiples: list[int], grid: int, n: int) -> FloatArray:
        size = n << grid
        pairs = zip(whole_numbers(sums), multiples, strict=True)
        return np.array([(s + j) / size for s, j in pairs])

    def restored(self, means: FloatArray) -> FloatArray:
        return np.asarray(means * self._stretch)

    def rounding(self, rows: FewRows | None, hull: AffineHull | None) -> FloatArray:
        """2^-40 for entries, 2^-39 for products, sqrt(2) 2^-39 if scaled by sqrt(2)."""
        del rows, hull  # the affine hull of the answers is R^m
        return self._stretch * 2.0 ** (-REAL_BITS + (self.order is not None))


def matrix_entries(on_svec: Computable, order: int) -> Computable:
    """A vector in svec coordinates as entries of a matrix, whose sums can be exact, row by row."""
    diagonal = [i == j for i in range(order) for j in range(i, order)]

    def entries(draw: Draw) -> Vector:
        root = arb(2).sqrt()
        pairs = zip(diagonal, on_svec(draw), strict=True)
        return [x if on_it else x / root for on_it, x in pairs]

    return entries


def exact_sums(workload: Workload) -> ExactSums | None:
    """The exact sums of answers, rounded if needed; None if the universe is too large for that."""
    if workload.whole_answers:
        return ExactSums(workload)
    if has_real_records(workload):
        return RealRecords(workload)
    return units_of(workload)


# Sums of other numbers than answers, from which all answers follow.


@dataclass(frozen=True, eq=False)
class MeasuredSums(ExactSums):
    """Sums of the measurements of a strategy; answers are images of them plus a public part (m,).

    Entries of the measurements of one record, indicators, shares or signs, have modulus at most 1.
    """

    measurements: Sequence[Measurement]
    public_part: FloatArray = field(repr=False)

    @cached_property
    def step(self) -> int:
        return max(part.unit for part in self.measurements)

    @property
    def capacity(self) -> int:
        return (LARGEST_SUM - 1) // self.step

    def totals(self, records: AnyRecords) -> Totals:
        tables = [part.table for part in self.measurements if part.table is not None]
        exact = [part.sums for part in self.measurements if part.sums is not None]
        count, sums = 0, np.zeros(sum(part.matrix.shape[1] for part in self.measurements))
        for counts in counts_of(self.workload.universe, records, COUNT_ROWS, tables):
            count += counts.count
            sums += np.concatenate([known(counts) for known in exact])
        return Totals(count, sums)

    def grid(self, noise: Noise) -> int:
        return max(self.step.bit_length() - 1, *map(public_grid, _parts(noise)))

    def numbers(self, noise: Noise) -> list[Numbers]:
        return [exact_numbers(part) for part in _parts(noise)]

    def restored(self, means: FloatArray) -> FloatArray:
        maps = [part.matrix for part in self.measurements]
        ends = np.cumsum([matrix.shape[1] for matrix in maps])[:-1]
        return self.public_part + sum_of_images(maps, np.split(means[:, None], ends))[:, 0]


def _parts(noise: Noise) -> list[Noise]:
    assert isinstance(noise, MappedNoise)
    return [part.noise for part in noise.parts]


@dataclass(frozen=True, eq=False)
class ResidualSums(ExactSums):
    """Coordinates of the residuals of tables, whole numbers that a record changes by at most 1."""

    workload: TableQueries | ProductQueries
    residuals: Residuals

    capacity = LARGEST_SUM - 1

    def totals(self, records: AnyRecords) -> Totals:
        if isinstance(records, CountedRecords):
            counted = records.cell_counts(self.residuals.cells)
        else:
            counted = self.residuals.cells.cell_counts(records)
        return Totals(counted.count, self.residuals.of_counts(counted.sums[None])[0])

    def grid(self, noise: Noise) -> int:
        """The grid for residuals; answers need not be multiples of its unit."""
        assert isinstance(noise, ResidualNoise)
        return grid_for(float(noise.scales[noise.scales > 0].min()))

    def numbers(self, noise: Noise) -> list[Numbers]:
        assert isinstance(noise, ResidualNoise)
        return residual_numbers(noise)

    def restored(self, means: FloatArray) -> FloatArray:
        return np.asarray(self.residuals.to_answers(means[None])[0])


# Exact sums with noise.


@dataclass(frozen=True, eq=False)
class FewRows:
    """Noise on the sums of the r answers at `places`, which determine all m answers.

    `lift` (m, r) maps these entries of a vector of means minus `offset` (m,) to all of it.
    """

    places: IntArray
    noise: Noise
    lift: FloatArray
    offset: FloatArray

    def recomputed(self, rows: FloatArray) -> FloatArray:
        """Vectors of means (N, m), computed from their entries at `places`."""
        return np.asarray(self.offset + (rows - self.offset)[:, self.places] @ self.lift.T)


@dataclass(frozen=True, eq=False)
class ExactPath:
    """Exact sums, and proved and rounded noise on all of them or on those of a few `rows`.

    The noise is larger by `slack`, for rounding errors. An unseeded release divides both by n.
    """

    sums: ExactSums
    rounded: Rounded
    slack: float = 0.0
    rows: FewRows | None = None

    @property
    def grid(self) -> int:
        """Noise on sums of answers is rounded to multiples of 2^-grid."""
        return self.rounded.grid + self.sums.bits

    def means(self, sums: FloatArray, multiples: list[int], n: int) -> FloatArray:
        """Noisy means (m,) of all answers, from exact sums over n records and rounded noise."""
        rows, grid = self.rows, self.rounded.grid
        if rows is None:
            return self.sums.restored(self.sums.quotients(sums, multiples, grid, n))
        measured = self.sums.quotients(sums[rows.places], multiples, grid, n)
        noisy = rows.offset + rows.lift @ (measured - rows.offset[rows.places])
        return self.sums.restored(np.asarray(noisy))
