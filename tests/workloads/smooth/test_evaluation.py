"""Coefficients of queries: known series, filters, proved error bounds, and misuse."""

import math
import re

import numpy as np
import pytest
import scipy.special

from geomdp.workloads.smooth import (
    GaussianMixture,
    Jackson,
    Logistic,
    Polynomial,
    Shrinkage,
    StatedSmoothness,
    Truncation,
    approximate,
)
from geomdp.workloads.smooth.evaluation import (
    angular_bounds,
    best_approximation,
    jackson_multiplier,
    kernel_moment,
    nodes_per_axis,
    truncation_bound,
    truncation_norm,
)
from tests.workloads.smooth.forms import FORMS, cosines, cube_points


def test_known_series():
    """The Chebyshev coefficients of e^x are 2 I_m(1), halved for m = 0."""
    expected = 2 * scipy.special.iv(np.arange(12), 1.0)
    expected[0] /= 2
    found = approximate(lambda x: np.exp(x[:, 0]), 12, 1, Truncation())
    np.testing.assert_allclose(found.values, expected, atol=1e-15)
    found = approximate(Polynomial([[2, 2]], [1.0]), 3, 2, Truncation())
    np.testing.assert_allclose(found.values, np.outer([1, 0, 1], [1, 0, 1]) / 4, atol=1e-15)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_polynomials_are_answered_exactly_without_noise(d):
    rng = np.random.default_rng(d)
    exponents = rng.integers(0, 5, (6, d))
    query = Polynomial(exponents, rng.normal(size=6))
    records = cube_points(50, d)
    found = approximate(query, 5, d, Truncation())
    moments = cosines(records, 5).mean(axis=0)
    assert found.answer(moments) == pytest.approx(query(records).mean(), rel=1e-13, abs=1e-14)
    assert found.approximation_error < 1e-13
    np.testing.assert_allclose(found(records), query(records), atol=1e-13)


@pytest.mark.parametrize("query", FORMS, ids=repr)
@pytest.mark.parametrize("filter", [Truncation(), Jackson(2), Jackson(5)], ids=repr)
@pytest.mark.parametrize("size", [4, 9, 16])
def test_proved_bounds_hold_and_estimates_are_seen(query, filter, size):
    d = query.dimension
    found = approximate(query, size, d, filter)
    points = cube_points(500, d, seed=1)
    worst = np.abs(found(points) - query(points)).max()
    assert max(worst, found.approximation_error) <= found.error_bound + 1e-13
    # `approximation_error` is the largest error at the corners and 1024 evenly spread points. So
    # the errors at other points are not much larger.
    assert worst <= 1.5 * found.approximation_error + 1e-13
    records = points[:77]
    moments = cosines(records, size).mean(axis=0)
    gap = abs(found.answer(moments) - query(records).mean())
    assert gap <= found.error_bound + 1e-13


def test_angular_bounds_of_monomials_are_powers():
    """The bound on derivative K of cos(a)^m is the sum of S(K, j) m (m-1) .. (m-j+1), or m^K."""
    for m in (1, 2, 7):
        bounds = angular_bounds(Polynomial([[m]], [1.0]).order_bounds(20))
        np.testing.assert_allclose(bounds, float(m) ** np.arange(21), rtol=1e-12)


def test_best_approximation_of_a_monomial():
    """The best approximation of x^t by polynomials of lower degree has error 2^(1-t)."""
    for size in (1, 3, 8):
        bounds = Polynomial([[size]], [1.0]).order_bounds(30)
        assert best_approximation(bounds, size) == pytest.approx(2.0 ** (1 - size), rel=1e-12)


@pytest.mark.parametrize(("size", "nodes"), [(1, 1), (1, 2), (5, 5), (8, 16), (30, 60)])
def test_truncation_norm_bounds_the_discrete_operator(size, nodes):
    angles, where = np.pi * (np.arange(nodes) + 0.5) / nodes, np.linspace(0, np.pi, 4001)
    factors = np.where(np.arange(size) == 0, 1, 2) / nodes
    norm = (
        np.abs(
            (cosines(np.cos(where[:, None]), size) * factors)
            @ cosines(np.cos(angles[:, None]), size).T
        )
        .sum(axis=1)
        .max()
    )
    assert norm - 1e-12 <= truncation_norm(size, nodes) < 3 * norm


