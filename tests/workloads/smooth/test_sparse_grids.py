"""Smolyak's combination: exactness, agreement with full grids, and its number of nodes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from geomdp.workloads.smooth import (
    GaussianMixture,
    Polynomial,
    SparseGrid,
    TensorGrid,
    Truncation,
    approximate,
)
from geomdp.workloads.smooth.sparse_grids import combination


@pytest.mark.parametrize(("size", "dimension"), [(1, 3), (4, 1), (4, 2), (3, 4), (2, 5)])
def test_highest_level_is_the_full_grid(size, dimension):
    rng = np.random.default_rng(0)
    query = GaussianMixture(rng.uniform(-1, 1, (3, dimension)), [1.0, -1.0, 2.0], 0.8)
    level = dimension * (size - 1)
    sparse = approximate(query, size, dimension, Truncation(), SparseGrid(level))
    full = approximate(query, size, dimension, Truncation(), TensorGrid(1))
    np.testing.assert_allclose(sparse.values, full.values, atol=1e-13)
    assert SparseGrid(level).n_nodes(size, dimension) == size**dimension
    above = approximate(query, size, dimension, Truncation(), SparseGrid(level + 3))
    np.testing.assert_array_equal(above.values, sparse.values)


@pytest.mark.parametrize(("size", "dimension", "level"), [(4, 3, 3), (4, 3, 5), (3, 5, 4)])
def test_exact_on_polynomials_of_total_degree_up_to_the_level(size, dimension, level):
    rng = np.random.default_rng(1)
    degrees = [k for k in itertools.product(range(size), repeat=dimension) if sum(k) <= level]
    query = Polynomial(degrees, rng.normal(size=len(degrees)))
    found = approximate(query, size, dimension, Truncation(), SparseGrid(level))
    exact = approximate(query, size, dimension, Truncation())
    np.testing.assert_allclose(found.values, exact.values, atol=1e-12)
    beyond = Polynomial([[size - 1] * dimension], [1.0])
    missed = approximate(beyond, size, dimension, Truncation(), SparseGrid(level))
    assert missed.approximation_error > 0.1


@pytest.mark.parametrize(("size", "dimension"), [(3, 2), (4, 3), (2, 4)])
def test_combination_is_the_sum_of_differences(size, dimension):
    """Multiplicities by expanding every product of differences."""
    for level in range(dimension * (size - 1) + 1):
        expected: dict[tuple[int, ...], int] = {}
        for k in itertools.product(range(1, size + 1), repeat=dimension):
            if sum(k) - dimension <= level:
                for z in itertools.product((0, 1), repeat=dimension):
                    shape = tuple(a - b for a, b in zip(k, z, strict=True))
                    if all(shape):  # interpolation at no node is 0
                        expected[shape] = expected.get(shape, 0) + (-1) ** sum(z)
        found = dict(combination(size, dimension, level))
        assert found == {shape: sign for shape, sign in expected.items() if sign}


def test_many_variables():
    """Six variables, t = 6: 5 million nodes of the full grid or 10^4 of the sparse one."""
    query = GaussianMixture([[0.2, -0.1, 0.3, 0.0, -0.4, 0.1]], [1.0], 2.0)
    errors = []
    for level in (1, 3, 5):
        grid = SparseGrid(level)
        errors.append(approximate(query, 6, 6, Truncation(), grid).approximation_error)
    assert SparseGrid(5).n_nodes(6, 6) < 10_000
    assert errors[2] < errors[1] / 3 < errors[0] / 9
    assert errors[2] < 0.02


def test_too_many_nodes_are_refused_before_the_first_evaluation():
    def never(points):
        raise AssertionError

    with pytest.raises(ValueError, match="at most 16777216 nodes, level 30 has more"):
        SparseGrid(30).coefficients([never], 12, 6)
