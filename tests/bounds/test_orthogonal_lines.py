"""Orthogonal lines: least errors on one line, lengths of lines, and lower bounds on errors."""

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import geomdp as gd
from geomdp import workloads
from geomdp.bounds import (
    RMS,
    Bound,
    MeanL2,
    Metric,
    SideConditionError,
    WorstCase,
    additive_noise_error,
    check_certificate,
    orthogonal_lines_bound,
    orthogonal_lines_error,
    private_line,
)
from geomdp.bounds.certificates import rungs_of_plans
from geomdp.bounds.checker.lines import _lengths
from geomdp.bounds.checker.reading import Part, Work
from geomdp.bounds.count_risks import Accuracy
from geomdp.bounds.lines import (
    OrthogonalLines,
    coordinates,
    line_plan,
    line_plans,
    widest_frame,
)
from geomdp.bounds.problem import Problem
from geomdp.privacy import Adjacency
from tests.bounds.test_checker import FORGED_RUNG, forged_rungs_are_rejected, saved

PRIVACY = gd.PureDP(1.0)
TABLES = workloads.MarginalTables([2] * 6, 2)


@pytest.mark.parametrize("moment", [1, 2])
def test_many_steps_reach_discrete_laplace_noise(moment):
    q = math.exp(-1.0)
    limit = 2 * q / (1 - q) ** 2 if moment == 2 else 2 * q / (1 - q**2)
    risks = [private_line(steps, 1.0, moment).risk for steps in (2, 4, 8, 16, 32, 64)]
    assert all(a < b for a, b in itertools.pairwise(risks))
    assert 0.97 * limit < risks[-1] <= limit


@pytest.mark.parametrize(
    "arguments", [(0, 1.0, 2), (3, 0.0, 2), (3, 13.0, 2), (70, 1.0, 2), (3, 1.0, 3)]
)
def test_bad_lines_are_refused(arguments):
    with pytest.raises(ValueError, match=r"must be"):
        private_line(*arguments)


def test_lengths_are_those_of_the_polar_frame():
    rng = np.random.default_rng(1)
    matrix = rng.uniform(-1, 1, (7, 12))
    pairs = rng.permutation(12)[:8].reshape(4, 2)
    weights = rng.uniform(0.5, 2, 4)
    lines = OrthogonalLines(workloads.Explicit(matrix), np.arange(12), pairs, weights)
    differences = (matrix[:, pairs[:, 0]] - matrix[:, pairs[:, 1]]) * weights
    left, _, right = np.linalg.svd(differences, full_matrices=False)
    frame = left @ right
    np.testing.assert_allclose(frame.T @ frame, np.eye(4), atol=1e-12)
    expected = np.einsum("kj,kj->j", frame, differences) / weights
    np.testing.assert_allclose(lines.lengths, expected, rtol=1e-10)


def test_a_weight_of_almost_nothing_makes_no_length_of_rounding():
    """A line of weight 1e-60 has length near 0 and changes no other length, in the checker too."""
    rng = np.random.default_rng(2)
    matrix = rng.uniform(-1, 1, (20, 10))
    pairs, weights = np.arange(10).reshape(5, 2), np.array([1, 1.5, 1e-60, 0.5, 2])
    lines = OrthogonalLines(workloads.Explicit(matrix), np.arange(10), pairs, weights)
    kept = [0, 1, 3, 4]
    others = OrthogonalLines(workloads.Explicit(matrix), np.arange(10), pairs[kept], weights[kept])
    family = Part({"pairs": pairs, "weights": weights}, Work(1 << 20))
    for lengths in (lines.lengths, _lengths(family, matrix.T)):
        np.testing.assert_allclose(lengths[kept], others.lengths, rtol=1e-10)
        assert 0 <= lengths[2] < 1e-9


def test_the_climb_reaches_known_frames():
    # The width of the box [-1, 1]^4 along a unit vector u is 2 ||u||_1, which is at most 4. The
    # scaled columns of a Hadamard matrix are a frame with four widths 4, so 64 is the maximum.
    box = np.array(list(itertools.product((-1.0, 1.0), repeat=4)))
    points = coordinates(box - box.mean(axis=0))
    np.testing.assert_allclose(points @ points.T, box @ box.T, atol=1e-9)
    assert (widest_frame(points, 4)[1] ** 2).sum() == pytest.approx(64.0, rel=1e-6)
    axes = coordinates(np.eye(5) - 0.2)
    # The vertices of this simplex are sqrt 2 apart, so no width is larger than sqrt 2.
    assert widest_frame(axes, 1)[1][0] == pytest.approx(math.sqrt(2), rel=1e-6)


@pytest.mark.ci
def test_one_query_needs_what_one_line_does():
    """For one query with answers 0 and 1, the bound follows from the risk of one line."""
    W = workloads.Explicit(np.array([[0.0, 1.0]]))
    steps = np.array([8])
    lines = OrthogonalLines(W, np.arange(2), np.array([[1, 0]]), np.ones(1))
    # This epsilon is above 64 / 96, but 96 times epsilon is 64.0 in float64, which is allowed.
    assert 0 < orthogonal_lines_error(W, 1, epsilon=0.6666666666666667) < 0.5
    for metric, power in ((RMS(), 2), (MeanL2(), 1), (WorstCase(), 1)):
        plan = line_plan(lines, steps, 1, Accuracy(PRIVACY, 1, power, largest=False))
        risk = private_line(8, 1.0, power).risk
        assert plan.scale == pytest.approx(risk ** (1 / power), rel=1e-8)
        assert plan.made_of == "1 orthogonal line, each of at most 8 steps of 1 replacement"
        (rung,) = rungs_of_plans([plan], 0.05)
        assert (rung.first, rung.last) == (8, math.floor(plan.scale / 0.05))
        assert rungs_of_plans([plan], plan.scale / 7.9) == []
        every, half = (
            line_plans(W, Problem(epsilon, 1.0, metric, adjacency))
            for epsilon, adjacency in zip((1.0, 0.5), Adjacency, strict=True)
        )
        assert [plan.scale for plan in every] == [plan.scale for plan in half]


