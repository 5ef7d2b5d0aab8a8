"""Bodies of workloads by enumeration, errors of the formula sheet, and proofs of containment."""

import itertools
import math

import numpy as np
import pytest

import geomdp.bodies as gb
import geomdp.workloads as wl
from geomdp.bodies.sensitivity import (
    GAUGE_ERROR,
    WorkloadPolytope,
    check_contains_neighbours,
    exact_noise_bodies,
)
from geomdp.privacy import Adjacency
from tests.catalogue import TURN, gaussian

REPLACE, ADD = Adjacency.REPLACE_ONE, Adjacency.ADD_REMOVE
#: Finite workloads small enough to enumerate.
FINITE = [
    wl.Marginals(4, 1),
    wl.Marginals(4, 2),
    wl.Parities(4, 1),
    wl.Parities(4, 2),
    wl.Histogram(5),
    wl.Histogram(1),
    wl.Prefixes(5),
    wl.Ranges(4),
    wl.MarginalTables([2, 3, 2], 2),
    wl.MarginalTables([2] * 3, 2),
    wl.MarginalTables([3, 1, 4, 2], 1),
    wl.Explicit(gaussian(3, 12)),
    wl.Explicit(np.ones((2, 3))),
    wl.Explicit(np.repeat(gaussian(3, 4), 3, axis=1)),
    wl.RandomSigns(4, 10, 0),
    wl.LinearMap(wl.Histogram(6), gaussian(3, 6)),
    wl.LinearMap(wl.Marginals(4, 1), gaussian(6, 4)),
    wl.LinearMap(wl.MarginalTables([2, 2, 2], 2), gaussian(2, 12)),
]
PAIRS = [
    pytest.param(workload, adjacency, id=f"{workload!r:.48}, {adjacency.value}")
    for workload, adjacency in itertools.product(FINITE, Adjacency)
]


def neighbours(workload, adjacency):
    """All changes of the sum of answers between two neighbouring data sets, by enumeration."""
    answers = wl.explicit_answers(workload)
    if adjacency is ADD:
        return np.vstack([answers, -answers])
    return (answers[:, None] - answers).reshape(-1, answers.shape[1])


def knorm_rmse(body, queries, n=1, epsilon=1.0):
    """RMSE per query of K-norm noise, from E ||U||^2 for U uniform in the body (JL-L14)."""
    rank = body.affine_hull().dimension
    energy = (rank + 1) * (rank + 2) * np.trace(body.second_moment()) / epsilon**2
    return math.sqrt(energy / queries) / n


@pytest.mark.parametrize(
    ("workload", "kind", "difference", "hull"),
    [
        (wl.Marginals(3, 1), gb.Box, gb.Box, gb.SymmetrisedBox),
        (wl.Parities(3, 1), gb.Box, gb.Box, gb.Box),
        (wl.Histogram(4), gb.Simplex, gb.SimplexDifference, gb.LinearImage),
        (wl.Prefixes(4), gb.Simplex, gb.SimplexDifference, gb.LinearImage),
        (wl.Ranges(4), gb.Simplex, gb.SimplexDifference, gb.LinearImage),
        (wl.Explicit(np.eye(3)), gb.Simplex, gb.SimplexDifference, gb.LinearImage),
        (wl.SecondMoment(3), gb.Spectraplex, gb.SpectraplexDifference, gb.NuclearBall),
        (wl.MarginalTables([2, 3], 2), gb.Simplex, gb.SimplexDifference, gb.LinearImage),
    ],
    ids=repr,
)
def test_closed_forms_are_found(workload, kind, difference, hull):
    assert type(gb.sensitivity_polytope(workload)) is kind
    assert type(gb.neighbour_body(workload, REPLACE)) is difference
    assert type(gb.neighbour_body(workload, ADD)) is hull


@pytest.mark.parametrize("workload", FINITE, ids=repr)
def test_sensitivity_polytopes_are_hulls_of_all_answers(workload):
    body, answers = gb.sensitivity_polytope(workload), wl.explicit_answers(workload)
    directions = gaussian(8, workload.n_queries)
    expected = (directions @ answers.T).max(axis=1)
    np.testing.assert_allclose(body.support(directions), expected, rtol=0, atol=1e-12)
    assert body.affine_hull().dimension == workload.affine_hull().dimension
    assert isinstance(body, gb.LinearImage) or body.contains(answers).all()


