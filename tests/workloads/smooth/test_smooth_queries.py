"""The workload of Chebyshev moments: diameters, radii, extreme answers and wrong arguments."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from geomdp.workloads import SmoothQueries
from geomdp.workloads.smooth.smooth_queries import (
    l1_diameter_of_moments,
    l2_diameter_of_moments,
    weighted_l1_diameter,
)

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


def test_the_printed_scale_is_too_small_from_three_degrees_on():
    sizes = [2, 3, 4, 5, 6, 7, 10, 30, 100, 199]
    excess = [l1_diameter_of_moments(2, size) / size**2 for size in sizes]
    assert excess[0] == pytest.approx(1, rel=3e-6)
    assert min(excess[1:]) > 1.04
    # For many degrees, the ratio tends to 1 - min over u of sin(u) / u.
    assert max(excess) < 1.21724
    assert all(l1_diameter_of_moments(2, size) < 2 * (size**2 - 1) for size in sizes[1:])


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


@pytest.mark.parametrize(("d", "size"), [(1, 6), (2, 4), (3, 3)])
def test_the_worst_partner_of_any_record_is_a_corner(d, size):
    """The diameter is computed from pairs with a corner, and no random pair is farther apart."""
    rng = np.random.default_rng(d)
    workload = SmoothQueries(d, size)
    for _ in range(5):
        weights = rng.random(workload.n_queries) * (rng.random(workload.n_queries) < 0.5)
        first, second = workload.evaluate(rng.uniform(-1, 1, (2, 200, d)).reshape(-1, d)).reshape(
            2, 200, -1
        )
        assert (np.abs(first - second) @ weights).max() <= workload.weighted_l1_diameter(weights)


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
        ({"d": 0, "degree": 3}, "d must be"),
        ({"d": 1, "degree": 1}, "degree must be a whole number, at least 2"),
        ({"d": 8, "degree": 8}, r"degree\^d must be at most 4194304, got 8\^8"),
        ({"d": 1, "degree": 3, "tolerance": np.nan}, "tolerance must be"),
    ],
)
def test_bad_parameters(arguments, words):
    with pytest.raises(ValueError, match=words):
        SmoothQueries(**arguments)
