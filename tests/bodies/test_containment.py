"""Bodies that contain all differences of neighbours pass the check; slightly smaller ones fail."""

from __future__ import annotations

import numpy as np
import pytest

import geomdp.workloads as wl
from geomdp.bodies import (
    Ball,
    Box,
    CrossPolytope,
    Difference,
    Ellipsoid,
    HPolytope,
    LinearImage,
    LpBall,
    NuclearBall,
    Product,
    Scaled,
    SlabBody,
    SpectraplexDifference,
    TriangulatedPolytope,
    VPolytope,
    neighbour_body,
)
from geomdp.bodies.sensitivity import (
    GAUGE_ERROR,
    WorkloadPolytope,
    check_contains_neighbours,
    exact_noise_bodies,
)
from geomdp.privacy import Adjacency
from tests.catalogue import TURN, gaussian

REPLACE, ADD = Adjacency.REPLACE_ONE, Adjacency.ADD_REMOVE
WORKLOAD = wl.Explicit(gaussian(3, 9))
ROWS = gaussian(10, 3, seed=1)


def tight(adjacency):
    """Bodies that contain the neighbour body of `WORKLOAD` and touch its boundary."""
    K = neighbour_body(WORKLOAD, adjacency)
    answers = wl.explicit_answers(WORKLOAD)
    moved = answers if adjacency is ADD else (answers[:, None] - answers).reshape(-1, 3)
    both = np.vstack([moved, -moved])
    widths = K.support(ROWS)
    axes = K.support(np.eye(3))
    return [
        SlabBody(ROWS, widths),
        HPolytope(np.vstack([ROWS, -ROWS]), np.tile(widths, 2)),
        Box.centred(axes),
        Scaled(SlabBody(ROWS, widths / 2), 2),
        LinearImage(TURN, SlabBody(ROWS @ TURN, widths)),
        Product([Box.centred(axes[:1]), Box.centred(axes[1:])]),
        TriangulatedPolytope(both),
        VPolytope(both),
        Ball(3, np.linalg.norm(moved, axis=1).max()),
        CrossPolytope(3, np.abs(moved).sum(axis=1).max()),
        Ellipsoid(TURN * np.linalg.norm(moved, axis=1).max()),
        Product([Ball(2, np.linalg.norm(moved[:, :2], axis=1).max()), Box.centred(axes[2:])]),
        K,
    ]


@pytest.mark.parametrize("adjacency", Adjacency)
@pytest.mark.parametrize("number", range(13))
def test_tight_bodies_pass_and_slightly_smaller_ones_fail(adjacency, number):
    body = tight(adjacency)[number]
    factor = check_contains_neighbours(body, WORKLOAD, adjacency)
    assert 1 <= factor <= 1 + 2e-8
    assert check_contains_neighbours(Scaled(body, 2), WORKLOAD, adjacency) == 1
    with pytest.raises(ValueError, match="must contain all differences") as error:
        check_contains_neighbours(Scaled(body, 1 - 1e-6), WORKLOAD, adjacency)
    assert "the largest is 1.00000" in str(error.value)


@pytest.mark.parametrize("adjacency", Adjacency)
def test_one_slab_too_narrow_is_found(adjacency):
    widths = neighbour_body(WORKLOAD, adjacency).support(ROWS)
    widths[7] *= 0.99
    with pytest.raises(ValueError, match=r"the largest is 1\.0101"):
        check_contains_neighbours(SlabBody(ROWS, widths), WORKLOAD, adjacency)


@pytest.mark.parametrize("adjacency", Adjacency)
@pytest.mark.parametrize(
    "workload", [wl.MarginalTables([2, 3], 1), wl.Histogram(4), wl.Marginals(4, 1)], ids=repr
)
def test_the_librarys_own_bodies_pass(workload, adjacency):
    for each in exact_noise_bodies(workload, adjacency):
        assert check_contains_neighbours(each.body, workload, adjacency) <= 1 + 2e-8


