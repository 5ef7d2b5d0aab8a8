"""The linear span of the answers, and the norms of changes that a mechanism needs."""

from __future__ import annotations

import math

import numpy as np
import pytest

from geomdp._numerics.linalg import RANK_TOLERANCE, AffineHull
from geomdp.mechanisms import Ball, Ellipsoid, Gaussian, KNorm, Laplace
from geomdp.mechanisms.base import _linear_span
from geomdp.privacy import ZCDP, PureDP
from geomdp.workloads import Explicit


def hull_at(height: float) -> AffineHull:
    """A plane in R^6 at distance `height` from 0, with an offset of length about 1."""
    frame = np.linalg.qr(np.random.default_rng(0).normal(size=(6, 6)))[0]
    along = frame[:, :2] @ np.array([0.6, -0.8])
    return AffineHull(along + height * frame[:, 2], frame[:, :2])


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
@pytest.mark.parametrize(
    ("height", "dimension"),
    [(0.0, 2), (0.9 * RANK_TOLERANCE, 2), (1.1 * RANK_TOLERANCE, 3), (0.5, 3), (1e6, 3)],
)
def test_the_span_has_one_more_direction_above_the_tolerance(
    height: float, dimension: int, scale: float
) -> None:
    """The cut is relative to the length of the offset, so it does not depend on the unit."""
    hull = hull_at(height)
    span = _linear_span(AffineHull(scale * hull.offset, hull.basis))
    assert span.dimension == dimension
    assert not span.offset.any()


def test_the_span_of_a_subspace_is_the_subspace() -> None:
    basis = hull_at(0.0).basis
    span = _linear_span(AffineHull(np.zeros(6), basis))
    np.testing.assert_array_equal(span.basis, basis)


@pytest.mark.parametrize("height", [1.1 * RANK_TOLERANCE, 1e-6, 1.0])
def test_the_basis_of_the_span_is_orthonormal_and_contains_the_answers(height: float) -> None:
    """One pass of Gram-Schmidt would leave an error of 2^-53 / height along the plane."""
    hull = hull_at(height)
    span = _linear_span(hull)
    np.testing.assert_allclose(span.basis.T @ span.basis, np.eye(3), atol=20 * 2.0**-53)
    np.testing.assert_array_equal(span.basis[:, :2], hull.basis)
    points = hull.embed(np.random.default_rng(1).normal(size=(20, 2)))
    assert (span.residual(points) <= 20 * 2.0**-53 * np.linalg.norm(points, axis=1)).all()


class WithoutL1(Explicit):
    """A user's workload that knows no bound on the l1 norm of changes."""

    def l1_diameter(self) -> float:
        return math.inf


@pytest.mark.parametrize("kind", [Ball, Ellipsoid, KNorm, Gaussian])
def test_noise_of_another_shape_needs_no_bound_on_the_l1_norm(kind: type) -> None:
    workload = WithoutL1(np.eye(3))
    privacy = ZCDP(0.5) if kind is Gaussian else PureDP(1.0)
    assert kind(workload, n=10, privacy=privacy).predicted_rmse.value > 0
    with pytest.raises(ValueError, match="sensitivity"):
        Laplace(workload, n=10, privacy=PureDP(1.0))
