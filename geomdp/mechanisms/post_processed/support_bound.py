"""Upper bounds on E h_K(Z) for noise Z, where h_K is the support function of a body K.

If the noisy mean answers over n records are projected on K, the expected squared l2 error of the
answers is at most E h_K(Z) / n.
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
    """E h_K(Z) of a noise and a body: a quick test against a limit, and an upper bound.

    Parameters
    ----------
    noise : Noise
        Symmetric noise Z on R^m.
    body : Body
        K in R^m, with a support function.
    draws : int
        Largest number of draws for the bound: `most` of `expected_support_bound`.
    """

    noise: Noise
    body: Body
    draws: int

    @cached_property
    def bound(self) -> SupportBound:
        """The upper bound of `expected_support_bound`; computed on first use."""
        return expected_support_bound(self.noise, self.body, self.draws)

    @cached_property
    def _pilot(self) -> float:
        """A lower confidence limit from 8 public draws."""
        draws = self.noise.sample(np.random.default_rng(PUBLIC_SEED), PILOT_DRAWS)
        values = self.body.breadth(draws) / 2
        return float(values.mean() - PILOT_ERRORS * values.std(ddof=1) / math.sqrt(PILOT_DRAWS))

    def exceeds(self, limit: float) -> bool:
        """Whether 8 draws show that E h_K(Z) is above `limit`.

        Suppose that a caller has other upper bounds, and passes the least of them as `limit`. If
        the answer is True, `bound` is very likely above `limit` and need not be computed. If this
        answer is wrong, `limit` is still an upper bound, but not the least one.
        """
        return self._pilot > limit


def expected_support_bound(noise: Noise, body: Body, most: int = MAX_DRAWS) -> SupportBound:
    """Upper bound on E h_K(Z) for Z drawn from `noise`; it uses public objects alone.

    * Gaussian noise is sigma g, where g is standard Gaussian in a subspace that contains all
      differences of points of K. The bound is sigma times the Gaussian width w(K). If w(K) has no
      closed form, the bound is sigma times the upper end of the interval of `gaussian_width`. That
      interval is proved, and misses w(K) with probability at most 1e-3.
    * K-norm noise of a body of dimension r is Z = R U. Here U is uniform on this body, and
      E R = (r + 1) / epsilon. The bound is E R times an upper limit of E h_K(U).
    * For `GeometricNoise`, `StaircaseNoise` and `LatticeBoxNoise` the bound is in closed form: the
      sum over i of E |Z_i| (h_K(e_i) + h_K(-e_i)) / 2. For `LatticeBoxNoise`, upper bounds stand
      in place of the E |Z_i|. For large epsilon these noises are almost always near 0, and their
      rare large values are missing from a few hundred draws. The bound is infinite above 512
      coordinates.
    * For any other noise, the bound is an upper limit of E h_K(Z).

    The upper limits for K-norm noise and for other noise are one-sided confidence limits by
    Student's t, at level 1e-6. They come from at most `most` draws with a fixed public seed. They
    are asymptotic and not proved. For skew distributions and few draws, a limit is below the mean
    more often. For one exponential variable the probability is near 5e-6 with 2048 draws, 2e-5 with
    512 draws, 1e-4 with 105 draws and 6e-4 with 32 draws. Each limit has its own level: a caller
    that compares several bounds must add up the levels. Since Z and -Z have the same distribution,
    every draw contributes (h_K(Z) + h_K(-Z)) / 2.

    Parameters
    ----------
    noise : Noise
        Symmetric noise on R^m.
    body : Body
        K in R^m, with a support function.
    most : int
        Largest number of draws for limits by Student's t. The other bounds ignore it.
    """
    if isinstance(noise, GaussianNoise):
        width = gaussian_width(body, rng=PUBLIC_SEED)
        how = "closed form" if width.samples == 0 else f"upper limit, {width.samples} draws"
        return SupportBound(noise.scale * width.interval[1], f"sigma w(K), w {how}")
    if isinstance(noise, KnownSizes):
        return _by_coordinates(noise, body)
    rng = np.random.default_rng(PUBLIC_SEED)
    draws = min(most, max(MIN_DRAWS, MAX_NUMBERS // noise.dimension))
    if isinstance(noise, KNormNoise):
        points = noise.uniform.draw(rng, draws)
        factor = (noise.effective_dimension + 1) / noise.epsilon
    else:
        points, factor = noise.sample(rng, draws), 1.0
    limit = _upper_limit(body.breadth(points) / 2)
    source = f"E h_K(Z) by {draws} public draws, upper limit at level {LEVEL:g}"
    return SupportBound(factor * limit, source)


def _by_coordinates(noise: KnownSizes, body: Body) -> SupportBound:
    """The sum over i of E |Z_i| (h_K(e_i) + h_K(-e_i)) / 2; infinite above 512 coordinates.

    Z and -Z have the same distribution, so E h_K(Z) = E s(Z) with s(z) = (h_K(z) + h_K(-z)) / 2.
    Because s is a seminorm, s(Z) is at most the sum over i of s(Z_i e_i) = |Z_i| s(e_i). If the
    noise gives only upper bounds on the E |Z_i|, these bounds take their place.
    """
    if noise.dimension > MAX_DRAWS:
        return SupportBound(math.inf, f"not computed above {MAX_DRAWS} coordinates")
    value = float(noise.mean_sizes() @ body.breadth(np.eye(noise.dimension))) / 2
    return SupportBound(value, "E |Z_i| in closed form, coordinate by coordinate")


def _upper_limit(values: FloatArray) -> float:
    """One-sided upper confidence limit for the mean of independent values (b,), by Student's t."""
    quantile = -float(scipy.special.stdtrit(len(values) - 1, LEVEL))
    return float(values.mean() + quantile * values.std(ddof=1) / math.sqrt(len(values)))
