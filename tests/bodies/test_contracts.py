"""Theorems that hold for every body, tested on all bodies of the catalogue.

Most deterministic comparisons allow a small multiple of the relative accuracy that the catalogue
states for the body (`tolerance`), times the size of the numbers compared.
"""

import inspect
import pickle

import cvxpy as cp
import numpy as np
import pytest

import geomdp.bodies as gb
from tests.catalogue import BODIES, CONIC_PROGRAM, VERBS, BodyCase, cases_with, gaussian
from tests.stats import LEVEL, binomial_agrees, ks_same, ks_uniform, mean_agrees

DRAWS = 4000


def over(*verbs: str, scales: tuple[float, ...] = (1e-3, 1e3)):
    """Run a test at each scale, for all rows of the catalogue that have the given verbs (methods).

    Solvers of conic programs stop at absolute residuals, so rows that state the accuracy
    `CONIC_PROGRAM` are tested at scale 1 only.
    """
    rows = [
        pytest.param(case, scale, id=f"{case.name} x {scale:g}")
        for case in cases_with(*verbs)
        for scale in (scales if case.tolerance < CONIC_PROGRAM else (1.0,))
    ]
    return pytest.mark.parametrize(("case", "scale"), rows)


def directions(case: BodyCase, count: int = 8) -> np.ndarray:
    dimension = case.build(1.0).dimension
    return np.random.default_rng(1).standard_normal((count, dimension))


def inner_points(body: gb.Body, count: int = 6) -> np.ndarray:
    """Random points of the relative interior, the same in every call."""
    rng = np.random.default_rng(2)
    if body.implements(gb.Body.sample_uniform) and not body.implements(gb.Body.support):
        return (body.sample_uniform(count, rng) + body.centroid()) / 2
    if not body.implements(gb.Body.support):
        ways = rng.standard_normal((count, body.dimension))
        _, ends = body.chord(np.zeros(ways.shape), ways)
        return rng.random((count, 1)) * ends[:, None] * ways
    corners = body.extreme_point(rng.standard_normal((4 * body.dimension + 8, body.dimension)))
    return rng.dirichlet(np.ones(len(corners)), count) @ corners


def span_directions(body: gb.Body, count: int = 6) -> np.ndarray:
    """Random directions parallel to the affine hull, the same in every call; none for a point."""
    basis = body.affine_hull().basis
    count = count if basis.shape[1] else 0
    return np.random.default_rng(3).standard_normal((count, basis.shape[1])) @ basis.T


def test_every_exported_body_is_in_the_catalogue():
    exported = {
        value
        for value in (getattr(gb, name) for name in gb.__all__)
        if inspect.isclass(value) and issubclass(value, gb.Body) and value is not gb.Body
    }
    assert exported <= {type(case.build(1.0)) for case in BODIES} | {gb.Scaled}


@over(scales=(1.0,))
def test_rows_list_the_verbs(case, scale):
    body = case.build(scale)
    assert [verb for verb in VERBS if body.implements(getattr(gb.Body, verb))] == [
        v for v in VERBS if case.has(v)
    ]
    for verb in ("sample_uniform", "second_moment", "volume", "vertex_list"):
        call = getattr(body, verb)
        arguments = (3, np.random.default_rng(0)) if verb == "sample_uniform" else ()
        if case.has(verb):
            call(*arguments)
        else:
            with pytest.raises(gb.MissingOracle):
                call(*arguments)
    if not case.membership:
        with pytest.raises(gb.MissingOracle):
            body.contains(np.zeros((1, body.dimension)))


@over("support")
def test_extreme_points_attain_a_sublinear_support_function(case, scale):
    body, u = case.build(scale), directions(case)
    slack = case.tolerance * body.radius() * np.linalg.norm(u, axis=1).max()
    heights, corners = body.support(u), body.extreme_point(u)
    assert corners.shape == u.shape
    np.testing.assert_allclose(np.einsum("bm,bm->b", u, corners), heights, rtol=0, atol=slack)
    # In each direction, no extreme point of another direction is higher.
    assert (u @ corners.T <= heights[:, None] + slack).all()
    np.testing.assert_allclose(body.support(3.5 * u), 3.5 * heights, rtol=0, atol=10 * slack)
    sums = body.support(u[:-1] + u[1:])
    assert (sums <= heights[:-1] + heights[1:] + 3 * slack).all()
    zero = np.zeros((1, body.dimension))
    assert abs(body.support(zero)[0]) <= slack
    opposite = body.support(-u)
    np.testing.assert_allclose(body.breadth(u), heights + opposite, rtol=0, atol=10 * slack)
    if body.symmetric:
        np.testing.assert_allclose(opposite, heights, rtol=0, atol=slack)


