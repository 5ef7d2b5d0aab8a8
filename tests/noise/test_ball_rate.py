"""Noise of a ball for (epsilon, delta)-DP (X-ED): the proved delta against an integral of it."""

import math

import numpy as np
import pytest
import scipy.special
from hypothesis import given, settings
from hypothesis import strategies as st

from geomdp.noise import knorm
from geomdp.noise.knorm import ball_rate
from geomdp.privacy import ApproxDP, PureDP, gaussian_scale

#: Error of the best noise of a ball over that of Gaussian noise, on the sheet: by delta, then by
#: dimension, for epsilon = 1.
RATIOS = {
    1e-6: {2: 0.41, 5: 0.57, 10: 0.72, 20: 0.84, 55: 0.94, 200: 0.98},
    1e-3: {2: 0.66, 5: 0.83, 10: 0.91, 20: 0.95, 55: 0.98, 200: 1.0},
}
PARTS = 1000


def ball_delta(dimension: int, rate: float, epsilon: float, change: float = 1.0) -> float:
    """delta of noise with density proportional to e^(-rate |z|) in R^d, moved by `change`.

    The mean of max(0, 1 - e^(epsilon - loss)) over the midpoints of equally likely lengths of the
    noise and angles. The lengths of the noise have a Gamma law, and the cosine u of the angle is
    2 B - 1 for B ~ Beta((d - 1) / 2, (d - 1) / 2).
    """
    shares = (np.arange(PARTS) + 0.5) / PARTS
    lengths = scipy.special.gammaincinv(dimension, shares)[:, None] / rate
    half = (dimension - 1) / 2
    cosines = np.array([-1.0, 1.0])
    if dimension > 1:
        cosines = 2 * scipy.special.betaincinv(half, half, shares) - 1
    moved = np.sqrt(lengths**2 - 2 * lengths * cosines * change + change**2)
    loss = rate * (moved - lengths)
    return float(-np.expm1(np.minimum(epsilon - loss, 0.0)).mean())


@pytest.mark.parametrize("delta", RATIOS)
def test_the_ratios_to_gaussian_noise_are_those_of_the_sheet(delta):
    privacy = ApproxDP(1.0, delta)
    for dimension, ratio in RATIOS[delta].items():
        # The squared error in each direction is (d + 1) / rate^2.
        found = math.sqrt(dimension + 1) / ball_rate(dimension, privacy)
        assert found / gaussian_scale(1.0, privacy) == pytest.approx(ratio, rel=0.01)


@pytest.mark.parametrize("dimension", [1, 2, 3, 5, 20, 100])
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.05), (0.1, 0.02), (3.0, 0.01), (1e-3, 0.3)])
def test_delta_is_used_up_and_not_exceeded(dimension, epsilon, delta):
    rate = ball_rate(dimension, ApproxDP(epsilon, delta))
    assert ball_delta(dimension, rate, epsilon) <= delta * (1 + 2e-3)  # the error of midpoints
    # A rate that is larger by 2% gives too large a delta.
    assert ball_delta(dimension, 1.02 * rate, epsilon) > delta


@given(st.integers(2, 30), st.floats(0.1, 3.0), st.floats(1.1, 3.0))
@settings(max_examples=10)
def test_longer_changes_have_a_larger_delta(dimension, epsilon, factor):
    rate = factor * epsilon * math.sqrt(dimension)
    deltas = [ball_delta(dimension, rate, epsilon, change) for change in (0.1, 0.4, 0.7, 1.0)]
    assert deltas == sorted(deltas)


@given(st.floats(1e-9, 10.0), st.floats(1e-9, 0.49))
@settings(max_examples=30, deadline=None)
def test_in_one_dimension_the_rate_has_a_closed_form(epsilon, delta):
    """Laplace noise of scale 1 / L has delta = 1 - e^((epsilon - L) / 2) for L >= epsilon."""
    best = epsilon - 2 * math.log1p(-delta)
    assert epsilon <= ball_rate(1, ApproxDP(epsilon, delta)) <= best
    if delta > 1e-3:
        assert ball_rate(1, ApproxDP(epsilon, delta)) >= best * (1 - 1e-2)


@pytest.mark.parametrize("dimension", [1, 2, 17, 400])
@pytest.mark.parametrize(
    ("epsilon", "delta"), [(1e-12, 1e-9), (1.0, 1e-9), (290.0, 1e-6), (30.0, 0.4), (1.0, 5e-324)]
)
def test_the_rate_at_the_ends_of_the_range(dimension, epsilon, delta):
    rate = ball_rate(dimension, ApproxDP(epsilon, delta))
    assert epsilon <= rate < math.inf
    # No noise is smaller than that of a Gaussian law by so much.
    assert rate <= max(epsilon, math.sqrt(dimension + 1)) * 1e3


def test_pure_privacy_and_a_huge_epsilon_have_the_rate_of_pure_noise():
    assert ball_rate(7, PureDP(0.3)) == 0.3
    assert ball_rate(7, ApproxDP(1e12, 1e-6)) == 1e12


@pytest.mark.parametrize("dimension", [1, 2, 9])
def test_the_proof_refuses_less_noise(dimension):
    privacy = ApproxDP(1.0, 0.01)
    rate = ball_rate(dimension, privacy)
    ends = np.geomspace(1e-3, 60.0, 500).tolist()
    assert not knorm._is_proved(1.02 * rate, dimension, privacy, ends)
    assert knorm._is_proved(rate / 1.1, dimension, privacy, ends)
