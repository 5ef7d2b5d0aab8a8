"""Gaussian widths, volumes, volume radii and second moments of convex bodies."""

from __future__ import annotations

import math

import numpy as np
import scipy.special

from geomdp._numerics.linalg import row_blocks
from geomdp._typing import FloatArray, RandomState
from geomdp._validation import probability, whole
from geomdp.bodies.balls import Ball, log_unit_ball_volume, mean_norm
from geomdp.bodies.balls import mean_gaussian_norm as mean_gaussian_norm
from geomdp.bodies.balls import unit_ball_volume as unit_ball_volume
from geomdp.bodies.base import MEMBERSHIP_TOLERANCE, Body, MissingOracle, checked_body
from geomdp.bodies.products import Intersection, Product
from geomdp.bodies.vpolytope import triangulated
from geomdp.geometry.projection import Estimate
from geomdp.geometry.sampling.chains import HitAndRun, Mixing, chain_mean, run_chains
from geomdp.geometry.sampling.samplers import Walk, pilot, prepared_walk

#: Entries of one batch of points: 16 MB of float64.
BATCH_ENTRIES = 2**21
#: With at least this many points in the body, the relative standard error of the estimate by
#: rejection is at most 10%. With fewer, `volume` returns that of `annealed_volume` if it can.
ENOUGH_HITS = 100


def volume(
    body: Body, rng: RandomState = None, samples: int = 100_000, level: float = 1e-3
) -> Estimate:
    """Volume of a body within its affine hull, by the first of these methods that works for it.

    1. By a closed form, or by cutting a small polytope with listed vertices into simplices.
    2. By rejection: count the uniform points of the bounding box, in the coordinates of the affine
       hull, that hit the body (for a ball, 0.25% in dimension 10). The interval of Clopper and
       Pearson (1934) is valid for any number of points.
    3. From ratios of volumes of intersections with growing balls, estimated by Markov chains, if
       there are fewer than 100 hits and the body implements `chord` (Kannan, Lovasz and Simonovits
       1997). The interval is a normal approximation that assumes, without proof, that they have
       mixed (GEN-4).

    Parameters
    ----------
    body : Body
        K, with `volume`, `vertex_list`, or a support function and membership.
    rng, samples : numpy Generator, int or None, and int
        Randomness of the points, and their number n, at least 2.
    level : float
        Bound, in (0, 1), on the probability that the interval misses the value.

    Raises
    ------
    MissingOracle
        If no method works: rejection lacks a membership test or a support function.
    ValueError
        For `samples` < 2 or `level` outside (0, 1).

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
        return annealed_volume(body, generator, level)
    return estimate


def volume_radius(
    body: Body, rng: RandomState = None, samples: int = 100_000, level: float = 1e-3
) -> Estimate:
    """Volume radius vr(K) = (vol(K) / kappa_r)^(1/r): radius of the ball of R^r with this volume.

    r is the dimension of the affine hull, at least 1, and kappa_r is the volume of the unit ball of
    R^r. The interval of `volume` is mapped end by end. Parameters, results and errors are as there;
    ``ValueError`` also if K is a single point, or if its volume is outside the range of float64.
    Source: Formula sheet GEN-4, JL-VR.

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
    hits = 0
    for part in row_blocks(samples, body.dimension, BATCH_ENTRIES):
        shape = part.stop - part.start, hull.dimension
        coordinates: FloatArray = lower + (upper - lower) * rng.random(shape)
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


#: Burn-in of every phase, in autocorrelation times of a chain on the whole body: short, because the
#: chains start nearly uniform on the next smaller intersection, of about half the volume or more.
RELAXATIONS = 5.0
#: Largest number of points kept per autocorrelation time; more would be nearly equal.
POINTS_PER_TIME = 4
#: Number of independent chains. The spread of their estimates of a ratio gives its standard error.
CHAINS = 128