@over("support", "membership")
def test_extreme_points_and_their_mixtures_are_inside(case, scale):
    body = case.build(scale)
    corners = body.extreme_point(np.vstack([directions(case), np.zeros((1, body.dimension))]))
    assert body.contains(corners, 2 * case.tolerance).all()
    assert body.contains(inner_points(body), 2 * case.tolerance).all()


@over("membership")
def test_points_beyond_the_body_are_outside(case, scale):
    body, points = case.build(scale), inner_points(case.build(scale))
    ways = span_directions(body)[:1] if case.rank else np.zeros((0, body.dimension))
    far = points[:1] + 3 * body.radius() * ways / np.linalg.norm(ways)
    assert not body.contains(far).any()
    normal = np.random.default_rng(4).standard_normal(body.dimension)
    basis = body.affine_hull().basis
    normal -= basis @ (basis.T @ normal)
    if case.rank < body.dimension:
        off = points + 1e-3 * scale * normal / np.linalg.norm(normal)
        assert not body.contains(off).any()


@over()
def test_hull_and_radius_hold_the_body(case, scale):
    body = case.build(scale)
    hull, points = body.affine_hull(), inner_points(body, 4 * case.rank + 8)
    assert (hull.ambient, hull.dimension) == (body.dimension, case.rank)
    np.testing.assert_allclose(hull.basis.T @ hull.basis, np.eye(case.rank), rtol=0, atol=1e-12)
    size = body.radius()
    assert hull.residual(points).max() <= max(case.tolerance, 1e-12) * size
    assert np.linalg.norm(points, axis=1).max() <= size * (1 + case.tolerance)
    spread = np.linalg.svd(points - points.mean(axis=0), compute_uv=False)
    assert (spread > 1e-3 * spread[:1].max(initial=0)).sum() >= min(case.rank, len(spread))


@over("gauge")
def test_gauge_is_a_norm_that_is_one_on_the_boundary(case, scale):
    body, points = case.build(scale), inner_points(case.build(scale))
    tolerance = case.tolerance
    gauges = body.gauge(points)
    assert (gauges <= 1 + tolerance).all()
    np.testing.assert_allclose(body.gauge(7 * points), 7 * gauges, rtol=0, atol=7 * tolerance)
    sums = body.gauge(points[:-1] + points[1:])
    assert (sums <= gauges[:-1] + gauges[1:] + 2 * tolerance).all()
    assert body.gauge(np.zeros((1, body.dimension)))[0] == 0
    if body.symmetric:
        np.testing.assert_allclose(body.gauge(-points), gauges, rtol=0, atol=tolerance)


@over("support", "gauge")
def test_gauge_and_support_function_are_polar(case, scale):
    body, u = case.build(scale), directions(case)
    heights, corners = body.support(u), body.extreme_point(u)
    high = heights > 1e-6 * body.radius()  # at height 0, the extreme point may be 0
    np.testing.assert_allclose(body.gauge(corners[high]), 1, rtol=0, atol=2 * case.tolerance)
    points = span_directions(body)
    gauges = body.gauge(points)
    finite = np.isfinite(gauges)
    # If 0 is on the boundary of a `CvxBody`, some gauges are infinite.
    assert finite.all() or issubclass(type(body), gb.CvxBody)
    products = heights[:, None] * gauges[finite]
    slack = case.tolerance * (np.abs(products).max(initial=0) + body.radius())
    assert (u @ points[finite].T <= products + 5 * slack).all()


@over("gauge")
def test_gauge_is_infinite_off_the_span(case, scale):
    body = case.build(scale)
    basis = body.affine_hull().basis
    normal = np.random.default_rng(5).standard_normal((3, body.dimension))
    normal -= normal @ basis @ basis.T
    if case.rank == body.dimension:
        assert np.abs(normal).max() <= 1e-12
    else:
        assert np.isinf(body.gauge(normal)).all()
        if case.rank == 0:
            return  # the body is {0} and has radius 0
        assert np.isinf(body.gauge(body.radius() * normal + inner_points(body, 3))).all()


