"""Bodies of matrices: values of the sheet (JL-COV, JL-WIS, X-SPX), and coupling from the past."""

import itertools
import math

import numpy as np
import pytest
from scipy.integrate import quad

from geomdp._numerics.linalg import svec, unsvec
from geomdp.bodies import NuclearBall, Spectraplex, SpectraplexDifference
from geomdp.bodies.coupling_from_the_past import (
    _block,
    difference_spectra,
    gas_spectra,
    heat_bath,
    nuclear_spectra,
    sweeps,
)
from geomdp.bodies.spectral import _gas, difference_moments, eigenvalues, nuclear_moments
from tests.stats import LEVEL, binomial_agrees, ks_same, ks_uniform, mean_agrees, mean_at_most


def test_spectraplex_volumes():
    assert Spectraplex(1).volume() == pytest.approx(1)
    # For d = 2, a cone over the disc {M psd, tr M = 1} of radius and distance 1/sqrt(2) from 0.
    assert Spectraplex(2).volume() == pytest.approx(math.pi / 2 / math.sqrt(2) / 3)
    # For d = 3, 2^(3/2) Gamma_3(2) / 6!, and Gamma_3(2) = pi^(3/2) Gamma(2) Gamma(3/2) Gamma(1).
    assert Spectraplex(3).volume() == pytest.approx(2**1.5 * math.pi**2 / 2 / 720)


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


#: Functions of n ascending spectra (n, d). Together they depend on every eigenvalue.
STATISTICS = {
    "smallest": lambda x: x[:, 0],
    "largest": lambda x: x[:, -1],
    "trace": lambda x: x.sum(axis=1),
    "squares": lambda x: (x**2).sum(axis=1),
    "positive part": lambda x: np.maximum(x, 0).sum(axis=1),
    "smallest gap": lambda x: np.diff(x, axis=1).min(axis=1),
    "number above 0": lambda x: (x > 0).sum(axis=1) + 0.0,
}


