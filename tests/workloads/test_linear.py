"""Linear images of workloads, also on universes that cannot be enumerated."""

from __future__ import annotations

import numpy as np
import pytest

from geomdp.workloads import LinearMap, Marginals, MarginalTables, SecondMoment, explicit


def test_definition():
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
    names = ("l1_diameter", "l2_diameter", "l1_radius", "l2_radius")
    values = [getattr(exact, name)() for name in names]
    monkeypatch.setattr(explicit, "MAX_ENTRIES", 10)
    bounds = [getattr(LinearMap(inner, matrix), name)() for name in names]
    # Each bound is at most the operator norm of the matrix times the number of the inner workload.
    norms = [np.linalg.norm(matrix, order) for order in (1, 2, 1, 2)]
    limits = [norm * getattr(inner, name)() for norm, name in zip(norms, names, strict=True)]
    for value, bound, limit in zip(values, bounds, limits, strict=True):
        assert value <= bound <= limit * (1 + 1e-12)


@pytest.mark.parametrize("scale", [1.0, -3.0])
def test_bounds_are_exact_for_multiples(scale):
    inner = SecondMoment(3)
    multiple = LinearMap(inner, scale * np.eye(6))
    assert multiple.l2_diameter() == pytest.approx(abs(scale) * inner.l2_diameter())
    assert multiple.l1_diameter() == pytest.approx(abs(scale) * inner.l1_diameter())
    assert multiple.l1_radius() == pytest.approx(abs(scale) * inner.l1_radius())
    assert multiple.l2_radius() == pytest.approx(abs(scale) * inner.l2_radius())


def test_extreme_answers_on_an_infinite_universe():
    inner = SecondMoment(3)
    matrix = np.random.default_rng(2).normal(size=(4, 6))
    directions = np.random.default_rng(3).normal(size=(5, 4))
    expected = inner.extreme_answers(directions @ matrix) @ matrix.T
    np.testing.assert_array_equal(LinearMap(inner, matrix).extreme_answers(directions), expected)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (np.zeros((2, 3)), r"shape \(p, 6\), p >= 1, got \(2, 3\)"),
        (np.zeros((0, 6)), r"shape \(p, 6\)"),
        (np.full((1, 6), np.nan), "finite"),
        (np.zeros(6), "2 axes"),
    ],
)
def test_bad_matrix(matrix, message):
    with pytest.raises(ValueError, match=message):
        LinearMap(SecondMoment(3), matrix)
