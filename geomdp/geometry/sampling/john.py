"""Rounding by an ellipsoid of least volume, for bodies with listed vertices or facets."""

from __future__ import annotations

import numpy as np

from geomdp._typing import FloatArray
from geomdp.bodies import Body, Difference, HPolytope, MissingOracle, SlabBody
from geomdp.geometry.ellipsoids.least_volume import least_volume_ellipsoid
from geomdp.geometry.sampling.rounding import Preimage, Walk


def round_by_ellipsoid(walk: Walk, rng: np.random.Generator) -> Walk:
    """Change to coordinates in which an ellipsoid close to the body is the unit ball B.

    =====================  ==========================================================
    body                   position, up to the tolerance of the ellipsoid
    =====================  ==========================================================
    vertices listed        B / r in K in B (John 1948), B / sqrt(r) if K is symmetric
    difference of such     B / r in K in B
    slabs                  B in K in sqrt(r) B: the ellipsoid of the polar body
    other halfspaces       B in K, and no more than sqrt(r) B in K n -K
    =====================  ==========================================================

    Where `round_walk` measures the covariance with chains, this one needs none, and its bounds are
    proved; a body that is long in many directions may still be rounded further by `round_walk`.

    Parameters
    ----------
    walk : Walk
        From `plain_walk`.
    rng : Generator
        Not used; every rounding takes one.

    Returns
    -------
    Walk

    Raises
    ------
    MissingOracle
        If neither vertices nor facets of the body are listed.
    """
    del rng
    match walk.body:
        case SlabBody():
            return _polar(walk, walk.body.normals)
        case HPolytope():
            return _polar(walk, walk.body.normals / walk.body.offsets[:, None])
        case Preimage(inner=Difference(body=inner)) if inner.implements(Body.vertex_list):
            # Differences do not see the offset; K - K is centred whatever the centre of K.
            points = _pulled_back(walk, inner.vertex_list())
            ellipsoid = least_volume_ellipsoid(points)
            return walk.recentred(np.zeros(walk.body.dimension), 2 * ellipsoid.root)
        case Preimage(inner=inner) if inner.implements(Body.vertex_list):
            points = _pulled_back(walk, inner.vertex_list() - walk.body.offset)
            if walk.body.symmetric:
                ellipsoid = least_volume_ellipsoid(np.vstack([points, -points]))
                return walk.recentred(np.zeros(walk.body.dimension), ellipsoid.root)
            ellipsoid = least_volume_ellipsoid(points)
            return walk.recentred(ellipsoid.centre, ellipsoid.root)
    raise MissingOracle(walk.body, "least-volume ellipsoid", "listed vertices or facets")


def _pulled_back(walk: Walk, points: FloatArray) -> FloatArray:
    """Walk coordinates of points, or of differences of points."""
    assert isinstance(walk.body, Preimage)
    return points @ np.linalg.pinv(walk.body.root).T


def _polar(walk: Walk, normals: FloatArray) -> Walk:
    """Coordinates in which the largest ellipsoid in {y : |<normals, y>| <= 1} is the unit ball.

    With z^T S^(-1) z <= 1 the least ellipsoid around the normals and their negatives, that one is
    {y : y^T S y <= 1}.
    """
    ellipsoid = least_volume_ellipsoid(np.vstack([normals, -normals]))
    root = np.asarray(np.linalg.inv(ellipsoid.root), dtype=np.float64)
    return walk.recentred(np.zeros(walk.body.dimension), root)
