"""A design: what is measured privately so that the answers follow from it, and at what error."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Protocol

import numpy as np

from geomdp._numerics.seeds import PUBLIC_SEED
from geomdp._typing import FloatArray
from geomdp._validation import positive
from geomdp.bodies import SimplexDifference
from geomdp.data.counting.record_counts import Counts
from geomdp.geometry.sampling.samplers import ExactSampler
from geomdp.noise import KNormNoise, LaplaceNoise, MappedNoise, Noise, Part
from geomdp.noise.mapped import Columns, Map, sum_of_images
from geomdp.privacy import Adjacency
from geomdp.privacy.definitions import checked_adjacency
from geomdp.workloads import Workload

#: Largest difference between an answer and what the measurements rebuild of it, as a share of the
#: standard deviation of that answer's noise at epsilon = 1: the noise does not cover the
#: difference, so this is about the share of epsilon by which the privacy loss is understated.
MISFIT = 1e-8
#: Rounding of an answer, as a share of its size: a few hundred units in the last place of float64.
ROUNDING = 1e-13
#: Random weights of the elements that a check tries: a difference is overlooked if its products
#: with all of them are small, which for Gaussian weights and a tenth has probability 1e-35.
WEIGHTS = 32
#: Real entries of a strategy are rounded to multiples of 2^-24: they change by less than the
#: tolerance of the search that found them, and sums over 2^29 records stay exact in float64.
ENTRY_UNIT = 2**24

#: C h from the counts of valid records: (p,) sums, exact in float64.
ExactSums = Callable[[Counts], FloatArray]


@dataclass(frozen=True, eq=False)
class Measurement:
    """One private measurement C h of the histogram h, and what the answers take from it.

    Parameters
    ----------
    rows : (p, b) array or sparse array
        C on b of the elements: column x is what a record x adds to the measurement.
    matrix : (m, p) array, sparse array or `ImplicitMap`
        R: the measurement adds R C h to the sums of the answers.
    noise : callable
        epsilon -> the noise (p,) that makes this measurement private with its share of epsilon.
    changes : (c,) array, optional
        How much C h can change between neighbours in each of c cases that cover all pairs of them
        (one case for all where c = 1): an exact bound on its l1 norm with Laplace noise, on its
        gauge with K-norm noise. None if that is not known exactly.
    unit : int
        A power of two; entries of C are whole multiples of 1 / unit.
    sums : callable, optional
        C h from counts of valid records. Where `changes` and `sums` are known for all measurements
        of a design, they can be released with correctly rounded noise (X-GRID).
    table : tuple of int, optional
        The columns of the table that C h is, where it is one.
    """

    rows: Columns
    matrix: Map
    noise: Callable[[float], Noise]
    changes: FloatArray | None = None
    unit: int = 1
    sums: ExactSums | None = None
    table: tuple[int, ...] | None = None


def exact_loss(measured: Sequence[Measurement], noises: Sequence[Noise]) -> Fraction | None:
    """Privacy loss of independent noises on measurements, for the floats that they hold.

    The largest, over cases, sum of change times rate: 1 / scale for Laplace noise, epsilon for
    K-norm noise. None if a change is not known.
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
    """Linear measurements of the records with independent noise, and the answers from them.

    Parameters
    ----------
    name : str
        What is measured.
    energy : float
        E ||Z||_2^2 of the noise of the sums of answers at epsilon = 1.
    answers : (b, m) array
        The answers of b elements: all of them, or enough to notice a part that is not measured.
    adjacency : Adjacency
        Neighbour relation.
    measure : callable
        () -> the measurements, on the elements of `answers`; all geometry that is left happens
        here.
    """

    name: str
    energy: float
    answers: FloatArray
    adjacency: Adjacency
    measure: Callable[[], Sequence[Measurement]]

    def __post_init__(self) -> None:
        checked_adjacency(self.adjacency)

    @cached_property
    def measurements(self) -> Sequence[Measurement]:
        """What `measure` returns."""
        return self.measure()

    def noise(self, epsilon: float) -> MappedNoise:
        """Distribution of the noise of the sums of answers: one part for each measurement.

        Scales and shares are rounded; where the changes of the measurements are known, epsilon is
        lowered by a few 2^-50 of itself until these floats spend no more than it.

        Raises
        ------
        ValueError
            If the measurements do not rebuild every answer (see `check_rebuilt`), and for an
            epsilon that is not finite and above 0.
        """
        self.check_answers()
        return self._noise(positive(epsilon, "epsilon"))

    def _noise(self, epsilon: float) -> MappedNoise:
        measured, affordable = self.measurements, epsilon
        noises = [part.noise(affordable) for part in measured]
        while (loss := exact_loss(measured, noises)) is not None and loss > Fraction(epsilon):
            affordable *= 1 - 2.0**-50
            noises = [part.noise(affordable) for part in measured]
        return MappedNoise([Part(z, p.matrix) for z, p in zip(noises, measured, strict=True)])

    def check_answers(self) -> None:
        """``ValueError`` if the measurements do not rebuild every answer; see `check_rebuilt`."""
        _ = self._rebuilt

    @cached_property
    def _rebuilt(self) -> bool:
        """True; raises as `check_answers`, and is computed once."""
        deviations = np.sqrt(self._noise(1.0).variances())
        check_rebuilt(self.answers, self.measurements, deviations, self.adjacency)
        return True


