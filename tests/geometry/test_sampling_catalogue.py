"""On bodies of the catalogue, both kernels keep uniform points uniform and move out of corners.

Let U be uniform on a body K of dimension r. Given the line through U in a fixed direction, U is
uniform on the chord of K along this line. If K has a gauge, ||U||_K^r is uniform on [0, 1]. Both
hold for every body, so the same tests serve all bodies.
"""

from __future__ import annotations

import numpy as np
import pytest

from geomdp._typing import FloatArray
from geomdp.bodies import Body, Box
from geomdp.geometry.sampling import CoordinateHitAndRun, HitAndRun, run_chains, sample_uniform
from geomdp.geometry.sampling.samplers import preimage, symmetric_roots
from geomdp.privacy import Exact
from tests.catalogue import BODIES, CONIC_PROGRAM, BodyCase
from tests.stats import LEVEL, ks_uniform

CHAINS = 600
SCALES = (1e-3, 1e3)
#: Number of uniform points of the bounding box drawn at a time; points in the body are kept.
PROPOSALS = 4096


def exact_points(body: Body, n: int, rng: np.random.Generator) -> FloatArray | None:
    """Exact uniform points by a sampler, a triangulation or rejection; None if none applies."""
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


#: Bodies on which chains are run. A body whose points cannot be tested has no chords. Chords from
#: conic programs take milliseconds per chain and step.
WALKED = [c for c in BODIES if c.rank and c.membership and c.tolerance < CONIC_PROGRAM]
#: Bodies without exact points to start from. They have no exact sampler and no listed vertices, and
#: they are flat or have no support function.
NO_EXACT_POINTS = {
    "rectangle in space",
    "difference of a flat polytope off 0",
    "workload polytope",
    "ball cut by a cube and slabs",
    "lopsided box cut by a shifted ball",
    "relaxed tables",
}
KERNELS = [HitAndRun(), CoordinateHitAndRun()]
#: Steps after which 200 chains from a corner look uniform. With random directions, a few times r^2
#: steps suffice; bodies of the catalogue have dimension r <= 9. A step of coordinate hit-and-run is
#: a sweep of r moves, so fewer steps suffice.
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
    """Only the bodies in `NO_EXACT_POINTS` have no exact points to start from."""
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
    """Three steps from exact points, on bodies of the scales 1e-3 and 1e3 in turn."""
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
    """Chains start near one boundary point, in coordinates in which the body is near isotropic."""
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
