"""The Laplace and the Gaussian mechanism: independent noise on each answer."""

from __future__ import annotations

from geomdp.mechanisms.additive_noise.base import AdditiveMechanism, PureMechanism
from geomdp.mechanisms.additive_noise.sums import Change, has_real_records
from geomdp.mechanisms.base import whole_square
from geomdp.noise import GaussianNoise, LaplaceNoise
from geomdp.noise.exact import proved_gaussian_scale
from geomdp.privacy import ZCDP, ApproxDP
from geomdp.privacy.calibration import gaussian_scale, laplace_scale


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

    at_once = True

    def law(self, change: Change) -> LaplaceNoise:
        return LaplaceNoise(self.workload.n_queries, laplace_scale(change.l1, self.privacy))


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

    accepts, in_span, at_once = (ZCDP, ApproxDP), True, True
    privacy: ZCDP | ApproxDP

    def _prepare(self) -> None:
        _ = self.change.l2, self.change.hull

    def law(self, change: Change) -> GaussianNoise:
        # For records in the unit ball or cube of R^d, the squared sensitivity is a whole number,
        # too: 1, 2, 4, d^2 or 2 d^2.
        whole = change.workload.whole_answers or has_real_records(change.workload)
        scale = (
            proved_gaussian_scale(whole_square(change.l2), self.privacy)
            if whole
            else gaussian_scale(change.l2, self.privacy)
        )
        return GaussianNoise(change.hull.basis, scale)
