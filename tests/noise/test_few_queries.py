"""Geometric, staircase and lattice box noise agree with sums and integrals of their densities."""

from __future__ import annotations

import functools
import itertools
import math

import numpy as np
import pytest

from geomdp.noise import LaplaceNoise, Noise, half_widths
from geomdp.noise.few_queries import GeometricNoise, LatticeBoxNoise, StaircaseNoise
from geomdp.noise.rounding import Rounded
from geomdp.noise.tails import expected_maximum
from tests.noise.densities import log_density
from tests.stats import mean_agrees

#: Noises on lattices, each with a number. Multiples of the units that are above this number give
#: less than 1e-12 of the variance.
LATTICE = {
    "geometric": (GeometricNoise([1.0], 2.0), 200),
    "two units": (GeometricNoise([1.0, 3.0], 2.5), 120),
    "rarely above 0": (GeometricNoise([4.0], 1.3), 20),
    "box": (LatticeBoxNoise([1.0, 1.0], [1, 1], 1.5), 60),
    "long box": (LatticeBoxNoise([1.0, 2.0], [1, 3], 1.5), 90),
    "box with a constant": (LatticeBoxNoise([1.0, 1.0], [2, 0], 1.0), 120),
    "one coordinate": (LatticeBoxNoise([2.0], [5], 2.0), 200),
}
STAIRCASES = {epsilon: StaircaseNoise(2.0, epsilon) for epsilon in (0.1, 1.0, 3.0, 10.0)}
NOISES: dict[str, Noise] = {name: noise for name, (noise, _) in LATTICE.items()} | {
    f"staircase {epsilon}": noise for epsilon, noise in STAIRCASES.items()
}
#: Numbers of draws in float64 and of exact draws. An exact draw takes a tenth of a millisecond.
DRAWS, EXACT_DRAWS = 40_000, 4000


def lattice_points(noise, reach):
    """All lattice points (b, m) whose multiples of the units are at most `reach` in modulus."""
    steps = np.arange(-reach, reach + 1.0)
    grid = np.array(list(itertools.product(steps, repeat=noise.dimension)))
    return grid * noise.units


@functools.cache
def drawn(noise, exact):
    """Draws (b, m) from a fixed seed, in float64 or correctly rounded to a grid."""
    rng = np.random.default_rng(7)
    if not exact:
        return noise.sample(rng, DRAWS)
    rounded = Rounded.of(noise, 12)
    return np.array([rounded.draw(rng.bytes) for _ in range(EXACT_DRAWS)]) * 2.0**-12


@pytest.mark.parametrize("name", LATTICE)
def test_probabilities_add_to_one_and_give_the_variances(name):
    noise, reach = LATTICE[name]
    points = lattice_points(noise, reach)
    weights = np.exp(log_density(noise, points))
    np.testing.assert_allclose(weights.sum(), 1.0, rtol=1e-9)
    np.testing.assert_allclose(weights @ points**2, noise.variances(), rtol=1e-9)
    np.testing.assert_allclose(noise.second_moment().value, noise.variances().sum(), rtol=1e-12)
    np.testing.assert_array_equal(noise.covariance(), np.diag(noise.variances()))
    sizes = weights @ np.abs(points)
    assert (sizes <= noise.mean_sizes() * (1 + 1e-9)).all()
    lengths = weights @ np.linalg.norm(points, axis=1)
    assert lengths <= noise.mean_length() * (1 + 1e-9)
    largest = weights @ np.abs(points).max(axis=1)
    assert largest <= expected_maximum(noise) * (1 + 1e-9)
    if isinstance(noise, GeometricNoise) and noise.dimension == 1:  # then these are exact
        exact = [noise.mean_sizes()[0], noise.mean_length(), expected_maximum(noise)]
        np.testing.assert_allclose(exact, sizes[0])


@pytest.mark.parametrize("beta", [0.5, 0.05, 1e-3])
def test_half_widths_of_geometric_noise_are_the_least(beta):
    noise = GeometricNoise([1.0, 3.0, 9.0], 2.5)
    widths = half_widths(noise, 1 - beta)
    for unit, width in zip(noise.units, widths, strict=True):
        one = GeometricNoise([unit], 2.5)
        points = lattice_points(one, 400)
        weights = np.exp(log_density(one, points))
        outside = np.abs(points[:, 0])
        assert weights[outside > width].sum() <= beta * (1 + 1e-9)
        assert width == 0 or weights[outside > width - unit].sum() > beta


