"""The linear span of the answers: its rank, and the accuracy of its basis."""

from __future__ import annotations

import numpy as np
import pytest

from geomdp._numerics.linalg import RANK_TOLERANCE, AffineHull
from geomdp.mechanisms.base import _linear_span


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
