"""Margins of the proofs that a body contains all differences: they cover rounding errors."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from geomdp.bodies import Ball, Body, Box, CrossPolytope, LpBall, Product
from geomdp.mechanisms.additive_noise.certify import _gauge_bound, longest_difference, proved_bound
from geomdp.privacy import Adjacency

#: Largest relative error of one rounding in float64.
ROUNDING = Fraction(1, 2**53)

BODIES: dict[str, Callable[[], Body]] = {
    "box": lambda: Box.centred([0.5, 2.0, 3.0]),
    "ball": lambda: Ball(3, 0.7),
    "cross polytope": lambda: CrossPolytope(3, 0.7),
    "l_1.5 ball": lambda: LpBall(1.5, 3, 0.7),
    "l_3 ball": lambda: LpBall(3.0, 3, 0.7),
    "product": lambda: Product([Ball(2, 0.7), Box.centred([0.5])]),
}


@pytest.mark.parametrize("rank", [1, 3, 50])
def test_the_exact_distance_is_below_its_proved_bound(rank: int) -> None:
    """Both points move apart by the error. About half of the computed distances are too small."""
    rng = np.random.default_rng(rank)
    error, below = 2.0**-40, 0
    for _ in range(200):
        images = rng.normal(size=(2, rank))
        first, second = ([Fraction(x) for x in row] for row in images.tolist())
        square = sum((a - b) ** 2 for a, b in zip(first, second, strict=True))
        longest = longest_difference(images, Adjacency.REPLACE_ONE)
        assert square <= Fraction(proved_bound(longest, 0.0, rank)) ** 2
        # The root is rounded down, by less than 2^-120.
        exact = Fraction(math.isqrt(int(square * 4**120)), 2**120) + 2 * Fraction(error)
        assert exact <= Fraction(proved_bound(longest, error, rank))
        below += Fraction(longest) + 2 * Fraction(error) < exact
    # Without a margin the bound fails. Suppose that one in ten distances is too small. Then none of
    # 200 is with probability 0.9^200 < 1e-9.
    assert below > 0


@pytest.mark.parametrize("rank", [1, 3, 50, 5000])
def test_the_margin_of_a_distance_covers_one_rounding_for_each_operation(rank: int) -> None:
    """A norm of `rank` entries takes 2 `rank` operations and a root. The bound takes a few more."""
    margin = Fraction(proved_bound(1.0, 0.0, rank)) - 1
    operations = 2 * rank + 1
    assert operations * ROUNDING <= margin <= 8 * (operations + 16) * ROUNDING


def inner_radius(body: Body) -> float:
    """The least distance from 0 to the boundary over directions that include the nearest ones."""
    signs = np.array([[1.0, 1, 1], [1, 1, 0], [1, 0, 1], [0, 1, 1], *np.eye(3)])
    directions = signs / np.linalg.norm(signs, axis=1)[:, None]
    return float(1 / body.gauge(directions).max())


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("adjacency", Adjacency)
def test_a_bound_on_gauges_is_above_the_gauge_by_its_margin(
    name: str, adjacency: Adjacency
) -> None:
    """The margin of 1e-10 covers the errors of powers and quotients."""
    body = BODIES[name]()
    point = np.array([[0.3, -0.7, 0.2]])
    images = np.vstack([point, np.zeros((1, 3))])
    gauge = float(body.gauge(point)[0])
    bound = _gauge_bound(body, images, 0.0, adjacency)
    assert gauge * (1 + 0.99e-10) <= bound <= gauge * (1 + 1.01e-10)


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("error", [1e-12, 0.1])
def test_errors_of_points_raise_the_bound_by_the_nearest_boundary(name: str, error: float) -> None:
    """Both points can move by the error, along the direction in which the body is thinnest."""
    body = BODIES[name]()
    most = 2 * error / inner_radius(body)
    bound = _gauge_bound(body, np.zeros((2, 3)), error, Adjacency.REPLACE_ONE)
    assert most * (1 + 0.99e-3) <= bound <= most * (1 + 1.01e-3)
