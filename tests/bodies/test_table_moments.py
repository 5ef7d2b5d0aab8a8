"""`TableMoments`: sampler, moments, volume, cuts, and the elliptope as the two-level case."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.spatial import ConvexHull

from geomdp.bodies import Body, Elliptope, TableMoments
from geomdp.workloads.finite import zero_sum_basis
from tests.stats import ks_same, mean_agrees


def records(levels) -> np.ndarray:
    """The points (N, r) of all N different records."""
    codes = np.array(list(itertools.product(*map(range, levels))))
    parts = [zero_sum_basis(count)[codes[:, i]] for i, count in enumerate(levels)]
    pairs = [
        (a[:, :, None] * b[:, None, :]).reshape(len(codes), -1)
        for a, b in itertools.combinations(parts, 2)
    ]
    return np.hstack([*parts, *pairs])


@pytest.mark.statistical
@pytest.mark.parametrize("levels", [[3, 2], [2, 2, 2], [4]])
def test_sampler_agrees_with_rejection(levels) -> None:
    """The reference draws uniform points in a box around the body and keeps the points inside."""
    body, rng = TableMoments(levels), np.random.default_rng(0)
    # By the docstring of `TableMoments.radius`, |H_i^T m_i| <= (1 - 1/l_i)^(1/2). The entries of
    # H_i^T M_ij H_j are at most the product of these bounds for i and j.
    reach = np.abs(records(levels)).max(axis=0)
    tries = rng.uniform(-1, 1, (100_000, body.dimension)) * np.sqrt(1 - 1 / np.max(levels))
    assert (reach <= np.sqrt(1 - 1 / np.max(levels)) + 1e-12).all()
    accepted = tries[body.contains(tries, tolerance=0.0)]
    assert len(accepted) > 1500
    drawn = body.sample_uniform(20_000, rng)
    for statistic in (
        lambda x: x[:, 0],
        lambda x: x[:, -1],
        lambda x: x[:, 0] * x[:, -1],
        lambda x: (x**2).sum(axis=1),
    ):
        ks_same(statistic(drawn), statistic(accepted), level=1e-6 / 12)


@pytest.mark.statistical
@pytest.mark.parametrize("levels", [[3, 2, 4], [2, 2], [5]])
def test_moments_and_membership(levels) -> None:
    body = TableMoments(levels)
    points = body.sample_uniform(8000, np.random.default_rng(1))
    assert body.contains(points).all()
    mean_agrees(points, np.zeros(body.dimension), level=1e-7)
    mean_agrees(points[:, :, None] * points[:, None, :], body.second_moment(), level=1e-7)
    tables = body.tables(points[:50])
    np.testing.assert_allclose(body.points(tables), points[:50], atol=1e-12)
    # The shares of each column add up to 1, and the margins of all tables are these shares.
    for start, stop in itertools.pairwise(np.cumsum([0, *levels])):
        shares = np.diagonal(tables, axis1=1, axis2=2)[:, start:stop]
        np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-12)
        margins = tables[:, start:stop].sum(axis=1)
        np.testing.assert_allclose(margins, np.diagonal(tables, axis1=1, axis2=2), atol=1e-12)


@pytest.mark.parametrize("d", [1, 2, 4])
def test_two_levels_are_the_elliptope(d: int) -> None:
    """A record with signs s has the coordinates s_i / sqrt(2) and s_i s_j / 2."""
    body, elliptope = TableMoments([2] * d), Elliptope(d + 1)
    stretch = np.repeat([math.sqrt(0.5), 0.5], [d, d * (d - 1) // 2])
    assert body.volume() == pytest.approx(elliptope.volume() * stretch.prod(), rel=1e-12)
    np.testing.assert_allclose(
        body.entry_variances(), stretch**2 * elliptope.entry_variances(), rtol=1e-12
    )
    rng = np.random.default_rng(3)
    points = rng.uniform(-1.2, 1.2, (500, body.dimension))
    inside = elliptope.contains(points)
    assert 0 < inside.mean() < 1
    np.testing.assert_array_equal(body.contains(points * stretch), inside)


def test_one_column_is_a_simplex() -> None:
    """For l levels, the volume is sqrt(l) / (l - 1)! and the variances are 1 / (l (l + 1))."""
    body = TableMoments([5])
    assert body.volume() == pytest.approx(math.sqrt(5) / math.factorial(4), rel=1e-12)
    np.testing.assert_allclose(body.entry_variances(), np.full(4, 1 / 30), rtol=1e-12)


@pytest.mark.parametrize("levels", [[3, 2, 4], [2, 2, 2, 2], [4, 3]])
def test_holds_all_records_and_nothing_longer(levels) -> None:
    points = records(levels)
    for body in (TableMoments(levels), TableMoments(levels, violation=0.0)):
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
    cut, whole = TableMoments(levels, violation=0.0), TableMoments(levels)
    points = whole.sample_uniform(2000, np.random.default_rng(0))
    facets = ConvexHull(records(levels)).equations
    inside = (points @ facets[:, :-1].T + facets[:, -1] <= 0).all(axis=1)
    assert 0.05 < inside.mean() < 0.95
    np.testing.assert_array_equal(cut.contains(points, tolerance=0.0), inside)
    if columns == 3:  # some points violate only triangle inequalities
        cells = whole.tables(points).min(axis=(1, 2))
        assert (~inside & (cells >= 0)).any()


@pytest.mark.parametrize("levels", [(2, 2, 2, 2), (3, 2, 4)])
def test_the_total_violation_is_convex_and_so_is_the_cut_body(levels) -> None:
    """Violations obey Jensen's inequality, and mixtures of points of the cut body are inside."""
    rng = np.random.default_rng(4)
    body = TableMoments(levels)
    first, second = 1.5 * body.sample_uniform(400, rng).reshape(2, 200, -1)
    share = rng.random(200)
    mixed = share[:, None] * first + (1 - share[:, None]) * second
    means = share * body.violations(first) + (1 - share) * body.violations(second)
    assert (body.violations(mixed) <= means + 1e-12).all()
    assert (body.violations(mixed) > 0).any()
    limit = float(np.quantile(body.violations(body.sample_uniform(400, rng)), 0.2))
    cut = TableMoments(levels, limit)
    points = cut.sample_uniform(400, rng).reshape(2, 200, -1)
    mixed = share[:, None] * points[0] + (1 - share[:, None]) * points[1]
    assert cut.contains(mixed).all()


