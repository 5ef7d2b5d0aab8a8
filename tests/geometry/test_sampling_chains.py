"""Chains: their steps, rounding to isotropic coordinates, their ends, and their diagnostics."""

import itertools
import math
import warnings

import numpy as np
import pytest

from geomdp._typing import FloatArray
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
from geomdp.geometry.sampling import (
    CoordinateHitAndRun,
    ExactSampler,
    HitAndRun,
    bulk_ess,
    run_chains,
    sample_uniform,
    split_r_hat,
)
from geomdp.geometry.sampling.chains import chain_mean, measure_mixing
from geomdp.geometry.sampling.samplers import (
    LOCKSTEP,
    ROUND,
    ChainSampler,
    interior_point,
    plain_walk,
    round_walk,
)
from geomdp.privacy import Exact, Heuristic
from tests.stats import LEVEL, binomial_agrees, ks_uniform, mean_agrees

#: A diagonal matrix of determinant 1 with entries from 10^-3 to 10^3.
STRETCH = np.diag(10.0 ** np.array([-3, -1, 1, 3]))
ROTATED_STRETCH = np.linalg.qr(np.random.default_rng(1).standard_normal((4, 4)))[0] @ STRETCH
CUBE_FACES = np.vstack([np.eye(4), -np.eye(4)])


STRIP = SlabBody(np.array([[1.0, 0.0]]), np.ones(1))
NOT_FINITE = np.where(np.arange(60).reshape(2, 10, 3) == 41, np.nan, 0.0)


def run_of(**counts):
    return run_chains(HitAndRun(), Ball(2), np.zeros((1, 2)), np.random.default_rng(0), **counts)


#: For each message, a call that raises it.
REFUSED = [
    ("draws must be a whole number, at least 1", lambda: run_of(draws=0)),
    ("burn_in must be a whole number, at least 0", lambda: run_of(draws=1, burn_in=-1)),
    ("thinning must be a whole number, at least 1", lambda: run_of(draws=1, thinning=0)),
    ("n must be a whole number, at least 1", lambda: sample_uniform(needle(1.0), 0)),
    ("n must be a whole number, at least 1", lambda: ExactSampler(Ball(2)).draw(None, 0)),
    ("bounded", lambda: ChainSampler(STRIP)),
    ("bounded", lambda: sample_uniform(HPolytope(np.eye(2), np.ones(2)), 5)),
    ("dimension at least 1", lambda: plain_walk(VPolytope(np.ones((3, 2))))),
    ("one-to-one", lambda: plain_walk(LinearImage(np.ones((1, 4)), BODIES["slabs"]))),
    ("SlabBody has no exact sampler", lambda: ExactSampler(needle(1.0))),
    ("at least 2 chains of at least 4 draws, got 1", lambda: split_r_hat(np.zeros((1, 10, 2)))),
    ("at least 2 chains of at least 4 draws, got 3", lambda: split_r_hat(np.zeros((3, 3, 2)))),
    ("draws must have 3 axes", lambda: split_r_hat(np.zeros((3, 10)))),
    ("draws must be finite", lambda: bulk_ess(NOT_FINITE)),
]


@pytest.mark.parametrize(("message", "call"), REFUSED)
def test_what_cannot_be_run_is_refused(message, call):
    with pytest.raises((ValueError, MissingOracle), match=message):
        call()


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
    "scaled": Scaled(SlabBody(np.eye(4), np.ones(4)), 1e3),
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
def test_rounded_coordinates_are_near_isotropic(body):
    rng = np.random.default_rng(4)
    walk = round_walk(plain_walk(body), rng)
    assert walk.body.dimension == body.affine_hull().dimension
    start = walk.starts(200, rng)
    assert body.contains(walk.embed(start)).all()
    run = run_chains(walk.kernel, walk.body, start, rng, draws=20, burn_in=40)
    assert body.contains(walk.embed(run.last)).all()
    states = run.draws.reshape(-1, walk.body.dimension)
    values = np.linalg.eigvalsh(np.cov(states.T))
    # Rounding stops if 16 points per dimension show a ratio of eigenvalues of at most ROUND. Chance
    # can change this ratio by a factor of about 2.8.
    assert values[-1] / values[0] <= ROUND * 2.8
    if body.symmetric:
        np.testing.assert_array_equal(walk.offset, np.zeros(4))


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


DIMENSION = 5
TURN = np.linalg.qr(np.random.default_rng(1).standard_normal((DIMENSION, DIMENSION)))[0]
#: Half-widths of a rotated box, in the proportions 1 : 10 : ... : 10^4.
SIDES = 10.0 ** np.arange(DIMENSION)


def needle(scale: float) -> SlabBody:
    """The box {x : |TURN x| <= scale SIDES}, which x -> TURN x / (scale SIDES) maps to a cube."""
    return SlabBody(TURN, scale * SIDES)


def check_needle(points, scale):
    for column in ((points @ TURN.T) / (scale * SIDES)).T:
        ks_uniform(np.clip((column + 1) / 2, 0, 1), LEVEL / DIMENSION)


