"""Markov kernels, runs of chains, means with their standard errors, and diagnostics.

A kernel is a frozen dataclass with one method `step`. Each row of a batch of points is one chain.
Bodies must be full-dimensional; `samplers` gives other bodies such coordinates.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import scipy

from geomdp._typing import FloatArray
from geomdp._validation import batch, finite_array, whole
from geomdp.bodies import Body, HPolytope, SlabBody
from geomdp.geometry.projection import Estimate


class Kernel(Protocol):
    """A step of a Markov chain that keeps uniform points of a body uniform.

    Examples
    --------
    >>> from geomdp.geometry import sampling
    >>> sampling.HitAndRun().name
    'hit-and-run'
    >>> sampling.CoordinateHitAndRun().name
    'coordinate hit-and-run'
    """

    @property
    def name(self) -> str:
        """Name of the kernel, with which the guarantee of a release describes its sampler."""

    def step(self, rng: np.random.Generator, body: Body, points: FloatArray) -> FloatArray:
        """The next points (chains, m) of all chains, given the present `points` in `body`."""


@dataclass(frozen=True)
class HitAndRun:
    """Random-direction hit-and-run: a uniform point on the chord in a uniformly random direction.

    The body must be full-dimensional and have chords, one batch of which is computed per step. The
    kernel is reversible for the uniform distribution (Smith 1984; Lovasz 1999 for mixing times).

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> from geomdp.geometry import sampling
    >>> disc = gd.bodies.Ball(2)
    >>> points = sampling.HitAndRun().step(np.random.default_rng(0), disc, np.zeros((5, 2)))
    >>> points.shape, bool(disc.contains(points).all())
    ((5, 2), True)
    """

    name = "hit-and-run"

    def step(self, rng: np.random.Generator, body: Body, points: FloatArray) -> FloatArray:
        directions = rng.standard_normal(points.shape)
        low, high = body.chord(points, directions)
        times = low + (high - low) * rng.random(len(points))
        return points + times[:, None] * directions


@dataclass(frozen=True)
class CoordinateHitAndRun:
    """Coordinate hit-and-run: a step is one or more sweeps over all coordinates.

    One coordinate after the other is redrawn uniformly on the chord in its direction. On a polytope
    with listed facets (`HPolytope` or `SlabBody`), all chains move along the same coordinate at the
    same time, with independent randomness (X-LOCK). A sweep then costs O(F m) per chain for F
    facets in dimension m, and m batches of chords on every other full-dimensional body.

    Parameters
    ----------
    sweeps : int
        Sweeps per step, at least 1.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> from geomdp.geometry.sampling import CoordinateHitAndRun
    >>> box = gd.bodies.Box.centred([1.0, 100.0])
    >>> points = CoordinateHitAndRun().step(np.random.default_rng(0), box, np.zeros((5, 2)))
    >>> points.shape, bool(box.contains(points).all())
    ((5, 2), True)
    """

    sweeps: int = 1

    name = "coordinate hit-and-run"

    def __post_init__(self) -> None:
        whole(self.sweeps, "sweeps")

    def step(self, rng: np.random.Generator, body: Body, points: FloatArray) -> FloatArray:
        if isinstance(body, SlabBody | HPolytope):
            return self._in_lockstep(rng, body, points)
        points = points.copy()
        for _ in range(self.sweeps):
            for direction in np.eye(points.shape[1]):
                low, high = body.chord(points, np.tile(direction, (len(points), 1)))
                points += np.outer(low + (high - low) * rng.random(len(points)), direction)
        return points

    def _in_lockstep(
        self, rng: np.random.Generator, body: SlabBody | HPolytope, points: FloatArray
    ) -> FloatArray:
        from geomdp.geometry.sampling.lockstep import halfspace_sweep, slab_sweep  # slow import

        columns = np.array(points.T, order="C")
        match body:
            case SlabBody(directions=normals, widths=offsets):
                sweep = slab_sweep
            case HPolytope(normals=normals, offsets=offsets):
                sweep = halfspace_sweep
        # Fresh products in each step keep the rounding errors of updates from accumulating.
        products = normals @ columns
        for _ in range(self.sweeps):
            sweep(normals, offsets, products, columns, rng.random(columns.shape))
        return columns.T


#: Least number of draws of a chain per autocorrelation time, so that the estimate of this time is
#: trusted. Vehtari et al. (2021) ask for 50 from each half of 4 chains; here many more are pooled.
DRAWS_PER_TIME = 20.0
#: Chains agree if every split R-hat is at most this limit. For half-chains of n draws that have
#: mixed, R-hat is near 1 + tau / (2 n) for the autocorrelation time tau: 1.05 at the n >= 10 tau of
#: `DRAWS_PER_TIME`. The limit leaves another 0.05 for chance.
AGREEMENT = 1.1
#: Largest number of states kept per chain in a pilot run; of more, every other one is dropped.
KEPT = 256
#: Probability that the interval of a mean over chains misses the true mean.
LEVEL = 0.05


@dataclass(frozen=True)
class Chains:
    """States `draws` (chains, draws, m) of chains of `steps` kernel steps, burn-in included."""

    draws: FloatArray
    steps: int

    @property
    def last(self) -> FloatArray:
        """The last states of the chains: (chains, m)."""
        return np.ascontiguousarray(self.draws[:, -1])


@dataclass(frozen=True)
class Mixing:
    """The autocorrelation time of chains, measured by a pilot run."""

    #: Integrated autocorrelation time in kernel steps: the maximum over all coordinates, the
    #: squares of the coordinates, and the squared norm.
    correlation_time: float
    #: Whether the pilot run passed the diagnostics before it reached the limit on steps.
    agreed: bool
    #: The second half of the pilot run.
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

    The result has the stored states in order, `draws` (chains, draws, m); their `last` (chains, m);
    and the burn_in + draws * thinning `steps` of each chain.

    Parameters
    ----------
    kernel, body, start, rng : Kernel, Body, (chains, m) array, Generator
        The step, a full-dimensional body in R^m, points of the body, and the source of randomness.
    draws, burn_in, thinning : int
        States stored per chain, at least 1; steps before them, at least 0; steps for each stored
        state, at least 1.

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
    kernel: Kernel, body: Body, start: FloatArray, rng: np.random.Generator, *, limit: int = 1 << 16
) -> Mixing:
    """Double a pilot run up to `limit` steps, until its second half passes the diagnostics."""
    # Squares are tested because chains stuck near 0, the centre of a symmetric body, have the right
    # mean.
    thinning = 1
    kept = run_chains(kernel, body, start, rng, draws=64)
    while True:
        second = Chains(kept.draws[:, kept.draws.shape[1] // 2 :], kept.steps)
        squares = second.draws**2
        norms = squares.sum(axis=2, keepdims=True)
        functions = np.concatenate([second.draws, squares, norms], axis=2)
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


def chain_mean(values: FloatArray) -> Estimate:
    """Mean of `values` (chains, draws); 95% interval by Student's t from the means of chains."""
    chains = len(values)
    means = values.mean(axis=1)
    stderr = float(means.std(ddof=1) / np.sqrt(chains))
    reach = float(scipy.special.stdtrit(chains - 1, 1 - LEVEL / 2)) * stderr
    value = float(means.mean())
    return Estimate(value, stderr, (value - reach, value + reach), chains)


