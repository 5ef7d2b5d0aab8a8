"""Costs are rounded up: computed, and printed. Their exact values come from mpmath."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from mpmath import mpf

from geomdp.audit import AuditResult
from geomdp.cli.outputs import remaining
from geomdp.privacy import (
    ZCDP,
    Adjacency,
    ApproxDP,
    Approximate,
    Exact,
    Guarantee,
    Ledger,
    PureDP,
    advanced_composition,
    basic_composition,
    group_privacy,
    pure_to_zcdp,
    zcdp_to_approx,
    zcdp_to_approx_optimal_order,
)
from geomdp.privacy.definitions import printed, printed_down, rho_of_pure

#: Bits of the exact values. Numbers between 2^-1074 and 2^1024 are added without rounding.
EXACT = 2400
#: The last float64.
LARGEST = math.nextafter(math.inf, 0.0)
#: Floats over many powers of ten, and a few at which rounding to nearest goes down.
wide = st.floats(5e-324, 1e150) | st.sampled_from([0.1, 0.3, 1 / 3, 1e-170, 1e-160, 2.0])
epsilons = st.floats(5e-324, 600.0) | st.floats(1e-3, 10.0)
deltas = st.floats(5e-324, 0.49) | st.floats(1e-9, 1e-3)
sizes = st.integers(1, 10**6) | st.integers(1, 10)


def total(values):
    return mpmath.fsum(map(mpf, values))


def group_delta(epsilon, delta, size):
    return delta * mpmath.expm1(size * epsilon) / mpmath.expm1(epsilon)


def advanced(epsilon, steps, slack):
    root = mpmath.sqrt(-2 * steps * mpmath.log(slack))
    return root * epsilon + steps * epsilon * mpmath.expm1(epsilon)


def optimal_order(rho, delta):
    """The minimum over the orders 1 + t, at the root of the derivative in t."""
    goal = -mpmath.log(delta)
    low, high = mpf(0), min(mpmath.sqrt(goal / rho), mpmath.expm1(goal))
    for _ in range(160):  # the minimum is flat: its relative error is the square of that of t
        middle = (low + high) / 2
        small = rho * middle**2 + mpmath.log1p(middle) <= goal
        low, high = (middle, high) if small else (low, middle)
    t = high
    least = (1 + t) * rho - mpmath.log1p(1 / t) + (goal - mpmath.log1p(t)) / t
    return max(rho, least)


#: Arguments, the computed number, and the exact number for the same arguments as mpf.
COSTS = {
    "pure steps": (
        [st.lists(wide, min_size=1, max_size=9)],
        lambda parts: basic_composition([PureDP(part) for part in parts]).epsilon,
        total,
    ),
    "zCDP steps": (
        [st.lists(wide, min_size=1, max_size=9)],
        lambda parts: basic_composition([ZCDP(part) for part in parts]).rho,
        total,
    ),
    "deltas of steps": (
        [st.lists(deltas, min_size=1, max_size=9)],
        lambda parts: basic_composition([ApproxDP(1.0, part) for part in parts]).delta,
        total,
    ),
    "pure to zCDP": (
        [st.floats(1e-150, 1e150)],
        lambda epsilon: pure_to_zcdp(PureDP(epsilon)).rho,
        lambda epsilon: epsilon * mpmath.tanh(epsilon / 2),
    ),
    "rho of Laplace noise": (
        [st.floats(1e-6, 1e12)],
        lambda epsilon: rho_of_pure(epsilon, 0.0),
        lambda epsilon: epsilon + mpmath.expm1(-epsilon),
    ),
    "rho of geometric noise": (
        [st.floats(1e-6, 1e4), st.floats(1e-6, 1.0)],
        rho_of_pure,
        lambda epsilon, step: (
            epsilon + step * epsilon / mpmath.sinh(step * epsilon) * mpmath.expm1(-epsilon)
        ),
    ),
    "zCDP to approximate": (
        [wide, deltas],
        lambda rho, delta: zcdp_to_approx(ZCDP(rho), delta).epsilon,
        lambda rho, delta: rho + 2 * mpmath.sqrt(-rho * mpmath.log(delta)),
    ),
    "group, epsilon": (
        [wide, sizes],
        lambda epsilon, size: group_privacy(PureDP(epsilon), size).epsilon,
        lambda epsilon, size: size * epsilon,
    ),
    "group, rho": (
        [wide, sizes],
        lambda rho, size: group_privacy(ZCDP(rho), size).rho,
        lambda rho, size: size**2 * rho,
    ),
    "group, delta": (
        [epsilons, deltas, sizes],
        lambda epsilon, delta, size: group_privacy(ApproxDP(epsilon, delta), size).delta,
        group_delta,
    ),
    "advanced, epsilon": (
        [epsilons, sizes, deltas],
        lambda epsilon, steps, slack: advanced_composition(PureDP(epsilon), steps, slack).epsilon,
        advanced,
    ),
    "advanced, delta": (
        [deltas, sizes, deltas],
        lambda each, steps, slack: advanced_composition(ApproxDP(1.0, each), steps, slack).delta,
        lambda each, steps, slack: steps * each + slack,
    ),
    "approximate sampler": (
        [epsilons, deltas, deltas],
        lambda epsilon, delta, tv: (
            Guarantee(
                ApproxDP(epsilon, delta), Adjacency.REPLACE_ONE, Approximate(tv, "")
            ).effective.delta
        ),
        lambda epsilon, delta, tv: delta + (1 + mpmath.exp(epsilon)) * tv,
    ),
}


def exact_of(formula, values):
    """The formula at the exact values of floats, with `EXACT` bits."""
    return formula(*(mpf(v) if isinstance(v, float) else v for v in values))


@pytest.mark.parametrize("name", COSTS)
@given(st.data())
def test_a_cost_is_the_least_float_above_the_exact_one(name, data):
    """Or the float after it, where the ball of the cost holds the least float."""
    arguments, computed, formula = COSTS[name]
    values = [data.draw(argument) for argument in arguments]
    with mpmath.workprec(EXACT):
        exact = exact_of(formula, values)
        assume(exact < (0.49 if "delta" in name or "sampler" in name else LARGEST))
        found = computed(*values)
        assert mpf(found) >= exact
        assert mpf(math.nextafter(math.nextafter(found, 0.0), 0.0)) < exact


@given(st.floats(5e-324, 1e300) | st.floats(1e-6, 1e3), deltas)
def test_the_epsilon_of_the_optimal_order_is_not_below_the_minimum(rho, delta):
    found = zcdp_to_approx_optimal_order(ZCDP(rho), delta).epsilon
    with mpmath.workprec(600):
        least = exact_of(optimal_order, [rho, delta])
        assert least <= mpf(found) <= least * (1 + mpf(2) ** -50) + mpf(5e-324)


@given(st.lists(st.floats(1e-3, 0.1), min_size=1, max_size=9))
def test_what_is_left_of_a_budget_is_rounded_down_and_what_the_command_says_is_granted(parts):
    with Ledger(PureDP(1.0)) as ledger:
        for part in parts:
            ledger.spend(Guarantee(PureDP(part), Adjacency.REPLACE_ONE, Exact()), "one")
        exact, rest = ledger.left()["epsilon"], 1 - sum(map(Fraction, parts))
        assert rest * (1 - Fraction(1, 2**40)) <= Fraction(exact) <= rest
        left = float(remaining(ledger.budget, ledger.spends()).split()[1])
        assert exact - left <= 1e-5
        ledger.spend(Guarantee(PureDP(left), Adjacency.REPLACE_ONE, Exact()), "the rest")


@given(st.floats(5e-324, 1e308), st.integers(2, 6))
def test_a_budget_is_printed_up_and_what_is_left_is_printed_down(value, digits):
    up, down = float(printed(value, digits)), float(printed_down(value, digits))
    assert down <= value <= up
    # Both are decimals of `digits` digits, so they are equal or next to each other.
    assert up - down <= 2 * 10.0 ** (1 - digits) * value + 5e-324
    assert printed(up, digits) == printed_down(up, digits) == printed(value, digits)


def test_claims_are_printed_up():
    assert str(PureDP(1.0000049)) == "1.00001-DP"
    assert str(ApproxDP(0.1, 1.0000001e-6)) == "(0.1, 1.00001e-06)-DP"
    assert str(ZCDP(1 / 3)) == "0.333334-zCDP"
    assert str(Approximate(1.0000001e-9, "proof")) == "approximate (tv 1.00001e-09, proof)"


def test_an_audit_prints_its_claim_up_and_its_lower_bound_down():
    claim = ApproxDP(1.0000001, 1.0000001e-6)
    result = AuditResult(
        True, 1.23456, 1.0000001, 1.0000001e-6, 0.05, 10, 9, 1, "x", "", claim, None, 0.0
    )
    assert "claimed epsilon=1.00001; epsilon_lower_bound=1.234; delta=1.00001e-06" in repr(result)
    assert "The claim of (1.00001, 1.00001e-06)-DP is refuted" in str(result)
    assert "an epsilon of at least 1.234." in str(result)
