"""Projections of noisy moments are nonexpansive and lower the error in the norm of the noise."""

from __future__ import annotations

import numpy as np
import pytest

from geomdp.mechanisms import MomentProjection

SIZE, N = 10, 200


def skewed_moments(rng, size, dimension):
    """Moments of N records from a skewed distribution; the records are not points of the grid."""
    points = 2 * rng.beta(2, 6, (N, dimension)) - 1
    waves = np.cos(np.arccos(points)[:, :, None] * np.arange(size))
    if dimension == 1:
        return waves[:, 0].mean(axis=0)
    return np.einsum("na,nb->ab", waves[:, 0], waves[:, 1]) / N


def noisy(rng, truth, deviations):
    return truth + deviations * rng.laplace(scale=2**-0.5, size=truth.shape)


def deviations_1d():
    deviations = 0.3 * np.arange(SIZE) ** 0.5
    deviations[0] = 0
    return deviations


PROJECTIONS = {
    "semidefinite": lambda: (MomentProjection.semidefinite(deviations_1d()), deviations_1d()),
    "grid": lambda: (MomentProjection.on_grid(deviations_1d(), 100), deviations_1d()),
    "grid in two variables": lambda: (
        MomentProjection.on_grid(np.full((4, 4), 0.3), 16),
        np.full((4, 4), 0.3) * (np.arange(16).reshape(4, 4) > 0),
    ),
}


def weighted(difference, deviations):
    return np.linalg.norm(difference.ravel()[1:] / deviations.ravel()[1:])


@pytest.mark.parametrize("name", PROJECTIONS)
def test_nonexpansive_and_never_worse_in_the_norm_of_the_noise(name):
    projection, deviations = PROJECTIONS[name]()
    rng = np.random.default_rng(0)
    truth = skewed_moments(rng, len(deviations), deviations.ndim)
    before, after = [], []
    for _ in range(6):
        first, second = noisy(rng, truth, deviations), noisy(rng, truth, deviations)
        nearest = projection(first)
        assert nearest.flat[0] == 1
        shrunk = weighted(nearest - projection(second), deviations)
        assert shrunk <= weighted(first - second, deviations) * (1 + 1e-6)
        before.append(weighted(first - truth, deviations))
        after.append(weighted(nearest - truth, deviations))
        # In this norm, the true moments are within 1e-2 of moments of a distribution on the grid.
        assert after[-1] <= before[-1] + 2e-2
    assert np.mean(after) < 0.7 * np.mean(before)


@pytest.mark.parametrize("name", ["semidefinite", "grid"])
def test_true_moments_stay(name):
    projection = PROJECTIONS[name]()[0]
    angles = np.pi * np.array([3, 40, 77]) / 99
    truth = np.cos(np.outer(angles, np.arange(SIZE))).mean(axis=0)
    np.testing.assert_allclose(projection(truth), truth, atol=1e-5)
    again = projection(projection(truth + 0.3))
    np.testing.assert_allclose(again, projection(truth + 0.3), atol=1e-4)


def test_fine_grid_and_semidefinite_program_agree():
    deviations = deviations_1d()
    rng = np.random.default_rng(3)
    target = noisy(rng, skewed_moments(rng, SIZE, 1), deviations)
    exact = MomentProjection.semidefinite(deviations)(target)
    fine = MomentProjection.on_grid(deviations, 600)(target)
    np.testing.assert_allclose(fine, exact, atol=5e-4)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: MomentProjection.semidefinite(np.ones((3, 3))), r"must have shape \(t,\)"),
        (lambda: MomentProjection.semidefinite([0.0, 1.0, 0.0]), "must be above 0 for every"),
        (lambda: MomentProjection.on_grid([0.0], 5), "must be above 0 for every"),
        (lambda: MomentProjection.on_grid([0.0, 1.0], 5)([1.0, 0.2, 0.1]), r"shape \(2,\)"),
        (lambda: MomentProjection.on_grid([0.0, 1.0], 5)([1.0, np.nan]), "noisy must be finite"),
    ],
)
def test_errors(call, message):
    with pytest.raises(ValueError, match=message):
        call()
