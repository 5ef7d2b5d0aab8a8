"""Every claim states how close its measurement is to the limit, or why it has no limit."""

from __future__ import annotations

import ast
import math
from pathlib import Path

import numpy as np
import pytest

from experiments.engine import margins
from experiments.engine.claims import Claim

ROOT = Path(__file__).parents[2]


def claim(used: float | margins.NoLimit) -> Claim:
    return Claim("name", True, "measured", "theory", "X-1", used)


def test_limits_use_one() -> None:
    assert margins.share([1.0, 3.0], [2.0, 3.0]) == 1.0
    assert margins.inverse_share([8.0, 2.0], 2.0) == 1.0
    assert margins.offset([1.0, 1.5], 1.0, 0.5) == 1.0
    assert margins.position([0.5, 1.0], -1.0, 1.0) == 1.0
    assert margins.rarity([0.5, 1e-6], 1e-6) == pytest.approx(1.0)
    assert margins.within_allowance([0.0, 1.0], [0.0, 1.0]) == 1.0


def test_nothing_is_used_far_from_the_limit() -> None:
    assert margins.share(0.0, 1.0) == 0.0
    assert margins.inverse_share(math.inf, 1.0) == 0.0
    assert margins.position(0.5, 0.0, 1.0) == 0.0
    assert margins.rarity(1.0, 1e-6) == 0.0
    assert margins.within_allowance(0.0, 0.0) == 0.0


@pytest.mark.parametrize("measured", [math.inf, math.nan])
def test_what_is_infinitely_far_off_can_be_stored(measured: float) -> None:
    assert claim(margins.share(measured, 1.0)).used == margins.BEYOND
    assert margins.inverse_share(0.0, 1.0) == margins.BEYOND
    assert margins.rarity(0.0, 1e-6) == margins.BEYOND
    assert margins.within_allowance(1e-9, 0.0) == margins.BEYOND
    for allowed in (0.0, 1.0, math.nan):
        assert margins.within_allowance(measured, allowed) == margins.BEYOND


def test_no_measurement_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1 measurement"):
        margins.share(np.empty(0), 1.0)


@pytest.mark.parametrize("used", [math.inf, math.nan, -0.1])
def test_a_claim_refuses_what_is_no_distance(used: float) -> None:
    with pytest.raises(ValueError, match="used must be finite and at least 0"):
        claim(used)


def test_a_record_holds_the_number_or_the_reason() -> None:
    assert claim(0.25).to_dict()["used"] == 0.25
    assert claim(0.25).to_dict()["no_limit"] is None
    assert claim(margins.NoLimit.ORDER).to_dict()["used"] is None
    assert "order" in str(claim(margins.NoLimit.ORDER).to_dict()["no_limit"])


def test_every_claim_states_its_margin_or_why_it_has_none() -> None:
    """The test reads the source code, because some claims are made at the full preset only."""
    silent = []
    for path in sorted((ROOT / "experiments").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Claim":
                named = {keyword.arg: keyword.value for keyword in node.keywords}
                used = named.get("used")
                if used is None or (isinstance(used, ast.Constant) and used.value is None):
                    silent.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert silent == []
