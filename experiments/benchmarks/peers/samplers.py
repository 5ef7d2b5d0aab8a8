"""Random walks on polytopes, run by the compiled loop of the package hopsy."""

from __future__ import annotations

import time

import hopsy
import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

#: hopsy's walks for uniform sampling that accept every or nearly every step.
PROPOSALS = {
    "hopsy, coordinate hit-and-run": hopsy.UniformCoordinateHitAndRunProposal,
    "hopsy, hit-and-run": hopsy.UniformHitAndRunProposal,
    "hopsy, billiard walk": hopsy.BilliardWalkProposal,
}
CHAINS = 4


def hopsy_draws(
    normals: Array, offsets: Array, method: str, draws: int, thinning: int, *, rounded: bool
) -> tuple[Array, float]:
    """States (chains, draws, m) of walks on {x : normals @ x <= offsets}, and the seconds taken.

    The polytope must contain 0 in its interior. If `rounded`, hopsy first rounds the polytope. Each
    walk begins with ``draws // 5`` states that are discarded. Rounding and discarded states are not
    timed.
    """
    problem = hopsy.Problem(normals, offsets)
    if rounded:
        problem = hopsy.round(problem)
    start = np.zeros(normals.shape[1])
    if rounded:
        start = hopsy.transform(problem, [start])[0]
    chains = [
        hopsy.MarkovChain(problem, PROPOSALS[method], starting_point=start) for _ in range(CHAINS)
    ]
    generators = [hopsy.RandomNumberGenerator(seed) for seed in range(CHAINS)]
    hopsy.sample(chains, generators, n_samples=draws // 5, thinning=thinning, n_procs=1)
    began = time.process_time()
    _, states = hopsy.sample(chains, generators, n_samples=draws, thinning=thinning, n_procs=1)
    return np.asarray(states), time.process_time() - began
