"""Slabs checked by another oracle than the one they were found with."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

from geomdp.bodies import (
    Ball,
    CvxBody,
    LinearImage,
    SlabBody,
    VPolytope,
    difference_body,
    neighbour_body,
)
from geomdp.bodies.of_workloads.containment import check_contains_neighbours
from geomdp.bodies.of_workloads.relaxations import moment_relaxation
from geomdp.geometry import certify_slabs, refine_slabs
from geomdp.geometry.outer_slabs.separation import PointDirections
from geomdp.mechanisms import KNorm
from geomdp.privacy import Adjacency, Heuristic, PureDP
from geomdp.workloads import MarginalTables, Parities, explicit_answers

TABLES = MarginalTables([2, 2, 3], 2)


def differences(workload) -> VPolytope:
    """K - K by its vertices: an oracle that shares no code with ray shooting or eigenvalues."""
    answers = np.unique(explicit_answers(workload), axis=0)
    return VPolytope((answers[:, None] - answers).reshape(-1, workload.n_queries))


@pytest.fixture(scope="module")
def refined():
    return refine_slabs(neighbour_body(TABLES, Adjacency.REPLACE_ONE), slabs=60, rng=1)


def test_refined_slabs_are_valid_and_tight(refined):
    certificate = certify_slabs(refined.body, differences(TABLES))
    assert certificate.valid
    assert 0 < certificate.margin <= 1.1e-9
    assert certificate.heights.shape == certificate.widths.shape == (60,)
    assert certificate.off_span <= 1e-12 * certificate.scale


def test_noise_of_refined_slabs_is_heuristic(refined):
    mechanism = KNorm(TABLES, n=100, privacy=PureDP(1.0), body=refined.body)
    assert isinstance(mechanism.guarantee.sampler, Heuristic)


def test_one_narrow_slab_is_found(refined):
    widths = refined.slabs.widths.copy()
    widths[17] *= 1 - 1e-6
    narrow = LinearImage(refined.basis, SlabBody(refined.slabs.directions, widths))
    certificate = certify_slabs(narrow, differences(TABLES))
    assert not certificate.valid
    assert int(np.argmax(certificate.heights / certificate.widths)) == 17
    assert certificate.margin == pytest.approx(-1e-6, rel=1e-2)


def test_a_body_that_leaves_the_span_is_found():
    flat = LinearImage(np.eye(3)[:, :2], SlabBody(np.eye(2), np.ones(2)))
    assert certify_slabs(flat, LinearImage(np.eye(3)[:, :2], Ball(2))).valid
    certificate = certify_slabs(flat, Ball(3))
    assert certificate.margin == pytest.approx(0, abs=1e-12)
    assert not certificate.valid
    assert certificate.off_span == pytest.approx(1)


def test_lopsided_bodies_are_seen_from_both_sides():
    square = SlabBody(np.eye(2), np.ones(2))
    assert not certify_slabs(square, VPolytope(np.array([[0.5, 0], [-1.5, 0], [0, 1]]))).valid


def test_what_cannot_be_certified_is_refused(refined):
    with pytest.raises(ValueError, match="body must be a SlabBody"):
        certify_slabs(Ball(2), Ball(2))
    with pytest.raises(ValueError, match="bound must have dimension"):
        certify_slabs(refined.body, Ball(2))


def test_slabs_from_a_semidefinite_relaxation_hold_the_true_body():
    """Support functions of the moment matrix are upper bounds from dual matrices."""
    workload = Parities(4, 2)
    relaxed = difference_body(moment_relaxation(workload))
    refined = refine_slabs(relaxed, slabs=20, source=PointDirections(relaxed), rng=2)
    assert certify_slabs(refined.body, differences(workload)).valid
    assert refined.history[-1].second_moment < refined.history[0].second_moment
    body = refined.body
    assert check_contains_neighbours(body, workload, Adjacency.REPLACE_ONE) == 1


def test_slabs_of_an_inexact_oracle_are_widened():
    """Clarabel stops at 1e-8 or so: the accuracy stated is added to every half-width."""

    class Rounded(CvxBody):
        symmetric = True

    inexact = Rounded(2, lambda x: [cp.norm(x, 2) <= 1])
    refined = refine_slabs(inexact, slabs=8, rng=3, accuracy=1e-6)
    certificate = certify_slabs(refined.body, Ball(2))
    assert certificate.valid
    assert 0 < certificate.margin < 3e-6
