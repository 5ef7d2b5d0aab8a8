"""The covariance of records in the unit ball: the lift, privacy, errors and exact releases."""

from __future__ import annotations

import math
import os
from fractions import Fraction

import numpy as np
import pytest

from geomdp._numerics.linalg import svec, unsvec
from geomdp.bounds import upper
from geomdp.mechanisms import Ball, Cone, Covariance, Gaussian
from geomdp.mechanisms.covariance import corner_of
from geomdp.privacy import ZCDP, ApproxDP, PureDP
from geomdp.workloads import Means
from geomdp.workloads import SecondMoment as Workload
from tests.mechanisms.test_second_moment import datasets
from tests.noise.exact.reference import seeded
from tests.stats import LEVEL, ks_same, mean_agrees, mean_at_most

PURE, CONCENTRATED, APPROXIMATE = PureDP(1.0), ZCDP(0.5), ApproxDP(1.0, 1e-6)
N = 20


def lifted_sum(mechanism, records):
    """svec of the sum of y y^T over the lifted records y."""
    lifted = np.vstack(list(mechanism._lifted(records)))
    return svec(lifted.T @ lifted)


# The lift


def test_corners_of_the_sheet():
    for d, square in [(2, 0.46), (5, 0.39), (10, 0.34), (30, 0.26), (100, 0.19)]:
        c = corner_of(d)
        assert c**2 == pytest.approx(square, abs=0.006)
        assert (c * 1024).is_integer()
        assert Fraction(1 + c**2) == 1 + Fraction(c) ** 2

        def bound(c, d=d):
            return (1 + c**2) * (math.sqrt(d + 1) + 2 / c)

        assert bound(c) <= min(bound(c - 0.01), bound(c + 0.01))


@pytest.mark.parametrize(("d", "ratio"), [(2, 0.91), (5, 0.82), (10, 0.78), (30, 0.73)])
def test_a_joint_release_has_the_smaller_bound_of_the_sheet(d, ratio):
    """a + 2 b, from the noise alone, over that of two releases with half of the budget each."""

    def separate(second, mean, part):
        a = second(Workload(d), n=1, privacy=part).predicted_rmse.value
        b = mean(Means(d), n=1, privacy=part).predicted_rmse.value
        return a * math.sqrt(d * (d + 1) / 2) + 2 * b * math.sqrt(d)

    def joint(privacy):
        block, mean, _ = Covariance(Workload(d), n=1, privacy=privacy)._sizes
        return math.sqrt(block.energy) + 2 * math.sqrt(mean)

    assert joint(PURE) <= ratio * separate(Cone, Ball, PureDP(0.5))
    assert joint(CONCENTRATED) <= 0.885 * separate(Gaussian, Gaussian, ZCDP(0.25))


# Privacy


@pytest.mark.parametrize("d", [1, 2, 5, 10])
def test_noise_covers_every_replaced_record(d):
    """The loss is at most epsilon or rho for every pair of records, and attained from d = 2 on.

    Wishart noise of rate r loses r ||D||_* for a change D, spherical noise ||D||_F^2 / (2 s^2). The
    sums of lifted records change most if the two lifted records are orthogonal.
    """
    rng = np.random.default_rng(d)
    points = rng.standard_normal((200, d))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    points[100:] *= rng.random((100, 1))
    opposite = np.zeros((2, d))
    c2 = corner_of(d) ** 2
    opposite[0, 0], opposite[1, 0] = 1.0, -c2
    if d > 1:
        opposite[1, 1] = math.sqrt(1 - c2**2)
    for privacy in (PURE, CONCENTRATED):
        mechanism = Covariance(Workload(d), n=N, privacy=privacy)
        noise, largest = mechanism.inner.noise, 0.0
        for pair in [opposite, *points.reshape(-1, 2, d)]:
            first, second = (lifted_sum(mechanism, row[None]) for row in pair)
            values = np.abs(np.linalg.eigvalsh(unsvec(first - second)))
            if privacy is PURE:
                loss = noise.rate / mechanism._factor * values.sum()
            else:
                loss = (values**2).sum() / (2 * (mechanism._factor * noise.scale) ** 2) / 0.5
            largest = max(largest, loss)
        assert largest <= 1 + 1e-9
        if d > 1:
            assert largest >= 1 - 1e-6


