import json
import math
import re

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
    PureDP,
    pure_to_zcdp,
    shortcut_step_epsilon,
)
from geomdp.privacy.definitions import LARGEST_LOSS, LEAST_LOSS, check_range, checked_adjacency
from geomdp.privacy.guarantees import FLOAT64_CAVEAT, rounded_arithmetic

BAD = [0.0, -1.0, math.nan, math.inf, -math.inf]


@pytest.mark.parametrize("value", BAD)
def test_parameters_are_checked(value):
    for build in (PureDP, ZCDP, lambda epsilon: ApproxDP(epsilon, 1e-6)):
        with pytest.raises(ValueError, match="must be a finite number above 0"):
            build(value)


@pytest.mark.parametrize("value", ["1", "x", None, True, [1.0], 1j, 10**400])
def test_only_real_numbers_are_parameters(value):
    """Booleans, complex numbers and texts that spell numbers are refused."""
    for build in (PureDP, ZCDP, lambda epsilon: ApproxDP(epsilon, 1e-6)):
        with pytest.raises(ValueError, match="must be a finite number above 0, got"):
            build(value)
    with pytest.raises(ValueError, match="delta must be above 0 and below 1/2"):
        ApproxDP(1.0, value)


@pytest.mark.parametrize("delta", [*BAD, 0.5, 1.0])
def test_delta_is_checked(delta):
    with pytest.raises(ValueError, match="delta must be above 0 and below 1/2"):
        ApproxDP(1.0, delta)


@pytest.mark.parametrize("tv", [0.0, 1.0, -0.1, math.nan])
def test_total_variation_is_checked(tv):
    with pytest.raises(ValueError, match="tv must be above 0 and below 1"):
        Approximate(tv, "a proof")


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


@pytest.mark.parametrize("epsilon", [20.0, 1e4])
def test_an_approximate_sampler_that_proves_nothing_is_refused(epsilon):
    guarantee = Guarantee(PureDP(epsilon), Adjacency.REPLACE_ONE, Approximate(1e-6, "a proof"))
    with pytest.raises(ValueError, match="below 1/2"):
        _ = guarantee.effective


def test_an_approximate_sampler_has_no_zcdp_statement():
    guarantee = Guarantee(ZCDP(0.5), Adjacency.REPLACE_ONE, Approximate(1e-6, "a proof"))
    with pytest.raises(ValueError, match="no zCDP guarantee"):
        _ = guarantee.effective


def test_an_exact_sampler_claims_what_it_was_calibrated_to():
    guarantee = Guarantee(PureDP(1.5), Adjacency.ADD_REMOVE, Exact())
    assert guarantee.effective == PureDP(1.5)
    assert str(guarantee).startswith("1.5-DP, add/remove; ")


def test_a_heuristic_sampler_claims_nothing():
    guarantee = Guarantee(PureDP(1.0), Adjacency.REPLACE_ONE, Heuristic("hit-and-run, 10 steps"))
    with pytest.raises(ValueError, match="nothing is proved"):
        _ = guarantee.effective
    assert str(guarantee).startswith("heuristic (hit-and-run, 10 steps), target 1-DP")


def test_a_seeded_release_claims_nothing():
    guarantee = Guarantee(PureDP(1.0), Adjacency.REPLACE_ONE, Exact()).as_seeded()
    assert str(guarantee) == "seeded: no privacy claim"
    assert guarantee.to_dict()["statement"] == "seeded: no privacy claim"


def test_the_record_is_json():
    guarantee = Guarantee(ApproxDP(1.0, 1e-6), Adjacency.REPLACE_ONE, Exact())
    record = json.loads(json.dumps(guarantee.to_dict()))
    assert record["definition"] == "ApproxDP"
    assert record["parameters"] == {"epsilon": 1.0, "delta": 1e-6}
    assert record["adjacency"] == "replace-one"
    assert record["sampler"] == "exact"
    assert record["seeded"] is False


def test_a_seeded_record_does_not_say_that_noise_is_correctly_rounded():
    rounded = Guarantee(
        PureDP(1.0), Adjacency.REPLACE_ONE, Exact(), arithmetic=rounded_arithmetic(8)
    )
    assert rounded.as_seeded().arithmetic == FLOAT64_CAVEAT


@pytest.mark.parametrize(
    ("slack", "enlarged"), [(0.0, ""), (1e-6, ", made larger by a proved slack of 1e-06")]
)
def test_words_of_correctly_rounded_noise(slack, enlarged):
    assert rounded_arithmetic(8, slack) == (
        f"noise correctly rounded to multiples of 2^-8{enlarged}; random bits from the "
        "operating system"
    )


def test_the_short_text_says_whether_a_release_was_seeded():
    guarantee = Guarantee(PureDP(1.0), Adjacency.REPLACE_ONE, Exact())
    assert repr(guarantee) == "Guarantee(1-DP, replace-one, exact sampler)"
    assert repr(guarantee.as_seeded()) == "Guarantee(1-DP, replace-one, exact sampler, seeded)"


def test_errors_name_the_argument_and_what_is_allowed():
    with pytest.raises(ValueError, match=r"^privacy must be"):
        pure_to_zcdp(ZCDP(1.0))
    with pytest.raises(ValueError, match=r"^total must be"):
        shortcut_step_epsilon(PureDP(1.0), 3)
    members = re.escape("Adjacency.REPLACE_ONE, Adjacency.ADD_REMOVE")
    with pytest.raises(ValueError, match=f"^adjacency must be one of {members}, got 'either'"):
        checked_adjacency("either")


@pytest.mark.parametrize("build", [PureDP, ZCDP, lambda epsilon: ApproxDP(epsilon, 1e-6)])
def test_only_parameters_in_the_range_are_calibrated(build):
    """The ends of the range are allowed, and the next floats beyond them are not."""
    for end, beyond in ((LEAST_LOSS, 0.0), (LARGEST_LOSS, math.inf)):
        check_range(build(end))
        privacy = build(math.nextafter(end, beyond))
        name = "rho" if isinstance(privacy, ZCDP) else "epsilon"
        with pytest.raises(ValueError, match=f"{name} of a mechanism must be from 1e-12 to 1e"):
            check_range(privacy)


def test_what_is_no_guarantee_is_in_no_range():
    with pytest.raises(ValueError, match="privacy must be"):
        check_range(1.0)
