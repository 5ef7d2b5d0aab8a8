"""Mechanisms that measure other queries than those asked, and compute the answers from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from geomdp._numerics.linalg import AffineHull
from geomdp._typing import FloatArray
from geomdp._validation import require_type
from geomdp.mechanisms.additive_noise.base import AdditiveMechanism
from geomdp.mechanisms.additive_noise.certify import Origin
from geomdp.mechanisms.additive_noise.knorm import least_trace_root
from geomdp.mechanisms.additive_noise.sums import Change, ExactSums, MeasuredSums, ResidualSums
from geomdp.mechanisms.base import checked_workload
from geomdp.mechanisms.strategies.design import (
    CellNoise,
    Design,
    LaplaceCells,
    SimplexCells,
    Strategy,
)
from geomdp.mechanisms.strategies.histograms import (
    MAX_LISTED,
    MAX_OPTIMISED,
    Haar,
    PIdentity,
    SoftBins,
    Tree,
)
from geomdp.mechanisms.strategies.residual_scales import (
    ResidualScales,
    best_scales,
    strategy_columns,
)
from geomdp.mechanisms.strategies.tables import WeightedMarginals, WeightedSigns
from geomdp.noise import GaussianNoise
from geomdp.noise.gaussian import ResidualNoise, doublings, proved_gaussian_scale
from geomdp.noise.knorm import MappedNoise, Part, sum_of_images
from geomdp.privacy import ZCDP, Adjacency, ApproxDP, PureDP
from geomdp.workloads import Marginals, MarginalTables, Parities, SparseQueries, Workload
from geomdp.workloads.base import MAX_ENTRIES, WorkloadSizeError
from geomdp.workloads.structure import Residuals, sign_products
from geomdp.workloads.tables import ProductQueries, TableQueries

#: Largest universe for which a p-identity strategy is tried by default. The search for a universe
#: of this size takes two seconds on one core.
MAX_QUICK = 1 << 8


def strategies_for(workload: Workload, cells: CellNoise) -> list[Strategy]:
    """Strategies with the noise `cells` that apply to `workload`, simplest first."""
    workload = enumerable(workload)
    laplace = isinstance(cells, LaplaceCells)
    found: list[Strategy] = []
    if isinstance(workload, TableQueries | ProductQueries):
        found.append(WeightedMarginals(cells))
    if laplace and sign_products(workload) is not None:
        found.append(WeightedSigns())
    if isinstance(workload, MarginalTables):
        return found  # `WeightedMarginals` already tries the histogram of at most 2^20 cells
    if _listed(workload, MAX_LISTED):
        found.append(Tree(cells))
        if laplace:
            found.append(Haar())
    if _listed(workload, MAX_OPTIMISED):
        found.append(SoftBins(cells=cells))
    if laplace and _listed(workload, MAX_QUICK):
        found.append(PIdentity())
    return found


def _listed(workload: Workload, largest: int) -> bool:
    size = workload.universe.size
    return size is not None and 2 <= size <= largest and size * workload.n_queries <= MAX_ENTRIES


def best_design(strategies: Sequence[Strategy], workload: Workload, adjacency: Adjacency) -> Design:
    """The design with the least energy E ||noise||_2^2 of all designs that determine all answers.

    ``ValueError`` if none does; ``WorkloadSizeError`` if the workload is too large for all.
    """
    workload = enumerable(workload)
    designs, refusals = [], ["no strategy is known for it"]
    for strategy in strategies:
        require_type(strategy, Strategy, "strategies")
        try:
            designs.append(strategy.design(workload, adjacency))
        except WorkloadSizeError as error:
            refusals.append(str(error))
    if not designs:
        raise WorkloadSizeError(f"workload has no strategy: {refusals[-1]}, got {workload!r}")
    *better, last = sorted(designs, key=lambda design: design.energy)
    # A design can lose answers that are smaller by many orders of magnitude. Then try the next.
    for design in better:
        try:
            design.check_answers()
        except ValueError:
            continue
        return design
    last.check_answers()
    return last


def enumerable(workload: Workload) -> Workload:
    """Return `workload`; sparse queries become queries on a finite universe."""
    checked_workload(workload)
    return workload.explicit if isinstance(workload, SparseQueries) else workload


@dataclass(eq=False, repr=False, kw_only=True)
class StrategyMechanism(AdditiveMechanism):
    """M(X) = (sum over i of R_i (C_i h + Z_i)) / n, plus public constants, for the histogram h."""

    #: The noise of the strategies that are compared if no `strategy` is given.
    cells: ClassVar[CellNoise]

    strategy: Strategy | None = None

    def law(self, change: Change) -> MappedNoise:
        del change  # The design is for the changes of its measurements.
        assert isinstance(self.privacy, PureDP)
        return self._design.noise(self.privacy.epsilon)

    @cached_property
    def _design(self) -> Design:
        given = self.strategy
        tried = strategies_for(self.workload, self.cells) if given is None else [given]
        return best_design(tried, self.workload, self.adjacency)

    @property
    def design(self) -> str:
        """Description of the measurements in words."""
        return self._design.name

    @cached_property
    def _hull(self) -> AffineHull | None:
        # Sums of counts are exact, so no rounding error is outside the span, whose basis is large.
        of_tables = isinstance(self.workload, MarginalTables | Marginals | Parities)
        whole = isinstance(self.workload, ProductQueries) and self.workload.whole_answers
        return None if of_tables or whole else self.change.hull

    def _sums(self) -> ExactSums | None:
        """The sums of all measurements, if they are exact; else answers get the noise."""
        if not isinstance(self.privacy, PureDP) or enumerable(self.workload) is not self.workload:
            return super()._sums()
        measured = self._design.measurements
        if any(part.sums is None or part.changes is None for part in measured):
            return super()._sums()
        # The part (m,) of a record's answers that is public, which the measurements do not contain.
        public = np.zeros(self.workload.n_queries)
        if self.adjacency is Adjacency.REPLACE_ONE:
            means = [np.asarray(part.rows.mean(axis=1)).reshape(-1, 1) for part in measured]
            rebuilt = sum_of_images((part.matrix for part in measured), means)
            public = np.asarray(self._design.answers.mean(axis=0) - rebuilt[:, 0])
        return MeasuredSums(self.workload, measured, public)


class Hierarchical(StrategyMechanism):
    """Noisy counts of several partitions of the universe, combined by least squares.

    M(X) = (sum over i of R_i (C_i h + Z_i)) / n, plus public constants. h is the histogram of the
    records. C_i maps every element to a point of a simplex: a cell of partition i, or a mixture of
    cells. Z_i has the budget epsilon_i: under replace-one it is K-norm noise of the difference body
    of this simplex (X-SIM), under add/remove Laplace noise. The R_i are the least-squares weights.
    Of the following partitions, those with the least error for the workload are taken:

    * For tables and `ProductQueries`: the cells of several tables, whose columns
      `WeightedMarginals` chooses.
    * For listed universes: either a binary tree over the elements or, for at most 2^10 elements,
      the histogram together with one coarse set of soft bins (`SoftBins`).

    If `strategy` (a `Strategy`) is given, it replaces these partitions. A workload without a known
    strategy raises ``ValueError`` on first use. Without tables, strategies are known only for at
    most 2^12 elements (for `SparseQueries`, those of `SparseQueries.explicit`). Other parameters
    are those of `AdditiveMechanism`.

    Notes
    -----
    Privacy: epsilon-DP in real arithmetic. Replacing a record changes C_i h by the difference of
    two points of the simplex. Adding or removing a record changes it by a point of the simplex (a
    vector of l1 norm 1) or its negative. So C_i h + Z_i is epsilon_i-DP, and the epsilon_i add up
    to epsilon. The partitions are public. The sampler is exact; for a strategy from outside this
    package, its status is that of the strategy's noise.

    Error: exactly (sum over i of E ||R_i Z_i||^2 / m)^(1/2) / n per query.

    References
    ----------
    Hardt-Talwar 2010, section 7; formula sheet JL-KN, JL-SPLIT, X-SIM.

    Examples
    --------
    >>> import geomdp as gd
    >>> workload = gd.workloads.Prefixes(64)
    >>> mechanism = gd.mechanisms.Hierarchical(workload, n=1000, privacy=gd.PureDP(1.0))
    >>> mechanism.design
    'histogram and 6 soft bins'
    >>> round(mechanism.predicted_rmse.value, 4)
    0.0078
    """

    accepts, origin, cells = (PureDP,), Origin.FORMULA, SimplexCells()
    privacy: PureDP


class Matrix(StrategyMechanism):
    """Noise on a strategy, then least squares: the matrix mechanism.

    Let h be the histogram of the records, and W h the sums of the answers. A strategy is a list of
    measurements A h that determine W h: W h = R A h with R = W A^+. The mechanism adds noise z to
    the measurements and computes M(X) = R (A h + z) / n = (W h + R z) / n.

    * For `PureDP`, z is independent Laplace noise, calibrated to the l1 sensitivity of A. The
      strategy is `strategy` (a `Strategy`), or the best known one: for tables, weighted tables of
      sets of columns (all columns, blocks of covering designs, smaller sets); for answers that are
      linear in products of two signs, weighted products; for m queries on N elements that are no
      `MarginalTables`, with 2 <= N <= 2^12 and m N <= 2^26, a tree and the Haar wavelet, soft bins
      (N <= 2^10) and the p-identity strategy (N <= 2^8).
    * For `ZCDP` and `ApproxDP`, z is isotropic Gaussian noise, calibrated to the l2 sensitivity of
      A. R R^T is the matrix S of the `Ellipsoid` mechanism. By duality, if S is optimal and n is
      public, no linear unbiased mechanism with Gaussian noise has a smaller total squared error.

    Notation and parameters are those of `AdditiveMechanism`. A `strategy` without `PureDP` raises
    ``ValueError``, and so does, on first use, a workload without a known strategy (`SparseQueries`
    have those of `SparseQueries.explicit`).

    Notes
    -----
    Privacy: epsilon-DP, rho-zCDP or (epsilon, delta)-DP, in real arithmetic. M is a function of the
    noisy measurements and of n, and the strategy is public. The sampler is as in `Hierarchical`.

    Error: exactly (E ||R z||^2 / m)^(1/2) / n per query. The set-up, on first use, takes a second
    for tables of ten columns, and seconds for all 4-way tables of 20 binary columns or the
    p-identity strategy on 256 elements.

    References
    ----------
    Li-Miklau-Hay-McGregor-Rastogi 2015; McKenna-Miklau-Hay-Machanavajjhala 2018; formula sheet
    GEN-3, JL-ELL, JL-GAUSS, JL-SPLIT.

    Examples
    --------
    >>> import geomdp as gd
    >>> from geomdp.mechanisms.strategies import Haar
    >>> workload = gd.workloads.Prefixes(16)
    >>> for strategy in (None, Haar()):
    ...     mechanism = gd.mechanisms.Matrix(
    ...         workload, n=1000, privacy=gd.PureDP(1.0), strategy=strategy
    ...     )
    ...     print(mechanism.design, round(mechanism.predicted_rmse.value, 4))
    tree of intervals 0.0046
    Haar wavelet 0.007
    """

    accepts, cells = (PureDP, ZCDP, ApproxDP), LaplaceCells()

    def __post_init__(self) -> None:
        if self.strategy is not None and not isinstance(self.privacy, PureDP):
            raise ValueError(
                "strategy must be None unless privacy is PureDP, because the best strategy for "
                f"Gaussian noise is known; got {self.privacy!r}"
            )
        super().__post_init__()

    @property
    def origin(self) -> Origin:
        return Origin.FORMULA if isinstance(self.privacy, PureDP) else Origin.SOLVER

    @property
    def design(self) -> str:
        return super().design if isinstance(self.privacy, PureDP) else "ellipsoid"

    def law(self, change: Change) -> MappedNoise:
        if isinstance(self.privacy, PureDP):
            return super().law(change)
        # Every difference of neighbours is B u with ||u||_2 <= 1, so what has the differences u has
        # l2 sensitivity 1, and B maps it to the answers.
        assert isinstance(self.privacy, ZCDP | ApproxDP)
        root = least_trace_root(change.workload, change.adjacency)
        scale = proved_gaussian_scale(1, self.privacy)
        return MappedNoise([Part(GaussianNoise(np.eye(root.shape[1]), scale), root)])


# Gaussian noise on the residuals of tables.

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

    The variances s_A minimise the total error. Under add/remove, ResidualPlanner gives them in
    closed form. Under replace-one, they are optimised for the largest change of the measurements
    over all sets of columns in which two records can differ. For all 3-way tables of 100 columns
    with 2 to 6 levels, the set-up and the release each take seconds, and need less than 8 GiB of
    memory (figure `many_columns`).

    `ProductQueries` are answered in the same way. A column asked by prefixes, ranges or other rows
    W_i has a matrix A_i with A_i 1 = 0 in place of I - 11^T / l_i: the strategy of least error for
    the queries W_i (I - 11^T / l_i) of this column alone, from a small convex program.

    Parameters are those of `AdditiveMechanism`. `workload` is a `MarginalTables`, a `ChosenTables`
    or a `ProductQueries` of at most 2^25 queries, and `privacy` a `ZCDP` or an `ApproxDP`. A table
    with a larger weight gets less noise relative to its counts.

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

    For products of queries, let u_i be the largest squared length of A_i e_j, and -v_i the least
    inner product of two of these vectors. Both are bounded in ball arithmetic for the A_i that
    belongs to the noise that is drawn, whatever the convex program returned. The sum over A of
    c_A / s_A is linear in each of these inner products, so it is at most the largest one over D of
    the formula with u_i in place of 1 - 1 / l_i and v_i in place of 1 / l_i.

    Error: exactly (sum over A of v_A s_A / m)^(1/2) / n per query. v_A is the sum over tables T
    that contain A, with weights w_T, of w_T^2 p_A (product over A of l_i) / (product over T - A of
    l_j). For products, p_A (product over A of l_i) is the product over A of the total variance of
    W_i from unit noise on A_i, and 1 / l_j is ||W_j 1||^2 / l_j^2.

    For tables under add/remove, no linear unbiased mechanism with Gaussian noise has a smaller
    total squared error. Under replace-one, none has an error smaller by more than a share of 1e-7,
    if the search for the s_A ends within 100 rounds (see `best_scales`), for `ChosenTables` on at
    most 22 columns with at most 1024 sets of columns, and for `MarginalTables` with at most 2^22
    profiles and 1024 kinds of sets. A profile or a kind says how many columns of each number of
    levels differ between two records, or are in a set: five classes of 20 columns have
    21^5 < 2^22 profiles. Otherwise, the best of several upper bounds may replace the sensitivity.
    The error is at most that of `Gaussian` if the sum over tables of 4^(number of their columns) is
    at most 2^26.

    References
    ----------
    Xiao-He-Zhang-Kifer 2023 (ResidualPlanner, and ResidualPlanner+ in version 5);
    Lebeda-Nikolov-Tang 2025 (arXiv 2512.21499); Lebeda 2024 (arXiv 2408.06853), one-way tables;
    formula sheet X-RES, X-PROD, X-GRID, GEN-2.

    Examples
    --------
    >>> import geomdp as gd
    >>> workload = gd.workloads.MarginalTables([2] * 30, k=2)
    >>> mechanism = gd.mechanisms.ResidualGaussian(workload, n=10_000, privacy=gd.ZCDP(0.5))
    >>> round(mechanism.predicted_rmse.value * 10_000, 2)
    10.35
    """

    accepts, origin = (ZCDP, ApproxDP), Origin.FORMULA
    privacy: ZCDP | ApproxDP
    workload: TableQueries | ProductQueries

    def _prepare(self) -> None:
        asked: Workload = self.workload
        if not isinstance(asked, TableQueries | ProductQueries):
            raise ValueError(
                f"workload must be MarginalTables, ChosenTables or ProductQueries, got {asked!r}"
            )
        if asked.n_queries > MAX_ANSWERS:
            raise WorkloadSizeError(
                f"tables must have at most 2^25 queries in all, got {asked.n_queries}"
            )
        super()._prepare()

    @cached_property
    def _residuals(self) -> Residuals:
        return Residuals(self.workload, strategy_columns(self.workload))

    @cached_property
    def _best(self) -> ResidualScales:
        return best_scales(self._residuals, self.adjacency)

    @property
    def is_best(self) -> bool:
        """Whether the squared error is known to be within 0.1% of the least possible.

        The least is over all linear unbiased mechanisms with Gaussian noise.
        """
        return self._best.is_best

    def law(self, change: Change) -> ResidualNoise:
        del change  # The scales are for the changes of the residuals.
        return ResidualNoise(self._residuals, self._proved_scales())

    def _proved_scales(self) -> FloatArray:
        """Float64 scales sqrt(2^t s_A) (sets,), for which sum c_A / s_A <= 1 / unit^2 is proved."""
        unit = proved_gaussian_scale(1, self.privacy)
        doubled = doublings(self._residuals)
        least = unit * np.sqrt(self._best.variances * doubled)

        def precisions(scales: FloatArray) -> FloatArray:
            """unit^2 / s_A (sets,); 0 if s_A is 0."""
            zeros = np.zeros_like(scales)
            return np.divide(doubled, (scales / unit) ** 2, out=zeros, where=scales > 0)

        scales, more = least, 2.0**-52
        while self._best.cost.at_most(precisions(scales)) > 1:
            scales, more = least * (1 + more), 2 * more
        return np.asarray(scales)

    def _sums(self) -> ResidualSums:
        return ResidualSums(self.workload, self._residuals)