# The noise


def expected_sizes(d, privacy):
    """E ||Z||_F^2, E (tr Z)^2, E ||w||^2, E ||w||^4 for the noise on moments and mean, n = 1."""
    c2, v = corner_of(d) ** 2, d + 2
    if privacy is PURE:
        r = 0.5 / (1 + c2)
        mean = d * v / (2 * r**2 * c2)
        energy = d * (d + 1) * v / 2 - d * v**2 / (d * v + 2)
        fourth = mean**2 * (1 + 2 / d) * (1 + 1 / v)
        return energy / r**2, 2 * d * v / (d * v + 2) / r**2, mean, fourth
    variance = 2 * (1 + c2) ** 2  # (1 + c^2)^2 2 / (2 rho)
    mean = d * variance / (2 * c2)
    return d * (d + 1) / 2 * variance, d * variance, mean, mean**2 * (1 + 2 / d)


@pytest.mark.statistical
@pytest.mark.parametrize("privacy", [PURE, CONCENTRATED], ids=str)
@pytest.mark.parametrize("d", [1, 2, 4])
def test_noise_on_moments_and_mean_has_the_stated_size(d, privacy):
    mechanism = Covariance(Workload(d), n=1, privacy=privacy)
    noisy = mechanism.noise_draws(np.random.default_rng(d), 20_000)
    w, Z = noisy[:, :d], unsvec(noisy[:, d:])
    mean_agrees(noisy, np.zeros(noisy.shape[1]))
    energy, trace, mean, fourth = expected_sizes(d, privacy)
    block, *stated = mechanism._sizes
    np.testing.assert_allclose([block.energy, block.trace], [energy, trace], rtol=1e-9)
    np.testing.assert_allclose(stated, [mean, fourth], rtol=1e-9)
    squares = (w**2).sum(axis=1)
    mean_agrees((Z**2).sum(axis=(1, 2)), energy)
    mean_agrees(Z.trace(axis1=1, axis2=2) ** 2, trace)
    mean_agrees(squares, mean)
    mean_agrees(squares**2, fourth)
    mean_at_most(np.maximum(np.linalg.eigvalsh(Z)[:, -1], 0), block.support)
    # Noise on the mean is uncorrelated with noise on moments, and so are its coordinates.
    for i in range(d):
        mean_agrees(w[:, i] * Z[:, 0, 0], 0.0)
    if d > 1:
        mean_agrees(w[:, 0] * w[:, 1], 0.0)
        mean_agrees(Z[:, 0, 0] * Z[:, 0, 1], 0.0)


@pytest.mark.statistical
@pytest.mark.parametrize("privacy", [PURE, CONCENTRATED, APPROXIMATE], ids=str)
def test_exact_noise_has_the_law_of_seeded_noise(privacy, monkeypatch):
    monkeypatch.setattr(os, "urandom", seeded(6))
    mechanism = Covariance(Workload(2), n=N, privacy=privacy)
    records = Workload(2).universe.sample(N, 0)
    exact = np.array([mechanism.release(records).noisy for _ in range(1200)])
    rng = np.random.default_rng(8)
    fast = np.array([mechanism.release(records, rng=rng).noisy for _ in range(3000)])
    for j in range(exact.shape[1]):
        ks_same(exact[:, j], fast[:, j], level=LEVEL / exact.shape[1])
    # The same size, which a factor of 1 + c^2 changes, and uncorrelated noise on the mean.
    truth = np.concatenate([records.mean(axis=0), svec(records.T @ records / N)])
    noise, (block, mean, _) = N * (exact - truth), mechanism._sizes
    mean_agrees((noise[:, :2] ** 2).sum(axis=1), mean)
    mean_agrees((noise[:, 2:] ** 2).sum(axis=1), block.energy)
    mean_agrees(noise[:, 0] * noise[:, 1], 0.0)