def check_rebuilt(
    answers: FloatArray,
    measured: Sequence[Measurement],
    deviations: FloatArray,
    adjacency: Adjacency,
) -> None:
    """Check that the measurements rebuild each answer, relative to the noise of that answer.

    A mechanism adds the noise sum of R_i Z_i to the exact answers W h. That is private because it
    is a function of the noisy measurements, provided W = sum of R_i C_i; a part of W that no
    measurement rebuilds would be released without noise. Under replace-one W and the sum may
    differ by a constant for each query, as the number of records is public.

    `answers` (b, m) is W^T on b elements, `measured` has C_i on the same elements and R_i, and
    `deviations` (m,) are those of the noise at epsilon = 1. ``ValueError`` if the missing part of
    an answer, as a vector over the elements, is longer than 1e-8 deviations of its noise plus
    rounding. Products with 32 random vectors estimate the length.
    """
    weights = np.random.default_rng(PUBLIC_SEED).standard_normal((len(answers), WEIGHTS))
    if adjacency is Adjacency.REPLACE_ONE:
        weights -= weights.mean(axis=0)  # constants then have the product 0
    rebuilt = sum_of_images(
        (part.matrix for part in measured), (part.rows @ weights for part in measured)
    )
    missing = answers.T @ weights - rebuilt
    allowed = MISFIT * deviations + ROUNDING * np.linalg.norm(answers, axis=0)
    # Not `>`: numbers that are not finite must be refused too.
    if not (np.abs(missing).max(axis=1) <= allowed).all():
        raise ValueError("strategy must determine all answers of the workload")


class Strategy(Protocol):
    """A family of designs, of which it finds the best for a workload."""

    def design(self, workload: Workload, adjacency: Adjacency) -> Design:
        """The best design; ``ValueError`` if the family has none for `workload`."""
        ...


class CellNoise(Protocol):
    """How the counts of a partition of the universe into cells are measured."""

    def variance(self, cells: int, adjacency: Adjacency) -> float:
        """Variance at epsilon = 1 along each unit vector (orthogonal to 1 under replace-one)."""
        ...

    def noise(self, cells: int, epsilon: float, adjacency: Adjacency) -> Noise:
        """The noise on the counts (cells,) that makes them epsilon-DP."""
        ...


@dataclass(frozen=True)
class LaplaceCells:
    """Independent Lap(D / epsilon) on every cell: D = 2 under replace-one, 1 under add/remove."""

    def variance(self, cells: int, adjacency: Adjacency) -> float:
        """2 D^2."""
        del cells
        return 2 * _l1_change(adjacency) ** 2

    def noise(self, cells: int, epsilon: float, adjacency: Adjacency) -> LaplaceNoise:
        """Laplace noise on every cell."""
        return LaplaceNoise(cells, _l1_change(adjacency) / positive(epsilon, "epsilon"))


@dataclass(frozen=True)
class SimplexCells:
    """K-norm noise of the neighbour body of counts, the difference body of a simplex (X-SIM).

    Under add/remove that body is the l1 ball, and the noise `LaplaceCells`. Under replace-one, of r
    = cells - 1 dimensions, the variance is 4 (2 r + 1) / (r + 2) against 8: half as much for two
    cells, and nearly as much for many.
    """

    def variance(self, cells: int, adjacency: Adjacency) -> float:
        """4 (2 r + 1) / (r + 2), r = cells - 1; 2 under add/remove."""
        if checked_adjacency(adjacency) is Adjacency.ADD_REMOVE:
            return LaplaceCells().variance(cells, adjacency)
        # (r + 1)(r + 2) times E ||U||^2 / r = 4 (2 r + 1) / ((r + 1)(r + 2)^2), see the body.
        return 4 * (2 * cells - 1) / (cells + 1)

    def noise(self, cells: int, epsilon: float, adjacency: Adjacency) -> Noise:
        """K-norm noise on the hyperplane of sum 0."""
        if checked_adjacency(adjacency) is Adjacency.ADD_REMOVE:
            return LaplaceCells().noise(cells, epsilon, adjacency)
        body = SimplexDifference.at_units(cells)
        return KNormNoise(body, epsilon, ExactSampler(body))


def cell_measurement(
    cells: CellNoise,
    share: float,
    rows: Columns,
    matrix: Map,
    adjacency: Adjacency,
    *,
    unit: int = 1,
    sums: ExactSums | None = None,
    table: tuple[int, ...] | None = None,
) -> Measurement:
    """Counts of cells, rows (p, b) whose columns are points of a simplex, with a share of epsilon.

    The entries of `rows` are multiples of 1 / `unit`, and every column adds up to 1 exactly.
    """
    count = rows.shape[0]
    # Counts of cells move by a difference of two points of the simplex.
    known = {LaplaceCells(): _l1_change(adjacency), SimplexCells(): 1.0}
    change = known.get(cells) if isinstance(cells, LaplaceCells | SimplexCells) else None
    return Measurement(
        rows,
        matrix,
        lambda epsilon: cells.noise(count, epsilon * share, adjacency),
        None if change is None else np.array([change]),
        unit,
        sums,
        table,
    )


def laplace_measurement(
    scale: float,
    rows: Columns,
    matrix: Map,
    *,
    changes: FloatArray | None = None,
    unit: int = 1,
    sums: ExactSums | None = None,
) -> Measurement:
    """Rows (p, b) with independent Laplace noise of a scale stated at epsilon = 1."""
    count = rows.shape[0]
    return Measurement(
        rows, matrix, lambda epsilon: LaplaceNoise(count, scale / epsilon), changes, unit, sums
    )


def _l1_change(adjacency: Adjacency) -> float:
    """Largest l1 change of the counts of a partition between neighbours."""
    return 2.0 if checked_adjacency(adjacency) is Adjacency.REPLACE_ONE else 1.0
