"""Separation: directions u with <u, x> > h(u) for points x outside a convex body in R^m.

A source maps a body and points (b, m) to directions (k, m). A useless direction does no harm,
because `SlabSearch` computes h(u) again.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from geomdp._typing import FloatArray
from geomdp.bodies import Body
from geomdp.bodies.base import MEMBERSHIP_TOLERANCE
from geomdp.geometry.projection import Projector

#: Maps points (b, m) to nonzero directions (k, m), at most one for each point outside the body.
DirectionSource = Callable[[FloatArray], FloatArray]


def facet_directions(body: Body, points: FloatArray) -> FloatArray:
    """Normals of facets: for each point x outside, the facet through which the ray from 0 leaves.

    The body needs `facets` and 0 in its relative interior.
    """
    found = body.facets(points)
    return found.normals[found.gauges > 1 + MEMBERSHIP_TOLERANCE]


def nearest_point_directions(body: Body, points: FloatArray) -> FloatArray:
    """Residuals x - p for points x outside the body, which needs `project` or `extreme_point`."""
    projector = Projector(body)
    residuals = points - np.stack([projector.nearest(x).point for x in points])
    lengths = np.linalg.norm(residuals, axis=1)
    outside = lengths > MEMBERSHIP_TOLERANCE * np.linalg.norm(points, axis=1)
    return np.asarray(residuals[outside])


def point_directions(body: Body, points: FloatArray) -> FloatArray:
    """The points x with <x, x> > h(x), for bodies that implement only the support function h."""
    squares = np.einsum("bm,bm->b", points, points)
    return np.asarray(points[squares > (1 + MEMBERSHIP_TOLERANCE) * body.support(points)])


def direction_source(body: Body) -> DirectionSource:
    """The best source for `body`: facets, else nearest points, else the points themselves."""
    if body.implements(Body.facets):
        return partial(facet_directions, body)
    if body.implements(Body.project) or body.implements(Body.extreme_point):
        return partial(nearest_point_directions, body)
    return partial(point_directions, body)
