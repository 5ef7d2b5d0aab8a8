"""Means and second moments: reach, extreme answers, and the noise for them (JL-COV, JL-L15)."""

import itertools
import math

import numpy as np
import pytest
import scipy.optimize

from geomdp._numerics.linalg import svec, unsvec
from geomdp.audit import audit
from geomdp.bodies import Ball as BallBody
from geomdp.bodies import neighbour_body, sensitivity_polytope
from geomdp.mechanisms import Ball, Cone
from geomdp.privacy import Adjacency, PureDP
from geomdp.workloads import BoxSecondMoment, Means, SecondMoment
from tests.stats import mean_agrees

PURE = PureDP(1.0)


def farthest(points: np.ndarray, order: int) -> float:
    return np.linalg.norm(points[:, None] - points, ord=order, axis=2).max()


def test_answers_are_means():
    workload = Means(4)
    records = workload.universe.sample(500, rng=0)
    np.testing.assert_allclose(workload.answers(records), records.mean(axis=0), atol=1e-15)
    answers = workload.evaluate(records)
    answers[:] = 0
    assert records.any()  # the caller's records are not shared


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
    ends = workload.evaluate(np.vstack([best, -best]))
    assert workload.l1_radius() == pytest.approx(np.abs(ends[0]).sum(), rel=1e-14)
    assert workload.l2_radius() == pytest.approx(np.linalg.norm(ends[0]), rel=1e-14)
    assert workload.l1_diameter() == pytest.approx(farthest(ends, 1), rel=1e-14)
    assert workload.l2_diameter() == pytest.approx(farthest(ends, 2), rel=1e-14)
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
    assert np.abs(points).sum(axis=1).max() <= workload.l1_radius()


def exact_l1_diameter(d: int) -> float:
    """The largest ||svec(x x^T - y y^T)||_1 over x and y in the unit ball.

    This is the largest max(lambda_max(A), 0) - min(lambda_min(A), 0) over all symmetric matrices A
    with entries +-1 on the diagonal and +-1 / sqrt(2) off the diagonal.
    """
    rows, columns = np.triu_indices(d)
    signs = np.array(list(itertools.product((-1.0, 1.0), repeat=len(rows))))
    matrices = np.zeros((len(signs), d, d))
    scaled = np.where(rows == columns, signs, signs / math.sqrt(2))
    matrices[:, rows, columns] = matrices[:, columns, rows] = scaled
    values = np.linalg.eigvalsh(matrices)
    return float((np.maximum(values[:, -1], 0) - np.minimum(values[:, 0], 0)).max())


@pytest.mark.parametrize("d", [1, 2, 3, 4])
def test_l1_diameter_bounds_the_exact_one(d):
    exact, stated = exact_l1_diameter(d), SecondMoment(d).l1_diameter()
    if d <= 2:
        assert stated == pytest.approx(exact, rel=1e-14)
    else:
        # The ratio exact / stated is 0.9716 for d = 3 and 0.9914 for d = 4.
        assert 0.97 * stated < exact < stated


@pytest.mark.parametrize("d", [1, 2, 3, 4, 6])
def test_reach_of_second_moments_in_a_cube(d):
    workload = BoxSecondMoment(d)
    corners = np.array(list(itertools.product((-1.0, 1.0), repeat=d)))
    records = np.vstack([corners, np.zeros((1, d)), workload.universe.sample(300, rng=d)])
    answers = workload.evaluate(records)
    assert workload.l1_diameter() == pytest.approx(farthest(answers, 1), rel=1e-14)
    assert workload.l1_radius() == pytest.approx(np.abs(answers).sum(axis=1).max(), rel=1e-14)
    assert workload.l2_radius() == pytest.approx(np.linalg.norm(answers, axis=1).max(), rel=1e-14)
    found = farthest(answers, 2)
    if d == 1 or d % 2 == 0:
        assert workload.l2_diameter() == pytest.approx(found, rel=1e-14)
    else:
        assert math.sqrt(2 * d**2 - 2) * (1 - 1e-12) <= found < workload.l2_diameter()


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


def best_by_search(matrix, rng):
    """Largest <x, G x> found by local search from many starts."""
    d = len(matrix)
    found = [
        scipy.optimize.minimize(
            lambda x: -x @ matrix @ x,
            start,
            jac=lambda x: -2 * matrix @ x,
            bounds=[(-1, 1)] * d,
            method="L-BFGS-B",
        )
        for start in rng.uniform(-1, 1, (30, d))
    ]
    return -min(result.fun for result in found)


@pytest.mark.parametrize("d", [1, 2, 3, 5])
def test_extreme_second_moments_in_a_cube_attain_the_support_function(d):
    rng = np.random.default_rng(d)
    workload = BoxSecondMoment(d)
    # The shifts -4, .., 4 make diagonal entries mostly negative first, and mostly positive last.
    matrices = rng.standard_normal((12, d, d))
    shifts = np.linspace(-4, 4, 12)[:, None, None] * np.eye(d)
    matrices = matrices + matrices.swapaxes(1, 2) + shifts
    extreme = workload.extreme_answers(svec(matrices))
    records = np.sqrt(np.abs(np.diagonal(unsvec(extreme), axis1=1, axis2=2)))
    assert (records <= 1 + 1e-12).all()
    values = np.linalg.eigvalsh(unsvec(extreme))
    np.testing.assert_allclose(values[:, :-1], 0, atol=1e-12)
    attained = np.einsum("bm,bm->b", svec(matrices), extreme)
    corners = np.array(list(itertools.product((-1.0, 1.0), repeat=d)))
    for matrix, height in zip(matrices, attained, strict=True):
        assert height >= np.einsum("bi,ij,bj->b", corners, matrix, corners).max() - 1e-12
        expected = max(best_by_search(matrix, rng), 0.0)
        np.testing.assert_allclose(height, expected, rtol=1e-6, atol=1e-6)


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


@pytest.mark.statistical
@pytest.mark.parametrize("adjacency", Adjacency)
def test_cone_noise_has_the_stated_covariance(adjacency):
    noise = Cone(BoxSecondMoment(3), n=100, privacy=PURE, adjacency=adjacency).noise
    draws = noise.sample(np.random.default_rng(1), 20_000)
    mean_agrees(draws[:, :, None] * draws[:, None, :], noise.covariance())


@pytest.mark.statistical
@pytest.mark.parametrize("factor", [1.0, 3.0])
def test_audit_of_the_cone(factor):
    """One record moves from a corner to an orthogonal corner; noise for 3-DP is refuted as 1-DP."""
    noise = Cone(BoxSecondMoment(2), n=10, privacy=PureDP(factor)).noise
    corners = np.array([[1.0, 1.0], [1.0, -1.0]])
    first, second = svec(corners[:, :, None] * corners[:, None, :])
    found = audit(
        lambda trials, rng: first + noise.sample(rng, trials),
        lambda trials, rng: second + noise.sample(rng, trials),
        PURE,
        trials=100_000,
        score=lambda outputs: outputs @ (first - second),
        rng=4,
    )
    assert found.refuted is (factor == 3.0)
