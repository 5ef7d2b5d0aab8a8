"""The workload of Chebyshev moments, and queries in closed form with bounds on derivatives."""

import itertools
import json
import math

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from geomdp.workloads import SmoothQueries
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
from geomdp.workloads.smooth.smooth_queries import (
    l1_diameter_of_moments,
    l2_diameter_of_moments,
    weighted_l1_diameter,
)
from tests.workloads.smooth.forms import FORMS, cube_points

#: The l1 diameters S(t, 1) for one variable and t degrees (formula sheet SM-A1).
TABLE = {2: 2, 3: 3.125, 4: 4.31557, 5: 5.51956, 8: 9.15391, 16: 18.87894, 64: 77.29721}
#: Factor that allows for rounding errors of distances.
ROUNDING = 1 + 1e-14
#: Number of grid points per variable for (d, t). A maximum over the grid is within 2% of the
#: maximum over the cube.
GRIDS = {(1, 2): 300, (1, 5): 300, (1, 8): 300, (2, 2): 31, (2, 3): 31, (2, 4): 31, (3, 2): 9}


def grid(d: int, count: int) -> np.ndarray:
    axis = np.cos(np.linspace(0, np.pi, count))
    return np.array(list(itertools.product(axis, repeat=d)))


@pytest.mark.parametrize("size", TABLE)
def test_table_of_l1_diameters(size):
    # The table has six or seven digits, and the bound has a relative error of at most 2e-6.
    assert l1_diameter_of_moments(1, size) == pytest.approx(TABLE[size], rel=4e-6)
    assert l1_diameter_of_moments(3, size) == pytest.approx(size**2 * TABLE[size], rel=4e-6)


@pytest.mark.parametrize("size", [64, 3000])
def test_l2_diameter_of_many_degrees(size):
    """For even t, the moments at 1 and -1 differ by 2 in t/2 degrees, a distance of (2 t)^(1/2)."""
    assert 1 <= l2_diameter_of_moments(1, size) / (2 * size) ** 0.5 < 1 + 3e-5


@pytest.mark.parametrize(("d", "size"), GRIDS)
def test_diameters_bound_and_nearly_attain_those_of_a_grid(d, size):
    workload = SmoothQueries(d, size)
    answers = workload.evaluate(grid(d, GRIDS[d, size]))
    weights = np.random.default_rng(size).random(workload.n_queries)
    pairs = {
        workload.l1_diameter(): cdist(answers, answers, "cityblock").max(),
        workload.weighted_l1_diameter(weights): cdist(
            answers * weights, answers * weights, "cityblock"
        ).max(),
    }
    for bound, found in pairs.items():
        assert 0.98 * bound <= found <= bound * ROUNDING
    found = cdist(answers, answers).max()
    # The bound is attained for even t and for d = 1. For (2, 3), it is 4.24 and the diameter is 4.
    sharp = 0.98 if size % 2 == 0 or d == 1 else 0.9
    assert sharp * workload.l2_diameter() <= found <= workload.l2_diameter() * ROUNDING


def test_weights_too_many_for_a_grid_get_the_plain_bound():
    weights = np.zeros((12,) * 5)
    weights[1, 2, 3, 4, 5] = 1.0
    assert weighted_l1_diameter(weights) == 2.0


@pytest.mark.parametrize(("d", "size"), [(1, 5), (2, 3), (3, 2)])
def test_radii_are_those_of_the_corner(d, size):
    workload = SmoothQueries(d, size)
    answers = workload.evaluate(np.vstack([grid(d, 7), np.ones((1, d))]))
    assert workload.l1_radius() == np.abs(answers).sum(axis=1).max() == size**d - 1
    assert workload.l2_radius() == pytest.approx(np.linalg.norm(answers, axis=1).max(), rel=1e-15)
    assert workload.affine_hull().dimension == workload.n_queries == size**d - 1
    hull = np.linalg.matrix_rank(answers - answers[0])
    assert hull == min(workload.n_queries, len(answers) - 1)


def test_extreme_answers_in_one_variable():
    workload = SmoothQueries(1, 7)
    directions = np.random.default_rng(0).normal(size=(100, 6))
    directions[:3] = 0
    directions[1, 0], directions[2, 0] = 1, -1
    fine = workload.evaluate(grid(1, 200_001))
    found = np.einsum("bm,bm->b", directions, workload.extreme_answers(directions))
    best = (directions @ fine.T).max(axis=1)
    assert (found >= best - 1e-12).all()
    np.testing.assert_allclose(found, best, rtol=0, atol=1e-7)
    np.testing.assert_array_equal(workload.extreme_answers(directions[2:3])[0, :2], [-1, 1])
    with pytest.raises(ValueError, match="d must be 1 for extreme answers, got 2"):
        SmoothQueries(2, 3).extreme_answers(np.zeros((1, 8)))


def test_answers_labels_and_tables():
    workload = SmoothQueries(2, 3)
    points = np.array([[0.5, -1.0], [0.0, 1.0]])
    x, y = points.T
    columns = [y, 2 * y**2 - 1, x, x * y, x * (2 * y**2 - 1), 2 * x**2 - 1]
    expected = np.stack([*columns, columns[5] * y, columns[5] * columns[1]], axis=1)
    np.testing.assert_allclose(workload.evaluate(points), expected, rtol=0, atol=1e-15)
    np.testing.assert_allclose(
        workload.answers(iter([points[:1], points[1:]])), expected.mean(axis=0), atol=2e-9
    )
    assert workload.labels()[:4] == ["T1(x1)", "T2(x1)", "T1(x0)", "T1(x0)*T1(x1)"]
    np.testing.assert_array_equal(workload.orders(), [1, 2, 1, 1, 2, 2, 2, 2])
    table = workload.table(np.arange(1.0, 9.0))
    np.testing.assert_array_equal(table, [[1, 1, 2], [3, 4, 5], [6, 7, 8]])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"d": 1, "degree": 1}, "degree must be a whole number, at least 2"),
        ({"d": 8, "degree": 8}, r"degree\^d must be at most 4194304, got 8\^8"),
    ],
)
def test_bad_parameters(arguments, words):
    with pytest.raises(ValueError, match=words):
        SmoothQueries(**arguments)


# --- queries in closed form -----------------------------------------------------------------------

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
        *(
            (lambda h=h: GaussianMixture([[0.2]], [1.0], h), "must be from 1e-150 to 1e150, got ")
            for h in (1e-200, 0.9e-150, 1.1e150, 1e200)  # their squares must fit in float64
        ),
        (lambda: GaussianMixture([[0.0]], [1.0, 2.0], 1.0), "weights must have shape"),
        (lambda: GaussianMixture(np.empty((0, 2)), [], 1.0), "centres must not be empty"),
        (lambda: Polynomial([[-1]], [1.0]), "exponents must be whole"),
        (lambda: Polynomial([[0.5]], [1.0]), "exponents must be whole"),
        (lambda: Logistic([], 0.0), "weights must not be empty"),
        (lambda: SoftRange([0.5], [0.5], 0.1), "low must be below high"),
        (lambda: StatedSmoothness(3, 1, 2, 1.0), "function must be callable, got int"),
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