def test_error_bound_of_jackson_by_hand():
    """The norm is 2^(K + 1) - 1 = 7 in each variable, for the error and for the aliasing."""
    bounds = np.array([1.0, 2.0, 5.0, 9.0])
    single = 2 * kernel_moment(2, 9) * (2 + 5)
    expected = single * (1 + 7) + 7**2 * truncation_bound(bounds, 18, 18, 2)
    assert Jackson(2).error_bound(bounds, 9, 18, 2) == pytest.approx(expected, rel=1e-12)
    assert Jackson(4).error_bound(bounds, 9, 18, 2) == math.inf


def test_many_degrees_are_within_float64():
    """For t = 2^22, t^60 is beyond float64; the bound from one derivative is pi / (2 t)."""
    bounds = StatedSmoothness(np.sum, 1, smoothness=1, bound=1.0).order_bounds(60)
    assert best_approximation(bounds, 1 << 22) == pytest.approx(math.pi / 2**23, rel=1e-12)
    narrow = GaussianMixture([[0.0]], [1.0], 1e-3).order_bounds(60)
    assert 0 <= best_approximation(narrow, 1 << 22) < 1e-100


@pytest.mark.parametrize("d", [1, 2])
def test_jackson_coefficients_are_bounded(d):
    """|c_m| <= 2^((K+1) d) B for queries bounded by B; the filter is a product of multipliers."""
    K, size = 2, 12
    query = Logistic([6.0] * d, 0.2)
    found = approximate(query, size, d, Jackson(K))
    assert np.abs(found.values).max() <= 2 ** ((K + 1) * d) * query.derivative_bound(0)
    plain = approximate(query, size, d, Truncation()).values
    multiplier = jackson_multiplier(K, size)
    weights = multiplier if d == 1 else np.outer(multiplier, multiplier)
    np.testing.assert_allclose(found.values, plain * weights, rtol=1e-14)


def kinked(order):
    """A function of one variable whose derivative of order `order` jumps at 0.3."""
    return lambda x: np.sign(x[:, 0] - 0.3) ** (order - 1) * np.abs(x[:, 0] - 0.3) ** order


def test_jackson_error_is_of_order_t_to_the_minus_k():
    """For a query with K derivatives, the error falls about like t^-K from t = 33 to t = 129."""
    for K, low, high in ((1, 0.9, 1.3), (2, 1.8, 2.3)):
        query = StatedSmoothness(kinked(K), 1, K, 3.4)
        coarse, fine = (
            approximate(query, size, 1, Jackson(K)).approximation_error for size in (33, 129)
        )
        assert low < math.log(coarse / fine) / math.log(128 / 32) < high


def test_shrinkage_is_the_best_multiplier():
    """The weight w minimises E (w (M + Z) - M)^2 = (1 - w)^2 v + w^2 s^2.

    Here v = E M^2 for a moment M, and s is the standard deviation of its noise Z.
    """
    rng = np.random.default_rng(0)
    deviations = rng.uniform(0.01, 0.5, (4, 4))
    deviations[0, 0] = 0
    weights = Shrinkage(deviations, n=50).weights(4, 2)
    assert weights[0, 0] == 1
    # At decay 0, v is the mean of prod_i T_{m_i}(x_i)^2 under the Chebyshev measure, which is
    # 2^-(number of nonzero m_i).
    expected = np.outer([1, 0.5, 0.5, 0.5], [1, 0.5, 0.5, 0.5])
    np.testing.assert_allclose(weights, expected / (expected + deviations**2), rtol=1e-14)
    smooth = Shrinkage(deviations, n=50, decay=2.0).weights(4, 2)
    assert (smooth.ravel()[1:] <= weights.ravel()[1:]).all()
    assert smooth[3, 1] == pytest.approx(
        0.25 * (0.98 / 81 + 0.02) / (0.25 * (0.98 / 81 + 0.02) + deviations[3, 1] ** 2), rel=1e-13
    )


