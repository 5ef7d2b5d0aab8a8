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
from geomdp.bodies.symmetrised import Shifted
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
    UniformSampler,
    interior_point,
    plain_walk,
    round_walk,
)
from geomdp.privacy import Exact, Heuristic
from tests.geometry.bodies import MembershipOnly
from tests.stats import LEVEL, binomial_agrees, ks_uniform, mean_agrees

#: A diagonal matrix of determinant 1 with entries from 10^-3 to 10^3.
STRETCH = np.diag(10.0 ** np.array([-3, -1, 1, 3]))
ROTATED_STRETCH = np.linalg.qr(np.random.default_rng(1).standard_normal((4, 4)))[0] @ STRETCH
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


def test_exact_where_the_body_has_a_sampler():
    body = Ball(3, 2.0)
    samples = sample_uniform(body, 7, rng=5)
    np.testing.assert_array_equal(samples.points, body.sample_uniform(7, np.random.default_rng(5)))
    assert samples.sampler == Exact()
    assert samples.diagnostics is None
    sampler = ExactSampler(body)
    assert sampler.status == Exact()
    assert sampler.draw(np.random.default_rng(0), 4).shape == (4, 3)
    with pytest.raises(MissingOracle, match="SlabBody has no exact sampler"):
        ExactSampler(needle(1.0))


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
    assert samples.diagnostics is not None
    assert samples.diagnostics.chains == 128
    assert samples.diagnostics.split_r_hat.shape == (DIMENSION,)
    assert samples.diagnostics.split_r_hat.max() < 1.1
    assert samples.diagnostics.bulk_ess.min() > 1000
    assert samples.points.shape == (4000, DIMENSION)


class SymmetricMembership(MembershipOnly):
    """A body that is declared symmetric, so that no interior point has to be found."""

    symmetric = True


@pytest.mark.statistical
def test_bodies_with_chords_alone():
    """Chords are found by bisection. For uniform x in the unit ball of R^3, ||x||^3 is uniform."""
    body = LinearImage(2 * np.eye(3), SymmetricMembership(Ball(3, 1.0)))
    points = ChainSampler(body).draw(np.random.default_rng(4), 500)
    ks_uniform((np.linalg.norm(points, axis=1) / 2) ** 3)


@pytest.mark.statistical
def test_lower_dimensional_polytopes():
    """The points of a square that lies in R^3 are uniform on the square."""
    corners = np.array(list(itertools.product([0.0, 1.0], repeat=2)))
    frame = np.linalg.qr(np.random.default_rng(5).standard_normal((3, 2)))[0]
    body = VPolytope(corners @ frame.T + 7)
    points = ChainSampler(body).draw(np.random.default_rng(6), 1500)
    inside = (points - 7) @ frame
    np.testing.assert_allclose(inside @ frame.T + 7, points, rtol=1e-12)
    for column in inside.T:
        ks_uniform(np.clip(column, 0, 1), LEVEL / 2)


def test_status_names_kernel_and_steps():
    sampler = ChainSampler(needle(1.0))
    assert sampler.burn_in == math.ceil(10 * sampler.mixing.correlation_time)
    pilot = sampler.diagnostics
    assert sampler.status == Heuristic(
        f"coordinate hit-and-run, {sampler.burn_in} steps; pilot: 64 chains, split R-hat at most "
        f"{pilot.split_r_hat.max():.3f}, bulk ESS at least {pilot.bulk_ess.min():.0f}"
    )
    assert isinstance(sampler, UniformSampler)
    assert sampler.diagnostics.split_r_hat.max() < 1.1


def test_preparation_is_public_and_draws_follow_the_generator():
    first, second = ChainSampler(needle(1.0)), ChainSampler(needle(1.0))
    draws = [s.draw(np.random.default_rng(7), 5) for s in (first, second)]
    np.testing.assert_array_equal(draws[0], draws[1])
    assert not np.array_equal(draws[0], first.draw(np.random.default_rng(8), 5))
    np.testing.assert_array_equal(
        sample_uniform(needle(1.0), 50, rng=9).points, sample_uniform(needle(1.0), 50, rng=9).points
    )


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


