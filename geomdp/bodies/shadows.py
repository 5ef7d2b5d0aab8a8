"""Shadows: linear images of bodies on fewer coordinates, in closed form where one is known."""

from __future__ import annotations

from geomdp._typing import FloatArray
from geomdp.bodies.base import Body
from geomdp.bodies.norm_balls.balls import Ball
from geomdp.bodies.operations.linear_image import LinearImage

#: A half-width computed by a support function is enlarged by this share, which is far above its
#: relative rounding error (SAM-5).
INFLATION = 1e-9


def shadow(body: Body, rows: FloatArray) -> Body:
    """The image {rows @ x : x in K} of a symmetric body K in R^m under independent rows (k, m).

    If the rows are orthonormal, the image is the orthogonal projection of K on their span, in
    coordinates of this span. The result is the closed form of the image (`Body.linear_image`) if
    there is one. Otherwise, the result for one row is a segment whose half-width is the value of
    the support function times 1 + 1e-9, so that rounding cannot make the segment too short. The
    result for more rows is a `LinearImage`. ``ValueError`` if `body` is not known to be symmetric.
    """
    if not body.symmetric:
        raise ValueError(f"body must be symmetric, got {body!r}")
    closed = body.linear_image(rows)
    if closed is not None:
        return closed
    if len(rows) == 1:
        return Ball(1, float(body.support(rows)[0]) * (1 + INFLATION))
    return LinearImage(rows, body)
