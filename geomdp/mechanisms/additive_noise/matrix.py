"""The matrix mechanism: noise on a strategy that is optimised for the workload."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from geomdp._typing import FloatArray
from geomdp.mechanisms.additive_noise.certified_rows import CertifiedRows, certified_rows
from geomdp.mechanisms.additive_noise.ellipsoid import least_trace_root
from geomdp.mechanisms.additive_noise.strategy_mechanism import StrategyMechanism
from geomdp.mechanisms.additive_noise.units import ScaledAnswers, Units
from geomdp.mechanisms.strategies import Strategy, laplace_strategies
from geomdp.noise import GaussianNoise, MappedNoise, Part
from geomdp.noise.exact import proved_gaussian_scale
from geomdp.privacy import Adjacency, Privacy, PureDP
from geomdp.workloads import Workload


class Matrix(StrategyMechanism):
    """Noise on a strategy, then least squares: the matrix mechanism.

    A strategy is a list of measurements A h, linear in the histogram h of the records, from which
    the answers follow as W h = R A h with R = W A^+. M(X) = (W h + R z) / n, which is
    R (A h + z) / n: the answers are computed from the noisy measurements. z is

    * for `PureDP`, independent Laplace noise with the l1 sensitivity of A; the strategy is
      `strategy` or the best of weighted marginals and products of signs for tables, and of a tree,
      the Haar wavelet and the p-identity strategy for listed universes;
    * for `ZCDP` and `ApproxDP`, isotropic Gaussian noise with the l2 sensitivity of A. The optimal
      R A is known by duality: R R^T is the matrix S of the `Ellipsoid` mechanism, and with n
      public nothing linear with Gaussian noise has less error where that is optimal.

    Parameters and errors are those of `AdditiveMechanism`; `strategy` (a `Strategy`) is the only
    one considered, where it is given, and a ``ValueError`` with Gaussian noise. A workload without
    a known strategy (an infinite universe, or one above 2^12 elements that is no table) is a
    ``ValueError`` on first use.

    Notes
    -----
    Privacy: for all neighbouring X, X' and measurable T,
    Pr[M(X) in T] <= e^epsilon Pr[M(X') in T] for `PureDP`, in real arithmetic, because A h moves by
    at most its l1 sensitivity, the measurements are then epsilon-DP, and M is a function of them
    and of n. With Gaussian noise rho-zCDP or (epsilon, delta)-DP, in the same way. The strategy
    depends on public arguments only. The sampler is exact for the strategies of this package; for
    another it is what its noise says.

    Error: exactly (E ||R z||^2 / m)^(1/2) / n per query.

    The set-up runs on first use: the p-identity strategy takes seconds at 256 elements and minutes
    at 1024, tables of ten columns less than a second.

    References
    ----------
    Li-Miklau-Hay-McGregor-Rastogi 2015; McKenna-Miklau-Hay-Machanavajjhala 2018; formula sheet
    GEN-3, JL-ELL, JL-GAUSS, JL-SPLIT.
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
            raise ValueError(f"strategy is for PureDP; the Gaussian one is known, got {privacy!r}")
        super().__init__(workload, n=n, privacy=privacy, adjacency=adjacency, strategy=strategy)

    def _strategies(self) -> list[Strategy]:
        return laplace_strategies(self.workload)

    @property
    def design(self) -> str:
        """What is measured, in words."""
        return super().design if isinstance(self.privacy, PureDP) else "ellipsoid"

    @cached_property
    def noise(self) -> MappedNoise:
        """Distribution of R z, on sums of answer vectors; set up on first use."""
        if isinstance(self.privacy, PureDP):
            return self._design.noise(self.privacy.epsilon)
        return MappedNoise([Part(self._gaussian(self._root.shape[1]), self._root)])

    @cached_property
    def _root(self) -> FloatArray:
        return least_trace_root(self.workload, self.adjacency)

    def _gaussian(self, dimension: int) -> GaussianNoise:
        # The ellipsoid B B^T = S holds the differences of neighbours, so each is B u with
        # ||u||_2 <= 1: measuring u has l2 sensitivity 1, and B computes the answers from it.
        assert not isinstance(self.privacy, PureDP)
        return GaussianNoise(np.eye(dimension), proved_gaussian_scale(1, self.privacy))

    @cached_property
    def _rows(self) -> CertifiedRows | None:
        if isinstance(self.privacy, PureDP):
            return None
        return certified_rows(self.workload, self._root, self.adjacency, self._gaussian_of)

    def _gaussian_of(self, root: FloatArray) -> MappedNoise:
        return MappedNoise([Part(self._gaussian(len(root)), root)])

    def _in_units(self, units: Units) -> ScaledAnswers | None:
        # Laplace noise goes on measurements of counts, which are whole.
        if isinstance(self.privacy, PureDP):
            return None
        root = self._root * units.factor
        rows = certified_rows(units.workload, root, self.adjacency, self._gaussian_of)
        return units.with_rows(rows)
