"""Kernels keep uniform points uniform, and points that start in a corner become uniform."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from geomdp._typing import FloatArray
from geomdp.bodies import Body, Box, HPolytope, Simplex, SlabBody
from geomdp.geometry import sampling
from geomdp.geometry.sampling import (
    CoordinateHitAndRun,
    HitAndRun,
    Kernel,
    run_chains,
    sample_uniform,
)
from geomdp.geometry.sampling.samplers import preimage, symmetric_roots
from geomdp.privacy import Exact
from tests.catalogue import BODIES, CONIC_PROGRAM, BodyCase
from tests.stats import LEVEL, binomial_agrees, ks_uniform

CHAINS = 4000
DIMENSION = 4
SCALES = (1e-3, 1.0, 1e3)


@dataclass(frozen=True)
class Setting:
    """A body, its exact sampler, and functions of uniform points that are uniform on [0, 1]."""

    name: str
    build: Callable[[float], Body]
    exact: Callable[[int, np.random.Generator], FloatArray]  # at scale 1
    uniforms: Callable[[FloatArray], FloatArray]  # points (n, m) at scale 1 -> (n, k)
    corner: FloatArray  # at scale 1


AXES = np.vstack([np.eye(DIMENSION), -np.eye(DIMENSION)])
ROTATION = np.linalg.qr(np.random.default_rng(7).standard_normal((DIMENSION, DIMENSION)))[0]
UNIT_SIMPLEX = Simplex(np.vstack([np.zeros(DIMENSION), np.eye(DIMENSION)]))


def box_sample(n: int, rng: np.random.Generator) -> FloatArray:
    return rng.uniform(-1, 1, (n, DIMENSION))


def box_uniforms(points: FloatArray) -> FloatArray:
    """Coordinates mapped to [0, 1], and the volume share of the box around 0 through the point."""
    size = np.abs(points).max(axis=1, keepdims=True) ** DIMENSION
    return np.hstack([(points + 1) / 2, size])


def rotated_sample(n: int, rng: np.random.Generator) -> FloatArray:
    return box_sample(n, rng) @ ROTATION


def simplex_sample(n: int, rng: np.random.Generator) -> FloatArray:
    return UNIT_SIMPLEX.sample_uniform(n, rng)


def simplex_uniforms(points: FloatArray) -> FloatArray:
    """Each barycentric coordinate b has the law Beta(1, m), so (1 - b)^m is uniform."""
    weights = np.column_stack([1 - points.sum(axis=1), points])
    return (1 - weights) ** DIMENSION


NEAR_CORNER = np.full(DIMENSION, 0.999)
#: Exact sampler, uniform functions and a point near a corner, for the box and for the simplex.
OF_BOX = (box_sample, box_uniforms, NEAR_CORNER)
OF_SIMPLEX = (simplex_sample, simplex_uniforms, np.full(DIMENSION, 1e-3))
SLAB_BOX = Setting(
    "box as slabs", lambda s: SlabBody(np.eye(DIMENSION), np.full(DIMENSION, s)), *OF_BOX
)
ROTATED_SLABS = Setting(
    "rotated box as slabs",
    lambda s: SlabBody(ROTATION / 3, np.full(DIMENSION, s / 3)),
    rotated_sample,
    lambda points: box_uniforms(points @ ROTATION.T),
    NEAR_CORNER @ ROTATION,
)
HALFSPACE_BOX = Setting(
    "box as halfspaces", lambda s: HPolytope(AXES, np.full(2 * DIMENSION, s)), *OF_BOX
)
HALFSPACE_SIMPLEX = Setting(
    "simplex as halfspaces",
    lambda s: HPolytope(
        np.vstack([-np.eye(DIMENSION), np.ones(DIMENSION)]), np.append(np.zeros(DIMENSION), s)
    ),
    *OF_SIMPLEX,
)
BOX = Setting("box", lambda s: Box(np.full(DIMENSION, -s), np.full(DIMENSION, s)), *OF_BOX)
# (kernel, setting, number of steps after which points that start in a corner are uniform). In a
# corner of the 4-cube few random directions give a long chord, so `HitAndRun` needs many steps.
KERNELS = [
    *[
        (CoordinateHitAndRun(), setting, 60)
        for setting in (SLAB_BOX, ROTATED_SLABS, HALFSPACE_BOX, HALFSPACE_SIMPLEX)
    ],
    (CoordinateHitAndRun(sweeps=3), ROTATED_SLABS, 20),
    (CoordinateHitAndRun(), BOX, 60),
    *[(HitAndRun(), setting, 400) for setting in (BOX, SLAB_BOX, HALFSPACE_SIMPLEX)],
]


def moved(
    kernel: Kernel, body: Body, start: FloatArray, steps: int, rng: np.random.Generator
) -> FloatArray:
    points = start
    for _ in range(steps):
        points = kernel.step(rng, body, points)
    return points


def check_uniform(setting: Setting, points: FloatArray, scale: float, level: float) -> None:
    values = setting.uniforms(points / scale)
    for column in np.clip(values, 0, 1).T:  # rounding errors may leave [0, 1]
        ks_uniform(column, level / values.shape[1])


def check_invariance(kernel: Kernel, setting: Setting, scale: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    start = scale * setting.exact(CHAINS, rng)
    points = moved(kernel, setting.build(scale), start, 3, rng)
    check_uniform(setting, points, scale, LEVEL)


NAMES = [f"{kernel}-{setting.name}" for kernel, setting, _ in KERNELS]


def test_every_exported_kernel_has_a_row():
    exported = {getattr(sampling, name) for name in sampling.__all__} - {Kernel}
    kernels = {kind for kind in exported if isinstance(kind, type) and hasattr(kind, "step")}
    assert kernels == {type(kernel) for kernel, _, _ in KERNELS}


@pytest.mark.statistical
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize(("kernel", "setting", "steps"), KERNELS, ids=NAMES)
def test_uniform_points_stay_uniform(kernel, setting, steps, scale):
    check_invariance(kernel, setting, scale, seed=1)


@pytest.mark.statistical
@pytest.mark.parametrize(("kernel", "setting", "steps"), KERNELS, ids=NAMES)
def test_chains_leave_a_corner(kernel, setting, steps):
    rng = np.random.default_rng(3)
    start = np.tile(setting.corner, (CHAINS // 4, 1))
    points = moved(kernel, setting.build(1.0), start, steps, rng)
    check_uniform(setting, points, 1.0, LEVEL)


@pytest.mark.statistical
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("setting", [SLAB_BOX, HALFSPACE_BOX], ids=lambda s: s.name)
def test_edges_get_their_share(setting, scale):
    """If chords stopped short of the boundary, too few points would be close to it."""
    rng = np.random.default_rng(4)
    start = scale * setting.exact(CHAINS, rng)
    points = moved(CoordinateHitAndRun(), setting.build(scale), start, 3, rng)
    near = int((np.abs(points).max(axis=1) > 0.999 * scale).sum())
    binomial_agrees(near, CHAINS, 1 - 0.999**DIMENSION)


@dataclass(frozen=True)
class ForwardOnly:
    """A wrong kernel: it moves to a uniform point on the part of the chord ahead of the point."""

    name: str = "forward only"

    def step(self, rng: np.random.Generator, body: Body, points: FloatArray) -> FloatArray:
        directions = rng.standard_normal(points.shape)
        _, high = body.chord(points, directions)
        return points + (high * rng.random(len(points)))[:, None] * directions


@dataclass(frozen=True)
class ShortChords:
    """A kernel that is wrong on small bodies: it cuts off 1e-4 at both ends of the chord."""

    name: str = "short chords"

    def step(self, rng: np.random.Generator, body: Body, points: FloatArray) -> FloatArray:
        directions = rng.standard_normal(points.shape)
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        low, high = body.chord(points, directions)
        low, high = np.minimum(low + 1e-4, 0), np.maximum(high - 1e-4, 0)
        return points + (low + (high - low) * rng.random(len(points)))[:, None] * directions


@dataclass(frozen=True)
class Still:
    """A kernel that never moves, so it keeps every distribution."""

    name: str = "still"

    def step(self, rng: np.random.Generator, body: Body, points: FloatArray) -> FloatArray:
        return points


@pytest.mark.statistical
@pytest.mark.parametrize("setting", [BOX, HALFSPACE_SIMPLEX], ids=lambda s: s.name)
def test_invariance_rejects_a_wrong_kernel(setting):
    with pytest.raises(AssertionError):
        check_invariance(ForwardOnly(), setting, 1.0, seed=1)


@pytest.mark.statistical
def test_small_scales_reject_an_absolute_tolerance():
    check_invariance(ShortChords(), BOX, 1e3, seed=1)
    with pytest.raises(AssertionError):
        check_invariance(ShortChords(), BOX, 1e-3, seed=1)


@pytest.mark.statistical
def test_only_mixing_rejects_a_kernel_that_stands_still():
    check_invariance(Still(), BOX, 1.0, seed=1)
    with pytest.raises(AssertionError):
        check_uniform(
            BOX, moved(Still(), BOX.build(1.0), np.tile(BOX.corner, (100, 1)), 9, None), 1.0, LEVEL
        )


def test_chains_in_lockstep_are_independent_of_each_other():
    """With the same random numbers, a chain moves the same if all other chains are changed."""
    body = ROTATED_SLABS.build(1.0)
    starts = rotated_sample(6, np.random.default_rng(0))
    first = CoordinateHitAndRun().step(np.random.default_rng(1), body, starts)
    starts[1:] *= 0.5
    second = CoordinateHitAndRun().step(np.random.default_rng(1), body, starts)
    np.testing.assert_allclose(first[0], second[0], rtol=1e-12)
    assert (np.abs(first[1:] - second[1:]).max(axis=1) > 0).all()


def test_points_stay_inside_and_starts_are_left_alone():
    body = HALFSPACE_SIMPLEX.build(1.0)
    start = simplex_sample(50, np.random.default_rng(0))
    before = start.copy()
    points = moved(CoordinateHitAndRun(), body, start, 50, np.random.default_rng(1))
    assert body.contains(points).all()
    np.testing.assert_array_equal(start, before)


def test_sweeps_are_counted():
    """One step of three sweeps equals three steps of one sweep, with facets and with chords."""
    for setting in (ROTATED_SLABS, HALFSPACE_SIMPLEX, BOX):
        body, start = setting.build(1.0), setting.exact(20, np.random.default_rng(0))
        once = CoordinateHitAndRun(sweeps=3).step(np.random.default_rng(1), body, start)
        thrice = moved(CoordinateHitAndRun(), body, start, 3, np.random.default_rng(1))
        np.testing.assert_allclose(once, thrice, rtol=1e-9)


def test_facets_and_chords_move_alike():
    """The compiled sweep over facets uses the same random numbers as the sweep over chords."""
    facets, chords = SLAB_BOX.build(1.0), BOX.build(1.0)
    start = box_sample(20, np.random.default_rng(0))
    compiled = CoordinateHitAndRun().step(np.random.default_rng(1), facets, start)
    plain = CoordinateHitAndRun().step(np.random.default_rng(1), chords, start)
    np.testing.assert_allclose(compiled, plain, rtol=0, atol=1e-14)


# --- bodies of the catalogue ---------------------------------------------------------------------

#: Number of chains on a body of the catalogue.
FEW = 600
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
on_the_catalogue = pytest.mark.parametrize(
    ("case", "kernel"),
    [
        pytest.param(case, kernel, id=f"{kernel.name}-{case.name}")
        for case in WALKED
        if case.name not in NO_EXACT_POINTS
        for kernel in (HitAndRun(), CoordinateHitAndRun())
    ],
)
#: Steps after which 200 chains from a corner look uniform. With random directions, a few times r^2
#: steps suffice; bodies of the catalogue have dimension r <= 9. A step of coordinate hit-and-run is
#: a sweep of r moves, so fewer steps suffice.
MIXING_STEPS = {"hit-and-run": 300, "coordinate hit-and-run": 40}


def check_chords_and_gauges(case: BodyCase, body: Body, points: FloatArray, level: float) -> None:
    """Assert two laws of a uniform point U of a body of dimension r, which serve all bodies.

    Given the line through U in a fixed direction, U is uniform on the chord along this line. If the
    body has a gauge, ||U||_K^r is uniform on [0, 1].
    """
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
@on_the_catalogue
def test_uniform_points_of_the_catalogue_stay_uniform(case, kernel):
    """Three moves or one sweep from exact points, on bodies of the scales 1e-3 and 1e3 in turn."""
    body = case.build((1e-3, 1e3)[WALKED.index(case) % 2])
    rng = np.random.default_rng(1)
    start = exact_points(body, FEW, rng)
    assert start is not None
    hull = body.affine_hull()
    offset = start.mean(axis=0)
    inner = preimage(body, offset, hull.basis)
    inside, steps = (start - offset) @ hull.basis, 3 if kernel == HitAndRun() else 1
    ends = run_chains(kernel, inner, inside, rng, draws=1, thinning=steps).last
    points = offset + ends @ hull.basis.T
    assert (np.abs(points - start).max(axis=1) > 0).all()
    check_chords_and_gauges(case, body, points, LEVEL)


@pytest.mark.slow
@pytest.mark.statistical
@on_the_catalogue
def test_chains_leave_a_corner_of_a_body_of_the_catalogue(case, kernel):
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
    check_chords_and_gauges(case, body, offset + ends.last @ (hull.basis @ root).T, LEVEL)
