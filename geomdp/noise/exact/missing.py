"""The error for a noise or body that cannot be drawn with correct rounding."""

from __future__ import annotations


class NoExactPath(TypeError):  # noqa: N818 (a name like MissingOracle)
    """Raised for a noise or body that cannot be drawn with correct rounding.

    Parameters
    ----------
    item : object
        The noise or body.
    reason : str
        Why it cannot be drawn.
    """

    def __init__(self, item: object, reason: str) -> None:
        super().__init__(f"{item!r} has no correctly rounded draws: {reason}")
