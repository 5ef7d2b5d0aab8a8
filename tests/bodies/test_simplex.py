"""Simplices and their difference bodies (X-SIM): moments, volumes, gauges, samples, projections."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import scipy.sparse as sp

from geomdp.bodies import (
    Body,
    MissingOracle,
    Product,
    Simplex,
    SimplexDifference,
    TriangulatedPolytope,
)
from geomdp.geometry.sampling.samplers import ExactSampler
from geomdp.noise import KNormNoise
from tests.stats import ks_uniform, mean_agrees


def pair_differences(vertices):
    return np.array([a - b for a, b in itertools.permutations(vertices, 2)])


@pytest.mark.parametrize(("rank", "dimension"), [(1, 1), (2, 2), (2, 4), (3, 3), (4, 5), (5, 5)])
def test_difference_agrees_with_a_triangulation_of_all_pairs(rank, dimension):
    """K - K has volume C(2r, r) vol(K) for an r-simplex K.

    Volume, second moment, gauge and support agree with a triangulation of the hull of all
    differences of two vertices.
    """
    vertices = np.random.default_rng(rank).standard_normal((rank + 1, dimension)) + 1
    body = SimplexDifference(vertices)
    cut = TriangulatedPolytope(pair_differences(vertices))
    assert body.volume() == pytest.approx(cut.volume(), rel=1e-10)
    assert body.volume() == pytest.approx(math.comb(2 * rank, rank) * Simplex(vertices).volume())
    np.testing.assert_allclose(body.second_moment(), cut.second_moment(), rtol=0, atol=1e-11)
    points = np.random.default_rng(1).standard_normal((5, rank)) @ (vertices[1:] - vertices[0])
    np.testing.assert_allclose(body.gauge(points), cut.gauge(points), rtol=1e-10)
    directions = np.random.default_rng(2).standard_normal((5, dimension))
    np.testing.assert_allclose(body.support(directions), cut.support(directions), rtol=1e-12)


@pytest.mark.statistical
def test_cells_have_the_stated_probabilities():
    """Exactly k entries are positive with probability C(m+1,k) C(m-1,k-1) / C(2m,m) (X-SIM)."""
    m, n = 5, 20_000
    body = SimplexDifference(np.eye(m + 1))
    counts = (body.sample_uniform(n, np.random.default_rng(0)) > 0).sum(axis=1)
    k = np.arange(1, m + 1)
    shares = [math.comb(m + 1, i) * math.comb(m - 1, i - 1) / math.comb(2 * m, m) for i in k]
    assert sum(shares) == pytest.approx(1, rel=1e-15)
    mean_agrees((counts[:, None] == k).astype(float), shares)


@pytest.mark.statistical
@pytest.mark.parametrize("m", [60, 400])
def test_high_dimensions(m):
    body = SimplexDifference(np.tri(m))  # prefix sums
    points = body.sample_uniform(2000, np.random.default_rng(m))
    ks_uniform(np.minimum(body.gauge(points), 1) ** (m - 1))
    squares = (points**2).sum(axis=1)
    mean_agrees(squares, np.trace(body.second_moment()))
    assert math.isfinite(body.volume())


def test_second_moment_of_a_standard_simplex():
    """For x uniform, E x_i^2 = 2 / (N (N + 1)), and E x_i x_j = 1 / (N (N + 1)) (JL-L14)."""
    N = 6
    moment = Simplex(np.eye(N)).second_moment()
    np.testing.assert_allclose(moment, (np.eye(N) + 1) / (N * (N + 1)), rtol=1e-14)


def test_barycentric_accuracy_far_from_the_origin():
    vertices = 1e6 + np.random.default_rng(0).standard_normal((4, 3))
    body = Simplex(vertices)
    inside = vertices.mean(axis=0)[None]
    assert body.contains(inside)[0]
    np.testing.assert_allclose(body.chord(inside, vertices[:1] - inside)[1], 1, rtol=1e-8)


@pytest.mark.parametrize("kind", [Simplex, SimplexDifference])
def test_bad_vertices_are_refused(kind):
    line = np.array([[0.0, 0, 0], [1, 1, 1], [2, 2, 2]])
    with pytest.raises(ValueError, match="affinely independent"):
        kind(line).affine_hull()
    with pytest.raises(ValueError, match="affinely independent"):
        kind(np.ones((2, 2))).gauge(np.ones((1, 2)))
    for vertices in (np.zeros((4, 2)), np.zeros((0, 2)), np.zeros((1, 0))):
        with pytest.raises(ValueError, match="shape"):
            kind(vertices)
    with pytest.raises(ValueError, match="finite"):
        kind([[np.nan, 1.0]])


def test_a_simplex_off_the_origin_has_no_gauge():
    body = Simplex(np.eye(3))
    assert not body.implements(Body.gauge)
    for verb in (body.gauge, body.facets):
        with pytest.raises(ValueError, match="relative interior"):
            verb(np.ones((1, 3)))
    on_the_edge = Simplex(np.array([[0.0, 0], [1, 0], [0, 1]]))
    assert not on_the_edge.implements(Body.gauge)


@pytest.mark.parametrize("at_units", [True, False])
def test_moments_of_an_image_need_no_second_moment(at_units):
    rng = np.random.default_rng(0)
    body = SimplexDifference(np.eye(6) if at_units else rng.normal(size=(6, 7)))
    matrix = rng.normal(size=(4, body.dimension))
    matrix[matrix < 0] = 0
    wanted = np.diag(matrix @ body.second_moment() @ matrix.T)
    np.testing.assert_allclose(body.image_moments(matrix), wanted, rtol=1e-12)
    np.testing.assert_allclose(body.image_moments(sp.csr_array(matrix)), wanted, rtol=1e-12)
    assert body.effective_dimension == body.affine_hull().dimension == 5


def test_counts_of_thousands_of_cells_need_no_decomposition(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("a decomposition of 4096 cells takes minutes")

    monkeypatch.setattr(np.linalg, "svd", refuse)
    noise = KNormNoise(body := SimplexDifference(np.eye(4096)), 1.0, ExactSampler(body))
    assert noise.effective_dimension == 4095
    # For U uniform on the body of dimension r = 4095, the noise has the energy
    # (r + 1)(r + 2) E ||U||^2 = r * 4 (2 r + 1) / (r + 2).
    each = 4 * (2 * 4095 + 1) / 4097
    assert noise.second_moment().value == pytest.approx(4095 * each, rel=1e-12)
    assert np.abs(noise.sample(np.random.default_rng(0), 2).sum(axis=1)).max() < 1e-6


def test_the_body_of_unit_vectors_is_that_of_the_identity_without_its_matrix():
    given, units = SimplexDifference(np.eye(5)), SimplexDifference.at_units(5)
    np.testing.assert_array_equal(units.vertices, np.eye(5))
    assert not units.vertices.flags.writeable
    points = np.random.default_rng(0).normal(size=(7, 5))
    for verb in ("support", "extreme_point", "gauge"):
        np.testing.assert_array_equal(getattr(units, verb)(points), getattr(given, verb)(points))
    draws = [body.sample_uniform(9, np.random.default_rng(0)) for body in (given, units)]
    np.testing.assert_array_equal(*draws)
    np.testing.assert_array_equal(units.second_moment(), given.second_moment())
    assert units.volume() == given.volume()
    with pytest.raises(ValueError, match="count must be"):
        SimplexDifference.at_units(0)


def test_noise_on_a_million_counts_takes_the_memory_of_a_vector():
    # A matrix of 10^6 unit vectors would take 8 TB.
    noise = KNormNoise(body := SimplexDifference.at_units(10**6), 1.0, ExactSampler(body))
    assert noise.variances().shape == (10**6,)


def test_projections_on_products_of_unit_simplices_are_closed_and_nearest():
    body = Product([Simplex(np.eye(3)), Simplex(np.eye(1)), Simplex(np.eye(4))])
    targets = 2 * np.random.default_rng(0).normal(size=(20, 8))
    found = body.project(targets)
    # The point y of the body is nearest to t if <t - y, x> <= <t - y, y> for all x of the body,
    # that is, if the support function along t - y is attained at y.
    rest = targets - found
    np.testing.assert_allclose(body.support(rest), (rest * found).sum(axis=1), atol=1e-12)
    assert body.contains(found).all()
    assert not Simplex(2 * np.eye(3)).implements(Body.project)
    with pytest.raises(MissingOracle, match="unit vectors"):
        Simplex(2 * np.eye(3)).project(np.zeros((1, 3)))