def test_violations_count_cells_and_triangles() -> None:
    """Three columns that are pairwise never equal violate one triangle inequality, by 1/2."""
    body = TableMoments([2, 2, 2])
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
    body = TableMoments([3, 2, 4], violation)
    points = body.sample_uniform(30, np.random.default_rng(5))
    found = body.sample_violations(30, np.random.default_rng(5))
    np.testing.assert_allclose(found, body.violations(points), rtol=1e-12, atol=1e-13)
    assert body.sample_uniform(0, np.random.default_rng(5)).shape == (0, body.dimension)


@pytest.mark.statistical
@pytest.mark.parametrize(("levels", "violation"), [([2] * 3, 0.0), ([3, 2, 4], 0.1)])
def test_cut_body_is_sampled_uniformly(levels, violation) -> None:
    """The sampler rejects draws early. Rejection of complete draws gives the same law."""
    whole, cut = TableMoments(levels), TableMoments(levels, violation)
    rng = np.random.default_rng(4)
    points = whole.sample_uniform(40_000, rng)
    kept = points[whole.violations(points) <= violation]
    assert 2000 < len(kept) < 36_000
    drawn = cut.sample_uniform(20_000, rng)
    assert cut.contains(drawn).all()
    for statistic in (lambda x: x[:, 0], lambda x: x[:, -1], lambda x: (x**2).sum(axis=1)):
        ks_same(statistic(drawn), statistic(kept), level=1e-6 / 6)
    for verb in (Body.second_moment, Body.volume):
        assert whole.implements(verb)
        assert not cut.implements(verb)


@pytest.mark.statistical
def test_coordinates_of_a_cut_body_are_uncorrelated_with_one_variance_a_block() -> None:
    body = TableMoments([3, 2, 4], 0.1)
    points = body.sample_uniform(20_000, np.random.default_rng(6))
    variances = body.block_means((points**2).mean(axis=0))
    # The columns have 2, 1 and 3 contrasts, and the pairs of columns have 2, 6 and 3 products.
    assert [len(list(block)) for _, block in itertools.groupby(variances)] == [2, 1, 3, 2, 6, 3]
    mean_agrees(points[:, :, None] * points[:, None, :], np.diag(variances), level=1e-8)


@pytest.mark.parametrize("levels", [[], [1, 2], [2, 0], [1.5]])
def test_levels_are_checked(levels) -> None:
    with pytest.raises(ValueError, match="levels must"):
        TableMoments(levels)


@pytest.mark.parametrize("violation", [-0.1, math.nan])
def test_violation_is_checked(violation) -> None:
    with pytest.raises(ValueError, match="violation must be at least 0"):
        TableMoments([2, 2], violation)