WORKLOADS: dict[str, Callable[[], workloads.Workload]] = {
    "tables": lambda: TABLES,
    "mixed tables": lambda: workloads.MarginalTables([2, 3, 4], 2),
    "prefixes": lambda: workloads.Prefixes(32),
    "ranges": lambda: workloads.Ranges(12),
    "signs": lambda: workloads.RandomSigns(20, 50, rng=0),
    "large universe": lambda: workloads.MarginalTables([2] * 12, 2),
}


@pytest.mark.parametrize("name", WORKLOADS)
@pytest.mark.parametrize("adjacency", Adjacency)
def test_no_exact_error_is_excluded(name, adjacency):
    """Lower bounds are below the exact errors of two mechanisms, for few and for many records."""
    W = WORKLOADS[name]()
    mechanisms = [
        kind(W, n=1, privacy=PRIVACY, adjacency=adjacency)
        for kind in (gd.mechanisms.Laplace, gd.mechanisms.Ball)
    ]
    for n in (1, 10, 100, 5000):
        found = orthogonal_lines_error(W, n, epsilon=1.0, metric=RMS(), adjacency=adjacency)
        assert found > 0
        for mechanism in mechanisms:
            assert found < mechanism.with_n(n).predicted_rmse.value
        # The centre of all answers, as a constant answer, errs by less than their diameter.
        assert found < W.l2_diameter() / math.sqrt(W.n_queries)


@pytest.mark.parametrize("name", ["tables", "prefixes", "signs"])
def test_no_added_noise_is_below_its_bound(name):
    """At n = 1, the bound is below three known errors and above the bound for all mechanisms."""
    W = WORKLOADS[name]()
    bound = additive_noise_error(W, 1, epsilon=1.0, metric=RMS())
    M = gd.mechanisms
    # For each workload, a mechanism with a small error.
    best = {"tables": M.Cone, "prefixes": M.Hierarchical, "signs": M.Ball}[name]
    errors = [
        kind(W, n=1, privacy=PRIVACY).predicted_rmse.value for kind in (M.Laplace, M.Matrix, best)
    ]
    assert bound < min(errors) < 6 * bound
    assert bound > orthogonal_lines_error(W, 1, epsilon=1.0, metric=RMS())
    at_many = orthogonal_lines_error(W, 100_000, epsilon=1.0, metric=RMS())
    assert additive_noise_error(W, 100_000, epsilon=1.0, metric=RMS()) == at_many
    assert bound == pytest.approx(100_000 * at_many)


def test_bounds_follow_the_error_for_one_number_of_records():
    """If lines exclude alpha up to v records, alpha is between the error bounds at v and v + 1."""
    for alpha in (0.1, 0.01, 0.001):
        bound = orthogonal_lines_bound(TABLES, epsilon=1.0, alpha=alpha, metric=RMS())
        v = int(bound.value)
        errors = [orthogonal_lines_error(TABLES, n, epsilon=1.0, metric=RMS()) for n in (v, v + 1)]
        assert errors[1] < alpha <= errors[0]
    with pytest.raises(SideConditionError, match="one record"):
        orthogonal_lines_bound(TABLES, epsilon=1.0, alpha=1.0)


def a_bound(workload: workloads.Workload = TABLES, metric: Metric | None = None) -> Bound:
    return orthogonal_lines_bound(workload, epsilon=0.4, alpha=0.04, metric=metric or RMS())


@pytest.mark.parametrize("name", WORKLOADS)
@pytest.mark.parametrize("metric", [RMS(), MeanL2()])
def test_certificates_are_confirmed(name, metric, tmp_path):
    bound = a_bound(WORKLOADS[name](), metric)
    path = saved(bound, tmp_path)
    assert check_certificate(path).records == bound.value > 0


FORGED: dict[str, Callable[[dict[str, Any]], object]] = FORGED_RUNG | {
    "steps": lambda rung: rung["steps"].append(1),
    "fewer steps": lambda rung: rung.update(steps=[1] * len(rung["steps"])),
    "risk": lambda rung: rung["known"][-1].update(risk=rung["known"][-1]["risk"] * 1.01),
    "spacing": lambda rung: rung["known"][-1].update(spacing=rung["known"][-1]["spacing"] * 4),
    "prior": lambda rung: rung["known"][-1]["prior"].reverse() or rung["known"][-1]["prior"].pop(),
    "negative prior": lambda rung: rung["known"][-1]["prior"].__setitem__(0, -0.1),
    "known": lambda rung: rung["known"].pop(),
    "pairs": lambda rung: rung["family"]["pairs"][0].reverse() or rung["family"]["pairs"].pop(),
    "another pair": lambda rung: rung["family"]["pairs"].__setitem__(0, rung["family"]["pairs"][1]),
    "row": lambda rung: rung["family"]["pairs"][0].__setitem__(0, 10_000),
    "weights": lambda rung: rung["family"]["weights"].__setitem__(0, 0.01),
    "element": lambda rung: rung["family"]["elements"].reverse(),
    "workload": lambda rung: rung["family"]["workload"].update(k=3),
    "no queries": lambda rung: rung["family"]["workload"].update(k=7),
}


def test_changed_lines_are_rejected(tmp_path):
    forged_rungs_are_rejected(a_bound(), tmp_path, FORGED)