def annealed_volume(
    body: Body, rng: np.random.Generator, level: float, draws: int = 64
) -> Estimate:
    """Volume of a body within its affine hull, in dimensions too high for rejection from a box."""
    # In coordinates in which K is nearly isotropic, let m be the dimension of K, r the root mean
    # square of a coordinate of a uniform point, and B_i the ball of radius r 2^(i/m) around 0. Then
    #
    #     vol K = vol(B_0) (vol(K and B_0) / vol(B_0)) prod_i vol(K and B_(i+1)) / vol(K and B_i),
    #
    # where "and" is the intersection, and the numerator of the last ratio is vol(K). Each ratio
    # with two balls is at most 2, because K is convex and contains 0. It is the reciprocal of the
    # share of points of K and B_(i+1) that lie in B_i, from 128 independent hit-and-run chains that
    # start from the last points of the previous ratio (Kannan, Lovasz and Simonovits 1997; Cousins
    # and Vempala 2016 for the radii). There are about (m / 2) log2(m) ratios. Their errors are
    # treated as independent: that of a binomial share, and those of the spread between chains.
    walk = prepared_walk(body, rng)
    mixing = pilot(walk, rng, CHAINS)
    m, norms = walk.body.dimension, np.linalg.norm(mixing.chains.draws, axis=2)
    # The root mean square r of a coordinate. A body in isotropic position contains the ball of
    # radius r around its centre.
    inner = float(np.sqrt((norms**2).mean() / m))
    # The last of the radii is the first r 2^(i/m) that is at least the median norm.
    steps = max(0, math.ceil(m * math.log2(float(np.median(norms)) / inner)))
    radii = [inner * 2 ** (i / m) for i in range(steps + 1)]
    share = _share_of_ball(walk.body, inner, CHAINS * draws, rng)
    scale = float(np.linalg.slogdet(walk.root.T @ walk.root)[1]) / 2
    logarithm = scale + log_unit_ball_volume(m) + m * math.log(inner) + math.log(share)
    errors = [math.sqrt((1 - share) / (share * CHAINS * draws))]
    points = _in_ball(walk.body, inner, rng)
    for radius, wider in zip(radii, [*radii[1:], math.inf], strict=True):
        found, points = _phase(walk, mixing, radius, wider, points, draws, rng)
        logarithm -= math.log(found.value)
        errors.append(found.stderr / found.value)
    volume, relative = math.exp(logarithm), float(np.linalg.norm(errors))
    reach = float(scipy.special.ndtri(1 - level / 2)) * relative
    interval = (volume * math.exp(-reach), volume * math.exp(reach))
    return Estimate(volume, volume * relative, interval, CHAINS * draws * (len(radii) + 1))


def _share_of_ball(body: Body, radius: float, n: int, rng: np.random.Generator) -> float:
    """Share of n uniform points of a ball around 0 that lie in the body."""
    inside = body.contains(Ball(body.dimension, radius).sample_uniform(n, rng), 0.0)
    if not inside.any():
        raise ValueError(f"body must hold points of a ball in rounded coordinates, got 0 of {n}")
    return float(inside.mean())


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
    body, kernel = walk.body, walk.kernel
    if math.isfinite(wider):
        body, kernel = Intersection([body, Ball(body.dimension, wider)]), HitAndRun()
    burn_in = math.ceil(RELAXATIONS * mixing.correlation_time)
    chains = run_chains(kernel, body, points, rng, draws=draws, burn_in=burn_in, thinning=thinning)
    inside = np.linalg.norm(chains.draws, axis=2) <= radius
    return chain_mean(inside.astype(np.float64)), chains.last


