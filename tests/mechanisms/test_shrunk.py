"""Linear minimax shrinkage: its factor, centre and radius, and a case that attains its bound."""

from __future__ import annotations

import math

import numpy as np
import pytest

from geomdp.mechanisms import Ball, Cone, Laplace, Projected, Shrunk, TightCone
from geomdp.mechanisms.projected import centre_and_radius
from geomdp.privacy import PureDP
from geomdp.workloads import (
    ChosenTables,
    Explicit,
    Marginals,
    MarginalTables,
    Parities,
    Prefixes,
    RandomSigns,
    explicit_answers,
)
from geomdp.workloads.base import MAX_SCORES
from tests.stats import mean_agrees, mean_at_most

PRIVACY = PureDP(1.0)
TABLES = MarginalTables([2, 3, 1], 2)


@pytest.mark.parametrize(
    "workload",
    [TABLES, MarginalTables([2] * 4, 3), RandomSigns(5, 30, 1), Prefixes(9), Marginals(3, 2)],
    ids=repr,
)
def test_centre_is_the_mean_of_all_answers_and_the_radius_is_attained(workload) -> None:
    answers = explicit_answers(workload)
    centre, radius = centre_and_radius(workload)
    np.testing.assert_allclose(centre, answers.mean(axis=0), atol=1e-15)
    np.testing.assert_allclose(radius, np.linalg.norm(answers - centre, axis=1).max(), rtol=1e-14)


def test_radii_in_closed_form() -> None:
    # The tables have 6, 2 and 3 cells. A table of c cells adds 1 - 1/c to the squared radius.
    assert centre_and_radius(TABLES)[1] == pytest.approx(math.sqrt(5 / 6 + 1 / 2 + 2 / 3))
    # For Prefixes(N), element 0 has the answer 1 to every query, and the mean answer to query i is
    # (i + 1) / N.
    centre, radius = centre_and_radius(Prefixes(4))
    np.testing.assert_allclose(centre, np.arange(1, len(centre) + 1) / 4)
    assert radius == pytest.approx(np.linalg.norm(1 - centre))
    # Parities(40, 2) has too many elements to list. Each answer is 1 or -1, and the centre is 0.
    centre, radius = centre_and_radius(Parities(40, 2))
    assert not centre.any()
    assert radius == pytest.approx(math.sqrt(40 * 39 / 2))


def test_the_point_nearest_to_0_in_the_hull_of_large_tables_is_uniform() -> None:
    """Every table adds up to 1, so its point of least norm has equal cells."""
    workload = ChosenTables([2] * 40, [("c0", "c1"), ("c2",)])
    assert workload.universe.size * workload.n_queries > MAX_SCORES
    centre, radius = centre_and_radius(workload)
    np.testing.assert_allclose(centre, [1 / 4] * 4 + [1 / 2] * 2, rtol=1e-12)
    assert radius == pytest.approx(math.sqrt(3 / 4 + 1 / 2), rel=1e-12)


def test_large_universe_has_a_radius_that_holds_its_elements() -> None:
    workload = Marginals(40, 2)
    centre, radius = centre_and_radius(workload)
    corners = np.vstack([np.ones((1, 40)), np.zeros((1, 40)), workload.universe.sample(5, 0)])
    apart = workload.evaluate(corners.astype(workload.universe.sample(1, 0).dtype)) - centre
    assert np.linalg.norm(apart, axis=1).max() <= radius * (1 + 1e-12)


@pytest.mark.parametrize("n", [1, 30, 10_000])
def test_factor_is_the_best_for_the_bound(n) -> None:
    inner = Ball(TABLES, n=n, privacy=PRIVACY)
    mechanism = Shrunk(inner)
    m, square = TABLES.n_queries, centre_and_radius(TABLES)[1] ** 2
    noise = inner.predicted_rmse.value**2 * m
    worst = [(1 - s) ** 2 * square + s**2 * noise for s in np.linspace(0, 1, 2001)]
    bound = mechanism.predicted_rmse.value**2 * m
    assert bound == pytest.approx(min(worst), rel=1e-5)
    assert bound <= min(square, noise) * (1 + 1e-5)
    assert mechanism.factor == pytest.approx(square / (square + noise))


def test_few_records_have_a_lesser_bound_than_projected_ones() -> None:
    inner = Cone(MarginalTables([2] * 25, 2), n=2, privacy=PRIVACY)
    assert Shrunk(inner).predicted_rmse.value < 0.7 * Projected(inner).predicted_rmse.value


@pytest.mark.parametrize(("kind", "estimated"), [(Cone, False), (TightCone, True)])
def test_source_says_where_the_noise_is_estimated(kind, estimated) -> None:
    mechanism = Shrunk(kind(TABLES, n=10, privacy=PRIVACY))
    assert ("public draws" in mechanism.predicted_rmse.source) == estimated


@pytest.mark.statistical
def test_bound_is_attained_at_a_vertex_without_a_projection() -> None:
    """Without the projection the squared error equals the bound; with it the error is not larger.

    The only query has the answers -1 and 1, so c = 0 and r = 1. The Laplace noise has the scale
    2 / (epsilon n). All n records have the answer 1, which is a vertex of K = [-1, 1].
    """
    n = 8
    mechanism = Shrunk(Laplace(Explicit([[-1.0, 1.0]]), n=n, privacy=PRIVACY))
    bound = mechanism.predicted_rmse.value**2
    factor = mechanism.factor
    assert factor == pytest.approx(1 / (1 + 2 * (2 / n) ** 2))
    rng = np.random.default_rng(3)
    sums = np.array([float(n)])
    noisy = np.array([mechanism.inner.privatise(sums, rng)[0] for _ in range(20_000)])
    mean_agrees((factor * noisy - 1) ** 2, bound / (1 + 2e-6))
    squares = np.array([(mechanism.privatise(sums, rng)[0] - 1) ** 2 for _ in range(2000)])
    mean_at_most(squares, bound)
    # With half the factor the squared error exceeds the bound, so the factor matters.
    worse = (factor / 2 * noisy - 1) ** 2
    assert worse.mean() > bound + 6 * worse.std() / math.sqrt(len(worse))


@pytest.mark.parametrize("workload", [TABLES, Prefixes(9)], ids=repr)
def test_answers_are_the_nearest_to_the_shrunk_ones(workload) -> None:
    """`Shrunk` maps y to what `Projected` gives for c + s (y - c), with centre c and factor s."""
    inner = Ball(workload, n=20, privacy=PRIVACY)
    mechanism, centre = Shrunk(inner), centre_and_radius(workload)[0]
    rng = np.random.default_rng(4)
    for noisy in centre + rng.standard_normal((3, workload.n_queries)):
        expected = Projected(inner).process(centre + mechanism.factor * (noisy - centre))
        np.testing.assert_allclose(mechanism.process(noisy), expected, atol=1e-4)
