"""Explicit workloads, dense and sparse, and the diameters of point sets."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from geomdp.workloads import Explicit, RandomSigns, explicit


@pytest.fixture
def sparse_matrix():
    return sp.random_array((20, 60), density=0.1, rng=np.random.default_rng(1), format="coo")


@pytest.mark.parametrize("form", ["coo", "csr", "csc", "lil"])
def test_sparse_equals_dense(sparse_matrix, form):
    sparse, dense = Explicit(sparse_matrix.asformat(form)), Explicit(sparse_matrix.toarray())
    assert sp.issparse(sparse.matrix)
    np.testing.assert_array_equal(sparse.matrix.toarray(), dense.matrix)
    records = dense.universe.sample(500, rng=0)
    directions = np.random.default_rng(2).normal(size=(7, 20))
    np.testing.assert_array_equal(sparse.evaluate(records), dense.evaluate(records))
    np.testing.assert_allclose(sparse.answers(records), dense.answers(records), rtol=1e-13)
    np.testing.assert_array_equal(
        sparse.extreme_answers(directions), dense.extreme_answers(directions)
    )
    for name in ("l1_diameter", "l2_diameter", "l1_radius", "l2_radius"):
        assert getattr(sparse, name)() == pytest.approx(getattr(dense, name)(), rel=1e-14)


def test_sparse_duplicates_are_added():
    entries = sp.coo_array(([1.0, 2.0], ([0, 0], [1, 1])), shape=(1, 3))
    np.testing.assert_array_equal(Explicit(entries).evaluate(np.array([0, 1])), [[0], [3]])
    assert Explicit(entries).l1_radius() == 3


def test_blocks_of_scores_keep_the_first_winner(monkeypatch):
    matrix = np.random.default_rng(0).integers(-1, 2, (3, 50)).astype(float)
    directions = np.random.default_rng(1).integers(-1, 2, (6, 3)).astype(float)
    workload = Explicit(matrix)
    expected = matrix.T[(directions @ matrix).argmax(axis=1)]
    np.testing.assert_array_equal(workload.extreme_answers(directions), expected)
    monkeypatch.setattr(explicit, "BLOCK_ENTRIES", 20)  # 3 elements at a time
    np.testing.assert_array_equal(workload.extreme_answers(directions), expected)


def test_large_sparse_workloads_have_bounds(monkeypatch, sparse_matrix):
    exact = Explicit(sparse_matrix)
    l1, l2 = exact.l1_diameter(), exact.l2_diameter()
    monkeypatch.setattr(explicit, "MAX_ENTRIES", 100)
    large = Explicit(sparse_matrix)
    assert l1 <= large.l1_diameter() <= 2 * large.l1_radius()
    assert l2 <= large.l2_diameter() <= 2 * large.l2_radius()
    with pytest.raises(ValueError, match=r"at most 2\^26 entries"):
        large.affine_hull()


@pytest.mark.parametrize("m", [1, 5])
def test_bounds_for_large_point_sets(monkeypatch, m):
    points = np.random.default_rng(m).normal(size=(1500, m))
    exact = explicit.l1_diameter_of_points(points), explicit.l2_diameter_of_points(points)
    monkeypatch.setattr(explicit, "L1_WORK", 1000)
    monkeypatch.setattr(explicit, "L2_POINTS", 1000)
    bounds = explicit.l1_diameter_of_points(points), explicit.l2_diameter_of_points(points)
    from_middle = points - (points.min(axis=0) + points.max(axis=0)) / 2
    for order, value, bound in zip((1, 2), exact, bounds, strict=True):
        # No two points are farther apart than twice the largest distance from the middle. On a
        # line (m = 1), the two end points are that far apart, so the bound is exact.
        radius = np.linalg.norm(from_middle, ord=order, axis=1).max()
        assert value <= bound * (1 + 1e-14)
        assert bound <= 2 * radius * (1 + 1e-14)


def test_diameter_far_from_the_origin():
    # Expanding the square of a distance at offset 1e8 would lose all digits.
    points = 1e8 + np.random.default_rng(0).normal(size=(700, 3))
    expected = np.linalg.norm(points[:, None] - points, axis=2).max()
    assert explicit.l2_diameter_of_points(points) == pytest.approx(expected, rel=1e-14)


def test_the_matrix_is_a_copy_and_cannot_be_changed():
    matrix = np.ones((2, 3))
    workload = Explicit(matrix)
    matrix[0, 0] = 5
    np.testing.assert_array_equal(workload.matrix, np.ones((2, 3)))
    with pytest.raises(ValueError, match="read-only"):
        workload.matrix[0, 0] = 5


def test_random_signs():
    workload = RandomSigns(6, 9, rng=3)
    assert workload.matrix.shape == (6, 9)
    assert set(np.unique(workload.matrix)) == {-1.0, 1.0}
    np.testing.assert_array_equal(workload.matrix, RandomSigns(6, 9, rng=3).matrix)
    assert repr(workload) == "RandomSigns(6 queries on 9 elements)"
    assert workload.labels() == ["q0", "q1", "q2", "q3", "q4", "q5"]


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ([1.0, 2.0], "matrix must have 2 axes"),
        (np.zeros((0, 3)), "must have rows and columns"),
        (np.zeros((3, 0)), "must have rows and columns"),
        ([[1.0, np.nan]], "matrix must be finite"),
        ([["a"]], "matrix must be numeric"),
        (sp.csr_array(np.array([[1.0, np.inf]])), "matrix must be finite"),
        (sp.csr_array((0, 3)), "must have rows and columns"),
    ],
)
def test_bad_matrix(matrix, message):
    with pytest.raises(ValueError, match=message):
        Explicit(matrix)


@pytest.mark.parametrize(("m", "N"), [(0, 3), (3, 0), (2.0, 3)])
def test_bad_sizes(m, N):
    with pytest.raises(ValueError, match="must be a whole number"):
        RandomSigns(m, N, rng=0)


@pytest.mark.parametrize("form", [sp.coo_array, sp.csr_array])
def test_a_sparse_array_of_one_axis_is_refused(form) -> None:
    with pytest.raises(ValueError, match=r"matrix must have 2 axes, got shape \(3,\)"):
        Explicit(form(np.array([1.0, 0.0, 2.0])))
