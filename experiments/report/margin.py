"""A bar that shows how close a measurement is to the limit of its claim."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from experiments.report.markup import escape

#: A bar is marked as near the limit from this value of `Claim.used` on; 1 is the limit.
NEAR = 0.9


def margin(claim: Mapping[str, Any]) -> str:
    """A bar for a stored `Claim.used`, or 'no limit' for a stored reason; empty without either."""
    used, reason = claim.get("used"), claim.get("no_limit")
    if used is None:
        return f'<span class="margin" title="{escape(reason)}">no limit</span>' if reason else ""
    kind = "near" if used >= NEAR else "far"
    words = f"{used:.0%} of what is allowed"
    return (
        f'<span class="margin {kind}" title="{words}"><span class="bar">'
        f'<span style="width: {100 * min(used, 1.0):.0f}%"></span></span>{used:.0%}</span>'
    )
