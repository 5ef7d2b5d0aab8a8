"""Distributions of seeded and exact noise on single numbers: scales, and which draws are shared."""

from __future__ import annotations

import math
import os

import numpy as np
import pytest
import scipy.stats

from geomdp.noise.scalar import ExactNoise, GeneratorNoise
from tests.laws.laplace_comparisons import all_reach
from tests.noise.exact.reference import seeded
from tests.stats import binomial_agrees, ks_uniform, mean_agrees

pytestmark = pytest.mark.statistical

TRIALS = 4000
#: Noise scales of threshold and query, as in AboveThreshold at epsilon = 1. A query is GAP below
#: the threshold.
THRESHOLD, QUERY, GAP = 2.0, 4.0, 4.0


@pytest.fixture(params=["seeded", "exact"])
def noise(request, monkeypatch):
    if request.param == "seeded":
        return GeneratorNoise(1)
    monkeypatch.setattr(os, "urandom", seeded(1))
    return ExactNoise()


def together(count: int, gap: float) -> float:
    """Probability that `count` queries, each `gap` below the threshold, all reach the threshold."""
    return all_reach(count, gap, THRESHOLD, QUERY)


def test_the_closed_form_of_one_comparison():
    """The quadrature agrees with the closed form of SV-AT."""
    assert together(1, GAP) == pytest.approx((4 * math.exp(-1) - math.exp(-2)) / 6, rel=1e-9)


def test_values_are_laplace_and_fresh(noise):
    found = np.array([noise.laplace(7.0, 3.0) for _ in range(TRIALS)]) - 7.0
    # Exact noise is rounded to at most 1/1024 of its scale. A KS test of 4000 values does not
    # detect this rounding.
    ks_uniform(scipy.stats.laplace(scale=3.0).cdf(found))
    mean_agrees(found[::2] * found[1::2], 0.0)
    sizes = np.abs(found) - 3.0
    mean_agrees(sizes[::2] * sizes[1::2], 0.0)


def test_two_queries_share_the_threshold_and_nothing_else(noise):
    first, both = 0, 0
    for _ in range(TRIALS):
        threshold = noise.threshold(GAP, THRESHOLD)
        answers = [noise.reaches(0.0, QUERY, threshold) for _ in range(2)]
        first, both = first + answers[0], both + all(answers)
    binomial_agrees(first, TRIALS, together(1, GAP))
    binomial_agrees(both, TRIALS, together(2, GAP))


def test_values_of_one_call_have_noise_of_their_own(noise):
    none = second = 0
    for _ in range(TRIALS):
        threshold = noise.threshold(0.0, THRESHOLD)
        place = noise.values([-GAP, -GAP], QUERY).first_reaching(0, threshold)
        none, second = none + (place == 2), second + (place == 1)
    binomial_agrees(none, TRIALS, 1 - 2 * together(1, GAP) + together(2, GAP))
    binomial_agrees(second, TRIALS, together(1, GAP) - together(2, GAP))


def test_the_exponential_mechanism_has_its_law(noise):
    scores, scale = np.array([0.0, 1.0, 3.0]), 2.0
    picks = [noise.noisy_argmax(scores, scale) for _ in range(TRIALS)]
    weights = np.exp(scores / scale)
    for index, share in enumerate(weights / weights.sum()):
        binomial_agrees(picks.count(index), TRIALS, float(share), level=1e-6 / 3)
