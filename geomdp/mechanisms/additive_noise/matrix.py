"""The matrix mechanism: noise on a strategy that is optimised for the workload."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from geomdp._typing import FloatArray
from geomdp.mechanisms.additive_noise.certified_rows import CertifiedRows, certified_rows
from geomdp.mechanisms.additive_noise.ellipsoid import least_trace_root
from geomdp.mechanisms.additive_noise.real_records import RealRecords, enlarged_ellipsoid
from geomdp.mechanisms.additive_noise.strategy_mechanism import StrategyMechanism
from geomdp.mechanisms.additive_noise.units import ScaledAnswers, Units
from geomdp.mechanisms.strategies import Strategy, laplace_strategies
from geomdp.noise import GaussianNoise, MappedNoise, Part
from geomdp.noise.exact import proved_gaussian_scale
from geomdp.privacy import Adjacency, Privacy, PureDP
from geomdp.workloads import Workload


class Matrix(StrategyMechanism):
    """Noise on a strategy, then least squares: the matrix mechanism.

    Let h be the histogram of the records, and W h the sums of the answers. A strategy is a list of
    measurements A h that determine W h: W h = R A h with R = W A^+. The mechanism adds noise z to
    the measurements and computes M(X) = R (A h + z) / n = (W h + R z) / n.

    * For `PureDP`, z is independent Laplace noise, calibrated to the l1 sensitivity of A. The
      strategy is `strategy` (a `Strategy`), or the best known strategy for the workload. For
      tables, the known strategies measure weighted tables of sets of columns (all columns, blocks
      of covering designs, smaller sets) or products of signs. A tree and the Haar wavelet are known
      strategies for m queries on N elements with 2 <= N <= 2^12 and m N <= 2^26, but not for
      `MarginalTables`. So are soft bins (for N <= 2^10) and the p-identity strategy (for N <= 2^8).
    * For `ZCDP` and `ApproxDP`, z is isotropic Gaussian noise, calibrated to the l2 sensitivity of
      A. R R^T is the matrix S of the `Ellipsoid` mechanism. By duality this is the best choice: if
      S is optimal and n is public, no linear mechanism with Gaussian noise has less error.

    Notation and parameters are those of `AdditiveMechanism`. A `strategy` without `PureDP` raises
    ``ValueError``. With `PureDP`, a workload without a known strategy raises ``ValueError`` on
    first use. Strategies are known only for tables, for answers that are linear in products of two
    signs, and for at most 2^12 elements (for `SparseQueries`, those of `SparseQueries.explicit`).

    Notes
    -----
    Privacy: epsilon-DP, rho-zCDP or (epsilon, delta)-DP, in real arithmetic. M is a function of the
    noisy measurements and of n, and the strategy is public. The sampler is as in `Hierarchical`.

    Error: the root mean squared error per query is exactly (E ||R z||^2 / m)^(1/2) / n. The set-up
    runs on first use. With the p-identity strategy, it takes seconds for 256 elements, and minutes
    for 1024. It takes a second for tables of ten columns, and 6 seconds for all 4-way tables of 20
    binary columns.

    References
    ----------
    Li-Miklau-Hay-McGregor-Rastogi 2015; McKenna-Miklau-Hay-Machanavajjhala 2018; formula sheet
    GEN-3, JL-ELL, JL-GAUSS, JL-SPLIT.

    Examples
    --------
    >>> import geomdp as gd
    >>> workload = gd.workloads.Prefixes(16)
    >>> best = gd.mechanisms.Matrix(workload, n=1000, privacy=gd.PureDP(1.0))
    >>> round(best.predicted_rmse.value, 4)
    0.0046

    >>> from geomdp.mechanisms.strategies import Haar
    >>> mechanism = gd.mechanisms.Matrix(workload, n=1000, privacy=gd.PureDP(1.0), strategy=Haar())
    >>> mechanism.design, round(mechanism.predicted_rmse.value, 4)
    ('Haar wavelet', 0.007)
    """

    def __init__(
        self,
        workload: Workload,
        *,
        n: int,
        privacy: Privacy,
        adjacency: Adjacency = Adjacency.REPLACE_ONE,
        strategy: Strategy | None = None,
    ) -> None:
        if strategy is not None and not isinstance(privacy, PureDP):
            raise ValueError(
                "strategy must be None unless privacy is PureDP, because the best strategy for "
                f"Gaussian noise is known; got {privacy!r}"
            )
        super().__init__(workload, n=n, privacy=privacy, adjacency=adjacency, strategy=strategy)

    def _strategies(self) -> list[Strategy]:
        return laplace_strategies(self.workload)

    @property
    def design(self) -> str:
        return super().design if isinstance(self.privacy, PureDP) else "ellipsoid"

    @cached_property
    def noise(self) -> MappedNoise:
        if isinstance(self.privacy, PureDP):
            return self._design.noise(self.privacy.epsilon)
        return MappedNoise([Part(self._gaussian(self._root.shape[1]), self._root)])

    @cached_property
    def _root(self) -> FloatArray:
        return least_trace_root(self.workload, self.adjacency)

    def _gaussian(self, dimension: int) -> GaussianNoise:
        # Let S = B B^T. Every difference of neighbours lies in the ellipsoid of S, so it is B u
        # with ||u||_2 <= 1. A measurement with the differences u therefore has l2 sensitivity 1,
        # and B maps this measurement to the answers.
        assert not isinstance(self.privacy, PureDP)
        return GaussianNoise(np.eye(dimension), proved_gaussian_scale(1, self.privacy))

    @cached_property
    def _rows(self) -> CertifiedRows | None:
        if isinstance(self.privacy, PureDP):
            return None
        return certified_rows(self.workload, self._root, self.adjacency, self._gaussian_of)

    def _gaussian_of(self, root: FloatArray) -> MappedNoise:
        return MappedNoise([Part(self._gaussian(len(root)), root)])

    def _on_real_records(self) -> RealRecords | None:
        if isinstance(self.privacy, PureDP):
            return None
        return enlarged_ellipsoid(self.workload, self._root, self._gaussian_of)

    def _in_units(self, units: Units) -> ScaledAnswers | None:
        # Laplace noise is added to measurements of counts. Counts need no change of units.
        if isinstance(self.privacy, PureDP):
            return None
        root = self._root * units.factor
        rows = certified_rows(units.workload, root, self.adjacency, self._gaussian_of)
        return units.with_rows(rows)
