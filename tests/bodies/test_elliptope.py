"""The elliptope: volume, moments and gauge."""

from __future__ import annotations

import math

import numpy as np
import pytest

from geomdp.bodies import Elliptope
from tests.stats import ks_uniform, mean_agrees


def test_known_volumes() -> None:
    assert Elliptope(2).volume() == pytest.approx(2.0, rel=1e-14)
    assert Elliptope(3).volume() == pytest.approx(math.pi**2 / 2, rel=1e-14)
    assert Elliptope(4).volume() == pytest.approx(32 * math.pi**2 / 27, rel=1e-14)


@pytest.mark.statistical
@pytest.mark.parametrize("order", [2, 5, 12])
def test_gauge_of_uniform_points_and_second_moment(order: int) -> None:
    """For uniform U, P(gauge(U) <= t) = t^dimension, and entries have variance 1 / (order + 1)."""
    body = Elliptope(order)
    points = body.sample_uniform(5000, np.random.default_rng(order))
    ks_uniform(body.gauge(points) ** body.dimension)
    mean_agrees(points[:, :, None] * points[:, None, :], body.second_moment(), level=1e-7)


def test_gauge_is_where_the_lowest_eigenvalue_vanishes() -> None:
    body = Elliptope(6)
    points = 3 * np.random.default_rng(1).standard_normal((20, body.dimension))
    gauges = body.gauge(points)
    matrices = body.matrices(points / gauges[:, None])
    np.testing.assert_allclose(np.linalg.eigvalsh(matrices)[:, 0], 0.0, atol=1e-12)


def test_order_is_checked() -> None:
    with pytest.raises(ValueError, match="order"):
        Elliptope(1)