@pytest.mark.parametrize(("workload", "adjacency"), PAIRS)
def test_neighbour_bodies_are_hulls_of_all_differences(workload, adjacency):
    body, moved = gb.neighbour_body(workload, adjacency), neighbours(workload, adjacency)
    assert body.symmetric
    directions = gaussian(8, workload.n_queries)
    expected = (directions @ moved.T).max(axis=1)
    np.testing.assert_allclose(body.support(directions), expected, rtol=0, atol=1e-12)
    rank = np.linalg.matrix_rank(moved, tol=1e-9)
    assert body.affine_hull().dimension == rank


@pytest.mark.parametrize(("workload", "adjacency"), PAIRS)
def test_exact_noise_bodies_hold_all_differences(workload, adjacency):
    """Every body contains every difference (SAM-5), and has a sampler and a second moment."""
    moved = neighbours(workload, adjacency)
    found = exact_noise_bodies(workload, adjacency)
    assert found
    assert len({each.name for each in found}) == len(found)
    for each in found:
        body = each.body
        assert body.dimension == workload.n_queries
        assert body.symmetric
        # Triangulated bodies are enlarged, so no difference is outside; others are rounded.
        rounding = 0 if each.name.startswith("triangulated") else 1e-9
        assert body.gauge(moved).max() <= 1 + rounding, each.name
        points = body.sample_uniform(10, np.random.default_rng(0))
        assert body.contains(points).all()
        assert body.second_moment().shape == (workload.n_queries,) * 2
        assert check_contains_neighbours(body, workload, adjacency) <= 1 + 2e-8
        # Bodies touch the differences, except balls and blocks, whose radii may be bounds.
        if "ball" not in each.name and "blocks" not in each.name and np.abs(moved).max() > 0:
            assert body.gauge(moved).max() >= 1 - 1e-8, each.name


@pytest.mark.parametrize("adjacency", Adjacency)
def test_infinite_universes_have_exact_noise_bodies(adjacency):
    workload = wl.SecondMoment(3)
    records = workload.universe.sample(400, rng=0)
    records /= np.linalg.norm(records, axis=1, keepdims=True)
    answers = workload.evaluate(records)
    moved = answers if adjacency is ADD else answers[:200] - answers[200:]
    found = exact_noise_bodies(workload, adjacency)
    assert found
    for each in found:
        assert each.body.gauge(moved).max() <= 1 + 1e-9


def test_error_of_the_parity_box():
    """For 2-way tables of 10 bits, the noise has RMSE 0.00565 per cell at n = 5000 (X-OUT)."""
    workload = wl.MarginalTables([2] * 10, 2)
    bodies = {each.name: each.body for each in exact_noise_bodies(workload, REPLACE)}
    assert knorm_rmse(bodies["blocks"], 180, n=5000) == pytest.approx(0.00565, abs=5e-6)


@pytest.mark.parametrize("k", [1, 3, 8])
def test_errors_of_one_way_marginals(k):
    """K-norm noise of l_inf, l2 and l1 balls has the errors of section 7 of the formula sheet."""
    found = {e.name: e.body for e in exact_noise_bodies(wl.Marginals(k, 1), REPLACE)}
    for name, expected in (
        ("neighbour body", math.sqrt((k + 1) * (k + 2) / 3)),
        ("l2 ball", math.sqrt(k * (k + 1))),
        ("l1 ball", math.sqrt(2) * k),
    ):
        assert knorm_rmse(found[name], k) == pytest.approx(expected, rel=1e-12)
    # Under add/remove, the squared error is (k + 2)(k + 3) / 6 per query. The box [-1, 1]^k has the
    # squared error (k + 1)(k + 2) / 3, which is larger for k > 1.
    tight = exact_noise_bodies(wl.Marginals(k, 1), ADD)[0]
    assert knorm_rmse(tight.body, k) == pytest.approx(math.sqrt((k + 2) * (k + 3) / 6), rel=1e-12)


