"""Both kernels on every body of the catalogue: uniform points stay uniform, corners are left.

On a line through a uniform point, the point is uniform on its chord; where the body has a gauge,
||U||_K^r is uniform. Both hold for every body, so one table serves all.
"""

from __future__ import annotations

import numpy as np
import pytest

from geomdp._typing import FloatArray
from geomdp.bodies import Body, Box
from geomdp.geometry.sampling import (
    CoordinateHitAndRun,
    HitAndRun,
    run_chains,
    sample_uniform,
)
from geomdp.geometry.sampling.rounding import preimage, symmetric_roots
from geomdp.privacy import Exact
from tests.catalogue import BODIES, CONIC_PROGRAM, BodyCase
from tests.stats import LEVEL, ks_uniform

CHAINS = 600
SCALES = (1e-3, 1e3)
#: Uniform points of the bounding box tested at a time for exact points of the body.
PROPOSALS = 4096


def exact_points(body: Body, n: int, rng: np.random.Generator) -> FloatArray | None:
    """Exact uniform points: the body's own, by triangulation, or by rejection from its box."""
    if body.implements(Body.sample_uniform) or body.implements(Body.vertex_list):
        samples = sample_uniform(body, n, rng)
        return samples.points if samples.sampler == Exact() else None
    if body.effective_dimension < body.dimension or not body.implements(Body.support):
        return None
    axes = np.eye(body.dimension)
    box = Box(-body.support(-axes), body.support(axes))
    points = np.empty((0, body.dimension))
    while len(points) < n:
        proposals = box.sample_uniform(PROPOSALS, rng)
        points = np.vstack([points, proposals[body.contains(proposals, 0.0)]])
    return points[:n]


#: Bodies that can be walked. A body whose points cannot be tested has no chords; those of conic
#: programs and of linear programs with many rows take milliseconds per chord and chain.
SLOW = {"polar of slabs"}
WALKED = [
    c
    for c in BODIES
    if c.rank and c.membership and c.tolerance < CONIC_PROGRAM and c.name not in SLOW
]
#: Bodies without exact points to start from: flat without a sampler, or without a support function.
NO_EXACT_POINTS = {
    "square in space",
    "difference of a flat polytope off 0",
    "workload polytope",
    "ball cut by a cube and slabs",
    "lopsided box cut by a shifted ball",
    "relaxed tables",
}
KERNELS = [HitAndRun(), CoordinateHitAndRun()]
#: Steps from a corner until nothing of it is seen in 200 chains: some times r^2 for the dimensions
#: r <= 9 of the catalogue and random directions, of which a sweep makes r moves.
MIXING_STEPS = {"hit-and-run": 300, "coordinate hit-and-run": 40}


def check_uniform(case: BodyCase, body: Body, points: FloatArray, level: float) -> None:
    basis = body.affine_hull().basis
    way = np.random.default_rng(3).standard_normal(basis.shape[1]) @ basis.T
    low, high = body.chord(points, np.tile(way, (len(points), 1)))
    ks_uniform(-low / (high - low), level / 2)
    if body.implements(Body.gauge):
        # Points on the boundary may be outside by rounding.
        ks_uniform(np.minimum(body.gauge(points), 1) ** case.rank, level / 2)


def test_every_body_is_walked():
    """But for those without exact points to start from."""
    left_out = {
        c.name for c in WALKED if exact_points(c.build(1.0), 8, np.random.default_rng(0)) is None
    }
    assert left_out == NO_EXACT_POINTS


@pytest.mark.statistical
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
@pytest.mark.parametrize(
    "case", [c for c in WALKED if c.name not in NO_EXACT_POINTS], ids=lambda case: case.name
)
def test_uniform_points_stay_uniform(case, kernel):
    """At one of two extreme scales, in turn: three steps from exact points."""
    body = case.build(SCALES[WALKED.index(case) % 2])
    rng = np.random.default_rng(1)
    start = exact_points(body, CHAINS, rng)
    assert start is not None
    hull = body.affine_hull()
    offset = start.mean(axis=0)
    inner = preimage(body, offset, hull.basis)
    ends = run_chains(kernel, inner, (start - offset) @ hull.basis, rng, draws=1, thinning=3).last
    points = offset + ends @ hull.basis.T
    assert (np.abs(points - start).max(axis=1) > 0).all()
    check_uniform(case, body, points, LEVEL)


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
@pytest.mark.parametrize(
    "case", [c for c in WALKED if c.name not in NO_EXACT_POINTS], ids=lambda case: case.name
)
def test_chains_leave_a_corner(case, kernel):
    """From next to a point of the boundary, in rounded coordinates."""
    body, rng = case.build(1.0), np.random.default_rng(2)
    start = exact_points(body, 16 * body.dimension, rng)
    assert start is not None
    hull, offset = body.affine_hull(), start.mean(axis=0)
    inside = (start - offset) @ hull.basis
    root, _, _ = symmetric_roots(inside.T @ inside / len(inside))
    inner = preimage(body, offset, hull.basis @ root)
    way = np.ones((1, case.rank))
    corner = 0.999 * inner.chord(np.zeros_like(way), way)[1][:, None] * way
    steps = MIXING_STEPS[kernel.name]
    ends = run_chains(kernel, inner, np.repeat(corner, 200, axis=0), rng, draws=1, thinning=steps)
    check_uniform(case, body, offset + ends.last @ (hull.basis @ root).T, LEVEL)
