"""Shadows: linear images of bodies on fewer coordinates, in closed form where one is known."""

from __future__ import annotations

from geomdp._typing import FloatArray
from geomdp.bodies.base import Body
from geomdp.bodies.norm_balls.balls import Ball
from geomdp.bodies.operations.linear_image import LinearImage

#: Relative inflation of a half-width from a support function, far above its rounding (SAM-5).
INFLATION = 1e-9


def shadow(body: Body, rows: FloatArray) -> Body:
    """The image {rows @ x : x in K} of a symmetric body K in R^m under independent rows (k, m).

    For orthonormal rows it is the orthogonal projection of K in coordinates of their span. The
    closed form of the body (`Body.linear_image`) is used where there is one. Otherwise an image on
    a line is a segment whose half-width, a support value, is rounded up by the factor 1 + 1e-9; any
    other image is a `LinearImage`. ``ValueError`` if `body` is not known to be symmetric.
    """
    if not body.symmetric:
        raise ValueError(f"body must be symmetric, got {body!r}")
    closed = body.linear_image(rows)
    if closed is not None:
        return closed
    if len(rows) == 1:
        return Ball(1, float(body.support(rows)[0]) * (1 + INFLATION))
    return LinearImage(rows, body)
