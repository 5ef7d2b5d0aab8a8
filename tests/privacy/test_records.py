"""Privacy records are the same after a round trip through JSON; doctored records are refused."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geomdp.privacy import (
    ZCDP,
    Adjacency,
    ApproxDP,
    Approximate,
    Exact,
    Guarantee,
    Heuristic,
    Privacy,
    PureDP,
)
from geomdp.privacy.guarantees import SamplerStatus

epsilons = st.floats(1e-6, 20.0)
deltas = st.floats(1e-12, 0.4)
privacies = st.one_of(
    st.builds(PureDP, epsilons), st.builds(ApproxDP, epsilons, deltas), st.builds(ZCDP, epsilons)
)


@given(
    privacy=privacies,
    adjacency=st.sampled_from(Adjacency),
    sampler=st.sampled_from([Exact(), Heuristic("100 steps of hit-and-run")]),
    arithmetic=st.sampled_from(["stated for real arithmetic; sampled in float64", "other"]),
    seeded=st.booleans(),
)
def test_records_survive_json(
    privacy: Privacy, adjacency: Adjacency, sampler: SamplerStatus, arithmetic: str, seeded: bool
) -> None:
    guarantee = Guarantee(privacy, adjacency, sampler, arithmetic, seeded)
    back = Guarantee.from_dict(json.loads(json.dumps(guarantee.to_dict())))
    assert back == guarantee
    assert str(back) == str(guarantee)


@given(privacy=st.builds(PureDP, epsilons), tv=st.floats(1e-300, 1e-12))
def test_approximate_samplers_survive_json(privacy: PureDP, tv: float) -> None:
    guarantee = Guarantee(privacy, Adjacency.REPLACE_ONE, Approximate(tv, "a proof"))
    assert Guarantee.from_dict(json.loads(json.dumps(guarantee.to_dict()))) == guarantee


RECORD = Guarantee(ApproxDP(1.0, 1e-6), Adjacency.ADD_REMOVE, Exact()).to_dict()


@pytest.mark.parametrize("missing", sorted(set(RECORD) - {"withdrawn"}))
def test_incomplete_records_are_refused(missing: str) -> None:
    record = {name: value for name, value in RECORD.items() if name != missing}
    with pytest.raises(ValueError, match="not a privacy record"):
        Guarantee.from_dict(record)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("definition", "PerfectDP", "not a privacy record"),
        ("definition", "PureDP", "not a privacy record"),
        ("parameters", {"epsilon": 1.0, "delta": 1e-6, "extra": 0}, "not a privacy record"),
        ("parameters", {"epsilon": 0.1, "delta": 1e-6}, "statement must be"),
        ("parameters", {"epsilon": -1.0, "delta": 1e-6}, "epsilon must be"),
        ("adjacency", "replace-one", "statement must be"),
        ("adjacency", "other", "other"),
        ("sampler", "guessed", "not a privacy record"),
        ("seeded", True, "statement must be"),
        ("withdrawn", "edges of age were read from the records", "statement must be"),
        ("withdrawn", 3, "withdrawn must be a text"),
        ("arithmetic", "exact", "statement must be"),
        ("statement", "0.001-DP", "statement must be"),
    ],
)
def test_doctored_records_are_refused(name: str, value: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Guarantee.from_dict({**RECORD, name: value})
