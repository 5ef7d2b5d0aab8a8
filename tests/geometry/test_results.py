"""The `repr` of a result is a short text for people, without arrays."""

from __future__ import annotations

import numpy as np

import geomdp as gd
from geomdp.geometry.outer_slabs import refine_slabs

SQUARE = gd.bodies.SlabBody(np.eye(2), np.ones(2))


def test_estimates_say_whether_they_are_exact() -> None:
    assert repr(gd.geometry.Estimate.exact(2.0)) == "Estimate(2, exact)"
    simulated = gd.geometry.Estimate(1.5, 0.1, (1.0, 2.0), 400)
    assert repr(simulated) == "Estimate(1.5 +- 0.1, in [1, 2]; 400 samples)"


def test_projections_say_how_good_they_are() -> None:
    corner = gd.project(gd.bodies.VPolytope(np.eye(3)), np.array([2.0, 0.0, 0.0]))
    assert repr(corner).startswith("Projection(dimension: 3, extreme points: 1, gap: ")
    assert repr(gd.project(gd.bodies.Ball(3), np.ones(3))).startswith(
        "Projection(dimension: 3, gap"
    )
    stopped = gd.geometry.Projection(np.ones(2), 0.5, 7, converged=False)
    assert repr(stopped) == "Projection(dimension: 2, gap: 0.5, iterations: 7, not converged)"


def test_samples_say_how_they_were_drawn() -> None:
    exact = gd.sample_uniform(gd.bodies.Ball(3), 5, rng=0)
    assert repr(exact) == "Samples(5 points in dimension 3; exact)"
    chained = gd.sample_uniform(SQUARE, 600, rng=0)
    assert repr(chained).startswith("Samples(600 points in dimension 2; heuristic (coordinate hit")
    assert repr(chained.diagnostics) == f"Diagnostics({chained.diagnostics})"


def test_slabs_say_how_many_they_are() -> None:
    refined = refine_slabs(gd.bodies.CrossPolytope(3), slabs=5, rng=0)
    assert repr(refined).startswith("SlabRefinement(5 slabs in dimension 3; E||U||^2: Estimate(")