def test_noise_of_counts_under_add_remove_and_of_constant_answers():
    """The neighbour body conv(+-e_i) is the l1 ball, and its noise has RMSE sqrt(2) per query."""
    found = exact_noise_bodies(wl.Histogram(7), ADD)
    assert found[0].name == "neighbour body"
    assert knorm_rmse(found[0].body, 7) == pytest.approx(math.sqrt(2), rel=1e-12)
    found = exact_noise_bodies(wl.Explicit(np.ones((2, 4))), REPLACE)
    assert [each.name for each in found] == ["neighbour body"]
    assert not found[0].body.sample_uniform(3, np.random.default_rng(0)).any()


@pytest.mark.parametrize("adjacency", Adjacency)
def test_large_tables_need_no_enumeration(adjacency):
    """The 2^26 elements are never listed, and all bodies contain random differences."""
    workload = wl.MarginalTables([2] * 26, 2)
    assert isinstance(gb.sensitivity_polytope(workload), WorkloadPolytope)
    found = {each.name: each.body for each in exact_noise_bodies(workload, adjacency)}
    answers = workload.evaluate(workload.universe.sample(40, rng=0))
    moved = answers if adjacency is ADD else answers[:20] - answers[20:]
    for body in found.values():
        assert body.gauge(moved).max() <= 1 + 1e-9
    # In each block, all answers have the same norm, which is half the diameter of the block.
    ratio = 0.5 if adjacency is ADD else 1.0
    box = found["blocks"].body.bodies[0]
    diameters = np.array([block.diameter for block in workload.blocks()])
    expected = ratio * diameters
    if adjacency is ADD:
        # Every record adds 1/4 to the mean of each of the 325 tables of four cells. This common
        # part of the answers has norm (325 * 4 / 16)^(1/2). The box is inflated by 1 + 1e-9 there.
        expected = np.append(expected, math.sqrt(325) / 2 * (1 + 1e-9))
    np.testing.assert_allclose(box.upper, expected, rtol=1e-12)


def test_repeated_answers_are_listed_once():
    body = gb.sensitivity_polytope(wl.Explicit(np.array([[0.0, 1, 0, 1, 0.5], [0, 1, 1, 0, 0.5]])))
    assert isinstance(body, gb.VPolytope)
    assert len(body.vertices) == 5
    same = gb.sensitivity_polytope(wl.Explicit(np.ones((2, 4))))
    assert isinstance(same, gb.Simplex)


def test_one_way_tables_are_never_listed():
    """With 12^40 elements, answers cannot be listed, but the neighbour body has a sampler."""
    workload = wl.MarginalTables([12] * 40, 1)
    assert isinstance(gb.sensitivity_polytope(workload), gb.Product)
    assert exact_noise_bodies(workload, REPLACE)[0].name == "neighbour body"


@pytest.mark.parametrize("adjacency", Adjacency)
def test_every_linear_map_of_means_is_an_ellipsoid_with_exact_noise(adjacency: Adjacency) -> None:
    """The unit ball B has the image K = A B with support ||A^T u||; here A is not one-to-one."""
    inner = wl.LinearMap(wl.Means(6), np.diag([3.0, 1, 1, 1, 0.5, 0.1]))
    matrix = gaussian(3, 6, seed=4)
    workload = wl.LinearMap(inner, matrix)
    root = matrix @ inner.matrix
    body = gb.neighbour_body(workload, adjacency)
    directions = gaussian(20, 3, seed=5)
    factor = 2 if adjacency is Adjacency.REPLACE_ONE else 1
    expected = factor * np.linalg.norm(directions @ root, axis=1)
    np.testing.assert_allclose(body.support(directions), expected, rtol=1e-12)
    assert isinstance(gb.sensitivity_polytope(workload), gb.Ellipsoid)
    exact = {named.name: named.body for named in exact_noise_bodies(workload, adjacency)}
    assert exact["neighbour body"].gauge(factor * root.T[:1]) <= 1 + 1e-12
    # For U uniform in an ellipsoid A B in R^m, E ||U||^2 is the sum of the squared entries of A
    # divided by m + 2.
    moment = np.trace(exact["neighbour body"].second_moment())
    np.testing.assert_allclose(moment, factor**2 * np.sum(root**2) / 5, rtol=1e-12)


