"""Recursive noise: known values (JL-SPLIT), distributions, moments and density ratios."""

from __future__ import annotations

import numpy as np
import pytest

from geomdp.bodies import (
    Ball,
    Box,
    Ellipsoid,
    LinearImage,
    Product,
    Simplex,
    SimplexDifference,
    SlabBody,
)
from geomdp.geometry.sampling.samplers import ExactSampler
from geomdp.noise import KNormNoise, Noise, RecursiveNoise
from geomdp.noise.base import combined_status
from geomdp.noise.recursive import (
    Variant,
    best_stop,
    decompose,
    energy_of,
    principal_axes,
    stopped,
)
from geomdp.privacy import Approximate, Exact, Heuristic
from tests.stats import mean_agrees

POINT = Ellipsoid(np.zeros((2, 1)))
STEPS = np.array([1, 1 / 2, 1 / 4, 1 / 8])
DECAY = 2.0 ** -np.arange(16)
TURN = np.linalg.qr(np.random.default_rng(1).standard_normal((6, 6)))[0]


def stages(half_widths, variant):
    return decompose(Box.centred(half_widths), variant, exact=True)


@pytest.mark.parametrize(
    ("variant", "energies", "split", "value", "uniform"),
    [
        (Variant.PROJECTED, (0.78125, 1, 2), (0.28954, 0.31437, 0.39609), 32.1856, 34.03125),
        (Variant.INTRINSIC, (0.3125, 0.5, 2), (0.24837, 0.29050, 0.46113), 20.3962, 25.3125),
    ],
)
def test_box_of_four_sides(variant, energies, split, value, uniform) -> None:
    """JL-SPLIT: levels, split and energies of the full recursion, as computed by hand."""
    levels = stopped(stages(STEPS, variant))[-1]
    found = [level.energy.value for level in levels]
    np.testing.assert_allclose(found, energies, rtol=1e-14)
    noise = RecursiveNoise(levels, 1.0)
    np.testing.assert_allclose(noise.split, split, atol=5e-6)
    assert noise.split.sum() == pytest.approx(1.0, rel=1e-15)
    assert noise.second_moment().value == pytest.approx(value, abs=5e-5)
    assert len(levels) ** 2 * sum(found) == pytest.approx(uniform, rel=1e-14)
    # The best stop is the first: plain K-norm noise, with the energy (4 + 1)(4 + 2) E ||U||^2.
    assert len(best_stop(stages(STEPS, variant))) == 1
    assert energy_of(best_stop(stages(STEPS, variant))) == pytest.approx(13.28125, rel=1e-14)


@pytest.mark.parametrize(
    ("variant", "table"),
    [
        (Variant.PROJECTED, (136, 44.64, 27.92, 35.82, 56.91)),
        (Variant.INTRINSIC, (136, 43.05, 22.57, 23.06, 32.46)),
    ],
)
def test_stop_levels_of_sixteen_sides(variant, table) -> None:
    choices = stopped(stages(DECAY, variant))
    np.testing.assert_allclose([energy_of(levels) for levels in choices], table, atol=5e-3)
    assert len(best_stop(stages(DECAY, variant))) == 3


@pytest.mark.parametrize(
    ("variant", "full", "uniform"),
    [(Variant.PROJECTED, 88.364, 155.08), (Variant.INTRINSIC, 53.251, 85.44)],
)
def test_cube(variant, full, uniform) -> None:
    """On a cube with k = 16, the full recursion is worse than plain K-norm noise (JL-SPLIT)."""
    choices = stopped(stages(np.ones(16), variant))
    assert energy_of(choices[0]) ** 0.5 == pytest.approx(40.398, abs=5e-4)
    assert energy_of(choices[-1]) ** 0.5 == pytest.approx(full, abs=5e-4)
    total = sum(level.energy.value for level in choices[-1])
    assert len(choices[-1]) * total**0.5 == pytest.approx(uniform, abs=5e-3)
    assert [len(levels) for levels in choices] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("variant", Variant)
