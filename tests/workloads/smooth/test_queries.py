"""Queries in closed form: values, bounds on derivatives, files and wrong arguments."""

from __future__ import annotations

import itertools
import json
import math

import numpy as np
import pytest

from geomdp.workloads.smooth import (
    GaussianMixture,
    Logistic,
    Polynomial,
    SoftRange,
    StatedSmoothness,
    Waves,
)
from geomdp.workloads.smooth.queries import (
    KINDS,
    gaussian_derivative,
    largest_product,
    logistic_derivative,
    query_from_dict,
)
from tests.workloads.smooth.forms import FORMS, cube_points

#: Half-width and number of nodes of the stencils below. Derivatives up to order 4 are accurate to
#: 1e-5.
REACH, NODES = 0.1, 10


def stencil(order):
    """Nodes, and weights that give the derivative of the interpolating polynomial at 0."""
    unit = np.cos(np.pi * (2 * np.arange(NODES) + 1) / (2 * NODES))
    target = np.zeros(NODES)
    target[order] = math.factorial(order) / REACH**order
    return REACH * unit, np.linalg.solve(np.vander(unit, increasing=True).T, target)


def derivative(query, orders, points):
    """The partial derivative of `query` of the given orders at points (n, d), numerically."""
    total = np.zeros(len(points))
    rules = [zip(*stencil(order), strict=True) for order in orders]
    for choice in itertools.product(*rules):
        steps, weights = zip(*choice, strict=True)
        total += math.prod(weights) * query(points + np.array(steps))
    return total


@pytest.mark.parametrize("query", FORMS, ids=repr)
def test_no_derivative_exceeds_its_bound(query):
    d = query.dimension
    points, bounds = cube_points(40, d) * (1 - REACH), query.order_bounds(4)
    for order in range(5 if d < 3 else 3):
        for orders in itertools.product(range(order + 1), repeat=d):
            if sum(orders) == order:
                largest = np.abs(derivative(query, orders, points)).max()
                assert largest <= bounds[order] * (1 + 1e-4) + 1e-7, orders
    assert query.derivative_bound(4) == bounds.max()
    assert query.derivative_bound(0) == bounds[0]


@pytest.mark.parametrize(
    ("query", "order"),
    [
        *[(GaussianMixture([[0.0]], [1.0], 0.4), order) for order in range(5)],
        *[(Logistic([3.0], 0.0), order) for order in (1, 3)],
        *[(Waves([[6.0]], [1.0], [0.0]), order) for order in range(5)],
        *[(Polynomial([[6]], [1.0]), order) for order in range(5)],
    ],
    ids=repr,
)
def test_bounds_of_one_variable_are_attained(query, order):
    """For these functions, the bounds are equal to the largest derivatives."""
    reach = 1 - REACH if not isinstance(query, Polynomial) else 1
    points = np.linspace(-reach, reach, 2001)[:, None]
    largest = np.abs(derivative(query, (order,), points)).max()
    np.testing.assert_allclose(largest, query.order_bounds(order)[order], rtol=2e-4)


def test_largest_derivatives_in_closed_form():
    """For instance, the logistic function s has s''' = s' (1 - 6 s'), with largest modulus 1/8."""
    known = {0: 1.0, 1: math.exp(-0.5), 2: 1.0, 3: 1.380118, 4: 3.0}
    for order, value in known.items():
        assert gaussian_derivative(order) == pytest.approx(value, rel=1e-6)
    assert gaussian_derivative(60) == pytest.approx(
        math.factorial(60) / (2**30 * math.factorial(30)), rel=1e-9
    )
    known = {0: 1.0, 1: 1 / 4, 3: 1 / 8, 5: 1 / 4, 7: 17 / 16}
    for order, value in known.items():
        assert logistic_derivative(order) == pytest.approx(value, rel=1e-12)


def test_largest_product_is_the_maximum_over_all_splits():
    factors = np.random.default_rng(0).uniform(0, 3, (6, 3))
    found = largest_product(factors)
    for order, value in enumerate(found):
        splits = [k for k in itertools.product(range(order + 1), repeat=3) if sum(k) == order]
        best = max(math.prod(factors[k_i, i] for i, k_i in enumerate(k)) for k in splits)
        assert value == pytest.approx(best, rel=1e-14)


