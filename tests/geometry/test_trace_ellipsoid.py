"""The least-trace ellipsoid: duality certificate, containment, and the closed forms of JL-ELL."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import pdist

from geomdp.geometry import ellipsoids
from geomdp.geometry.ellipsoids import (
    INFLATION,
    PairDifferences,
    Rows,
    capped_ellipsoid,
    least_trace_ellipsoid,
    profile_ellipsoid,
)


def pair_differences(points):
    return np.array([a - b for a, b in itertools.combinations(points, 2)])


def gauges(root, vectors):
    return np.linalg.norm(np.linalg.solve(root, vectors.T), axis=0)


def test_axis_vectors_have_the_closed_form_value():
    lengths = np.array([3.0, 1.0, 0.5, 0.01])
    found = least_trace_ellipsoid(Rows(np.diag(lengths)), tolerance=1e-12)
    # JL-ELL: for the vectors a_i e_i the optimum is S = diag(a_i^2). Its trace is sum a_i^2.
    assert found.converged
    assert found.gap <= 1e-12
    np.testing.assert_allclose(found.trace, (lengths**2).sum(), rtol=1e-11 + INFLATION)
    np.testing.assert_allclose(found.root, np.diag(lengths), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("kind", ["gaussian", "anisotropic", "cube", "simplex", "duplicated"])
def test_every_difference_is_inside_and_the_gap_is_true(kind):
    rng = np.random.default_rng(5)
    points = {
        "gaussian": rng.standard_normal((40, 6)),
        "anisotropic": rng.standard_normal((30, 5)) * [1e3, 10, 1, 0.1, 1e-3] + 1e6,
        "cube": np.array(list(itertools.product((0.0, 1.0), repeat=5))),
        "simplex": np.eye(6)[:, :5],
        "duplicated": np.repeat(rng.standard_normal((8, 3)), 4, axis=0),
    }[kind]
    found = least_trace_ellipsoid(PairDifferences(points))
    vectors = pair_differences(points)
    assert found.converged
    assert gauges(found.root, vectors).max() <= 1 + 1e-12
    np.testing.assert_allclose(found.trace, (found.root**2).sum(), rtol=1e-10)
    # By weak duality, every ellipsoid around the vectors has a trace of `least` or more.
    weights = np.full(len(vectors), 1 / len(vectors))
    for _ in range(4000):
        # The SVD of the weighted vectors does not square their condition number, as W would.
        half = vectors * np.sqrt(weights)[:, None]
        _, lengths, axes = np.linalg.svd(half, full_matrices=False)
        scores = ((vectors @ axes.T) ** 2 / np.maximum(lengths, 1e-12 * lengths[0])).sum(axis=1)
        weights = weights * scores**2
        weights /= weights.sum()
    least = lengths.sum() ** 2
    assert least <= found.trace * (1 + 1e-9)
    assert found.trace <= least * (1 + 1e-3 + 1e-4)
    if kind == "cube":  # the corners of K - K are all sign vectors, so S = d I by symmetry
        np.testing.assert_allclose(found.root, np.sqrt(5) * np.eye(5), atol=1e-3)


def test_stopping_early_stays_feasible(monkeypatch):
    monkeypatch.setattr(ellipsoids, "MAX_SEARCHES", 1)
    monkeypatch.setattr(ellipsoids, "MAX_UPDATES", 1)
    points = np.random.default_rng(1).standard_normal((60, 8))
    found = least_trace_ellipsoid(PairDifferences(points))
    assert not found.converged
    assert gauges(found.root, pair_differences(points)).max() <= 1 + 1e-12
    profiles = np.random.default_rng(4).random((50, 6))
    axes = profile_ellipsoid(np.arange(1, 7), profiles)
    assert (profiles / axes**2).sum(axis=1).max() <= 1


@pytest.mark.parametrize(
    ("message", "call"),
    [
        ("not all be 0", lambda: least_trace_ellipsoid(Rows(np.zeros((2, 2))))),
        ("diameter", lambda: capped_ellipsoid([1], [0.0], 1.0)),
        ("diameter", lambda: capped_ellipsoid([1], [np.nan], 1.0)),
        ("diameter", lambda: capped_ellipsoid([1], [1], 0)),
        ("profiles", lambda: profile_ellipsoid([1, 1], np.array([[1.0, 0.0], [2.0, 0.0]]))),
        ("profiles", lambda: profile_ellipsoid([1, 1], np.array([[1.0, -1.0]]))),
    ],
)
def test_sets_without_an_ellipsoid_are_refused(message, call):
    with pytest.raises(ValueError, match=message):
        call()


def test_search_counts_pairs_once_and_averages_them():
    points = np.random.default_rng(0).standard_normal((700, 3))  # more rows than one block
    pairs = PairDifferences(points)
    lengths = pdist(points) ** 2
    level = float(np.quantile(lengths, 0.99))
    listed = pairs.longest(np.eye(3), 2 * level - lengths.max(), 10**6)
    assert listed.largest == pytest.approx(lengths.max(), rel=1e-12)
    assert listed.vectors is not None
    assert len(listed.vectors) == int((lengths >= level).sum())
    outer = listed.vectors.T @ listed.vectors / len(listed.vectors)
    np.testing.assert_allclose(listed.mean, outer, rtol=1e-9)
    assert pairs.longest(np.eye(3), 2 * level - lengths.max(), 10).vectors is None


@pytest.mark.parametrize("kind", [Rows, PairDifferences])
def test_a_search_finds_the_longest_vector_even_below_the_level(kind):
    # The level is a computed trace. Rounding can make it larger than all squared lengths.
    found = kind(np.eye(3)).longest(np.eye(3), level=2.0 + 1e-12, limit=10)
    assert found.vectors is not None
    assert len(found.vectors) > 0
    assert np.isfinite(found.mean).all()


def test_lower_dimensional_sets_get_a_thin_ellipsoid():
    vectors = np.array([[1.0, 1.0], [2.0, 2.0]])
    found = least_trace_ellipsoid(Rows(vectors))
    # The optimum is the segment from (-2, -2) to (2, 2). Its trace is 8.
    np.testing.assert_allclose(found.trace, 8.0, rtol=1e-6)
    assert found.gap <= 1e-3
    assert gauges(found.root, vectors).max() <= 1


def test_caps_give_the_ball_and_the_product():
    sizes = np.array([1, 4, 9])
    np.testing.assert_allclose(capped_ellipsoid(sizes, [9, 9, 9], 2.0), 2.0, rtol=1e-8)
    # The bound 100 on the whole vector is never reached. So the squared semi-axis of block i is
    # d_i / sqrt(r_i) times the sum of d_j sqrt(r_j), for diameters d_i and sizes r_i.
    diameters = np.array([1.0, 2.0, 0.5])
    squares = diameters / np.sqrt(sizes) * (diameters * np.sqrt(sizes)).sum()
    np.testing.assert_allclose(
        capped_ellipsoid(sizes, diameters, 100.0), np.sqrt(squares), rtol=1e-8
    )


@given(
    st.lists(st.tuples(st.integers(1, 9), st.floats(0.1, 10)), min_size=1, max_size=6),
    st.floats(0.1, 10),
)
def test_caps_are_feasible_and_no_worse_than_ball_and_product(bounds, diameter):
    sizes = np.array([size for size, _ in bounds])
    caps = np.array([cap for _, cap in bounds])
    squares = capped_ellipsoid(sizes, caps, diameter) ** 2
    # Maximise the sum of u_i / squares_i, with u_i at most caps_i^2 and the sum of the u_i at
    # most diameter^2: fill the blocks with the smallest squares first.
    left, value = diameter**2, 0.0
    for i in np.argsort(squares):
        share = min(left, caps[i] ** 2)
        value, left = value + share / squares[i], left - share
    assert value <= 1 + 1e-12
    trace = float((sizes * squares).sum())
    slack = 1 + 1e-8
    assert trace <= sizes.sum() * diameter**2 * slack
    assert trace <= float((caps * np.sqrt(sizes)).sum()) ** 2 * slack


def test_profiles_agree_with_the_general_optimisation_on_axes():
    rng = np.random.default_rng(3)
    vectors = rng.standard_normal((30, 4))
    # The set is closed under sign changes, so S is diagonal and depends on squares alone.
    signs = np.array(list(itertools.product((-1.0, 1.0), repeat=4)))
    signed = (vectors[:, None] * signs).reshape(-1, 4)
    general = least_trace_ellipsoid(Rows(signed), tolerance=1e-4)
    axes = profile_ellipsoid(np.ones(4), vectors**2, tolerance=1e-4)
    np.testing.assert_allclose((axes**2).sum(), general.trace, rtol=3e-4)
    assert ((vectors / axes) ** 2).sum(axis=1).max() <= 1
