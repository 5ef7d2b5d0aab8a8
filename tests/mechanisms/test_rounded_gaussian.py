"""Unseeded Gaussian releases have proved scales and correctly rounded noise in all coordinates."""

from __future__ import annotations

import math
import os
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from mpmath import mpf

from geomdp.mechanisms import Fitted, Gaussian, Projected, Shrunk
from geomdp.mechanisms.base import quotients, whole_square
from geomdp.noise.gaussian import gaussian_delta_ball, isotropic, proved_gaussian_scale
from geomdp.noise.rounding import Numbers, Rounded
from geomdp.privacy import ZCDP, Adjacency, ApproxDP
from geomdp.privacy.definitions import gaussian_scale
from geomdp.privacy.guarantees import rounded_arithmetic
from geomdp.workloads import Explicit, Histogram, Marginals, MarginalTables, Prefixes
from tests.noise.exact.reference import REFERENCE_BITS, Reference, nearest, seeded
from tests.stats import LEVEL, ks_same, mean_agrees

N = 128
WORKLOADS = [MarginalTables([2, 3], 2), Marginals(4, 2), Prefixes(5), Explicit([[3, 0], [2, 7]])]
PRIVACIES = [ZCDP(0.3), ApproxDP(0.7, 1e-5)]


@pytest.fixture(params=WORKLOADS, ids=repr)
def workload(request):
    return request.param


@pytest.fixture(params=PRIVACIES, ids=str)
def privacy(request):
    return request.param


@pytest.fixture(params=Adjacency)
def mechanism(request, workload, privacy):
    return Gaussian(workload, n=N, privacy=privacy, adjacency=request.param)


def test_whole_squares_hold_every_change(mechanism):
    answers = mechanism.workload.evaluate(mechanism.workload.universe.elements()).astype(int)
    moves = answers
    if mechanism.adjacency is Adjacency.REPLACE_ONE:
        moves = (answers[:, None] - answers[None]).reshape(-1, answers.shape[1])
    largest = int((moves**2).sum(axis=1).max())
    replace = mechanism.adjacency is Adjacency.REPLACE_ONE
    bound = mechanism.workload.l2_diameter() if replace else mechanism.workload.l2_radius()
    assert whole_square(bound) == largest
    assert mechanism.noise.scale == proved_gaussian_scale(largest, mechanism.privacy)


def test_the_noise_is_that_of_the_proof_in_all_coordinates(mechanism, monkeypatch):
    """Releases equal a reference by mpmath: round sigma g, add it exactly, divide and project."""
    records = mechanism.workload.universe.sample(N, 3)
    m = mechanism.workload.n_queries
    with mpmath.workprec(REFERENCE_BITS):
        draws = [mpf(mechanism.noise.scale) * g for g in Reference(seeded(1)).gaussians(m)]
        multiples = nearest(draws, mechanism.grid)
    # Ball arithmetic, which decides the roundings that float64 leaves open, gives the same noise.
    balls = Rounded([Numbers(isotropic(m, mechanism.noise.scale).balls)], mechanism.grid)
    assert balls.draw(seeded(1)) == multiples
    monkeypatch.setattr(os, "urandom", seeded(1))
    answers = mechanism.release(records).answers
    sums = mechanism.workload.totals(records).sums
    full = quotients(sums, multiples, 1 << mechanism.grid, N)
    hull = mechanism.change.hull
    np.testing.assert_array_equal(answers, hull.embed(hull.coordinates(full[None]))[0])


def test_the_record_names_the_grid(mechanism):
    release = mechanism.release(mechanism.workload.universe.sample(N, 3))
    assert release.guarantee.arithmetic == rounded_arithmetic(mechanism.grid)


