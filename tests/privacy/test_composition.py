import math
from decimal import Decimal, localcontext

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geomdp.privacy import (
    ZCDP,
    ApproxDP,
    PureDP,
    advanced_composition,
    basic_composition,
    group_privacy,
    largest_step_epsilon,
    shortcut_step_epsilon,
)

ROUNDING = 1e-13
epsilons = st.floats(1e-6, 1e3)
deltas = st.floats(1e-300, 0.49)


@given(st.lists(st.tuples(epsilons, st.floats(1e-12, 0.02)), min_size=1, max_size=20), epsilons)
def test_pure_and_approximate_steps_add_up_in_any_order(pairs, pure):
    parts = [PureDP(pure), *(ApproxDP(*pair) for pair in pairs)]
    total = basic_composition(parts)
    epsilon, delta = map(math.fsum, zip((pure, 0.0), *pairs, strict=True))
    assert isinstance(total, ApproxDP)
    assert (total.epsilon, total.delta) == pytest.approx((epsilon, delta), rel=ROUNDING, abs=0)
    assert total == basic_composition(parts[::-1])


@given(epsilons, st.integers(1, 30), st.integers(1, 30))
def test_groups_of_groups(epsilon, first, second):
    once = group_privacy(PureDP(epsilon), first * second)
    twice = group_privacy(group_privacy(PureDP(epsilon), first), second)
    assert twice.epsilon == pytest.approx(once.epsilon, rel=ROUNDING, abs=0)
    rho = group_privacy(ZCDP(epsilon), first).rho
    assert rho == pytest.approx(first**2 * epsilon, rel=ROUNDING, abs=0)


@pytest.mark.parametrize("epsilon", [0.3, 5.0, 708.9, 710.0, 738.0])
@pytest.mark.parametrize("size", [1, 2, 7])
def test_group_delta_is_right_or_refused_for_every_epsilon(epsilon, size):
    delta = 5e-324  # the least positive float
    with localcontext() as context:
        context.prec = 40
        exact = Decimal(delta) * sum((k * Decimal(epsilon)).exp() for k in range(size))
    if exact < Decimal("0.5"):
        group = group_privacy(ApproxDP(epsilon, delta), size)
        assert group.epsilon == pytest.approx(size * epsilon, rel=ROUNDING, abs=0)
        assert group.delta == pytest.approx(float(exact), rel=1e-12, abs=5e-324)
    else:
        with pytest.raises(ValueError, match=r"delta must be above 0 and below 1/2, got (?!nan)"):
            group_privacy(ApproxDP(epsilon, delta), size)


def test_advanced_composition_oracle():
    # IC-T4 has 2B = 40 steps of epsilon_0 = epsilon / (4 sqrt(B ln(1/delta))). For epsilon = 1,
    # advanced composition of these steps gives only 0.50912.
    step = 1 / (4 * math.sqrt(20 * math.log(1e6)))
    assert step == pytest.approx(0.0150398, abs=5e-8)
    total = advanced_composition(PureDP(step), 40, 1e-6)
    assert total.epsilon == pytest.approx(0.50912, abs=5e-6)
    assert total.delta == 1e-6
    # The deltas of the steps add up, too.
    approximate = advanced_composition(ApproxDP(step, 1e-8), 40, 1e-6)
    assert approximate.epsilon == total.epsilon
    assert approximate.delta == pytest.approx(1.4e-6, rel=ROUNDING, abs=0)


@given(st.floats(1e-9, 1e9), deltas, st.integers(1, 10**9))
def test_largest_step_is_the_last_float_that_fits(epsilon, delta, steps):
    step = largest_step_epsilon(ApproxDP(epsilon, delta), steps)
    assert advanced_composition(PureDP(step), steps, delta).epsilon <= epsilon
    above = math.nextafter(step, math.inf)
    assert advanced_composition(PureDP(above), steps, delta).epsilon > epsilon


@given(st.floats(1e-6, 1.0), st.floats(1e-300, 0.499), st.integers(1, 10**6))
def test_the_shortcut_is_safe_in_its_range_and_never_beats_the_solution(epsilon, delta, steps):
    total = ApproxDP(epsilon, delta)
    shortcut = shortcut_step_epsilon(total, steps)
    assert shortcut == pytest.approx(
        epsilon / math.sqrt(8 * steps * math.log(1 / delta)), rel=ROUNDING, abs=0
    )
    assert advanced_composition(PureDP(shortcut), steps, delta).epsilon <= epsilon
    assert shortcut <= largest_step_epsilon(total, steps)


def test_the_shortcut_is_refused_where_it_is_wrong():
    # If epsilon is above about 4 ln(1/delta), steps of the textbook size cost more than epsilon in
    # total (DISC-5).
    epsilon, delta, steps = 4.0, 0.45, 1
    textbook = epsilon / math.sqrt(8 * steps * math.log(1 / delta))
    assert advanced_composition(PureDP(textbook), steps, delta).epsilon > epsilon
    with pytest.raises(ValueError, match="epsilon must be at most 1 for the shortcut, got 4"):
        shortcut_step_epsilon(ApproxDP(epsilon, delta), steps)
    fitting = largest_step_epsilon(ApproxDP(epsilon, delta), steps)
    assert advanced_composition(PureDP(fitting), steps, delta).epsilon <= epsilon


LARGE = "must be a finite number above 0, got inf"


@pytest.mark.parametrize(
    ("function", "arguments", "message"),
    [
        (basic_composition, ([],), "at least 1 step"),
        (basic_composition, ([ZCDP(0.25), PureDP(1.0)],), "1 zCDP of 2 parts"),
        (basic_composition, ([ApproxDP(1.0, 0.3), ApproxDP(1.0, 0.3)],), "below 1/2"),
        (basic_composition, ([PureDP(1e308)] * 2,), f"epsilon {LARGE}"),
        (basic_composition, ([ApproxDP(1e308, 1e-9)] * 2,), f"epsilon {LARGE}"),
        (basic_composition, ([ZCDP(1e308)] * 2,), f"rho {LARGE}"),
        (group_privacy, (PureDP(1.0), 0), "size must be a whole number"),
        (group_privacy, (ApproxDP(1.0, 0.2), 2), "below 1/2"),
        (group_privacy, (ApproxDP(800.0, 1e-300), 2), "below 1/2"),
        (advanced_composition, (PureDP(0.1), 10, 0.5), "slack_delta"),
        (advanced_composition, (PureDP(0.1), 0, 0.1), "steps must be a whole number"),
        (advanced_composition, (ZCDP(0.1), 1, 0.1), "step must be PureDP or ApproxDP"),
        (largest_step_epsilon, (ApproxDP(1.0, 1e-6), 0), "steps must be a whole number"),
        (shortcut_step_epsilon, (ApproxDP(1.0, 1e-6), 0), "steps must be a whole number"),
        (shortcut_step_epsilon, (ApproxDP(1 + 2**-52, 1e-6), 10), "epsilon must be at most 1"),
        (advanced_composition, (PureDP(1e4), 2, 1e-6), "epsilon must be a finite number"),
        *(
            (function, (total, 3), "must be ApproxDP")
            for function in (largest_step_epsilon, shortcut_step_epsilon)
            for total in (PureDP(1.0), ZCDP(0.5), 1.0)
        ),
    ],
)
def test_refusals(function, arguments, message):
    with pytest.raises(ValueError, match=message):
        function(*arguments)