def second_moment(
    body: Body, rng: RandomState = None, samples: int = 10_000, level: float = 1e-3
) -> Estimate:
    """E ||U||_2^2 for U uniform on a body (within its affine hull).

    The value is exact if the body has the matrix E U U^T in closed form, for small polytopes with
    listed vertices, and for products of bodies with exact values. For any other body, it is a mean
    over exact uniform points, with the interval mean -+ R^2 sqrt(ln(2 / level) / (2 n)), cut to
    [0, R^2], with R = `body.radius()`, by Hoeffding's inequality. epsilon-DP K-norm noise Z of a
    body with an affine hull of dimension r has E||Z||^2 = (r + 1) (r + 2) E||U||^2 / epsilon^2.

    Parameters and errors are as for `volume`: ``MissingOracle`` if K has no closed form and no
    exact sampler, as no error bound is proved for Markov chains. Source: Hardt and Talwar (2010);
    JL-L14.

    Examples
    --------
    >>> import geomdp as gd
    >>> round(gd.geometry.second_moment(gd.bodies.Ball(3)).value, 6)
    0.6
    >>> cylinder = gd.bodies.Product([gd.bodies.Ball(2), gd.bodies.Box.centred([1.0])])
    >>> round(gd.geometry.second_moment(cylinder).value, 6)
    0.833333
    """
    samples, level = whole(samples, "samples", minimum=2), probability(level, "level")
    closed = _closed(checked_body(body))
    if closed is not None:
        return Estimate.exact(closed)
    if not body.implements(Body.sample_uniform):
        raise MissingOracle(body, "second moment", "a closed form or an exact uniform sampler")
    points = body.sample_uniform(samples, np.random.default_rng(rng))
    squares = np.einsum("nm,nm->n", points, points)
    largest = body.radius() ** 2
    mean = float(squares.mean())
    reach = largest * math.sqrt(math.log(2 / level) / (2 * samples))
    interval = (max(mean - reach, 0.0), min(mean + reach, largest))
    return Estimate(mean, float(squares.std(ddof=1)) / math.sqrt(samples), interval, samples)


def _closed(body: Body) -> float | None:
    """The trace of the second moment in closed form, or None; products add up their factors."""
    if isinstance(body, Product):
        parts = [_closed(factor) for factor in body.bodies]
        known = [part for part in parts if part is not None]
        return math.fsum(known) if len(known) == len(parts) else None
    if body.implements(Body.second_moment):
        return float(np.trace(body.second_moment()))
    simplices = triangulated(body)
    return None if simplices is None else float(np.trace(simplices.second_moment()))


def gaussian_width(
    body: Body, rng: RandomState = None, samples: int = 4096, level: float = 1e-3
) -> Estimate:
    """Gaussian mean width w(K) = E max over x in K of <g, x>, g ~ N(0, I_m).

    The value is exact (up to a quadrature error near 1e-13) for balls, boxes, cross-polytopes,
    ellipsoids, regular simplices and segments, and for their images under scaling, shifting,
    isometric embedding, differences (w(K - K) = 2 w(K)) and products (w(K x L) = w(K) + w(L)). For
    other bodies the value is estimated from

        X_i = (h(g_i) + h(-g_i)) / 2,   h the support function,

    for independent Gaussian g_i. The mean of X_i, half the width of K along g_i, is w(K). The
    estimate is the mean of X_i - c (Y_i - E Y), with a fitted number c and the support function Y_i
    at g_i of an ellipsoid, fitted to at most 256 points of `extreme_point`, with known mean E Y
    (this divides the standard deviation by 1.3 to 3.4).

    X_i is a Lipschitz function of g_i with constant D/2 for the diameter D of K, so by Gaussian
    concentration (Tsirelson, Ibragimov and Sudakov 1976) the mean of the X_i satisfies
    Pr[|mean - w| >= t] <= 2 exp(-2 n t^2 / D^2). The interval, cut at 0, is
    mean -+ D sqrt(ln(2 / level) / (2 n)). No interval around the value, which is usually more
    accurate than this mean, is proved. For D stands an upper bound, twice `Body.half_diameter`.

    Parameters and errors are as for `volume`, with n = `samples` directions; K needs a support
    function. Cost: at most 2 n support values and 256 extreme points. Source: GEN-4, JL-14.

    Examples
    --------
    >>> import geomdp as gd
    >>> round(gd.gaussian_width(gd.bodies.CrossPolytope(100)).value, 4)
    2.747
    >>> triangle = gd.bodies.VPolytope([[0.0, 0.0], [2.0, 0.0], [0.0, 1.0]])
    >>> found = gd.gaussian_width(triangle, rng=0, samples=10_000)
    >>> round(found.value, 2), found.stderr < 0.01
    (1.05, True)
    """
    samples, level = whole(samples, "samples", minimum=2), probability(level, "level")
    generator = np.random.default_rng(rng)
    # w(K) = factor w(L) for a simpler body L.
    factor, (rule, inner) = 1.0, checked_body(body).width_rule()
    while inner is not body:
        body, factor = inner, factor * rule
        rule, inner = body.width_rule()
    known, rest = _split(body)
    if rest is None:
        return Estimate.exact(factor * known)
    found = _by_directions(rest, generator, samples, level)
    low, high = (factor * (known + end) for end in found.interval)
    return Estimate(factor * (known + found.value), factor * found.stderr, (low, high), samples)


