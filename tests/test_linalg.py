"""Half-vectorisation and affine hulls."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geomdp._linalg import AffineHull, svec, unsvec


@given(d=st.integers(1, 7), batch=st.sampled_from([(), (3,), (2, 0), (2, 3)]))
def test_svec_is_an_isometry(d, batch):
    rng = np.random.default_rng(d)
    first, second = (rng.normal(size=(*batch, d, d)) for _ in range(2))
    first, second = first + np.swapaxes(first, -1, -2), second + np.swapaxes(second, -1, -2)
    assert svec(first).shape == (*batch, d * (d + 1) // 2)
    np.testing.assert_allclose(unsvec(svec(first)), first, rtol=1e-15)
    inner = (svec(first) * svec(second)).sum(axis=-1)
    np.testing.assert_allclose(inner, (first * second).sum(axis=(-1, -2)), atol=1e-12)


def test_order_of_svec():
    matrix = np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 5.0], [3.0, 5.0, 6.0]])
    root = np.sqrt(2)
    np.testing.assert_array_equal(svec(matrix), [1, 2 * root, 3 * root, 4, 5 * root, 6])


@pytest.mark.parametrize("length", [2, 4, 5, 7])
def test_lengths_that_are_no_triangle(length):
    with pytest.raises(ValueError, match=rf"length d \(d \+ 1\) / 2, got {length}"):
        unsvec(np.zeros(length))


@pytest.mark.parametrize("n_points", [1, 3, 6, 7, 5000, 20_000])
@pytest.mark.parametrize("rank", [0, 2, 6])
def test_affine_hull_of_points(n_points, rank):
    rng = np.random.default_rng(rank)
    points = 3 + rng.normal(size=(n_points, rank)) @ rng.normal(size=(rank, 6))
    hull = AffineHull.of_points(points)
    assert hull.dimension == min(rank, n_points - 1)
    assert hull.residual(points).max() < 1e-13
    np.testing.assert_allclose(hull.embed(hull.coordinates(points)), points, atol=1e-13)