def test_samples_say_how_they_were_drawn():
    body = Ball(3, 2.0)
    samples = sample_uniform(body, 7, rng=5)
    np.testing.assert_array_equal(samples.points, body.sample_uniform(7, np.random.default_rng(5)))
    assert (samples.sampler, samples.diagnostics) == (Exact(), None)
    assert repr(samples) == "Samples(7 points in dimension 3; exact)"
    chained = sample_uniform(HPolytope(CUBE_FACES, np.ones(8)), 1, rng=0)
    assert repr(chained).startswith("Samples(1 points in dimension 4; heuristic (coordinate hit")
    assert repr(chained.diagnostics) == f"Diagnostics({chained.diagnostics})"


@pytest.mark.statistical
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_chain_ends_are_uniform(scale):
    sampler = ChainSampler(needle(scale))
    check_needle(sampler.draw(np.random.default_rng(2), 3000), scale)


@pytest.mark.statistical
def test_kept_states_are_uniform_and_diagnosed():
    samples = sample_uniform(needle(1.0), 4000, rng=3)
    # The first 128 points are from 128 different chains, so they are independent. Points of one
    # chain are not.
    check_needle(samples.points[:128], 1.0)
    mean_agrees(samples.points @ TURN.T / SIDES, np.zeros(DIMENSION), LEVEL)
    assert isinstance(samples.sampler, Heuristic)
    assert samples.diagnostics.chains == 128
    assert samples.diagnostics.split_r_hat.max() < 1.1
    assert samples.diagnostics.bulk_ess.min() > 1000
    assert samples.points.shape == (4000, DIMENSION)


def test_status_names_kernel_and_steps():
    sampler = ChainSampler(needle(1.0))
    assert sampler.burn_in == math.ceil(10 * sampler.mixing.correlation_time)
    pilot = sampler.diagnostics
    assert sampler.status == Heuristic(
        f"coordinate hit-and-run, {sampler.burn_in} steps; pilot: 64 chains, split R-hat at most "
        f"{pilot.split_r_hat.max():.3f}, bulk ESS at least {pilot.bulk_ess.min():.0f}"
    )
    # The preparation is public, and draws follow the generator.
    first, second = (
        s.draw(np.random.default_rng(7), 5) for s in (sampler, ChainSampler(needle(1)))
    )
    np.testing.assert_array_equal(first, second)


@pytest.mark.statistical
def test_draws_of_one_call_are_independent():
    """Squared norms of two draws are uncorrelated, within a group of chains and across groups.

    The chains of a group of 256 draws run together. The group of the next 256 draws must not repeat
    the numbers of this group.
    """
    draws = 24 * LOCKSTEP
    points = ChainSampler(SlabBody(np.eye(3), np.ones(3))).draw(np.random.default_rng(10), draws)
    values = (points**2).sum(axis=1) - 1  # E ||x||^2 = 3 / 3
    mean_agrees(values[:-1:2] * values[1::2], 0.0)
    groups = values.reshape(12, 2, LOCKSTEP)
    mean_agrees((groups[:, 0] * groups[:, 1]).ravel(), 0.0)


with warnings.catch_warnings():
    # arviz announces its next version on import.
    warnings.simplefilter("ignore")
    import arviz


def autoregressive(chains: int, draws: int, phi: float, seed: int) -> FloatArray:
    """Coordinates 0 to 4 of x_t = phi x_(t-1) + e_t. One chain is shifted in 3, one scaled in 4."""
    noise = np.random.default_rng(seed).standard_normal((chains, draws, 5))
    values = noise.copy()
    for t in range(1, draws):
        values[:, t] = phi * values[:, t - 1] + noise[:, t]
    values[0, :, 3] += 1
    values[-1, :, 4] *= 3
    values[:, :, 2] = np.round(values[:, :, 2])  # rounding makes ties
    return values


@pytest.mark.parametrize("phi", [-0.9, -0.5, 0.0, 0.5, 0.95])
def test_agrees_with_arviz(phi):
    shapes = [(2, 4), (2, 5), (2, 6), (2, 7), (2, 8), (2, 9), (4, 10), (3, 11), (8, 50), (4, 333)]
    for chains, draws in [*shapes, (1, 100)]:
        values = autoregressive(chains, draws, phi, seed=chains * draws)
        columns = [values[:, :, k] for k in range(5)]
        np.testing.assert_allclose(bulk_ess(values), [arviz.ess(c) for c in columns], rtol=1e-10)
        if chains > 1:
            expected = [arviz.rhat(c) for c in columns]
            np.testing.assert_allclose(split_r_hat(values), expected, rtol=1e-12)


def test_chains_that_stand_still():
    stuck = np.tile(np.arange(3.0)[:, None, None], (1, 10, 2))
    stuck[:, :, 1] = 5.0
    r_hat = split_r_hat(stuck)
    assert r_hat[0] == np.inf
    assert np.isnan(r_hat[1])
    assert bulk_ess(stuck)[1] == 30
