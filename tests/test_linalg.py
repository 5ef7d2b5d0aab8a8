"""Half-vectorisation, affine hulls and diagonal matrices."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geomdp._numerics.linalg import (
    RANK_TOLERANCE,
    AffineHull,
    is_diagonal,
    significant,
    svec,
    unsvec,
)
from geomdp.bodies import Ellipsoid, LinearImage, MissingOracle, SlabBody
from geomdp.bodies.base import MEMBERSHIP_TOLERANCE
from geomdp.geometry.sampling.samplers import plain_walk


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


def test_a_single_entry_off_the_diagonal_counts():
    matrix = np.diag([2.0, 0.0, -1.0])
    assert is_diagonal(matrix)
    matrix[2, 1] = 1e-300
    assert not is_diagonal(matrix)


@pytest.mark.parametrize("n_points", [1, 3, 6, 7, 5000, 20_000])
@pytest.mark.parametrize("rank", [0, 2, 6])
def test_affine_hull_of_points(n_points, rank):
    rng = np.random.default_rng(rank)
    points = 3 + rng.normal(size=(n_points, rank)) @ rng.normal(size=(rank, 6))
    hull = AffineHull.of_points(points)
    assert hull.dimension == min(rank, n_points - 1)
    assert hull.residual(points).max() < 1e-13
    np.testing.assert_allclose(hull.embed(hull.coordinates(points)), points, atol=1e-13)


def test_zero_singular_values():
    np.testing.assert_array_equal(significant(np.array([5.0, 6e-9, 4e-9])), [True, True, False])
    np.testing.assert_array_equal(significant(np.array([1.0, 1e-8]), scale=20.0), [True, False])
    assert not significant(np.zeros(2)).any()
    assert significant(np.empty(0)).shape == (0,)


@pytest.mark.parametrize(("thinness", "rank"), [(2 * RANK_TOLERANCE, 3), (RANK_TOLERANCE / 2, 2)])
def test_hull_body_ellipsoid_and_walk_see_the_same_rank(thinness, rank):
    matrix = np.diag([1.0, 0.7, thinness])
    cube = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) @ matrix
    image = LinearImage(matrix, SlabBody(np.eye(3), np.ones(3)))
    assert AffineHull.of_points(cube).dimension == rank
    assert image.affine_hull().dimension == rank
    assert Ellipsoid(matrix).effective_dimension == rank
    if rank == 3:
        assert plain_walk(image).body.dimension == rank
    else:
        with pytest.raises(MissingOracle, match="one-to-one"):
            plain_walk(image)


def test_what_passes_for_flat_is_within_the_slack_of_membership():
    assert RANK_TOLERANCE == MEMBERSHIP_TOLERANCE
