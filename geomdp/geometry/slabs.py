"""Outer slab bodies: K-norm noise from a support function alone (X-OUT).

For any directions z_1..z_F that span the space of a symmetric body K, the slab body
{y : |<z_j, y>| <= h_K(z_j)} holds K, so its K-norm noise is as private as that of K; only E ||U||^2
is larger. Slabs are added where they cut off most of the volume: lockstep chains run in the present
slab body, a source finds directions in which points of its boundary are outside K, and the
directions that together cut off most states of the chains are added.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from geomdp._linalg import RANK_TOLERANCE
from geomdp._typing import FloatArray, RandomState
from geomdp._validation import batch, positive, whole
from geomdp.bodies import Body, LinearImage, SlabBody
from geomdp.bodies.oracles import MEMBERSHIP_TOLERANCE
from geomdp.geometry.cuts import CutPool
from geomdp.geometry.results import Estimate
from geomdp.geometry.sampling.chains import chain_mean, run_chains
from geomdp.geometry.sampling.kernels import CoordinateHitAndRun
from geomdp.geometry.sampling.rounding import prepared_walk, symmetric_roots
from geomdp.geometry.sampling.samplers import ChainSampler
from geomdp.geometry.separation import DirectionSource, direction_source
from geomdp.workloads.symmetries import RandomSymmetry

#: Default budget. Measured on 2-way tables of 10 binary columns (dimension 55): the error falls by
#: 32% from the first 55 slabs to 1100 and by another 6% to 2000, at twice the time.
SLABS_PER_DIMENSION = 20
#: Every half-width is this much larger than the support function, so that rounding in its
#: evaluation (relative error near 1e-13) cannot make a slab too narrow (SAM-5).
INFLATION = 1 + 1e-9
#: Lockstep chains.
CHAINS = 256
#: States of each chain per round that directions are scored on, one sweep apart.
SNAPSHOTS = 8
#: Sweeps before the first of them: chains were just pulled into a slightly smaller body.
SETTLING = 4
#: Slabs added per round are as many as the dimension, within these limits: states then forget
#: between any two looks at them, and there are about `SLABS_PER_DIMENSION` rounds.
FEWEST_ADDED, MOST_ADDED = 8, 128
#: Points handed to the direction source per slab added. On the measured workloads half the facets
#: found are worth keeping: with every one kept, as many slabs cut off less.
POINTS_PER_SLAB = 2
#: Random images of each direction under a symmetry, and slabs added per point when there is one.
IMAGES, SLABS_PER_POINT = 50, 5
#: An exchange replaces this share of the slabs.
EXCHANGED = 1 / 16
#: Rounds over which E ||U||^2 is compared with that over the rounds before.
WINDOW = 10
#: Rounds without any cut after which the slab body is taken for the body itself.
IDLE_ROUNDS = 3
#: Draws per chain behind the final estimate; ||U||^2 forgets within about one sweep.
MOMENT_DRAWS = 32


@dataclass(frozen=True)
class RefinementRound:
    """One round of refinement.

    Parameters
    ----------
    slabs : int
        Number of slabs after the round.
    second_moment : float
        E ||U||_2^2 estimated from the chains of the round, squared units of the body.
    cut : float
        Share of the states before the round that the new slabs cut off.
    """

    slabs: int
    second_moment: float
    cut: float


@dataclass(frozen=True)
class SlabRefinement:
    """An outer slab body, how to sample it, and how it was found.

    Parameters
    ----------
    slabs : SlabBody
        In the coordinates of the span, R^r. Half-widths are `INFLATION` * h_K(direction).
    basis : (m, r) array
        Orthonormal basis of the span: y in `slabs` stands for basis @ y.
    sampler : ChainSampler
        Prepared for `body`.
    second_moment : Estimate
        E ||U||_2^2 for U uniform on the slab body, from independent chains.
    history : tuple of RefinementRound
        All rounds, in order.
    """

    slabs: SlabBody
    basis: FloatArray
    sampler: ChainSampler
    second_moment: Estimate
    history: tuple[RefinementRound, ...]

    @property
    def body(self) -> Body:
        """The slab body in R^m."""
        return self.sampler.body


def refine_slabs(
    body: Body,
    *,
    slabs: int | None = None,
    directions: FloatArray | None = None,
    source: DirectionSource | None = None,
    symmetry: RandomSymmetry | None = None,
    exchanges: int = 0,
    tolerance: float = 0.002,
    rng: RandomState = None,
) -> SlabRefinement:
    """Outer slab body of a symmetric body, refined until E ||U||^2 stops falling (X-OUT).

    {y in span : |<z_j, y>| <= (1 + 1e-9) h(z_j), j = 1..F} with h the support function of `body`
    (any upper bound on it gives a larger, still valid body). Lower-dimensional bodies are handled
    in the coordinates of their span. Nothing here may look at records.

    Parameters
    ----------
    body : Body
        Symmetric K in R^m with `support`; with `facets`, `project` or `extreme_point` the cuts are
        better.
    slabs : int, optional
        Budget: largest number of slabs F, at least the number of `directions`; by default
        `SLABS_PER_DIMENSION` times the dimension of K and at least that of `directions`.
    directions : (k, m) array, optional
        Directions to start from, such as the bases of a workload's blocks; completed, where they
        do not span the span of K, by an orthonormal basis of the rest. They are kept.
    source : DirectionSource, optional
        Where new directions come from; by default the best that `body` offers.
    symmetry : callable, optional
        Images (b, m) of directions (b, m) under a random orthogonal map that carries K onto itself;
        see `workloads.random_symmetry`. Each direction found then stands for its whole orbit. A
        map that is no symmetry wastes time but makes no slab invalid.
    exchanges : int
        Rounds after the budget is spent in which the slabs least often approached make room for
        better ones.
    tolerance : float
        Stop when the mean of E ||U||^2 over `WINDOW` rounds is not below this share less than 1 of
        that over the `WINDOW` rounds before.
    rng : Generator, int or None
        Source of all randomness; use a public seed.

    Returns
    -------
    SlabRefinement
        Slabs, prepared sampler, E ||U||^2 with its standard error, and history.

    Raises
    ------
    ValueError
        If `body` is not known to be symmetric or is a single point; for a direction on which it
        has no extent; for numbers out of range.
    MissingOracle
        If `body` has no support function.

    Notes
    -----
    Cost per round, of which there are about F / r: 2 r points for the source (r / 5 with a
    symmetry), support functions of what it finds, and `CHAINS` * (`SETTLING` + `SNAPSHOTS`) sweeps
    of coordinate hit-and-run of O(F r) each.
    """
    if not body.symmetric:
        raise ValueError(f"body must be symmetric, got {body!r}")
    basis = body.affine_hull().basis
    if basis.shape[1] == 0:
        raise ValueError(f"body must have dimension at least 1, got {body!r}")
    rng = np.random.default_rng(rng)
    tolerance = positive(tolerance, "tolerance")
    exchanges = whole(exchanges, "exchanges", minimum=0)
    given = np.zeros((0, body.dimension)) if directions is None else directions
    start = _completed(batch(given, body.dimension, "directions") @ basis)
    if slabs is None:
        slabs = max(SLABS_PER_DIMENSION * basis.shape[1], len(start))
    slabs = whole(slabs, "slabs", minimum=len(start))
    refinery = _Refinery(body, basis, source or direction_source(body), symmetry, rng)
    refinery.begin(start)
    refinery.run(slabs, exchanges, tolerance)
    return refinery.finish()


def _completed(directions: FloatArray) -> FloatArray:
    """Directions (k, r) with an orthonormal basis of the complement of their span appended."""
    if len(directions) == 0:
        return np.eye(directions.shape[1])
    _, singular, rows = np.linalg.svd(directions)
    rank = int(np.count_nonzero(singular > RANK_TOLERANCE * singular[0]))
    return np.vstack([directions, rows[rank:]])


class _Refinery:
    """State of one refinement. Normals z are rows in span coordinates, scaled to h(z) = 1."""

    def __init__(
        self,
        body: Body,
        basis: FloatArray,
        source: DirectionSource,
        symmetry: RandomSymmetry | None,
        rng: np.random.Generator,
    ) -> None:
        self._body, self._basis = body, basis
        self._source, self._symmetry, self._rng = source, symmetry, rng
        self._pool = CutPool(basis.shape[1])
        self._history: list[RefinementRound] = []

    def begin(self, start: FloatArray) -> None:
        """Take the first slabs and spread the chains over their body."""
        self._normals = self._scaled(start)
        self._fixed = len(start)
        self._added = min(max(start.shape[1], FEWEST_ADDED), MOST_ADDED)
        if len(self._normals) < len(start):
            raise ValueError("directions must not be orthogonal to the span of the body, got one")
        walk = prepared_walk(self._slab_body(self._normals), self._rng)
        self._points = walk.embed(walk.starts(CHAINS, self._rng))
        self._states = self._points

    def run(self, budget: int, exchanges: int, tolerance: float) -> None:
        """Add slabs round by round until the budget is spent or nothing is gained."""
        cut, idle = 0.0, 0
        while True:
            self._mix(cut)
            room = budget - len(self._normals)
            if room == 0 and exchanges > 0:
                exchanges -= 1
                room = self._drop(math.ceil(EXCHANGED * (len(self._normals) - self._fixed)))
            if room == 0 or idle == IDLE_ROUNDS or self._stalled(tolerance):
                return
            self._propose()
            taken, cut = self._pool.take(self._states, min(self._added, room))
            self._normals = np.vstack([self._normals, taken])
            reach = np.abs(self._points @ self._normals.T).max(axis=1)
            self._points = self._points / np.maximum(1.0, reach)[:, None]
            idle = 0 if len(taken) else idle + 1

    def finish(self) -> SlabRefinement:
        """Certify the widths and estimate E ||U||^2 by chains started afresh."""
        slabs = self._slab_body(self._normals)
        whole_space = np.array_equal(self._basis, np.eye(len(self._basis)))
        body = slabs if whole_space else LinearImage(self._basis, slabs)
        sampler = ChainSampler(body, rng=self._rng)
        walk = sampler.walk
        run = run_chains(
            walk.kernel,
            walk.body,
            walk.starts(CHAINS, self._rng),
            self._rng,
            draws=MOMENT_DRAWS,
            burn_in=sampler.burn_in,
        )
        moment = chain_mean((walk.embed(run.draws) ** 2).sum(axis=2))
        return SlabRefinement(slabs, self._basis, sampler, moment, tuple(self._history))

    def _scaled(self, directions: FloatArray) -> FloatArray:
        """Directions (k, r) scaled to h(z) = 1, without those on which K has no extent."""
        heights = self._body.support(directions @ self._basis.T)
        lengths = np.linalg.norm(directions, axis=1)
        usable = heights > MEMBERSHIP_TOLERANCE * self._body.radius() * lengths
        return np.asarray(directions[usable] / heights[usable, None])

    def _slab_body(self, normals: FloatArray) -> SlabBody:
        return SlabBody(normals, INFLATION * self._body.support(normals @ self._basis.T))

    def _mix(self, cut: float) -> None:
        """Let the chains forget, in coordinates in which their last states were isotropic."""
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
        moment = float((self._states**2).sum(axis=1).mean())
        self._history.append(RefinementRound(len(self._normals), moment, cut))

    def _propose(self) -> None:
        """Ask the source about points of the boundary, and add what it finds to the pool."""
        if self._symmetry is None:
            count = min(POINTS_PER_SLAB * self._added, CHAINS)
        else:
            count = math.ceil(self._added / SLABS_PER_POINT)
        found = self._source.directions(self._probes(count) @ self._basis.T)
        if self._symmetry is not None and len(found):
            images = [self._symmetry(found, self._rng) for _ in range(IMAGES)]
            found = np.vstack([found, *images])
        self._pool.add(self._scaled(found @ self._basis))

    def _probes(self, count: int) -> FloatArray:
        """Where rays leave the slab body, their directions random in isotropic coordinates.

        States themselves would do, but crowd towards the corners of the first slabs.
        """
        root, _, _ = symmetric_roots(self._states.T @ self._states / len(self._states))
        rays = self._rng.standard_normal((count, len(root))) @ root
        return np.asarray(rays / np.abs(rays @ self._normals.T).max(axis=1)[:, None])

    def _drop(self, count: int) -> int:
        """Drop the slabs that the states come least close to, but for the first ones."""
        heights = np.abs(self._states @ self._normals[self._fixed :].T)
        # The tenth largest of 2048 heights: how close the slab's neighbourhood is populated.
        rank = min(10, len(heights))
        closeness = np.partition(heights, -rank, axis=0)[-rank]
        kept = np.sort(np.argsort(-closeness, kind="stable")[: len(closeness) - count])
        kept = np.concatenate([np.arange(self._fixed), self._fixed + kept])
        self._normals = self._normals[kept]
        return count

    def _stalled(self, tolerance: float) -> bool:
        moments = [entry.second_moment for entry in self._history]
        if len(moments) < 2 * WINDOW:
            return False
        last, before = np.mean(moments[-WINDOW:]), np.mean(moments[-2 * WINDOW : -WINDOW])
        return bool(last > (1 - tolerance) * before)
