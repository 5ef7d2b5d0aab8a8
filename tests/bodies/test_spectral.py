"""Bodies of matrices: the formula sheet's moments, volumes and widths (JL-COV, JL-WIS, X-SPX)."""

from __future__ import annotations

import math

import numpy as np
import pytest

from geomdp._numerics.linalg import svec, unsvec
from geomdp.bodies import Difference, NuclearBall, Spectraplex, SpectraplexDifference
from geomdp.bodies.symmetrised import SymmetricHull
from tests.stats import LEVEL, binomial_agrees, mean_agrees, mean_at_most


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("body", "volume", "spread"),
    [
        (NuclearBall(2), math.pi / math.sqrt(2), 5 / 12),
        (SpectraplexDifference(2), 7 * math.pi / (3 * math.sqrt(2)), 109 / 140),
        (Spectraplex(2), Spectraplex(2).volume(), np.trace(Spectraplex(2).second_moment())),
    ],
    ids=["nuclear ball", "difference", "spectraplex"],
)
def test_moments_and_volumes_at_order_two(body, volume, spread):
    """Rejection from a box agrees with the volumes and with E ||U||_F^2 for uniform U (JL-COV)."""
    half = np.array([1, math.sqrt(2), 1])  # all |M_ij| <= 1, and svec multiplies M_12 by sqrt(2)
    box = np.random.default_rng(0).uniform(-1, 1, (40_000, 3)) * half
    accepted = box[body.contains(box)]
    binomial_agrees(len(accepted), len(box), volume / (8 * math.sqrt(2)))
    mean_agrees((accepted**2).sum(axis=1), spread)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_spectraplex_volume(d):
    """The body is a segment for d = 1 and a cone over a disc for d = 2."""
    volume = Spectraplex(d).volume()
    if d == 1:
        assert volume == pytest.approx(1)
    elif d == 2:
        # {M psd, tr M = 1} is a disc of radius 1/sqrt(2) at distance 1/sqrt(2) from 0.
        assert volume == pytest.approx(math.pi / 2 / math.sqrt(2) / 3)
    else:
        # The volume is 2^(3/2) Gamma_3(2) / 6!, and the multivariate gamma function is
        # Gamma_3(2) = pi^(3/2) Gamma(2) Gamma(3/2) Gamma(1) = pi^2 / 2.
        assert volume == pytest.approx(2**1.5 * math.pi**2 / 2 / 720)


@pytest.mark.statistical
@pytest.mark.parametrize("d", [2, 4])
def test_wishart_difference_has_the_energy_of_the_sheet(d):
    """Independent copies A, B of r U have E ||A - B||_F^2 = d (d + 1)^2 / (2 rate^2) (JL-WIS)."""
    # U is uniform in the spectraplex, of dimension D, and r ~ Gamma(D + 1) has the given rate.
    body, rng, rate = Spectraplex(d), np.random.default_rng(d), 1.3
    D = body.dimension
    parts = [
        rng.gamma(D + 1, 1 / rate, (8000, 1)) * body.sample_uniform(8000, rng) for _ in range(2)
    ]
    mean_agrees(((parts[0] - parts[1]) ** 2).sum(axis=1), d * (d + 1) ** 2 / (2 * rate**2))
    # For the rate 1, the closed forms of the moments of U give the same number, because
    # E ||A - B||^2 = 2 (E ||A||^2 - ||E A||^2).
    square = (D + 1) * (D + 2) * np.trace(body.second_moment())
    mean = (D + 1) * np.linalg.norm(body.centroid())
    assert 2 * (square - mean**2) == pytest.approx(d * (d + 1) ** 2 / 2, rel=1e-12)


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("d", "width", "digits"), [(1, 0.3989, 4), (2, 0.925, 3), (5, 2.313, 3), (10, 3.746, 3)]
)
def test_widths_of_the_sheet(d, width, digits):
    """JL-COV gives the Gaussian width of the spectraplex, E max(0, lambda_max), to few decimals."""
    body = Spectraplex(d)
    heights = body.support(np.random.default_rng(d).standard_normal((8000, body.dimension)))
    # The number in the formula sheet may be wrong by one unit of its last digit.
    mean_at_most(heights, width + 10.0**-digits, level=LEVEL / 8)
    mean_at_most(-heights, -width + 10.0**-digits, level=LEVEL / 8)


@pytest.mark.parametrize("d", [1, 2, 4])
def test_closed_forms_agree_with_their_definitions(d):
    K = Spectraplex(d)
    directions = np.random.default_rng(d).standard_normal((6, K.dimension))
    for closed, wrapper in (
        (SpectraplexDifference(d), Difference(K)),
        (NuclearBall(d), SymmetricHull(K)),
    ):
        np.testing.assert_allclose(closed.support(directions), wrapper.support(directions))
        corners = closed.extreme_point(directions)
        np.testing.assert_allclose(corners, wrapper.extreme_point(directions), atol=1e-12)


def test_gauges_through_eigenvalues():
    matrix = np.diag([3.0, 1.0, -2.0])
    turn = np.linalg.qr(np.random.default_rng(0).standard_normal((3, 3)))[0]
    point = svec(turn @ matrix @ turn.T)[None]
    assert SpectraplexDifference(3).gauge(point)[0] == pytest.approx(4)
    assert SpectraplexDifference(3).gauge(-point)[0] == pytest.approx(4)
    assert NuclearBall(3).gauge(point)[0] == pytest.approx(6)
    nearest = unsvec(SpectraplexDifference(3).project(point))[0]
    np.testing.assert_allclose(np.linalg.eigvalsh(nearest), [-1, 0, 1], atol=1e-12)
    nearest = unsvec(Spectraplex(3).project(point))[0]
    np.testing.assert_allclose(np.linalg.eigvalsh(nearest), [0, 0, 1], atol=1e-12)


def test_extreme_point_where_nothing_is_gained():
    negative = svec(-np.eye(3))[None]
    assert not Spectraplex(3).extreme_point(negative).any()
    assert Spectraplex(3).support(negative)[0] == 0
    assert SpectraplexDifference(3).support(negative)[0] == pytest.approx(1)


@pytest.mark.parametrize("kind", [Spectraplex, SpectraplexDifference, NuclearBall])
@pytest.mark.parametrize("d", [0, -1, 2.5, "2"])
def test_bad_orders_are_refused(kind, d):
    with pytest.raises(ValueError, match="d must be a whole number"):
        kind(d)
