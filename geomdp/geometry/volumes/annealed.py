"""Volume of a body, from volume ratios of its intersections with growing balls."""

from __future__ import annotations

import math

import numpy as np
import scipy.special

from geomdp._typing import FloatArray, RandomState
from geomdp._validation import probability, whole
from geomdp.bodies.base import Body
from geomdp.bodies.norm_balls.balls import Ball
from geomdp.bodies.norm_balls.unit_ball import log_unit_ball_volume
from geomdp.bodies.operand import checked_body
from geomdp.bodies.operations.intersection import Intersection
from geomdp.geometry.results import Estimate
from geomdp.geometry.sampling.chains import Mixing, chain_mean, run_chains
from geomdp.geometry.sampling.kernels import HitAndRun
from geomdp.geometry.sampling.rounding import Walk, prepared_walk
from geomdp.geometry.sampling.samplers import pilot

#: Burn-in of every phase, in autocorrelation times of a chain on the whole body. A phase estimates
#: one ratio from points of one intersection. Its chains start nearly uniform on the next smaller
#: intersection, which has at least about half the volume. A short burn-in therefore suffices.
RELAXATIONS = 5.0
#: Largest number of points of a chain that are kept per autocorrelation time. More points would be
#: nearly equal to each other.
POINTS_PER_TIME = 4
#: Number of independent chains. Each chain estimates every ratio except the first, and the spread
#: of these estimates gives the standard error of the ratio.
CHAINS = 128


def annealed_volume(
    body: Body, rng: RandomState = None, draws: int = 64, level: float = 0.05
) -> Estimate:
    """Volume of a body within its affine hull, in dimensions too high for rejection from a box.

    In coordinates in which K is nearly isotropic, let m be the dimension of K, r the root mean
    square of a coordinate of a uniform point, and B_i the ball of radius r 2^(i/m) around 0, i = 0,
    1, ... Then

        vol K = vol(B_0) (vol(K and B_0) / vol(B_0)) prod_i vol(K and B_(i+1)) / vol(K and B_i),

    where "and" is the intersection. In the last ratio, the numerator is vol(K). Each ratio with two
    balls is at most 2, because K is convex and contains 0. The first ratio is estimated by the
    share of uniform points of the ball B_0 that lie in K. Every other ratio is the reciprocal of
    the share of points of K and B_(i+1) that lie in B_i, from independent hit-and-run chains. They
    start from uniform points of K and B_0, later from the last points of the previous ratio.

    Parameters
    ----------
    body : Body
        K, with `chord` or with a membership test. Without `chord`, bisection finds the chords.
    rng : numpy Generator, int or None
        Randomness of chains and points.
    draws : int
        Number of points that each of the 128 chains keeps for each ratio, at most four per
        autocorrelation time.
    level : float
        A number in (0, 1). If the normal approximation is exact, the interval misses the volume
        with this probability.

    Returns
    -------
    Estimate
        The first ratio has the standard error of a binomial share, the others that of the spread
        between chains. The ratios are treated as independent, and the interval uses the normal
        approximation of the logarithm. Both ignore the bias of chains that have not mixed, on which
        no bound is proved.

    Raises
    ------
    MissingOracle
        If K lacks what the chains need, such as chords or a membership test.
    ValueError
        For an unbounded body, a single point, a body without any point drawn from B_0, `draws`
        below 1 or `level` outside (0, 1).

    Notes
    -----
    There are about (m / 2) log2(m) ratios. Each ratio takes 128 chains of about 5 + draws / 4
    autocorrelation times.

    References
    ----------
    Kannan, Lovasz and Simonovits 1997; Cousins and Vempala 2016 for the choice of the radii.

    Examples
    --------
    >>> import geomdp as gd
    >>> cube = gd.bodies.Box.centred([1.0, 1.0, 1.0])
    >>> found = gd.geometry.annealed_volume(cube, rng=0, draws=64)
    >>> abs(found.value - 8) < 1
    True
    """
    draws, level = whole(draws, "draws"), probability(level, "level")
    generator = np.random.default_rng(rng)
    if checked_body(body).effective_dimension == 0:
        raise ValueError(f"body must have more than one point to have a volume, got {body!r}")
    walk = prepared_walk(body, generator)
    mixing = pilot(walk, generator, CHAINS)
    m, norms = walk.body.dimension, np.linalg.norm(mixing.chains.draws, axis=2)
    # The root mean square r of a coordinate. A body in isotropic position contains the ball of
    # radius r around its centre.
    inner = float(np.sqrt((norms**2).mean() / m))
    # The last of the radii is the first r 2^(i/m) that is at least the median norm.
    steps = max(0, math.ceil(m * math.log2(float(np.median(norms)) / inner)))
    radii = [inner * 2 ** (i / m) for i in range(steps + 1)]
    share = _share_of_ball(walk.body, inner, CHAINS * draws, generator)
    scale = float(np.linalg.slogdet(walk.root.T @ walk.root)[1]) / 2
    logarithm = scale + log_unit_ball_volume(m) + m * math.log(inner) + math.log(share)
    errors = [math.sqrt((1 - share) / (share * CHAINS * draws))]
    points = _in_ball(walk.body, inner, generator)
    for radius, wider in zip(radii, [*radii[1:], math.inf], strict=True):
        found, points = _phase(walk, mixing, radius, wider, points, draws, generator)
        logarithm -= math.log(found.value)
        errors.append(found.stderr / found.value)
    volume, relative = math.exp(logarithm), float(np.linalg.norm(errors))
    reach = float(scipy.special.ndtri(1 - level / 2)) * relative
    interval = (volume * math.exp(-reach), volume * math.exp(reach))
    return Estimate(volume, volume * relative, interval, CHAINS * draws * (len(radii) + 1))


def _share_of_ball(body: Body, radius: float, n: int, rng: np.random.Generator) -> float:
    """Share of n uniform points of a ball around 0 that lie in the body."""
    inside = body.contains(Ball(body.dimension, radius).sample_uniform(n, rng), 0.0)
    share = float(inside.mean())
    if share == 0:
        raise ValueError(
            f"body must contain a good share of a ball in rounded coordinates, but none of {n} "
            f"points of the ball lie in {body!r}"
        )
    return share


def _in_ball(body: Body, radius: float, rng: np.random.Generator) -> FloatArray:
    """Uniform points (CHAINS, m) of the intersection of a body and a ball, by rejection."""
    kept = np.empty((0, body.dimension))
    while len(kept) < CHAINS:
        points = Ball(body.dimension, radius).sample_uniform(CHAINS, rng)
        kept = np.concatenate([kept, points[body.contains(points, 0.0)]])
    return kept[:CHAINS]


def _phase(
    walk: Walk,
    mixing: Mixing,
    radius: float,
    wider: float,
    points: FloatArray,
    draws: int,
    rng: np.random.Generator,
) -> tuple[Estimate, FloatArray]:
    """The share of points within `wider` that are within `radius`, and the last points."""
    thinning = math.ceil(mixing.correlation_time / POINTS_PER_TIME)
    if math.isinf(wider):
        body, kernel = walk.body, walk.kernel
    else:
        body = Intersection([walk.body, Ball(walk.body.dimension, wider)])
        kernel = HitAndRun()
    burn_in = math.ceil(RELAXATIONS * mixing.correlation_time)
    chains = run_chains(kernel, body, points, rng, draws=draws, burn_in=burn_in, thinning=thinning)
    inside = np.linalg.norm(chains.draws, axis=2) <= radius
    return chain_mean(inside.astype(np.float64)), chains.last
