"""Projections on 200 random polytopes, many degenerate, against an interior-point solver."""

from __future__ import annotations

import clarabel
import numpy as np
import pytest
import scipy.sparse as sp

from geomdp.bodies.polytopes.vpolytope import VPolytope
from geomdp.geometry.projection import project

INSTANCES = 200


def instance(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Vertices (N, m) and a target: random, in the hull, a vertex, or near a mean of vertices."""
    rng = np.random.default_rng(seed)
    dimension, count = int(rng.integers(1, 12)), int(rng.integers(1, 40))
    match seed % 5:
        case 0:
            vertices = rng.standard_normal((count, dimension))
        case 1:  # repeated vertices
            vertices = np.repeat(rng.standard_normal((count, dimension)), 3, axis=0)
        case 2:  # collinear points
            line = rng.standard_normal(dimension)
            vertices = rng.standard_normal((count, 1)) * line + rng.standard_normal(dimension)
        case 3:  # 0-1 vertices, which tie in many directions
            vertices = rng.choice([0.0, 1.0], (count, dimension))
        case _:  # points of a plane through 0
            plane = rng.standard_normal((2, dimension))
            vertices = rng.standard_normal((count, 2)) @ plane
    match seed % 4:
        case 0:
            target = vertices.mean(axis=0) + 3 * rng.standard_normal(dimension)
        case 1:
            target = rng.dirichlet(np.ones(len(vertices))) @ vertices
        case 2:
            target = vertices[rng.integers(len(vertices))].copy()
        case _:
            few = vertices[rng.integers(len(vertices), size=min(len(vertices), dimension))]
            target = few.mean(axis=0) + 0.1 * rng.standard_normal(dimension)
    return vertices, target


def nearest_by_clarabel(vertices: np.ndarray, target: np.ndarray) -> np.ndarray:
    """The y that minimises |y - target|^2 / 2, over y = w @ vertices with w >= 0 and sum w = 1."""
    count, dimension = vertices.shape
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    for name in ("tol_gap_abs", "tol_gap_rel", "tol_feas"):
        setattr(settings, name, 1e-12)
    costs = sp.block_diag([sp.csc_matrix((count, count)), sp.eye(dimension)], format="csc")
    rows = sp.csc_matrix(
        np.block(
            [
                [vertices.T, -np.eye(dimension)],
                [np.ones((1, count)), np.zeros((1, dimension))],
                [-np.eye(count), np.zeros((count, dimension))],
            ]
        )
    )
    sides = np.concatenate([np.zeros(dimension), [1.0], np.zeros(count)])
    cones = [clarabel.ZeroConeT(dimension + 1), clarabel.NonnegativeConeT(count)]
    linear = np.concatenate([np.zeros(count), -target])
    solver = clarabel.DefaultSolver(costs, linear, rows, sides, cones, settings)
    weights = np.maximum(np.asarray(solver.solve().x)[:count], 0)
    return np.asarray(weights / weights.sum() @ vertices)


@pytest.mark.parametrize("first", range(0, INSTANCES, 50))
def test_random_projections_agree_with_an_interior_point_solver(first: int) -> None:
    for seed in range(first, first + 50):
        vertices, target = instance(seed)
        scale = float(np.linalg.norm(vertices - vertices.mean(axis=0), axis=1).max())
        size = scale + float(np.abs(vertices).max() + np.linalg.norm(target))
        result = project(VPolytope(vertices), target, tol=1e-12)
        expected = nearest_by_clarabel(vertices, target)
        # Both points are in the hull, so geomdp's distance must not be above the solver's. The
        # solver's point may be wrong by about the square root of its tolerance 1e-12.
        best = np.linalg.norm(target - result.point)
        assert best <= np.linalg.norm(target - expected) + 1e-12 * size, seed
        assert np.linalg.norm(result.point - expected) <= 1e-4 * size, seed
        gain = float(((vertices - result.point) @ (target - result.point)).max())
        assert gain <= 1e-12 * scale**2 + 1e-14 * size**2, seed
