"""Means and second moments: reach, extreme answers, and the noise for them (JL-COV, JL-L15)."""

import itertools
import math

import numpy as np
import pytest

from geomdp._numerics.linalg import svec, unsvec
from geomdp.bodies import Ball as BallBody
from geomdp.bodies import neighbour_body, sensitivity_polytope
from geomdp.mechanisms import Ball, Cone
from geomdp.privacy import Adjacency, PureDP
from geomdp.workloads import BoxSecondMoment, Means, SecondMoment
from tests.workloads.cases import check_reach

PURE = PureDP(1.0)


def farthest(points: np.ndarray, order: int) -> float:
    return np.linalg.norm(points[:, None] - points, ord=order, axis=2).max()


@pytest.mark.parametrize("workload", [SecondMoment(4), BoxSecondMoment(4)], ids=repr)
def test_answers_are_second_moments(workload):
    records = workload.universe.sample(20_000, rng=0)
    answers = workload.answers(records)
    np.testing.assert_allclose(workload.matrix(answers), records.T @ records / 20_000, rtol=1e-12)
    np.testing.assert_allclose(answers, workload.evaluate(records).mean(axis=0), atol=1e-14)
    assert workload.affine_hull().dimension == workload.n_queries == 10


# Reach: the stated diameters and radii


@pytest.mark.parametrize("d", [1, 3, 7])
def test_reach_of_means(d):
    workload = Means(d)
    best = np.full((1, d), 1 / math.sqrt(d))
    check_reach(workload, workload.evaluate(np.vstack([best, -best])))
    (block,) = workload.blocks()
    assert (block.diameter, block.radius) == (2.0, 1.0)


@pytest.mark.parametrize("d", [1, 2, 3, 6])
def test_reach_of_second_moments(d):
    workload = SecondMoment(d)
    axes = workload.evaluate(np.vstack([np.zeros(d), np.eye(d)]))
    assert workload.l2_diameter() == pytest.approx(farthest(axes, 2), rel=1e-15)
    assert workload.l2_radius() == np.linalg.norm(axes, axis=1).max()
    best = workload.evaluate(np.full((1, d), 1 / math.sqrt(d)))
    assert workload.l1_radius() == pytest.approx(np.abs(best).sum(), rel=1e-14)
    points = workload.evaluate(workload.universe.sample(300, rng=d))
    assert farthest(points, 2) <= workload.l2_diameter()
    # For d = 1 and 2 the bound is exact, and for d = 3 it is 1.03 times the diameter.
    directions = np.linalg.eigh(workload.matrix(points))[1][:, :, -1]
    ends = workload.evaluate(np.vstack([directions * (1 - 1e-15), np.zeros((1, d))]))
    assert (0.9 if d <= 3 else 0.5) * workload.l1_diameter() <= farthest(ends, 1)
    assert farthest(ends, 1) <= workload.l1_diameter() * (1 + 1e-12)
    assert np.abs(points).sum(axis=1).max() <= workload.l1_radius()


@pytest.mark.parametrize("d", [1, 2, 3, 4, 6])
def test_reach_of_second_moments_in_a_cube(d):
    workload = BoxSecondMoment(d)
    corners = np.array(list(itertools.product((-1.0, 1.0), repeat=d)))
    records = np.vstack([corners, np.zeros((1, d)), workload.universe.sample(300, rng=d)])
    answers = workload.evaluate(records)
    odd = d > 1 and d % 2 == 1  # the l2 diameter is an upper bound then
    check_reach(workload, answers, besides=("l2_diameter",) if odd else ())
    if odd:
        assert math.sqrt(2 * d**2 - 2) * (1 - 1e-12) <= farthest(answers, 2) < math.sqrt(2) * d


# Extreme answers


def test_extreme_means_attain_the_norm():
    workload = Means(5)
    scales = 10.0 ** np.arange(-200, 200, 20)[:, None]
    directions = np.random.default_rng(1).standard_normal((20, 5)) * scales
    best = workload.extreme_answers(directions)
    np.testing.assert_allclose(np.linalg.norm(best, axis=1), 1, rtol=1e-14)
    scaled = directions / np.abs(directions).max(axis=1, keepdims=True)
    attained = np.einsum("bm,bm->b", scaled, best)
    np.testing.assert_allclose(attained, np.linalg.norm(scaled, axis=1), rtol=1e-14)
    assert np.linalg.norm(workload.extreme_answers(np.zeros((1, 5)))) == 1
    assert workload.extreme_answers(np.zeros((0, 5))).shape == (0, 5)