WORKLOAD = wl.Explicit(gaussian(3, 9))
ROWS = gaussian(10, 3, seed=1)


def tight(adjacency):
    """Bodies that contain the neighbour body of `WORKLOAD` and touch its boundary."""
    K = gb.neighbour_body(WORKLOAD, adjacency)
    moved = neighbours(WORKLOAD, adjacency)
    widths = K.support(ROWS)
    mostly_wide = np.where(np.arange(10) == 7, 1, 2) * widths
    axes = K.support(np.eye(3))
    return [
        gb.SlabBody(ROWS, mostly_wide),
        gb.HPolytope(np.vstack([ROWS, -ROWS]), np.tile(mostly_wide, 2)),
        gb.Box.centred(axes),
        gb.Scaled(gb.SlabBody(ROWS, widths / 2), 2),
        gb.LinearImage(TURN, gb.SlabBody(ROWS @ TURN, widths)),
        gb.Product([gb.Box.centred(axes[:1]), gb.Box.centred(axes[1:])]),
        gb.TriangulatedPolytope(moved),
        gb.VPolytope(moved),
        gb.Ball(3, np.linalg.norm(moved, axis=1).max()),
        gb.CrossPolytope(3, np.abs(moved).sum(axis=1).max()),
        gb.Ellipsoid(TURN * np.linalg.norm(moved, axis=1).max()),
        gb.Product(
            [gb.Ball(2, np.linalg.norm(moved[:, :2], axis=1).max()), gb.Box.centred(axes[2:])]
        ),
        K,
    ]


@pytest.mark.parametrize("adjacency", Adjacency)
@pytest.mark.parametrize("number", range(13))
def test_tight_bodies_pass_and_slightly_smaller_ones_fail(adjacency, number):
    body = tight(adjacency)[number]
    factor = check_contains_neighbours(body, WORKLOAD, adjacency)
    assert 1 <= factor <= 1 + 2e-8
    assert check_contains_neighbours(gb.Scaled(body, 2), WORKLOAD, adjacency) == 1
    with pytest.raises(ValueError, match="must contain all differences") as error:
        check_contains_neighbours(gb.Scaled(body, 1 - 1e-6), WORKLOAD, adjacency)
    assert "the largest is 1.00000" in str(error.value)


@pytest.mark.parametrize("broken", range(3))
def test_a_gauge_that_is_no_number_is_refused_in_every_block(monkeypatch, broken):
    """The six differences of four vertices come in three blocks; one of them has the gauge NaN."""
    gauges = iter([math.nan if block == broken else 0.5 for block in range(3)])
    monkeypatch.setattr("geomdp.bodies.sensitivity.PAIR_ROWS", 2)
    monkeypatch.setattr("geomdp.bodies.sensitivity._largest_gauge", lambda K, points: next(gauges))
    monkeypatch.setattr(gb.Body, "largest_gauge", lambda K, support: None)
    body = gb.symmetric_hull(gb.VPolytope(4 * np.eye(4)))
    with pytest.raises(ValueError, match="the largest is nan"):
        check_contains_neighbours(body, wl.Histogram(4), REPLACE)


