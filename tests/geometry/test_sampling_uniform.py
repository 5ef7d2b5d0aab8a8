"""Uniform samplers: status, exactness, independence of draws, distribution of chain ends."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from geomdp.bodies import Ball, HPolytope, LinearImage, MissingOracle, SlabBody, VPolytope
from geomdp.geometry.sampling import ExactSampler, sample_uniform
from geomdp.geometry.sampling.samplers import LOCKSTEP, ChainSampler, UniformSampler
from geomdp.privacy import Exact, Heuristic
from tests.geometry.bodies import MembershipOnly
from tests.stats import LEVEL, ks_uniform, mean_agrees

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
    points = ChainSampler(body).draw(np.random.default_rng(4), 1500)
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