def test_extreme_second_moments_attain_the_top_eigenvalue():
    # By JL-COV, the support function at a symmetric matrix G is max(lambda_max(G), 0).
    workload = SecondMoment(5)
    matrices = np.random.default_rng(1).normal(size=(50, 5, 5))
    matrices = matrices + matrices.transpose(0, 2, 1)
    matrices[:10] -= 20 * np.eye(5)  # negative definite: the best record is 0
    extreme = workload.extreme_answers(svec(matrices))
    top = np.linalg.eigvalsh(matrices)[:, -1]
    assert (top < 0).any()
    attained = np.einsum("bm,bm->b", svec(matrices), extreme)
    np.testing.assert_allclose(attained, np.maximum(top, 0), rtol=1e-12)
    values = np.linalg.eigvalsh(unsvec(extreme))
    np.testing.assert_allclose(values[:, :-1], 0, rtol=0, atol=1e-14)
    np.testing.assert_allclose(values[:, -1], top > 0, rtol=0, atol=1e-14)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_extreme_second_moments_in_a_cube_attain_the_support_function(d):
    rng = np.random.default_rng(d)
    workload = BoxSecondMoment(d)
    # The shifts -4, .., 4 make diagonal entries mostly negative first, and mostly positive last.
    matrices = rng.standard_normal((12, d, d))
    shifts = np.linspace(-4, 4, 12)[:, None, None] * np.eye(d)
    matrices = matrices + matrices.swapaxes(1, 2) + shifts
    matrices[0] = -np.outer(*[[-3.0, -1, 3][:d]] * 2)  # singular
    extreme = workload.extreme_answers(svec(matrices))
    records = np.sqrt(np.abs(np.diagonal(unsvec(extreme), axis1=1, axis2=2)))
    assert (records <= 1 + 1e-12).all()
    values = np.linalg.eigvalsh(unsvec(extreme))
    np.testing.assert_allclose(values[:, :-1], 0, atol=1e-12)
    attained = np.einsum("bm,bm->b", svec(matrices), extreme)
    axis = np.linspace(-1, 1, 101 if d < 3 else 41)
    points = np.array(list(itertools.product(axis, repeat=d)))
    highest = np.einsum("bi,kij,bj->kb", points, matrices, points).max(axis=1)
    assert (attained >= highest - 1e-12).all()
    np.testing.assert_allclose(attained, highest, rtol=0.02, atol=0.02)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Means(2).answers(np.array([[0.0, 1.0], [1.0, 1.0]])), "row 1"),
        (lambda: BoxSecondMoment(2).answers(np.array([[0.5, 1], [1.5, 0]])), "row 1, column 0"),
        (lambda: BoxSecondMoment(9).extreme_answers(np.zeros((1, 45))), "at most 8"),
        (lambda: Means(2).extreme_answers(np.zeros((1, 3))), "directions must"),
    ],
)
def test_refusals(call, message):
    assert BoxSecondMoment(3).extreme_answers(np.zeros((0, 6))).shape == (0, 6)
    with pytest.raises(ValueError, match=message):
        call()


# Bodies and noise


def test_bodies_of_means_are_balls():
    body = sensitivity_polytope(Means(3))
    assert isinstance(body, BallBody)
    assert (body.m, body.r) == (3, 1.0)
    u = np.random.default_rng(2).standard_normal((5, 3))
    for adjacency, radius in ((Adjacency.REPLACE_ONE, 2.0), (Adjacency.ADD_REMOVE, 1.0)):
        heights = neighbour_body(Means(3), adjacency).support(u)
        np.testing.assert_allclose(heights, radius * np.linalg.norm(u, axis=1), rtol=1e-14)


def test_the_mean_mechanism_errs_as_the_lemma_says():
    """The RMSE is 2 sqrt(d + 1) / (eps n) per query (JL-L15)."""
    mechanism = Ball(Means(6), n=50, privacy=PureDP(0.5))
    assert mechanism.predicted_rmse.value == pytest.approx(2 * math.sqrt(7) / 25, rel=1e-13)


@pytest.mark.parametrize("d", [1, 3, 10])
def test_cone_error_in_closed_form(d):
    """Noise Z on sums has E||Z||^2 = 8 (m + 1)(m + 2) E||U - c||^2 / eps^2.

    U is uniform on {M psd, M_ii <= 1}, c is its mean, and X-PSDBOX gives its moments.
    """
    m, a = d * (d + 1) // 2, (d + 1) / (d + 3)
    spread = d * ((d + 1) / (d + 5) - a**2) + d * (d - 1) * a**2 / (d + 1)
    mechanism = Cone(BoxSecondMoment(d), n=100, privacy=PURE)
    expected = math.sqrt(8 * (m + 1) * (m + 2) * spread / m) / 100
    assert mechanism.predicted_rmse.value == pytest.approx(expected, rel=1e-12)
