"""What operations on bodies and algorithms for bodies are applied to."""

from __future__ import annotations

from geomdp.bodies.base import Body


def checked_body(body: object) -> Body:
    """`body`, or ``ValueError`` if it is no `Body`."""
    if not isinstance(body, Body):
        raise ValueError(f"body must be a Body, got {type(body).__name__}")
    return body
