from __future__ import annotations

import json
import math

import pytest
from hypothesis import example, given
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
    pure_to_zcdp,
    shortcut_step_epsilon,
)
from geomdp.privacy.definitions import (
    LARGEST_LOSS,
    LEAST_LOSS,
    check_range,
    checked_adjacency,
    weakness,
)
from geomdp.privacy.guarantees import FLOAT64_CAVEAT, SamplerStatus, rounded_arithmetic

KINDS = (PureDP, ZCDP, lambda epsilon: ApproxDP(epsilon, 1e-6))


def claimed(privacy, sampler):
    return Guarantee(privacy, Adjacency.REPLACE_ONE, sampler).effective


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: PureDP(10**400), "epsilon must be a finite number above 0, got"),
        (lambda: ZCDP(0.0), "rho must be a finite number above 0, got"),
        (lambda: ApproxDP(1.0, 0.5), "delta must be above 0 and below 1/2"),
        (lambda: ApproxDP(1.0, 0.0), "delta must be above 0 and below 1/2"),
        (lambda: Approximate(1.0, "a proof"), "tv must be above 0 and below 1"),
        (lambda: claimed(PureDP(20.0), Approximate(1e-6, "a proof")), "below 1/2"),
        (lambda: claimed(PureDP(1e4), Approximate(1e-6, "a proof")), "below 1/2"),
        (lambda: claimed(ZCDP(0.5), Approximate(1e-6, "a proof")), "no zCDP guarantee"),
        (lambda: pure_to_zcdp(ZCDP(1.0)), "^privacy must be"),
        (lambda: shortcut_step_epsilon(PureDP(1.0), 3), "^total must be"),
        (lambda: check_range(1.0), "privacy must be"),
        (
            lambda: checked_adjacency("either"),
            r"^adjacency must be one of Adjacency\.REPLACE_ONE, Adjacency\.ADD_REMOVE, got",
        ),
    ],
)
def test_refusals(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@given(st.floats(1e-6, 5.0), st.floats(1e-12, 1e-4), st.floats(1e-12, 1e-4))
def test_an_approximate_sampler_costs_delta(epsilon, delta, tv):
    # By SAM-1 the release is (epsilon, delta + (1 + e^epsilon) tv)-DP.
    sampler = Approximate(tv, "a proof")
    cost = (1 + math.exp(epsilon)) * tv
    pure = Guarantee(PureDP(epsilon), Adjacency.REPLACE_ONE, sampler)
    assert pure.effective.epsilon == epsilon
    assert pure.effective.delta == pytest.approx(cost, rel=1e-15, abs=0)
    approx = Guarantee(ApproxDP(epsilon, delta), Adjacency.REPLACE_ONE, sampler)
    assert approx.effective.epsilon == epsilon
    assert approx.effective.delta == pytest.approx(delta + cost, rel=1e-15, abs=0)


def test_an_exact_sampler_claims_what_it_was_calibrated_to():
    guarantee = Guarantee(PureDP(1.5), Adjacency.ADD_REMOVE, Exact())
    assert guarantee.effective == PureDP(1.5)
    assert str(guarantee).startswith("1.5-DP, add/remove; ")
    assert repr(guarantee) == "Guarantee(1.5-DP, add/remove, exact sampler)"


def test_a_heuristic_sampler_claims_nothing():
    guarantee = Guarantee(PureDP(1.0), Adjacency.REPLACE_ONE, Heuristic("hit-and-run, 10 steps"))
    with pytest.raises(ValueError, match="nothing is proved"):
        _ = guarantee.effective
    assert str(guarantee).startswith("heuristic (hit-and-run, 10 steps), target 1-DP")


def test_a_seeded_release_claims_nothing():
    rounded = rounded_arithmetic(8)
    guarantee = Guarantee(PureDP(1.0), Adjacency.REPLACE_ONE, Exact(), rounded).as_seeded()
    assert str(guarantee) == "seeded: no privacy claim"
    assert guarantee.to_dict()["statement"] == "seeded: no privacy claim"
    assert repr(guarantee) == "Guarantee(1-DP, replace-one, exact sampler, seeded)"
    assert guarantee.arithmetic == FLOAT64_CAVEAT  # it does not say that noise is rounded
    assert "made larger by a proved slack of 1e-06;" in rounded_arithmetic(8, 1e-6)


def test_the_record_is_json():
    guarantee = Guarantee(ApproxDP(1.0, 1e-6), Adjacency.REPLACE_ONE, Exact())
    record = json.loads(json.dumps(guarantee.to_dict()))
    assert (record["definition"], record["sampler"]) == ("ApproxDP", "exact")
    assert record["parameters"] == {"epsilon": 1.0, "delta": 1e-6}
    assert (record["adjacency"], record["seeded"]) == ("replace-one", False)


@pytest.mark.parametrize("build", KINDS)
def test_only_parameters_in_the_range_are_calibrated(build):
    """The ends of the range are allowed, and the next floats beyond them are not."""
    for end, beyond in ((LEAST_LOSS, 0.0), (LARGEST_LOSS, math.inf)):
        check_range(build(end))
        privacy = build(math.nextafter(end, beyond))
        name = "rho" if isinstance(privacy, ZCDP) else "epsilon"
        with pytest.raises(ValueError, match=f"{name} of a mechanism must be from 1e-12 to 1e"):
            check_range(privacy)


# Privacy records are the same after a round trip through JSON; doctored records are refused.

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
@example(PureDP(1.0), Adjacency.REPLACE_ONE, Approximate(1e-300, "a proof"), "other", False)
def test_records_survive_json(
    privacy: Privacy, adjacency: Adjacency, sampler: SamplerStatus, arithmetic: str, seeded: bool
) -> None:
    guarantee = Guarantee(privacy, adjacency, sampler, arithmetic, seeded)
    back = Guarantee.from_dict(json.loads(json.dumps(guarantee.to_dict())))
    assert back == guarantee
    assert str(back) == str(guarantee)


RECORD = Guarantee(ApproxDP(1.0, 1e-6), Adjacency.ADD_REMOVE, Exact()).to_dict()


@pytest.mark.parametrize(
    "missing", sorted(set(RECORD) - {"withdrawn", "max_rows_per_person", "person"})
)
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
        ("withdrawn", 3, "withdrawn must be a str"),
        ("max_rows_per_person", 3, "statement must be"),
        ("max_rows_per_person", 0, "max_rows_per_person must be a whole number"),
        ("arithmetic", "exact", "statement must be"),
        ("statement", "0.001-DP", "statement must be"),
    ],
)
def test_doctored_records_are_refused(name: str, value: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Guarantee.from_dict({**RECORD, name: value})


def test_what_a_weak_guarantee_means() -> None:
    """epsilon bounds the privacy loss of every result; rho bounds only its mean."""
    factors = ((ApproxDP(11.0, 1e-6), "by a factor of up to e^11"), (ZCDP(11.0), "about e^11"))
    for privacy, factor in factors:
        assert weakness(privacy).endswith(factor)
    assert weakness(PureDP(10.0)) == weakness(ZCDP(10.0)) == ""
