"""Gaussian noise on the residuals of tables, with variances chosen for the least total error."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

import numpy as np

from geomdp._typing import FloatArray
from geomdp.data.counting.tallies import CountedRecords
from geomdp.mechanisms.additive_noise.base import AdditiveMechanism
from geomdp.mechanisms.quotients import LARGEST_SUM, quotients
from geomdp.mechanisms.sensitivity import l1_sensitivity
from geomdp.mechanisms.strategies.residual_scales import ResidualScales, best_scales
from geomdp.noise import ResidualNoise
from geomdp.noise.exact import RoundedResiduals, grid_for, proved_gaussian_scale
from geomdp.noise.residual import doublings
from geomdp.privacy import ZCDP, Adjacency, ApproxDP
from geomdp.workloads import Workload, WorkloadSizeError
from geomdp.workloads.base import Totals
from geomdp.workloads.structure.residuals import Residuals
from geomdp.workloads.table_queries import TableQueries
from geomdp.workloads.universe.universes import Records

#: Largest number of answers. 2^25 float64 are 256 MB, and a release needs several such arrays.
MAX_ANSWERS = 1 << 25


class ResidualGaussian(AdditiveMechanism):
    """Independent Gaussian noise on the residuals of tables of columns, with optimised variances.

    For each set A of columns within a table, the residual of A is the table of A without the
    information in tables of fewer columns:

        r_A = (tensor over i in A of I - 11^T / l_i) (table of A),

    where l_i is the number of levels of column i. The mechanism measures r_A plus the residual of
    noise N(0, s_A I) on the cells of the table of A. A table is a sum of residuals, each spread
    evenly over other columns. So all tables follow from the measurements, and agree on shared
    columns.

    The variances s_A minimise the total error; the notes say when this is proved. Under add/remove,
    ResidualPlanner gives the s_A in closed form. Under replace-one, they are optimised for the true
    sensitivity: the largest change of the measurements over all sets of columns in which two
    records can differ. No computation needs a matrix with a row for every cell. For all 3-way
    tables of 100 columns with 2 to 6 levels, the set-up and the release each take seconds, and need
    less than 8 GiB of memory (figure `many_columns`).

    Parameters are those of `AdditiveMechanism`. `workload` is a `MarginalTables` or a
    `ChosenTables` of at most 2^25 cells, and `privacy` a `ZCDP` or an `ApproxDP`. A table with a
    larger weight gets less noise relative to its counts.

    Notes
    -----
    Privacy: rho-zCDP or (epsilon, delta)-DP, in real arithmetic. Let c_A be the squared length by
    which r_A changes. If each measurement is divided by the standard deviation sqrt(s_A) of its
    noise, all together change by the squared length sum over A of c_A / s_A. It is proved to be at
    most b^2 for all neighbours, where b is the length that the guarantee allows for noise of
    variance 1 (b^2 = 2 rho for `ZCDP`). Under add/remove, c_A = p_A = product over A of
    (1 - 1 / l_i). Under replace-one, for records that differ exactly in the columns D, c_A is

        2 (p_A - product over i in A of (1[i not in D] - 1 / l_i)).

    The residual of A = {} is the number of records; if public (replace-one), its s_A is 0. The
    sampler is exact.

    Error: exactly (sum over A of v_A s_A / m)^(1/2) / n per query. v_A is the sum over tables T
    that contain A, with weights w_T, of w_T^2 p_A (product over A of l_i) / (product over T - A of
    l_j).

    Under add/remove, no linear mechanism with Gaussian noise has less error. Under replace-one,
    none has an error smaller by more than a share of 1e-7, if the search for the s_A ends within
    100 rounds (see `best_scales`), in two cases:

    * `MarginalTables` with at most 2^22 profiles and 1024 kinds of sets of columns. Put columns
      with equal numbers of levels in one class. A profile states, for each class, the number of
      columns in which two records differ. A kind states, for each class, the number of columns that
      a set contains. For example, five classes of 20 columns have 21^5 < 2^22 profiles.
    * `ChosenTables` on at most 22 columns with at most 1024 sets of columns.

    Otherwise, the best of several upper bounds may replace the sensitivity. The error is at most
    that of `Gaussian` if the sum over tables of 4^(number of their columns) is at most 2^26.

    References
    ----------
    Xiao-He-Zhang-Kifer 2023 (ResidualPlanner); formula sheet X-RES, X-GRID, GEN-2.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> workload = gd.workloads.MarginalTables([2] * 30, k=2)
    >>> mechanism = gd.mechanisms.ResidualGaussian(workload, n=10_000, privacy=gd.ZCDP(0.5))
    >>> round(mechanism.predicted_rmse.value * 10_000, 2)
    10.35
    >>> records = np.zeros((10_000, 30), dtype=int)
    >>> release = mechanism.release(records, rng=0)  # a simulation: the seed voids privacy
    >>> release.answers[:4].round(2)
    array([ 1., -0.,  0., -0.])
    """

    privacy: ZCDP | ApproxDP
    workload: TableQueries

    def __init__(
        self,
        workload: Workload,
        *,
        n: int,
        privacy: ZCDP | ApproxDP,
        adjacency: Adjacency = Adjacency.REPLACE_ONE,
    ) -> None:
        if not isinstance(privacy, ZCDP | ApproxDP):
            raise ValueError(
                f"privacy must be ZCDP or ApproxDP for ResidualGaussian, got {privacy!r}"
            )
        if not isinstance(workload, TableQueries):
            raise ValueError(f"workload must be MarginalTables or ChosenTables, got {workload!r}")
        super().__init__(workload, n=n, privacy=privacy, adjacency=adjacency)
        if workload.n_queries > MAX_ANSWERS:
            raise WorkloadSizeError(
                f"tables must have at most 2^25 cells in all, got {workload.n_queries}"
            )
        l1_sensitivity(workload, adjacency)  # raises for constant workloads

    @cached_property
    def _residuals(self) -> Residuals:
        return Residuals(self.workload)

    @cached_property
    def _best(self) -> ResidualScales:
        return best_scales(self._residuals, self.adjacency)

    @property
    def is_best(self) -> bool:
        """Whether the squared error is known to be within 0.1% of the least possible.

        The least is over all linear mechanisms with Gaussian noise.
        """
        return self._best.is_best

    @cached_property
    def noise(self) -> ResidualNoise:
        return ResidualNoise(self._residuals, self._proved_scales())

    def _proved_scales(self) -> FloatArray:
        """Float64 scales sqrt(2^t s_A) (sets,) that are proved to give the guarantee.

        They grow until the sum of c_A / s_A is at most 1 / unit^2 for all neighbours.
        """
        unit = proved_gaussian_scale(1, self.privacy)
        doubled = doublings(self._residuals)
        least = unit * np.sqrt(self._best.variances * doubled)
        scales, more = least, 2.0**-52
        while self._best.cost.at_most(_precisions(scales / unit, doubled)) > 1:
            scales, more = least * (1 + more), 2 * more
        return np.asarray(scales)

    def _proved_as_computed(self) -> bool:
        # The cost is proved for the scales as floats.
        return True

    @cached_property
    def measurement(self) -> None:
        """None, because coordinates of residuals are whole numbers, which need no rounding."""
        return None

    @cached_property
    def grid(self) -> int | None:
        """As in `Mechanism`, for residuals; answers need not be multiples of 2^-grid."""
        if not self._sums_are_exact:
            return None
        scales = self.noise.scales
        return grid_for(float(scales[scales > 0].min()))

    @property
    def _capacity(self) -> int:
        # A record changes each coordinate of a residual by at most 1.
        return LARGEST_SUM - 1

    @cached_property
    def _rounded(self) -> RoundedResiduals | None:
        return None if self.grid is None else RoundedResiduals(self.noise, self.grid)

    def measured(self, records: Records | Iterable[Records] | CountedRecords) -> Totals:
        """Number of records, and coordinates of all residuals, to which rounded noise is added."""
        if isinstance(records, CountedRecords):
            counted = records.cell_counts(self.workload)
        else:
            counted = self.workload.cell_counts(records)
        coordinates = self._residuals.of_counts(counted.sums[None])[0]
        return self._within_capacity(Totals(counted.count, coordinates))

    def _from_rounded(self, sums: FloatArray, multiples: list[int], unit: int) -> FloatArray:
        noisy = quotients(sums, multiples, unit, self.n)
        return np.asarray(self._residuals.to_answers(noisy[None])[0])


def _precisions(scales: FloatArray, doubled: FloatArray) -> FloatArray:
    """1 / s_A (sets,) for the scales sqrt(2^t s_A), where `doubled` is 2^t; 0 if s_A is 0."""
    found = np.zeros_like(scales)
    moving = scales > 0
    found[moving] = doubled[moving] / scales[moving] ** 2
    return found
