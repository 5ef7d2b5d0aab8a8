"""Psd bodies and their moments: elliptope, psd box, tables, Chebyshev moments and relaxations."""

import itertools
import math
from functools import reduce

import cvxpy as cp
import numpy as np
import pytest
from scipy.spatial import ConvexHull

import geomdp.bodies as gb
from geomdp._numerics.linalg import svec, zero_sum_basis
from geomdp.bodies.compiled import highest_correlation
from geomdp.bodies.cvx_body import cosine_moment_body
from geomdp.bodies.elliptope import nearest_with_diagonal
from geomdp.bodies.relaxations import MomentRelaxation
from geomdp.geometry import project
from geomdp.workloads import Marginals, MarginalTables, Parities
from tests.catalogue import CONIC_PROGRAM, gaussian
from tests.stats import ks_same, mean_agrees


def test_known_volumes() -> None:
    assert gb.Elliptope(2).volume() == pytest.approx(2.0, rel=1e-14)
    assert gb.Elliptope(3).volume() == pytest.approx(math.pi**2 / 2, rel=1e-14)
    assert gb.Elliptope(4).volume() == pytest.approx(32 * math.pi**2 / 27, rel=1e-14)


def test_the_psd_box_holds_second_moments_of_the_cube_and_no_more() -> None:
    rng = np.random.default_rng(1)
    body = gb.PsdBox(4)
    records = rng.uniform(-1, 1, (200, 4))
    products = svec(records[:, :, None] * records[:, None, :])
    for count in (1, 2, 50):  # means over several records
        assert body.contains(products.reshape(-1, count, products.shape[1]).mean(axis=1)).all()
    signs = np.sign(rng.standard_normal((50, 4)))
    corners = svec(signs[:, :, None] * signs[:, None, :])
    np.testing.assert_allclose(np.linalg.norm(corners, axis=1), body.radius(), rtol=1e-15)
    assert body.contains(corners).all()
    for outside in (1.001 * corners, -corners, svec(np.diag([1.01, 0, 0, 0])[None])):
        assert not body.contains(outside).any()


@pytest.mark.statistical
@pytest.mark.parametrize(
    "body",
    [
        gb.Elliptope(2),
        gb.Elliptope(7),
        gb.PsdBox(5),
        gb.TableMoments([3, 2, 4]),
        gb.TableMoments([5]),
    ],
    ids=repr,
)
def test_moments_and_members_in_other_dimensions(body) -> None:
    points = body.sample_uniform(5000, np.random.default_rng(1))
    assert body.contains(points, 1e-12).all()
    mean_agrees(points, body.centroid(), level=1e-7)
    mean_agrees(points[:, :, None] * points[:, None, :], body.second_moment(), level=1e-7)


def records(levels) -> np.ndarray:
    """The points (N, r) of all N different records."""
    codes = np.array(list(itertools.product(*map(range, levels))))
    parts = [zero_sum_basis(count)[codes[:, i]] for i, count in enumerate(levels)]
    pairs = [
        (a[:, :, None] * b[:, None, :]).reshape(len(codes), -1)
        for a, b in itertools.combinations(parts, 2)
    ]
    return np.hstack([*parts, *pairs])


@pytest.mark.parametrize("levels", [[3, 2, 4], [2, 2], [5]])
def test_tables_have_consistent_margins(levels) -> None:
    body = gb.TableMoments(levels)
    points = body.sample_uniform(50, np.random.default_rng(1))
    tables = body.tables(points)
    np.testing.assert_allclose(body.points(tables), points, atol=1e-12)
    # The shares of each column add up to 1, and the margins of all tables are these shares.
    for start, stop in itertools.pairwise(np.cumsum([0, *levels])):
        shares = np.diagonal(tables, axis1=1, axis2=2)[:, start:stop]
        np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-12)
        margins = tables[:, start:stop].sum(axis=1)
        np.testing.assert_allclose(margins, np.diagonal(tables, axis1=1, axis2=2), atol=1e-12)