def test_the_split_is_the_best_one(variant) -> None:
    levels = stopped(stages(DECAY, variant))[2]
    noise = RecursiveNoise(levels, 0.7)
    energies = np.array([level.energy.value for level in levels])
    assert noise.second_moment().value == pytest.approx(energy_of(levels) / 0.49, rel=1e-13)
    rng = np.random.default_rng(0)
    others = 0.7 * rng.dirichlet(np.ones(3), 200)
    assert ((energies / others**2).sum(axis=1) >= noise.second_moment().value).all()


@pytest.mark.parametrize(
    "body",
    [
        Box.centred(DECAY[:6]),
        LinearImage(3 * TURN[:, :4], Box.centred(DECAY[:4])),
        LinearImage(TURN, Product([Ball(3, 1.0), Box.centred([0.1, 0.02, 0.03])])),
        Ellipsoid(TURN[:, :5] * DECAY[:5]),
        Box.centred([1.0, 0.0, 0.1, 0.01]),
        SimplexDifference(np.eye(4)),
    ],
    ids=["box", "image of a box", "turned product", "flat ellipsoid", "flat box", "simplex"],
)
@pytest.mark.parametrize("variant", Variant)
class TestExactBodies:
    def test_levels_are_orthogonal_and_span_the_body(self, body, variant) -> None:
        found = decompose(body, variant, exact=True)
        rank = body.affine_hull().dimension
        for levels in stopped(found):
            noise = RecursiveNoise(levels, 1.0)
            assert isinstance(noise, Noise)
            assert noise.sampler == Exact()
            basis = noise.basis
            np.testing.assert_allclose(basis.T @ basis, np.eye(rank), atol=1e-12)
            within = body.affine_hull().basis
            np.testing.assert_allclose(within @ (within.T @ basis), basis, atol=1e-12)
            # JL-L18: every level takes at least half of the remaining dimensions.
            left = rank
            for level in levels:
                assert 2 * level.dimension >= left
                left -= level.dimension

    @pytest.mark.statistical
    def test_moments_of_draws(self, body, variant) -> None:
        noise = RecursiveNoise(stopped(decompose(body, variant, exact=True))[-1], 0.7)
        draws = noise.sample(np.random.default_rng(2), 20_000)
        mean_agrees(draws[:, :, None] * draws[:, None, :], noise.covariance(), level=5e-7)
        mean_agrees(draws, np.zeros(body.dimension), level=5e-7)
        trace = float(np.trace(noise.covariance()))
        assert noise.second_moment().value == pytest.approx(trace, rel=1e-12)

    def test_stopping_at_once_is_the_k_norm(self, body, variant) -> None:
        plain = KNormNoise(body, 0.7, ExactSampler(body))
        first = RecursiveNoise(stopped(decompose(body, variant, exact=True))[0], 0.7)
        assert first.second_moment().value == pytest.approx(plain.second_moment().value, rel=1e-12)
        size = 1e-11 * np.trace(plain.covariance())
        np.testing.assert_allclose(first.covariance(), plain.covariance(), rtol=0, atol=size)
        z = first.sample(np.random.default_rng(3), 20)
        shift = body.sample_uniform(20, np.random.default_rng(4))
        found, expected = (noise.log_density_ratio(z, shift) for noise in (first, plain))
        np.testing.assert_allclose(found, expected, atol=1e-9)


def test_shadows_that_cannot_be_drawn_exactly_end_an_exact_recursion() -> None:
    """In dimension 5, the second stage needs a shadow on a plane, which has no exact sampler."""
    body = SimplexDifference(np.random.default_rng(0).standard_normal((6, 5)) * DECAY[:5])
    assert len(decompose(body, Variant.PROJECTED, exact=True)) == 1
    # In dimension 3, the second stage needs a segment, which has an exact sampler. `INTRINSIC` also
    # needs the shadow on the plane of the first stage, which has none.
    flat = SimplexDifference(np.random.default_rng(0).standard_normal((4, 3)) * DECAY[:3])
    assert len(decompose(flat, Variant.PROJECTED, exact=True)) == 2
    assert len(decompose(flat, Variant.INTRINSIC, exact=True)) == 1


