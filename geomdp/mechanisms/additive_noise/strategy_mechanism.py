"""Mechanisms that measure the histogram by a strategy and compute the answers by least squares."""

from __future__ import annotations

import abc
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Self

import numpy as np

from geomdp._numerics.linalg import AffineHull
from geomdp._typing import FloatArray
from geomdp.data.counting.record_counts import Counts, RecordCounts
from geomdp.data.counting.tallies import CountedRecords
from geomdp.mechanisms.additive_noise.base import AdditiveMechanism
from geomdp.mechanisms.quotients import LARGEST_SUM, quotients
from geomdp.mechanisms.sensitivity import answer_hull, l1_sensitivity
from geomdp.mechanisms.strategies import Design, Measurement, Strategy, best_design
from geomdp.mechanisms.strategies.choice import enumerable
from geomdp.noise import MappedNoise, Noise
from geomdp.noise.exact import RoundedParts, public_grid
from geomdp.noise.exact.release import Rounded
from geomdp.noise.mapped import sum_of_images
from geomdp.privacy import Adjacency, Privacy, PureDP
from geomdp.workloads import Marginals, MarginalTables, Parities, Workload
from geomdp.workloads.base import Totals
from geomdp.workloads.table_queries import COUNT_ROWS
from geomdp.workloads.universe.universes import Records


class StrategyMechanism(AdditiveMechanism):
    """M(X) = (sum over i of R_i (C_i h + Z_i)) / n, plus public constants, for the histogram h."""

    def __init__(
        self,
        workload: Workload,
        *,
        n: int,
        privacy: Privacy,
        adjacency: Adjacency,
        strategy: Strategy | None = None,
    ) -> None:
        super().__init__(workload, n=n, privacy=privacy, adjacency=adjacency)
        l1_sensitivity(workload, adjacency)  # raises an error if the sensitivity is 0
        self._strategy = strategy

    @property
    @abc.abstractmethod
    def noise(self) -> MappedNoise:
        """Distribution of the noise on sums of answer vectors: one part for each measurement."""

    @abc.abstractmethod
    def _strategies(self) -> Sequence[Strategy]:
        """The strategies that are compared if no `strategy` is given."""

    @cached_property
    def _design(self) -> Design:
        tried = self._strategies() if self._strategy is None else [self._strategy]
        return best_design(tried, self.workload, self.adjacency)

    @property
    def design(self) -> str:
        """Description of the measurements in words."""
        return self._design.name

    @cached_property
    def _hull(self) -> AffineHull | None:
        # Sums of counts are whole numbers, so they are exact in float64. No rounding error can
        # reveal something outside the span of the answers. Therefore answers need not be projected
        # on the span, and the basis of the span, which can be large, is not computed.
        if isinstance(self.workload, MarginalTables | Marginals | Parities):
            return None
        return answer_hull(self.workload, self.adjacency)

    @cached_property
    def _measurements(self) -> Sequence[Measurement]:
        """The measurements with exact sums; if there are none, answers get the noise."""
        known = isinstance(self.privacy, PureDP) and enumerable(self.workload) is self.workload
        measured = self._design.measurements if known else ()
        exact = all(part.sums is not None and part.changes is not None for part in measured)
        return measured if exact else ()

    @cached_property
    def grid(self) -> int | None:
        """As in the base, but only the sums of `_measurements` must be exact, if there are any."""
        if not self._measurements:
            return super().grid
        if not self._sums_are_exact:
            return None
        return max(self._unit.bit_length() - 1, *map(public_grid, self._noises))

    @property
    def _noises(self) -> list[Noise]:
        return [part.noise for part in self.noise.parts]

    @property
    def _unit(self) -> int:
        """A power of two. Measurements are whole multiples of its reciprocal."""
        return max((part.unit for part in self._measurements), default=1)

    @property
    def _capacity(self) -> int:
        # All entries of the measurements of one record have modulus at most 1, because each entry
        # is an indicator, a share or a sign.
        if not self._measurements:
            return super()._capacity
        return (LARGEST_SUM - 1) // self._unit

    @cached_property
    def _rounded(self) -> Rounded | None:
        if self.grid is None or not self._measurements:
            return super()._rounded
        return RoundedParts(self._noises, self.grid)

    @cached_property
    def _public_part(self) -> FloatArray:
        """The public part (m,) of a record's answers. The measurements do not contain this part."""
        if self.adjacency is Adjacency.ADD_REMOVE:
            return np.zeros(self.workload.n_queries)
        parts = self._measurements
        means = [np.asarray(part.rows.mean(axis=1)).reshape(-1, 1) for part in parts]
        rebuilt = sum_of_images((part.matrix for part in parts), means)
        return np.asarray(self._design.answers.mean(axis=0) - rebuilt[:, 0])

    def set_up(self) -> None:
        super().set_up()
        if self._measurements:
            _ = self._public_part

    def measured(self, records: Records | Iterable[Records] | CountedRecords) -> Totals:
        """Sums of all `_measurements`, or sums of answers if there are none."""
        if not self._measurements:
            return super().measured(records)
        universe = self.workload.universe
        if isinstance(records, CountedRecords):
            records.require(universe)
            tables = [part.table for part in self._measurements if part.table is not None]
            held = records.with_tables(tables)
            return self._within_capacity(Totals(held.count, self._sums_of(held)))
        count = 0
        sums = np.zeros(sum(noise.dimension for noise in self._noises))
        for chunk in universe.chunks(records, COUNT_ROWS):
            count += len(chunk)
            sums += self._sums_of(RecordCounts(universe, chunk))
        return self._within_capacity(Totals(count, sums))

    def _sums_of(self, counts: Counts) -> FloatArray:
        exact = [part.sums for part in self._measurements if part.sums is not None]
        return np.concatenate([known(counts) for known in exact])

    def _from_rounded(self, sums: FloatArray, multiples: list[int], unit: int) -> FloatArray:
        if not self._measurements:
            return super()._from_rounded(sums, multiples, unit)
        noisy = quotients(sums, multiples, unit, self.n, self._unit)
        maps = [part.matrix for part in self._measurements]
        ends = np.cumsum([matrix.shape[1] for matrix in maps])[:-1]
        return self._public_part + sum_of_images(maps, np.split(noisy[:, None], ends))[:, 0]

    def with_workload(self, workload: Workload) -> Self:
        """As in the base, with the same `strategy`."""
        return type(self)(
            workload,
            n=self.n,
            privacy=self.privacy,
            adjacency=self.adjacency,
            strategy=self._strategy,
        )
