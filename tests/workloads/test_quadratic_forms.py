"""Maxima of quadratic forms over the cube agree with enumeration and the fast transforms."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from geomdp.workloads import Marginals, Parities
from geomdp.workloads.compiled_loops import (
    INNER,
    LINE,
    quadratic_maximisers,
    quadratic_ranges,
)


def values(linear: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """Values of the form at all points of the cube {0, 1}^m, in lexicographic order."""
    cube = np.array(list(itertools.product([0.0, 1.0], repeat=len(linear))))
    return cube @ linear + np.einsum("ni,ij,nj->n", cube, np.triu(pairs, 1), cube)


@pytest.mark.parametrize("size", [1, 2, LINE, LINE + 1, INNER, INNER + 2])
def test_maximisers_and_ranges_are_those_of_enumeration(size: int) -> None:
    rng = np.random.default_rng(size)
    linear, pairs = rng.standard_normal((3, size)), rng.standard_normal((3, size, size))
    expected = [values(*form) for form in zip(linear, pairs, strict=True)]
    found = quadratic_maximisers(linear, pairs)
    np.testing.assert_array_equal(found, [scores.argmax() for scores in expected])
    ranges = quadratic_ranges(linear, pairs)
    np.testing.assert_allclose(ranges, np.ptp(expected, axis=1), rtol=1e-13)


def test_ties_go_to_the_lowest_number() -> None:
    size = INNER + 2
    linear = np.zeros((2, size))
    linear[1, 0] = 1.0  # all points with first coordinate 1 tie
    found = quadratic_maximisers(linear, np.zeros((2, size, size)))
    np.testing.assert_array_equal(found, [0, 1 << (size - 1)])


def test_terms_below_the_diagonal_are_not_read() -> None:
    rng = np.random.default_rng(3)
    linear, pairs = rng.standard_normal((1, 6)), rng.standard_normal((1, 6, 6))
    noisy = pairs + np.tril(rng.standard_normal((6, 6)))
    np.testing.assert_array_equal(
        quadratic_maximisers(linear, noisy), quadratic_maximisers(linear, pairs)
    )


@pytest.mark.parametrize("workload", [Marginals(INNER + 1, 2), Parities(INNER + 1, 2)])
def test_both_routes_of_2_way_workloads_find_the_best_score(workload) -> None:
    directions = np.random.default_rng(4).standard_normal((5, workload.n_queries))
    scores = [
        np.einsum("bm,bm->b", directions, workload.evaluate(workload.universe.elements_at(best)))
        for best in (
            quadratic_maximisers(*workload._quadratic_forms(directions)),
            workload._scores(directions).argmax(axis=1),
        )
    ]
    np.testing.assert_allclose(*scores, rtol=1e-13)