def _split(body: Body) -> tuple[float, Body | None]:
    """The sum of the known widths, and the product of the factors left to simulate, or None."""
    closed = body.gaussian_width()
    if closed is not None:
        return closed, None
    if not isinstance(body, Product):
        return 0.0, body
    widths = [factor.gaussian_width() for factor in body.bodies]
    unknown = [part for part, width in zip(body.bodies, widths, strict=True) if width is None]
    return math.fsum(width for width in widths if width is not None), Product(unknown)


def _by_directions(body: Body, rng: np.random.Generator, samples: int, level: float) -> Estimate:
    """The mean of half the width along Gaussian directions, with a control variate."""
    # X_i has the Lipschitz constant D / 2 (Tsirelson, Ibragimov and Sudakov 1976).
    reach = body.half_diameter() * math.sqrt(2 * math.log(2 / level) / samples)
    ellipsoid = _control(body, rng, samples)
    rows = max(1, BATCH_ENTRIES // body.dimension)
    parts, followers = [], []
    for start in range(0, samples, rows):
        directions = rng.standard_normal((min(rows, samples - start), body.dimension))
        parts.append(body.breadth(directions) / 2)
        followers.append(np.linalg.norm(directions @ ellipsoid.T, axis=1))
    values = np.concatenate(parts)
    mean = float(values.mean())
    better = controlled(values, np.concatenate(followers), control_mean(ellipsoid))
    stderr = float(better.std(ddof=1)) / math.sqrt(samples)
    interval = (max(mean - reach, 0.0), mean + reach)
    return Estimate(float(better.mean()), stderr, interval, samples)


#: The ellipsoid of the control variate is fitted to about one extreme point per 8 values of the
#: sample, and to at most 256 extreme points.
MOST_PILOTS, VALUES_PER_PILOT = 256, 8


def _control(body: Body, rng: np.random.Generator, values: int) -> FloatArray:
    """R (p, m) with Y(g) = ||R g||_2, of an ellipsoid fitted to at most 256 extreme points; without
    `extreme_point`, of a unit ball of the space parallel to the affine hull.
    """
    # They are independent of the directions at which the `values` values are taken.
    if not body.implements(Body.extreme_point):
        return np.ascontiguousarray(body.affine_hull().basis.T)
    pilots = min(MOST_PILOTS, 1 + values // VALUES_PER_PILOT)
    corners = body.extreme_point(rng.standard_normal((pilots, body.dimension)))
    return np.asarray(corners - corners.mean(axis=0))


def control_mean(rows: FloatArray) -> float:
    """E ||R g||_2 for R = `rows`, by quadrature with a relative error near 1e-13."""
    return mean_norm(np.asarray(np.linalg.svd(rows, compute_uv=False))) if rows.any() else 0.0


def controlled(values: FloatArray, controls: FloatArray, mean: float) -> FloatArray:
    """The n variables X_i - c (Y_i - E Y), which have the mean E X and usually less variance, with
    a c for each half of the sample that is fitted on the other half.
    """
    half = len(values) // 2
    result = np.array(values)
    for mine, other in ((slice(0, half), slice(half, None)), (slice(half, None), slice(0, half))):
        spread = controls[other] - controls[other].mean()
        energy = float(spread @ spread)
        slope = float(spread @ values[other]) / energy if energy > 0 else 0.0
        result[mine] -= slope * (controls[mine] - mean)
    return result
