"""Ray shooting agrees with linear programs, for generic, integral and degenerate vertices."""

import numpy as np
import pytest
from scipy.optimize import linprog

from geomdp._typing import FloatArray
from geomdp.bodies import compiled
from geomdp.bodies.linear_programs import ConicProgram, SolverError
from geomdp.bodies.ray_shooting import RayShooter
from geomdp.workloads import Parities, explicit_answers
from tests.catalogue import cube, gaussian

RAYS = 40


def two_way_parities(d: int) -> FloatArray:
    """All 1- and 2-way parities of the 2^d records. Entries are +-1; a facet can hold most rows."""
    answers = [explicit_answers(Parities(d, k)) for k in (1, 2)]
    return np.hstack(answers)


VERTICES = {
    "gaussian": gaussian(80, 6),
    "gaussian in one dimension": gaussian(9, 1),
    "gaussian, stretched": gaussian(80, 6) * 10.0 ** -np.arange(6) * 1e3,
    "cube": cube(5),
    "cube, each vertex three times": np.repeat(cube(4), 3, axis=0),
    "cube with its edge midpoints": np.unique(
        (cube(4)[:, None] + cube(4)[None]).reshape(-1, 4) / 2, axis=0
    ),
    "simplex": np.vstack([np.zeros(7), np.eye(7)]),
    "cross-polytope": np.vstack([np.eye(6), -np.eye(6)]),
    "parities": two_way_parities(5),
    "parities x 1e-3": 1e-3 * two_way_parities(4),
    "parities x 1e3": 1e3 * two_way_parities(4),
}


