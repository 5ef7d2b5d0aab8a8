"""What bodies refuse: parameters, operands, sets that are no bodies, gauges about a far point."""

import math

import cvxpy as cp
import numpy as np
import pytest

import geomdp.bodies as gb
from geomdp import bounds
from geomdp.bodies.cvx_body import cosine_moment_body
from geomdp.bodies.sensitivity import WorkloadPolytope, check_contains_neighbours, shadow
from geomdp.bodies.symmetrised import SymmetricHull
from geomdp.privacy import Adjacency
from geomdp.workloads import Marginals, MarginalTables, Parities, Prefixes
from tests.catalogue import cube, gaussian

SQUARE = np.vstack([np.eye(2), -np.eye(2)])
LINE = np.array([[0.0, 0, 0], [1, 1, 1], [2, 2, 2]])

#: A call, and a pattern of the message of its ``ValueError``. Numbers out of range, other types,
#: and arrays of other axes or with entries that are not finite are in `tests/hostile`.
REFUSED = [
    (lambda: gb.LpBall(0.5, 3), "exponent must be finite and at least 1"),
    (lambda: gb.Box([0.0], [-1.0]), "lower must be at most upper"),
    (lambda: gb.Box([0.0], [1.0, 2.0]), "same shape"),
    (lambda: gb.Box.centred([1.0, -2.0]), "half_widths must be at least 0, got -2.0 at index 1"),
    (lambda: gb.SymmetrisedBox([1.0, 0.0]), "above 0"),
    (lambda: gb.Ellipsoid(np.zeros((0, 2))), "shape"),
    (lambda: gb.Product([]), "at least one"),
    (lambda: gb.LinearImage(np.eye(2), gb.Ball(3)), "matrix must have shape"),
    (lambda: gb.LinearImage(np.zeros((0, 3)), gb.Ball(3)), "matrix must have shape"),
    (lambda: gb.VPolytope(np.zeros((0, 3))), "shape"),
    (lambda: gb.VPolytope(np.zeros((3, 0))), "shape"),
    (lambda: gb.TriangulatedPolytope(np.zeros((0, 2))), "shape"),
    (lambda: gb.HPolytope(SQUARE, [1, 1, 1]), "shapes"),
    (lambda: gb.HPolytope([[0.0, 0.0]], [1]), "normals must not be 0, got 0 in row 0"),
    (lambda: gb.SlabBody(np.eye(2), [1.0, 0.0]), "widths must be above 0, got 0.0 at index 1"),
    (lambda: gb.SlabBody(np.zeros((1, 2)), [1.0]), "directions must not be 0"),
    (lambda: gb.SlabBody(np.eye(2), [1.0]), "shapes"),
    *[
        (lambda kind=kind, bad=bad: kind(bad), "shape")
        for kind in (gb.Simplex, gb.SimplexDifference)
        for bad in (np.zeros((4, 2)), np.zeros((0, 2)), np.zeros((1, 0)))
    ],
    (lambda: gb.Simplex(LINE).affine_hull(), "affinely independent"),
    (lambda: gb.SimplexDifference(np.ones((2, 2))).gauge(np.ones((1, 2))), "affinely independent"),
    (lambda: gb.SimplexDifference.at_units(0), "count must be"),
    (lambda: gb.Elliptope(1), "order"),
    *[
        (lambda levels=levels: gb.TableMoments(levels), "levels must")
        for levels in ([], [1, 2], [2, 0], [1.5])
    ],
    (lambda: gb.TableMoments([2, 2], -0.1), "violation must be at least 0"),
    (lambda: gb.TableMoments([2, 2], math.nan), "violation must be at least 0"),
    (lambda: cosine_moment_body([]), "scales must hold at least one number"),
    (lambda: cosine_moment_body([1.0, 0.0]), "scales must be above 0, got 0.0 at index 1"),
    (lambda: cosine_moment_body([1.0, math.nan]), "scales must be finite"),
    (lambda: gb.grid_moment_body(np.ones((3, 2)), 5), r"shape \(t,\) \* d, t >= 2, got \(3, 2\)"),
    (lambda: gb.grid_moment_body(np.ones(1), 5), "t >= 2"),
    (lambda: gb.grid_moment_body(np.ones(3), 1), "per_axis must be"),
    (lambda: gb.grid_moment_body(np.ones((8, 8, 8)), 64), "must be at most 33554432, got 64.3"),
    (lambda: gb.moment_relaxation(Prefixes(4)), "Prefixes"),
    (lambda: gb.moment_relaxation(Parities(22, 4)), "200"),
    (lambda: gb.moment_relaxation(MarginalTables([2, 3, 2], 2)), "two-level"),
    (lambda: gb.moment_relaxation(Marginals(4, 2)).support(np.full((1, 6), np.nan)), "directions"),
    (lambda: gb.CvxBody(2, lambda x: 3), "must return a list"),
    (lambda: gb.CvxBody(2, lambda x: [True]), "must return a list"),
    (lambda: gb.CvxBody(2, lambda x: [x <= 1], solver="CPLEX"), "solver must be one of"),
    (lambda: shadow(gb.Simplex(np.eye(3)), np.eye(2, 3)), "symmetric"),
    # Gauges about a point that is not in the relative interior
    *[
        (lambda body=body: body.gauge(np.ones((1, body.dimension))), "relative interior")
        for body in (
            gb.Box([0.0, 1.0, -1.0], [0.0, 2.0, 1.0]),
            gb.Simplex(np.eye(3)),
            gb.Simplex([[0.0, 0], [1, 0], [0, 1]]),
            *(gb.VPolytope(cube(2) - 0.5 + shift) for shift in (0.5, 0.501, 3.0)),
            gb.TriangulatedPolytope(cube(2)),
        )
    ],
    (lambda: gb.CvxBody(2, lambda x: [cp.norm(x - 3) <= 1]).gauge(np.ones((1, 2))), "has no gauge"),
    # Sets that are found to be no bodies at first use
    (lambda: gb.SlabBody(np.eye(2, 3), [1, 1]).gauge(np.ones((1, 3))), "span only 2"),
    (lambda: gb.SlabBody(np.eye(2, 3), [1, 1]).support(np.ones((1, 3))), "span only 2"),
]


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_bad_parameters_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


