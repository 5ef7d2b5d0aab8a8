"""Means of norms and maxima of Gaussian vectors, and ball volumes, against formulas and draws."""

from __future__ import annotations

import math

import numpy as np
import pytest

from geomdp.bodies.balls import (
    mean_gaussian_maximum,
    mean_gaussian_modulus,
    mean_gaussian_norm,
    mean_norm,
    unit_ball_volume,
)
from tests.stats import mean_agrees


@pytest.mark.parametrize(
    ("m", "expected"), [(1, 0.797885), (2, 1.253314), (3, 1.595769), (10, 3.084328)]
)
def test_mean_norm_matches_the_formula_sheet(m: int, expected: float) -> None:
    assert abs(mean_gaussian_norm(m) - expected) <= 5e-7  # the sheet gives six decimals


@pytest.mark.parametrize("m", [1, 2, 3, 50, 198, 199, 200, 201, 10_000, 10**6, 10**9])
def test_mean_norms_of_neighbouring_dimensions_multiply_to_m(m: int) -> None:
    # Let mu_m be the mean norm in R^m. Then mu_m mu_(m+1) = 2 Gamma((m+2)/2) / Gamma(m/2) = m. From
    # m = 200 on, a series gives mu_m.
    assert math.isclose(mean_gaussian_norm(m) * mean_gaussian_norm(m + 1), m, rel_tol=4e-15)


@pytest.mark.parametrize("m", [1, 2, 7, 199, 200, 5000])
def test_mean_norm_lies_between_its_bounds(m: int) -> None:
    assert m / math.sqrt(m + 1) <= mean_gaussian_norm(m) <= math.sqrt(m)


def test_unit_ball_volumes() -> None:
    for m, expected in [(1, 2.0), (2, math.pi), (3, 4 * math.pi / 3)]:
        assert math.isclose(unit_ball_volume(m), expected, rel_tol=1e-14)
    for m in (1, 2, 3, 20, 300):
        ratio = unit_ball_volume(m + 2) / unit_ball_volume(m)
        assert math.isclose(ratio, 2 * math.pi / (m + 2), rel_tol=1e-12)


@pytest.mark.parametrize("m", [1, 2, 5, 60, 3000])
def test_quadrature_for_equal_scales_is_the_closed_form(m: int) -> None:
    assert math.isclose(mean_norm(np.full(m, 3.0)), 3 * mean_gaussian_norm(m), rel_tol=2e-15)


def test_quadrature_for_two_scales_is_an_elliptic_integral() -> None:
    # For independent standard normal g and h, and a >= b, the mean norm of (a g, b h) is
    # sqrt(2 / pi) a E(1 - b^2 / a^2), where E is the complete elliptic integral of the second kind.
    from scipy.special import ellipe

    for a, b in [(4.0, 3.0), (1.0, 1e-6), (1.0, 0.0)]:
        expected = math.sqrt(2 / math.pi) * a * ellipe(1 - (b / a) ** 2)
        assert math.isclose(mean_norm(np.array([b, a])), expected, rel_tol=4e-15)
    assert mean_norm(np.zeros(3)) == 0.0


def test_small_maxima_in_closed_form() -> None:
    root = math.sqrt(math.pi)
    for value, expected in [
        (mean_gaussian_maximum(1), 0.0),
        (mean_gaussian_maximum(2), 1 / root),
        (mean_gaussian_maximum(3), 1.5 / root),
        (mean_gaussian_modulus(1), math.sqrt(2 / math.pi)),
        (mean_gaussian_modulus(2), 2 / root),
    ]:
        assert math.isclose(value, expected, rel_tol=1e-12, abs_tol=1e-13)


@pytest.mark.statistical
def test_maxima_of_many_by_simulation() -> None:
    draws = np.random.default_rng(0).standard_normal((20_000, 40))
    mean_agrees(draws.max(axis=1), mean_gaussian_maximum(40), level=5e-7)
    mean_agrees(np.abs(draws).max(axis=1), mean_gaussian_modulus(40), level=5e-7)


@pytest.mark.parametrize("count", [10, 10**4, 10**9, 10**15])
def test_maxima_stay_below_the_union_bound(count: int) -> None:
    assert 0 < mean_gaussian_maximum(count) < math.sqrt(2 * math.log(count))
    assert mean_gaussian_maximum(count) < mean_gaussian_modulus(count)


def test_bad_dimension_raises() -> None:
    for function in (mean_gaussian_norm, unit_ball_volume, mean_gaussian_maximum):
        with pytest.raises(ValueError, match="at least 1"):
            function(0)
