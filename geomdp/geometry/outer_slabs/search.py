"""The search for slabs {x : |<z, x>| <= w} that contain a body K and enclose it tightly."""

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

#: Every half-width w is the support value h(z) times this factor. Rounding of h(z) (relative error
#: near 1e-13) then cannot make a slab too narrow (SAM-5). If h has a larger relative error, this
#: error, `accuracy`, is added to the factor.
INFLATION = 1 + 1e-9
#: Number of chains that move together.
CHAINS = 256
#: Number of states kept of each chain per round, one sweep apart. A sweep moves every coordinate
#: once. Directions are scored on all states of all chains.
SNAPSHOTS = 8
#: Number of sweeps at the start of a round whose states are not kept. The chains need these sweeps
#: because new slabs have moved the points of the chains into a smaller body.
SETTLING = 4
#: The largest number of slabs added in a round is the dimension, within these limits. With more
#: slabs, the chains might not mix between two rounds. For dimensions within the limits, the default
#: budget of 20 slabs per dimension takes about 20 rounds.
FEWEST_ADDED, MOST_ADDED = 8, 128
#: Directions are sought at this many points for each slab to be added. So about twice as many
#: directions are found as slabs are added, and the better half become slabs. In measurements, an
#: equal number of slabs cut off less if all directions found became slabs.
POINTS_PER_SLAB = 2
#: These numbers apply if a symmetry is given: the number of random images of each direction, and
#: the number of slabs added per point.
IMAGES, SLABS_PER_POINT = 50, 5
#: Let U be uniform on the slab body. Compare the mean of E ||U||^2 over the last `WINDOW` rounds
#: with the mean over the `WINDOW` rounds before. The search stops if the later mean is more than
#: (1 - `TOLERANCE`) times the earlier mean.
WINDOW, TOLERANCE = 10, 0.002
#: The search stops after this many rounds in a row in which no candidate cut off any state.
IDLE_ROUNDS = 3


@dataclass(frozen=True)
class RefinementRound:
    """One round: number of slabs, E ||U||_2^2 of its states, and the share of states cut off."""

    slabs: int
    second_moment: float
    cut: float


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
        accuracy: float,
    ) -> None:
        self._body, self._basis, self._inflation = body, basis, INFLATION + accuracy
        self._source, self._symmetry, self._rng = direction_source(body), symmetry, rng
        self._pool = CutPool(basis.shape[1])
        self._normals = self._scaled(start)
        self._added = min(max(start.shape[1], FEWEST_ADDED), MOST_ADDED)
        self.history: list[RefinementRound] = []
        if len(self._normals) < len(start):
            raise ValueError(
                "directions must not be orthogonal to the span of the body, but at least one is"
            )
        walk = prepared_walk(self.slab_body(), rng)
        self._points = walk.embed(walk.starts(CHAINS, rng))
        self._states = self._points

    def run(self, budget: int) -> None:
        """Add slabs round by round until the budget is spent or new slabs gain little."""
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
        """Add slabs with these normals, and scale the points of the chains into the new body."""
        self._normals = np.vstack([self._normals, normals])
        reach = np.abs(self._points @ self._normals.T).max(axis=1)
        self._points = self._points / np.maximum(1.0, reach)[:, None]

    def slab_body(self) -> SlabBody:
        """The slab body found so far. Its half-widths are computed again and rounded up."""
        heights = self._body.support(self._normals @ self._basis.T)
        return SlabBody(self._normals, self._inflation * heights)

    def _scaled(self, directions: FloatArray) -> FloatArray:
        """Directions (k, r) scaled to h(z) = 1, without those along which K has no width."""
        heights = self._body.support(directions @ self._basis.T)
        lengths = np.linalg.norm(directions, axis=1)
        usable = heights > MEMBERSHIP_TOLERANCE * self._body.radius() * lengths
        return np.asarray(directions[usable] / heights[usable, None])

    def _mix(self, cut: float) -> None:
        """Run the chains in the present slab body and record the round with its `cut`."""
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
        moment = float((self._states**2).sum(axis=1).mean())
        self.history.append(RefinementRound(len(self._normals), moment, cut))

    def _propose(self) -> None:
        """Add to the pool directions that separate boundary points of the slab body from K."""
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
        """Points (count, r) where random rays from 0 with the states' covariance leave the body."""
        root, _, _ = symmetric_roots(self._states.T @ self._states / len(self._states))
        rays = self._rng.standard_normal((count, len(root))) @ root
        return np.asarray(rays / np.abs(rays @ self._normals.T).max(axis=1)[:, None])

    def _stalled(self) -> bool:
        """Whether the mean of E ||U||^2 fell by a share below `TOLERANCE` between two windows."""
        moments = [entry.second_moment for entry in self.history]
        if len(moments) < 2 * WINDOW:
            return False
        last, before = np.mean(moments[-WINDOW:]), np.mean(moments[-2 * WINDOW : -WINDOW])
        return bool(last > (1 - TOLERANCE) * before)