@over("facets")
def test_facets_support_the_body(case, scale):
    body = case.build(scale)
    points = np.vstack([inner_points(body), span_directions(body)])
    found = body.facets(points)
    np.testing.assert_allclose(found.gauges, body.gauge(points), rtol=case.tolerance)
    heights = np.einsum("bm,bm->b", found.normals, points)
    np.testing.assert_allclose(heights, found.gauges, rtol=2 * case.tolerance)
    if body.implements(gb.Body.support):
        assert (body.support(found.normals) <= 1 + case.tolerance).all()
    else:
        drawn = body.sample_uniform(2000, np.random.default_rng(6))
        assert (drawn @ found.normals.T <= 1 + case.tolerance).all()


@over("membership")
def test_separators_hold_the_body_and_not_the_point(case, scale):
    body = case.build(scale)
    inside = inner_points(body, 3)
    shrunk = inside.mean(axis=0) + 0.9 * (inside - inside.mean(axis=0))
    if not any(
        body.implements(verb) for verb in (gb.Body.separate, gb.Body.facets, gb.Body.project)
    ):
        with pytest.raises(gb.MissingOracle):
            body.separate(shrunk[0])
        return
    assert all(body.separate(point) is None for point in shrunk)
    away = np.random.default_rng(7).standard_normal((3, body.dimension))
    for point in inside + 3 * body.radius() * away / np.linalg.norm(away, axis=1, keepdims=True):
        found = body.separate(point)
        size = np.linalg.norm(found.normal) * body.radius()
        assert found.normal @ point > found.offset
        assert (inside @ found.normal <= found.offset + case.tolerance * size).all()
        if body.implements(gb.Body.support):
            assert body.support(found.normal[None])[0] <= found.offset + 10 * case.tolerance * size


@over("membership")
def test_chords_end_on_the_boundary(case, scale):
    body = case.build(scale)
    points, ways = inner_points(body), span_directions(body)
    low, high = body.chord(points[: len(ways)], ways)
    assert (low <= 0).all()
    assert (high >= 0).all()
    unit = body.radius() / np.linalg.norm(ways, axis=1) if case.rank else np.zeros(0)
    step = 100 * max(case.tolerance, 1e-9) * unit
    for end, outward in ((low, -step), (high, step)):
        at = points[: len(ways)]
        assert body.contains(at + end[:, None] * ways, 4 * case.tolerance).all()
        assert not body.contains(at + (end + 100 * outward)[:, None] * ways).any()
    if case.rank < body.dimension:
        basis = body.affine_hull().basis
        off = np.random.default_rng(8).standard_normal(points.shape)
        off -= off @ basis @ basis.T
        for end in body.chord(points, off):
            assert (np.abs(end) * np.linalg.norm(off, axis=1) <= 1e-5 * body.radius()).all()


@over("project")
def test_projection_satisfies_the_variational_inequality(case, scale):
    body = case.build(scale)
    targets = scale * np.vstack([3 * directions(case), 0.3 * directions(case)])
    nearest = body.project(targets)
    assert body.contains(nearest, 2 * case.tolerance).all()
    residuals = targets - nearest
    # Let p be the projection of the target y. Then <y - p, x - p> <= 0 for all x in the body.
    gaps = body.support(residuals) - np.einsum("bm,bm->b", residuals, nearest)
    size = np.abs(targets).max() * (body.radius() + np.abs(targets).max())
    assert (gaps <= 10 * case.tolerance * size).all()
    np.testing.assert_allclose(
        body.project(nearest), nearest, rtol=0, atol=10 * case.tolerance * body.radius()
    )


@over("cvxpy_constraints", scales=(1.0,))
def test_cvxpy_constraints_describe_the_body(case, scale):
    body = case.build(scale)
    variable = cp.Variable(body.dimension)
    constraints = body.cvxpy_constraints(2 * variable)  # the argument may be any affine expression
    if body.implements(gb.Body.support):
        goals = directions(case, 2)
        heights = body.support(goals)
    elif body.implements(gb.Body.facets):
        goals = body.facets(span_directions(body, 2)).normals
        heights = np.ones(2)
    else:
        # Without a support function or facets, only points can be compared: the optimum must be in
        # the body, and at least as high as every inner point.
        goals, drawn = directions(case, 2), inner_points(body, 2000)
        for goal in goals:
            problem = cp.Problem(cp.Maximize(goal @ variable), constraints)
            problem.solve(solver=cp.CLARABEL)
            assert body.contains(2 * np.array([variable.value]), CONIC_PROGRAM).all()
            assert (drawn @ goal).max() / 2 <= problem.value * (1 + CONIC_PROGRAM)
        return
    for goal, height in zip(goals, heights, strict=True):
        problem = cp.Problem(cp.Maximize(goal @ variable), constraints)
        problem.solve(solver=cp.CLARABEL)
        size = np.linalg.norm(goal) * body.radius() + 1
        assert problem.value == pytest.approx(height / 2, abs=CONIC_PROGRAM * size)