def test_answer_and_its_noise():
    found = approximate(Polynomial([[1, 0], [0, 2]], [3.0, 4.0]), 3, 2, Truncation())
    moments = np.zeros((3, 3))
    moments[0, 0], moments[1, 0], moments[0, 2] = 1, 0.5, 0.25
    assert found.answer(moments) == pytest.approx(2 + 1.5 + 0.5, rel=1e-14)
    assert found.noise_std(moments) == pytest.approx(math.hypot(2, 1.5, 0.5), rel=1e-14)
    assert (found.degree, found.dimension) == (3, 2)
    with pytest.raises(ValueError, match=r"moments must have shape \(3, 3\), got \(3, 2\)"):
        found.answer(np.zeros((3, 2)))
    with pytest.raises(ValueError, match="must lie in the cube"):
        found([[0.0, 1.5]])


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (lambda x: math.exp(x[0]), "must take an array of points .* it raised TypeError"),
        (lambda x, y: x + y, "it raised TypeError"),
        (lambda x: x[0], r"must return values \(1028,\) for points \(1028, 2\), got shape \(2,\)"),
        (lambda x: np.exp(-(x**2).sum()), r"got shape \(\)"),
        (lambda x: x, r"got shape \(1028, 2\)"),
        (lambda x: x[:, :1], r"got shape \(1028, 1\)"),
        (lambda x: x[:, 2], "it raised IndexError"),
        (lambda x: np.log(x[:, 0] + 2) + 0j, "must return real numbers, got complex128"),
        (lambda x: np.array(["a"] * len(x)), "must return real numbers, got <U1"),
        (lambda x: np.where(x[:, 0] > 0.9, np.nan, 1.0), "must be finite on the cube, got nan at"),
        (lambda x: x[:, 0] - x[:, 0].mean(), "must give each point its own value"),
        (StatedSmoothness(lambda x: x[0], 2, 1, 1.0), r"^query must return values \(1028,\)"),
        (3, "must be callable, number 0 is a int"),
        (Logistic([1.0], 0.0), "query must have 2 variables, number 0 has 1"),
    ],
)
def test_misuse_of_queries(query, message):
    with pytest.raises(ValueError, match=message):
        approximate(query, 4, 2, Truncation())


def test_closed_forms_with_infinite_values_are_refused():
    """At (1, 1), two terms of 1.7e308 add up to infinity."""
    query = Polynomial([[1, 0], [0, 1]], [1.7e308, 1.7e308])
    with np.errstate(over="ignore"), pytest.raises(ValueError, match="finite on the cube, got"):
        approximate(query, 4, 2, Truncation())


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda f: approximate(f, 0, 1, Truncation()), "degree must be"),
        (lambda f: approximate(f, 4, 0, Truncation()), "dimension must be"),
        (lambda f: approximate(f, 4, 13, Truncation()), "degree^dimension must be at most"),
        (lambda f: approximate(f, 4, 1, None), "filter must be a Filter"),
        (lambda f: approximate(f, 4, 1, Shrinkage(np.ones(3), 5)), r"shape \(4,\), got \(3,\)"),
        (lambda f: Shrinkage(-np.ones(3), 5), "numbers at least 0"),
        (lambda f: Shrinkage(np.ones(3), 5, decay=-1.0), "decay must be .* got -1.0"),
    ],
)
def test_errors(call, message):
    with pytest.raises(ValueError, match=re.escape(message) if "^" in message else message):
        call(lambda x: np.ones(len(x)))


@pytest.mark.parametrize(("size", "dimension"), [(2, 13), (3, 10)])
def test_many_variables_take_one_node_per_degree(size, dimension):
    """Polynomials of degrees below `size` are interpolated exactly; other bounds stay valid."""
    assert nodes_per_axis(size, 8) == 2 * size
    assert nodes_per_axis(size, dimension) == size
    rng = np.random.default_rng(1)
    query = Polynomial(rng.integers(0, size, (5, dimension)), rng.normal(size=5))
    assert approximate(query, size, dimension, Truncation()).approximation_error < 1e-12
    kernel = GaussianMixture(rng.uniform(-1, 1, (1, dimension)), [1.0], 2.0)
    found = approximate(kernel, size, dimension, Truncation())
    assert 0 < found.approximation_error < found.error_bound
