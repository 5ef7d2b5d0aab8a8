import math
import re
import signal
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from mpmath import mpf

from geomdp.privacy import (
    ZCDP,
    ApproxDP,
    PureDP,
    gaussian_delta,
    gaussian_scale,
    laplace_scale,
)
from geomdp.privacy.definitions import analytic_gaussian_scale, zcdp_gaussian_scale

#: Limit in seconds. A search for a scale takes far less time.
LONGEST = 10


def test_the_search_for_a_scale_ends():
    """This test comes first, so that an endless search fails here and does not block all tests."""

    def stop(*_):
        raise AssertionError(f"the search did not end within {LONGEST} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(LONGEST)
    try:
        assert zcdp_gaussian_scale(3.0, ZCDP(0.7)) >= 3.0 / math.sqrt(2 * 0.7)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


EPSILON = np.finfo(np.float64).eps
sensitivities = st.floats(1e-6, 1e6)


def exact_delta(theta: mpf | float, epsilon: float) -> mpf:
    """delta by the formula of Balle and Wang in 1000 digits; theta is sensitivity / scale."""
    with mpmath.workdps(1000):
        half, ratio = mpf(theta) / 2, mpf(epsilon) / theta
        upper, lower = mpmath.ncdf(half - ratio), mpmath.ncdf(-half - ratio)
        return upper - mpmath.exp(epsilon) * lower


def exact_delta_of_scale(scale: float, epsilon: float) -> mpf:
    """The same delta for sensitivity 1; theta = 1 / scale is not rounded to float64."""
    with mpmath.workdps(1000):
        return exact_delta(1 / mpf(scale), epsilon)


CASES = [
    (theta, epsilon)
    for epsilon in (1e-12, 1e-3, 0.1, 1.0, 10.0, 500.0)
    for theta in (1e-12, 1e-3, 0.03, 0.5, 0.999, 1.001, 3.0, 12.0, 32.0, 60.0)
    if -38 < theta / 2 - epsilon / theta < 31
]


@pytest.mark.parametrize(("theta", "epsilon"), CASES)
def test_gaussian_delta_against_a_thousand_digits(theta, epsilon):
    a, b = theta / 2 - epsilon / theta, theta / 2 + epsilon / theta
    # The derivative of ln(delta) by a is at most about 1 + |a|. The rounding error of a is about
    # b EPSILON, and a^2 / 2 is rounded, too. The quadrature for theta < 1 is exact to 2e-14.
    rtol = 5e-14 + 16 * EPSILON * (1 + abs(a)) * b
    assert gaussian_delta(theta, 1.0, epsilon) == pytest.approx(
        float(exact_delta(theta, epsilon)), rel=rtol, abs=0
    )


def test_gaussian_delta_has_no_gap_where_its_two_forms_meet():
    below, above = (gaussian_delta(theta, 1.0, 0.5) for theta in (1 - 1e-15, 1 + 1e-15))
    assert below == pytest.approx(above, rel=5e-14, abs=0)


@given(sensitivities, st.floats(1e-6, 1e6), st.floats(1e-6, 1e6))
def test_gaussian_delta_falls_in_the_noise_and_in_epsilon(sensitivity, scale, epsilon):
    delta = gaussian_delta(sensitivity, scale, epsilon)
    assert 0 <= delta <= 1
    slack = 1 + 1e-6  # far above rounding errors, which then cannot reverse the inequality
    assert gaussian_delta(sensitivity, scale * slack, epsilon) <= delta
    assert gaussian_delta(sensitivity, scale, epsilon * slack) <= delta


@pytest.mark.parametrize(("theta", "expected"), [(1e300, 1.0), (1e-300, 0.0)])
def test_gaussian_delta_at_the_ends(theta, expected):
    assert gaussian_delta(theta, 1.0, 1.0) == expected


@given(sensitivities, st.floats(1e-9, 1e6), st.floats(1e-300, 0.499))
def test_the_analytic_scale_is_just_enough(sensitivity, epsilon, delta):
    scale = analytic_gaussian_scale(sensitivity, ApproxDP(epsilon, delta))
    theta = sensitivity / scale
    # This test rounds theta again. A relative error of theta changes ln(delta) by at most about
    # (1 + |a|) b times as much.
    a, b = theta / 2 - epsilon / theta, theta / 2 + epsilon / theta
    rounding = 16 * EPSILON * (1 + (1 + abs(a)) * b)
    assert gaussian_delta(sensitivity, scale, epsilon) <= delta * (1 + rounding)
    less = 1 - 1e-6 - rounding
    assert gaussian_delta(sensitivity, scale * less, epsilon) > delta


@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 3.0])
@pytest.mark.parametrize("delta", [1e-300, 1e-100, 1e-9])
def test_the_analytic_scale_is_rounded_up(epsilon, delta):
    """In exact arithmetic the scale is enough, but the scale times 1 - 2^-49 is not.

    The library enlarges the scale by the margin 2^-50. A relative change of the scale changes
    ln(delta) by about a^2 times as much, for a = theta / 2 - epsilon / theta. For scales above the
    sensitivity, this is more than the error of the computed ln(delta).
    """
    scale = analytic_gaussian_scale(1.0, ApproxDP(epsilon, delta))
    assert scale > 1
    assert exact_delta_of_scale(scale, epsilon) <= mpf(delta)
    assert exact_delta_of_scale(scale * (1 - 2.0**-49), epsilon) > mpf(delta)