@pytest.mark.statistical
@over("sample_uniform")
def test_exact_samples_are_inside_with_the_stated_moments(case, scale):
    body = case.build(scale)
    points = body.sample_uniform(DRAWS, np.random.default_rng(9))
    assert points.shape == (DRAWS, body.dimension)
    assert body.contains(points, 1e-9).all()
    squares = points[:, :, None] * points[:, None, :]
    if case.has("second_moment"):
        mean_agrees(squares, body.second_moment(), level=LEVEL / 2)
    mean_agrees(points, body.centroid(), level=LEVEL / 2)
    assert body.sample_uniform(0, np.random.default_rng(0)).shape == (0, body.dimension)


CORNERS = gaussian(9, 3, seed=5)
#: The svec coordinates of a symmetric 2 x 2 matrix with entries of modulus at most 1.
UNIT = np.array([1, np.sqrt(2), 1])
#: For each name, a body, and the lower and upper corner of a box that contains the body.
BOXED = {
    "elliptope": (gb.Elliptope(3), -np.ones(3), np.ones(3)),
    "simplex difference": (
        gb.SimplexDifference(np.vstack([np.zeros(3), np.eye(3)])),
        -np.ones(3),
        np.ones(3),
    ),
    "spectraplex": (gb.Spectraplex(2), UNIT * [0, -0.5, 0], UNIT * [1, 0.5, 1]),
    "spectraplex difference": (gb.SpectraplexDifference(2), -UNIT, UNIT),
    "nuclear ball": (gb.NuclearBall(2), -UNIT, UNIT),
    "psd box": (gb.PsdBox(2), UNIT * [0, -1, 0], UNIT),
    "triangulated": (gb.TriangulatedPolytope(CORNERS), CORNERS.min(axis=0), CORNERS.max(axis=0)),
    # By the docstring of `TableMoments.radius`, |H_i^T m_i| <= (1 - 1/l_i)^(1/2), and the entries
    # of H_i^T M_ij H_j are at most products of these bounds.
    "tables of 3 and 2 levels": (
        gb.TableMoments([3, 2]),
        *np.outer([-1, 1], np.sqrt(np.full(5, 2 / 3))),
    ),
    "tables of 2 levels": (
        gb.TableMoments([2, 2, 2]),
        *np.outer([-1, 1], np.sqrt(np.full(6, 1 / 2))),
    ),
    "one table": (gb.TableMoments([4]), *np.outer([-1, 1], np.sqrt(np.full(3, 3 / 4)))),
}


@pytest.mark.statistical
@pytest.mark.parametrize(("body", "low", "high"), BOXED.values(), ids=BOXED)
def test_exact_samples_agree_with_rejection_from_a_box(body, low, high):
    rng = np.random.default_rng(3)
    box = rng.uniform(low, high, (100_000, body.dimension))
    accepted, drawn = box[body.contains(box, 0.0)], body.sample_uniform(6000, rng)
    assert len(accepted) > 1500
    statistics = (
        lambda x: x[:, 0],
        lambda x: x[:, -1],
        lambda x: x[:, 0] * x[:, 2] - x[:, 1],
        lambda x: x.sum(axis=1),
        lambda x: x.prod(axis=1),
        lambda x: (x**2).sum(axis=1),
    )
    for statistic in statistics:
        ks_same(statistic(drawn), statistic(accepted), level=LEVEL / 8)
    mean_agrees(accepted[:, :, None] * accepted[:, None, :], body.second_moment(), level=LEVEL / 8)
    share = body.volume() / np.prod(high - low)
    binomial_agrees(len(accepted), len(box), share, level=LEVEL / 8)


@pytest.mark.statistical
@over("sample_uniform", "membership", scales=(1.0,))
def test_uniform_points_have_the_right_gauges_and_cut_chords_uniformly(case, scale):
    """P(gauge <= t) is t^r in dimension r, and the chord through a point is cut uniformly."""
    body = case.build(scale)
    points = body.sample_uniform(DRAWS, np.random.default_rng(11))
    if case.rank == 0:
        assert np.ptp(points, axis=0).max() == 0
        return
    if case.has("gauge"):
        ks_uniform(np.minimum(body.gauge(points), 1) ** case.rank)
    way = np.broadcast_to(span_directions(body)[:1], points.shape)
    low, high = body.chord(points, way)
    ks_uniform(-low / (high - low))


