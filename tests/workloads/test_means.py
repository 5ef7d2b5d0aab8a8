"""Means on the unit ball: radii, diameters, extreme answers, and the ball mechanism (JL-L15)."""

from __future__ import annotations

import math

import numpy as np
import pytest

from geomdp.bodies import Ball as BallBody
from geomdp.bodies import neighbour_body, sensitivity_polytope
from geomdp.mechanisms import Ball, Projected
from geomdp.privacy import Adjacency, PureDP
from geomdp.workloads import Means
from tests.stats import mean_agrees


def test_answers_are_means():
    workload = Means(4)
    records = workload.universe.sample(500, rng=0)
    np.testing.assert_allclose(workload.answers(records), records.mean(axis=0), atol=1e-15)
    assert workload.labels() == ["x0", "x1", "x2", "x3"]
    assert len(workload.labels()) == workload.n_queries
    answers = workload.evaluate(records)
    answers[:] = 0
    assert records.any()  # the caller's records are not shared


@pytest.mark.parametrize("d", [1, 3, 7])
def test_reach_is_attained(d):
    workload = Means(d)
    best = np.full((1, d), 1 / math.sqrt(d))
    assert workload.l1_radius() == pytest.approx(np.abs(workload.evaluate(best)).sum(), rel=1e-14)
    moved = workload.evaluate(best) - workload.evaluate(-best)
    assert workload.l1_diameter() == pytest.approx(np.abs(moved).sum(), rel=1e-14)
    assert workload.l2_diameter() == pytest.approx(np.linalg.norm(moved), rel=1e-14)
    assert workload.l2_radius() == pytest.approx(np.linalg.norm(best), rel=1e-14)
    assert workload.affine_hull().dimension == d
    (block,) = workload.blocks()
    assert (block.diameter, block.radius) == (2.0, 1.0)


def test_extreme_answers_attain_the_norm():
    workload = Means(5)
    directions = (
        np.random.default_rng(1).standard_normal((20, 5))
        * 10.0 ** np.arange(-200, 200, 20)[:, None]
    )
    best = workload.extreme_answers(directions)
    np.testing.assert_allclose(np.linalg.norm(best, axis=1), 1, rtol=1e-14)
    scaled = directions / np.abs(directions).max(axis=1, keepdims=True)
    attained = np.einsum("bm,bm->b", scaled, best)
    np.testing.assert_allclose(attained, np.linalg.norm(scaled, axis=1), rtol=1e-14)
    assert np.linalg.norm(workload.extreme_answers(np.zeros((1, 5)))) == 1
    assert workload.extreme_answers(np.zeros((0, 5))).shape == (0, 5)


def test_bodies_are_balls():
    body = sensitivity_polytope(Means(3))
    assert isinstance(body, BallBody)
    assert (body.m, body.r) == (3, 1.0)
    u = np.random.default_rng(2).standard_normal((5, 3))
    for adjacency, radius in ((Adjacency.REPLACE_ONE, 2.0), (Adjacency.ADD_REMOVE, 1.0)):
        heights = neighbour_body(Means(3), adjacency).support(u)
        np.testing.assert_allclose(heights, radius * np.linalg.norm(u, axis=1), rtol=1e-14)


@pytest.mark.statistical
def test_the_mean_mechanism_errs_as_the_lemma_says():
    """The RMSE is 2 sqrt(d + 1) / (eps n) per query (JL-L15), and projections are in the ball."""
    d, n = 6, 50
    mechanism = Ball(Means(d), n=n, privacy=PureDP(0.5))
    assert mechanism.predicted_rmse.value == pytest.approx(
        2 * math.sqrt(d + 1) / (0.5 * n), rel=1e-13
    )
    draws = mechanism.noise.sample(np.random.default_rng(3), 20_000) / n
    mean_agrees((draws**2).mean(axis=1), mechanism.predicted_rmse.value**2)
    records = Means(d).universe.sample(n, rng=4)
    projected = Projected(mechanism)
    for seed in range(20):
        answers = projected.release(records, rng=seed).answers
        assert np.linalg.norm(answers) <= 1 + 1e-12


def test_records_outside_the_ball_and_bad_dimensions():
    with pytest.raises(ValueError, match="row 1"):
        Means(2).answers(np.array([[0.0, 1.0], [1.0, 1.0]]))
    with pytest.raises(ValueError, match="d must be a whole number"):
        Means(0)
    with pytest.raises(ValueError, match="directions must"):
        Means(2).extreme_answers(np.zeros((1, 3)))
