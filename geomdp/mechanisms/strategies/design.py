"""A design: the private measurements from which answers are computed, and their error."""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Protocol, runtime_checkable

import numpy as np

from geomdp._numerics.randomness import PUBLIC_SEED
from geomdp._typing import FloatArray
from geomdp._validation import positive
from geomdp.bodies import SimplexDifference
from geomdp.data.tallies import Counts
from geomdp.geometry.sampling.samplers import ExactSampler
from geomdp.noise import KNormNoise, LaplaceNoise, Noise, Part
from geomdp.noise.mapped import Columns, Map, MappedNoise, sum_of_images
from geomdp.privacy import Adjacency
from geomdp.privacy.definitions import checked_adjacency
from geomdp.workloads import Workload

#: Largest accepted length of a row of W - sum of R_i C_i (see `Design._rebuilt`). The unit is the
#: length of the same row of W, plus the standard deviation of the noise on the answer at
#: epsilon = 1. This is an allowance for rounding errors: a few hundred units in the last place of
#: float64. Two answers can have the same noise, and the noise cancels when they are subtracted. A
#: longer row could then reveal the records.
ROUNDING = 1e-13
#: Upper bound on the share by which rounding of the noise scales can increase the privacy loss.
OVERSPENT = Fraction(1, 2**40)
#: Number of random Gaussian vectors from whose products with a row its length is estimated. The
#: probability that all 32 products are below a tenth of the length is below 1e-35.
WEIGHTS = 32
#: Real entries of a strategy are rounded to multiples of 2^-24. The change is less than the
#: tolerance of the search for the entries. Sums over 2^29 records stay exact in float64.
ENTRY_UNIT = 2**24

#: A function from counts of valid records to the exact float64 sums C h (p,) of a `Measurement`.
ExactSums = Callable[[Counts], FloatArray]


@dataclass(frozen=True, eq=False)
class Measurement:
    """One private measurement C h of the histogram h, and its contribution R C h to the answers."""

    #: The columns of C (p, b) for b elements, multiples of 1 / `unit`. For noise on the counts of
    #: cells they add up to exactly 1.
    rows: Columns
    #: R (m, p).
    matrix: Map
    #: The noise on C h for a given epsilon.
    noise: Callable[[float], Noise]
    #: Largest changes of C h between neighbours, in the norm of the noise, for one or more cases.
    changes: FloatArray | None = None
    unit: int = 1
    sums: ExactSums | None = None
    #: The columns of the table that is measured, if it is one.
    table: tuple[int, ...] | None = None


def exact_loss(measured: Sequence[Measurement], noises: Sequence[Noise]) -> Fraction | None:
    """Privacy loss of independent noises on measurements, computed exactly; None if not known.

    It is the largest sum over measurements of change times rate over the cases of
    `Measurement.changes`. The rate is 1 / scale for Laplace noise, and epsilon for K-norm noise.
    """
    cases: list[Fraction] = [Fraction(0)]
    for part, noise in zip(measured, noises, strict=True):
        if part.changes is None:
            return None
        match noise:
            case LaplaceNoise():
                rate = 1 / Fraction(noise.scale)
            case KNormNoise():
                rate = Fraction(noise.epsilon)
            case _:
                return None
        own = [Fraction(change) * rate for change in part.changes.tolist()]
        count = max(len(own), len(cases))
        cases = [cases[i % len(cases)] + own[i % len(own)] for i in range(count)]
    return max(cases)


@dataclass(frozen=True, eq=False)
class Design:
    """Linear measurements of the records with independent noise, and the answers from them."""

    name: str
    #: E ||noise||_2^2 at epsilon = 1.
    energy: float
    #: Answers (b, m) of some elements, for which `Measurement.rows` has the columns.
    answers: FloatArray
    adjacency: Adjacency
    measure: Callable[[], Sequence[Measurement]]

    def __post_init__(self) -> None:
        checked_adjacency(self.adjacency)

    @cached_property
    def measurements(self) -> Sequence[Measurement]:
        return self.measure()

    def noise(self, epsilon: float) -> MappedNoise:
        """The noise on the sums of answers, whose scales, rounded to floats, spend at most epsilon.

        ``ValueError`` if the measurements do not determine every answer.
        """
        self.check_answers()
        return self._noise(positive(epsilon, "epsilon"))

    def _noise(self, epsilon: float) -> MappedNoise:
        measured, affordable = self.measurements, epsilon
        noises = [part.noise(affordable) for part in measured]
        # Where needed, the scales are computed for an epsilon lower by a few parts in 2^50.
        while (loss := exact_loss(measured, noises)) is not None and loss > Fraction(epsilon):
            if loss > (1 + OVERSPENT) * Fraction(epsilon):
                raise ArithmeticError(
                    f"the measurements cost epsilon {float(loss)!r} and must cost at most "
                    f"{epsilon!r}"
                )
            affordable *= 1 - 2.0**-50
            noises = [part.noise(affordable) for part in measured]
        return MappedNoise([Part(z, p.matrix) for z, p in zip(noises, measured, strict=True)])

    def check_answers(self) -> None:
        """``ValueError`` if the measurements do not determine all answers: W = sum of R_i C_i."""
        _ = self._rebuilt

    @cached_property
    def _rebuilt(self) -> bool:
        """True, or the error of `check_answers` is raised. A check that passes runs only once."""
        # If W differs, the product of the difference with the histogram is released without noise.
        # Under replace-one it may differ by a constant for each query, because the number of
        # records is public: the weights of the elements then add up to 0.
        weights = np.random.default_rng(PUBLIC_SEED).standard_normal((len(self.answers), WEIGHTS))
        if self.adjacency is Adjacency.REPLACE_ONE:
            weights -= weights.mean(axis=0)
        rebuilt = sum_of_images(
            (part.matrix for part in self.measurements),
            (part.rows @ weights for part in self.measurements),
        )
        missing = self.answers.T @ weights - rebuilt
        deviations = np.sqrt(self._noise(1.0).variances())
        allowed = ROUNDING * (deviations + np.linalg.norm(self.answers, axis=0))
        # With `>` instead of `not <=`, NaN would pass.
        if not (np.abs(missing).max(axis=1) <= allowed).all():
            raise ValueError("strategy must determine all answers of the workload")
        return True