@pytest.mark.statistical
@over("support", scales=(1.0,))
def test_widths_are_means_of_the_support_function(case, scale):
    """The width of the catalogue, and the closed form of the body."""
    body = case.build(scale)
    normals = np.random.default_rng(13).standard_normal((DRAWS, body.dimension))
    for width in (case.width, body.gaussian_width()):
        if width is not None:
            mean_agrees(body.support(normals), width)


@over("volume")
def test_volumes(case, scale):
    body = case.build(scale)
    at_one = case.volume if case.volume is not None else case.build(1.0).volume()
    assert body.volume() == pytest.approx(at_one * scale**case.rank, rel=1e-11)


@over("second_moment")
def test_second_moments(case, scale):
    body = case.build(scale)
    moment = body.second_moment()
    at_one = np.trace(case.build(1.0).second_moment()) if case.spread is None else case.spread
    assert np.trace(moment) == pytest.approx(at_one * scale**2, rel=1e-11)
    np.testing.assert_allclose(moment, moment.T, rtol=0, atol=1e-14 * scale**2 * max(at_one, 1))
    spread = np.linalg.eigvalsh(moment - np.outer(body.centroid(), body.centroid()))
    rounding = 1e-9 * max(np.trace(moment), 1e-300)
    assert (spread > rounding).sum() == case.rank
    assert spread.min() >= -rounding


@over(scales=(1.0,))
def test_bad_points_are_refused_by_place_and_by_name(case, scale):
    body = case.build(scale)
    good = np.ones((2, body.dimension))
    nan = np.where(np.arange(body.dimension) == 0, np.nan, good)
    infinite, letters = np.where(np.isnan(nan), np.inf, good), np.full(good.shape, "a")
    arguments = {
        "directions": ["support", "breadth", "extreme_point"] * case.has("support"),
        "points": [verb for verb in ("gauge", "facets", "project") if case.has(verb)]
        + ["contains"] * case.membership,
    }
    for name, verbs in arguments.items():
        for verb in verbs:
            for bad in (nan, infinite, letters, good[0], np.ones((2, body.dimension + 1))):
                with pytest.raises(ValueError, match="must"):
                    getattr(body, verb)(bad)
            with pytest.raises(ValueError, match=f"{name} must be finite"):
                getattr(body, verb)(**{name: nan})
    if not case.membership:
        return
    for points, ways, message in (
        (nan, good, "points must be finite"),
        (good, nan, "directions must be finite"),
        (good[0], good, "must"),
        (good, np.zeros_like(good), "must not be 0"),
        (good, good[:1], "same shape"),
    ):
        with pytest.raises(ValueError, match=message):
            body.chord(points, directions=ways)
    named = body.contains(points=good, tolerance=0.0)
    np.testing.assert_array_equal(named, body.contains(good, 0.0))
    for tolerance in (np.nan, np.inf, -1e-9, "0", None, True):
        with pytest.raises(ValueError, match="tolerance must be finite and at least 0"):
            body.contains(good, tolerance=tolerance)


@over(scales=(1.0,))
def test_empty_batches_give_empty_results(case, scale):
    body = case.build(scale)
    none = np.zeros((0, body.dimension))
    for verb in ("support", "gauge", "facets", "project"):
        if case.has(verb):
            found = getattr(body, verb)(none)
            found = found.normals if verb == "facets" else found
            assert found.shape == (none.shape if verb in ("facets", "project") else (0,))
    if case.has("support"):
        assert body.extreme_point(none).shape == none.shape
    if case.membership:
        assert body.contains(none).shape == (0,)
        assert [end.shape for end in body.chord(none, none)] == [(0,), (0,)]


@over(scales=(1.0,))
def test_bodies_are_frozen_and_survive_pickling(case, scale):
    body = case.build(scale)
    with pytest.raises(AttributeError):
        body.dimension = 3
    if issubclass(type(body), gb.CvxBody):
        return  # a user's function may be a lambda, which does not pickle
    copy = pickle.loads(pickle.dumps(body))
    assert type(copy) is type(body)
    points, ways = inner_points(body, 3), directions(case, 3)
    compared = [verb for verb in ("gauge", "support") if case.has(verb)]
    for verb in compared:
        np.testing.assert_allclose(
            getattr(copy, verb)(points), getattr(body, verb)(points), rtol=case.tolerance
        )
    if not compared:  # such bodies are known by their chords
        np.testing.assert_allclose(copy.chord(points, ways), body.chord(points, ways), rtol=1e-12)
