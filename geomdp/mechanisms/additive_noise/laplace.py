"""The Laplace mechanism."""

from __future__ import annotations

from functools import cached_property

from geomdp.mechanisms.additive_noise.certified_rows import SLACK
from geomdp.mechanisms.additive_noise.pure import PureMechanism
from geomdp.mechanisms.additive_noise.real_records import RealRecords
from geomdp.mechanisms.additive_noise.units import ScaledAnswers, Units
from geomdp.mechanisms.quotients import LARGEST_SUM
from geomdp.mechanisms.sensitivity import l1_sensitivity
from geomdp.noise import LaplaceNoise
from geomdp.noise.exact import noise_vector
from geomdp.privacy.calibration import laplace_scale


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
