"""Outer slab bodies: K-norm noise from a support function alone (X-OUT).

For directions z_1..z_F that span the space of a symmetric body K, {y : |<z_j, y>| <= h_K(z_j)}
contains K, so its K-norm noise is as private as that of K, with an error that usually is larger.
Slabs that cut off many states of Markov chains in the present slab body are added in rounds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from geomdp._numerics.linalg import row_blocks, significant
from geomdp._typing import BoolArray, FloatArray, IntArray, RandomState
from geomdp._validation import batch, whole
from geomdp.bodies import Body, LinearImage, SlabBody
from geomdp.bodies.base import MEMBERSHIP_TOLERANCE, checked_body
from geomdp.geometry.projection import Estimate, Projector
from geomdp.geometry.sampling.chains import CoordinateHitAndRun, chain_mean, run_chains
from geomdp.geometry.sampling.samplers import ChainSampler, prepared_walk, symmetric_roots
from geomdp.workloads.structure import RandomSymmetry

#: Default number of slabs per dimension: on all 2-way tables of 10 binary columns, twice as many
#: took twice the time for an error that was less by 6%.
SLABS_PER_DIMENSION = 20
#: Draws per chain for the final estimate of E ||U||^2, one sweep (a move of every coordinate)
#: apart, so that they are nearly independent.
MOMENT_DRAWS = 32


@dataclass(frozen=True)
class SlabRefinement:
    """An outer slab body in coordinates of the span, and a sampler for the body in R^m."""

    slabs: SlabBody
    basis: FloatArray
    sampler: ChainSampler
    second_moment: Estimate

    def __repr__(self) -> str:
        shape = f"{len(self.slabs.widths)} slabs in dimension {self.slabs.dimension}"
        return f"SlabRefinement({shape}; E||U||^2: {self.second_moment})"

    @property
    def body(self) -> Body:
        """The slab body in R^m."""
        return self.sampler.body


def refine_slabs(
    body: Body,
    *,
    slabs: int | None = None,
    directions: FloatArray | None = None,
    symmetry: RandomSymmetry | None = None,
    rng: RandomState = None,
) -> SlabRefinement:
    """Outer slab body of a symmetric body, with up to F slabs, added while E ||U||^2 falls (X-OUT).

    The result is {y in span : |<z_j, y>| <= (1 + 1e-9) h(z_j), j = 1..F}, where h is the support
    function of `body`, so it contains `body`, and any body K of which `body` is a relaxation. It
    depends on public arguments alone, never on records.
    """
    if not checked_body(body).symmetric:
        raise ValueError(f"body must be symmetric, got {body!r}")
    basis = body.affine_hull().basis
    if basis.shape[1] == 0:
        raise ValueError(f"body must have dimension at least 1, got {body!r}")
    rng = np.random.default_rng(rng)
    given = np.zeros((0, body.dimension)) if directions is None else directions
    start = _completed(batch(given, body.dimension, "directions") @ basis)
    if slabs is None:
        slabs = max(SLABS_PER_DIMENSION * basis.shape[1], len(start))
    slabs = whole(slabs, "slabs", minimum=len(start))
    search = SlabSearch(body, basis, start, symmetry, rng)
    search.run(slabs)
    found = search.slab_body()
    fills_space = np.array_equal(basis, np.eye(len(basis)))
    sampler = ChainSampler(found if fills_space else LinearImage(basis, found), rng=rng)
    # E ||U||^2 comes from fresh chains.
    walk, burn_in = sampler.walk, sampler.burn_in
    starts = walk.starts(CHAINS, rng)
    run = run_chains(walk.kernel, walk.body, starts, rng, draws=MOMENT_DRAWS, burn_in=burn_in)
    moment = chain_mean((walk.embed(run.draws) ** 2).sum(axis=2))
    return SlabRefinement(found, basis, sampler, moment)


def _completed(directions: FloatArray) -> FloatArray:
    """Directions (k, r) followed by an orthonormal basis of the complement of their span."""
    if len(directions) == 0:
        return np.eye(directions.shape[1])
    _, singular, rows = np.linalg.svd(directions)
    return np.vstack([directions, rows[significant(singular).sum() :]])


# The search for slabs {x : |<z, x>| <= w} that contain a body K and enclose it tightly.

#: Factor of support values h(z), so that their rounding (1e-13) makes no slab too narrow (SAM-5).
INFLATION = 1 + 1e-9
#: Number of chains that move together, states kept of each chain per round, and sweeps before them:
#: at the start of a round, new slabs have moved the points.
CHAINS, SNAPSHOTS, SETTLING = 256, 8, 4
#: Limits on the largest number of slabs added in a round, the dimension: of more slabs, the chains
#: might not mix between two rounds.
FEWEST_ADDED, MOST_ADDED = 8, 128
#: Points at which directions are sought, for each slab to be added: the better half become slabs.
POINTS_PER_SLAB = 2
#: If a symmetry is given: the number of random images of each direction, and of slabs per point.
IMAGES, SLABS_PER_POINT = 50, 5
#: Let U be uniform on the slab body. The search stops if the mean of E ||U||^2 over the last
#: `WINDOW` rounds is more than (1 - `TOLERANCE`) times the mean over the `WINDOW` rounds before.
WINDOW, TOLERANCE = 10, 0.002
#: The search stops after this many rounds in a row in which no candidate cut off any state.
IDLE_ROUNDS = 3


class SlabSearch:
    """One search for slabs: the slabs so far, the chains in the slab body, and the candidates.

    Normals z are rows in coordinates of the span of K, with `basis` (m, r), scaled to h(z) = 1 for
    the support function h of K; `start` (k, r) gives the first.
    """

    def __init__(
        self,
        body: Body,
        basis: FloatArray,
        start: FloatArray,
        symmetry: RandomSymmetry | None,
        rng: np.random.Generator,
    ) -> None:
        self._body, self._basis, self._symmetry, self._rng = body, basis, symmetry, rng
        self._pool = CutPool(basis.shape[1])
        self._normals = self._scaled(start)
        self._added = min(max(start.shape[1], FEWEST_ADDED), MOST_ADDED)
        #: E ||U||^2 of the states of each round.
        self._moments: list[float] = []
        if len(self._normals) < len(start):
            raise ValueError(
                "directions must not be orthogonal to the span of the body, but at least one is"
            )
        walk = prepared_walk(self.slab_body(), rng)
        self._points = walk.embed(walk.starts(CHAINS, rng))
        self._states = self._points

    def run(self, budget: int) -> None:
        """Add slabs round by round until the budget is spent or new slabs gain little."""
        idle = 0
        while True:
            self._mix()
            room = budget - len(self._normals)
            last, before = self._moments[-WINDOW:], self._moments[-2 * WINDOW : -WINDOW]
            stalled = len(before) == WINDOW and np.mean(last) > (1 - TOLERANCE) * np.mean(before)
            if room == 0 or idle == IDLE_ROUNDS or stalled:
                break
            self._propose()
            taken = self._pool.take(self._states, min(self._added, room))
            self._normals = np.vstack([self._normals, taken])
            # Scale the points of the chains into the new body.
            reach = np.abs(self._points @ self._normals.T).max(axis=1)
            self._points = self._points / np.maximum(1.0, reach)[:, None]
            idle = 0 if len(taken) else idle + 1

    def slab_body(self) -> SlabBody:
        """The slab body found so far. Its half-widths are computed again and rounded up."""
        heights = self._body.support(self._normals @ self._basis.T)
        return SlabBody(self._normals, INFLATION * heights)

    def _scaled(self, directions: FloatArray) -> FloatArray:
        """Directions (k, r) scaled to h(z) = 1, without those along which K has no width."""
        heights = self._body.support(directions @ self._basis.T)
        lengths = np.linalg.norm(directions, axis=1)
        usable = heights > MEMBERSHIP_TOLERANCE * self._body.radius() * lengths
        return np.asarray(directions[usable] / heights[usable, None])

    def _mix(self) -> None:
        """Run the chains in the present slab body and record E ||U||^2 of their states."""
        # Chains mix fast in coordinates in which the states of the last round have covariance I.
        root, inverse, _ = symmetric_roots(self._states.T @ self._states / len(self._states))
        run = run_chains(
            CoordinateHitAndRun(),
            SlabBody(self._normals @ root, np.ones(len(self._normals))),
            self._points @ inverse,
            self._rng,
            draws=SNAPSHOTS,
            burn_in=SETTLING,
        )
        self._states = run.draws.reshape(-1, root.shape[0]) @ root
        self._points = run.last @ root
        self._moments.append(float((self._states**2).sum(axis=1).mean()))

    def _propose(self) -> None:
        """Add to the pool directions that separate boundary points of the slab body from K.

        The points are where random rays from 0 with the covariance of the states leave the body.
        """
        if self._symmetry is None:
            count = min(POINTS_PER_SLAB * self._added, CHAINS)
        else:
            count = math.ceil(self._added / SLABS_PER_POINT)
        root, _, _ = symmetric_roots(self._states.T @ self._states / len(self._states))
        rays = self._rng.standard_normal((count, len(root))) @ root
        points = rays / np.abs(rays @ self._normals.T).max(axis=1)[:, None]
        found = separating_directions(self._body, points @ self._basis.T)
        if self._symmetry is not None and len(found):
            images = [self._symmetry(found, self._rng) for _ in range(IMAGES)]
            found = np.vstack([found, *images])
        self._pool.add(self._scaled(found @ self._basis))


#: Candidates kept from one round to the next, and number scored together: a float for each state.
POOL_LIMIT, BLOCK = 4096, 512
#: Normals count as parallel, so that they give the same slab, if they agree in this number of
#: decimal places, divided by their entry of largest absolute value.
DIGITS = 9


class CutPool:
    """Slabs {x : |<z, x>| <= 1} with normals z in R^r that were added, but not taken or dropped."""

    def __init__(self, dimension: int) -> None:
        self._normals: FloatArray = np.zeros((0, dimension))
        self._seen: set[bytes] = set()

    def __len__(self) -> int:
        return len(self._normals)

    def add(self, normals: FloatArray) -> None:
        """Add the candidates `normals` (k, r), except multiples of normals added before."""
        fresh = [self._normals]
        for normal, key in zip(normals, _keys(normals), strict=True):
            if key not in self._seen:
                self._seen.add(key)
                fresh.append(normal[None])
        self._normals = np.concatenate(fresh)

    def take(self, states: FloatArray, count: int) -> FloatArray:
        """Remove up to `count` candidates that together cut off many of `states` (s, r), greedily;
        of the others, the pool keeps the `POOL_LIMIT` that cut off the most.
        """
        if len(self._normals) == 0:
            return self._normals
        outside = np.empty((len(states), len(self._normals)), dtype=bool)
        for part in row_blocks(len(self._normals), 1, BLOCK):
            outside[:, part] = np.abs(states @ self._normals[part].T) > 1
        totals = outside.sum(axis=0)
        chosen = greedy_cover(outside, count)
        taken = self._normals[chosen]
        totals[chosen] = -1
        kept = np.argsort(-totals, kind="stable")[: min(POOL_LIMIT, len(totals) - len(chosen))]
        self._normals = self._normals[kept]
        return taken


def greedy_cover(outside: BoolArray, count: int) -> IntArray:
    """At most `count` columns of `outside` (s, k, overwritten), which greedily cover many rows: at
    least 1 - 1/e of those of any other choice (Nemhauser, Wolsey, Fisher 1978).
    """
    gains = outside.sum(axis=0)
    chosen: list[int] = []
    while len(chosen) < count:
        best = int(np.argmax(gains))
        if gains[best] == 0:
            break
        rows = np.flatnonzero(outside[:, best])
        chosen.append(best)
        gains -= outside[rows].sum(axis=0)
        outside[rows] = False
    return np.array(chosen, dtype=np.int64)


def _keys(normals: FloatArray) -> list[bytes]:
    """One key per slab: the normal, divided by its entry of largest absolute value, and rounded."""
    # If several entries are nearly the largest, the first is the divisor, so rounding has no say.
    sizes = np.abs(normals).max(axis=1, keepdims=True)
    first = (np.abs(normals) > (1 - 10.0**-DIGITS) * sizes).argmax(axis=1)
    scaled = normals / np.take_along_axis(normals, first[:, None], axis=1)
    # Add 0 to turn -0 into 0, because the two have different bits.
    return [row.tobytes() for row in np.round(scaled, DIGITS) + 0.0]


def separating_directions(body: Body, points: FloatArray) -> FloatArray:
    """Directions u (k, m) with <u, x> > h(u), at most one for each x of `points` (b, m) outside: of
    the facet on the ray from 0, else x minus the nearest point, else x. A useless direction does no
    harm, because `SlabSearch` computes h(u) again.
    """
    if body.implements(Body.facets):
        found = body.facets(points)
        return found.normals[found.gauges > 1 + MEMBERSHIP_TOLERANCE]
    if body.implements(Body.project) or body.implements(Body.extreme_point):
        projector = Projector(body)
        residuals = points - np.stack([projector.nearest(x).point for x in points])
        lengths = np.linalg.norm(residuals, axis=1)
        outside = lengths > MEMBERSHIP_TOLERANCE * np.linalg.norm(points, axis=1)
        return np.asarray(residuals[outside])
    squares = np.einsum("bm,bm->b", points, points)
    return np.asarray(points[squares > (1 + MEMBERSHIP_TOLERANCE) * body.support(points)])