def test_listed_hyperplanes_need_no_listed_answers():
    """Hyperplanes and bounds on norms suffice where the differences are too many to list."""
    workload = wl.SecondMoment(2)
    K = gb.SpectraplexDifference(2)
    rows = np.vstack([np.eye(3), gaussian(5, 3)])
    assert (
        check_contains_neighbours(gb.SlabBody(rows, K.support(rows)), workload, REPLACE) <= 1 + 1e-9
    )
    cube = gb.Box.centred(np.ones(12))
    assert check_contains_neighbours(cube, wl.Marginals(12, 1), REPLACE) == 1
    for ball in (
        gb.Ball(40, np.sqrt(40)),
        gb.CrossPolytope(40, 40),
        gb.Ellipsoid(np.sqrt(40) * np.eye(40)),
    ):
        assert check_contains_neighbours(ball, wl.Marginals(40, 1), REPLACE) <= 1 + 1e-9
    # Differences have l1 norms of at most 40 and l2 norms of at most 40^(1/2). So their l_p norms
    # are at most 40^(1/p) for p from 1 to 2.
    for p in (1, 1.5, 2):
        ball = gb.LpBall(p, 40, 40 ** (1 / p))
        assert check_contains_neighbours(ball, wl.Marginals(40, 1), REPLACE) <= 1 + 1e-9
    with pytest.raises(ValueError, match="must contain"):
        check_contains_neighbours(gb.Box.centred(np.full(12, 0.9)), wl.Marginals(12, 1), REPLACE)


@pytest.mark.parametrize("d", [1, 2, 4])
def test_spectral_bodies_are_compared_on_orbits(d):
    """Second moments have infinitely many answers, so one point of each orbit is checked."""
    workload = wl.SecondMoment(d)
    difference, hull, proved = gb.SpectraplexDifference(d), gb.NuclearBall(d), 1 + GAUGE_ERROR
    assert check_contains_neighbours(difference, workload, REPLACE) == proved
    assert check_contains_neighbours(hull, workload, Adjacency.ADD_REMOVE) == proved
    assert check_contains_neighbours(difference, workload, Adjacency.ADD_REMOVE) == proved
    # ||v v^T - w w^T||_* is 2 for orthogonal unit vectors v and w. For d = 1 there are no such
    # vectors, and the largest norm is 1.
    reach = 2.0 if d > 1 else 1.0
    assert check_contains_neighbours(gb.Scaled(hull, reach), workload, REPLACE) == proved
    for small in (gb.Scaled(hull, 0.99 * reach), gb.Scaled(difference, 0.99)):
        with pytest.raises(ValueError, match="must contain"):
            check_contains_neighbours(small, workload, REPLACE)


@pytest.mark.parametrize(
    ("body", "workload", "message"),
    [
        (gb.Ball(2), WORKLOAD, "must have dimension 3"),
        (gb.Box(np.zeros(3), np.ones(3)), WORKLOAD, "known to be symmetric"),
        (gb.Ellipsoid(100 * np.eye(3)[:, :2]), WORKLOAD, r"dimension 3; .* leaves out one"),
        (gb.Ball(3, 1), wl.SecondMoment(2), "cannot be verified"),
        # There are 2^20 elements, which give 20 * 2^20 > 2^24 answers to the 20 queries.
        (
            gb.Ball(20, 4.0),
            wl.Marginals(20, 1),
            r"at most 2\^20 elements and 2\^24 answers over all",
        ),
        (gb.Ellipsoid(np.eye(2)), wl.Explicit(gaussian(2, 1500)), "pairs of different answers"),
        (
            gb.Difference(WorkloadPolytope(wl.Parities(4, 2))),
            wl.Parities(4, 2),
            "cannot be verified",
        ),
    ],
)
def test_what_cannot_be_proved_is_refused(body, workload, message):
    with pytest.raises(ValueError, match=message):
        check_contains_neighbours(body, workload, REPLACE)


def test_flat_workloads_are_checked_in_their_span():
    workload = wl.Histogram(4)
    K = gb.neighbour_body(workload, REPLACE)
    assert check_contains_neighbours(K, workload, REPLACE) <= 1 + 2e-8
    hull = K.affine_hull()
    flat = gb.LinearImage(hull.basis, gb.SlabBody(np.eye(3), K.support(hull.basis.T)))
    assert check_contains_neighbours(flat, workload, REPLACE) <= 1 + 1e-9
    with pytest.raises(ValueError, match=r"the largest is 1\.0101"):
        check_contains_neighbours(gb.Scaled(flat, 0.99), workload, REPLACE)
    with pytest.raises(ValueError, match=r"dimension 4; .* leaves out one"):
        check_contains_neighbours(K, workload, ADD)  # here differences span all 4 dimensions
