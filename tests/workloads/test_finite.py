"""Workloads on codes and on the Boolean cube: definitions, totals, and the search for extremes."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import geomdp as gd
from geomdp._numerics.linalg import zero_sum_basis
from geomdp.workloads import (
    CategoricalProduct,
    Histogram,
    Marginals,
    Parities,
    Prefixes,
    Ranges,
    WorkloadSizeError,
    explicit_answers,
)
from geomdp.workloads.compiled_loops import (
    INNER,
    LINE,
    corner_sum,
    quadratic_maximisers,
    quadratic_ranges,
    walsh_hadamard,
)

families = pytest.mark.parametrize("family", [Marginals, Parities])


@given(N=st.integers(1, 12))
def test_definitions_on_codes(N):
    elements = range(N)
    intervals = [(a, b) for a in elements for b in range(a, N)]
    np.testing.assert_array_equal(explicit_answers(Histogram(N)), np.eye(N))
    prefixes = [[x <= t for t in elements] for x in elements]
    np.testing.assert_array_equal(explicit_answers(Prefixes(N)), prefixes)
    ranges = [[a <= x <= b for a, b in intervals] for x in elements]
    np.testing.assert_array_equal(explicit_answers(Ranges(N)), ranges)


@given(d=st.integers(1, 7), data=st.data())
def test_definitions_on_the_cube(d, data):
    k = data.draw(st.integers(1, d))
    records = np.random.default_rng(d).integers(0, 2, (10, d))
    subsets = list(itertools.combinations(range(d), k))
    marginals = [[all(x[i] for i in S) for S in subsets] for x in records]
    parities = [[(-1) ** sum(x[i] for i in S) for S in subsets] for x in records]
    np.testing.assert_array_equal(Marginals(d, k).evaluate(records), marginals)
    np.testing.assert_array_equal(Parities(d, k).evaluate(records), parities)


def test_totals_count_large_inputs():
    records = np.arange(3_000_000) % 7
    counts = np.bincount(records)
    np.testing.assert_array_equal(Histogram(7).totals(records).sums, counts)
    np.testing.assert_array_equal(Prefixes(7).totals(records).sums, np.cumsum(counts))
    expected = [counts[a : b + 1].sum() for a in range(7) for b in range(a, 7)]
    np.testing.assert_array_equal(Ranges(7).totals(records).sums, expected)


@families
@pytest.mark.parametrize(
    ("d", "n"), [(6, 1), (6, 63), (6, 64), (6, 65), (6, 1000), (6, 70_000), (24, 100)]
)
def test_packed_totals_are_exact(family, d, n):
    workload = family(d, 3)  # for d = 24, there are two groups of packed queries
    records = workload.universe.sample(n, rng=n)
    totals = workload.totals(records)
    assert totals.count == n
    np.testing.assert_array_equal(totals.sums, workload.evaluate(records).sum(axis=0))


def test_ranges_never_build_their_matrix():
    # The 2000 x 2 million matrix would take 32 GB.
    workload = Ranges(2000)
    answers = workload.answers(np.array([0, 1999, 1000]))
    assert answers.shape == (2_001_000,)
    assert answers[1999] == 1  # the whole line
    direction = np.zeros((1, workload.n_queries))
    direction[0, 0] = 1  # the interval [0, 0]
    np.testing.assert_array_equal(
        workload.extreme_answers(direction), workload.evaluate(np.array([0]))
    )
    with pytest.raises(ValueError, match="N must be at most 511 for an affine hull, got 2000"):
        workload.affine_hull()


@pytest.mark.parametrize("size", [1, 2, 5])
def test_zero_sum_basis(size):
    basis = zero_sum_basis(size)
    assert basis.shape == (size, size - 1)
    np.testing.assert_allclose(basis.T @ basis, np.eye(size - 1), rtol=0, atol=1e-15)
    np.testing.assert_allclose(basis.sum(axis=0), 0, rtol=0, atol=1e-15)


@families
@pytest.mark.parametrize("k", [2, 3])  # pairs are enumerated, and larger sets are transformed
def test_extreme_answers_at_size(family, k):
    workload = family(14, k)
    directions = np.random.default_rng(3).normal(size=(5, workload.n_queries))
    answers = explicit_answers(workload)
    best = answers[(directions @ answers.T).argmax(axis=1)]
    np.testing.assert_array_equal(workload.extreme_answers(directions), best)
    with pytest.raises(ValueError, match=r"d must be at most 24 .* got 25"):
        family(25, k).extreme_answers(np.zeros((1, math.comb(25, k))))


@families
def test_signs_of_a_direction_determine_single_attributes(family):
    directions = np.random.default_rng(0).normal(size=(3, 200))
    answers = family(200, 1).extreme_answers(directions)
    low = 0 if family is Marginals else -1
    np.testing.assert_array_equal(answers, np.where(directions > 0, 1, low))


# The compiled loops, compared with the sums and maxima that define them


@given(d=st.integers(0, 8), b=st.integers(0, 3))
def test_walsh_hadamard_matrix(d, b):
    values = np.random.default_rng(d).normal(size=(b, 2**d))
    numbers = np.arange(2**d)
    signs = 1 - 2 * (np.bitwise_count(numbers[:, None] & numbers) % 2).astype(float)
    transformed = values.copy()
    walsh_hadamard(transformed)
    np.testing.assert_allclose(transformed, values @ signs, rtol=0, atol=1e-12)


@given(levels=st.lists(st.integers(1, 4), min_size=1, max_size=5), b=st.integers(0, 3))
def test_corner_sum(levels, b):
    elements = CategoricalProduct(levels).elements()
    values = np.random.default_rng(len(levels)).normal(size=(b, len(elements)))
    below = ((elements[:, None] == 0) | (elements[:, None] == elements)).all(axis=2)
    transformed = values.copy()
    corner_sum(transformed, np.array(levels))
    np.testing.assert_allclose(transformed, values @ below, rtol=0, atol=1e-12)


def form_values(linear: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """Values of the form at all points of the cube {0, 1}^m, in lexicographic order."""
    cube = np.array(list(itertools.product([0.0, 1.0], repeat=len(linear))))
    return cube @ linear + np.einsum("ni,ij,nj->n", cube, np.triu(pairs, 1), cube)


@pytest.mark.parametrize("size", [1, 2, LINE, LINE + 1, INNER, INNER + 2])
def test_extremes_of_quadratic_forms_are_those_of_enumeration(size: int) -> None:
    """Also with terms below the diagonal, which are not read."""
    rng = np.random.default_rng(size)
    linear, pairs = rng.standard_normal((3, size)), rng.standard_normal((3, size, size))
    expected = [form_values(*form) for form in zip(linear, pairs, strict=True)]
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


@pytest.mark.parametrize("kind", [Histogram, Prefixes])
def test_a_universe_too_large_for_a_basis_is_refused_and_still_has_noise(kind):
    with pytest.raises(WorkloadSizeError, match="at most 8192"):
        kind(100_000).affine_hull()
    best = gd.advise(Histogram(20_000), n=10**6, privacy=gd.PureDP(1.0), exact_only=True).best
    assert isinstance(best, gd.mechanisms.Geometric)
