"""The search behind outer slab bodies, from the first slabs to the certified body."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from geomdp._typing import FloatArray, IntArray
from geomdp.bodies import Body, LinearImage, SlabBody
from geomdp.bodies.base import MEMBERSHIP_TOLERANCE
from geomdp.geometry.outer_slabs.cuts import CutPool
from geomdp.geometry.outer_slabs.separation import DirectionSource
from geomdp.geometry.results import Estimate
from geomdp.geometry.sampling.chains import chain_mean, run_chains
from geomdp.geometry.sampling.kernels import CoordinateHitAndRun
from geomdp.geometry.sampling.rounding import prepared_walk, symmetric_roots
from geomdp.geometry.sampling.samplers import ChainSampler
from geomdp.workloads.structure.symmetries import RandomSymmetry

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
        In the coordinates of the span, R^r. Half-widths are (`INFLATION` + accuracy) h_K(z).
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


def embedded(slabs: SlabBody, basis: FloatArray) -> Body:
    """The slab body in R^m, for an orthonormal basis (m, r) of its span."""
    whole_space = np.array_equal(basis, np.eye(len(basis)))
    return slabs if whole_space else LinearImage(basis, slabs)


class Refinery:
    """State of one refinement. Normals z are rows in span coordinates, scaled to h(z) = 1."""

    def __init__(
        self,
        body: Body,
        basis: FloatArray,
        source: DirectionSource,
        symmetry: RandomSymmetry | None,
        rng: np.random.Generator,
        accuracy: float,
    ) -> None:
        self._body, self._basis, self._inflation = body, basis, INFLATION + accuracy
        self._source, self._symmetry, self._rng = source, symmetry, rng
        self._pool = CutPool(basis.shape[1])
        self._dropped = np.zeros((0, basis.shape[1]))
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
                break
            self._propose()
            taken, cut = self._pool.take(self._states, min(self._added, room))
            self._add(taken)
            idle = 0 if len(taken) else idle + 1
        self._restore(room)

    def _add(self, normals: FloatArray) -> None:
        """Add slabs, and pull the chains into the smaller body."""
        self._normals = np.vstack([self._normals, normals])
        reach = np.abs(self._points @ self._normals.T).max(axis=1)
        self._points = self._points / np.maximum(1.0, reach)[:, None]

    def _restore(self, room: int) -> None:
        """Give the room that exchanges made and did not fill back to slabs they dropped."""
        if room == 0 or len(self._dropped) == 0:
            return
        self._add(self._dropped[np.sort(self._by_closeness(self._dropped)[:room])])
        self._mix(0.0)

    def finish(self) -> SlabRefinement:
        """Certify the widths and estimate E ||U||^2 by chains started afresh."""
        slabs = self._slab_body(self._normals)
        sampler = ChainSampler(embedded(slabs, self._basis), rng=self._rng)
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
        return SlabBody(normals, self._inflation * self._body.support(normals @ self._basis.T))

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
        order = self._fixed + self._by_closeness(self._normals[self._fixed :])
        kept, gone = np.sort(order[: len(order) - count]), order[len(order) - count :]
        self._dropped = np.vstack([self._dropped, self._normals[gone]])
        self._normals = self._normals[np.concatenate([np.arange(self._fixed), kept])]
        return count

    def _by_closeness(self, normals: FloatArray) -> IntArray:
        """Indices of slabs in descending order of how close the states come to them."""
        heights = np.abs(self._states @ normals.T)
        # The tenth largest of 2048 heights: how close the slab's neighbourhood is populated.
        rank = min(10, len(heights))
        return np.argsort(-np.partition(heights, -rank, axis=0)[-rank], kind="stable")

    def _stalled(self, tolerance: float) -> bool:
        moments = [entry.second_moment for entry in self._history]
        if len(moments) < 2 * WINDOW:
            return False
        last, before = np.mean(moments[-WINDOW:]), np.mean(moments[-2 * WINDOW : -WINDOW])
        return bool(last > (1 - tolerance) * before)
