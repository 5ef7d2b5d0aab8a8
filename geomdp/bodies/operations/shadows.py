"""Shadows: linear images of bodies on fewer coordinates, in closed form where one is known."""

from __future__ import annotations

from functools import singledispatch

import numpy as np

from geomdp._typing import BoolArray, FloatArray, IntArray
from geomdp.bodies.base import Body
from geomdp.bodies.norm_balls.balls import Ball, CrossPolytope
from geomdp.bodies.norm_balls.boxes import Box
from geomdp.bodies.norm_balls.ellipsoids import Ellipsoid
from geomdp.bodies.operations.linear_image import LinearImage
from geomdp.bodies.operations.products import Product
from geomdp.bodies.operations.symmetrised import Difference, SymmetricHull
from geomdp.bodies.operations.transforms import Scaled
from geomdp.bodies.polytopes.simplex import SimplexDifference
from geomdp.bodies.polytopes.triangulated import TriangulatedPolytope
from geomdp.bodies.polytopes.triangulation import can_triangulate
from geomdp.bodies.polytopes.vpolytope import VPolytope

#: Relative inflation of a half-width from a support function, far above its rounding (SAM-5).
INFLATION = 1e-9


def shadow(body: Body, rows: FloatArray) -> Body:
    """The image {rows @ x : x in K} of a symmetric body K in R^m, in R^k.

    For orthonormal rows it is the orthogonal projection of K in coordinates of their span. Boxes
    and cross-polytopes stay what they are along coordinate axes, balls and ellipsoids along all
    directions, products along directions that each move in one factor; lists of vertices are
    mapped; every image on a line is a segment, its half-width rounded up by the factor 1 + 1e-9
    where it comes from a support function. Any other image is a `LinearImage`.

    Parameters
    ----------
    body : Body
        K, symmetric.
    rows : (k, m) array
        Linearly independent rows.

    Returns
    -------
    Body
        The image in R^k, or for k = 1 a segment that holds it.

    Raises
    ------
    ValueError
        If `body` is not known to be symmetric.
    """
    if not body.symmetric:
        raise ValueError(f"body must be symmetric, got {body!r}")
    closed = _image(body, rows)
    if closed is not None:
        return closed
    if len(rows) == 1:
        return Ball(1, float(body.support(rows)[0]) * (1 + INFLATION))
    return LinearImage(rows, body)


@singledispatch
def _image(body: Body, rows: FloatArray) -> Body | None:
    """The image in closed form, or None."""
    del body, rows
    return None


@_image.register
def _(body: Ball, rows: FloatArray) -> Body:
    return Ellipsoid(body.r * rows)


@_image.register
def _(body: Ellipsoid, rows: FloatArray) -> Body:
    return Ellipsoid(rows @ body.root)


@_image.register
def _(body: Box, rows: FloatArray) -> Body | None:
    columns = _axes_of(rows)
    if columns is None:
        return None
    return Box.centred(np.abs(rows[np.arange(len(rows)), columns]) * body.upper[columns])


@_image.register
def _(body: CrossPolytope, rows: FloatArray) -> Body | None:
    columns = _axes_of(rows)
    if columns is None:
        return None
    lengths = np.abs(rows[np.arange(len(rows)), columns])
    return CrossPolytope(len(rows), body.r * lengths[0]) if np.ptp(lengths) == 0 else None


@_image.register
def _(body: Scaled, rows: FloatArray) -> Body | None:
    inner = _image(body.body, rows)
    return None if inner is None else Scaled(inner, body.factor)


@_image.register
def _(body: LinearImage, rows: FloatArray) -> Body | None:
    return _image(body.body, rows @ body.matrix)


@_image.register
def _(body: Product, rows: FloatArray) -> Body | None:
    """The product of the images of the factors, if each row moves in one factor only."""
    moving = np.stack([rows[:, part].any(axis=1) for part in body.slices], axis=1)
    if (moving.sum(axis=1) != 1).any():
        return None
    images: list[Body] = []
    order: list[IntArray] = []
    for number in np.flatnonzero(moving.any(axis=0)).tolist():
        mine = np.flatnonzero(moving[:, number])
        image = _image(body.bodies[number], rows[mine][:, body.slices[number]])
        if image is None:
            return None
        images.append(image)
        order.append(mine)
    places = np.concatenate(order)
    stacked = images[0] if len(images) == 1 else Product(images)
    if (places == np.arange(len(rows))).all():
        return stacked
    # Row i of the product belongs at place places[i].
    return LinearImage(np.eye(len(rows))[:, places], stacked)


@_image.register
def _(body: SimplexDifference, rows: FloatArray) -> Body | None:
    return Difference(VPolytope(body.vertices @ rows.T)) if len(rows) > 1 else None


@_image.register
def _(body: Difference, rows: FloatArray) -> Body | None:
    if len(rows) == 1 or not body.body.implements("vertex_list"):
        return None
    return Difference(VPolytope(body.body.vertex_list() @ rows.T))


@_image.register
def _(body: SymmetricHull, rows: FloatArray) -> Body | None:
    if len(rows) == 1 or not body.body.implements("vertex_list"):
        return None
    return SymmetricHull(VPolytope(body.body.vertex_list() @ rows.T))


@_image.register(VPolytope)
@_image.register(TriangulatedPolytope)
def _(body: VPolytope | TriangulatedPolytope, rows: FloatArray) -> Body:
    points = body.vertices[_half(body.vertices)] @ rows.T
    # Both signs from one product: the list stays closed under negation to the last bit.
    everything = np.unique(np.vstack([points, -points]) + 0.0, axis=0)
    if can_triangulate(len(everything), len(rows)):
        return TriangulatedPolytope(everything)
    return VPolytope(everything)


def _axes_of(rows: FloatArray) -> IntArray | None:
    """The coordinate each row moves along, if all move along different single ones; else None."""
    nonzero = rows != 0
    columns = np.argmax(nonzero, axis=1)
    alone = (nonzero.sum(axis=1) == 1).all() and len(np.unique(columns)) == len(rows)
    return columns if alone else None


def _half(points: FloatArray) -> BoolArray:
    """One of each pair of opposite rows: those whose first nonzero entry is above 0."""
    first = np.argmax(points != 0, axis=1)
    return np.asarray(points[np.arange(len(points)), first] > 0)
