"""Uniform points in ball arithmetic have the law of the float64 sampler, where both exist."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import geomdp.bodies
from geomdp.bodies import (
    Body,
    Ellipsoid,
    LpBall,
    NuclearBall,
    Product,
    Scaled,
    TableMoments,
    TriangulatedPolytope,
)
from geomdp.bodies.symmetrised import Shifted
from geomdp.noise.points import LARGEST_EXPONENT, NO_EXACT_POINTS, uniform_point
from geomdp.noise.rounding import NoExactPath
from tests.catalogue import cases_with
from tests.noise.exact.reference import floats
from tests.stats import LEVEL, ks_same, mean_agrees

DRAWS = 1500


def has_path(body):
    try:
        uniform_point(body)
    except NoExactPath:
        return False
    return True


CASES = [case for case in cases_with("sample_uniform") if has_path(case.build(1.0))]


def sampled_bodies():
    """Exported classes of bodies with a float64 sampler."""
    exported = [getattr(geomdp.bodies, name) for name in geomdp.bodies.__all__]
    return {
        item
        for item in exported
        if inspect.isclass(item)
        and issubclass(item, Body)
        and item.sample_uniform is not Body.sample_uniform
    }


def test_every_sampled_body_has_an_exact_path_or_a_reason_why_not():
    registered = {kind for kind in uniform_point.registry if kind is not object}
    registered -= {Body}
    reasons = set(NO_EXACT_POINTS)
    assert not registered & reasons
    assert registered | reasons == sampled_bodies() | {Shifted}


def test_every_registered_body_is_tested():
    def kinds(body):
        parts = [body] if not isinstance(body, Product) else [body, *body.bodies]
        inner = [part.body for part in parts if hasattr(part, "body")]
        return {type(part) for part in parts}.union(*map(kinds, inner))

    tested = set().union(*(kinds(case.build(2.0)) | kinds(case.build(1.0)) for case in CASES))
    assert tested >= set(uniform_point.registry) - {object, Body}


@pytest.mark.statistical
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_points_have_the_law_of_the_float64_sampler(case):
    body = case.build(1.0)
    points = floats(uniform_point(body), DRAWS, seed=7)
    assert points.shape == (DRAWS, body.dimension)
    others = body.sample_uniform(40_000, np.random.default_rng(8))
    # Compare each coordinate, and one linear combination, whose law depends on their joint law.
    mixed = np.random.default_rng(9).standard_normal(body.dimension)
    for direction in (*np.eye(body.dimension), mixed):
        # Coordinates that are constant may differ by rounding errors, which `np.round` removes.
        first, second = np.round(points @ direction, 9), np.round(others @ direction, 9)
        ks_same(first, second, level=LEVEL / (body.dimension + 1))


@pytest.mark.statistical
@pytest.mark.parametrize(
    "case",
    [case for case in CASES if case.has("second_moment")],
    ids=lambda case: case.name,
)
def test_points_have_the_second_moment_of_the_body(case):
    body = case.build(2.0)
    points = floats(uniform_point(body), DRAWS, seed=10)
    mean_agrees(points[:, :, None] * points[:, None, :], body.second_moment())
    mean_agrees(points, body.centroid())


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.membership], ids=lambda case: case.name
)
def test_points_lie_in_the_body(case):
    body = case.build(1.0)
    assert body.contains(floats(uniform_point(body), 50, seed=11)).all()


@pytest.mark.statistical
def test_simplices_of_different_volumes():
    """Four simplices with vertex 0 and volumes 1/6, 1/6, 2/6 and 3/6 get their shares of points."""
    body = TriangulatedPolytope(np.vstack([np.eye(3), [[-1.0, -2, -3]]]))
    assert sorted(body.whole_cones.volumes) == [1, 1, 2, 3]
    points = floats(uniform_point(body), 6000, seed=13)
    mean_agrees(points[:, :, None] * points[:, None, :], body.second_moment())
    mean_agrees(points, body.centroid())


def test_cut_tables_violate_no_more_than_allowed():
    """The limits are 0 and 0.05; at 0, a point must provably satisfy every inequality."""
    for levels, limit in (([2, 2, 2], 0.0), ([3, 2, 2], 0.05)):
        body = TableMoments(levels, limit)
        points = floats(uniform_point(body), 30, seed=12)
        assert (body.violations(points) <= limit + 1e-12).all()


def test_bodies_without_a_path_say_why():
    with pytest.raises(NoExactPath, match="coupling from the past"):
        uniform_point(Scaled(NuclearBall(2), 3.0))
    with pytest.raises(NoExactPath, match="has 2 columns but rank 1"):
        uniform_point(Ellipsoid(np.ones((3, 2))))
    with pytest.raises(NoExactPath, match="above 2"):
        uniform_point(LpBall(2 * LARGEST_EXPONENT, 3))
