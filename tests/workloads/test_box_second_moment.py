"""Second moments of records in a cube: diameters, extreme answers and the cone mechanism."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import scipy.optimize

from geomdp._numerics.linalg import svec, unsvec
from geomdp.audit import audit
from geomdp.mechanisms import Cone, Gaussian, Laplace
from geomdp.privacy import ZCDP, Adjacency, PureDP
from geomdp.workloads import BoxSecondMoment
from tests.stats import mean_agrees

PURE = PureDP(1.0)


def test_records_outside_the_cube():
    workload = BoxSecondMoment(4)
    assert workload.affine_hull().dimension == workload.n_queries == 10
    with pytest.raises(ValueError, match="row 1, column 0"):
        workload.answers(np.array([[0.5, 1, 1, 1], [1.5, 0, 0, 0]]))


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
def test_extreme_answers_attain_the_support_function(d):
    rng = np.random.default_rng(d)
    workload = BoxSecondMoment(d)
    # The shifts -4, .., 4 make diagonal entries mostly negative first, and mostly positive last.
    matrices = rng.standard_normal((12, d, d))
    matrices = (
        matrices + matrices.swapaxes(1, 2) + np.linspace(-4, 4, 12)[:, None, None] * np.eye(d)
    )
    extreme = workload.extreme_answers(svec(matrices))
    records = np.sqrt(np.abs(np.diagonal(unsvec(extreme), axis1=1, axis2=2)))
    assert (records <= 1 + 1e-12).all()
    values = np.linalg.eigvalsh(unsvec(extreme))
    np.testing.assert_allclose(values[:, :-1], 0, atol=1e-12)
    attained = np.einsum("bm,bm->b", svec(matrices), extreme)
    corners = np.array(list(itertools.product((-1.0, 1.0), repeat=d)))
    for matrix, height in zip(matrices, attained, strict=True):
        assert height >= np.einsum("bi,ij,bj->b", corners, matrix, corners).max() - 1e-12
        np.testing.assert_allclose(
            height, max(best_by_search(matrix, rng), 0.0), rtol=1e-6, atol=1e-6
        )


def test_extreme_answers_need_few_dimensions():
    assert BoxSecondMoment(3).extreme_answers(np.zeros((0, 6))).shape == (0, 6)
    with pytest.raises(ValueError, match="at most 8"):
        BoxSecondMoment(9).extreme_answers(np.zeros((1, 45)))
    with pytest.raises(ValueError, match="d must be"):
        BoxSecondMoment(0)


@pytest.mark.parametrize("d", [1, 2, 3, 4, 6])
def test_reach(d):
    workload = BoxSecondMoment(d)
    corners = np.array(list(itertools.product((-1.0, 1.0), repeat=d)))
    grid = np.vstack([corners, np.zeros((1, d)), workload.universe.sample(300, rng=d)])
    answers = workload.evaluate(grid)
    moved = answers[:, None] - answers
    l1, l2 = np.abs(moved).sum(axis=2).max(), np.linalg.norm(moved, axis=2).max()
    assert workload.l1_diameter() == pytest.approx(l1, rel=1e-14)
    assert workload.l1_radius() == pytest.approx(np.abs(answers).sum(axis=1).max(), rel=1e-14)
    assert workload.l2_radius() == pytest.approx(np.linalg.norm(answers, axis=1).max(), rel=1e-14)
    if d == 1 or d % 2 == 0:
        assert workload.l2_diameter() == pytest.approx(l2, rel=1e-14)
    else:
        assert math.sqrt(2 * d**2 - 2) * (1 - 1e-12) <= l2 < workload.l2_diameter()


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


def test_cone_beats_laplace_and_releases():
    """For d = 10, the l1 diameter is 73.6, but the psd body of the cone noise has radius 10."""
    workload = BoxSecondMoment(10)
    cone = Cone(workload, n=500, privacy=PURE)
    laplace = Laplace(workload, n=500, privacy=PURE)
    assert cone.predicted_rmse.value < 0.6 * laplace.predicted_rmse.value
    records = workload.universe.sample(500, rng=2)
    release = cone.release(records, rng=3)
    error = np.sqrt(np.mean((release.answers - workload.answers(records)) ** 2))
    # The error of one release varies: each of the two radii of the noise has a relative standard
    # deviation of 1 / sqrt(m + 1) = 13%.
    assert error == pytest.approx(cone.predicted_rmse.value, rel=0.6)
    assert str(cone.guarantee).startswith("1-DP, replace-one")
    assert Gaussian(workload, n=500, privacy=ZCDP(0.5)).predicted_rmse.value > 0


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
