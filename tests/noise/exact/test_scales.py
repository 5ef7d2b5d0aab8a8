"""Scales of noise are large enough for the exact values of floats, even if a guess is too small."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from mpmath import mpf

from geomdp.noise import gaussian
from geomdp.privacy import ZCDP, ApproxDP, PureDP
from tests.noise.exact.reference import REFERENCE_BITS

CASES = [(1, 1.0, 1e-6), (7, 0.1, 1e-12), (1000, 9.0, 0.1), (3, 0.01, 1e-3)]


def exact_delta(squared, scale, epsilon):
    theta, loss = mpmath.sqrt(squared) / mpf(scale), mpf(epsilon)
    low = mpmath.ncdf(-theta / 2 - loss / theta)
    return mpmath.ncdf(theta / 2 - loss / theta) - mpmath.exp(loss) * low


def check_suffices(scale, squared, privacy):
    with mpmath.workprec(REFERENCE_BITS):
        if isinstance(privacy, ZCDP):
            assert 2 * Fraction(privacy.rho) * Fraction(scale) ** 2 >= squared
        else:
            assert exact_delta(squared, scale, privacy.epsilon) <= mpf(privacy.delta)


@pytest.mark.parametrize("short", [0.0, 2.0**-52, 2.0**-45, 2.0**-40])
@pytest.mark.parametrize(("squared", "epsilon", "delta"), CASES)
def test_a_gaussian_scale_that_is_too_small_is_made_larger(
    squared, epsilon, delta, short, monkeypatch
):
    right = gaussian.gaussian_scale
    monkeypatch.setattr(gaussian, "gaussian_scale", lambda *given: right(*given) * (1 - short))
    for privacy in (ZCDP(epsilon), ApproxDP(epsilon, delta)):
        found = gaussian.proved_gaussian_scale(squared, privacy)
        check_suffices(found, squared, privacy)
        # Each step doubles the increase, so the increase is at most about twice what was missing.
        assert found <= right(math.sqrt(squared), privacy) * (1 + 2 * short + 2.0**-50)


@pytest.mark.parametrize("short", [0.0, 2.0**-52, 2.0**-48])
def test_a_scale_of_the_shortcut_that_is_too_small_is_made_larger(short, monkeypatch):
    right = gaussian.shortcut_step_epsilon
    monkeypatch.setattr(
        gaussian, "shortcut_step_epsilon", lambda *given: right(*given) * (1 + short)
    )
    for change, steps, privacy in ((1, 64, ApproxDP(1.0, 1e-6)), (5, 3, ApproxDP(0.1, 1e-9))):
        found = gaussian.proved_shortcut_scale(change, privacy, steps)
        with mpmath.workprec(REFERENCE_BITS):
            least = mpmath.sqrt(-8 * steps * mpmath.log(mpf(privacy.delta))) * change
            least /= mpf(privacy.epsilon)
            assert least <= found <= least * (1 + 2.0**-50)


def test_guarantees_of_another_kind_are_refused():
    with pytest.raises(ValueError, match="epsilon must be at most 1"):
        gaussian.proved_shortcut_scale(1, ApproxDP(2.0, 1e-6), 3)
    with pytest.raises(ValueError, match="ApproxDP"):
        gaussian.proved_shortcut_scale(1, ZCDP(0.5), 3)
    with pytest.raises(ValueError, match="for Gaussian noise"):
        gaussian.proved_gaussian_scale(1, PureDP(1.0))
    assert np.isfinite(gaussian.proved_gaussian_scale(1, ZCDP(1e-9)))


def check_scales_suffice(scale_of):
    rng = np.random.default_rng(0)
    for _ in range(150):
        squared, rho = int(rng.integers(1, 1000)), float(10 ** rng.uniform(-4, 2))
        check_suffices(scale_of(squared, ZCDP(rho)), squared, ZCDP(rho))
        privacy = ApproxDP(float(10 ** rng.uniform(-2, 1.3)), float(10 ** rng.uniform(-12, -1)))
        check_suffices(scale_of(squared, privacy), squared, privacy)


def test_proved_scales_suffice_and_scales_rounded_to_nearest_do_not():
    check_scales_suffice(gaussian.proved_gaussian_scale)
    with pytest.raises(AssertionError):
        check_scales_suffice(lambda squared, p: gaussian.gaussian_scale(math.sqrt(squared), p))