USES = [
    lambda body: body.support(np.ones((1, 2))),
    lambda body: body.contains(np.zeros((1, 2))),
    lambda body: body.affine_hull(),
    lambda body: body.implements(gb.Body.gauge),
    lambda body: body.radius(),
]


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda s: gb.HPolytope(np.eye(2), [s, s]), "empty or unbounded"),
        (lambda s: gb.HPolytope(SQUARE[::2], [s, s]), "empty or unbounded"),
        (lambda s: gb.HPolytope([*SQUARE, [1, 1]], np.array([1, 1, 1, 1, -2.1]) * s), "is empty"),
        (lambda s: gb.HPolytope(SQUARE, s * np.array([1, 1, -1.1, 1])), "is empty"),
        (lambda s: gb.CvxBody(2, lambda x: [x >= 0]), "unbounded"),
        (lambda s: gb.CvxBody(2, lambda x: [x >= 1, cp.sum(x) <= 1]), "empty"),
        (lambda s: gb.CvxBody(2, lambda x: []), "unbounded"),
    ],
)
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_sets_that_are_no_bodies_say_so_at_first_use(build, message, scale):
    for use in USES:
        with pytest.raises(ValueError, match=rf"{message}|unbounded|empty"):
            use(build(scale))
    with pytest.raises(ValueError, match=message):
        USES[0](build(scale))


#: Operations that take a body, beside those of `tests/hostile`.
TAKERS = [
    SymmetricHull,
    gb.difference_body,
    gb.symmetric_hull,
    bounds.volume_radii,
    lambda body: check_contains_neighbours(body, Prefixes(3), Adjacency.REPLACE_ONE),
]


@pytest.mark.parametrize("taker", TAKERS)
@pytest.mark.parametrize("operand", [None, 1.0, "ball", np.eye(3), [gb.Ball(3)], gb.Ball])
def test_operands_must_be_bodies(taker, operand):
    with pytest.raises(ValueError, match=r"body must be a Body, got "):
        taker(operand)


@pytest.mark.parametrize("taker", [WorkloadPolytope, gb.sensitivity_polytope])
@pytest.mark.parametrize("workload", [None, 3, "marginals", np.eye(2)])
def test_a_polytope_of_a_workload_needs_one(taker, workload):
    with pytest.raises(ValueError, match="must be a Workload"):
        taker(workload)


def test_bodies_do_not_share_memory_with_their_arguments():
    vertices = gaussian(5, 2)
    body = gb.VPolytope(vertices)
    before = body.support(np.eye(2))
    vertices *= 2
    np.testing.assert_array_equal(body.support(np.eye(2)), before)
    with pytest.raises(ValueError, match="read-only"):
        body.vertices[0, 0] = 1
