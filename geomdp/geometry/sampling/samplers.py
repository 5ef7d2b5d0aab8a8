"""Uniform points of a body, from an exact sampler if the body has one, else by hit-and-run."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import numpy as np

from geomdp._numerics.linalg import RANK_TOLERANCE, AffineHull, row_blocks
from geomdp._numerics.randomness import PUBLIC_SEED
from geomdp._typing import BoolArray, FloatArray, RandomState
from geomdp._validation import whole
from geomdp.bodies import Body, HPolytope, LinearImage, Scaled, SlabBody
from geomdp.bodies.base import MEMBERSHIP_TOLERANCE, MissingOracle, checked_body
from geomdp.bodies.ray_shooting import independent_points
from geomdp.bodies.vpolytope import triangulated
from geomdp.geometry.sampling.chains import (
    CoordinateHitAndRun,
    Diagnostics,
    HitAndRun,
    Kernel,
    Mixing,
    measure_mixing,
    run_chains,
)
from geomdp.privacy import Exact, Heuristic
from geomdp.privacy.guarantees import SamplerStatus

#: Number of chains of the pilot run that measures mixing, and of `sample_uniform`.
PILOT_CHAINS, CHAINS = 64, 128
#: Largest number of chains that move together in `ChainSampler.draw`, which stores the products of
#: all facet normals with their points.
LOCKSTEP = 256
#: Burn-in, and steps between two kept states of a chain of `sample_uniform`, in integrated
#: autocorrelation times: exponentially decaying correlations are then e^-20, near 2e-9, and e^-4.
RELAXATIONS, SPACING = 10.0, 2.0


@runtime_checkable
class UniformSampler(Protocol):
    """A sampler of uniform points of a body, for the noise distribution of a mechanism."""

    @property
    def body(self) -> Body:
        """The body in R^m that is sampled."""

    @property
    def status(self) -> SamplerStatus:
        """Whether the distribution of a draw is exact, approximate or heuristic."""

    def draw(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Independent points (n, m)."""


@dataclass(frozen=True)
class ExactSampler:
    """Exact independent uniform points, by the body's own sampler (SAM-4).

    ``MissingOracle`` if the `body` does not implement `sample_uniform`.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> sampler = gd.geometry.sampling.ExactSampler(gd.bodies.Ball(3))
    >>> sampler.draw(np.random.default_rng(0), 5).shape, sampler.status
    ((5, 3), Exact())
    """

    body: Body

    def __post_init__(self) -> None:
        if not checked_body(self.body).implements(Body.sample_uniform):
            raise MissingOracle(self.body, "exact sampler", "a sample_uniform of its own")

    @property
    def status(self) -> SamplerStatus:
        return Exact()

    def draw(self, rng: np.random.Generator, n: int) -> FloatArray:
        return self.body.sample_uniform(whole(n, "n"), rng)


class ChainSampler:
    """Approximately uniform points, each the end of its own Markov chain, with a burn-in of 10
    autocorrelation times of a pilot run whose diagnostics are in the status; no bound on the
    distance from the uniform distribution is proved (SAM-3).
    """

    def __init__(self, body: Body, rng: RandomState = PUBLIC_SEED) -> None:
        self.body, generator = checked_body(body), np.random.default_rng(rng)
        self.walk = prepared_walk(self.body, generator)
        self.mixing = pilot(self.walk, generator)
        self.burn_in = math.ceil(RELAXATIONS * self.mixing.correlation_time)
        self.diagnostics = Diagnostics.of(self.mixing.chains.draws)

    def __repr__(self) -> str:
        return f"ChainSampler(body={self.body!r})"

    @property
    def status(self) -> SamplerStatus:
        agreed = "" if self.mixing.agreed else " whose chains did not agree"
        return Heuristic(
            f"{self.walk.kernel.name}, {self.burn_in} steps; pilot{agreed}: {self.diagnostics}"
        )

    def draw(self, rng: np.random.Generator, n: int) -> FloatArray:
        """End points (n, m) of n fresh independent chains."""
        n = whole(n, "n")
        parts = []
        for part in row_blocks(n, 1, LOCKSTEP):
            points = self.walk.starts(part.stop - part.start, rng)
            for _ in range(self.burn_in):
                points = self.walk.kernel.step(rng, self.walk.body, points)
            parts.append(self.walk.embed(points))
        return np.concatenate(parts)


def pilot(walk: Walk, rng: np.random.Generator, chains: int = PILOT_CHAINS) -> Mixing:
    """Measure the autocorrelation time of `walk` with starts moved halfway towards the boundary."""
    # The diagnostics need starts that are farther from the centre than uniform points.
    starts = walk.starts(chains, rng)
    _, reach = walk.body.chord(starts, starts)
    outward = 1 + reach / 2
    return measure_mixing(walk.kernel, walk.body, starts * outward[:, None], rng)


@dataclass(frozen=True)
class Samples:
    """Points of a body, and how they were drawn."""

    points: FloatArray
    sampler: SamplerStatus
    diagnostics: Diagnostics | None = None

    def __repr__(self) -> str:
        n, m = self.points.shape
        return f"Samples({n} points in dimension {m}; {self.sampler})"

    def __array__(
        self, dtype: np.dtype[np.float64] | None = None, copy: bool | None = None
    ) -> FloatArray:
        return np.array(self.points, dtype=dtype, copy=copy)


