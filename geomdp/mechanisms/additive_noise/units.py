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
    """Answers rounded record by record to a public grid, and noise that makes the sums private.

    Sums of rounded answers are exact. The noise is rounded to the same grid, or to a finer grid
    that contains this grid. The output is therefore the correctly rounded output of a mechanism
    whose privacy is proved (X-GRID).
    """

    #: Noise is rounded to multiples of 2^-grid.
    grid: int
    #: Share by which the noise was made larger, to cover rounding errors of its parameters.
    slack: float
    #: Largest number of records for which sums are exact.
    capacity: int

    @abc.abstractmethod
    def rounding(self, hull: AffineHull | None) -> FloatArray:
        """Largest distance of the mean of rounded answers from the true mean, for each query (m,).

        If `hull` is given, the means of rounded answers are first projected on it.
        """

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
    """The answers of all elements of a universe, rounded to whole multiples of 2^-bits.

    Parameters
    ----------
    source : Workload
        The workload.
    bits : int
        The unit is 2^-bits.
    rows : (N, m) array
        Answers of each element in units, rounded to whole numbers.
    """

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
    """Round the answers of a real-valued workload to units.

    The result is None in any of these cases:

    * The answers are whole numbers already, or all 0.
    * An answer vector has l1 norm 2^28 or more. Answers would then be rounded to whole numbers or
      more coarsely.
    * The universe is infinite or has more than 2^12 elements.
    * N^2 m is above 2^29 for N elements and m queries.
    """
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
    """Sums of answers in units, with noise that is proved private for these sums.

    Parameters
    ----------
    units : Units
        The rounded answers.
    noise : RoundedVector
        Rounded noise on the sums, in units.
    rows : CertifiedRows or None
        The answers that get noise and determine all other answers. If None, all answers get noise.
    slack : float
        Share by which the noise was made larger.
    """

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
        """See `Measurement`. A mean moves at most as far as an answer of some element.

        The bound also covers answers that are computed from the rounded answers in `rows`.
        """
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
        """Noise on the sums, in multiples of 2^-grid."""
        return self._noise.draw()

    def totals(self, records: Records | Iterable[Records] | CountedRecords) -> Totals:
        """Number of records and the sums of all answers (m,), in units."""
        counts = self._counts(records)
        return Totals(int(counts.sum()), counts.astype(np.float64) @ self._units.rows)

    def _counts(self, records: Records | Iterable[Records] | CountedRecords) -> IntArray:
        """Array (N,) of the number of times that each element occurs."""
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
        """Noisy means (m,) of all answers, on the original scale of the queries."""
        measured = sums if self._rows is None else sums[self._rows.places]
        if (measured != np.rint(measured)).any():
            raise ArithmeticError("sums of units must be whole numbers")
        unit = 1 << self._noise.grid
        pairs = zip(measured.tolist(), multiples, strict=True)
        noisy = np.array([(int(s) * unit + j) / (n * unit) for s, j in pairs])
        answers = noisy if self._rows is None else self._rows.answers(noisy)
        return np.asarray(answers / self._units.factor)


def far_above_rounding(workload: Workload, noise: float) -> bool:
    """Whether rounding of answers is negligible if the noise causes the error `noise` in the means.

    The check needs no set-up of a mechanism.
    """
    return workload.whole_answers or noise >= FAR_ABOVE_UNITS * workload.l1_radius()
