"""Projections: the variational inequality, the error bound of the gap, hard bodies, refusals."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from geomdp.bodies import Ball, Body, Ellipsoid, MissingOracle, VPolytope
from geomdp.geometry.projection import Projection, Projector, project
from tests.geometry.bodies import OracleOnly, SamplerOnly

TIGHT = 1e-12
#: Multiples of 1/2, which often give ties, duplicates, and collinear or flat sets.
LATTICE = st.integers(-4, 4).map(lambda i: i / 2)
# Without a deadline, because the first call compiles code, which takes long.
UNTIMED = settings(deadline=None)
SMOOTH = st.floats(-5, 5).map(lambda value: round(value, 6))


@st.composite
def problems(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """Vertices (N, m) and a target (m,), often degenerate."""
    shape = (draw(st.integers(1, 12)), draw(st.integers(1, 5)))
    entries = draw(st.sampled_from([LATTICE, SMOOTH]))
    vertices = draw(hnp.arrays(float, shape, elements=entries))
    return vertices, draw(hnp.arrays(float, shape[1], elements=entries))


def spread(vertices: np.ndarray) -> float:
    return float(np.linalg.norm(vertices - vertices.mean(axis=0), axis=1).max())


def check_weights(vertices: np.ndarray, result: Projection, scale: float) -> None:
    """The point is the weighted mean of atoms, up to rounding of numbers up to `scale`."""
    atoms = vertices if result.atoms is None else result.atoms
    keys, weights = np.array(list(result.weights)), np.array(list(result.weights.values()))
    assert (weights > 0).all()
    assert abs(weights.sum() - 1) <= 1e-12
    assert np.linalg.norm(weights @ atoms[keys] - result.point) <= 1e-13 * scale


def check_certificate(vertices: np.ndarray, target: np.ndarray, result: Projection) -> None:
    """The weights give the point, and `gap` is at least the gap over all vertices."""
    scale = max(np.abs(vertices).max(), np.abs(target).max(), spread(vertices), 1e-300)
    check_weights(vertices, result, 10 * scale)
    gain = float(((vertices - result.point) @ (target - result.point)).max())
    assert gain <= result.gap + 1e-13 * scale**2
    assert result.gap >= 0


@UNTIMED
@given(problems())
def test_variational_inequality_and_weights(problem) -> None:
    vertices, target = problem
    for body in (VPolytope(vertices), OracleOnly(VPolytope(vertices))):
        result = project(body, target, tol=TIGHT)
        check_certificate(vertices, target, result)
        assert result.converged


@UNTIMED
@given(problems(), st.sampled_from([1.0, 1e-1, 1e-3]))
def test_gap_bounds_the_true_error(problem, tol: float) -> None:
    vertices, target = problem
    body = VPolytope(vertices)
    rough, exact = project(body, target, tol=tol), project(body, target, tol=TIGHT)
    slack = 1e-6 * (1 + spread(vertices))  # at least sqrt(exact.gap)
    assert np.linalg.norm(rough.point - exact.point) <= np.sqrt(rough.gap) + slack


@UNTIMED
@given(problems(), st.integers(0, 2**32 - 1))
def test_a_target_in_the_hull_is_returned_itself(problem, seed: int) -> None:
    vertices, _ = problem
    weights = np.random.default_rng(seed).dirichlet(np.ones(len(vertices)))
    # Leave out sets that are almost flat. Rounding errors of the gap hide their thin directions.
    singular = np.linalg.svd(vertices - vertices.mean(axis=0), compute_uv=False)
    positive = singular[singular > 1e-13 * max(singular.max(), 1e-300)]
    assume(positive.size == 0 or positive.min() > 1e-4 * positive.max())
    target = weights @ vertices
    result = project(VPolytope(vertices), target)
    assert np.array_equal(result.point, target)
    assert result.gap == 0.0
    assert result.converged
    check_certificate(vertices, target, result)


@UNTIMED
@given(problems(), st.integers(0, 2**32 - 1))
def test_warm_start_changes_nothing_but_the_work(problem, seed: int) -> None:
    vertices, first = problem
    second = first + 0.3 * np.random.default_rng(seed).standard_normal(first.shape)
    for body in (VPolytope(vertices), OracleOnly(VPolytope(vertices))):
        start = project(body, first)
        warm = project(body, second, tol=TIGHT, warm_start=start)
        cold = project(body, second, tol=TIGHT)
        check_certificate(vertices, second, warm)
        assert np.linalg.norm(warm.point - cold.point) <= 1e-5 * (1 + spread(vertices))
        assert warm.converged


def test_a_single_point_is_its_own_neighbourhood_up_to_rounding() -> None:
    vertices = np.full((3, 1), 2.748043)
    target = np.nextafter(vertices[0], 0)
    assert np.array_equal(project(VPolytope(vertices), target).point, target)
    away = project(VPolytope(vertices), np.array([9.0]))
    assert away.point == vertices[0]
    assert away.converged


def test_a_vertex_that_the_first_probe_cannot_see_sets_the_scale() -> None:
    # Without listed vertices, extreme points in one fixed direction and its opposite give the first
    # scale. Here two vertices, a million times farther out, are orthogonal to this direction.
    rng = np.random.default_rng(6)
    probe = np.random.default_rng(0).standard_normal(5)
    spike = rng.standard_normal(5)
    spike -= probe * (probe @ spike) / (probe @ probe)
    vertices = np.vstack([rng.standard_normal((30, 5)), 1e6 * spike, -1e6 * spike])
    for target in (0.9e6 * spike + rng.standard_normal(5) * 10, 3e6 * rng.standard_normal(5)):
        listed = project(VPolytope(vertices), target, tol=1e-13)
        searched = project(OracleOnly(VPolytope(vertices)), target, tol=1e-13)
        assert searched.converged
        assert listed.converged
        assert np.linalg.norm(listed.point - searched.point) <= 1e-9 * 1e6


def test_warm_start_from_the_same_target_needs_one_look() -> None:
    rng = np.random.default_rng(0)
    body, target = VPolytope(rng.standard_normal((300, 20))), 2 * rng.standard_normal(20)
    cold = project(body, target)
    assert cold.iterations > 2
    assert project(body, target, warm_start=cold).iterations == 1


def test_image_projection_is_the_projection_of_the_image() -> None:
    rng = np.random.default_rng(3)
    vertices, matrix = rng.standard_normal((80, 12)), rng.standard_normal((5, 12))
    for size in (0.2, 1.0, 20.0):
        target = size * rng.standard_normal(5)
        direct = project(VPolytope(vertices @ matrix.T), target, tol=TIGHT)
        for body in (VPolytope(vertices), OracleOnly(VPolytope(vertices))):
            result = Projector(body, matrix).nearest(target, tol=TIGHT)
            assert result.converged
            check_weights(vertices, result, 1.0)
            assert np.linalg.norm(matrix @ result.point - direct.point) <= 1e-10


@UNTIMED
@given(st.integers(0, 2**32 - 1), st.sampled_from([1, 3, 8]), st.floats(1e-3, 1e2))
def test_error_of_the_jl_mechanism_is_bounded_by_its_noise(seed: int, d: int, size: float) -> None:
    # Let q be in K, and let y in K be the result for the target A q + Z. If the gap is 0, then
    # ||A y - A q|| <= ||Z|| and ||A y - A q||^2 <= h_AK(Z) - <Z, A q>, where h_AK is the support
    # function of A K (JL-L13, JL-L13b). A gap above 0 is added below.
    rng = np.random.default_rng(seed)
    vertices = rng.choice([-1.0, 1.0], (40, 8))
    matrix = rng.standard_normal((d, 8)) / np.sqrt(d)
    q = rng.dirichlet(np.full(40, 0.2)) @ vertices
    noise = size * rng.standard_normal(d)
    result = Projector(VPolytope(vertices), matrix).nearest(matrix @ q + noise, tol=TIGHT)
    error = np.linalg.norm(matrix @ (result.point - q))
    rounding = 1e-12 * (1 + size)
    assert error <= np.linalg.norm(noise) + np.sqrt(result.gap) + rounding
    dual = (vertices @ matrix.T @ noise).max() - noise @ matrix @ q
    assert error**2 <= dual + result.gap + rounding


@pytest.mark.parametrize("matrix", [None, np.random.default_rng(41).standard_normal((4, 6))])
def test_many_targets_together_are_the_same_as_one_by_one(matrix) -> None:
    rng = np.random.default_rng(42)
    vertices = np.repeat(rng.standard_normal((60, 6)), 2, axis=0)
    image = np.eye(6) if matrix is None else matrix
    targets = rng.standard_normal((15, len(image))) * np.repeat([2, 0.01], [12, 3])[:, None]
    for body in (VPolytope(vertices), OracleOnly(VPolytope(vertices)), Ball(6)):
        projector = Projector(body, matrix)
        assert projector.nearest_many(np.zeros((0, len(image)))) == []
        for target, found in zip(targets, projector.nearest_many(targets, tol=1e-12), strict=True):
            alone = projector.nearest(target, tol=1e-12)
            assert found.converged
            # Both lie within the roots of their gaps of the nearest point.
            slack = np.sqrt(found.gap) + np.sqrt(alone.gap) + 1e-12
            assert np.linalg.norm(image @ (found.point - alone.point)) <= slack


TRIANGLE = VPolytope(np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]))


def start(weights: dict[int, float] | None, atoms: np.ndarray | None = None) -> Projection:
    return Projection(np.zeros(2), 0.0, 0, True, weights, atoms)


#: Messages, and calls that raise them: the body, and arguments of `project`.
REFUSED = [
    *[("target must", TRIANGLE, {"target": target}) for target in ([1.0], [[1.0, 2.0]], ["a", 1])],
    *[("tol must", TRIANGLE, {"tol": tol}) for tol in (0.0, -1e-8, np.nan, np.inf)],
    (r"vertex indices in 0\.\.2", TRIANGLE, {"warm_start": start({8: 1.0})}),
    *[
        ("non-negative weights", TRIANGLE, {"warm_start": start(weights)})
        for weights in ({0: -1.0, 1: 2.0}, {0: 0.0}, {0: np.nan})
    ],
    ("must have weights", TRIANGLE, {"warm_start": start(None)}),
    ("atoms", OracleOnly(TRIANGLE), {"warm_start": start({0: 1.0}, np.zeros((1, 3)))}),
]


@pytest.mark.parametrize(("message", "body", "arguments"), REFUSED)
def test_bad_arguments_are_refused(message: str, body: Body, arguments) -> None:
    with pytest.raises(ValueError, match=message):
        project(body, **({"target": [1.0, 2.0]} | arguments))


def test_what_no_projector_can_use_is_refused() -> None:
    for matrix in (np.eye(3), np.ones(2), np.full((1, 2), np.nan)):
        with pytest.raises(ValueError, match="matrix must"):
            Projector(TRIANGLE, matrix)
    with pytest.raises(MissingOracle, match="project or extreme_point"):
        project(SamplerOnly(TRIANGLE), [1.0, 2.0])
    with pytest.raises(ValueError, match="targets must have shape"):
        Projector(Ball(3)).nearest_many(np.zeros((2, 4)))


def test_projections_say_how_good_they_are() -> None:
    corner = project(VPolytope(np.eye(3)), np.array([2.0, 0.0, 0.0]))
    assert repr(corner).startswith("Projection(dimension: 3, extreme points: 1, gap: ")
    assert repr(project(Ball(3), np.ones(3))).startswith("Projection(dimension: 3, gap")
    stopped = Projection(np.ones(2), 0.5, 7, converged=False)
    assert repr(stopped) == "Projection(dimension: 2, gap: 0.5, iterations: 7, not converged)"


CUBE = ((np.arange(64)[:, None] >> np.arange(6)) & 1).astype(float)
PAIRS = np.array(list(combinations(range(6), 2)))


def families() -> dict[str, np.ndarray]:
    """Vertices (N, m) by name of the family. Many have ties or duplicates, or are (nearly) flat."""
    rng = np.random.default_rng(30)
    base = rng.standard_normal((30, 8))
    return {
        "gaussian": rng.standard_normal((100, 10)),
        "few points": rng.standard_normal((4, 10)),
        "same point": np.repeat(rng.standard_normal((1, 3)), 5, axis=0),
        "duplicates": np.repeat(base, 3, axis=0),
        "collinear": np.linspace(-1, 1, 30)[:, None] * rng.standard_normal(5),
        "plane": rng.standard_normal((40, 2)) @ rng.standard_normal((2, 7)),
        "2-way marginals": CUBE[:, PAIRS[:, 0]] * CUBE[:, PAIRS[:, 1]],
        "prefixes": np.tril(np.ones((20, 20))),
        "cross-polytope": np.vstack([np.eye(9), -np.eye(9)]),
        "signs": rng.choice([-1.0, 1.0], (80, 12)),
        "lattice": rng.integers(0, 3, (100, 6)).astype(float),
        "clusters": np.vstack([base + 1e-6 * rng.standard_normal(base.shape) for _ in "abc"]),
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
@pytest.mark.parametrize(("scale", "shift"), [(1e3, 0), (1e-3, 1), (1, 1e4)])
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
            check_weights(vertices, result, distance + np.abs(vertices).max())
            gain = ((vertices - result.point) @ (target - result.point)).max()
            assert gain <= 1e-12 * reach**2 + floor
            assert result.gap <= 1e-12 * reach**2 + floor
            assert result.iterations <= 40 * (vertices.shape[1] + 1)


@pytest.mark.parametrize("factor", [10, 1.1, 1, 0.99, 0.3])
def test_smooth_bodies_by_oracle(factor: float) -> None:
    rng = np.random.default_rng(34)
    body = Ellipsoid(np.diag(np.logspace(0, -2, 12)))
    edge = body.extreme_point(rng.standard_normal((1, 12)))[0]
    result = project(body, factor * edge, tol=1e-10)
    assert result.converged
    assert body.contains(result.point[None])[0]
    if factor == 0.3:
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
    exact = np.vectorize(Fraction, otypes=[object])
    points, goal, shares = exact(vertices), exact(target), exact(list(weights.values()))
    mean = shares @ points[list(weights)] / shares.sum()
    return float(((points - mean) @ (goal - mean)).max())