def test_values():
    points = cube_points(20, 2)
    x, y = points.T
    query = GaussianMixture([[0.3, -0.5], [-0.8, 0.1]], [1.0, -0.5], 0.5)
    squares = [(x - a) ** 2 + (y - b) ** 2 for a, b in query.centres]
    expected = np.exp(-2 * squares[0]) - 0.5 * np.exp(-2 * squares[1])
    np.testing.assert_allclose(query(points), expected, rtol=1e-12, atol=1e-14)
    for bandwidth in (1e-150, 1e150):
        assert GaussianMixture([[0.5]], [1.0], bandwidth)([[0.5]]) == [1.0]
    polynomial = Polynomial([[3, 0], [1, 2], [0, 0]], [1.0, -2.0, 0.5])
    np.testing.assert_allclose(polynomial(points), x**3 - 2 * x * y**2 + 0.5, atol=1e-14)
    wave = Waves([[2.0, -1.0]], [3.0], [0.4])
    np.testing.assert_allclose(wave(points), 3 * np.cos(2 * x - y + 0.4), atol=1e-14)
    score = Logistic([2.0, -1.0], 0.3)
    np.testing.assert_allclose(score(points), 1 / (1 + np.exp(-2 * x + y - 0.3)), rtol=1e-14)
    box = SoftRange([-0.5, -2.0], [0.6, 0.1], 1e-3)
    edge = (np.abs(points - box.low) > 0.05).all(1) & (np.abs(points - box.high) > 0.05).all(1)
    inside = ((points > box.low) & (points < box.high)).all(axis=1)
    np.testing.assert_allclose(box(points[edge]), inside[edge], atol=1e-12)


@pytest.mark.parametrize("query", FORMS, ids=repr)
def test_files_hold_the_query(query):
    again = query_from_dict(json.loads(json.dumps(query.to_dict())))
    points = cube_points(9, query.dimension)
    assert type(again) is type(query)
    np.testing.assert_array_equal(again(points), query(points))
    assert again.to_dict() == query.to_dict()


def test_every_kind_has_a_row():
    assert {type(query) for query in FORMS} == set(KINDS.values())


@pytest.mark.parametrize(
    ("description", "message"),
    [
        ([1], "must be a dict, got list"),
        ({}, "kind must be one of GaussianMixture, "),
        ({"kind": "Cauchy"}, "got 'Cauchy'"),
        ({"kind": ["Logistic"]}, "kind must be one of"),
        ({"kind": "Logistic", "weights": [1.0]}, "must have the parameters weights, bias"),
        ({"kind": "Logistic", "weights": [1.0], "bias": 0, "x": 1}, "got weights, bias, x"),
        ({"kind": "Logistic", "weights": "no", "bias": 0}, "weights must be numeric"),
        ({"kind": "Logistic", "weights": [1.0], "bias": None}, "bias must be"),
    ],
)
def test_files_that_hold_no_query(description, message):
    with pytest.raises(ValueError, match=message):
        query_from_dict(description)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: GaussianMixture([[0.0]], [1.0], 0.0), "bandwidth must be .* got 0.0"),
        *(
            (lambda h=h: GaussianMixture([[0.2]], [1.0], h), "must be from 1e-150 to 1e150, got ")
            for h in (1e-200, 0.9e-150, 1.1e150, 1e200)  # their squares must fit in float64
        ),
        (lambda: GaussianMixture([[0.0]], [1.0, 2.0], 1.0), "weights must have shape"),
        (lambda: GaussianMixture([[math.nan]], [1.0], 1.0), "centres must be finite"),
        (lambda: GaussianMixture(np.empty((0, 2)), [], 1.0), "centres must not be empty"),
        (lambda: Polynomial([[-1]], [1.0]), "exponents must be whole"),
        (lambda: Polynomial([[0.5]], [1.0]), "exponents must be whole"),
        (lambda: Logistic([], 0.0), "weights must not be empty"),
        (lambda: SoftRange([0.5], [0.5], 0.1), "low must be below high"),
        (lambda: StatedSmoothness(3, 1, 2, 1.0), "function must be callable, got int"),
        (lambda: StatedSmoothness(np.sum, 1, 0, 1.0), "smoothness must be"),
        (lambda: StatedSmoothness(np.sum, 1, 2, -1.0), "bound must be"),
        (lambda: Logistic([1.0], 0.0).derivative_bound(61), "order must be .* at most 60"),
        (lambda: Logistic([1.0], 0.0)(np.zeros((3, 2))), r"points must have shape \(b, 1\)"),
    ],
)
def test_errors(build, message):
    with pytest.raises(ValueError, match=message):
        build()


def test_stated_smoothness_ends_at_its_order():
    query = StatedSmoothness(lambda x: np.abs(x[:, 0]), 2, smoothness=1, bound=1.0)
    np.testing.assert_array_equal(query.order_bounds(3), [1, 1, np.inf, np.inf])
    assert query.derivative_bound(1) == 1
    assert query.derivative_bound(2) == math.inf


def test_bounds_beyond_float64_are_infinite():
    narrow = GaussianMixture([[0.0]], [1.0], 1e-9)
    assert narrow.order_bounds(60)[-1] == math.inf
    assert GaussianMixture([[0.0]], [0.0], 1e-9).order_bounds(60)[-1] == math.inf
