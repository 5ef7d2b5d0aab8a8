"""Workloads on finite universes: definitions, totals, searches for extremes; explicit workloads."""

import itertools
import math

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import geomdp as gd
from geomdp._numerics.compilation import (
    INNER,
    LINE,
    quadratic_maximisers,
    quadratic_ranges,
)
from geomdp.workloads import (
    Explicit,
    Histogram,
    LinearMap,
    Marginals,
    MarginalTables,
    Parities,
    Prefixes,
    Ranges,
    SecondMoment,
    WorkloadSizeError,
    explicit,
    explicit_answers,
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


# The compiled loops, compared with the sums and maxima that define them


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
    assert quadratic_maximisers(0 * linear, 0 * pairs).tolist() == [0, 0, 0]  # all points tie


@pytest.mark.parametrize("kind", [Histogram, Prefixes])
def test_a_universe_too_large_for_a_basis_is_refused_and_still_has_noise(kind):
    with pytest.raises(WorkloadSizeError, match="at most 8192"):
        kind(100_000).affine_hull()
    best = gd.advise(Histogram(20_000), n=10**6, privacy=gd.PureDP(1.0), exact_only=True).best
    assert isinstance(best, gd.mechanisms.Geometric)


# --- explicit workloads, linear images, diameters of point sets -----------------------------------

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


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Explicit(sp.coo_array(np.ones(3))), r"must have 2 axes, got shape \(3,\)"),
        (lambda: Explicit(sp.csr_array(np.ones(3))), r"must have 2 axes, got shape \(3,\)"),
        (lambda: Explicit(np.zeros((0, 3))), "must have rows and columns"),
        (lambda: Explicit(np.zeros((3, 0))), "must have rows and columns"),
        (lambda: Explicit(sp.csr_array(np.array([[1.0, np.inf]]))), "matrix must be finite"),
        (lambda: Explicit(sp.csr_array((0, 3))), "must have rows and columns"),
        (lambda: LinearMap(SecondMoment(3), np.zeros((2, 3))), r"\(p, 6\), p >= 1, got \(2, 3\)"),
        (lambda: LinearMap(SecondMoment(3), np.zeros((0, 6))), r"shape \(p, 6\)"),
    ],
)
def test_refusals(build, message):
    with pytest.raises(ValueError, match=message):
        build()
