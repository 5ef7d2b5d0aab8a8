"""Shadows: images of bodies under matrices with independent rows, in closed form if possible."""

from __future__ import annotations

from geomdp._typing import FloatArray
from geomdp.bodies.base import Body
from geomdp.bodies.norm_balls.balls import Ball
from geomdp.bodies.norm_balls.boxes import Box
from geomdp.bodies.operations.linear_image import LinearImage

#: A half-width computed by a support function is enlarged by this share. The share is far above the
#: relative rounding error of the half-width (SAM-5).
INFLATION = 1e-9


def shadow(body: Body, rows: FloatArray) -> Body:
    """The image {rows @ x : x in K} of a symmetric body K in R^m, for independent `rows` (k, m).

    If the rows are orthonormal, the image is the orthogonal projection of K on the span of the
    rows, in coordinates of this span. If the image has a closed form (`Body.linear_image`), this
    closed form is the result. Without a closed form, the result is a segment for one row, and a
    `LinearImage` for more rows. The half-width of the segment is the value of the support function
    times 1 + 1e-9, so rounding cannot make the segment too short. If the half-width is 0, the
    result is the point 0. ``ValueError`` if `body` is not known to be symmetric.
    """
    if not body.symmetric:
        raise ValueError(f"body must be symmetric, got {body!r}")
    closed = body.linear_image(rows)
    if closed is not None:
        return closed
    if len(rows) == 1:
        half_width = float(body.support(rows)[0]) * (1 + INFLATION)
        return Ball(1, half_width) if half_width > 0 else Box.centred([0.0])
    return LinearImage(rows, body)
