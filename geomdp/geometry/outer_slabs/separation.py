"""Separation: directions in which given points lie outside a convex body.

A source of directions takes a body in R^m and b points (b, m), and finds k directions (k, m). Let h
be the support function of the body. Each direction u should satisfy <u, x> > h(u) for one of the
points x. A direction with <u, x> <= h(u) for all points is useless. It does no harm, because
`SlabSearch` computes h(u) again.
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
    """Normals of facets, one for each point x outside the body.

    The ray from 0 to x leaves the body through this facet. A slab with this normal touches the body
    in the whole facet, so it usually cuts off much. The body needs `facets` and 0 in its relative
    interior. Cost: one call of `facets` for all points together.
    """
    found = body.facets(points)
    return found.normals[found.gauges > 1 + MEMBERSHIP_TOLERANCE]


def nearest_point_directions(body: Body, points: FloatArray) -> FloatArray:
    """Residuals x - p for the points x outside the body. The point p of the body is nearest to x.

    A slab with normal x - p touches the body at p. The body needs `project` or `extreme_point`.
    Cost: one projection per point.
    """
    projector = Projector(body)
    residuals = points - np.stack([projector.nearest(x).point for x in points])
    lengths = np.linalg.norm(residuals, axis=1)
    outside = lengths > MEMBERSHIP_TOLERANCE * np.linalg.norm(points, axis=1)
    return np.asarray(residuals[outside])


def point_directions(body: Body, points: FloatArray) -> FloatArray:
    """The points x that satisfy <x, x> > h(x), as directions.

    This function is for bodies that implement only the support function h.
    """
    squares = np.einsum("bm,bm->b", points, points)
    return np.asarray(points[squares > (1 + MEMBERSHIP_TOLERANCE) * body.support(points)])


def direction_source(body: Body) -> DirectionSource:
    """The best source for `body`: facets, else nearest points, else the points themselves."""
    if body.implements(Body.facets):
        return partial(facet_directions, body)
    if body.implements(Body.project) or body.implements(Body.extreme_point):
        return partial(nearest_point_directions, body)
    return partial(point_directions, body)
