"""Projections on hard bodies reach the tolerance, agree with a conic solver, and always end."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations

import cvxpy as cp
import numpy as np
import pytest

from geomdp.bodies.balls import Ellipsoid
from geomdp.bodies.base import Body
from geomdp.bodies.sensitivity import WorkloadPolytope
from geomdp.bodies.vpolytope import VPolytope
from geomdp.geometry.projection import project
from geomdp.workloads import Parities, explicit_answers
from tests.geometry.bodies import OracleOnly

CUBE = ((np.arange(64)[:, None] >> np.arange(6)) & 1).astype(float)
PAIRS = np.array(list(combinations(range(6), 2)))


def families() -> dict[str, np.ndarray]:
    """Vertices (N, m) by name of the family. Many have ties or duplicates, or are (nearly) flat."""
    rng = np.random.default_rng(30)
    base = rng.standard_normal((30, 8))
    return {
        "gaussian": rng.standard_normal((100, 10)),
        "few points": rng.standard_normal((4, 10)),
        "one point": rng.standard_normal((1, 3)),
        "same point": np.repeat(rng.standard_normal((1, 3)), 5, axis=0),
        "duplicates": np.repeat(base, 3, axis=0),
        "collinear": np.linspace(-1, 1, 30)[:, None] * rng.standard_normal(5),
        "plane": rng.standard_normal((40, 2)) @ rng.standard_normal((2, 7)),
        "cube": CUBE,
        "2-way marginals": CUBE[:, PAIRS[:, 0]] * CUBE[:, PAIRS[:, 1]],
        "2-way parities": (1 - 2 * CUBE)[:, PAIRS[:, 0]] * (1 - 2 * CUBE)[:, PAIRS[:, 1]],
        "prefixes": np.tril(np.ones((20, 20))),
        "histogram": np.eye(12),
        "cross-polytope": np.vstack([np.eye(9), -np.eye(9)]),
        "signs": rng.choice([-1.0, 1.0], (80, 12)),
        "sphere": base / np.linalg.norm(base, axis=1, keepdims=True),
        "lattice": rng.integers(0, 3, (100, 6)).astype(float),
        "clusters 1e-6": np.vstack([base + 1e-6 * rng.standard_normal(base.shape) for _ in "abc"]),
        "clusters 1e-12": np.vstack(
            [base + 1e-12 * rng.standard_normal(base.shape) for _ in "abc"]
        ),
        "nearly flat": rng.standard_normal((60, 6)) * np.logspace(0, -8, 6),
    }


FAMILIES = families()


def targets(vertices: np.ndarray, seed: int) -> Iterator[np.ndarray]:
    """A vertex, two means of vertices, points at three growing distances from the centre, and 0."""
    rng = np.random.default_rng(seed)
    centre = vertices.mean(axis=0)
    reach = np.linalg.norm(vertices - centre, axis=1).max() + 1e-3
    direction = rng.standard_normal(centre.shape)
    ranked = np.argsort(vertices @ direction)
    yield vertices[rng.integers(len(vertices))].copy()
    yield rng.dirichlet(np.ones(len(vertices))) @ vertices
    yield vertices[ranked[-len(centre) :]].mean(axis=0)
    yield centre + 0.3 * reach * direction
    yield centre + 3 * reach * direction
    yield centre + 1e3 * reach * direction
    yield np.zeros_like(centre)


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize(("scale", "shift"), [(1, 0), (1e-3, 0), (1e3, 0), (1e-3, 1), (1, 1e4)])
def test_relative_gap_of_1e_12_is_reached(name: str, scale: float, shift: float) -> None:
    plain = FAMILIES[name]
    offset = shift * np.random.default_rng(31).standard_normal(plain.shape[1])
    vertices = scale * plain + offset
    reach = np.linalg.norm(vertices - vertices.mean(axis=0), axis=1).max()
    for target in targets(vertices, seed=32):
        # Rounding of the vertices alone can change the gap, by at most `floor`.
        distance = np.linalg.norm(target - vertices.mean(axis=0)) + reach
        floor = 1e-14 * distance * (reach + np.abs(vertices).max())
        for body in (VPolytope(vertices), OracleOnly(VPolytope(vertices))):
            result = project(body, target, tol=1e-12)
            atoms = vertices if result.atoms is None else result.atoms
            weights = np.array(list(result.weights.values()))
            assert (weights > 0).all()
            assert abs(weights.sum() - 1) <= 1e-12
            combined = weights @ atoms[list(result.weights)]
            assert np.linalg.norm(combined - result.point) <= 1e-13 * (
                distance + np.abs(vertices).max()
            )
            gain = ((vertices - result.point) @ (target - result.point)).max()
            assert gain <= 1e-12 * reach**2 + floor
            assert result.gap <= 1e-12 * reach**2 + floor
            assert result.iterations <= 40 * (vertices.shape[1] + 1)


def conic_projection(vertices: np.ndarray, target: np.ndarray) -> np.ndarray:
    """The nearest point by an interior-point method, as an independent answer."""
    weights = cp.Variable(len(vertices), nonneg=True)
    objective = cp.Minimize(cp.sum_squares(vertices.T @ weights - target))
    cp.Problem(objective, [cp.sum(weights) == 1]).solve(
        solver=cp.CLARABEL, tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12
    )
    return np.asarray(weights.value @ vertices)


@pytest.mark.parametrize("name", [name for name in FAMILIES if "1e-12" not in name])
def test_agrees_with_a_conic_solver(name: str) -> None:
    vertices = FAMILIES[name]
    reach = np.linalg.norm(vertices - vertices.mean(axis=0), axis=1).max() + 1e-3
    chosen = list(targets(vertices, seed=33))
    for target in (chosen[1], chosen[3], chosen[4]):
        expected = conic_projection(vertices, target)
        result = project(VPolytope(vertices), target, tol=1e-12)
        # The solver minimises the squared distance up to a tolerance near 1e-12. So its distance is
        # accurate, but its point may be wrong by about the square root of the tolerance.
        best = np.linalg.norm(target - result.point)
        assert best <= np.linalg.norm(target - expected) + 1e-7 * reach
        assert np.linalg.norm(result.point - expected) <= 1e-4 * reach


def test_workload_polytope_agrees_with_its_listed_answers() -> None:
    workload = Parities(7, 2)
    rng = np.random.default_rng(39)
    truth = workload.answers(workload.universe.sample(50, rng))
    listed, implicit = VPolytope(explicit_answers(workload)), WorkloadPolytope(workload)
    for size in (0.01, 0.3, 3.0):
        target = truth + size * rng.standard_normal(21)
        first, second = (project(body, target, tol=1e-12) for body in (listed, implicit))
        assert first.converged
        assert second.converged
        assert np.linalg.norm(first.point - second.point) <= 1e-10


@pytest.mark.parametrize("tol", [1e-6, 1e-10])
@pytest.mark.parametrize("where", ["far", "near", "boundary", "just inside", "inside"])
def test_smooth_bodies_by_oracle(where: str, tol: float) -> None:
    rng = np.random.default_rng(34)
    body = Ellipsoid(np.diag(np.logspace(0, -2, 12)))
    edge = body.extreme_point(rng.standard_normal((1, 12)))[0]
    factor = {"far": 10, "near": 1.1, "boundary": 1, "just inside": 0.99, "inside": 0.3}[where]
    result = project(body, factor * edge, tol=tol)
    assert result.converged
    assert body.contains(result.point[None])[0]
    if where == "inside":
        assert np.array_equal(result.point, factor * edge)
    residual = factor * edge - result.point
    gap = float(body.support(residual[None])[0] - residual @ result.point)
    assert gap <= result.gap + 1e-14


def test_unreachable_tolerance_ends_with_an_honest_gap() -> None:
    """`gap` is the gap of the mean of the vertices with the weights found, up to rounding."""
    rng = np.random.default_rng(35)
    vertices = rng.standard_normal((50, 6)) + 1e8
    centre = vertices.mean(axis=0)
    reach = np.linalg.norm(vertices - centre, axis=1).max()
    unreached = 0
    for size in np.logspace(0, 2, 20):
        target = centre + size * rng.standard_normal(6)
        result = project(VPolytope(vertices), target, tol=1e-30)
        assert result.converged == (result.gap <= 1e-30 * reach**2)
        assert result.iterations < 200
        # The offsets of the vertices and of the target from `centre` are exact in float64. A gap is
        # a product of sums of at most 7 offsets, in 6 coordinates, so fewer than 20 roundings.
        rounding = 20 * np.finfo(float).eps * reach * (reach + np.linalg.norm(target - centre))
        assert abs(result.gap - exact_gap(vertices, target, result.weights)) <= rounding
        unreached += not result.converged
    assert unreached > 0


def exact_gap(vertices: np.ndarray, target: np.ndarray, weights: dict[int, float]) -> float:
    """max over vertices v of <target - x, v - x> in fractions; x is the weighted mean of some."""
    exact = [[Fraction(float(entry)) for entry in row] for row in (*vertices, target)]
    shares = {key: Fraction(share) for key, share in weights.items()}
    total = sum(shares.values())
    mean = [
        sum(share * exact[key][j] for key, share in shares.items()) / total
        for j in range(len(target))
    ]
    return float(
        max(
            sum((y - x) * (v - x) for y, v, x in zip(exact[-1], vertex, mean, strict=True))
            for vertex in exact[:-1]
        )
    )


def test_noisy_oracle_ends() -> None:
    class Noisy(Body):
        """A cross-polytope whose extreme points have new random errors near 1e-7 in each call."""

        dimension = 6
        noise = np.random.default_rng(36)

        def extreme_point(self, directions: np.ndarray) -> np.ndarray:
            winners = np.abs(directions).argmax(axis=1)
            points = np.sign(directions) * np.eye(6)[winners]
            return points + 1e-7 * self.noise.standard_normal(points.shape)

    target = np.array([1.0, 0.9, 0.8, 0.1, 0.0, -2.0])
    result = project(Noisy(), target, tol=1e-12)
    exact = project(OracleOnly(VPolytope(FAMILIES["cross-polytope"][:, :6])), target, tol=1e-12)
    assert np.linalg.norm(result.point - exact.point) <= 1e-5
    assert result.iterations < 1000
