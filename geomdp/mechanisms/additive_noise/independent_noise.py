"""The Laplace and the Gaussian mechanism: independent noise on each answer."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from geomdp._numerics.linalg import AffineHull
from geomdp.mechanisms.additive_noise.base import AdditiveMechanism, PureMechanism
from geomdp.mechanisms.additive_noise.real_answers import (
    SLACK,
    RealRecords,
    ScaledAnswers,
    Units,
    has_real_records,
)
from geomdp.mechanisms.base import answer_hull, l1_sensitivity, l2_sensitivity, whole_square
from geomdp.mechanisms.release import LARGEST_SUM
from geomdp.noise import GaussianNoise, LaplaceNoise
from geomdp.noise.exact import (
    RoundedGaussians,
    gaussian_vector,
    noise_vector,
    proved_gaussian_scale,
)
from geomdp.privacy import ZCDP, Adjacency, ApproxDP
from geomdp.privacy.calibration import gaussian_scale, laplace_scale
from geomdp.workloads import Workload


class Laplace(PureMechanism):
    """Independent Laplace noise on every query.

    M(X) = (sum of Q(x) + Z) / n, where the Z_i are independent Lap(D_1 / epsilon). Notation and
    parameters are those of `AdditiveMechanism`; `privacy` is a `PureDP`.

    Notes
    -----
    Privacy: epsilon-DP in real arithmetic. Sums of neighbours differ by a vector v with
    ||v||_1 <= D_1. A shift by v changes the joint density of Z by a factor of at most
    exp(epsilon ||v||_1 / D_1). The sampler is exact.

    Error: the root mean squared error of each query is sqrt(2) D_1 / (epsilon n), up to rounding.

    References
    ----------
    Dwork-McSherry-Nissim-Smith 2006; formula sheet GEN-3, section 7.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> workload = gd.workloads.Histogram(3)
    >>> mechanism = gd.mechanisms.Laplace(workload, n=100, privacy=gd.PureDP(1.0))
    >>> print(mechanism.predicted_rmse)
    rmse 0.02828
    >>> records = np.array([0] * 50 + [1] * 30 + [2] * 20)
    >>> release = mechanism.release(records, rng=0)  # a simulation: the seed voids privacy
    >>> release.answers.round(3)
    array([0.506, 0.288, 0.15 ])

    >>> mechanism.release(records).guarantee
    Guarantee(1-DP, replace-one, exact sampler)
    """

    def _prepare(self) -> None:
        self._sensitivity = l1_sensitivity(self.workload, self.adjacency)
        self.set_up()

    @cached_property
    def noise(self) -> LaplaceNoise:
        return LaplaceNoise(self.workload.n_queries, laplace_scale(self._sensitivity, self.privacy))

    def _proved_as_computed(self) -> bool:
        # For whole-number answers, a sensitivity below 2^53 is exact. The scale is rounded up.
        return self._sensitivity.is_integer() and self._sensitivity < LARGEST_SUM

    def _on_real_records(self) -> RealRecords:
        # The sensitivity is the rounded value of a closed form with a square root. The slack is
        # far larger than the rounding error.
        noise = LaplaceNoise(self.workload.n_queries, self.noise.scale * (1 + SLACK))
        return RealRecords(self.workload, noise_vector(noise), SLACK)

    def _in_units(self, units: Units) -> ScaledAnswers | None:
        sensitivity = l1_sensitivity(units.workload, self.adjacency)
        if not sensitivity.is_integer():
            return None
        scale = laplace_scale(sensitivity, self.privacy)
        return units.with_noise(LaplaceNoise(self.workload.n_queries, scale))


class Gaussian(AdditiveMechanism):
    """Isotropic Gaussian noise in the subspace of the differences between neighbours.

    M(X) = (sum of Q(x) + B g) / n with g ~ N(0, sigma^2 I_r). The columns of B (m, r) are an
    orthonormal basis of the public subspace. Up to rounding, sigma is the least scale that gives
    the guarantee for D_2 or for an upper bound on it: D_2 / sqrt(2 rho) for rho-zCDP, and the value
    of `analytic_gaussian_scale` for (epsilon, delta)-DP. Notation and parameters are those of
    `AdditiveMechanism`. Gaussian noise is never epsilon-DP, so `privacy` is a `ZCDP` or `ApproxDP`.

    Notes
    -----
    Privacy: rho-zCDP or (epsilon, delta)-DP, in real arithmetic. Sums of neighbours differ by a
    vector B v with ||v||_2 <= D_2, and sigma is calibrated to this length. The sampler is exact.

    Error: the root mean squared error per query is sigma sqrt(r / m) / n, up to rounding.

    References
    ----------
    Bun-Steinke 2016, Proposition 1.6; Balle-Wang 2018, Theorem 8; formula sheet GEN-2, JL-GAUSS.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> workload = gd.workloads.Prefixes(4)
    >>> mechanism = gd.mechanisms.Gaussian(workload, n=100, privacy=gd.ApproxDP(1.0, 1e-6))
    >>> print(mechanism.predicted_rmse)
    rmse 0.06337
    >>> records = np.repeat(np.arange(4), 25)
    >>> release = mechanism.release(records, rng=0)  # a simulation: the seed voids privacy
    >>> release.answers.round(3)
    array([0.259, 0.49 , 0.797, 1.   ])
    """

    privacy: ZCDP | ApproxDP
    _span: AffineHull

    def __init__(
        self,
        workload: Workload,
        *,
        n: int,
        privacy: ZCDP | ApproxDP,
        adjacency: Adjacency = Adjacency.REPLACE_ONE,
    ) -> None:
        if not isinstance(privacy, ZCDP | ApproxDP):
            raise ValueError(f"privacy must be ZCDP or ApproxDP for Gaussian, got {privacy!r}")
        super().__init__(workload, n=n, privacy=privacy, adjacency=adjacency)
        sensitivity = l2_sensitivity(workload, adjacency)
        self._scale = (
            proved_gaussian_scale(whole_square(sensitivity), privacy)
            # For records in the unit ball or cube of R^d, the squared sensitivity is a whole
            # number, too: 1, 2, 4, d^2 or 2 d^2.
            if workload.whole_answers or has_real_records(workload)
            else gaussian_scale(sensitivity, privacy)
        )
        self._span = answer_hull(workload, adjacency)
        self.set_up()

    @cached_property
    def noise(self) -> GaussianNoise:
        return GaussianNoise(self._span.basis, self._scale)

    def _proved_as_computed(self) -> bool:
        # If all answers are whole numbers, the scale comes from `proved_gaussian_scale`.
        return self.workload.whole_answers

    @cached_property
    def _rounded(self) -> RoundedGaussians | None:
        """Noise in R^m, private for any rounded basis; its projection to the span is `noise`."""
        if self.grid is None or self.measurement is not None:
            return None
        return RoundedGaussians(self.workload.n_queries, self._scale, self.grid)

    def _on_real_records(self) -> RealRecords:
        # The scale comes from `proved_gaussian_scale`, and the noise fills R^m.
        noise = gaussian_vector(self.workload.n_queries, self._scale)
        return RealRecords(self.workload, noise)

    def _in_units(self, units: Units) -> ScaledAnswers:
        square = whole_square(l2_sensitivity(units.workload, self.adjacency))
        scale = proved_gaussian_scale(square, self.privacy)
        return units.with_noise(GaussianNoise(np.eye(self.workload.n_queries), scale))
