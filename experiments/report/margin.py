"""How close to its edge a claim was measured, as a bar."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: From this share of the allowance on, a bar is marked as near the edge.
NEAR = 0.9


def margin(claim: Mapping[str, Any]) -> str:
    """A bar with the share of the allowance that the measurement uses; empty where none is stored.

    Records of runs before the share was stored have none.
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