@pytest.mark.parametrize("d", [2, 3, 9])
def test_quantiles_of_one_particle(d):
    """The distribution function at the u-quantile is u, by adaptive quadrature."""
    rng = np.random.default_rng(d)
    for scale in (0.2, 1.0, 4.0):
        points = np.sort(scale * d * rng.uniform(-1, 1, d))
        for i in {0, d // 2, d - 1}:
            others, u = np.delete(points, i), rng.random()
            low = points[i - 1] if i else -80.0 - 4 * d * scale
            high = points[i + 1] if i < d - 1 else 80.0 + 4 * d * scale
            x = heat_bath(u, points, i)
            assert low < x < high

            def mass(a, b, others=others):
                ends = sorted([*np.linspace(a, b, 30), *([0.0] if a < 0 < b else [])])

                def density(t):
                    return math.exp(-abs(t)) * np.prod(np.abs(t - others))

                return math.fsum(
                    quad(density, *pair, epsabs=0, epsrel=1e-12)[0]
                    for pair in itertools.pairwise(ends)
                )

            below, above = mass(low, x), mass(x, high)
            assert below / (below + above) == pytest.approx(u, abs=1e-11)


def test_common_uniforms_keep_states_ordered():
    rng = np.random.default_rng(1)
    low = np.sort(rng.standard_normal(6))
    high = low + rng.exponential(size=6).cumsum()
    assert (np.diff(high) > 0).all()
    lowest, highest = np.full(6, -np.inf), np.full(6, np.inf)
    for _ in range(8):
        uniforms = rng.random((2, 6))
        states = [lowest, low, high, highest]
        for state in states:
            sweeps(state, uniforms)
            assert (np.diff(state) > 0).all()
        for below, above in itertools.pairwise(states):
            assert (below <= above + 1e-12).all()
    # The states that started at -inf and at +inf are finite after the sweeps.
    assert np.isfinite(lowest).all()
    assert np.isfinite(highest).all()


@pytest.mark.statistical
def test_blocks_keep_exact_states_whether_they_coalesce_or_not():
    """With six sweeps many blocks do not coalesce, but the states must keep their distribution."""
    rng = np.random.default_rng(3)
    start = gas_spectra(3000, 3, rng)
    outcomes = [_block(rng, 6, state, True) for state in start]
    assert 0.2 < np.mean([coalesced for coalesced, _ in outcomes]) < 0.8
    ends = np.array([end for _, end in outcomes])
    fresh = gas_spectra(3000, 3, rng)
    for statistic in STATISTICS.values():
        ks_same(statistic(ends), statistic(fresh), LEVEL / len(STATISTICS))


def wishart_differences(d: int, tries: int, rng: np.random.Generator) -> np.ndarray:
    """Spectra of uniform points of K - K, by rejection sampling; K is the spectraplex.

    Let A and B be uniform on K. M = A - B is accepted if A - M_+ is psd, where M_+ is the positive
    part of M. Given M, the accepted A are the M_+ + X with X psd and tr X <= 1 - ||M||, where ||.||
    is the gauge of K - K. Their volume is proportional to (1 - ||M||)^D with D = d (d + 1) / 2. So
    M / ||M|| has the same distribution as for a uniform point of K - K. The probability of
    acceptance is vol(K - K) / (C(2 D, D) vol(K)), which is at most 1 by Rogers and Shephard.
    """
    K = Spectraplex(d)
    A, B = K.sample_uniform(tries, rng), K.sample_uniform(tries, rng)
    positive = K.project(A - B)  # the projection is M_+, because tr M_+ <= 1
    accepted = (A - B)[eigenvalues(A - positive)[:, 0] >= -1e-12]
    sizes = rng.random((len(accepted), 1)) ** (1 / K.dimension)
    gauges = SpectraplexDifference(d).gauge(accepted)
    return eigenvalues(sizes * accepted / gauges[:, None])


@pytest.mark.statistical
@pytest.mark.parametrize(("d", "tries"), [(2, 6000), (4, 24_000)])
def test_difference_spectra_agree_with_rejection(d, tries):
    rng = np.random.default_rng(d)
    expected = wishart_differences(d, tries, rng)
    D = d * (d + 1) // 2
    ratio = SpectraplexDifference(d).volume() / Spectraplex(d).volume()
    binomial_agrees(len(expected), tries, ratio / math.comb(2 * D, D))
    drawn = difference_spectra(3000, d, rng)
    for statistic in STATISTICS.values():
        ks_same(statistic(drawn), statistic(expected), LEVEL / len(STATISTICS))


@pytest.mark.statistical
def test_nuclear_spectra_agree_with_rejection_from_the_difference():
    """Uniform points of the difference body that lie in the nuclear ball are uniform there."""
    rng = np.random.default_rng(5)
    inside = difference_spectra(6000, 3, rng)
    inside = inside[np.abs(inside).sum(axis=1) <= 1]
    ratio = NuclearBall(3).volume() / SpectraplexDifference(3).volume()
    binomial_agrees(len(inside), 6000, ratio)
    drawn = nuclear_spectra(3000, 3, rng)
    ks_uniform(np.abs(drawn).sum(axis=1) ** 6)
    for statistic in STATISTICS.values():
        ks_same(statistic(drawn), statistic(inside), LEVEL / len(STATISTICS))


def test_moments_and_volumes_of_the_sheet():
    """For d = 2 the values come from JL-COV. For d = 1 both bodies are the interval [-1, 1]."""
    for moments in (nuclear_moments(1), difference_moments(1)):
        assert moments.squares == pytest.approx(1 / 3, rel=1e-13)
    assert nuclear_moments(2).squares == pytest.approx(5 / 12, rel=1e-13)
    assert difference_moments(2).squares == pytest.approx(109 / 140, rel=1e-13)
    assert NuclearBall(2).volume() == pytest.approx(math.pi / math.sqrt(2), rel=1e-13)
    difference = 7 * math.pi / (3 * math.sqrt(2))
    assert SpectraplexDifference(2).volume() == pytest.approx(difference, rel=1e-13)


@pytest.mark.parametrize("d", [10, 40])
def test_moments_stay_accurate_as_d_grows(d):
    """The number p of `difference_spectra` is distributed symmetrically about D / 2.

    By the inequality of Rogers and Shephard, vol(K - K) is below C(2 D, D) vol(K).
    """
    D, gas = d * (d + 1) // 2, _gas(d)
    assert gas.shares.sum() == pytest.approx(1, rel=1e-12)
    assert gas.shares.min() > -1e-14
    assert gas.shares @ gas.degrees == pytest.approx(D / 2, rel=1e-12)
    np.testing.assert_allclose(gas.shares, gas.shares[::-1], rtol=0, atol=1e-14)
    assert math.log(2) < difference_moments(d).log_integral < math.log(math.comb(2 * D, D))
    assert nuclear_moments(d).log_integral < difference_moments(d).log_integral