# Errors


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("data", "privacy"),
    [(data, PURE) for data in ("vertex", "axes", "zero", "apart")]
    + [("mix", CONCENTRATED), ("vertex", APPROXIMATE)],
    ids=str,
)
def test_bounds_hold_for_every_data_set(data, privacy):
    d = 4
    for n in (1, N, 50 * N):
        mechanism = Covariance(Workload(d), n=n, privacy=privacy)
        apart = np.where(np.arange(n)[:, None] % 2, -1, 1) * np.eye(d)[0]
        records = (datasets(d, n) | {"apart": apart})[data]
        truth = svec(np.cov(records.T, bias=True))
        total = lifted_sum(mechanism, records)
        rng = np.random.default_rng([n, *map(ord, data)])
        answers = np.array([mechanism.privatise(total, rng) for _ in range(1000)])
        squares = np.mean((answers - truth) ** 2, axis=1)
        mean_at_most(squares, mechanism.predicted_rmse.value**2)


@pytest.mark.parametrize("rng", [None, 0])
def test_without_noise_the_covariance_is_exact(rng):
    """At epsilon = 1e9 the noise is far below 1e-6, and the rows are read in several chunks."""
    records = np.random.default_rng(5).uniform((-0.5, 0.1, 0.0), (0.0, 0.5, 0.1), (50, 3))
    mechanism = Covariance(Workload(3), n=50, privacy=PureDP(1e9))
    moments = [*records.mean(axis=0), *svec(records.T @ records / 50)]
    for given in (records, iter(np.array_split(records, 4))):
        release = mechanism.release(given, rng)
        np.testing.assert_allclose(release.answers, svec(np.cov(records.T, bias=True)), atol=1e-6)
        np.testing.assert_allclose(release.noisy, moments, atol=1e-6)


@pytest.mark.parametrize("d", [1, 2, 5, 10])
def test_explicit_bound(d):
    """For many records, the bound is that of the noise on moments, mean, and its square."""
    n = 10**5
    mechanism = Covariance(Workload(d), n=7, privacy=PURE).with_n(n)
    energy, trace, mean, fourth = expected_sizes(d, PURE)
    square = energy + (2 + 4 / d - 2 / d**2) * mean + (1 - 1 / d) * trace / 2
    expected = math.sqrt(square) / n + math.sqrt((2 - 1 / d) * fourth) / n**2
    assert mechanism.population_bound == pytest.approx(3 / math.sqrt(n) + expected, rel=1e-9)
    per_answer = expected / math.sqrt(d * (d + 1) / 2)
    assert mechanism.predicted_rmse.value == pytest.approx(per_answer, rel=1e-9)
    assert mechanism.population_bound <= upper.covariance_error(d, n=n, epsilon=1.0)
    assert "X-JOINT" in mechanism.predicted_rmse.source
    assert mechanism.with_n(1).predicted_rmse.source == "diameter of the body"
    with pytest.raises(ValueError, match="n must be"):
        mechanism.with_n(0)


def test_few_records_of_many_columns_are_bounded_by_the_largest_eigenvalue():
    d, n = 100, 1500
    predicted = Covariance(Workload(d), n=n, privacy=PURE).predicted_rmse
    assert "eigenvalue" in predicted.source
    energy, _, mean, _ = expected_sizes(d, PURE)
    assert predicted.value * math.sqrt(d * (d + 1) / 2) <= 0.9 * math.sqrt(energy + 2 * mean) / n


@pytest.mark.statistical
def test_population_bound_holds():
    """Independent uniform records on the sphere have mean 0 and covariance I / d."""
    d, n = 3, 2000
    mechanism = Covariance(Workload(d), n=n, privacy=PURE)
    rng = np.random.default_rng(4)
    errors = np.empty(1000)
    for i in range(1000):
        normal = rng.standard_normal((n, d))
        records = normal / np.linalg.norm(normal, axis=1, keepdims=True)
        found = mechanism.privatise(lifted_sum(mechanism, records), rng)
        errors[i] = np.linalg.norm(found - svec(np.eye(d)) / d)
    mean_at_most(errors, mechanism.population_bound)
