"""The check that the argument of an operation or algorithm is a body."""

from __future__ import annotations

from geomdp.bodies.base import Body


def checked_body(body: object) -> Body:
    """Return `body`; ``ValueError`` if it is not a `Body`."""
    if not isinstance(body, Body):
        raise ValueError(f"body must be a Body, got {type(body).__name__}")
    return body
