import math

import mpmath
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from geomdp.mechanisms import Geometric, Laplace
from geomdp.noise import LaplaceNoise
from geomdp.noise.few_queries import GeometricNoise
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
from geomdp.privacy.definitions import (
    convert_adjacency,
    largest_epsilon,
    pure_implying,
    rho_of_pure,
)
from geomdp.privacy.ledger import Spend, affordable, spent_parameters
from geomdp.workloads import Explicit

#: Orders of Renyi divergences, the first near 1.
ORDERS = (1 + 1e-6, 1.01, 1.5, 2.0, 5.0, 40.0)
ONE_COUNT = Explicit(np.array([[0, 1]]))
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


@pytest.mark.parametrize(("rho", "epsilon"), [(4.0, 4.993), (8.0, 9.000)])
def test_epsilon_of_laplace_noise_for_zcdp(rho, epsilon):
    assert largest_epsilon(rho, 0.0) == pytest.approx(epsilon, abs=5e-4)
    noise = Laplace(ONE_COUNT, n=1, privacy=ZCDP(rho)).noise
    assert noise.scale == pytest.approx(1 / epsilon, rel=1e-4)


@given(st.floats(5e-324, 1.7e308), st.just(1.0) | st.just(0.0) | st.floats(1e-3, 1.0))
def test_epsilon_is_the_largest_for_the_rho_asked(rho, step):
    rho = rho if step == 1 else min(max(rho, 1e-12), 1e12)
    epsilon = largest_epsilon(rho, step)
    assert rho_of_pure(epsilon, step) <= rho
    assert rho_of_pure(math.nextafter(epsilon, math.inf), step) > rho


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("steps", [1, 2, 3, 7])
def test_rho_of_geometric_noise_is_its_largest_divergence_per_order(epsilon, steps):
    """Pr[Z = z] is proportional to e^(-epsilon |z| / j) for whole z, and z moves by j steps."""
    tail = math.ceil(60 * steps / epsilon)  # beyond it, a term is below e^-60 of the largest
    with mpmath.workdps(40):
        rate = mpmath.mpf(epsilon) / steps
        first, second = (
            [-rate * abs(z - at) for z in range(-tail, tail)] for at in (0, steps)
        )  # logarithms of the laws, up to a constant
        total = mpmath.fsum(map(mpmath.exp, first))
        rho, shares = rho_of_pure(epsilon, 1 / steps), []
        for order in ORDERS:
            terms = (
                mpmath.exp(order * p + (1 - order) * q) for p, q in zip(first, second, strict=True)
            )
            divergence = mpmath.log(mpmath.fsum(terms) / total) / (order - 1)
            shares.append(divergence / order)
    assert all(share <= rho * (1 + 1e-15) for share in shares)
    # The supremum is at order 1. The divergences fall short of it in proportion to order - 1.
    assert shares[0] == pytest.approx(rho, rel=1e-4)
    assert shares == sorted(shares, reverse=True)
    assert rho_of_pure(epsilon, 0.0) < rho <= rho_of_pure(epsilon)


@given(st.floats(1e-3, 30.0))
def test_rho_of_laplace_noise_is_its_largest_divergence_per_order(epsilon):
    rho, shares = rho_of_pure(epsilon, 0.0), []
    for order in ORDERS:
        with mpmath.workdps(40):
            a, e = mpmath.mpf(order), mpmath.mpf(epsilon)
            moment = a * mpmath.exp((a - 1) * e) + (a - 1) * mpmath.exp(-a * e)
            shares.append(mpmath.log(moment / (2 * a - 1)) / (a - 1) / a)
    assert all(share <= rho * (1 + 1e-15) for share in shares)
    assert shares[0] == pytest.approx(rho, rel=1e-4)


@given(
    st.lists(st.integers(0, 9), min_size=1, max_size=5),
    st.sampled_from([1, 2, 3]),
    st.floats(0.01, 20.0),
)
def test_rho_holds_for_changes_of_many_numbers(changes, unit, epsilon):
    """Changes by c_i steps, which add up to at most 1, lose at most the rho of the step.

    A number that changes by c steps loses the KL divergence t (c - (1 - q^c) 2 q / (1 - q^2)), for
    q = e^-t and t = epsilon times the step.
    """
    total = max(1, sum(changes)) * unit
    lost = 0.0
    for change in changes:
        t = epsilon * unit / total
        lost += t * change - t / math.sinh(t) * -math.expm1(-t * change)
    assert lost <= rho_of_pure(epsilon, unit / total) * (1 + 1e-9)


@pytest.mark.parametrize("rho", [0.01, 0.5, 2.0, 8.0])
def test_noise_for_zcdp_loses_all_of_the_rho_and_no_more(rho):
    """The least scale: rho of the noise that the mechanisms add, by its own parameters."""
    for answers in ([[0, 1]], [[0, 3]], [[0, 2, 3]]):
        workload = Explicit(np.array(answers))
        change = float(max(answers[0]))
        geometric = Geometric(workload, n=1, privacy=ZCDP(rho)).noise
        laplace = Laplace(workload, n=1, privacy=ZCDP(rho)).noise
        assert isinstance(geometric, GeometricNoise)
        assert isinstance(laplace, LaplaceNoise)
        unit = 3.0 if answers == [[0, 3]] else 1.0
        for scale, t in ((laplace.scale, 0.0), (geometric.scale, unit / geometric.scale)):
            lost = change / scale - (t / math.sinh(t) if t else 1.0) * -math.expm1(-change / scale)
            assert rho * (1 - 1e-9) <= lost <= rho * (1 + 1e-12)


def test_pure_privacy_implies_approximate_privacy():
    assert pure_implying(ApproxDP(0.3, 1e-6)) == pure_implying(PureDP(0.3)) == PureDP(0.3)


@given(st.floats(1e-12, 1e12))
def test_a_zcdp_ledger_charges_pure_privacy_no_more_than_the_rho_asked(rho):
    pure = pure_implying(ZCDP(rho))
    assert pure.epsilon == largest_epsilon(rho)
    assert pure_to_zcdp(pure).rho <= rho
    assert spent_parameters(ZCDP(rho), [Spend("", pure)])["rho"] <= rho


@given(rhos, deltas)
@example(5e-324, 5e-324)
@example(1e308, 5e-324)
@example(1e-300, 0.49)
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
