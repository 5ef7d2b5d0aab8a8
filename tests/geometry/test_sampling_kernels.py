"""Kernels keep uniform points uniform, and points that start in a corner become uniform."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from geomdp._typing import FloatArray
from geomdp.bodies import Body, Box, HPolytope, Simplex, SlabBody
from geomdp.geometry import sampling
from geomdp.geometry.sampling import CoordinateHitAndRun, HitAndRun, Kernel
from tests.stats import LEVEL, ks_uniform

CHAINS = 4000
DIMENSION = 4
SCALES = (1e-3, 1.0, 1e3)


@dataclass(frozen=True)
class Setting:
    """A body; and at scale 1 its exact sampler, functions (n, k) of uniform points (n, m) that are
    uniform on [0, 1], and a point near a corner.
    """

    name: str
    build: Callable[[float], Body]
    exact: Callable[[int, np.random.Generator], FloatArray]
    uniforms: Callable[[FloatArray], FloatArray]
    corner: FloatArray


AXES = np.vstack([np.eye(DIMENSION), -np.eye(DIMENSION)])
ROTATION = np.linalg.qr(np.random.default_rng(7).standard_normal((DIMENSION, DIMENSION)))[0]
UNIT_SIMPLEX = Simplex(np.vstack([np.zeros(DIMENSION), np.eye(DIMENSION)]))


def box_sample(n: int, rng: np.random.Generator) -> FloatArray:
    return rng.uniform(-1, 1, (n, DIMENSION))


def box_uniforms(points: FloatArray) -> FloatArray:
    """Coordinates mapped to [0, 1], and the volume share of the box around 0 through the point."""
    size = np.abs(points).max(axis=1, keepdims=True) ** DIMENSION
    return np.hstack([(points + 1) / 2, size])


def simplex_uniforms(points: FloatArray) -> FloatArray:
    """Each barycentric coordinate b has the law Beta(1, m), so (1 - b)^m is uniform."""
    weights = np.column_stack([1 - points.sum(axis=1), points])
    return (1 - weights) ** DIMENSION


NEAR_CORNER = np.full(DIMENSION, 0.999)
#: Exact sampler, uniform functions and a point near a corner, for the box and for the simplex.
OF_BOX = (box_sample, box_uniforms, NEAR_CORNER)
OF_SIMPLEX = (UNIT_SIMPLEX.sample_uniform, simplex_uniforms, np.full(DIMENSION, 1e-3))
SLAB_BOX = Setting(
    "box as slabs", lambda s: SlabBody(np.eye(DIMENSION), np.full(DIMENSION, s)), *OF_BOX
)
ROTATED_SLABS = Setting(
    "rotated box as slabs",
    lambda s: SlabBody(ROTATION / 3, np.full(DIMENSION, s / 3)),
    lambda n, rng: box_sample(n, rng) @ ROTATION,
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


def check_uniform(setting: Setting, points: FloatArray, scale: float) -> None:
    values = setting.uniforms(points / scale)
    for column in np.clip(values, 0, 1).T:  # rounding errors may leave [0, 1]
        ks_uniform(column, LEVEL / values.shape[1])


NAMES = [f"{kernel}-{setting.name}" for kernel, setting, _ in KERNELS]


def test_every_exported_kernel_has_a_row():
    exported = {getattr(sampling, name) for name in sampling.__all__} - {Kernel}
    kernels = {kind for kind in exported if isinstance(kind, type) and hasattr(kind, "step")}
    assert kernels == {type(kernel) for kernel, _, _ in KERNELS}


@pytest.mark.statistical
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize(("kernel", "setting", "steps"), KERNELS, ids=NAMES)
def test_uniform_points_stay_uniform(kernel, setting, steps, scale):
    rng = np.random.default_rng(1)
    start = scale * setting.exact(CHAINS, rng)
    points = moved(kernel, setting.build(scale), start, 3, rng)
    check_uniform(setting, points, scale)


@pytest.mark.statistical
@pytest.mark.parametrize(("kernel", "setting", "steps"), KERNELS, ids=NAMES)
def test_chains_leave_a_corner(kernel, setting, steps):
    rng = np.random.default_rng(3)
    start = np.tile(setting.corner, (CHAINS // 4, 1))
    points = moved(kernel, setting.build(1.0), start, steps, rng)
    check_uniform(setting, points, 1.0)


def test_chains_in_lockstep_are_independent_of_each_other():
    """With the same random numbers, a chain moves the same if all other chains are changed."""
    body = ROTATED_SLABS.build(1.0)
    starts = ROTATED_SLABS.exact(6, np.random.default_rng(0))
    first = CoordinateHitAndRun().step(np.random.default_rng(1), body, starts)
    starts[1:] *= 0.5
    second = CoordinateHitAndRun().step(np.random.default_rng(1), body, starts)
    np.testing.assert_allclose(first[0], second[0], rtol=1e-12)
    assert (np.abs(first[1:] - second[1:]).max(axis=1) > 0).all()


def test_sweeps_are_counted_over_facets_as_over_chords():
    """One step of three sweeps equals three steps of one sweep, and leaves the starts alone.

    The compiled sweep over facets uses the same random numbers as the sweep over chords.
    """
    found = []
    for setting in (SLAB_BOX, HALFSPACE_BOX, BOX, HALFSPACE_SIMPLEX):
        body, start = setting.build(1.0), setting.exact(20, np.random.default_rng(0))
        before = start.copy()
        once = CoordinateHitAndRun(sweeps=3).step(np.random.default_rng(1), body, start)
        np.testing.assert_array_equal(start, before)
        thrice = moved(CoordinateHitAndRun(), body, start, 3, np.random.default_rng(1))
        np.testing.assert_allclose(once, thrice, rtol=1e-9)
        assert body.contains(once).all()
        found.append(once)
    for ends in found[1:3]:
        np.testing.assert_allclose(ends, found[0], rtol=0, atol=1e-14)
