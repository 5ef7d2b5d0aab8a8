"""Upper bounds on the error of a mechanism in three measures, for every data set of n records."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache, singledispatch

import numpy as np

from geomdp.bodies import CrossPolytope
from geomdp.bounds import RMS, MeanL2, Metric, WorstCase
from geomdp.mechanisms import AdditiveMechanism, Mechanism, PredictionKind, Projected
from geomdp.mechanisms.post_processed.projected import STANDARD_ERRORS, squared_noise_limit
from geomdp.mechanisms.post_processed.support_bound import expected_support_bound
from geomdp.noise import GaussianNoise, KNormNoise, LaplaceNoise
from geomdp.noise.base import KnownSizes, Noise
from geomdp.noise.maxima import expected_maximum, is_log_concave

#: Two bounds whose ratio differs from 1 by less than this share count as equal. The duality gap
#: that predictions of projections include is mostly a smaller share. It can be larger for tiny
#: noise.
TELLS_APART = 1e-5
#: Largest number of draws for the expected largest coordinate of a noise. The confidence limit is
#: then 1% to 3% above the mean.
MAXIMUM_DRAWS = 2048


@dataclass(frozen=True)
class ErrorLimit:
    """An upper bound on the error per query for all data sets of n records, and its reason.

    If it is `simulated`, it uses an upper confidence limit from public draws.
    """

    value: float
    reason: str
    simulated: bool


@singledispatch
def error_limit(metric: Metric, mechanism: Mechanism) -> ErrorLimit:
    """Upper bound on the error in `metric`, per query, for every data set of n records.

    The sampler of the mechanism must be exact (JL-DEF, JL-KN, JL-L13, JL-L13b).
    """
    del mechanism
    raise ValueError(f"metric must be MeanL2, RMS or WorstCase, got {metric!r}")


@error_limit.register
def _(metric: RMS, mechanism: Mechanism) -> ErrorLimit:
    del metric
    prediction = mechanism.predicted_rmse
    value = prediction.value + STANDARD_ERRORS * prediction.stderr
    return ErrorLimit(value, prediction.source, prediction.stderr > 0 or _simulated(mechanism))


@error_limit.register
def _(metric: MeanL2, mechanism: Mechanism) -> ErrorLimit:
    """Bound on E Y for the l2 error Y, from a bound on its root mean square (E Y^2)^(1/2) >= E Y.

    K-norm noise of a body K of dimension r is R U, with a uniform point U of K and an independent
    radius R. Since (E R)^2 = (r + 1) / (r + 2) E R^2, the bound is multiplied by
    ((r + 1) / (r + 2))^(1/2). A `KnownSizes` noise Z states a bound on E ||Z||_2. This bound is
    used instead.
    """
    del metric
    limit = error_limit(RMS(), mechanism)
    if not isinstance(mechanism, AdditiveMechanism):
        return limit
    noise = mechanism.noise
    if isinstance(noise, KnownSizes):
        length = noise.mean_length() / mechanism.n + float(
            np.linalg.norm(mechanism.answer_rounding)
        )
        length /= math.sqrt(mechanism.workload.n_queries)
        return ErrorLimit(length, "the expected length of its noise", simulated=False)
    if mechanism.predicted_rmse.kind is not PredictionKind.EXACT:
        # The bound includes rounding of answers, which has no random radius.
        return limit
    if isinstance(noise, KNormNoise):
        r = noise.effective_dimension
    elif isinstance(noise, LaplaceNoise):
        r = noise.dimension
    else:
        return limit
    reason = f"{limit.reason} and the mean of its radius (JL-KN)"
    return ErrorLimit(limit.value * math.sqrt((r + 1) / (r + 2)), reason, limit.simulated)


@error_limit.register
def _(metric: WorstCase, mechanism: Mechanism) -> ErrorLimit:
    """The smaller of two bounds on the expected largest error of a query.

    The first bound is the root mean squared l2 norm of the error. The second bound, for additive
    noise only, is a bound on the expected largest coordinate of the noise.
    """
    del metric
    root = error_limit(RMS(), mechanism)
    value = root.value * math.sqrt(mechanism.workload.n_queries)
    euclidean = ErrorLimit(value, f"{root.reason}, in l2 norm", root.simulated)
    if not isinstance(mechanism, AdditiveMechanism):
        return euclidean
    # Every noise can be hashed: by its identity, or as a frozen dataclass of numbers.
    noise = _largest_noise(mechanism.noise)  # type: ignore[arg-type]
    largest = noise.value / mechanism.n + float(mechanism.answer_rounding.max())
    return euclidean if largest > euclidean.value else replace(noise, value=largest)


@lru_cache(maxsize=64)
def _largest_noise(noise: Noise) -> ErrorLimit:
    """Upper bound on E max over i of |Z_i| for the noise Z on sums, before the division by n.

    It is the smaller of a proved bound and `expected_support_bound`, because the largest |z_i| is
    the support function of the cross-polytope at z. The second is a confidence limit by Student's t
    for log-concave noise. Let Y be the largest |Z_i|, and q = Pr[Y > t]. Then E Y - E min(Y, t) is
    at most 2 t q / ln(1 / q) (Guedon 1999), 0.3% of t for q = 14 / 2048. For larger q, 2048 draws
    are all below t with probability less than 1e-6. Only the proved bound is used for Gaussian
    noise, where the second can be too small with a probability above 1e-6, and for Laplace noise,
    where it is exact.
    """
    proved = expected_maximum(noise)
    limit = ErrorLimit(proved, "the expected largest coordinate of its noise", simulated=False)
    known = isinstance(noise, KnownSizes)
    exact = isinstance(noise, LaplaceNoise | GaussianNoise)
    if exact or not (known or is_log_concave(noise)):
        return limit
    drawn = expected_support_bound(noise, CrossPolytope(noise.dimension, 1.0), MAXIMUM_DRAWS)
    if drawn.value >= proved * (1 - TELLS_APART):
        return limit
    reason = f"the largest coordinate of its noise, {drawn.source}"
    return ErrorLimit(drawn.value, reason, simulated=not known)


def _simulated(mechanism: Mechanism) -> bool:
    """Whether the bound of a projection uses E h_K(Z), or a length with a standard error."""
    if not isinstance(mechanism, Projected):
        return False
    others = mechanism.workload.l2_diameter() ** 2
    if mechanism.inner.predicted_rmse.stderr == 0:
        others = min(squared_noise_limit(mechanism.inner), others)
    closed = math.sqrt(others / mechanism.workload.n_queries)
    return mechanism.predicted_rmse.value < closed * (1 - TELLS_APART)
