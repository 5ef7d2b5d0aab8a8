"""The search for slabs that cut off much of an outer body: rounds of chains and new directions."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from geomdp._typing import FloatArray
from geomdp.bodies import Body, SlabBody
from geomdp.bodies.base import MEMBERSHIP_TOLERANCE
from geomdp.geometry.outer_slabs.cuts import CutPool
from geomdp.geometry.outer_slabs.separation import direction_source
from geomdp.geometry.sampling.chains import run_chains
from geomdp.geometry.sampling.kernels import CoordinateHitAndRun
from geomdp.geometry.sampling.rounding import prepared_walk, symmetric_roots
from geomdp.workloads.structure.symmetries import RandomSymmetry

#: Every half-width is this much larger than the support function, so that rounding in its
#: evaluation (relative error near 1e-13) cannot make a slab too narrow (SAM-5).
INFLATION = 1 + 1e-9
#: Chains that move together.
CHAINS = 256
#: States kept of each chain per round, one sweep apart; directions are scored on all of them.
SNAPSHOTS = 8
#: Sweeps before the first snapshot, as the chains were just pulled into a slightly smaller body.
SETTLING = 4
#: Each round adds as many slabs as the dimension, within these limits. Chains then have time to
#: mix between two rounds, and a full budget takes about `SLABS_PER_DIMENSION` rounds.
FEWEST_ADDED, MOST_ADDED = 8, 128
#: Points per added slab from which directions are sought. On the measured workloads about half of
#: the facets found this way are worth adding: a budget spent on all of them cuts off less.
POINTS_PER_SLAB = 2
#: If a symmetry is known: random images taken of each direction, and slabs added per point.
IMAGES, SLABS_PER_POINT = 50, 5
#: The search stops when the mean of E ||U||^2 over this many rounds is above 1 - `TOLERANCE` times
#: that over as many rounds before.
WINDOW, TOLERANCE = 10, 0.002
#: After this many rounds without a cut, the slab body counts as the body itself.
IDLE_ROUNDS = 3


@dataclass(frozen=True)
class RefinementRound:
    """One round of refinement.

    Parameters
    ----------
    slabs : int
        Number of slabs at the end of the round.
    second_moment : float
        E ||U||_2^2 for U uniform on the slab body, from the round's chains, in squared units of
        the body.
    cut : float
        Share of the previous round's states that the new slabs cut off.
    """

    slabs: int
    second_moment: float
    cut: float


class SlabSearch:
    """One search for slabs: the slabs so far, the chains in their body, and the candidates.

    Normals z are rows in the coordinates of the span, scaled to h(z) = 1, where h is the support
    function of the body K that the slabs must hold. The search begins with the slabs whose normals
    are the rows of `start` (k, r); the other parameters are those of `refine_slabs`.
    """

    def __init__(
        self,
        body: Body,
        basis: FloatArray,
        start: FloatArray,
        symmetry: RandomSymmetry | None,
        rng: np.random.Generator,
        accuracy: float,
    ) -> None:
        self._body, self._basis, self._inflation = body, basis, INFLATION + accuracy
        self._source, self._symmetry, self._rng = direction_source(body), symmetry, rng
        self._pool = CutPool(basis.shape[1])
        self._normals = self._scaled(start)
        self._added = min(max(start.shape[1], FEWEST_ADDED), MOST_ADDED)
        self.history: list[RefinementRound] = []
        if len(self._normals) < len(start):
            raise ValueError("directions must not be orthogonal to the span of the body, got one")
        walk = prepared_walk(self.slab_body(), rng)
        self._points = walk.embed(walk.starts(CHAINS, rng))
        self._states = self._points

    def run(self, budget: int) -> None:
        """Add slabs round by round until the budget is spent or nothing is gained."""
        cut, idle = 0.0, 0
        while True:
            self._mix(cut)
            room = budget - len(self._normals)
            if room == 0 or idle == IDLE_ROUNDS or self._stalled():
                break
            self._propose()
            taken, cut = self._pool.take(self._states, min(self._added, room))
            self._add(taken)
            idle = 0 if len(taken) else idle + 1

    def _add(self, normals: FloatArray) -> None:
        """Add slabs, and pull the chains into the smaller body."""
        self._normals = np.vstack([self._normals, normals])
        reach = np.abs(self._points @ self._normals.T).max(axis=1)
        self._points = self._points / np.maximum(1.0, reach)[:, None]

    def slab_body(self) -> SlabBody:
        """The slabs found, their half-widths computed afresh and rounded up."""
        heights = self._body.support(self._normals @ self._basis.T)
        return SlabBody(self._normals, self._inflation * heights)

    def _scaled(self, directions: FloatArray) -> FloatArray:
        """Directions (k, r) scaled to h(z) = 1, without those along which K has no width."""
        heights = self._body.support(directions @ self._basis.T)
        lengths = np.linalg.norm(directions, axis=1)
        usable = heights > MEMBERSHIP_TOLERANCE * self._body.radius() * lengths
        return np.asarray(directions[usable] / heights[usable, None])

    def _mix(self, cut: float) -> None:
        """Run the chains in the present slab body and record the round.

        They move in coordinates in which the previous states have covariance 1, where they mix
        fastest.
        """
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
        self.history.append(RefinementRound(len(self._normals), moment, cut))

    def _propose(self) -> None:
        """Ask the direction source about boundary points, and add what it finds to the pool."""
        if self._symmetry is None:
            count = min(POINTS_PER_SLAB * self._added, CHAINS)
        else:
            count = math.ceil(self._added / SLABS_PER_POINT)
        found = self._source(self._probes(count) @ self._basis.T)
        if self._symmetry is not None and len(found):
            images = [self._symmetry(found, self._rng) for _ in range(IMAGES)]
            found = np.vstack([found, *images])
        self._pool.add(self._scaled(found @ self._basis))

    def _probes(self, count: int) -> FloatArray:
        """Points (count, r) where random rays from 0 leave the slab body.

        The rays are Gaussian with the covariance of the states. The states themselves would do
        worse: in early rounds most of them are near corners of the first few slabs.
        """
        root, _, _ = symmetric_roots(self._states.T @ self._states / len(self._states))
        rays = self._rng.standard_normal((count, len(root))) @ root
        return np.asarray(rays / np.abs(rays @ self._normals.T).max(axis=1)[:, None])

    def _stalled(self) -> bool:
        """Whether E ||U||^2 has fallen by less than `TOLERANCE` over the last rounds."""
        moments = [entry.second_moment for entry in self.history]
        if len(moments) < 2 * WINDOW:
            return False
        last, before = np.mean(moments[-WINDOW:]), np.mean(moments[-2 * WINDOW : -WINDOW])
        return bool(last > (1 - TOLERANCE) * before)
