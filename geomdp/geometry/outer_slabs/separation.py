"""Separation: directions in which given points lie outside a convex body.

A source maps points (b, m) to directions (k, m). Each direction u should satisfy <u, x> > h(u) for
one of the points x, h the support function. A direction that does not is useless but does no harm,
as `SlabSearch` computes h(u) itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from geomdp._typing import FloatArray
from geomdp._validation import batch
from geomdp.bodies import Body
from geomdp.bodies.base import MEMBERSHIP_TOLERANCE
from geomdp.geometry.projection import Projector


class DirectionSource(Protocol):
    """Finds directions in which points are outside a body."""

    def directions(self, points: FloatArray) -> FloatArray:
        """Directions (k, m), none of them 0, for the rows of (b, m) that lie outside."""


@dataclass(frozen=True)
class FacetDirections:
    """Normals of the facets through which rays from 0 to the points leave the body.

    The deepest cuts there are, as they touch the body in a whole facet. One facet oracle per point.

    Parameters
    ----------
    body : Body
        With `facets`, 0 in its relative interior.
    """

    body: Body

    def directions(self, points: FloatArray) -> FloatArray:
        """Facet normals (k, m) of the points with gauge above 1."""
        found = self.body.facets(batch(points, self.body.dimension, "points"))
        return found.normals[found.gauges > 1 + MEMBERSHIP_TOLERANCE]


@dataclass(frozen=True)
class NearestPointDirections:
    """Residuals x - p, p the point of the body nearest to x: cuts that touch the body at p.

    One projection per point; extreme points are enough for it.

    Parameters
    ----------
    body : Body
        With `extreme_point` or `project`.
    """

    body: Body

    def directions(self, points: FloatArray) -> FloatArray:
        """Residuals (k, m) of the points further from the body than rounding."""
        points = batch(points, self.body.dimension, "points")
        projector = Projector(self.body)
        residuals = points - np.stack([projector.nearest(x).point for x in points])
        lengths = np.linalg.norm(residuals, axis=1)
        outside = lengths > MEMBERSHIP_TOLERANCE * np.linalg.norm(points, axis=1)
        return np.asarray(residuals[outside])


@dataclass(frozen=True)
class PointDirections:
    """The points themselves, for a body of which nothing but a support function is known.

    Parameters
    ----------
    body : Body
        With `support`.
    """

    body: Body

    def directions(self, points: FloatArray) -> FloatArray:
        """The points (k, m) beyond the support function in their own direction."""
        points = batch(points, self.body.dimension, "points")
        squares = np.einsum("bm,bm->b", points, points)
        outside = squares > (1 + MEMBERSHIP_TOLERANCE) * self.body.support(points)
        return np.asarray(points[outside])


def direction_source(body: Body) -> DirectionSource:
    """The best source for `body`: facets, else nearest points, else the points themselves."""
    if body.implements(Body.facets):
        return FacetDirections(body)
    if body.implements(Body.project) or body.implements(Body.extreme_point):
        return NearestPointDirections(body)
    return PointDirections(body)
