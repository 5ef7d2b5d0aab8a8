"""What has no exact path, and the error that says so."""

from __future__ import annotations


class NoExactPath(TypeError):  # noqa: N818 (a name like MissingOracle)
    """A noise or body that this room cannot draw with correct rounding.

    Parameters
    ----------
    item : object
        The noise or body.
    reason : str
        Why not.
    """

    def __init__(self, item: object, reason: str) -> None:
        super().__init__(f"{item!r} has no correctly rounded draws: {reason}")