def test_few_points_and_bad_numbers():
    samples = sample_uniform(needle(1.0), 1, rng=0)
    assert samples.points.shape == (1, DIMENSION)
    assert samples.diagnostics is not None
    for call in (
        lambda: sample_uniform(needle(1.0), 0),
        lambda: ChainSampler(needle(1.0)).draw(np.random.default_rng(0), 0),
    ):
        with pytest.raises(ValueError, match="n must be a whole number, at least 1"):
            call()


def test_unbounded_sets_are_refused():
    strip = SlabBody(np.array([[1.0, 0.0]]), np.ones(1))
    with pytest.raises(ValueError, match="bounded"):
        ChainSampler(strip)
    with pytest.raises(ValueError, match="bounded"):
        sample_uniform(HPolytope(np.eye(2), np.ones(2)), 5)


def test_samples_say_how_they_were_drawn():
    assert repr(sample_uniform(Ball(3), 5, rng=0)) == "Samples(5 points in dimension 3; exact)"
    chained = sample_uniform(SlabBody(np.eye(2), np.ones(2)), 600, rng=0)
    assert repr(chained).startswith("Samples(600 points in dimension 2; heuristic (coordinate hit")
    assert repr(chained.diagnostics) == f"Diagnostics({chained.diagnostics})"


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
@pytest.mark.parametrize(
    ("chains", "draws"),
    [(2, 4), (2, 5), (2, 6), (2, 7), (2, 8), (2, 9), (4, 10), (3, 11), (8, 50), (4, 333)],
)
def test_agrees_with_arviz(chains, draws, phi):
    values = autoregressive(chains, draws, phi, seed=chains * draws)
    columns = [values[:, :, k] for k in range(5)]
    np.testing.assert_allclose(split_r_hat(values), [arviz.rhat(c) for c in columns], rtol=1e-12)
    np.testing.assert_allclose(bulk_ess(values), [arviz.ess(c) for c in columns], rtol=1e-10)


def test_one_chain_has_an_effective_size():
    values = autoregressive(1, 100, 0.5, seed=1)
    expected = [arviz.ess(values[:, :, k]) for k in range(5)]
    np.testing.assert_allclose(bulk_ess(values), expected, rtol=1e-10)


def test_independent_draws_pass_and_faults_show():
    rng = np.random.default_rng(2)
    good = rng.standard_normal((8, 500, 1))
    shifted, spread, drifting = good.copy(), good.copy(), good.copy()
    shifted[0] += 1
    spread[0] *= 4
    drifting += np.linspace(0, 2, 500)[:, None]
    assert split_r_hat(good)[0] < 1.01
    for bad in (shifted, spread, drifting):
        assert split_r_hat(bad)[0] > 1.04
    assert bulk_ess(good)[0] > 3000
    assert bulk_ess(drifting)[0] < 500


def test_chains_that_stand_still():
    stuck = np.tile(np.arange(3.0)[:, None, None], (1, 10, 2))
    stuck[:, :, 1] = 5.0
    r_hat = split_r_hat(stuck)
    assert r_hat[0] == np.inf
    assert np.isnan(r_hat[1])
    assert bulk_ess(stuck)[1] == 30


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((1, 10, 2), "at least 2 chains of at least 4 draws, got 1 chains of 10"),
        ((3, 3, 2), "at least 2 chains of at least 4 draws, got 3 chains of 3"),
        ((3, 10), "draws must have 3 axes"),
    ],
)
def test_too_little_to_judge(shape, message):
    with pytest.raises(ValueError, match=message):
        split_r_hat(np.zeros(shape))


def test_draws_must_be_finite():
    values = autoregressive(2, 10, 0.0, seed=4)
    values[1, 2, 3] = np.nan
    with pytest.raises(ValueError, match="draws must be finite"):
        bulk_ess(values)