@pytest.mark.parametrize("d", [1, 2, 4])
def test_two_levels_are_the_elliptope(d: int) -> None:
    """A record with signs s has the coordinates s_i / sqrt(2) and s_i s_j / 2."""
    body, correlations = gb.TableMoments([2] * d), gb.Elliptope(d + 1)
    stretch = np.repeat([math.sqrt(0.5), 0.5], [d, d * (d - 1) // 2])
    assert body.volume() == pytest.approx(correlations.volume() * stretch.prod(), rel=1e-12)
    np.testing.assert_allclose(
        body.entry_variances(), stretch**2 * correlations.entry_variances(), rtol=1e-12
    )
    rng = np.random.default_rng(3)
    points = rng.uniform(-1.2, 1.2, (500, body.dimension))
    inside = correlations.contains(points)
    assert 0 < inside.mean() < 1
    np.testing.assert_array_equal(body.contains(points * stretch), inside)


def test_one_column_is_a_simplex() -> None:
    """For l levels, the volume is sqrt(l) / (l - 1)! and the variances are 1 / (l (l + 1))."""
    body = gb.TableMoments([5])
    assert body.volume() == pytest.approx(math.sqrt(5) / math.factorial(4), rel=1e-12)
    np.testing.assert_allclose(body.entry_variances(), np.full(4, 1 / 30), rtol=1e-12)


@pytest.mark.parametrize("levels", [[3, 2, 4], [2, 2, 2, 2], [4, 3]])
def test_holds_all_records_and_nothing_longer(levels) -> None:
    points = records(levels)
    for body in (gb.TableMoments(levels), gb.TableMoments(levels, violation=0.0)):
        assert body.contains(points).all()
        assert not body.contains(1.01 * points).any()
        assert (np.linalg.norm(points, axis=1) <= body.radius() + 1e-12).all()
    np.testing.assert_allclose(body.violations(points), 0, atol=1e-14)


@pytest.mark.parametrize("columns", [2, 3])
def test_the_cut_body_is_the_hull_of_the_records(columns: int) -> None:
    """For two and three columns of two levels, the cut body is the polytope of all records.

    The cell inequalities are the facets for two columns. For three columns, the cell and triangle
    inequalities are the facets (Padberg 1989).
    """
    levels = [2] * columns
    cut, whole = gb.TableMoments(levels, violation=0.0), gb.TableMoments(levels)
    points = whole.sample_uniform(2000, np.random.default_rng(0))
    facets = ConvexHull(records(levels)).equations
    inside = (points @ facets[:, :-1].T + facets[:, -1] <= 0).all(axis=1)
    assert 0.05 < inside.mean() < 0.95
    np.testing.assert_array_equal(cut.contains(points, tolerance=0.0), inside)
    if columns == 3:  # some points violate only triangle inequalities
        cells = whole.tables(points).min(axis=(1, 2))
        assert (~inside & (cells >= 0)).any()


def test_violations_count_cells_and_triangles() -> None:
    """Three columns that are pairwise never equal violate one triangle inequality, by 1/2."""
    body = gb.TableMoments([2, 2, 2])
    # All shares are 1/2, and no two columns are both at level 0. So the product of the signs of two
    # columns is always -1, and the left side of the triangle inequality is 1 - 3/2 + 0.
    point = np.array([0, 0, 0, -0.5, -0.5, -0.5])
    assert body.violations(point[None])[0] == pytest.approx(0.5, abs=1e-12)
    # If the products of signs are -1.2, the two cells of equal levels are -0.05 in each of the
    # three tables. The left side of the triangle inequality is then 1 - 3/2 - 0.15.
    lower = np.array([0, 0, 0, -0.6, -0.6, -0.6])
    assert body.violations(lower[None])[0] == pytest.approx(0.3 + 0.65, abs=1e-12)


@pytest.mark.parametrize("violation", [0.1, np.inf])
def test_sampled_violations_are_those_of_the_sampled_points(violation) -> None:
    body = gb.TableMoments([3, 2, 4], violation)
    points = body.sample_uniform(30, np.random.default_rng(5))
    found = body.sample_violations(30, np.random.default_rng(5))
    np.testing.assert_allclose(found, body.violations(points), rtol=1e-12, atol=1e-13)
    assert body.sample_uniform(0, np.random.default_rng(5)).shape == (0, body.dimension)


@pytest.mark.statistical
@pytest.mark.parametrize(("levels", "violation"), [([2] * 3, 0.0), ([3, 2, 4], 0.1)])
def test_cut_body_is_sampled_uniformly(levels, violation) -> None:
    """The sampler rejects draws early. Rejection of complete draws gives the same law."""
    whole, cut = gb.TableMoments(levels), gb.TableMoments(levels, violation)
    rng = np.random.default_rng(4)
    points = whole.sample_uniform(40_000, rng)
    kept = points[whole.violations(points) <= violation]
    assert 2000 < len(kept) < 36_000
    drawn = cut.sample_uniform(20_000, rng)
    assert cut.contains(drawn).all()
    for statistic in (lambda x: x[:, 0], lambda x: x[:, -1], lambda x: (x**2).sum(axis=1)):
        ks_same(statistic(drawn), statistic(kept), level=1e-6 / 6)
    for verb in (gb.Body.second_moment, gb.Body.volume):
        assert whole.implements(verb)
        assert not cut.implements(verb)


@pytest.mark.statistical
def test_coordinates_of_a_cut_body_are_uncorrelated_with_one_variance_a_block() -> None:
    body = gb.TableMoments([3, 2, 4], 0.1)
    points = body.sample_uniform(20_000, np.random.default_rng(6))
    variances = body.block_means((points**2).mean(axis=0))
    # The columns have 2, 1 and 3 contrasts, and the pairs of columns have 2, 6 and 3 products.
    assert [len(list(block)) for _, block in itertools.groupby(variances)] == [2, 1, 3, 2, 6, 3]
    mean_agrees(points[:, :, None] * points[:, None, :], np.diag(variances), level=1e-8)


def moments(angles, size):
    """The numbers cos(m a) for m = 1, ..., size - 1, with one row for each angle a."""
    return np.cos(np.multiply.outer(angles, np.arange(1, size)))


@pytest.mark.parametrize("size", [2, 3, 6, 7])
def test_semidefinite_body_is_the_hull_of_the_moment_curve(size):
    """The support function is the maximum of a cosine polynomial over all angles."""
    body = cosine_moment_body(np.ones(size - 1))
    directions = np.random.default_rng(0).standard_normal((6, size - 1))
    curve = moments(np.linspace(0, math.pi, 20001), size)
    np.testing.assert_allclose(
        body.support(directions), (directions @ curve.T).max(axis=1), rtol=1e-6
    )
    # Membership is decided by projection. Near the boundary, the error of a projection is about
    # the square root of the solver's tolerance, so the points are first moved inside.
    assert body.contains((1 - 1e-4) * curve[::4000]).all()
    # For size 2, the curve is the interval [-1, 1], and only its ends are on the boundary.
    ends = curve[::4000] if size > 2 else curve[:1]
    assert not body.contains(1.01 * ends).any()
    mixes = np.random.default_rng(1).dirichlet(np.ones(6), 3) @ curve[::4000] * (1 - 1e-4)
    assert body.contains(mixes).all()


def test_scales_stretch_both_bodies():
    scales = np.array([1.0, 0.5, 2.0, 4.0])
    points = 0.99 * moments(np.array([0.3, 2.0]), 4).mean(axis=0, keepdims=True)
    assert cosine_moment_body(scales[1:]).contains(points / scales[1:]).all()
    unit = gb.grid_moment_body(np.ones(4), 9).vertices
    np.testing.assert_allclose(
        gb.grid_moment_body(scales, 9).vertices, unit / scales[1:], rtol=1e-15
    )


def test_grid_body_has_the_product_moments_of_its_points():
    body = gb.grid_moment_body(np.ones((3, 3)), 5)
    angles = np.linspace(0, math.pi, 5)
    assert body.vertices.shape == (25, 8)
    row = np.outer(np.cos(np.arange(3) * angles[1]), np.cos(np.arange(3) * angles[4]))
    np.testing.assert_allclose(body.vertices[1 * 5 + 4], row.ravel()[1:], atol=1e-15)


@pytest.mark.parametrize(("size", "dimension", "per_axis"), [(8, 1, 17), (4, 2, 13)])
def test_distance_of_true_moments_from_the_grid_body(size, dimension, per_axis):
    """Half-way between grid angles, the distance is below the bound of `grid_moment_body`."""
    scales = np.random.default_rng(0).uniform(0.5, 2, (size,) * dimension)
    bends = (np.indices(scales.shape) ** 2).sum(axis=0) / scales
    middle = math.pi * (per_axis // 2 + 0.5) / (per_axis - 1)
    wave = np.cos(np.arange(size) * middle)
    point = reduce(np.kron, [wave] * dimension)[1:] / scales.ravel()[1:]
    distance = np.linalg.norm(project(gb.grid_moment_body(scales, per_axis), point).point - point)
    assert 0 < distance <= (math.pi / (per_axis - 1)) ** 2 / 8 * np.linalg.norm(bends)


WORKLOADS = [
    Marginals(4, 2),
    Marginals(6, 2),
    Marginals(5, 3),
    Marginals(5, 4),
    Parities(5, 2),
    Parities(5, 3),
    Parities(6, 4),
]


def symmetric(order: int, seed: int) -> np.ndarray:
    matrix = gaussian(order, order, seed=seed)
    matrix = matrix + matrix.T
    np.fill_diagonal(matrix, 0.0)
    return matrix


@pytest.mark.parametrize("scale", [1e-2, 1.0, 1e3])
@pytest.mark.parametrize("order", [2, 5, 25])
def test_nearest_correlation_satisfies_the_variational_inequality(order, scale):
    for seed, rounded in itertools.product(range(2), (False, True)):
        target = scale * symmetric(order, seed)
        target = scale * np.round(target / scale) if rounded else target
        nearest = nearest_with_diagonal(target, np.ones(order))
        assert (np.diag(nearest) == 1).all()
        assert np.linalg.eigvalsh(nearest)[0] > -1e-13 * order
        away = target - nearest
        np.fill_diagonal(away, 0.0)
        bound = 2 * highest_correlation(away[None])[1][0]
        assert bound - (away * nearest).sum() <= 2e-9 * bound + 1e-12 * order


@pytest.mark.parametrize("power", [-60, 60])
@pytest.mark.parametrize("order", [6, 40])
def test_nearest_with_a_diagonal_of_any_size(order, power):
    """Scaling a problem by 2^power scales the solution exactly."""
    target, diagonal = 3 * symmetric(order, 1), np.resize([4.0, 1, 1, 2, 0.5, 3], order)
    expected = nearest_with_diagonal(target, diagonal)
    found = nearest_with_diagonal(2.0**power * target, 2.0**power * diagonal)
    np.testing.assert_array_equal(found, 2.0**power * expected)


@pytest.mark.parametrize("workload", WORKLOADS, ids=str)
def test_relaxation_holds_the_polytope(workload):
    body, K = gb.moment_relaxation(workload), gb.sensitivity_polytope(workload)
    directions = gaussian(6, body.dimension)
    directions[-1] = 1.0
    high, true = body.support(directions), K.support(directions)
    assert (high >= true * (1 - 1e-12) - 1e-12).all()
    points = body.extreme_point(directions)
    slack = CONIC_PROGRAM * np.abs(high).max()
    np.testing.assert_allclose((points * directions).sum(axis=1), high, rtol=0, atol=slack)
    for corner in K.extreme_point(directions):
        np.testing.assert_allclose(project(body, corner).point, corner, rtol=0, atol=1e-5)


def test_first_level_is_strict_and_the_lift_is_closer():
    """Over a pentagon's edges, the sum of -s_i s_j is at most 3; the elliptope allows 4.05."""
    edges = np.zeros((5, 5))
    for i in range(5):
        edges[i, (i + 1) % 5] = edges[(i + 1) % 5, i] = -1.0
    direction = edges[np.triu_indices(5, 1)][None]
    level = gb.Elliptope(5).support(direction)[0]
    np.testing.assert_allclose(level, 5 * (math.sqrt(5) + 1) / 4, rtol=1e-8)
    np.testing.assert_allclose(gb.sensitivity_polytope(Parities(5, 2)).support(direction), 3)
    sets = [each for size in (0, 1, 2) for each in itertools.combinations(range(5), size)]
    pairs = [{pair: 1.0} for pair in itertools.combinations(range(5), 2)]
    second = MomentRelaxation(sets, pairs).support(direction)[0]
    assert 3 - 1e-9 <= second <= level - 0.1


def test_small_cases_are_exact_bodies():
    assert isinstance(gb.moment_relaxation(Marginals(4, 1)), gb.Box)
    assert isinstance(gb.moment_relaxation(Parities(4, 1)), gb.Box)
    assert gb.moment_relaxation(Parities(4, 2)) == gb.Elliptope(4)
    segment = gb.moment_relaxation(Parities(3, 3))
    np.testing.assert_allclose(segment.support(np.array([[2.0], [-3.0]])), [2, 3])


def test_pair_marginals_are_the_moment_matrix_with_diagonal_equal_to_the_first_row():
    body, m = gb.moment_relaxation(Marginals(4, 2)), 6
    M = cp.Variable((5, 5), PSD=True)
    y = M[1:, 1:][np.triu_indices(4, 1)]
    for direction in gaussian(4, m, seed=3):
        constraints = [M[0, 0] == 1, cp.diag(M) == M[0]]
        problem = cp.Problem(cp.Maximize(direction @ y), constraints)
        problem.solve(solver=cp.CLARABEL)
        np.testing.assert_allclose(body.support(direction[None]), problem.value, rtol=1e-6)


def test_tables_of_two_levels_are_projected_in_closed_form():
    """Projections agree with a semidefinite program, or satisfy the optimality condition."""
    workload = MarginalTables([2] * 4, 2)
    body = gb.moment_relaxation(workload)
    np.testing.assert_allclose(body.weights / body.weights[1], [3, 1, 1, 1, 1], rtol=1e-14)
    rng = np.random.default_rng(0)
    target = rng.normal(size=body.dimension)
    variable = cp.Variable(body.dimension)
    distance = cp.Minimize(cp.sum_squares(variable - target))
    cp.Problem(distance, body.cvxpy_constraints(variable)).solve(solver=cp.CLARABEL)
    np.testing.assert_allclose(body.project(target[None])[0], variable.value, atol=1e-5)
    large = MarginalTables([2] * 30, 2)
    body = gb.moment_relaxation(large)
    answers = large.answers(large.universe.sample(3, rng))
    np.testing.assert_allclose(body.project(answers[None])[0], answers, atol=1e-6)
    residual = 0.2 * rng.normal(size=body.dimension)
    nearest = body.project((answers + residual)[None])[0]
    normal = answers + residual - nearest
    assert body.support(normal[None])[0] - normal @ nearest <= 1e-8 * body.radius() ** 2
