"""Explicit workloads, linear images of workloads, and the diameters of point sets."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from geomdp.workloads import (
    Explicit,
    LinearMap,
    Marginals,
    MarginalTables,
    RandomSigns,
    SecondMoment,
    explicit,
)

REACH = ("l1_diameter", "l2_diameter", "l1_radius", "l2_radius")


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
    for name in REACH:
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


def test_linear_images_by_definition():
    inner = MarginalTables([2, 3], 1)
    matrix = np.random.default_rng(0).normal(size=(4, 5))
    records = inner.universe.sample(20, rng=1)
    mapped = LinearMap(inner, matrix)
    assert mapped.universe == inner.universe
    np.testing.assert_allclose(mapped.evaluate(records), inner.evaluate(records) @ matrix.T)
    np.testing.assert_allclose(mapped.answers(records), matrix @ inner.answers(records))
    assert mapped.affine_hull().dimension == 3


@pytest.mark.parametrize("inner", [Marginals(6, 2), MarginalTables([3, 2, 4], 2)], ids=repr)
def test_bounds_without_enumeration(monkeypatch, inner):
    matrix = np.random.default_rng(1).normal(size=(5, inner.n_queries))
    exact = LinearMap(inner, matrix)
    values = [getattr(exact, name)() for name in REACH]
    monkeypatch.setattr(explicit, "MAX_ENTRIES", 10)
    bounds = [getattr(LinearMap(inner, matrix), name)() for name in REACH]
    # Each bound is at most the operator norm of the matrix times the number of the inner workload.
    norms = [np.linalg.norm(matrix, order) for order in (1, 2, 1, 2)]
    limits = [norm * getattr(inner, name)() for norm, name in zip(norms, REACH, strict=True)]
    for value, bound, limit in zip(values, bounds, limits, strict=True):
        assert value <= bound <= limit * (1 + 1e-12)


@pytest.mark.parametrize("scale", [1.0, -3.0])
def test_bounds_are_exact_for_multiples(scale):
    inner = SecondMoment(3)
    multiple = LinearMap(inner, scale * np.eye(6))
    for name in REACH:
        expected = abs(scale) * getattr(inner, name)()
        assert getattr(multiple, name)() == pytest.approx(expected)


def test_extreme_answers_on_an_infinite_universe():
    inner = SecondMoment(3)
    matrix = np.random.default_rng(2).normal(size=(4, 6))
    directions = np.random.default_rng(3).normal(size=(5, 4))
    expected = inner.extreme_answers(directions @ matrix) @ matrix.T
    np.testing.assert_array_equal(LinearMap(inner, matrix).extreme_answers(directions), expected)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Explicit([1.0, 2.0]), "matrix must have 2 axes"),
        (lambda: Explicit(sp.coo_array(np.ones(3))), r"must have 2 axes, got shape \(3,\)"),
        (lambda: Explicit(sp.csr_array(np.ones(3))), r"must have 2 axes, got shape \(3,\)"),
        (lambda: Explicit(np.zeros((0, 3))), "must have rows and columns"),
        (lambda: Explicit(np.zeros((3, 0))), "must have rows and columns"),
        (lambda: Explicit([[1.0, np.nan]]), "matrix must be finite"),
        (lambda: Explicit([["a"]]), "matrix must be numeric"),
        (lambda: Explicit(sp.csr_array(np.array([[1.0, np.inf]]))), "matrix must be finite"),
        (lambda: Explicit(sp.csr_array((0, 3))), "must have rows and columns"),
        (lambda: LinearMap(SecondMoment(3), np.zeros((2, 3))), r"\(p, 6\), p >= 1, got \(2, 3\)"),
        (lambda: LinearMap(SecondMoment(3), np.zeros((0, 6))), r"shape \(p, 6\)"),
        (lambda: LinearMap(SecondMoment(3), np.full((1, 6), np.nan)), "finite"),
        (lambda: LinearMap(SecondMoment(3), np.zeros(6)), "2 axes"),
    ],
)
def test_refusals(build, message):
    with pytest.raises(ValueError, match=message):
        build()
