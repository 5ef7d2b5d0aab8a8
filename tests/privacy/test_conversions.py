import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geomdp.privacy import (
    ZCDP,
    Adjacency,
    ApproxDP,
    PureDP,
    gaussian_delta,
    group_privacy,
    pure_to_zcdp,
    zcdp_to_approx,
    zcdp_to_approx_optimal_order,
)
from geomdp.privacy.definitions import convert_adjacency, pure_implying
from geomdp.privacy.ledger import Spend, affordable, spent_parameters

EPSILON = np.finfo(np.float64).eps
rhos = st.floats(1e-9, 1e3)
deltas = st.floats(1e-300, 0.49)


@given(st.floats(1e-3, 20.0), st.floats(1.001, 200.0))
def test_pure_to_zcdp_bounds_the_renyi_divergence_of_randomised_response(epsilon, order):
    # On two neighbours, randomised response has the laws P = (p, 1 - p) and Q = (1 - p, p) with
    # p / (1 - p) = e^epsilon. No epsilon-DP mechanism has a larger divergence.
    log_p = -math.log1p(math.exp(-epsilon))
    log_q = log_p - epsilon
    moment = np.logaddexp(order * log_p + (1 - order) * log_q, order * log_q + (1 - order) * log_p)
    divergence = moment / (order - 1)
    # The moment is a difference of terms of size order * epsilon. The division by order - 1 makes
    # their rounding errors larger.
    rounding = 8 * EPSILON * order * (1 + epsilon) / (order - 1)
    assert divergence <= order * pure_to_zcdp(PureDP(epsilon)).rho + rounding


@given(st.floats(5e-324, 1.7e308))
def test_pure_privacy_implies_no_more_than_the_rho_asked(rho):
    epsilon = pure_implying(ZCDP(rho)).epsilon
    # In exact arithmetic, epsilon^2 / 2 <= rho, and the next larger float64 violates this.
    assert Fraction(epsilon) ** 2 <= 2 * Fraction(rho)
    assert Fraction(math.nextafter(epsilon, math.inf)) ** 2 > 2 * Fraction(rho)


@given(st.floats(1e-12, 1e12))
def test_a_zcdp_ledger_charges_pure_privacy_no_more_than_the_rho_asked(rho):
    pure = pure_implying(ZCDP(rho))
    assert pure_to_zcdp(pure).rho <= rho
    assert spent_parameters(ZCDP(rho), [Spend("", pure)])["rho"] <= rho


def test_pure_privacy_that_implies_other_guarantees():
    assert pure_implying(ZCDP(0.5)) == PureDP(1.0)
    assert pure_implying(ZCDP(4.5)) == PureDP(3.0)
    assert pure_implying(ApproxDP(0.3, 1e-6)) == pure_implying(PureDP(0.3)) == PureDP(0.3)


@given(rhos, deltas)
def test_the_optimal_order_is_never_worse(rho, delta):
    tight = zcdp_to_approx_optimal_order(ZCDP(rho), delta)
    assert rho <= tight.epsilon <= zcdp_to_approx(ZCDP(rho), delta).epsilon * (1 + 8 * EPSILON)


@given(st.floats(1e-4, 1e2), st.floats(1e-300, 1e-3))
def test_the_optimal_order_is_the_best_of_a_fine_grid(rho, delta):
    # The Renyi orders are 1 + t. At the largest order, order * rho alone is above the unoptimised
    # epsilon, so larger orders cannot be best.
    standard = zcdp_to_approx(ZCDP(rho), delta).epsilon
    t = np.geomspace(1e-3 * rho / standard, standard / rho, 20_000)
    values = (1 + t) * rho + np.log(t / (1 + t)) - (math.log(delta) + np.log1p(t)) / t
    tight = zcdp_to_approx_optimal_order(ZCDP(rho), delta).epsilon
    best = max(values.min(), rho)
    assert tight <= best * (1 + 1e-12)
    # Neighbouring t differ by a factor of at most 1 + 2e-3, and the minimum is flat, so the least
    # value on the grid is close to the minimum.
    assert tight >= best * (1 - 1e-3)


@given(st.floats(1e-4, 50.0), st.floats(1e-250, 0.4))
def test_the_conversions_hold_for_gaussian_noise(rho, delta):
    # For sensitivity 1, Gaussian noise of standard deviation sigma is rho-zCDP with
    # rho = 1 / (2 sigma^2), and for no smaller rho.
    scale = 1 / math.sqrt(2 * rho)
    for convert in (zcdp_to_approx, zcdp_to_approx_optimal_order):
        epsilon = convert(ZCDP(rho), delta).epsilon
        assert gaussian_delta(1.0, scale, epsilon) <= delta


@pytest.mark.parametrize(("rho", "delta"), [(5e-324, 5e-324), (1e308, 5e-324), (1e-300, 0.49)])
def test_the_optimal_order_at_the_ends_of_float64(rho, delta):
    tight = zcdp_to_approx_optimal_order(ZCDP(rho), delta)
    assert rho <= tight.epsilon <= zcdp_to_approx(ZCDP(rho), delta).epsilon * (1 + 8 * EPSILON)


@given(st.sampled_from([PureDP(0.5), ApproxDP(0.5, 1e-6), ZCDP(0.5)]))
def test_add_remove_to_replace_one_is_a_group_of_two(privacy):
    converted = convert_adjacency(privacy, Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE)
    assert converted == group_privacy(privacy, 2)
    for adjacency in Adjacency:
        assert convert_adjacency(privacy, adjacency, adjacency) is privacy


def test_add_remove_to_replace_one_doubles_epsilon():
    converted = convert_adjacency(PureDP(0.5), Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE)
    assert converted == PureDP(1.0)


@pytest.mark.parametrize("budget", [PureDP(1.7e308), ZCDP(1.7e308), ApproxDP(1.7e308, 1e-6)])
def test_spends_whose_sum_is_beyond_float64_are_not_affordable(budget):
    pure = PureDP(1.7e308)
    assert not affordable(budget, [Spend("", pure), Spend("", pure)])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pure_implying(0.5), "privacy must be PureDP, ApproxDP or ZCDP"),
        (
            lambda: convert_adjacency(PureDP(0.5), Adjacency.REPLACE_ONE, Adjacency.ADD_REMOVE),
            "replace-one gives none under add/remove",
        ),
        *(
            (lambda epsilon=epsilon: pure_to_zcdp(PureDP(epsilon)), "from 1e-150 to 1e150, got ")
            for epsilon in (5e-324, 0.9e-150, 1.1e150, 1.7e308)
        ),
        *(
            (lambda convert=convert, delta=delta: convert(ZCDP(0.5), delta), "delta must be")
            for convert in (zcdp_to_approx, zcdp_to_approx_optimal_order)
            for delta in (0.0, 0.5, math.nan)
        ),
        *(
            (lambda convert=convert, privacy=privacy: convert(privacy, 1e-6), "must be ZCDP, got")
            for convert in (zcdp_to_approx, zcdp_to_approx_optimal_order)
            for privacy in (PureDP(0.5), ApproxDP(0.5, 1e-6))
        ),
    ],
)
def test_refusals(call, message):
    with pytest.raises(ValueError, match=message):
        call()
