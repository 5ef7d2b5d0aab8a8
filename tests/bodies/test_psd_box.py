"""Positive semidefinite matrices with bounded diagonal: sampler, moments, members (X-PSDBOX)."""

from __future__ import annotations

import math

import numpy as np
import pytest

from geomdp._numerics.linalg import svec, unsvec
from geomdp.bodies import PsdBox
from tests.stats import binomial_agrees, ks_same, ks_uniform, mean_agrees


@pytest.mark.statistical
def test_sampler_agrees_with_rejection_from_a_box() -> None:
    """For d = 2, draw (M_11, M_22, M_12) in [0, 1]^2 x [-1, 1]; accept if M_12^2 <= M_11 M_22."""
    rng = np.random.default_rng(0)
    a, c, b = rng.random(60_000), rng.random(60_000), rng.uniform(-1, 1, 60_000)
    inside = b**2 <= a * c
    accepted = np.column_stack([a, math.sqrt(2) * b, c])[inside]
    drawn = PsdBox(2).sample_uniform(20_000, rng)
    for statistic in (lambda x: x[:, 0], lambda x: x[:, 1], lambda x: x[:, 0] * x[:, 2] - x[:, 1]):
        ks_same(statistic(drawn), statistic(accepted), level=1e-6 / 3)
    # The box has volume 2 sqrt(2) in svec coordinates.
    binomial_agrees(int(inside.sum()), len(inside), PsdBox(2).volume() / (2 * math.sqrt(2)))


@pytest.mark.statistical
@pytest.mark.parametrize("d", [1, 2, 5, 9])
def test_moments_and_diagonals(d: int) -> None:
    body = PsdBox(d)
    points = body.sample_uniform(5000, np.random.default_rng(d))
    assert body.contains(points, 1e-12).all()
    mean_agrees(points, body.centroid(), level=5e-7)
    mean_agrees(points[:, :, None] * points[:, None, :], body.second_moment(), level=4e-7)
    # P(M_ii <= t) = t^((d + 1) / 2).
    ks_uniform(unsvec(points)[:, 0, 0] ** ((d + 1) / 2), level=1e-7)


def test_holds_second_moments_of_the_cube_and_no_more_than_it_should() -> None:
    rng = np.random.default_rng(1)
    body = PsdBox(4)
    records = rng.uniform(-1, 1, (200, 4))
    products = svec(records[:, :, None] * records[:, None, :])
    assert body.contains(products).all()
    # The second moment matrix of several records is the mean of their matrices.
    for count in (2, 5, 50):
        assert body.contains(products.reshape(-1, count, products.shape[1]).mean(axis=1)).all()
    signs = np.sign(rng.standard_normal((50, 4)))
    corners = svec(signs[:, :, None] * signs[:, None, :])
    assert body.contains(corners).all()
    np.testing.assert_allclose(np.linalg.norm(corners, axis=1), body.radius(), rtol=1e-15)
    assert not body.contains(1.001 * corners).any()
    assert not body.contains(-corners).any()
    long = svec(np.diag([1.01, 0, 0, 0])[None])
    flat = svec(np.array([[[1, 1.01], [1.01, 1]]]))
    assert not body.contains(long).any()
    assert not PsdBox(2).contains(flat).any()


def test_order_is_checked() -> None:
    with pytest.raises(ValueError, match="d must be"):
        PsdBox(0)
