"""Rounding: affine maps that make a body nearly isotropic, so that hit-and-run mixes fast.

Points x of a body K in R^m are x = offset + root @ y, with root (m, r) of rank r, the dimension of
the affine hull. The y with x in K are full-dimensional, and uniform y give uniform x. Everything
here depends on the body and on random numbers, never on records.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch

import numpy as np

from geomdp._numerics.linalg import RANK_TOLERANCE, AffineHull
from geomdp._typing import BoolArray, FloatArray
from geomdp._validation import require_type
from geomdp.bodies import Body, HPolytope, LinearImage, Scaled, Shifted, SlabBody
from geomdp.bodies.base import MEMBERSHIP_TOLERANCE
from geomdp.bodies.facets.on_demand import independent_points
from geomdp.bodies.oracles import MissingOracle
from geomdp.geometry.sampling.chains import run_chains
from geomdp.geometry.sampling.kernels import CoordinateHitAndRun, HitAndRun, Kernel

#: Rounding stops if the ratio of the largest to the least eigenvalue of the covariance is at most
#: 4. For a larger ratio, hit-and-run needs more steps. Below 4, another round costs more than it
#: saves.
ROUND = 4.0
#: Chains per dimension. The sample covariance of 16 r independent points of an isotropic body in
#: R^r has extreme eigenvalues near (1 +- 1/4)^2 (Marchenko-Pastur), a ratio of 2.8, below `ROUND`.
CHAINS_PER_DIMENSION = 16
#: Number of steps of the chains per round. In 8 steps the points spread over about 3 step lengths
#: along a long axis, so the round shortens this axis by a factor of about 3.
STEPS_PER_ROUND = 8
#: Largest number of rounds. With a factor of 3 per round, 30 rounds suffice for axes with lengths
#: that differ by a factor of 10^14.
MAXIMUM_ROUNDS = 30


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


@singledispatch
def preimage(body: Body, offset: FloatArray, root: FloatArray) -> Body:
    """The set {y : offset + root @ y in body}; facets too for an `HPolytope` or `SlabBody`."""
    return Preimage(body, offset, root)


@preimage.register
def _(body: HPolytope, offset: FloatArray, root: FloatArray) -> Body:
    normals = body.normals @ root
    sizes = np.linalg.norm(body.normals, axis=1) * np.linalg.norm(root, 2)
    # Drop each inequality whose new normal is 0, such as the two halves of an equality. Its left
    # side does not depend on y, and the inequality holds at y = 0, so it holds for every y.
    kept = np.linalg.norm(normals, axis=1) > RANK_TOLERANCE * sizes
    return HPolytope(normals[kept], (body.offsets - body.normals @ offset)[kept])


@preimage.register
def _(body: SlabBody, offset: FloatArray, root: FloatArray) -> Body:
    if offset.any():
        both = np.vstack([body.directions, -body.directions])
        return preimage(HPolytope(both, np.tile(body.widths, 2)), offset, root)
    return SlabBody(body.directions @ root, body.widths)


@preimage.register
def _(body: Preimage, offset: FloatArray, root: FloatArray) -> Body:
    return preimage(body.inner, body.embed(offset[None])[0], body.root @ root)


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
        """Independent points (chains, r) of the body, roughly uniform and cheap to draw.

        The direction from 0 is uniform, and the distance t has a density proportional to t^(r-1).
        """
        directions = rng.standard_normal((chains, self.body.dimension))
        _, reach = self.body.chord(np.zeros_like(directions), directions)
        shrink = rng.random(chains) ** (1 / self.body.dimension)
        return directions * (reach * shrink)[:, None]


@singledispatch
def plain_walk(body: Body) -> Walk:
    """The `Walk` for `body` before rounding.

    Coordinate hit-and-run for `HPolytope` and `SlabBody`, else hit-and-run. For the image of
    another body, points of that body are moved.
    """
    hull = body.affine_hull()
    if hull.dimension == 0:
        raise ValueError(f"body must have dimension at least 1 to be sampled, got {body!r}")
    offset = np.zeros(body.dimension) if body.symmetric else interior_point(body)
    if hull.dimension == hull.ambient:
        hull = AffineHull.whole_space(hull.ambient)
    return Walk(HitAndRun(), preimage(body, offset, hull.basis), offset, hull.basis)


@plain_walk.register
def _(body: SlabBody) -> Walk:
    identity = np.eye(body.dimension)
    return Walk(CoordinateHitAndRun(), body, np.zeros(body.dimension), identity)


@plain_walk.register
def _(body: HPolytope) -> Walk:
    hull = body.affine_hull()
    offset = interior_point(body)
    return Walk(CoordinateHitAndRun(), preimage(body, offset, hull.basis), offset, hull.basis)


@plain_walk.register
def _(body: LinearImage) -> Walk:
    inner = plain_walk(body.body)
    if not body.one_to_one:
        raise MissingOracle(body, "uniform walk", "a matrix that is one-to-one on the inner body")
    offset, root = body.matrix @ inner.offset, body.matrix @ inner.root
    return Walk(inner.kernel, inner.body, offset, root)


@plain_walk.register
def _(body: Scaled) -> Walk:
    inner = plain_walk(body.body)
    return Walk(inner.kernel, inner.body, body.factor * inner.offset, body.factor * inner.root)


@plain_walk.register
def _(body: Shifted) -> Walk:
    inner = plain_walk(body.body)
    return Walk(inner.kernel, inner.body, body.offset + inner.offset, inner.root)


def interior_point(body: Body) -> FloatArray:
    """A point (m,) in the relative interior: the mean of affinely independent extreme points."""
    return np.asarray(independent_points(body).mean(axis=0))


def round_walk(walk: Walk, rng: np.random.Generator) -> Walk:
    """Adapt the coordinates of `walk` until the covariance is near a multiple of the identity.

    Each of at most 30 rounds runs the chains, and the new coordinates make the covariance of the
    last points the identity. The chains need not have mixed, because the choice affects speed
    only. A symmetric body keeps its centre 0. If the first covariance is already near a multiple of
    the identity, the coordinates stay as given, where sparse facet normals make steps cheap. At the
    end the largest eigenvalue of the covariance is at most about 4 times the least.

    Parameters
    ----------
    walk : Walk
        A walk as from `plain_walk`.
    rng : Generator
        Source of all randomness.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> from geomdp.geometry import sampling
    >>> from geomdp.geometry.sampling.rounding import plain_walk
    >>> thin = gd.bodies.Box.centred([1.0, 1000.0])
    >>> walk = sampling.round_walk(plain_walk(thin), np.random.default_rng(0))
    >>> points = walk.starts(2000, np.random.default_rng(1))
    >>> values = np.linalg.eigvalsh(np.cov(points.T))
    >>> bool(values[1] / values[0] < 4)
    True
    """
    require_type(walk, Walk, "walk")
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
