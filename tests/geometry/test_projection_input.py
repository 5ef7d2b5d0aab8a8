"""Projection refuses bad targets, tolerances, maps and warm starts, and bodies without oracles."""

from __future__ import annotations

import numpy as np
import pytest

from geomdp.bodies.base import MissingOracle
from geomdp.bodies.polytopes.vpolytope import VPolytope
from geomdp.geometry.projection import Projector, project
from geomdp.geometry.results import Projection
from tests.geometry.bodies import OracleOnly, SamplerOnly

BODY = VPolytope(np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]))


@pytest.mark.parametrize(
    "target", [[1.0], [1.0, 2.0, 3.0], [[1.0, 2.0]], [np.nan, 0.0], ["a", "b"]]
)
def test_target(target) -> None:
    with pytest.raises(ValueError, match="target must"):
        project(BODY, target)


@pytest.mark.parametrize("tol", [0.0, -1e-8, np.nan, np.inf])
def test_tolerance(tol: float) -> None:
    with pytest.raises(ValueError, match="tol must"):
        project(BODY, [1.0, 2.0], tol=tol)


@pytest.mark.parametrize("matrix", [np.eye(3), np.ones(2), np.full((1, 2), np.nan)])
def test_matrix(matrix) -> None:
    with pytest.raises(ValueError, match="matrix must"):
        Projector(BODY, matrix)


def test_warm_start_of_another_body() -> None:
    other = project(VPolytope(np.random.default_rng(5).standard_normal((9, 2))), [9.0, 9.0])
    moved = Projection(other.point, 0.0, 0, True, {8: 1.0})
    with pytest.raises(ValueError, match=r"vertex indices in 0\.\.2"):
        project(BODY, [1.0, 2.0], warm_start=moved)


@pytest.mark.parametrize("weights", [{0: -1.0, 1: 2.0}, {0: 0.0}, {0: np.nan}])
def test_warm_start_with_bad_weights(weights) -> None:
    bad = Projection(np.zeros(2), 0.0, 0, True, weights)
    with pytest.raises(ValueError, match="non-negative weights"):
        project(BODY, [1.0, 2.0], warm_start=bad)


def test_warm_start_without_weights() -> None:
    with pytest.raises(ValueError, match="must have weights"):
        project(BODY, [1.0, 2.0], warm_start=Projection(np.zeros(2), 0.0, 0, True))


def test_warm_start_with_atoms_of_another_dimension() -> None:
    bad = Projection(np.zeros(2), 0.0, 0, True, {0: 1.0}, np.zeros((1, 3)))
    with pytest.raises(ValueError, match="atoms"):
        project(OracleOnly(BODY), [1.0, 2.0], warm_start=bad)


def test_missing_oracle() -> None:
    with pytest.raises(MissingOracle, match="project or extreme_point"):
        project(SamplerOnly(BODY), [1.0, 2.0])
