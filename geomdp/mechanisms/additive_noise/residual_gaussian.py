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

    where l_i is the number of levels of column i. The mechanism measures r_A + r(g_A). Here g_A is
    noise N(0, s_A I) on the cells of the table of A, and r(g_A) is the residual of g_A. Every table
    is a sum of residuals, each spread evenly over the other columns. So all tables are computed
    from these measurements. Tables agree on the columns that they share.

    The variances s_A are chosen to minimise the total error; the notes say when they are proved
    optimal. Under add/remove, ResidualPlanner gives the s_A in closed form. Under replace-one, the
    s_A are optimised for the true sensitivity: the largest change of the measurements over all sets
    of columns in which two records can differ.

    No computation needs a matrix with a row for every cell. The figure `many_columns` measures the
    cost for all 3-way tables of 100 columns with 2 to 6 levels: the set-up and the release each
    take seconds, and need less than 8 GiB of memory.

    For parameters and errors see `AdditiveMechanism`. `workload` is a `MarginalTables` or a
    `ChosenTables` of at most 2^25 cells, and `privacy` a `ZCDP` or an `ApproxDP`. A table with a
    larger weight gets less noise relative to its counts.

    Notes
    -----
    Privacy, in real arithmetic, for all neighbouring X, X' and measurable S: if `privacy` is
    rho-zCDP, the Renyi divergence of order a > 1 between M(X) and M(X') is at most rho a. If
    `privacy` is (epsilon, delta)-DP, Pr[M(X) in S] <= e^epsilon Pr[M(X') in S] + delta. For the
    proof, let c_A be the squared length by which r_A changes. Divide each measurement by the
    standard deviation sqrt(s_A) of its noise. The noise then has variance 1, and all measurements
    together change by the squared length

        sum over A of c_A / s_A.

    Let b be the length that the guarantee allows for noise of variance 1 (b^2 = 2 rho for `ZCDP`).
    The sum over A is proved to be at most b^2 for all neighbours. Under add/remove,
    c_A = p_A = product over A of (1 - 1 / l_i) for all records. Under replace-one, if two records
    differ exactly in the columns D, c_A is

        2 (p_A - product over i in A of (1[i not in D] - 1 / l_i)).

    The residual of the empty set A = {} is the number of records. Under replace-one this number is
    public, so s_A = 0 for A = {}. The sampler is exact.

    Error: exactly (sum over A of v_A s_A / m)^(1/2) / n per query. Let w_T be the weight of table
    T. v_A is the sum over tables T that contain A of
    w_T^2 p_A (product over A of l_i) / (product over T - A of l_j).

    Under add/remove, no linear mechanism with Gaussian noise has less error. Under replace-one, no
    such mechanism has an error that is smaller by more than a share of 1e-7, in two cases, if the
    search for the s_A ends within 100 rounds (see `best_scales`):

    * `MarginalTables` with at most 2^22 profiles and 1024 kinds of sets of columns. Put columns
      with equal numbers of levels in one class. A profile states, for each class, the number of
      columns in which two records differ. A kind states, for each class, the number of columns
      that a set contains. For example, five classes of 20 columns have 21^5 < 2^22 profiles.
    * `ChosenTables` on at most 22 columns with at most 1024 sets of columns.

    For other workloads, the best of several upper bounds may replace the sensitivity (see
    `best_scales`). Even then, the error is at most the error of `Gaussian` if the sum over tables
    of 4^(number of columns of the table) is at most 2^26.

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
        """Distribution of Z, on sums of answer vectors; set up on first use."""
        return ResidualNoise(self._residuals, self._proved_scales())

    def _proved_scales(self) -> FloatArray:
        """Scales (sets,) of the noise. These float64 numbers are proved to give the guarantee.

        A scale is sqrt(2^t s_A), where t is the number of columns of A with two levels. Noise of
        standard deviation `unit` is proved to give the guarantee for a change of length 1.
        Precisions are the 1 / s_A in units of 1 / unit^2. Their cost is the sum over A of c_A / s_A
        in these units, for the worst neighbours. If the cost is at most 1, the guarantee holds.
        Scales are made larger by tiny but growing factors until the cost is at most 1.
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
        """Unseeded releases round the noise on residuals to multiples of 2^-grid.

        Answers are computed from the residuals, and need not be multiples of 2^-grid. The result is
        None if n is so large that sums over records are not exact.
        """
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
