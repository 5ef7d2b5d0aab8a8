"""Random variables and uniform points of bodies in ball arithmetic have their known laws."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
import scipy.stats
from flint import arb, ctx

import geomdp.bodies
import geomdp.noise.tables  # registers points of tables
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
from geomdp.noise.points import (
    LARGEST_EXPONENT,
    NO_EXACT_POINTS,
    direction,
    dirichlet,
    gamma,
    half_gamma,
    power_exponentials,
    uniform_point,
    whole_number,
)
from geomdp.noise.rounding import (
    Draw,
    NoExactPath,
    Undecided,
    UniformBits,
    decided_below,
    exponentials,
    gaussians,
    laplaces,
)
from tests.catalogue import cases_with
from tests.noise.exact.reference import floats, seeded
from tests.stats import LEVEL, ks_same, ks_uniform, mean_agrees

# Random variables


LAW_DRAWS = 4000


def generalised(p):
    """Distribution on x > 0 with density proportional to exp(-x^p)."""
    return scipy.stats.gengamma(a=1 / p, c=p)


#: For each name, a function that draws independent variables, and the distribution of each.
LAWS = {
    "exponential": (lambda draw: exponentials(2, draw), scipy.stats.expon),
    "laplace": (lambda draw: laplaces(3, draw), scipy.stats.laplace),
    "gaussian": (lambda draw: gaussians(3, draw), scipy.stats.norm),
    "gamma 5": (lambda draw: [gamma(5, draw)], scipy.stats.gamma(5)),
    "gamma 1/2": (lambda draw: [half_gamma(1, draw)], scipy.stats.gamma(0.5)),
    "gamma 7/2": (lambda draw: [half_gamma(7, draw)], scipy.stats.gamma(3.5)),
    "share 1": (lambda draw: dirichlet(3, 2, draw)[:1], scipy.stats.beta(1, 2)),
    "share 5/2": (lambda draw: dirichlet(3, 5, draw)[1:2], scipy.stats.beta(2.5, 5)),
    # If x is a coordinate of a uniform unit vector in R^m, then (1 + x) / 2 has the distribution
    # Beta((m - 1) / 2, (m - 1) / 2). Here m = 5.
    "direction": (lambda draw: direction(5, draw)[4:], scipy.stats.beta(2, 2, loc=-1, scale=2)),
    "power 1.25": (lambda draw: power_exponentials(2, arb(1.25), draw), generalised(1.25)),
    "power 3": (lambda draw: power_exponentials(2, arb(3), draw), generalised(3)),
}


@pytest.mark.statistical
@pytest.mark.parametrize("name", sorted(LAWS))
def test_law(name):
    vector, law = LAWS[name]
    draws = floats(vector, LAW_DRAWS, seed=1)
    for j in range(draws.shape[1]):
        ks_uniform(law.cdf(draws[:, j]), level=LEVEL / draws.shape[1])
    if draws.shape[1] > 1:
        ranks = law.cdf(draws) - 0.5
        mean_agrees(ranks[:, 0] * ranks[:, 1], 0.0)


@pytest.mark.statistical
def test_whole_numbers_are_uniform():
    draw = Draw(UniformBits(seeded(2)), 2)
    counts = np.bincount([whole_number(7, draw) for _ in range(LAW_DRAWS)], minlength=7)
    assert len(counts) == 7
    assert scipy.stats.chisquare(counts).pvalue > LEVEL


def test_comparisons_are_decided_only_on_disjoint_balls():
    with ctx.workprec(124):
        assert decided_below(arb(1, 0.25), arb(2, 0.25))
        assert not decided_below(arb(2, 0.25), arb(1, 0.25))
        assert not decided_below(arb(1), arb(1))
        for first, second in ((arb(1, 0.75), arb(2, 0.75)), (arb("nan"), arb(1))):
            with pytest.raises(Undecided):
                decided_below(first, second)


# Uniform points


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
    assert registered | reasons == sampled_bodies()


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
    for axis in (*np.eye(body.dimension), mixed):
        # Coordinates that are constant may differ by rounding errors, which `np.round` removes.
        first, second = np.round(points @ axis, 9), np.round(others @ axis, 9)
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
