"""Volumes and volume radii of convex bodies, within their affine hulls."""

from __future__ import annotations

import math

import numpy as np
import scipy.special

from geomdp._typing import FloatArray, RandomState
from geomdp._validation import probability, whole
from geomdp.bodies.base import MEMBERSHIP_TOLERANCE, Body
from geomdp.bodies.norm_balls.unit_ball import log_unit_ball_volume
from geomdp.bodies.operand import checked_body
from geomdp.bodies.oracles import MissingOracle
from geomdp.bodies.polytopes.triangulated import triangulated
from geomdp.geometry.results import Estimate
from geomdp.geometry.volumes.annealed import annealed_volume

#: Entries of one batch of points: 16 MB of float64.
BATCH_ENTRIES = 2**21
#: If fewer points than this lie in a body that implements `chord`, `volume` returns the estimate of
#: `annealed_volume` and not the estimate by rejection. With at least this many points in the body,
#: the relative standard error of the estimate by rejection is at most 10%.
ENOUGH_HITS = 100


def volume(
    body: Body, rng: RandomState = None, samples: int = 100_000, level: float = 1e-3
) -> Estimate:
    """Volume of a body within its affine hull.

    The volume is computed by the first of these methods that works for the body:

    1. Exactly: by a closed form, or by cutting a small polytope with listed vertices into
       simplices.
    2. By rejection: count the uniform points of the bounding box, in the coordinates of the affine
       hull, that hit the body. For a ball, 0.25% hit in dimension 10, so this works in small
       dimensions only.
    3. By `annealed_volume`, if there are fewer than 100 hits and the body implements `chord`.

    Parameters
    ----------
    body : Body
        K, with `volume`, `vertex_list`, or a support function and membership.
    rng : numpy Generator, int or None
        Randomness of the points.
    samples : int
        Number of points n for rejection, at least 2. Annealing does not use this number.
    level : float
        A number in (0, 1). With rejection, the interval misses the volume with at most this
        probability.

    Returns
    -------
    Estimate
        With rejection, the interval of Clopper and Pearson is valid for any n. With annealing, it
        is a normal approximation that assumes, without proof, that the Markov chains have mixed.

    Raises
    ------
    MissingOracle
        If no method works: rejection lacks a membership test or a support function.
    ValueError
        For `samples` < 2 or `level` outside (0, 1).

    References
    ----------
    Clopper and Pearson (1934); formula sheet GEN-4.

    Examples
    --------
    >>> import geomdp as gd
    >>> triangle = gd.bodies.VPolytope([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> round(gd.volume(triangle).value, 6)
    0.5
    >>> hexagon = gd.bodies.SlabBody([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [1.0, 1.0, 1.0])
    >>> found = gd.volume(hexagon, rng=0, samples=10_000)
    >>> found.interval[0] < 3 < found.interval[1], found.samples
    (True, 10000)
    """
    samples, level = whole(samples, "samples", minimum=2), probability(level, "level")
    if checked_body(body).implements(Body.volume):
        return Estimate.exact(body.volume())
    simplices = triangulated(body)
    if simplices is not None:
        return Estimate.exact(simplices.volume())
    if not body.has_membership:
        raise MissingOracle(
            body, "volume", "a closed form or a membership test (contains, gauge or project)"
        )
    generator = np.random.default_rng(rng)
    estimate, hits = _by_rejection(body, generator, samples, level)
    if hits < ENOUGH_HITS and estimate.samples > 0 and body.implements(Body.chord):
        return annealed_volume(body, generator, level=level)
    return estimate


def volume_radius(
    body: Body, rng: RandomState = None, samples: int = 100_000, level: float = 1e-3
) -> Estimate:
    """Volume radius vr(K) = (vol(K) / kappa_r)^(1/r): radius of the ball of R^r with this volume.

    r is the dimension of the affine hull, at least 1, and kappa_r is the volume of the unit ball of
    R^r. The interval of `volume` is mapped end by end, so the result is exact if the volume is.

    Parameters
    ----------
    body, rng, samples, level : as for `volume`
        K, and the settings of the estimate of its volume.

    Raises
    ------
    MissingOracle
        As for `volume`.
    ValueError
        If K is a single point, if its volume is outside the range of float64, or if `samples` or
        `level` is out of range.

    References
    ----------
    Formula sheet GEN-4, JL-VR.

    Examples
    --------
    >>> import geomdp as gd
    >>> round(gd.geometry.volume_radius(gd.bodies.Ball(5, radius=2.0)).value, 6)
    2.0
    >>> round(gd.geometry.volume_radius(gd.bodies.CrossPolytope(5)).value, 4)
    0.5507
    """
    rank = checked_body(body).affine_hull().dimension
    if rank == 0:
        raise ValueError(f"body must have more than one point to have a volume radius, got {body}")
    estimate = volume(body, rng, samples, level)
    if not math.isfinite(estimate.value) or (estimate.value == 0 and estimate.samples == 0):
        raise ValueError(
            f"the volume of body must be within the range of float64, got {estimate.value}"
        )

    def radius(value: float) -> float:
        if value == 0:
            return 0.0
        return math.exp((math.log(value) - log_unit_ball_volume(rank)) / rank)

    low, high = (radius(end) for end in estimate.interval)
    value = radius(estimate.value)
    relative = estimate.stderr / estimate.value if estimate.value > 0 else 0.0
    return Estimate(value, value * relative / rank, (low, high), estimate.samples)


def _by_rejection(
    body: Body, rng: np.random.Generator, samples: int, level: float
) -> tuple[Estimate, int]:
    """The estimate from uniform points of the bounding box, and the number of hits."""
    hull = body.affine_hull()
    if hull.dimension == 0:
        return Estimate.exact(1.0), 0
    axes = np.ascontiguousarray(hull.basis.T)
    shift = axes @ hull.offset
    upper, lower = body.support(axes) - shift, -body.support(-axes) - shift
    box = float(np.prod(upper - lower))
    # Rounding moves points off a lower-dimensional hull, so membership there needs a tolerance.
    tolerance = 0.0 if hull.dimension == hull.ambient else MEMBERSHIP_TOLERANCE
    rows = max(1, BATCH_ENTRIES // body.dimension)
    hits = 0
    for start in range(0, samples, rows):
        count = min(rows, samples - start)
        coordinates: FloatArray = lower + (upper - lower) * rng.random((count, hull.dimension))
        hits += int(body.contains(hull.embed(coordinates), tolerance).sum())
    share = hits / samples
    low, high = _clopper_pearson(hits, samples, level)
    stderr = math.sqrt(share * (1 - share) / samples)
    return Estimate(box * share, box * stderr, (box * low, box * high), samples), hits


def _clopper_pearson(hits: int, trials: int, level: float) -> tuple[float, float]:
    """Interval that misses the success probability with probability at most `level`."""
    low = scipy.special.betaincinv(hits, trials - hits + 1, level / 2) if hits else 0.0
    misses = trials - hits
    high = scipy.special.betaincinv(hits + 1, misses, 1 - level / 2) if misses else 1.0
    return float(low), float(high)
