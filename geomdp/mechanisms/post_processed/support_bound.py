"""Upper bounds on E h_K(Z), the quantity behind the error of every projection mechanism."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.special

from geomdp._numerics.seeds import PUBLIC_SEED
from geomdp._typing import FloatArray
from geomdp.bodies.base import Body
from geomdp.geometry.width.width import gaussian_width
from geomdp.noise import GaussianNoise, KNormNoise
from geomdp.noise.base import Noise

#: Draws of a simulation at most; their mean of h_K has a relative error near 1% in dimension 50.
MAX_DRAWS = 512
#: Smallest number of draws, for answer spaces so large that memory sets the limit.
MIN_DRAWS = 32
#: Numbers held by all draws together, which keeps h_K to seconds also where each value takes
#: milliseconds: tables of 100 columns get 105 draws, and their mean a relative error of 0.6%.
MAX_NUMBERS = 1 << 21
#: Chance that a simulated upper confidence limit lies below the mean it bounds.
LEVEL = 1e-6
#: Draws that decide whether a bound can matter at all, and their standard errors for that.
PILOT_DRAWS, PILOT_ERRORS = 8, 6.0


@dataclass(frozen=True)
class SupportBound:
    """An upper bound on E h_K(Z) and where it comes from."""

    #: The bound, in the units of the noise (sums) times those of the body (means).
    value: float
    #: What proves or estimates it.
    source: str


@dataclass(frozen=True, eq=False)
class ExpectedSupport:
    """E h_K(Z) of one noise and body, computed no more precisely than is asked for.

    Parameters
    ----------
    noise : Noise
        Symmetric noise Z on R^m.
    body : Body
        K in R^m, with a support function.
    draws : int
        Most draws behind the bound.
    """

    noise: Noise
    body: Body
    draws: int

    @cached_property
    def bound(self) -> SupportBound:
        """`expected_support_bound`."""
        return expected_support_bound(self.noise, self.body, self.draws)

    @cached_property
    def _pilot(self) -> float:
        """A lower confidence limit from 8 public draws."""
        draws = self.noise.sample(np.random.default_rng(PUBLIC_SEED), PILOT_DRAWS)
        values = self.body.breadth(draws) / 2
        return float(values.mean() - PILOT_ERRORS * values.std(ddof=1) / math.sqrt(PILOT_DRAWS))

    def exceeds(self, limit: float) -> bool:
        """Whether E h_K(Z) is so far above `limit` that 8 draws tell.

        An upper bound on a minimum that leaves it out is still an upper bound, so a wrong answer
        costs accuracy of the bound, not its truth.
        """
        return self._pilot > limit


def expected_support_bound(noise: Noise, body: Body, most: int = MAX_DRAWS) -> SupportBound:
    """Upper bound on E h_K(Z), Z drawn from `noise`, by public computation alone.

    Gaussian noise sigma g in a space that holds the directions of K: sigma w(K), by the Gaussian
    width and the upper end of its interval. K-norm noise Z = R U: E R = (r + 1) / epsilon times
    an estimate of E h_K(U). Any other noise: an estimate of E h_K(Z). Estimates average
    (h_K(Z) + h_K(-Z)) / 2, as Z and -Z have the same distribution, over at most 512 draws with a
    fixed public seed, and enter through their upper confidence limit, one-sided Student at level
    1e-6. That limit is asymptotic, not a proof.

    Parameters
    ----------
    noise : Noise
        Symmetric noise on R^m.
    body : Body
        K in R^m, with a support function.
    most : int
        Most draws of an estimate.
    """
    if isinstance(noise, GaussianNoise):
        width = gaussian_width(body, rng=PUBLIC_SEED)
        how = "closed form" if width.samples == 0 else f"upper limit, {width.samples} draws"
        return SupportBound(noise.scale * width.interval[1], f"sigma w(K), w {how}")
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


def _upper_limit(values: FloatArray) -> float:
    """One-sided upper confidence limit for the mean of independent values (b,), by Student's t."""
    quantile = -float(scipy.special.stdtrit(len(values) - 1, LEVEL))
    return float(values.mean() + quantile * values.std(ddof=1) / math.sqrt(len(values)))
