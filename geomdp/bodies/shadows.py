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
    """The image {rows @ x : x in K} of a body K known to be symmetric, for independent `rows` (k,
    m); a segment is lengthened by 1 + 1e-9, so that rounding cannot make it too short.
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
