"""Answers rounded to a unit, for unseeded releases of real-valued answers on small universes."""

from __future__ import annotations

import abc
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from geomdp._numerics.linalg import AffineHull
from geomdp._typing import FloatArray, IntArray
from geomdp.bodies import Body, Box, LinearImage, Scaled
from geomdp.data.counting.tallies import CountedRecords
from geomdp.mechanisms.additive_noise.certified_rows import MAX_CHECKED, CertifiedRows
from geomdp.mechanisms.quotients import LARGEST_SUM
from geomdp.noise import Noise
from geomdp.noise.exact import RoundedNoise, RoundedVector, public_grid
from geomdp.workloads import Explicit, Workload
from geomdp.workloads.base import CHUNK_ROWS, Totals
from geomdp.workloads.universe.universes import Records

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
