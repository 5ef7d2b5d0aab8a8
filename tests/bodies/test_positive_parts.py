"""Exit times and projections for sums of positive parts satisfy their definitions."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from geomdp.bodies.oracles import exit_time, nearest_in_corner, nearest_in_simplex

entries = st.floats(-8, 8).map(lambda x: round(x, 3))
rows = st.integers(1, 6).flatmap(lambda k: arrays(float, (3, k), elements=entries))


def positive_sum(values):
    return np.maximum(values, 0).sum(axis=-1)


@settings(deadline=None)
@given(rows, st.randoms(use_true_random=False))
def test_exit_time_is_where_the_sum_passes_the_level(values, random):
    slopes = np.round([[random.uniform(-3, 3) for _ in row] for row in values], 2)
    level = positive_sum(values).max() + 1
    times = exit_time(values, slopes, level)
    rising = (slopes > 0).any(axis=1)
    assert (np.isinf(times) == ~rising).all()
    at, beyond = times[rising, None], times[rising, None] * (1 + 1e-9)
    reached = positive_sum(values[rising] + at * slopes[rising])
    np.testing.assert_allclose(reached, level, rtol=1e-12)
    assert (positive_sum(values[rising] + beyond * slopes[rising]) > level).all()


def test_exit_time_is_zero_from_outside():
    assert exit_time(np.array([[1.0, 1.0]]), np.array([[1.0, 1.0]]), 1.0)[0] == 0


@settings(deadline=None)
@given(rows, st.sampled_from([1e-3, 1.0, 50.0]))
def test_projections_satisfy_the_variational_inequality(values, level):
    size = np.abs(values).max() + level  # bounds the entries and the level
    corners = level * np.eye(values.shape[1])
    for nearest, others in (
        (nearest_in_simplex(values, level), corners),
        (nearest_in_corner(values, level), np.vstack([corners, 0 * corners[:1]])),
    ):
        assert nearest.min() >= 0
        assert (nearest.sum(axis=1) <= level + 1e-14 * size).all()
        residual = values - nearest
        gaps = residual @ others.T - np.einsum("bk,bk->b", residual, nearest)[:, None]
        assert gaps.max() <= 1e-14 * size**2
    sums = nearest_in_simplex(values, level).sum(axis=1)
    np.testing.assert_allclose(sums, level, rtol=0, atol=1e-14 * size)


def test_projection_on_a_corner_keeps_inner_points():
    inside = np.array([[0.2, 0.3, 0.0], [0.5, 0.5, 0.0]])
    np.testing.assert_array_equal(nearest_in_corner(inside, 1.0), inside)
    assert nearest_in_corner(np.array([[-1.0, -2.0]]), 1.0).tolist() == [[0, 0]]
    assert nearest_in_simplex(np.array([[2.0, 2.0]]), 1.0).tolist() == [[0.5, 0.5]]
    nearest = nearest_in_corner(np.array([[1, 0.5, -1]]), 1.0)
    np.testing.assert_allclose(nearest, [[0.75, 0.25, 0]], rtol=1e-15)