# Convergence diagnostics of Markov chains: rank-normalised split R-hat and bulk effective sample
# size (ESS). They can refute convergence but cannot prove it (SAM-3). Sources: Vehtari, Gelman,
# Simpson, Carpenter, Buerkner (2021), sections 3-4; Geyer (1992) for the monotone sequence.

#: Smallest number of draws of a chain: each half of the chain needs two draws for a variance.
MINIMUM_DRAWS = 4
#: Normal scores of a moving coordinate have a variance near 1. Up to this, it is rounding error.
STILL = 1e-20


def split_r_hat(draws: FloatArray) -> FloatArray:
    """Rank-normalised split R-hat: the larger of the bulk and the folded statistic.

    For half-chains of n draws whose values are replaced by normal scores (normal quantiles of their
    ranks), the bulk statistic is (((n - 1) W + B) / (n W))^(1/2), where W is the mean of the
    variances within half-chains, and B is n times the variance of their means. The folded statistic
    takes |x - median| in place of each value x, and detects chains that differ only in spread.

    Of finite `draws` (chains, draws, m), at least 2 chains of at least 4 draws, else
    ``ValueError``, the result is an array (m,). A value near 1 means that the chains agree. It is
    NaN or infinite if no half-chain moves in a coordinate, and NaN if |x - median| is the same for
    all draws.

    Examples
    --------
    >>> import numpy as np
    >>> from geomdp.geometry import sampling
    >>> draws = np.random.default_rng(0).standard_normal((4, 500, 1))
    >>> sampling.split_r_hat(draws).round(1).tolist()
    [1.0]
    >>> apart = draws + 5 * np.arange(4)[:, None, None]
    >>> bool(sampling.split_r_hat(apart)[0] > 2)
    True
    """
    halves = _halves(draws, least=2)
    # As in arviz, Stan and the paper, the median is over the draws of all half-chains together.
    folded = np.abs(halves - np.median(halves, axis=(0, 1)))
    return np.maximum(_r_hat(_normal_scores(halves)), _r_hat(_normal_scores(folded)))


def bulk_ess(draws: FloatArray) -> FloatArray:
    """Bulk effective sample size over all chains, from rank-normalised half-chains.

    ESS = S / (1 + 2 sum_t rho_t), t = 1, 2, ..., where S is the number of draws of all half-chains,
    and rho_t is the autocorrelation at lag t, pooled over half-chains. The rho_t are summed in
    pairs. The sum ends before the first pair that is not positive, or before the last pair. Of this
    pair, only the first term counts, half as much as others, and only if it or the sum of the pair
    is not negative. A pair counts at most as much as each pair before it (Geyer's initial monotone
    sequence).

    Of finite `draws` (chains, draws, m), at least 1 chain of at least 4 draws, else ``ValueError``,
    the result (m,) is at most S log10(S). If a coordinate does not move, its ESS is S.

    Examples
    --------
    >>> import numpy as np
    >>> from geomdp.geometry import sampling
    >>> noise = np.random.default_rng(0).standard_normal((4, 500, 1))
    >>> round(float(sampling.bulk_ess(noise)[0]), -3)
    2000.0
    >>> walks = np.cumsum(noise, axis=1)
    >>> float(sampling.bulk_ess(walks)[0]) < 50
    True
    """
    return _effective_size(_normal_scores(_halves(draws, least=1)))