@pytest.mark.statistical
@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("name", NOISES)
def test_draws_have_the_variances_and_independent_signs(name, exact):
    noise = NOISES[name]
    draws = drawn(noise, exact)
    assert draws.shape[1] == noise.dimension
    for column, variance in zip(draws.T, noise.variances(), strict=True):
        if variance == 0:
            assert not column.any()
            continue
        # At epsilon = 10, rare large draws give much of the variance. Squares are cut off at 50
        # variances, so that their mean is close to normal.
        mean_agrees(np.minimum(column**2, 50 * variance), cut_moments(noise)[float(variance)])
    if noise.dimension == 2 and noise.variances().all():
        mean_agrees(draws[:, 0] * draws[:, 1], 0.0)


def edges_of(noise):
    """Where the density of staircase noise steps down, from 0 to where it is negligible."""
    steps = np.arange(80 / noise.epsilon + 2)
    return noise.width * np.add.outer(steps, [0, noise.share]).ravel()


def heights(noise, edges):
    """The density of |Z| between the edges."""
    return 2 * np.exp(log_density(noise, (edges[1:, None] + edges[:-1, None]) / 2))


def cut_moments(noise):
    """E min(Z_i^2, 50 Var Z_i) of the coordinates Z_i, from the density; the keys are Var Z_i."""
    if isinstance(noise, StaircaseNoise):
        variance = float(noise.variances()[0])
        edges = np.sort(np.append(edges_of(noise), math.sqrt(50 * variance)))
        cut = np.minimum(edges, math.sqrt(50 * variance))
        parts = np.diff(cut**3) / 3 + 50 * variance * np.diff(edges - cut)
        return {variance: float(heights(noise, edges) @ parts)}
    points = lattice_points(noise, dict(LATTICE.values())[noise])
    weights = np.exp(log_density(noise, points))
    return {
        float(v): float(weights @ np.minimum(points[:, i] ** 2, 50 * v))
        for i, v in enumerate(noise.variances())
    }


@pytest.mark.statistical
@pytest.mark.parametrize("name", LATTICE)
def test_exact_draws_have_the_probabilities_of_the_lattice(name):
    """The frequencies of the most likely points: at most ten, each with over 40 expected draws."""
    noise, reach = LATTICE[name]
    points = lattice_points(noise, reach)
    weights = np.exp(log_density(noise, points))
    first = [place for place in np.argsort(-weights)[:10] if weights[place] > 0.01]
    assert first
    draws = drawn(noise, exact=True)
    for place in first:
        hits = (draws == points[place]).all(axis=1).astype(float)
        mean_agrees(hits, weights[place])


@pytest.mark.parametrize("epsilon", STAIRCASES)
def test_the_share_of_a_step_has_the_least_variance(epsilon):
    noise, b = STAIRCASES[epsilon], math.exp(-epsilon)
    least = ((b * (1 + b) / 2) ** (2 / 3) + b) / (1 - b) ** 2  # Geng and Viswanath
    np.testing.assert_allclose(noise.variances()[0], 4 * least, rtol=1e-9)
    assert noise.variances()[0] < LaplaceNoise(1, 2.0 / epsilon).variances()[0]


@pytest.mark.parametrize("epsilon", STAIRCASES)
def test_moments_of_staircase_noise_are_exact(epsilon):
    noise = STAIRCASES[epsilon]
    edges = edges_of(noise)
    found = [heights(noise, edges) @ np.diff(edges**k) / k for k in (1, 2, 3)]
    expected = [1.0, noise.mean_length(), noise.variances()[0]]
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("epsilon", STAIRCASES)
def test_a_shift_by_the_width_costs_epsilon_and_no_more(epsilon):
    noise = STAIRCASES[epsilon]
    points, shifts = np.meshgrid(np.linspace(-9, 9, 1201), np.linspace(-2, 2, 201))
    z, s = points.reshape(-1, 1), shifts.reshape(-1, 1)
    losses = log_density(noise, z) - log_density(noise, z - s)
    np.testing.assert_allclose(np.abs(losses).max(), epsilon, rtol=1e-12)
    np.testing.assert_allclose(noise.log_density_ratio(z, s), losses, rtol=1e-9, atol=1e-9)
    further = noise.log_density_ratio(np.array([[0.0]]), np.array([[2 * noise.width * 1.001]]))
    assert further[0] >= 2 * epsilon


