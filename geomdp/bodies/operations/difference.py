"""K - K and conv(K u -K), in closed form where one is known."""

from __future__ import annotations

from functools import singledispatch

import numpy as np

from geomdp.bodies.base import Body
from geomdp.bodies.norm_balls.balls import Ball, CrossPolytope
from geomdp.bodies.norm_balls.boxes import Box
from geomdp.bodies.norm_balls.ellipsoids import Ellipsoid
from geomdp.bodies.norm_balls.lp_balls import LpBall
from geomdp.bodies.norm_balls.symmetrised_box import SymmetrisedBox
from geomdp.bodies.operations.linear_image import LinearImage
from geomdp.bodies.operations.products import Product
from geomdp.bodies.operations.symmetrised import Difference, SymmetricHull
from geomdp.bodies.operations.transforms import Scaled, Shifted
from geomdp.bodies.polytopes.simplex import Simplex, SimplexDifference
from geomdp.bodies.spectral.spectraplex import Spectraplex
from geomdp.bodies.spectral.symmetric import NuclearBall, SpectraplexDifference


@singledispatch
def difference_body(body: Body) -> Body:
    """The difference body K - K = {x - y : x, y in K}.

    Closed forms for boxes, balls, cross-polytopes, l_p balls, ellipsoids, simplices, the
    spectraplex and all bodies known to be symmetric (K - K = 2 K); products, shifted, scaled and
    linearly mapped bodies through their parts; the wrapper `Difference` otherwise.

    Parameters
    ----------
    body : Body
        K in R^m.

    Returns
    -------
    Body
        K - K in R^m, symmetric.
    """
    if not isinstance(body, Body):
        raise ValueError(f"body must be a Body, got {type(body).__name__}")
    return Scaled(body, 2.0) if body.symmetric else Difference(body)


@difference_body.register
def _(body: Box) -> Body:
    return Box.centred(body.upper - body.lower)


@difference_body.register
def _(body: Ball) -> Body:
    return Ball(body.m, 2 * body.r)


@difference_body.register
def _(body: CrossPolytope) -> Body:
    return CrossPolytope(body.m, 2 * body.r)


@difference_body.register
def _(body: LpBall) -> Body:
    return LpBall(body.p, body.m, 2 * body.r)


@difference_body.register
def _(body: Ellipsoid) -> Body:
    return Ellipsoid(2 * body.root)


@difference_body.register
def _(body: Simplex) -> Body:
    return SimplexDifference(body.vertices)


@difference_body.register
def _(body: Spectraplex) -> Body:
    return SpectraplexDifference(body.d)


@difference_body.register
def _(body: Product) -> Body:
    return Product([difference_body(factor) for factor in body.bodies])


@difference_body.register
def _(body: LinearImage) -> Body:
    return LinearImage(body.matrix, difference_body(body.body))


@difference_body.register
def _(body: Scaled) -> Body:
    return Scaled(difference_body(body.body), body.factor)


@difference_body.register
def _(body: Shifted) -> Body:
    return difference_body(body.body)


@singledispatch
def symmetric_hull(body: Body) -> Body:
    """The symmetric hull conv(K u -K), in the linear span of K.

    K itself if it is known to be symmetric; closed forms for a simplex with linearly independent
    vertices (an image of the cross-polytope), a box with a corner at 0 and the spectraplex; the
    wrapper `SymmetricHull` otherwise.

    Parameters
    ----------
    body : Body
        K in R^m.

    Returns
    -------
    Body
        conv(K u -K) in R^m, symmetric.
    """
    if not isinstance(body, Body):
        raise ValueError(f"body must be a Body, got {type(body).__name__}")
    return body if body.symmetric else SymmetricHull(body)


@symmetric_hull.register
def _(body: Simplex) -> Body:
    hull = SymmetricHull(body)
    if hull.affine_hull().dimension == len(body.vertices):
        return LinearImage(np.array(body.vertices.T), CrossPolytope(len(body.vertices)))
    return hull


@symmetric_hull.register
def _(body: Box) -> Body:
    if (body.lower == 0).all() and (body.upper > 0).all():
        return SymmetrisedBox(body.upper)
    return body if body.symmetric else SymmetricHull(body)


@symmetric_hull.register
def _(body: Spectraplex) -> Body:
    return NuclearBall(body.d)


@symmetric_hull.register
def _(body: LinearImage) -> Body:
    return LinearImage(body.matrix, symmetric_hull(body.body))


@symmetric_hull.register
def _(body: Scaled) -> Body:
    return Scaled(symmetric_hull(body.body), body.factor)