def test_listed_hyperplanes_need_no_listed_answers():
    """Hyperplanes and bounds on norms suffice where the differences are too many to list."""
    workload = wl.SecondMoment(2)
    K = SpectraplexDifference(2)
    rows = np.vstack([np.eye(3), gaussian(5, 3)])
    assert check_contains_neighbours(SlabBody(rows, K.support(rows)), workload, REPLACE) <= 1 + 1e-9
    cube = Box.centred(np.ones(12))
    assert check_contains_neighbours(cube, wl.Marginals(12, 1), REPLACE) == 1
    for ball in (Ball(40, np.sqrt(40)), CrossPolytope(40, 40), Ellipsoid(np.sqrt(40) * np.eye(40))):
        assert check_contains_neighbours(ball, wl.Marginals(40, 1), REPLACE) <= 1 + 1e-9
    # Differences have l1 norms of at most 40 and l2 norms of at most 40^(1/2). So their l_p norms
    # are at most 40^(1/p) for p from 1 to 2.
    for p in (1, 1.5, 2):
        ball = LpBall(p, 40, 40 ** (1 / p))
        assert check_contains_neighbours(ball, wl.Marginals(40, 1), REPLACE) <= 1 + 1e-9
    with pytest.raises(ValueError, match="must contain"):
        check_contains_neighbours(Box.centred(np.full(12, 0.9)), wl.Marginals(12, 1), REPLACE)


@pytest.mark.parametrize("d", [1, 2, 4])
def test_spectral_bodies_are_compared_on_orbits(d):
    """Second moments have infinitely many answers, so one point of each orbit is checked."""
    workload = wl.SecondMoment(d)
    difference, hull, proved = SpectraplexDifference(d), NuclearBall(d), 1 + GAUGE_ERROR
    assert check_contains_neighbours(difference, workload, REPLACE) == proved
    assert check_contains_neighbours(hull, workload, Adjacency.ADD_REMOVE) == proved
    assert check_contains_neighbours(difference, workload, Adjacency.ADD_REMOVE) == proved
    # ||v v^T - w w^T||_* is 2 for orthogonal unit vectors v and w. For d = 1 there are no such
    # vectors, and the largest norm is 1.
    reach = 2.0 if d > 1 else 1.0
    assert check_contains_neighbours(Scaled(hull, reach), workload, REPLACE) == proved
    for small in (Scaled(hull, 0.99 * reach), Scaled(difference, 0.99)):
        with pytest.raises(ValueError, match="must contain"):
            check_contains_neighbours(small, workload, REPLACE)


@pytest.mark.parametrize(
    ("body", "workload", "message"),
    [
        (Ball(2), WORKLOAD, "must have dimension 3"),
        (Box(np.zeros(3), np.ones(3)), WORKLOAD, "known to be symmetric"),
        (Ellipsoid(100 * np.eye(3)[:, :2]), WORKLOAD, r"dimension 3; .* leaves out one"),
        (Ball(3, 1), wl.SecondMoment(2), "cannot be verified"),
        # There are 2^20 elements, which give 20 * 2^20 > 2^24 answers to the 20 queries.
        (Ball(20, 4.0), wl.Marginals(20, 1), r"at most 2\^20 elements and 2\^24 answers over all"),
        (Ellipsoid(np.eye(2)), wl.Explicit(gaussian(2, 1500)), "pairs of different answers"),
        (
            Difference(WorkloadPolytope(wl.Parities(4, 2))),
            wl.Parities(4, 2),
            "cannot be verified",
        ),
    ],
    ids=[
        "dimension",
        "symmetry",
        "span",
        "infinite",
        "too many answers",
        "too many pairs",
        "no gauge",
    ],
)
def test_what_cannot_be_proved_is_refused(body, workload, message):
    with pytest.raises(ValueError, match=message):
        check_contains_neighbours(body, workload, REPLACE)


def test_flat_workloads_are_checked_in_their_span():
    workload = wl.Histogram(4)
    K = neighbour_body(workload, REPLACE)
    assert check_contains_neighbours(K, workload, REPLACE) <= 1 + 2e-8
    hull = K.affine_hull()
    flat = LinearImage(hull.basis, SlabBody(np.eye(3), K.support(hull.basis.T)))
    assert check_contains_neighbours(flat, workload, REPLACE) <= 1 + 1e-9
    with pytest.raises(ValueError, match=r"the largest is 1\.0101"):
        check_contains_neighbours(Scaled(flat, 0.99), workload, REPLACE)
    with pytest.raises(ValueError, match=r"dimension 4; .* leaves out one"):
        check_contains_neighbours(K, workload, ADD)  # here differences span all 4 dimensions
