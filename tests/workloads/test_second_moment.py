"""Workloads of second moments (JL-COV)."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from geomdp._numerics.linalg import svec, unsvec
from geomdp.workloads import BoxSecondMoment, SecondMoment


@pytest.mark.parametrize("workload", [SecondMoment(4), BoxSecondMoment(4)], ids=repr)
def test_answers_are_second_moments(workload):
    records = workload.universe.sample(20_000, rng=0)
    answers = workload.answers(records)
    np.testing.assert_allclose(workload.matrix(answers), records.T @ records / 20_000, rtol=1e-12)
    np.testing.assert_allclose(answers, workload.evaluate(records).mean(axis=0), atol=1e-14)
    assert workload.labels()[:3] == ["x0^2", "sqrt(2)*x0*x1", "sqrt(2)*x0*x2"]
    assert len(workload.labels()) == workload.n_queries == 10


def test_extreme_answers_attain_the_top_eigenvalue():
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


@pytest.mark.parametrize("d", [1, 2, 3, 6])
def test_l2_reach(d):
    workload = SecondMoment(d)
    axes = workload.evaluate(np.vstack([np.zeros(d), np.eye(d)]))
    apart = np.linalg.norm(axes[:, None] - axes, axis=2).max()
    assert workload.l2_diameter() == pytest.approx(apart, rel=1e-15)
    assert workload.l2_radius() == np.linalg.norm(axes, axis=1).max()
    points = workload.evaluate(workload.universe.sample(300, rng=d))
    assert np.linalg.norm(points[:, None] - points, axis=2).max() <= apart


@pytest.mark.parametrize("d", [1, 2, 3, 6])
def test_l1_radius_is_attained(d):
    workload = SecondMoment(d)
    best = workload.evaluate(np.full((1, d), 1 / math.sqrt(d)))
    assert workload.l1_radius() == pytest.approx(np.abs(best).sum(), rel=1e-14)
    points = workload.evaluate(workload.universe.sample(1000, rng=d))
    assert np.abs(points).sum(axis=1).max() <= workload.l1_radius()


def exact_l1_diameter(d: int) -> float:
    """The largest ||svec(x x^T - y y^T)||_1 over x and y in the unit ball.

    This is the largest max(lambda_max(A), 0) - min(lambda_min(A), 0) over all symmetric matrices A
    with entries +-1 on the diagonal and +-1 / sqrt(2) off the diagonal.
    """
    rows, columns = np.triu_indices(d)
    signs = np.array(list(product((-1.0, 1.0), repeat=len(rows))))
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


@pytest.mark.parametrize("bad", [0, -1, 2.0])
def test_bad_dimension(bad):
    with pytest.raises(ValueError, match="d must be a whole number"):
        SecondMoment(bad)