@dataclass(frozen=True)
class Diagnostics:
    """Convergence diagnostics of a set of Markov chains, for each coordinate."""

    split_r_hat: FloatArray
    bulk_ess: FloatArray
    chains: int

    @classmethod
    def of(cls, draws: FloatArray) -> Diagnostics:
        """The diagnostics of `draws` (chains, draws, m)."""
        return cls(split_r_hat(draws), bulk_ess(draws), len(draws))

    @property
    def worst_r_hat(self) -> float:
        """Largest split R-hat over the coordinates where it is not NaN; NaN if there are none."""
        known = self.split_r_hat[~np.isnan(self.split_r_hat)]
        return float(known.max()) if len(known) else math.nan

    def __repr__(self) -> str:
        return f"Diagnostics({self})"

    def __str__(self) -> str:
        return (
            f"{self.chains} chains, split R-hat at most {self.worst_r_hat:.3f}, "
            f"bulk ESS at least {float(self.bulk_ess.min()):.0f}"
        )


def _halves(draws: FloatArray, least: int) -> FloatArray:
    """The first and last halves of chains; ``ValueError`` for fewer than `least` chains."""
    draws = finite_array(draws, "draws", ndim=3)
    chains, length, _ = draws.shape
    if chains < least or length < MINIMUM_DRAWS:
        raise ValueError(
            f"draws must hold at least {least} chains of at least {MINIMUM_DRAWS} draws, "
            f"got {chains} chains of {length}"
        )
    return np.concatenate([draws[:, : length // 2], draws[:, -(length // 2) :]])


def _normal_scores(draws: FloatArray) -> FloatArray:
    from scipy.stats import rankdata  # a large module, needed for chains only

    flat = draws.reshape(-1, draws.shape[2])
    # Blom (1958): the expected normal order statistic of rank r among S is near
    # the quantile at (r - 3/8) / (S + 1/4).
    scores = scipy.special.ndtri((rankdata(flat, axis=0) - 3 / 8) / (len(flat) + 1 / 4))
    return np.asarray(scores.reshape(draws.shape))


def _r_hat(draws: FloatArray) -> FloatArray:
    length = draws.shape[1]
    between = length * draws.mean(axis=1).var(axis=0, ddof=1)
    within = draws.var(axis=1, ddof=1).mean(axis=0)
    moving = within > STILL
    ratio = np.where(between > STILL, np.inf, np.nan)
    ratio[moving] = between[moving] / within[moving]
    return np.asarray(np.sqrt((ratio + length - 1) / length))


def _autocorrelation(draws: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Pooled autocorrelations (draws, m), and whether each coordinate (m,) moves."""
    chains, length, _ = draws.shape
    centred = draws - draws.mean(axis=1, keepdims=True)
    from scipy.fft import irfft, next_fast_len, rfft  # slow import

    padded = next_fast_len(2 * length, real=True)  # no wrap-around
    spectrum = np.abs(rfft(centred, n=padded, axis=1)) ** 2
    covariance = irfft(spectrum.mean(axis=0), n=padded, axis=0)[:length] / length
    within = covariance[0] * length / (length - 1)
    total = covariance[0].copy()
    if chains > 1:
        total += draws.mean(axis=1).var(axis=0, ddof=1)
    moving = total > STILL
    total[~moving] = 1.0
    return 1 - (within - covariance) / total, moving


def _effective_size(draws: FloatArray) -> FloatArray:
    chains, length, _ = draws.shape
    size = chains * length
    rho, moving = _autocorrelation(draws)
    rho[0] = 1.0
    # Sums of pairs (rho_0 + rho_1), (rho_2 + rho_3), ... are positive for a reversible chain. Of
    # more than two lags, the largest one or two, sums of few products, are left out.
    pairs = max(1, (length - 1) // 2)
    even, odd = rho[0 : 2 * pairs : 2], rho[1 : 2 * pairs : 2]
    sums = even + odd
    stop = np.where((sums <= 0).any(axis=0), np.argmax(sums <= 0, axis=0), pairs - 1)
    monotone = np.minimum.accumulate(sums, axis=0)
    counted = np.arange(pairs)[:, None] < stop
    last_even = np.take_along_axis(even, stop[None], axis=0)[0]
    last_sum = np.take_along_axis(sums, stop[None], axis=0)[0]
    last = np.where((last_even > 0) | (last_sum >= 0), last_even, 0.0)
    time = -1 + 2 * np.where(counted, monotone, 0.0).sum(axis=0) + last
    time = np.maximum(time, 1 / np.log10(size))
    return np.where(moving, size / time, float(size))
