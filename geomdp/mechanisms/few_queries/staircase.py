"""The staircase mechanism for one query."""

from __future__ import annotations

from functools import cached_property

from geomdp.mechanisms.additive_noise.pure import PureMechanism
from geomdp.mechanisms.additive_noise.units import ScaledAnswers, Units
from geomdp.mechanisms.quotients import LARGEST_SUM
from geomdp.mechanisms.sensitivity import l1_sensitivity
from geomdp.noise import StaircaseNoise

#: If epsilon is above 128, the noise for epsilon = 128 is drawn, which gives a stronger guarantee
#: than the stated epsilon. The standard deviation of this noise is below 10^-18 of the sensitivity,
#: less than the rounding error of a mean.
MOST_EPSILON = 128.0


class Staircase(PureMechanism):
    """Staircase noise on one query: the least variance of all epsilon-DP noise on a real number.

    M(X) = (sum of q(x) + Z) / n with Z drawn from `StaircaseNoise`. The density of Z is constant on
    steps, and falls by the factor e^epsilon from step to step. The steps have the width D_1, but
    the step around 0 is narrower. Notation and parameters are those of `AdditiveMechanism`;
    `privacy` is a `PureDP`. More than one query raises ``ValueError``, too.

    Notes
    -----
    Privacy: epsilon-DP in real arithmetic. Sums of neighbours differ by at most D_1, and densities
    at most D_1 apart differ by at most the factor e^epsilon. The sampler is exact.

    Error: exactly D_1 (2^(-2/3) b^(2/3) (1 + b)^(2/3) + b)^(1/2) / ((1 - b) n) with
    b = exp(-epsilon), for epsilon up to 128. A larger epsilon has the error of epsilon = 128. The
    error is less than the error sqrt(2) D_1 / (epsilon n) of `Laplace`. For epsilon up to 128, no
    epsilon-DP noise on a real number has a smaller error (Geng-Viswanath 2014). For large epsilon
    up to 128, it falls like exp(-epsilon / 3). Unseeded releases may round answers first (see
    `answer_rounding`). For whole-number answers, `Geometric` can be better.

    References
    ----------
    Geng-Viswanath 2014, "The optimal mechanism in differential privacy"; formula sheet GEN-3.

    Examples
    --------
    >>> import geomdp as gd
    >>> query = gd.workloads.Explicit([[0.0, 0.25, 0.6, 1.0]])
    >>> for epsilon in (0.1, 1.0, 10.0):
    ...     setting = {"n": 100, "privacy": gd.PureDP(epsilon)}
    ...     staircase = gd.mechanisms.Staircase(query, **setting)
    ...     laplace = gd.mechanisms.Laplace(query, **setting)
    ...     print(staircase.predicted_rmse, "/", laplace.predicted_rmse)
    rmse 0.1414 / rmse 0.1414
    rmse 0.01385 / rmse 0.01414
    rmse 0.0002911 / rmse 0.001414
    """

    def _prepare(self) -> None:
        if self.workload.n_queries != 1:
            raise ValueError(
                f"workload must have 1 query for Staircase, got {self.workload.n_queries}"
            )
        self._sensitivity = l1_sensitivity(self.workload, self.adjacency)
        self.set_up()

    @cached_property
    def noise(self) -> StaircaseNoise:
        return self._noise_for(self._sensitivity)

    def _noise_for(self, sensitivity: float) -> StaircaseNoise:
        return StaircaseNoise(sensitivity, min(self.privacy.epsilon, MOST_EPSILON))

    def _proved_as_computed(self) -> bool:
        # A sensitivity that is a whole number below 2^53 is exact. The proof holds for the float64
        # values of epsilon and of the share g of a step (see `StaircaseNoise`).
        return self._sensitivity.is_integer() and self._sensitivity < LARGEST_SUM

    def _in_units(self, units: Units) -> ScaledAnswers | None:
        sensitivity = l1_sensitivity(units.workload, self.adjacency)
        if not sensitivity.is_integer():
            return None
        return units.with_noise(self._noise_for(sensitivity))