@pytest.mark.parametrize(
    "noise",
    [
        StaircaseNoise(3.0, 1e-9),
        StaircaseNoise(3.0, 512.0),
        GeometricNoise([1.0], 1e13),
        GeometricNoise([1.0], 1 / 128),
        LatticeBoxNoise([1.0], [1], 1e-12),
        LatticeBoxNoise([1.0], [1], 512.0),
    ],
)
def test_extreme_parameters_have_finite_moments_and_draws(noise):
    assert 0 < noise.variances()[0] < math.inf
    assert np.isfinite(noise.sample(np.random.default_rng(0), 10)).all()
    assert len(Rounded.of(noise, 0).draw()) == 1


def test_small_epsilon_gives_the_variance_of_continuous_noise():
    laplace = LaplaceNoise(1, 1e6).variances()[0]
    np.testing.assert_allclose(GeometricNoise([1.0], 1e6).variances()[0], laplace, rtol=1e-9)
    np.testing.assert_allclose(StaircaseNoise(1.0, 1e-6).variances()[0], laplace, rtol=1e-9)
    for epsilon in (1e-6, 1e-14, 2e-16, 1.2e-16, 1e-17, 1e-300):
        assert 0.5 - epsilon - 1e-15 <= StaircaseNoise(1.0, epsilon).share <= 0.5
    # K-norm noise of the cube [-1, 1]^m has the variance (m + 1)(m + 2) / (3 epsilon^2) in each
    # coordinate (JL-KN).
    box = LatticeBoxNoise([1.0] * 3, [1] * 3, 1e-4).variances()
    np.testing.assert_allclose(box, 4 * 5 / 3 * 1e8, rtol=1e-3)


@pytest.mark.parametrize(
    ("noise", "shift"),
    [
        (GeometricNoise([2.0, 1.0], 2.0), [1.0, 1.0]),
        (LatticeBoxNoise([3.0, 1.0], [1, 1], 1.0), [1.0, 0.0]),
        (LatticeBoxNoise([1.0, 1.0], [2, 0], 1.0), [0.0, 7.0]),
        (GeometricNoise([2.0**30 - 1, 1.0], 1e9), [1.0, 0.0]),
    ],
)
def test_a_shift_outside_the_lattice_has_an_infinite_loss(noise, shift):
    shifts = np.array([shift] * 3)
    points = np.array([[0.0, 0.0], shift, [0.5, 0.5]])
    ratios = noise.log_density_ratio(points, shifts)
    np.testing.assert_array_equal(ratios, [np.inf, -np.inf, np.nan])
    # Rounding errors do not leave the lattice.
    tenths = GeometricNoise([0.1], 1.0)
    shifts = np.array([[0.1], [0.3], [0.7]])
    points = shifts + tenths.sample(np.random.default_rng(0), 3)
    assert np.isfinite(tenths.log_density_ratio(points, shifts)).all()


#: For each class and word of the message, arguments that are refused.
REFUSED = [
    (GeometricNoise, "units", [([], 1.0), ([1.0, 0.0], 1.0), ([math.nan], 1.0), ([[1.0]], 1.0)]),
    (GeometricNoise, "scale", [([1.0], 0.0), ([1.0], math.inf)]),
    (StaircaseNoise, "width", [(0.0, 1.0)]),
    (StaircaseNoise, "epsilon", [(1.0, -1.0)]),
    (StaircaseNoise, "at most 512, got 513", [(1.0, 513.0)]),
    (LatticeBoxNoise, "counts", [([1.0], counts, 1.0) for counts in ([1, 1], [0], [1.5], [-1])]),
    (LatticeBoxNoise, "1 to 64", [([-1.0], [1], 1.0), ([1.0] * 65, [1] * 65, 1.0)]),
    (LatticeBoxNoise, "at most 512", [([1.0], [1], 600.0)]),
]


@pytest.mark.parametrize(("kind", "message", "rows"), REFUSED)
def test_bad_parameters_are_refused(kind, message, rows):
    for arguments in rows:
        with pytest.raises(ValueError, match=message):
            kind(*arguments)
