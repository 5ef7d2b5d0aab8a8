"""Psd matrices with block traces 1: sampler, moments, and the bodies it contains as cases."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from geomdp._linalg import svec, unsvec
from geomdp.bodies import BlockElliptope, Elliptope
from tests.stats import ks_same, mean_agrees


@pytest.mark.statistical
@pytest.mark.parametrize("sizes", [[1, 2], [2, 1], [3]])
def test_sampler_agrees_with_rejection(sizes) -> None:
    """Uniform entries with the right traces, of which the psd ones are kept."""
    body, rng = BlockElliptope(sizes), np.random.default_rng(0)
    starts = np.cumsum([0, *sizes[:-1]])
    count = 200_000
    matrices = rng.uniform(-1, 1, (count, body.order, body.order))
    matrices = np.triu(matrices, 1) + np.swapaxes(np.triu(matrices, 1), 1, 2)
    for start, size in zip(starts, sizes, strict=True):
        # Uniform on the simplex: what is left of diagonals with sum 1.
        share = rng.dirichlet(np.ones(size), count)
        for a in range(size):
            matrices[:, start + a, start + a] = share[:, a]
    accepted = svec(matrices[np.linalg.eigvalsh(matrices)[:, 0] >= 0])
    drawn = body.sample_uniform(20_000, rng)
    assert len(accepted) > 2000
    # Entry (0, 2) is across the blocks or within the one; the row products are of both kinds.
    for statistic in (lambda x: x[:, 2], lambda x: x[:, 1] * x[:, 4], lambda x: (x**2).sum(axis=1)):
        ks_same(statistic(drawn), statistic(accepted), level=1e-6 / 9)


@pytest.mark.statistical
@pytest.mark.parametrize("sizes", [[1, 2, 2, 1], [3, 1], [1, 1]])
def test_moments_and_membership(sizes) -> None:
    body = BlockElliptope(sizes)
    points = body.sample_uniform(8000, np.random.default_rng(1))
    assert body.contains(points).all()
    varying = body.entry_variances() > 1e-12
    mean_agrees(points[:, varying], body.centroid()[varying], level=1e-7)
    products = points[:, :, None] * points[:, None, :]
    moment = body.second_moment()
    inner = np.ix_(np.ones(len(points), dtype=bool), varying, varying)
    mean_agrees(products[inner], moment[np.ix_(varying, varying)], level=1e-7)
    np.testing.assert_allclose(
        np.diag(moment) - body.centroid() ** 2, body.entry_variances(), atol=1e-15
    )


def test_blocks_of_size_one_are_the_elliptope() -> None:
    body, elliptope = BlockElliptope([1] * 4), Elliptope(4)
    # svec stretches the six entries off the diagonal by sqrt(2) each.
    assert body.volume() == pytest.approx(8 * elliptope.volume(), rel=1e-12)
    off = unsvec(np.arange(10.0))[np.triu_indices(4, 1)] != 0
    assert off.sum() == 6
    upper = np.triu_indices(4)
    above = upper[0] != upper[1]
    np.testing.assert_allclose(
        body.second_moment()[np.ix_(above, above)], 2 * elliptope.second_moment(), rtol=1e-12
    )
    assert body.effective_dimension == elliptope.dimension == body.affine_hull().dimension


def test_holds_products_of_unit_vectors_and_nothing_longer() -> None:
    rng = np.random.default_rng(2)
    body = BlockElliptope([2, 1, 3])
    vectors = rng.standard_normal((50, 6))
    for part in (slice(0, 2), slice(2, 3), slice(3, 6)):
        vectors[:, part] /= np.linalg.norm(vectors[:, part], axis=1, keepdims=True)
    corners = svec(vectors[:, :, None] * vectors[:, None, :])
    assert body.contains(corners).all()
    np.testing.assert_allclose(np.linalg.norm(corners, axis=1), body.radius(), rtol=1e-12)
    np.testing.assert_allclose(body.affine_hull().residual(corners), 0, atol=1e-12)
    moved = 1.01 * corners - 0.01 * body.centroid()
    assert not body.contains(moved).any()
    assert not body.contains(1.001 * corners).any()


@pytest.mark.parametrize("sizes", [[], [0, 1], [2, -1], [1.5]])
def test_sizes_are_checked(sizes) -> None:
    with pytest.raises(ValueError, match="sizes must"):
        BlockElliptope(sizes)


def test_volume_adds_up_over_the_size_of_a_single_block() -> None:
    """One block of size 2: the disc of radius sqrt(1/2) of trace-1 matrices."""
    assert BlockElliptope([2]).volume() == pytest.approx(np.pi / 2, rel=1e-12)
    assert BlockElliptope([1]).volume() == pytest.approx(1.0, rel=1e-12)
    for first, second in itertools.permutations([[1, 2, 2], [2, 1, 2], [2, 2, 1]], 2):
        assert BlockElliptope(first).volume() == pytest.approx(BlockElliptope(second).volume())