@given(sensitivities, st.floats(1e-6, 1e3))
def test_the_zcdp_scale_is_rounded_up(sensitivity, rho):
    scale = zcdp_gaussian_scale(sensitivity, ZCDP(rho))
    assert 2 * Fraction(rho) * Fraction(scale) ** 2 >= Fraction(sensitivity) ** 2
    lower = Fraction(scale) * (1 - 4 * Fraction(EPSILON))
    assert 2 * Fraction(rho) * lower**2 < Fraction(sensitivity) ** 2


@given(sensitivities, st.floats(1e-6, 1e3), st.floats(0, 1e3))
@example(sensitivity=3.0, epsilon=0.5, place=0.0)
@example(sensitivity=1.0, epsilon=0.1, place=0.0)
def test_laplace_scale_bounds_the_density_ratio(sensitivity, epsilon, place):
    scale = laplace_scale(sensitivity, PureDP(epsilon))
    assert scale in (sensitivity / epsilon, np.nextafter(sensitivity / epsilon, np.inf))
    assert Fraction(scale) * Fraction(epsilon) >= Fraction(sensitivity)
    smaller = Fraction(math.nextafter(scale, 0.0))
    assert smaller * Fraction(epsilon) < Fraction(sensitivity)
    log_ratio = (abs(place - sensitivity) - abs(place)) / scale
    assert abs(log_ratio) <= epsilon * (1 + 8 * EPSILON * (1 + place / sensitivity))


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(32.1, 2.8e-190), (200.0, 1e-250), (137.0, 1e-40), (20.0, 1e-76)]
)
def test_the_analytic_scale_is_enough_below_the_sensitivity(epsilon, delta):
    """Here Phi(a) and e^epsilon Phi(-b) are close, and ln(delta) is far below 0."""
    scale = analytic_gaussian_scale(1.0, ApproxDP(epsilon, delta))
    assert scale < 1
    assert exact_delta_of_scale(scale, epsilon) <= mpf(delta)


def test_gaussian_scale_follows_the_guarantee():
    assert gaussian_scale(2.0, ZCDP(0.5)) == zcdp_gaussian_scale(2.0, ZCDP(0.5))
    approx = ApproxDP(1.0, 1e-6)
    assert gaussian_scale(2.0, approx) == analytic_gaussian_scale(2.0, approx)


SCALES = {
    laplace_scale: PureDP(1.0),
    zcdp_gaussian_scale: ZCDP(1.0),
    analytic_gaussian_scale: ApproxDP(1.0, 1e-6),
}


@pytest.mark.parametrize(
    ("function", "arguments", "message"),
    [
        *(
            (function, (1.0, other), f"privacy must be {type(own).__name__}, got ")
            for function, own in SCALES.items()
            for other in SCALES.values()
            if other is not own
        ),
        *(
            (function, (0.0, own), "sensitivity must be a finite number above 0")
            for function, own in SCALES.items()
        ),
        (gaussian_scale, (2.0, PureDP(1.0)), "ZCDP or ApproxDP for Gaussian noise, got 1-DP"),
        (laplace_scale, (1e300, PureDP(1e-300)), "noise scale"),
    ],
)
def test_refusals(function, arguments, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        function(*arguments)