@pytest.mark.statistical
def test_releases_have_the_law_of_seeded_ones(workload, privacy):
    mechanism = Gaussian(workload, n=N, privacy=privacy)
    sums = workload.totals(workload.universe.sample(N, 3)).sums
    answers = np.array([mechanism.draw(None)(sums) for _ in range(1500)])
    mean_agrees(((answers - sums / N) ** 2).mean(axis=1), mechanism.predicted_rmse.value**2)
    others = (sums + mechanism.noise.sample(np.random.default_rng(1), 20_000)) / N
    for j in range(len(sums)):
        ks_same(answers[:, j], others[:, j], level=LEVEL / len(sums))


@pytest.mark.parametrize("kind", [Projected, Shrunk, Fitted])
def test_post_processing_keeps_the_rounding(kind):
    mechanism = kind(Gaussian(MarginalTables([2, 2, 3], 2), n=N, privacy=ZCDP(0.5)))
    release = mechanism.release(mechanism.workload.universe.sample(N, 3))
    assert release.guarantee.arithmetic == rounded_arithmetic(mechanism.grid)


def exact_delta(squared, scale, epsilon):
    """The least delta of Gaussian noise by mpmath."""
    with mpmath.workprec(REFERENCE_BITS):
        theta, loss = mpmath.sqrt(squared) / mpf(scale), mpf(epsilon)
        low = mpmath.ncdf(-theta / 2 - loss / theta)
        return mpmath.ncdf(theta / 2 - loss / theta) - mpmath.exp(loss) * low


def check_scales_suffice(scale_of):
    """Check zCDP with exact rationals, and (epsilon, delta)-DP with mpmath at 400 bits."""
    rng = np.random.default_rng(0)
    for _ in range(150):
        squared = int(rng.integers(1, 1000))
        rho = float(10 ** rng.uniform(-4, 2))
        scale = scale_of(squared, ZCDP(rho))
        assert 2 * Fraction(rho) * Fraction(scale) ** 2 >= squared
        epsilon, delta = float(10 ** rng.uniform(-2, 1.3)), float(10 ** rng.uniform(-12, -1))
        scale = scale_of(squared, ApproxDP(epsilon, delta))
        assert exact_delta(squared, scale, epsilon) <= mpf(delta)


def test_proved_scales_suffice_and_scales_rounded_to_nearest_do_not():
    check_scales_suffice(proved_gaussian_scale)
    with pytest.raises(AssertionError):
        check_scales_suffice(lambda squared, p: gaussian_scale(math.sqrt(squared), p))


@pytest.mark.parametrize("privacy", [*PRIVACIES, ApproxDP(8.0, 1e-12), ZCDP(1e-6)], ids=str)
def test_proved_scales_are_hardly_larger(privacy):
    for squared in (1, 2, 7, 10**6 + 3, 10**20):
        ratio = proved_gaussian_scale(squared, privacy) / gaussian_scale(
            math.sqrt(squared), privacy
        )
        assert 1 <= ratio <= 1 + 1e-13


def test_delta_is_enclosed():
    for squared, scale, epsilon in ((3, 2.0, 1.0), (1, 10.0, 0.01), (50, 30.0, 5.0)):
        with mpmath.workprec(REFERENCE_BITS):
            value = exact_delta(squared, scale, epsilon)
        ball = gaussian_delta_ball(squared, scale, epsilon)
        assert abs(float(ball.mid()) - float(value)) <= float(ball.rad()) + 1e-15 * float(value)


def test_neighbours_have_the_same_reachable_answers():
    """Histograms (5, 5) and (4, 6) give equal answers if their noises differ by (1, -1)."""
    mechanism = Gaussian(Histogram(2), n=10, privacy=ZCDP(0.5))
    unit = 1 << mechanism.grid
    for j in ([3, 5], [2**60 + 1, -7]):
        first = mechanism._restored(quotients(np.array([5.0, 5.0]), j, unit, 10))
        moved = [j[0] + unit, j[1] - unit]
        second = mechanism._restored(quotients(np.array([4.0, 6.0]), moved, unit, 10))
        np.testing.assert_array_equal(first, second)
