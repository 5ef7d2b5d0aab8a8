"""Chains count their steps and store states, and rounding gives near-isotropic coordinates."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from geomdp.bodies import (
    Ball,
    Box,
    Difference,
    HPolytope,
    LinearImage,
    MissingOracle,
    Scaled,
    Simplex,
    SlabBody,
    VPolytope,
)
from geomdp.bodies.symmetrised import Shifted
from geomdp.geometry.sampling import CoordinateHitAndRun, HitAndRun, run_chains
from geomdp.geometry.sampling.chains import chain_mean, measure_mixing
from geomdp.geometry.sampling.samplers import ROUND, interior_point, plain_walk, round_walk
from tests.stats import binomial_agrees

#: A diagonal matrix of determinant 1 with entries from 10^-3 to 10^3.
STRETCH = np.diag(10.0 ** np.array([-3, -1, 1, 3]))
TURN = np.linalg.qr(np.random.default_rng(1).standard_normal((4, 4)))[0]
ROTATED_STRETCH = TURN @ STRETCH
CUBE_FACES = np.vstack([np.eye(4), -np.eye(4)])


def test_steps_are_counted_and_states_stored_in_order():
    body, start = Box(-np.ones(2), np.ones(2)), np.zeros((3, 2))
    run = run_chains(
        HitAndRun(), body, start, np.random.default_rng(0), draws=5, burn_in=4, thinning=3
    )
    assert run.steps == 4 + 5 * 3
    assert run.draws.shape == (3, 5, 2)
    np.testing.assert_array_equal(run.last, run.draws[:, -1])
    longer = run_chains(HitAndRun(), body, start, np.random.default_rng(0), draws=19)
    np.testing.assert_array_equal(run.draws, longer.draws[:, 6::3])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"draws": 0}, "draws must be a whole number, at least 1"),
        ({"draws": 1, "burn_in": -1}, "burn_in must be a whole number, at least 0"),
        ({"draws": 1, "thinning": 0}, "thinning must be a whole number, at least 1"),
    ],
)
def test_bad_counts(arguments, message):
    with pytest.raises(ValueError, match=message):
        run_chains(
            HitAndRun(), Ball(2, 1.0), np.zeros((1, 2)), np.random.default_rng(0), **arguments
        )


@pytest.mark.statistical
def test_mean_over_chains_covers_the_truth():
    """The means of 8 chains are normal here, so the 95% interval by Student's t law is exact."""
    values = np.random.default_rng(2).standard_normal((2000, 8, 3)) + 5
    estimates = [chain_mean(each) for each in values]
    covered = sum(e.interval[0] <= 5 <= e.interval[1] for e in estimates)
    binomial_agrees(covered, len(values), 0.95)
    assert estimates[0].samples == 8
    np.testing.assert_allclose(estimates[0].value, values[0].mean(), rtol=1e-12)


def test_mixing_of_independent_draws_and_of_a_slow_chain():
    rng = np.random.default_rng(3)
    cube = SlabBody(np.eye(4), np.ones(4))
    start = rng.uniform(-1, 1, (64, 4))
    fast = measure_mixing(CoordinateHitAndRun(), cube, start, rng)
    assert fast.agreed
    assert 1 <= fast.correlation_time < 1.6
    needle = SlabBody(np.linalg.inv(ROTATED_STRETCH), np.ones(4))
    slow = measure_mixing(CoordinateHitAndRun(), needle, start @ ROTATED_STRETCH.T, rng, limit=1000)
    assert not slow.agreed
    assert slow.chains.steps <= 1000


BODIES = {
    "slabs": SlabBody(np.linalg.inv(ROTATED_STRETCH), np.ones(4)),
    "halfspaces": HPolytope(CUBE_FACES @ np.linalg.inv(ROTATED_STRETCH), np.arange(1.0, 9.0)),
    "ellipsoid by chords": LinearImage(ROTATED_STRETCH, Ball(4, 1.0)),
    "simplex": Simplex(np.vstack([np.zeros(4), np.eye(4)]) @ ROTATED_STRETCH.T + 50),
    "vertices": VPolytope(
        np.array(list(itertools.product([0.0, 1.0], repeat=4))) @ ROTATED_STRETCH.T
    ),
    "flat vertices": VPolytope(
        np.array(list(itertools.product([0.0, 1.0], repeat=3))) @ ROTATED_STRETCH[:, 1:].T + 3
    ),
    "difference": Difference(VPolytope(np.eye(4) @ ROTATED_STRETCH.T)),
    "shifted and scaled": Shifted(Scaled(SlabBody(np.eye(4), np.ones(4)), 1e3), np.arange(4.0)),
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
def test_rounded_coordinates_are_near_isotropic(body):
    rng = np.random.default_rng(4)
    walk = round_walk(plain_walk(body), rng)
    assert walk.body.dimension == body.affine_hull().dimension
    start = walk.starts(400, rng)
    assert body.contains(walk.embed(start)).all()
    run = run_chains(walk.kernel, walk.body, start, rng, draws=40, burn_in=60)
    assert body.contains(walk.embed(run.last)).all()
    states = run.draws.reshape(-1, walk.body.dimension)
    values = np.linalg.eigvalsh(np.cov(states.T))
    # Rounding stops if 16 points per dimension show a ratio of eigenvalues of at most ROUND. Chance
    # can change this ratio by a factor of about 2.8.
    assert values[-1] / values[0] <= ROUND * 2.8
    if body.symmetric:
        np.testing.assert_array_equal(walk.offset, np.zeros(4))


def test_kernels_suit_the_bodies():
    kernels = {name: plain_walk(body).kernel for name, body in BODIES.items()}
    assert kernels["slabs"] == kernels["halfspaces"] == CoordinateHitAndRun()
    assert kernels["shifted and scaled"] == CoordinateHitAndRun()
    assert kernels["vertices"] == kernels["difference"] == HitAndRun()


def test_a_flat_polytope_of_halfspaces_is_walked_in_its_hull():
    """{x : 0 <= x_i, sum x = 1} in R^3, where two inequalities replace the equality."""
    rows = np.vstack([-np.eye(3), np.ones(3), -np.ones(3)])
    body = HPolytope(rows, np.array([0.0, 0, 0, 1, -1]))
    walk = round_walk(plain_walk(body), np.random.default_rng(5))
    assert walk.body.dimension == 2
    points = walk.embed(walk.starts(50, np.random.default_rng(6)))
    np.testing.assert_allclose(points.sum(axis=1), 1, rtol=1e-12)
    assert (points > 0).all()


def test_interior_points_see_thin_directions():
    """Extreme points along the axes are only (-1, -1) and (1, 1). Their mean is not interior."""
    thin = VPolytope(np.array([[-1.0, -1], [1, 1], [0.01, 0]]))
    point = interior_point(thin)
    reach = thin.chord(np.tile(point, (2, 1)), np.array([[1.0, -1], [1, 1]]))
    assert min(-reach[0].max(), reach[1].min()) > 1e-3


def test_maps_that_fold_the_body_are_refused():
    with pytest.raises(MissingOracle, match="one-to-one"):
        plain_walk(LinearImage(np.ones((1, 4)), BODIES["slabs"]))


def test_a_single_point_is_refused():
    with pytest.raises(ValueError, match="dimension at least 1"):
        plain_walk(VPolytope(np.ones((3, 2))))