def columns_and_costs(kind: str, vertices: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Columns a_j and costs c_j: the gauge of x is the least sum of w_j c_j, for weights w_j >= 0.

    The weights must satisfy sum w_j a_j = x. For the kind "difference", columns have one more
    coordinate than the vertices, and 0 is appended to x.
    """
    if kind == "hull":
        return vertices.T.copy(), np.ones(len(vertices))
    if kind == "symmetric_hull":
        return np.vstack([vertices, -vertices]).T.copy(), np.ones(2 * len(vertices))
    lifted = np.column_stack([vertices, np.full(len(vertices), np.abs(vertices).max())])
    costs = np.repeat([1.0, 0.0], len(vertices))
    return np.vstack([lifted, -lifted]).T.copy(), costs


def linear_program(kind: str, vertices: FloatArray) -> tuple[ConicProgram, int]:
    """The linear program for gauges, and the number of zeros to append to the points."""
    columns, costs = columns_and_costs(kind, vertices)
    return ConicProgram(columns, costs), len(columns) - vertices.shape[1]


def support(kind: str, vertices: FloatArray, directions: FloatArray) -> FloatArray:
    heights = directions @ vertices.T
    if kind == "hull":
        return heights.max(axis=1)
    if kind == "symmetric_hull":
        return np.abs(heights).max(axis=1)
    return heights.max(axis=1) - heights.min(axis=1)


def directions_for(vertices: FloatArray, seed: int) -> FloatArray:
    """Generic directions, and directions in {-1, 0, 1}^m that often meet low-dimensional faces."""
    rng = np.random.default_rng(seed)
    spread = vertices.std(axis=0)
    generic = rng.standard_normal((RAYS, vertices.shape[1]))
    integral = rng.integers(-1, 2, (RAYS, vertices.shape[1])).astype(float)
    integral[~integral.any(axis=1), 0] = 1.0
    return np.vstack([generic, integral]) * spread


@pytest.fixture(params=VERTICES.values(), ids=VERTICES.keys())
def vertices(request) -> FloatArray:
    return request.param - request.param.mean(axis=0)


@pytest.fixture(params=["hull", "symmetric_hull", "difference"])
def kind(request) -> str:
    return request.param


def build(kind: str, vertices: FloatArray) -> RayShooter:
    return getattr(RayShooter, kind)(vertices)


def test_gauges_and_facets(kind, vertices):
    directions = directions_for(vertices, seed=1)
    found = build(kind, vertices).exits(np.zeros_like(directions), directions)
    assert found.converged.all()
    np.testing.assert_allclose(support(kind, vertices, found.normals), 1, rtol=1e-12)
    gauges = np.einsum("bm,bm->b", found.normals, directions)
    np.testing.assert_allclose(gauges * found.times, 1, rtol=1e-12)
    # HiGHS has absolute tolerances, so the program is solved in coordinates of unit spread.
    spread = vertices.std(axis=0)
    program, padding = linear_program(kind, vertices / spread)
    expected, _ = program.solve(np.pad(directions / spread, ((0, 0), (0, padding))))
    np.testing.assert_allclose(gauges, expected, rtol=1e-9)


def test_exits_from_inner_points_are_on_the_boundary(kind, vertices):
    shooter = build(kind, vertices)
    rays, ways = directions_for(vertices, seed=2), directions_for(vertices, seed=3)
    shares = np.random.default_rng(4).choice([0.0, 0.5, 0.999], len(rays))
    points = rays * (shares * shooter.exits(np.zeros_like(rays), rays).times)[:, None]
    found = shooter.exits(points, ways)
    assert found.converged.all()
    assert (found.times > 0).all()
    ends = points + found.times[:, None] * ways
    np.testing.assert_allclose(1 / shooter.exits(np.zeros_like(ends), ends).times, 1, rtol=1e-11)
    heights = np.einsum("bm,bm->b", found.normals, ends)
    np.testing.assert_allclose(heights, 1, rtol=1e-11)


@pytest.mark.parametrize("kind", ["hull", "symmetric_hull", "difference"])
def test_flat_vertices_are_refused(kind):
    flat = np.pad(cube(3) - 1 / 2, ((0, 0), (0, 1)))
    with pytest.raises(ValueError, match=r"vertices must span 4 dimensions .* got 3"):
        build(kind, flat)
    with pytest.raises(ValueError, match="vertices must span 2 dimensions"):
        build(kind, np.zeros((5, 2)))


@pytest.mark.parametrize("size", [1e-9, 1e-8, 1e-7])
def test_gauges_where_vertices_nearly_tie(kind, size):
    """The corners of a cube are moved by about `size`; pivots lower their bounds by up to 1e-8.

    If the pivots stopped at the lowered bounds and were not continued at the true bounds 1, gauges
    would be too small by up to 1e-7.
    """
    rng = np.random.default_rng(12)
    corners = 2.0 * np.array(list(np.ndindex(2, 2, 2, 2, 2, 2, 2))) - 1
    vertices = corners + size * rng.standard_normal(corners.shape)
    directions = rng.standard_normal((12, 7))
    found = build(kind, vertices).exits(np.zeros_like(directions), directions)
    assert found.converged.all()
    columns, costs = columns_and_costs(kind, vertices)
    targets = np.pad(directions, ((0, 0), (0, len(columns) - 7)))
    tight = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    for time, target in zip(found.times, targets, strict=True):
        solved = linprog(costs, A_eq=columns, b_eq=target, method="highs-ds", options=tight)
        assert 1 / time == pytest.approx(solved.fun, rel=2.5e-9)


def parity_rays(kind: str) -> tuple[FloatArray, RayShooter, FloatArray]:
    """Vertices, their shooter, and directions."""
    vertices = VERTICES["parities"] - VERTICES["parities"].mean(axis=0)
    return vertices, build(kind, vertices), directions_for(vertices, seed=10)[::8]


def test_rays_that_defeat_the_pivots_go_to_a_linear_program(kind, monkeypatch):
    """The pivots are replaced by a function that fails for every ray."""
    vertices, shooter, directions = parity_rays(kind)
    points = 0.3 * directions[::-1] * shooter.exits(0 * directions, directions[::-1]).times[:, None]
    expected = shooter.exits(points, directions)

    def hopeless(*arguments):
        return np.zeros_like(arguments[-1]), np.zeros(len(arguments[-1]), dtype=bool)

    monkeypatch.setattr(compiled, "shoot", hopeless)
    found = shooter.exits(points, directions)
    assert found.converged.all()
    np.testing.assert_allclose(found.times, expected.times, rtol=1e-9)
    np.testing.assert_allclose(support(kind, vertices, found.normals), 1, rtol=1e-9)


def test_a_ray_that_nothing_solves_leaves_the_others_alone(kind, monkeypatch):
    _, shooter, directions = parity_rays(kind)
    expected = shooter.exits(0 * directions, directions)
    pivots = compiled.shoot

    def first_fails(*arguments):
        normals, converged = pivots(*arguments)
        converged[0] = False
        return normals, converged

    def hopeless(self, targets):
        raise SolverError("HiGHS stopped with status Unknown")

    monkeypatch.setattr(compiled, "shoot", first_fails)
    monkeypatch.setattr(ConicProgram, "solve", hopeless)
    found = shooter.exits(0 * directions, directions)
    assert not found.converged[0]
    assert np.isnan(found.times[0])
    assert found.converged[1:].all()
    np.testing.assert_array_equal(found.times[1:], expected.times[1:])
