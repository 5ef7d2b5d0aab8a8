"""Farthest-point order: how far its first points are apart, and how well they cover the rest."""

import math

import numpy as np
import pytest

from geomdp._numerics.linalg import farthest_points


def euclidean(rows):
    return np.linalg.norm(rows, axis=1)


def largest(rows):
    return np.abs(rows).max(axis=1)


@pytest.mark.parametrize("norm", [euclidean, largest])
def test_prefixes_are_separated_and_cover(norm):
    points = np.random.default_rng(0).normal(size=(60, 3))
    found = farthest_points(points, norm)
    assert sorted(found.order) == list(range(60))
    assert found.radii[0] == math.inf
    assert found.rest == 0
    assert (np.diff(found.radii[1:]) <= 0).all()
    distances = norm((points[:, None] - points).reshape(-1, 3)).reshape(60, 60)
    for count in (2, 5, 30):
        chosen = found.order[:count]
        pairs = distances[np.ix_(chosen, chosen)][np.triu_indices(count, 1)]
        np.testing.assert_allclose(pairs.min(), found.radii[count - 1], rtol=1e-12)
        np.testing.assert_allclose(
            distances[chosen].min(axis=0).max(), found.radii[count], rtol=1e-12
        )
        assert found.count(found.radii[count - 1]) >= count


def test_the_order_stops_where_asked():
    points = np.arange(9.0)[:, None]
    whole = farthest_points(points, euclidean)
    coarse = farthest_points(points, euclidean, least=2.0)
    assert len(coarse.order) == whole.count(2.0) == 5
    assert coarse.rest == 1.0
    few = farthest_points(points, euclidean, most=3)
    assert few.order.tolist() == whole.order[:3].tolist()
    repeated = farthest_points(np.repeat(np.eye(3), 4, axis=0), euclidean)
    assert len(repeated.order) == repeated.count(1e-9) == 3


@pytest.mark.parametrize(
    ("points", "message"),
    [(np.zeros((0, 2)), "at least one row"), (np.array([[np.nan]]), "points must be finite")],
)
def test_bad_points_are_refused(points, message):
    with pytest.raises(ValueError, match=message):
        farthest_points(points, euclidean)


@pytest.mark.parametrize("scale", [1.0, 1 << 12, 1 << 25, 0.5])
def test_the_short_cut_for_whole_points_gives_the_same_order(scale):
    # Squared distances are exact in float32 (scale 1), in float64 but not in float32 (2^12), or in
    # neither (2^25). For scale 0.5 the points are not whole numbers.
    points = scale * np.random.default_rng(0).integers(-3, 4, size=(80, 5))

    def per_query(rows):
        return np.sqrt(np.einsum("ij,ij->i", rows, rows) / 5)

    plain = farthest_points(points, per_query)
    short = farthest_points(points, per_query, of_squares=lambda squares: np.sqrt(squares / 5))
    np.testing.assert_array_equal(short.order, plain.order)
    np.testing.assert_array_equal(short.radii, plain.radii)
    assert short.rest == plain.rest