def test_density_ratio_never_exceeds_the_budget_and_attains_it() -> None:
    noise = RecursiveNoise(stopped(stages(DECAY[:6], Variant.INTRINSIC))[-1], 0.7)
    rng = np.random.default_rng(6)
    corners = DECAY[:6] * rng.choice([-1.0, 1.0], (200, 6))
    for moves in (corners, corners * rng.random((200, 6))):
        ratios = noise.log_density_ratio(noise.sample(rng, 200), moves)
        assert np.abs(ratios).max() <= 0.7 * (1 + 1e-12)
        assert noise.log_density_ratio(-moves, moves).max() <= 0.7 * (1 + 1e-12)
    # A corner of the box has gauge 1 in the body of every level, so it uses the whole budget.
    np.testing.assert_allclose(noise.log_density_ratio(-corners, corners), 0.7, rtol=1e-12)


def test_what_has_no_noise_or_density_is_refused() -> None:
    projected = RecursiveNoise(stopped(stages(STEPS, Variant.PROJECTED))[-1], 1.0)
    zeros = np.zeros((1, 4))
    for message, call in (
        ("must not project", lambda: projected.log_density_ratio(zeros, zeros)),
        ("must not project", lambda: projected.log_density(zeros)),
        ("symmetric", lambda: decompose(Simplex(np.eye(3)), Variant.INTRINSIC, exact=True)),
        ("dimension", lambda: decompose(POINT, Variant.INTRINSIC, exact=True)),
        ("levels", lambda: RecursiveNoise((), 1.0)),
    ):
        with pytest.raises(ValueError, match=message):
            call()


@pytest.mark.statistical
def test_markov_chains_make_the_status_heuristic() -> None:
    """Hit-and-run samples the slab body K, and an outer slab body of its shadow on a plane."""
    body = SlabBody(np.vstack([np.eye(4), np.ones((1, 4))]), np.array([1, 0.3, 0.1, 0.03, 1.2]))
    found = decompose(body, Variant.PROJECTED, exact=False)
    levels = stopped(found)[-1]
    noise = RecursiveNoise(levels, 1.0)
    assert [level.dimension for level in levels] == [2, 1, 1]
    assert isinstance(noise.sampler, Heuristic)
    assert noise.second_moment().stderr > 0
    # The measured energy and the estimate differ by at most six standard errors (level 2e-9).
    squares = (noise.sample(np.random.default_rng(8), 2000) ** 2).sum(axis=1)
    spread = np.hypot(squares.std() / 2000**0.5, noise.second_moment().stderr)
    assert abs(squares.mean() - noise.second_moment().value) <= 6 * spread
    # The body of every stage contains the shadow of K on the subspace of this stage.
    u = np.random.default_rng(9).standard_normal((20, 4))
    for stage in found:
        directions = u @ stage.stop.basis
        heights = stage.stop.source.body.support(directions)
        assert (heights >= body.support(directions @ stage.stop.basis.T) * (1 - 1e-9)).all()
    with pytest.raises(ValueError, match="exact sampler"):
        decompose(body, Variant.PROJECTED, exact=True)


def test_status_of_several_samplers() -> None:
    """Distances in total variation add up (SAM-1), and one heuristic makes the result heuristic."""
    one, two = Approximate(0.01, "a proof"), Approximate(0.02, "another")
    assert combined_status([Exact(), Exact()]) == Exact()
    both = combined_status([one, Exact(), two])
    assert isinstance(both, Approximate)
    assert both.tv == pytest.approx(0.03)
    assert both.source == "a proof; another"
    assert combined_status([one, Heuristic("chain"), Heuristic("chain")]) == Heuristic("chain")


def test_principal_axes_keep_uncorrelated_coordinates_apart() -> None:
    """Principal axes mix correlated coordinates only, even if other variances are equal."""
    np.testing.assert_array_equal(np.abs(principal_axes(np.eye(4))), np.eye(4))
    moment = np.diag([1.0, 2.0, 2.0, 3.0])
    moment[0, 3] = moment[3, 0] = 0.5
    axes = principal_axes(moment)
    np.testing.assert_allclose(axes @ axes.T, np.eye(4), atol=1e-15)
    values = np.diag(axes @ moment @ axes.T)
    np.testing.assert_allclose(values, np.sort(np.linalg.eigvalsh(moment))[::-1], rtol=1e-14)
    assert (axes[1:3, [0, 3]] == 0).all()
