"""Upper bounds on E h_K(Z) for noise Z, where h_K is the support function of a body K.

If noisy means over n records are projected on K, their squared l2 error is at most E h_K(Z) / n.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy

from geomdp._numerics.seeds import PUBLIC_SEED
from geomdp._typing import FloatArray
from geomdp.bodies.base import Body
from geomdp.geometry.width.width import gaussian_width
from geomdp.noise import GaussianNoise, KNormNoise
from geomdp.noise.base import KnownSizes, Noise

#: Largest number of draws by default. In dimension 50, the mean of h_K over the draws has a
#: relative error near 1%. Bounds by coordinates are computed for at most this number of
#: coordinates.
MAX_DRAWS = 512
#: Number of draws in dimensions so high that `MAX_NUMBERS` would allow fewer. A caller can still
#: ask for fewer draws.
MIN_DRAWS = 32
#: Largest number of coordinates of all draws together. This limit keeps the time for h_K to seconds
#: if each value takes milliseconds: all 2-way tables of 100 binary columns get 105 draws. The mean
#: of h_K over these draws has a relative error of 0.6%.
MAX_NUMBERS = 1 << 21
#: Probability that a simulated upper confidence limit is below the mean, for normal variables.
LEVEL = 1e-6
#: `exceeds` compares a limit with the mean over 8 draws minus 6 standard errors of this mean.
PILOT_DRAWS, PILOT_ERRORS = 8, 6.0


@dataclass(frozen=True)
class SupportBound:
    """An upper bound on E h_K(Z) and where it comes from."""

    #: The bound, in units of the noise (sums) times units of the body (means).
    value: float
    #: The formula that proves the bound, or the simulation that estimates it.
    source: str


@dataclass(frozen=True, eq=False)
class ExpectedSupport:
    """E h_K(Z) of a noise and a body: a quick test against a limit, and an upper bound."""

    noise: Noise
    body: Body
    draws: int

    @cached_property
    def bound(self) -> SupportBound:
        return expected_support_bound(self.noise, self.body, self.draws)

    @cached_property
    def _pilot(self) -> float:
        """A lower confidence limit from 8 public draws."""
        draws = self.noise.sample(np.random.default_rng(PUBLIC_SEED), PILOT_DRAWS)
        values = self.body.breadth(draws) / 2
        return float(values.mean() - PILOT_ERRORS * values.std(ddof=1) / math.sqrt(PILOT_DRAWS))

    def exceeds(self, limit: float) -> bool:
        """Whether 8 draws show that E h_K(Z) is above `limit`, another upper bound.

        If this answer is wrong, `limit` is still an upper bound, but not the least one.
        """
        return self._pilot > limit


def expected_support_bound(noise: Noise, body: Body, most: int = MAX_DRAWS) -> SupportBound:
    """Upper bound on E h_K(Z) for symmetric `noise` Z on R^m and `body` K, from public objects.

    It is proved for Gaussian noise, up to a probability of 1e-3 that `gaussian_width` misses w(K),
    and for noise of known sizes (`_by_coordinates`). For all other noise it is an upper limit by
    Student's t at level 1e-6, from at most `most` public draws. This limit is asymptotic and not
    proved: for one exponential variable it is below the mean with a probability near 5e-6 for 2048
    draws, 2e-5 for 512, 1e-4 for 105 and 6e-4 for 32. A caller that compares several bounds must
    add up the levels.
    """
    if isinstance(noise, GaussianNoise):
        width = gaussian_width(body, rng=PUBLIC_SEED)
        how = "closed form" if width.samples == 0 else f"upper limit, {width.samples} draws"
        return SupportBound(noise.scale * width.interval[1], f"sigma w(K), w {how}")
    if isinstance(noise, KnownSizes):
        # For large epsilon, rare large values of these noises are missing from a few hundred draws.
        return _by_coordinates(noise, body)
    rng = np.random.default_rng(PUBLIC_SEED)
    draws = min(most, max(MIN_DRAWS, MAX_NUMBERS // noise.dimension))
    # Z = R U with U uniform on a body of dimension r, and E R = (r + 1) / epsilon.
    if isinstance(noise, KNormNoise):
        points = noise.uniform.draw(rng, draws)
        factor = (noise.effective_dimension + 1) / noise.epsilon
    else:
        points, factor = noise.sample(rng, draws), 1.0
    # Z and -Z have the same distribution, so each draw contributes (h_K(Z) + h_K(-Z)) / 2.
    limit = _upper_limit(body.breadth(points) / 2)
    source = f"E h_K(Z) by {draws} public draws, upper limit at level {LEVEL:g}"
    return SupportBound(factor * limit, source)


def _by_coordinates(noise: KnownSizes, body: Body) -> SupportBound:
    """The sum over i of E |Z_i| (h_K(e_i) + h_K(-e_i)) / 2; infinite above 512 coordinates."""
    if noise.dimension > MAX_DRAWS:
        return SupportBound(math.inf, f"not computed above {MAX_DRAWS} coordinates")
    # E h_K(Z) = E s(Z) for the seminorm s(z) = (h_K(z) + h_K(-z)) / 2, because Z is symmetric. s(Z)
    # is at most the sum of s(Z_i e_i) = |Z_i| s(e_i). Upper bounds on the E |Z_i| can take their
    # place.
    value = float(noise.mean_sizes() @ body.breadth(np.eye(noise.dimension))) / 2
    return SupportBound(value, "E |Z_i| in closed form, coordinate by coordinate")


def _upper_limit(values: FloatArray) -> float:
    """One-sided upper confidence limit for the mean of independent values (b,), by Student's t."""
    quantile = -float(scipy.special.stdtrit(len(values) - 1, LEVEL))
    return float(values.mean() + quantile * values.std(ddof=1) / math.sqrt(len(values)))
