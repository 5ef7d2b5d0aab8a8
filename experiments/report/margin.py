"""A bar that shows how close a measurement is to the limit of its claim."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: A bar is marked as near the limit if the measurement uses at least this share of the allowance.
NEAR = 0.9


def margin(claim: Mapping[str, Any]) -> str:
    """A bar with the share of the allowance that the measurement uses.

    Empty if no share is stored: older records have none.
    """
    used = claim.get("used")
    if used is None:
        return ""
    kind = "near" if used >= NEAR else "far"
    words = f"{used:.0%} of what is allowed"
    return (
        f'<span class="margin {kind}" title="{words}"><span class="bar">'
        f'<span style="width: {100 * min(used, 1.0):.0f}%"></span></span>{used:.0%}</span>'
    )
