"""Volume of a body as a product of ratios between its intersections with growing balls."""

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

#: Burn-in of every phase, in autocorrelation times of the whole body. A phase estimates one ratio.
#: Its chains start uniform on a part of the body of the phase that has at least about half the
#: volume.
RELAXATIONS = 5.0
#: Number of points of a chain that are kept per autocorrelation time. More would be nearly equal.
POINTS_PER_TIME = 4
#: Number of independent chains. Each gives an estimate of a ratio; their spread gives the error.
CHAINS = 128


def annealed_volume(
    body: Body, rng: RandomState = None, draws: int = 64, level: float = 0.05
) -> Estimate:
    """Volume of a body within its affine hull, in dimensions too high for rejection from a box.

    In rounded coordinates, with balls B_i of radii r 2^(i/m) about the centre,

        vol K = vol(r B) (vol(K and r B) / vol(r B)) prod_i vol(K and B_(i+1)) / vol(K and B_i),

    where "and" is the intersection and each ratio of the product is at most 2, as K is convex. The
    first ratio is estimated by the share of uniform points of the ball r B that lie in K. Every
    other one is estimated by the share of points of K and B_(i+1) that lie in B_i. These points
    come from independent hit-and-run chains, which start where those of the ratio before ended.

    Parameters
    ----------
    body : Body
        K, with a `chord` of its own or one found by bisection.
    rng : numpy Generator, int or None
        Randomness of chains and points.
    draws : int
        Number of points kept of each of the 128 chains for each ratio, four per autocorrelation
        time.
    level : float
        Probability that the interval misses the volume if the normal approximation is exact, in
        (0, 1).

    Returns
    -------
    Estimate
        The standard error comes from the spread between chains and treats the ratios as
        independent. The interval uses the normal approximation of the logarithm. Neither accounts
        for the bias of chains that have not mixed, about which nothing is proved.

    Raises
    ------
    MissingOracle
        If K has no chords.
    ValueError
        For an unbounded body, a single point, `draws` below 1, `level` outside (0, 1), or a body
        that contains none of the points of the first ball.

    Notes
    -----
    There are about (m / 2) log2(m) ratios. Each costs 128 chains of 5 + draws / 4 autocorrelation
    times.

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
    # The root mean square of a coordinate. A body in isotropic position contains a ball of that
    # radius.
    inner = float(np.sqrt((norms**2).mean() / m))
    # The radii grow up to the first one that is at least the median norm.
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
            f"body must hold a good share of a ball in rounded coordinates, none of {n} points "
            f"of the ball lie in {body!r}"
        )
    return share


def _in_ball(body: Body, radius: float, rng: np.random.Generator) -> FloatArray:
    """One uniform point of the intersection of body and ball for each chain, by rejection."""
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
    """Share of the points of the body of norm up to `wider` whose norm is at most `radius`.

    Also returns the last points of the chains.
    """
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