def sample_uniform(body: Body, n: int, rng: RandomState = None) -> Samples:
    """Uniform points of `body` within its affine hull.

    With an exact sampler, or for a small polytope with listed vertices (which can be cut into
    simplices), the n points are exactly uniform and independent. For other bodies they come from
    hit-and-run (coordinate hit-and-run on polytopes with listed facets) in a nearly isotropic
    position. There are 128 independent chains, or n if n is less. Each runs for 10 autocorrelation
    times of a pilot run, and then keeps one point every 2. Points of one chain are nearly but not
    exactly independent. The result has the status of the sampler, and diagnostics of the chains (of
    the pilot run, if each gives fewer than 4 points).

    Parameters
    ----------
    body : Body
        A body in R^m with an exact sampler, chords or a membership test.
    n, rng : int, and Generator, int or None
        Number of points, at least 1, and source of all randomness.

    Raises
    ------
    MissingOracle
        If the body has no exact sampler and lacks what the chains need.
    ValueError
        If n is below 1, or if chains are needed and the body is unbounded or a single point.

    Examples
    --------
    >>> import geomdp as gd
    >>> exact = gd.sample_uniform(gd.bodies.CrossPolytope(4), 1000, rng=0)
    >>> exact.points.shape, exact.sampler
    ((1000, 4), Exact())
    >>> lens = gd.bodies.Intersection([gd.bodies.Ball(2), gd.bodies.Box.centred([2.0, 0.5])])
    >>> by_chains = gd.sample_uniform(lens, 1000, rng=0)
    >>> type(by_chains.sampler).__name__, by_chains.diagnostics.worst_r_hat < 1.1
    ('Heuristic', True)
    """
    n, rng = whole(n, "n"), np.random.default_rng(rng)
    if checked_body(body).implements(Body.sample_uniform):
        return Samples(body.sample_uniform(n, rng), Exact())
    simplices = triangulated(body)
    if simplices is not None:
        return Samples(simplices.sample_uniform(n, rng), Exact())
    sampler = ChainSampler(body, rng=rng)
    walk, chains = sampler.walk, min(CHAINS, n)
    run = run_chains(
        walk.kernel,
        walk.body,
        walk.starts(chains, rng),
        rng,
        draws=-(-n // chains),
        burn_in=sampler.burn_in,
        thinning=math.ceil(SPACING * sampler.mixing.correlation_time),
    )
    enough = chains > 1 and run.draws.shape[1] >= 4
    embedded = walk.embed(run.draws)
    diagnostics = Diagnostics.of(embedded) if enough else sampler.diagnostics
    # Take the first draw of every chain, then the second draws, and so on, up to n points.
    points = embedded.swapaxes(0, 1).reshape(-1, body.dimension)[:n]
    return Samples(np.ascontiguousarray(points), sampler.status, diagnostics)


# Rounding: affine maps that make a body K in R^m nearly isotropic, so that hit-and-run mixes fast.
# Points are x = offset + root @ y, with root (m, r) of rank r, the dimension of the affine hull.
# The y with x in K are full-dimensional, and uniform y give uniform x. Nothing depends on records.

#: Rounding stops at this ratio of the largest to the least eigenvalue of the covariance: then it
#: costs more than the steps of hit-and-run that it saves.
ROUND = 4.0
#: Chains per dimension: the covariance of 16 r independent points of an isotropic body in R^r has
#: extreme eigenvalues in a ratio near 2.8 (Marchenko-Pastur), below `ROUND`.
CHAINS_PER_DIMENSION = 16
#: Steps per round, which shorten a long axis about threefold, and rounds: enough for ratios of axes
#: up to 10^14.
STEPS_PER_ROUND, MAXIMUM_ROUNDS = 8, 30


@dataclass(frozen=True)
class Preimage(Body):
    """The set {y in R^r : offset + root @ y in inner}, for a `root` (m, r) of full column rank."""

    inner: Body
    offset: FloatArray
    root: FloatArray

    @property
    def dimension(self) -> int:
        return int(self.root.shape[1])

    @property
    def symmetric(self) -> bool:
        return self.inner.symmetric and not self.offset.any()

    def embed(self, points: FloatArray) -> FloatArray:
        """Images (b, m) of `points` (b, r)."""
        return self.offset + points @ self.root.T

    def contains(self, points: FloatArray, tolerance: float = MEMBERSHIP_TOLERANCE) -> BoolArray:
        return self.inner.contains(self.embed(points), tolerance)

    def chord(self, points: FloatArray, directions: FloatArray) -> tuple[FloatArray, FloatArray]:
        return self.inner.chord(self.embed(points), directions @ self.root.T)


def preimage(body: Body, offset: FloatArray, root: FloatArray) -> Body:
    """The set {y : offset + root @ y in body}; facets too for an `HPolytope` or `SlabBody`."""
    match body:
        case Preimage():
            return preimage(body.inner, body.embed(offset[None])[0], body.root @ root)
        case SlabBody() if not offset.any():
            return SlabBody(body.directions @ root, body.widths)
        case SlabBody():
            both = np.vstack([body.directions, -body.directions])
            return preimage(HPolytope(both, np.tile(body.widths, 2)), offset, root)
        case HPolytope():
            normals = body.normals @ root
            sizes = np.linalg.norm(body.normals, axis=1) * np.linalg.norm(root, 2)
            # Drop each inequality whose new normal is 0, such as the two halves of an equality. Its
            # left side does not depend on y, and it holds at y = 0, so it holds for every y.
            kept = np.linalg.norm(normals, axis=1) > RANK_TOLERANCE * sizes
            return HPolytope(normals[kept], (body.offsets - body.normals @ offset)[kept])
    return Preimage(body, offset, root)


@dataclass(frozen=True)
class Walk:
    """A Markov kernel on a body in R^r around 0, whose y map to offset (m,) + root (m, r) @ y."""

    kernel: Kernel
    body: Body
    offset: FloatArray
    root: FloatArray

    def embed(self, points: FloatArray) -> FloatArray:
        """Images (..., m) of points (..., r) of `body`."""
        return np.asarray(self.offset + points @ self.root.T)

    def starts(self, chains: int, rng: np.random.Generator) -> FloatArray:
        """Independent points (chains, r) of the body, roughly uniform and cheap to draw: of uniform
        direction from 0, with a density of the distance t proportional to t^(r-1).
        """
        directions = rng.standard_normal((chains, self.body.dimension))
        _, reach = self.body.chord(np.zeros_like(directions), directions)
        shrink = rng.random(chains) ** (1 / self.body.dimension)
        return directions * (reach * shrink)[:, None]


def plain_walk(body: Body) -> Walk:
    """The `Walk` for `body` before rounding; the image of another body is sampled by its walk."""
    match body:
        case LinearImage():
            inner = plain_walk(body.body)
            if not body.one_to_one:
                needed = "a matrix that is one-to-one on the inner body"
                raise MissingOracle(body, "uniform walk", needed)
            offset, root = body.matrix @ inner.offset, body.matrix @ inner.root
            return replace(inner, offset=offset, root=root)
        case Scaled(factor=factor):
            inner = plain_walk(body.body)
            return replace(inner, offset=factor * inner.offset, root=factor * inner.root)
        case SlabBody():
            identity = np.eye(body.dimension)
            return Walk(CoordinateHitAndRun(), body, np.zeros(body.dimension), identity)
    hull = body.affine_hull()
    basis = hull.basis
    if isinstance(body, HPolytope):
        offset = interior_point(body)
        return Walk(CoordinateHitAndRun(), preimage(body, offset, basis), offset, basis)
    if hull.dimension == 0:
        raise ValueError(f"body must have dimension at least 1 to be sampled, got {body!r}")
    offset = np.zeros(body.dimension) if body.symmetric else interior_point(body)
    if hull.dimension == hull.ambient:
        basis = AffineHull.whole_space(hull.ambient).basis
    return Walk(HitAndRun(), preimage(body, offset, basis), offset, basis)


def interior_point(body: Body) -> FloatArray:
    """A point (m,) in the relative interior: the mean of affinely independent extreme points."""
    return np.asarray(independent_points(body).mean(axis=0))


def round_walk(walk: Walk, rng: np.random.Generator) -> Walk:
    """Adapt the coordinates of `walk` until the covariance is near a multiple of the identity."""
    # In each round the new coordinates make the covariance of the last points the identity. The
    # chains need not have mixed, because the choice affects speed only. Good coordinates stay as
    # given, where sparse facet normals make steps cheap. A symmetric body keeps its centre 0.
    dimension = walk.body.dimension
    centred = walk.body.symmetric
    points = walk.starts(CHAINS_PER_DIMENSION * dimension, rng)
    for turn in range(MAXIMUM_ROUNDS):
        run = run_chains(walk.kernel, walk.body, points, rng, draws=1, thinning=STEPS_PER_ROUND)
        mean = np.zeros(dimension) if centred else run.last.mean(axis=0)
        spread = run.last - mean
        root, inverse, ratio = symmetric_roots(spread.T @ spread / len(spread))
        if turn == 0 and ratio <= ROUND:
            break
        body = preimage(walk.body, mean, root)
        walk = Walk(walk.kernel, body, walk.embed(mean), walk.root @ root)
        points = spread @ inverse
        if ratio <= ROUND:
            break
    return walk


def symmetric_roots(covariance: FloatArray) -> tuple[FloatArray, FloatArray, float]:
    """Symmetric square root, its inverse, and the ratio of the extreme eigenvalues."""
    values, vectors = np.linalg.eigh(covariance)
    values = np.maximum(values, np.finfo(float).eps * values[-1])
    roots = np.sqrt(values)
    return (vectors * roots) @ vectors.T, (vectors / roots) @ vectors.T, values[-1] / values[0]


def prepared_walk(body: Body, rng: np.random.Generator) -> Walk:
    return round_walk(plain_walk(body), rng)
