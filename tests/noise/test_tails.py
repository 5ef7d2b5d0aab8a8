"""Quantiles, intervals and expected maxima of noise, and energies of its images (X-INT)."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.stats

from geomdp.bodies import Ball, Box, CrossPolytope, Ellipsoid, TableMoments, VPolytope
from geomdp.geometry.projection import Estimate
from geomdp.geometry.sampling.samplers import ChainSampler, ExactSampler
from geomdp.mechanisms import Cone, Gaussian, Hierarchical, Recursive, TightCone
from geomdp.noise import GaussianNoise, KNormNoise, LaplaceNoise, PairedNoise, tails
from geomdp.noise.few_queries import GeometricNoise
from geomdp.noise.knorm import MappedNoise, Part
from geomdp.noise.tails import (
    EXCEEDANCES,
    LEAST_DRAWS,
    MOST_DRAWS,
    REPLAYED,
    expected_maximum,
    half_widths,
    log_concave_maximum,
    order_statistic,
    simultaneous_half_widths,
)
from geomdp.privacy import ZCDP, Adjacency, Heuristic, PureDP
from geomdp.workloads import LinearMap, Marginals, MarginalTables, Prefixes, RandomSigns
from geomdp.workloads.structure import table_contrasts
from tests.mechanisms.catalogue import ADDITIVE, WORKLOADS
from tests.stats import LEVEL, ks_same, mean_agrees, mean_at_most

# Intervals of all additive mechanisms cover


FRESH = 20_000
#: Noise with half-widths in closed form. Other noise has half-widths from public draws.
CLOSED = (LaplaceNoise, GaussianNoise, GeometricNoise)


@pytest.fixture(scope="module", params=sorted(ADDITIVE))
def noise(request):
    entry = ADDITIVE[request.param]
    workload = WORKLOADS[entry.home]
    return entry.build(workload, 10, entry.privacy, Adjacency.REPLACE_ONE).noise


@pytest.fixture(scope="module")
def sizes(noise):
    """Sizes of draws that several tests share. Each test still has its stated level."""
    return np.abs(noise.sample(np.random.default_rng(11), FRESH))


def misses_agree(
    misses: int, beta: float, behind: tuple[int, int], *, closed: bool, tests: int
) -> bool:
    """Whether the number of misses in `FRESH` releases fits its law, at LEVEL for all `tests`.

    `behind` is the number B of public draws and the rank k of the quantile. The chance of a miss
    depends on the draws and has the distribution Beta(B + 1 - k, k), so the number of misses is
    beta-binomial. If `closed`, the chance of a miss is `beta`.
    """
    draws, rank = behind
    law = (
        scipy.stats.binom(FRESH, beta)
        if closed
        else scipy.stats.betabinom(FRESH, draws + 1 - rank, rank)
    )
    tail = min(law.cdf(misses), law.sf(misses - 1))
    return bool(tail > LEVEL / (2 * tests))


def chances_of_a_miss(noise, widths, beta: float) -> np.ndarray:
    """P(|Z_j| > c_j) for half-widths c_j in closed form, which should be at most `beta`.

    For Laplace and Gaussian noise it is `beta`. Geometric noise is on a lattice, so it can be less:
    P(|Z_j| > k u) = 2 q^(k + 1) / (1 + q) for unit u, rate q = exp(-u / b) and whole k.
    """
    if not isinstance(noise, GeometricNoise):
        return np.full(len(widths), beta)
    rates = noise.units / noise.scale
    steps = np.rint(widths / noise.units)
    np.testing.assert_array_equal(widths, steps * noise.units)
    return 2 * np.exp(-rates * (steps + 1)) / (1 + np.exp(-rates))


def test_variances_are_the_diagonal_of_the_covariance(noise):
    expected = np.diag(noise.covariance())
    np.testing.assert_allclose(noise.variances(), expected, rtol=1e-9, atol=1e-12 * expected.max())


@pytest.mark.statistical
@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.99])
def test_half_widths_cover_each_answer(noise, sizes, confidence):
    widths = half_widths(noise, confidence)
    # An answer without noise has half-width 0 up to rounding, so its coverage is not tested.
    moving = np.sqrt(noise.variances()) > 1e-9 * widths.max()
    closed = isinstance(noise, CLOSED)
    chances = chances_of_a_miss(noise, widths, 1 - confidence)
    assert (chances <= 1 - confidence).all()
    behind = order_statistic(noise, 1 - confidence)
    for column in np.flatnonzero(moving):
        misses = int((sizes[:, column] > widths[column]).sum())
        assert misses_agree(misses, chances[column], behind, closed=closed, tests=moving.sum())
    if confidence == 0.95:
        # 20,000 releases can show that half-widths are too short by these factors: 0.9 in closed
        # form, 0.8 for quantiles from 1999 draws, and 0.7 from 512 draws.
        short = 0.9 if closed else 0.7 if behind[0] == REPLAYED else 0.8
        column = int(np.argmax(widths))
        misses = int((sizes[:, column] > short * widths[column]).sum())
        assert not misses_agree(misses, chances[column], behind, closed=closed, tests=1)


@pytest.mark.statistical
@pytest.mark.parametrize("confidence", [0.9, 0.95])
def test_simultaneous_half_widths_cover_all_answers(noise, sizes, confidence):
    widths = simultaneous_half_widths(noise, confidence)
    # Allow for rounding: the last bits of an answer without noise may differ from draw to draw.
    misses = int((sizes > widths * (1 + 1e-9) + 1e-9 * widths.max()).any(axis=1).sum())
    closed = isinstance(noise, LaplaceNoise)
    draws = max(LEAST_DRAWS, math.ceil(EXCEEDANCES / (1 - confidence)))
    behind = draws, math.ceil((draws + 1) * confidence)
    assert misses_agree(misses, 1 - confidence, behind, closed=closed, tests=1)
    assert (widths >= half_widths(noise, confidence) * (1 - 0.1)).all()


def test_quantiles_in_closed_form():
    noise = LaplaceNoise(3, 2.0)
    np.testing.assert_allclose(half_widths(noise, 0.95), 2 * math.log(20), rtol=1e-12)
    np.testing.assert_allclose(half_widths(noise, 1 - 1e-9), 2 * math.log(1e9), rtol=1e-7)
    widths = simultaneous_half_widths(noise, 0.95)
    np.testing.assert_allclose((1 - np.exp(-widths / 2)) ** 3, 0.95, rtol=1e-12)
    basis = np.array([[0.6], [0.8]])
    widths = half_widths(GaussianNoise(basis, 2.0), 0.95)
    np.testing.assert_allclose(widths, 2 * 1.959963984540054 * basis[:, 0], rtol=1e-12)


@pytest.mark.parametrize("widths", [half_widths, simultaneous_half_widths])
def test_confidences_out_of_range_are_refused(widths):
    for confidence in (0, 1, -0.1, 1.5, math.nan, math.inf, "0.9", True, None):
        with pytest.raises(ValueError, match=r"confidence must be above 0 and below 1, got"):
            widths(LaplaceNoise(2, 1.0), confidence)
    # Without a closed form, 1 - 1e-9 would need 2e10 draws.
    drawn = MappedNoise([Part(LaplaceNoise(dimension=2, scale=1.0), np.eye(2))])
    with pytest.raises(ValueError, match=r"at most 0\.999999 .* got 0\.999999999$"):
        widths(drawn, 1 - 1e-9)
    assert order_statistic(drawn, 1 - 0.999999)[0] <= MOST_DRAWS


@pytest.mark.parametrize("adjacency", Adjacency)
def test_points_of_a_cut_body_are_drawn_once(adjacency, monkeypatch):
    noise = TightCone(
        MarginalTables([2, 3, 2], 2), n=10, privacy=PureDP(1.0), adjacency=adjacency
    ).noise
    assert noise.body.cut
    noise.variances()  # draws the points

    def refused(*arguments):
        raise AssertionError("drew again")

    monkeypatch.setattr(TableMoments, "sample_uniform", refused)
    widths = half_widths(noise, 0.95)
    assert order_statistic(noise, 0.05) == (REPLAYED, 488)
    # The noise of a release has each of 513 ranks among the 512 draws with equal probability.
    assert 488 / (REPLAYED + 1) >= 0.95
    # The tolerance is above 4.76 standard errors of a 95% quantile of normal noise from 512 draws.
    np.testing.assert_allclose(widths / np.sqrt(noise.variances()), 1.96, rtol=0.25)
    # If fewer than 20 of the 512 draws would be above the quantile, new points are drawn.
    assert order_statistic(noise, 0.01) == (2000, 1981)
    with pytest.raises(AssertionError, match="drew again"):
        half_widths(noise, 0.99)


@pytest.mark.parametrize("workload", [MarginalTables([3, 1, 2, 4], 2), Marginals(3, 2)], ids=repr)
def test_all_cells_of_a_table_have_the_noise_of_one_cell(workload):
    contrasts = table_contrasts(workload)
    body = TableMoments(contrasts.levels)
    noise = PairedNoise(body, 1.0, contrasts.matrix, contrasts.cells)
    cells = noise.sample_cells(np.random.default_rng(0), FRESH)
    draws = noise.sample(np.random.default_rng(1), FRESH)
    levels = contrasts.levels
    known = [(i, i) for i, count in enumerate(levels) for _ in range(count)]
    for i, j in itertools.combinations(range(len(levels)), 2):
        known += [(i, j)] * (levels[i] * levels[j])
    # The first column of `cells` stands for all records. No answer here is their share.
    columns = np.array(known)[contrasts.cells.indices - 1]
    for answer, (i, j) in enumerate(columns):
        ks_same(cells[:, i, j], draws[:, answer], LEVEL / noise.dimension)
    mean_agrees(cells[:, *columns.T] ** 2, noise.variances())
    every = order_statistic(noise, 0.05)
    widths = half_widths(noise, 0.95)
    noise.cells = None
    # Two quantiles of 1999 draws each: their ratio has a standard deviation of about 3%.
    np.testing.assert_allclose(widths, half_widths(noise, 0.95), rtol=0.16)
    assert order_statistic(noise, 0.05) == every


def test_noise_that_is_always_zero_has_intervals_of_length_zero():
    noise = GeometricNoise(units=[1.0, 2.0], scale=1e-3)
    assert not noise.variances().any()
    for widths in (half_widths(noise, 0.9), simultaneous_half_widths(noise, 0.9)):
        np.testing.assert_array_equal(widths, 0)


# Cases small enough to know the result exactly


class Listed:
    """Noise whose draws are the rows of a list, in order, with an estimated energy."""

    sampler = Heuristic("a list")

    def __init__(self, rows):
        self._rows, self._next = np.asarray(rows, dtype=float), 0
        self.dimension = self._rows.shape[1]

    def sample(self, rng, size):
        del rng
        self._next += size
        return self._rows[self._next - size : self._next]

    def covariance(self):
        return np.diag((self._rows**2).mean(axis=0))

    def variances(self):
        return np.diag(self.covariance())

    def second_moment(self):
        return Estimate(float(self.variances().sum()), 1.0, (0.0, math.inf), 7)


def shuffled(count):
    """Draws (x, -2 x, 0), where |x| has each of the values 1, .., count once."""
    rng = np.random.default_rng(count)
    sizes = rng.permutation(np.arange(1, count + 1)) * rng.choice([-1, 1], count)
    return Listed(sizes[:, None] * np.array([1.0, -2.0, 0.0]))


@pytest.mark.parametrize("block", [tails.BLOCK_ENTRIES, 100])
@pytest.mark.parametrize(
    ("confidence", "count", "rank"),
    [(1e-4, 1999, 1), (0.75, 1999, 1500), (0.96875, 1999, 1938), (0.998046875, 10240, 10221)],
)
def test_half_widths_are_order_statistics(confidence, count, rank, block, monkeypatch):
    """The rank is ceil((B + 1) confidence) of B = max(1999, 20 / (1 - confidence)) draws."""
    monkeypatch.setattr(tails, "BLOCK_ENTRIES", block)
    assert rank == math.ceil((count + 1) * confidence)
    assert half_widths(shuffled(count), confidence).tolist() == [rank, 2 * rank, 0]
    widths = simultaneous_half_widths(shuffled(count), confidence)
    np.testing.assert_allclose(widths, [rank, 2 * rank, 0], rtol=1e-14)


def test_the_energy_of_a_part_is_the_mean_over_its_draws():
    draws = np.random.default_rng(0).normal(size=(1024, 2))
    matrix = np.array([[1.0, 2.0], [0.0, -3.0], [0.5, 0.0]])
    energies = [float(np.sum((matrix @ draw) ** 2)) for draw in draws]
    for form in (matrix, sp.csr_array(matrix)):
        moment = MappedNoise([Part(Listed(draws), form)]).second_moment()
        np.testing.assert_allclose(moment.value, np.mean(energies), rtol=1e-12)
        np.testing.assert_allclose(moment.stderr, np.std(energies, ddof=1) / 32, rtol=1e-12)
        assert moment.samples == 1024
    known = Part(Listed(draws), matrix, energy=5.0)
    exact = Part(LaplaceNoise(1, 1.0), np.ones((3, 1)))
    assert MappedNoise([known, exact]).second_moment() == Estimate.exact(5.0 + 3 * 2.0)


class Estimated(LaplaceNoise):
    """Laplace noise whose energy counts as estimated."""

    def second_moment(self):
        return Estimate(super().second_moment().value, 1.0, (0.0, math.inf), 7)


def test_equal_parts_have_independent_errors_of_their_energies():
    """With one stream for all 400 parts, the error would be 20 times the error that is stated."""
    noise = Estimated(1, 1.0)
    moment = MappedNoise([Part(noise, np.eye(1))] * 400).second_moment()
    # A normal variable is more than 4.9 standard deviations from its mean with probability 1e-6.
    assert abs(moment.value - 400 * 2.0) <= 4.9 * moment.stderr
    # Var Z^2 = E Z^4 - 4 = 24 - 4 for Z ~ Lap(1).
    np.testing.assert_allclose(moment.stderr, math.sqrt(400 * 20 / 1024), rtol=0.1)
    two = MappedNoise([Part(noise, np.eye(1))] * 2).second_moment()
    one = MappedNoise([Part(noise, np.eye(1))]).second_moment()
    assert two.value != 2 * one.value


def test_variances_of_images():
    """K-norm noise of a box has uncorrelated coordinates, which the matrix mixes."""
    noise = knorm(Box.centred([1.0, 2.0]))
    matrix = np.array([[1.0, 0.0], [2.0, -3.0], [0.0, 0.0]])
    # The noise is R U with E R^2 = 3 * 4 / 0.8^2, E U_1^2 = 1/3 and E U_2^2 = 4/3.
    expected = 12 / 0.64 * np.array([1 / 3, 4 / 3 + 12, 0.0])
    for form in (matrix, sp.csr_array(matrix)):
        np.testing.assert_allclose(noise.image_variances(form), expected, rtol=1e-12)
        found = MappedNoise([Part(noise, form), Part(noise, form)]).variances()
        np.testing.assert_allclose(found, 2 * expected, rtol=1e-12)


def limit(exponent):
    """s(c) = c / (2 (1 - (1 + c) e^-c))^(1/2) of `log_concave_maximum`."""
    return exponent / np.sqrt(2 * (1 - (1 + exponent) * np.exp(-exponent)))


@pytest.mark.parametrize("deviations", [[1.0], [1.0, 0.3, 0.3], [2.0, 0.0, 1.99995, 1e-3] * 5])
def test_the_maximum_is_just_above_the_integral(deviations):
    exponents = np.linspace(1e-3, 60.0, 40_001)
    heights = np.linspace(0.0, 40 * max(deviations), 40_001)
    union = sum(
        np.exp(-np.interp(heights / x, limit(exponents), exponents, left=0.0))
        for x in deviations
        if x > 0
    )
    integral = np.trapezoid(np.minimum(union, 1.0), heights)
    assert integral * (1 - 1e-6) <= log_concave_maximum(np.array(deviations)) <= 1.005 * integral
    assert log_concave_maximum(0.0 * np.array(deviations)) == 0


# Bounds on the expected largest coordinate


def knorm(body):
    return KNormNoise(body, 0.8, ExactSampler(body))


NOISES = {
    "laplace": LaplaceNoise(7, 1.5),
    "one coordinate": LaplaceNoise(1, 2.0),
    "ball": knorm(Ball(9, 2.0)),
    "box": knorm(Box.centred(2.0 ** -np.arange(6))),
    "cross-polytope": knorm(CrossPolytope(5, 1.0)),
    "ellipsoid": knorm(Ellipsoid(np.random.default_rng(0).normal(size=(12, 3)))),
    "cone": Cone(Marginals(6, 2), n=1, privacy=PureDP(0.8)).noise,
    "cone over a simplex": Cone(Prefixes(9), n=1, privacy=PureDP(0.8)).noise,
    "gaussian": Gaussian(RandomSigns(20, 9, 0), n=1, privacy=ZCDP(0.3)).noise,
    "hierarchical": Hierarchical(Prefixes(9), n=1, privacy=PureDP(0.8)).noise,
    "recursive": Recursive(
        LinearMap(Marginals(8, 1), np.diag(0.5 ** np.arange(8))), n=1, privacy=PureDP(0.8)
    ).noise,
}


@pytest.mark.statistical
@pytest.mark.parametrize("name", NOISES)
def test_the_bound_holds_and_is_not_far(name):
    noise = NOISES[name]
    largest = np.abs(noise.sample(np.random.default_rng(4), 4000)).max(axis=1)
    bound = expected_maximum(noise)
    mean_at_most(largest, bound)
    assert bound < 3 * largest.mean()
    if isinstance(noise, LaplaceNoise):
        mean_agrees(largest, bound)


def test_the_cube_is_exact():
    """||Z||_inf is the gauge of the cube. Its law Gamma(r, 1 / epsilon) has mean r / epsilon."""
    np.testing.assert_allclose(expected_maximum(knorm(Box.centred(np.ones(6)))), 6 / 0.8)


def test_estimated_moments_prove_nothing():
    """Second moments of a chain are estimates, so only the bound by support values remains."""
    points = np.random.default_rng(6).normal(size=(12, 3))
    body = VPolytope(np.vstack([points, -points]))
    noise = KNormNoise(body, 1.0, ChainSampler(body))
    np.testing.assert_allclose(expected_maximum(noise), 3 * np.abs(points).max(), rtol=1e-12)