@runtime_checkable
class Strategy(Protocol):
    """A family of designs, and a search for the best one of the family for a workload."""

    def design(self, workload: Workload, adjacency: Adjacency) -> Design:
        """The best design for `workload`; ``ValueError`` if the family has none."""
        ...


# Noise on measurements, and on the counts of cells of a partition of the universe.


def laplace_on(count: int, scale: float) -> Callable[[float], Noise]:
    """Independent Laplace noise of scale `scale` / epsilon on `count` sums, for each epsilon."""
    return lambda epsilon: LaplaceNoise(count, scale / epsilon)


class CellNoise(abc.ABC):
    """The noise on the counts of the cells of a partition of the universe."""

    @abc.abstractmethod
    def changes(self, adjacency: Adjacency) -> FloatArray:
        """Largest change (1,) of the counts between neighbours, in the norm of the noise."""

    @abc.abstractmethod
    def variance(self, cells: int, adjacency: Adjacency) -> float:
        """Variance at epsilon = 1 along a unit vector, of sum 0 under replace-one."""

    @abc.abstractmethod
    def noise(self, cells: int, epsilon: float, adjacency: Adjacency) -> Noise:
        """The noise that makes the counts (cells,) epsilon-DP."""

    def spending(self, share: float, cells: int, adjacency: Adjacency) -> Callable[[float], Noise]:
        """The noise on the counts (cells,) that spends the share `share` of each epsilon."""
        return lambda epsilon: self.noise(cells, epsilon * share, adjacency)


@dataclass(frozen=True)
class LaplaceCells(CellNoise):
    """Independent noise Lap(D / epsilon) on every cell, D = 2 (replace-one) or 1 (add/remove)."""

    def changes(self, adjacency: Adjacency) -> FloatArray:
        return np.array([_l1_change(adjacency)])

    def variance(self, cells: int, adjacency: Adjacency) -> float:
        del cells
        return 2 * _l1_change(adjacency) ** 2

    def noise(self, cells: int, epsilon: float, adjacency: Adjacency) -> LaplaceNoise:
        return LaplaceNoise(cells, _l1_change(adjacency) / positive(epsilon, "epsilon"))


@dataclass(frozen=True)
class SimplexCells(CellNoise):
    """K-norm noise on the counts of cells; K is the hull of changes between neighbours (X-SIM).

    Under replace-one K is the difference body of a simplex, of dimension r = cells - 1, and the
    variance is 4 (2 r + 1) / (r + 2). Under add/remove K is the l1 ball, as for `LaplaceCells`.
    """

    def changes(self, adjacency: Adjacency) -> FloatArray:
        # Between neighbours the counts change by a point of the simplex or a difference of two
        # points.
        del adjacency
        return np.array([1.0])

    def variance(self, cells: int, adjacency: Adjacency) -> float:
        if checked_adjacency(adjacency) is Adjacency.ADD_REMOVE:
            return LaplaceCells().variance(cells, adjacency)
        # Let U be a uniform point of the body. The variance of K-norm noise is
        # (r + 1)(r + 2) E ||U||^2 / r, and E ||U||^2 / r = 4 (2 r + 1) / ((r + 1)(r + 2)^2); see
        # `SimplexDifference`.
        return 4 * (2 * cells - 1) / (cells + 1)

    def noise(self, cells: int, epsilon: float, adjacency: Adjacency) -> Noise:
        if checked_adjacency(adjacency) is Adjacency.ADD_REMOVE:
            return LaplaceCells().noise(cells, epsilon, adjacency)
        body = SimplexDifference.at_units(cells)
        return KNormNoise(body, epsilon, ExactSampler(body))


def _l1_change(adjacency: Adjacency) -> float:
    """Largest l1 change of the counts of a partition between neighbours."""
    return 2.0 if checked_adjacency(adjacency) is Adjacency.REPLACE_ONE else 1.0
