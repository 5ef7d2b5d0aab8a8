"""Numerical helpers: half-vectors, affine hulls, diagonal matrices, bisection, compilation."""

import logging
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba.core.event import install_listener

from geomdp._numerics.compilation import _Announcement, numba
from geomdp._numerics.linalg import (
    RANK_TOLERANCE,
    AffineHull,
    is_diagonal,
    largest_at_most,
    least_whole,
    significant,
    svec,
    unsvec,
)
from geomdp.bodies import Ellipsoid, LinearImage, MissingOracle, SlabBody
from geomdp.bodies.base import MEMBERSHIP_TOLERANCE
from geomdp.cli.display import COMPILATION, working
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
    upper = first[..., *np.triu_indices(d)]  # the order of entries, by rows
    np.testing.assert_array_equal(svec(first)[..., 0], upper[..., 0])
    np.testing.assert_array_equal(np.sign(svec(first)), np.sign(upper))
    longer = d * (d + 1) // 2 + 1
    with pytest.raises(ValueError, match=rf"length d \(d \+ 1\) / 2, got {longer}"):
        unsvec(np.zeros(longer))


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
    # What passes for flat is within the slack of membership.
    assert RANK_TOLERANCE == MEMBERSHIP_TOLERANCE
    diagonal = np.diag([2.0, 0.0, -1.0])
    assert is_diagonal(diagonal)
    assert not is_diagonal(diagonal + 1e-300 * np.eye(3)[[1, 0, 2]])


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


# --- bisection ------------------------------------------------------------------------------


@given(st.floats(1e-150, 1e150))
def test_it_stops_at_the_last_float(root):
    found = largest_at_most(lambda x: x * x, root * root, 0.0, 4 * root)
    assert found * found <= root * root
    assert math.nextafter(found, math.inf) ** 2 > root * root


def test_the_ends_of_the_bracket():
    assert largest_at_most(math.atan, 2.0, -1.0, 5.0) == 5.0  # atan is below 2 on [-1, 5]
    assert largest_at_most(math.floor, 2.0, 0.0, 5.0) == math.nextafter(3.0, 0.0)
    with pytest.raises(ValueError, match=r"function\(1.0\) must be at most 0.5, got 1.0"):
        largest_at_most(lambda x: x, 0.5, 1.0, 2.0)


@given(st.integers(1, 10**9), st.integers(0, 10**9))
def test_the_least_whole_number(first, below):
    asked = []

    def enough(number):
        asked.append(number)
        return number >= first

    low, high = max(0, first - 1 - below), first + below
    assert least_whole(enough, low, high) == first
    assert not {low, high} & set(asked)


# --- compilation ----------------------------------------------------------------------------


def test_one_line_is_logged_however_many_functions_are_compiled(caplog):
    first, second = numba.njit(lambda x: x + 1), numba.njit(lambda x: x + 2)
    with (
        caplog.at_level(logging.INFO, logger=COMPILATION.name),
        install_listener("numba:compile", _Announcement()),
    ):
        assert first(1) == 2
        assert second(1) == 3
    said = [record.message for record in caplog.records if record.name == COMPILATION.name]
    # The listener of the library logs a line, too, unless this process has compiled before.
    assert 1 <= len(said) <= 2
    assert all("compiling" in message for message in said)


def test_the_command_writes_it_to_standard_error(capsys, caplog):
    with caplog.at_level(logging.INFO, logger=COMPILATION.name):
        with working("a step"):
            COMPILATION.info("compiling")
        COMPILATION.info("after the step")
    assert capsys.readouterr().err.splitlines() == ["geomdp: compiling"]
