"""Runs of Markov chains: burn-in, thinning, storage, and means with their standard errors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy

from geomdp._typing import FloatArray
from geomdp._validation import batch, finite_array, whole
from geomdp.bodies import Body
from geomdp.geometry.results import Estimate
from geomdp.geometry.sampling.diagnostics import bulk_ess, split_r_hat
from geomdp.geometry.sampling.kernels import Kernel

#: Least number of draws of a chain per autocorrelation time. With fewer draws, the estimate of the
#: autocorrelation time is not trusted. Vehtari et al. (2021) ask for 50 effective draws from each
#: half of 4 chains. Fewer draws suffice here, because many more chains are pooled.
DRAWS_PER_TIME = 20.0
#: Chains agree if every split R-hat is at most this limit. Let tau be the autocorrelation time. The
#: mean of n draws of a half-chain has tau / n times the variance of a draw. Therefore R-hat is near
#: 1 + tau / (2 n) even for chains that have mixed. `DRAWS_PER_TIME` requires n >= 10 tau, and
#: n = 10 tau gives an R-hat of 1.05. The limit leaves another 0.05 for chance.
AGREEMENT = 1.1
#: Largest number of states kept per chain in a pilot run. If there are more states, every other
#: state is dropped.
KEPT = 256
#: Probability that the interval of a mean over chains misses the true mean.
LEVEL = 0.05


@dataclass(frozen=True)
class Chains:
    """States that a set of chains passed through.

    Parameters
    ----------
    draws : (chains, draws, m) array
        Stored states, in order.
    steps : int
        Number of kernel steps that each chain has made, burn-in included.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> from geomdp.geometry import sampling
    >>> start, rng = np.zeros((4, 2)), np.random.default_rng(0)
    >>> chains = sampling.run_chains(sampling.HitAndRun(), gd.bodies.Ball(2), start, rng, draws=10)
    >>> chains.draws.shape, chains.steps
    ((4, 10, 2), 10)
    >>> bool((chains.last == chains.draws[:, -1]).all())
    True
    """

    draws: FloatArray
    steps: int

    @property
    def last(self) -> FloatArray:
        """The last states of the chains: (chains, m)."""
        return np.ascontiguousarray(self.draws[:, -1])


@dataclass(frozen=True)
class Mixing:
    """The autocorrelation time of chains, measured by a pilot run.

    Parameters
    ----------
    correlation_time : float
        Integrated autocorrelation time in kernel steps: the maximum over all coordinates, the
        squares of the coordinates, and the squared norm.
    agreed : bool
        Whether the pilot run passed the diagnostics before it reached the limit on steps.
    chains : Chains
        The second half of the pilot run.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> from geomdp.geometry import sampling
    >>> disc, rng = gd.bodies.Ball(2), np.random.default_rng(0)
    >>> start = 0.9 * disc.extreme_point(rng.standard_normal((32, 2)))
    >>> found = sampling.measure_mixing(sampling.HitAndRun(), disc, start, rng)
    >>> found.agreed, found.correlation_time < 20
    (True, True)
    """

    correlation_time: float
    agreed: bool
    chains: Chains


def run_chains(
    kernel: Kernel,
    body: Body,
    start: FloatArray,
    rng: np.random.Generator,
    *,
    draws: int,
    burn_in: int = 0,
    thinning: int = 1,
) -> Chains:
    """Run one chain from each start point; store every `thinning`-th state after `burn_in` steps.

    Each chain makes burn_in + draws * thinning steps.

    Parameters
    ----------
    kernel : Kernel
        The step of the chains.
    body : Body
        Full-dimensional body in R^m.
    start : (chains, m) array
        Points of the body.
    rng : Generator
        Source of all randomness.
    draws : int
        States stored per chain, at least 1.
    burn_in : int
        Number of steps at the start, at least 0. States of these steps are not stored.
    thinning : int
        Number of later steps per stored state, at least 1.

    Raises
    ------
    ValueError
        For a bad count or shape, or if a chain moves to infinity because the body is unbounded.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> from geomdp.geometry import sampling
    >>> disc, rng = gd.bodies.Ball(2), np.random.default_rng(0)
    >>> start = np.zeros((100, 2))
    >>> chains = sampling.run_chains(sampling.HitAndRun(), disc, start, rng, draws=5, burn_in=20)
    >>> chains.draws.shape
    (100, 5, 2)
    >>> bool(disc.contains(chains.last).all())
    True
    """
    draws, thinning = whole(draws, "draws"), whole(thinning, "thinning")
    burn_in = whole(burn_in, "burn_in", minimum=0)
    points = batch(start, body.dimension, "start")
    for _ in range(burn_in):
        points = kernel.step(rng, body, points)
    stored = np.empty((len(points), draws, body.dimension))
    for k in range(draws):
        for _ in range(thinning):
            points = kernel.step(rng, body, points)
        stored[:, k] = points
    if not np.isfinite(stored).all():
        raise ValueError("body must be bounded: a chain has left every bounded set")
    return Chains(stored, burn_in + draws * thinning)


def measure_mixing(
    kernel: Kernel,
    body: Body,
    start: FloatArray,
    rng: np.random.Generator,
    *,
    limit: int = 1 << 16,
) -> Mixing:
    """Double the length of a pilot run until its second half passes the diagnostics.

    The run also ends if another doubling would exceed `limit`. The second half passes if each chain
    has at least 20 draws per autocorrelation time, and the split R-hat of every coordinate, its
    square and the squared norm is at most 1.1. Squares are tested because chains stuck near 0, the
    centre of a symmetric body, have the right mean. If `agreed` of the result is False, the true
    autocorrelation time is probably longer.

    Parameters
    ----------
    kernel, body, start, rng : as for `run_chains`
        There should be about 30 start points or more, farther from the centre than uniform points.
    limit : int
        Largest number of steps per chain. The first 64 steps are made in any case.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> from geomdp.geometry import sampling
    >>> box, rng = gd.bodies.Box.centred([1.0, 1.0]), np.random.default_rng(0)
    >>> start = 0.9 * box.extreme_point(rng.standard_normal((32, 2)))
    >>> found = sampling.measure_mixing(sampling.CoordinateHitAndRun(), box, start, rng)
    >>> found.agreed, round(found.correlation_time)
    (True, 1)
    """
    thinning = 1
    kept = run_chains(kernel, body, start, rng, draws=64)
    while True:
        second = Chains(kept.draws[:, kept.draws.shape[1] // 2 :], kept.steps)
        functions = _test_functions(second.draws)
        chains, length, _ = functions.shape
        time = chains * length / float(bulk_ess(functions).min())
        agreed = float(np.max(split_r_hat(functions))) <= AGREEMENT
        agreed = agreed and length >= DRAWS_PER_TIME * time
        if agreed or 2 * kept.steps > limit:
            return Mixing(max(time, 1.0) * thinning, agreed, second)
        draws = kept.draws.shape[1]
        more = run_chains(kernel, body, kept.last, rng, draws=draws, thinning=thinning)
        kept = Chains(np.concatenate([kept.draws, more.draws], axis=1), kept.steps + more.steps)
        if 2 * draws > KEPT:
            kept, thinning = Chains(kept.draws[:, 1::2], kept.steps), 2 * thinning


def _test_functions(draws: FloatArray) -> FloatArray:
    squares = draws**2
    return np.concatenate([draws, squares, squares.sum(axis=2, keepdims=True)], axis=2)


def chain_mean(values: FloatArray) -> Estimate:
    """Mean of `values` (chains, draws) with a 95% interval by Student's t from the means of chains.

    ``ValueError`` for fewer than 2 chains, NaN or infinity.
    """
    values = finite_array(values, "values", ndim=2)
    chains = whole(len(values), "number of chains", minimum=2)
    means = values.mean(axis=1)
    stderr = float(means.std(ddof=1) / np.sqrt(chains))
    reach = float(scipy.special.stdtrit(chains - 1, 1 - LEVEL / 2)) * stderr
    value = float(means.mean())
    return Estimate(value, stderr, (value - reach, value + reach), chains)
