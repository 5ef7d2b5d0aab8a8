"""Quantiles, energies and searches on cases small enough to know the result exactly."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp

from geomdp.bodies import Box
from geomdp.geometry.results import Estimate
from geomdp.geometry.sampling.samplers import ExactSampler
from geomdp.noise import KNormNoise, LaplaceNoise, Part, tails
from geomdp.noise.mapped import MappedNoise
from geomdp.noise.scalar import FIRST_WINDOW, GeneratorNoise
from geomdp.noise.tails import half_widths, log_concave_maximum, simultaneous_half_widths
from geomdp.privacy import Heuristic


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


def least_ordered(values, kth, axis=-1):
    """`np.partition` that leaves the entries before and after `kth` in decreasing order."""
    values = np.sort(values, axis=axis)
    first, last = np.split(values, [kth], axis=axis)
    middle, last = np.split(last, [1], axis=axis)
    return np.concatenate([np.flip(first, axis), middle, np.flip(last, axis)], axis=axis)


@pytest.mark.parametrize("block", [tails.BLOCK_ENTRIES, 100])
@pytest.mark.parametrize(
    ("confidence", "count", "rank"),
    [(0.5, 1999, 1000), (0.75, 1999, 1500), (0.96875, 1999, 1938), (0.998046875, 10240, 10221)],
)
def test_half_widths_are_order_statistics(confidence, count, rank, block, monkeypatch):
    """The rank is ceil((B + 1) confidence) of B = max(1999, 20 / (1 - confidence)) draws."""
    monkeypatch.setattr(tails, "BLOCK_ENTRIES", block)
    monkeypatch.setattr(np, "partition", least_ordered)
    assert rank == math.ceil((count + 1) * confidence)
    assert half_widths(shuffled(count), confidence).tolist() == [rank, 2 * rank, 0]
    widths = simultaneous_half_widths(shuffled(count), confidence)
    np.testing.assert_allclose(widths, [rank, 2 * rank, 0], rtol=1e-14)


def test_simultaneous_half_widths_take_the_largest_coordinate_of_each_draw():
    """The draws are (1, 0), (0, 2), (3, 0), .., (1999, 0), each with one coordinate above 0."""
    sizes = np.arange(1.0, 2000.0)
    noise = Listed(sizes[:, None] * np.eye(2)[np.arange(1999) % 2])
    deviations = np.sqrt(noise.variances())
    larger = np.sort((sizes[:, None] / deviations)[np.arange(1999), np.arange(1999) % 2])
    expected = deviations * larger[1499]
    np.testing.assert_allclose(simultaneous_half_widths(noise, 0.75), expected, rtol=1e-14)


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


def test_a_sum_of_no_parts_is_refused():
    with pytest.raises(ValueError, match=r"^parts must hold at least 1 part, got none$"):
        MappedNoise([])


def test_variances_of_images():
    """K-norm noise of a box has uncorrelated coordinates, which the matrix mixes."""
    body = Box.centred(np.array([1.0, 2.0]))
    noise = KNormNoise(body, 0.5, ExactSampler(body))
    matrix = np.array([[1.0, 0.0], [2.0, -3.0], [0.0, 0.0]])
    # The noise is R U with E R^2 = 3 * 4 / 0.5^2, E U_1^2 = 1/3 and E U_2^2 = 4/3.
    expected = 48 * np.array([1 / 3, 4 / 3 + 12, 0.0])
    for form in (matrix, sp.csr_array(matrix)):
        np.testing.assert_allclose(noise.image_variances(form), expected, rtol=1e-12)
        found = MappedNoise([Part(noise, form), Part(noise, form)]).variances()
        np.testing.assert_allclose(found, 2 * expected, rtol=1e-12)


def limit(exponent):
    """s(c) = c / (2 (1 - (1 + c) e^-c))^(1/2) of `log_concave_maximum`."""
    return exponent / np.sqrt(2 * (1 - (1 + exponent) * np.exp(-exponent)))


@pytest.mark.parametrize("count", [5, 1000])
def test_the_maximum_of_equal_deviations_without_a_tail_in_steps(count, monkeypatch):
    """With REACH = 0, the sum ends where the union bound is 1.

    For m variables of standard deviation 1, the sum is then s(ln m), and the bound on the tail is
    s(ln m) / ln m.
    """
    monkeypatch.setattr(tails, "REACH", 0.0)
    last = math.log(count)
    expected = limit(last) * (1 + 1 / last)
    found = log_concave_maximum(np.full(count, 0.25))
    np.testing.assert_allclose(found, 0.25 * expected, rtol=1e-12)


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


@pytest.mark.parametrize("count", [0, 1, FIRST_WINDOW, FIRST_WINDOW + 1, 3 * FIRST_WINDOW, 400])
def test_a_search_ends_with_the_list(count):
    noise = GeneratorNoise(0)
    values = noise.values(np.zeros(count), 1e-9)
    for begin in (0, count // 2, count):
        assert values.first_reaching(begin, 1.0) == count
    for place in range(0, count, 7):
        heights = np.zeros(count)
        heights[place::5] = 2.0
        values = noise.values(heights, 1e-9)
        assert values.first_reaching(0, 1.0) == place
        assert values.first_reaching(place, 1.0) == place
        assert values.first_reaching(place + 1, 1.0) == min(place + 5, count)
