"""Definitions of differential privacy: composition (GEN-2), conversions, and scales of noise.

Totals and scales are rounded up, and steps within a total are rounded down.
"""

from __future__ import annotations

import enum
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from typing import Any, overload

import numpy as np
import scipy

from geomdp._numerics.linalg import largest_at_most
from geomdp._typing import FloatArray
from geomdp._validation import positive, real_number, whole

#: Precision at which costs are computed. Products of two floats, and sums of floats that differ by
#: a factor of at most 2^200, are exact.
BITS = 256


class Adjacency(enum.Enum):
    """Which pairs of data sets are neighbours (GEN-1).

    Examples
    --------
    >>> import geomdp as gd
    >>> print(gd.Adjacency.REPLACE_ONE, gd.Adjacency("add/remove"))
    Adjacency.REPLACE_ONE Adjacency.ADD_REMOVE
    """

    #: Replace one record; the number of records n is public.
    REPLACE_ONE = "replace-one"
    #: Add or remove one record. If answers are divided by a number n, n is declared and public.
    ADD_REMOVE = "add/remove"

    def __repr__(self) -> str:
        return str(self)


def checked_adjacency(adjacency: object) -> Adjacency:
    if not isinstance(adjacency, Adjacency):
        members = ", ".join(f"Adjacency.{member.name}" for member in Adjacency)
        raise ValueError(f"adjacency must be one of {members}, got {adjacency!r}")
    return adjacency


def _below_half(value: float, name: str) -> float:
    number = real_number(value)
    if not 0 < number < 0.5:
        raise ValueError(f"{name} must be above 0 and below 1/2, got {value!r}")
    return number


def rounded_up(formula: Callable[..., Any], *values: float) -> float:
    """`formula` of `values` in balls, rounded up to the least float64 or the next; may be inf."""
    from flint import arb, ctx  # imported here because importing flint is slow

    with ctx.workprec(BITS):
        highest = arb(formula(*map(arb, values))).upper()
        if not highest.is_finite():
            return math.inf
        near = float(highest)
        return near if near >= highest else math.nextafter(near, math.inf)


def printed_down(value: float, digits: int = 6) -> str:
    """The text of an unspent budget or a lower bound: read as a float64, it is at most `value`."""
    return printed(value, digits, ROUND_FLOOR)


def printed(value: float, digits: int = 6, rounding: str = ROUND_CEILING) -> str:
    """The text of a privacy parameter: read as a float64, it is at least `value`."""
    rounded = Context(prec=digits, rounding=rounding).create_decimal(repr(float(value)))
    return f"{float(rounded):.{digits}g}"


class Definition:
    """Base class of the definitions of privacy; the fields are the parameters."""

    def __post_init__(self) -> None:
        for name, value in [*vars(self).items()]:
            checked = _below_half if name == "delta" else positive
            object.__setattr__(self, name, checked(value, name))

    def parameters(self) -> dict[str, float]:
        """Parameters by name, as files of releases, ledgers and certificates store them."""
        return dict(vars(self))


@dataclass(frozen=True)
class PureDP(Definition):
    """epsilon-DP of a mechanism M: Pr[M(X) in S] <= e^epsilon Pr[M(X') in S].

    The inequality holds for all neighbours X, X' and all events S (GEN-2), with a finite
    epsilon > 0.

    Examples
    --------
    >>> import geomdp as gd
    >>> print(gd.PureDP(0.5))
    0.5-DP
    """

    epsilon: float

    def __str__(self) -> str:
        return f"{printed(self.epsilon)}-DP"


@dataclass(frozen=True)
class ApproxDP(Definition):
    """(epsilon, delta)-DP of a mechanism M: Pr[M(X) in S] <= e^epsilon Pr[M(X') in S] + delta.

    The inequality holds for all neighbours X, X' and all events S (GEN-2), with a finite
    epsilon > 0 and 0 < delta < 1/2.

    Examples
    --------
    >>> import geomdp as gd
    >>> print(gd.ApproxDP(epsilon=1.0, delta=1e-6))
    (1, 1e-06)-DP
    """

    epsilon: float
    delta: float

    def __str__(self) -> str:
        return f"({printed(self.epsilon)}, {printed(self.delta)})-DP"


@dataclass(frozen=True)
class ZCDP(Definition):
    """rho-zero-concentrated DP of a mechanism M: D_a(M(X) || M(X')) <= rho a for all a > 1.

    D_a is the Renyi divergence of order a, X and X' are any neighbours, and rho > 0 is finite.

    Examples
    --------
    >>> import geomdp as gd
    >>> print(gd.ZCDP(rho=0.5))
    0.5-zCDP
    """

    rho: float

    def __str__(self) -> str:
        return f"{printed(self.rho)}-zCDP"


Privacy = PureDP | ApproxDP | ZCDP


def check_privacy(
    privacy: object, *kinds: type[Definition], name: str = "privacy", user: str = ""
) -> None:
    """``ValueError`` unless `privacy` is one of `kinds` (by default any), which `user` needs."""
    kinds = kinds or (PureDP, ApproxDP, ZCDP)
    if not isinstance(privacy, kinds):
        *first, last = (kind.__name__ for kind in kinds)
        wanted = f"{', '.join(first)} or {last}" if first else last
        wanted += f" for {user}" if user else ""
        raise ValueError(f"{name} must be {wanted}, got {privacy!r}")


def privacy_from_parameters(definition: str, parameters: Mapping[str, float]) -> Privacy:
    """The definition with a class name and parameters; ``ValueError`` if they are invalid."""
    kinds: dict[str, type[Privacy]] = {kind.__name__: kind for kind in (PureDP, ApproxDP, ZCDP)}
    try:
        return kinds[definition](**parameters)
    except (KeyError, TypeError) as error:
        raise ValueError(
            f"this is not a privacy record: got the definition {definition!r} with the parameters "
            f"{parameters!r}"
        ) from error


# The range of privacy parameters for which noise and lower bounds are computed.


#: Smallest and largest epsilon or rho of a mechanism or lower bound. Far outside this range,
#: squares of noise scales can overflow, and searches for a scale or a lower bound may not end.
LEAST_LOSS, LARGEST_LOSS = 1e-12, 1e12


def _loss(privacy: Privacy) -> tuple[str, float]:
    """The name and the value of epsilon or rho."""
    check_privacy(privacy)
    return ("rho", privacy.rho) if isinstance(privacy, ZCDP) else ("epsilon", privacy.epsilon)


def check_range(privacy: Privacy, what: str = "a mechanism") -> None:
    """``ValueError`` if epsilon or rho is outside [1e-12, 1e12], before any budget is spent."""
    name, loss = _loss(privacy)
    if not LEAST_LOSS <= loss <= LARGEST_LOSS:
        raise ValueError(
            f"{name} of {what} must be from {LEAST_LOSS:g} to {LARGEST_LOSS:g}, got {loss!r}"
        )


#: Above this epsilon or rho, a release protects so little that the caller must know.
WEAK = 10


def weakness(privacy: Privacy) -> str:
    """What a guarantee with epsilon or rho above 10 means, on one line; empty for any other."""
    name, loss = _loss(privacy)
    if loss <= WEAK:
        return ""
    factor = f"by a factor of {'about' if name == 'rho' else 'up to'} e^{loss:g}"
    return f"{name} {loss:g} protects little: one record can change the odds of a result {factor}"


# Composition.


@overload
def basic_composition(parts: Sequence[PureDP]) -> PureDP: ...
@overload
def basic_composition(parts: Sequence[ZCDP]) -> ZCDP: ...
@overload
def basic_composition(parts: Sequence[PureDP | ApproxDP]) -> PureDP | ApproxDP: ...
@overload
def basic_composition(parts: Sequence[Privacy]) -> Privacy: ...
def basic_composition(parts: Sequence[Privacy]) -> Privacy:
    """Total cost of steps run on the same data: epsilons, deltas and rhos add up.

    `parts` are for the same adjacency. Parts of one type give this type, and `PureDP` with
    `ApproxDP` gives `ApproxDP`. A step may be chosen after earlier answers, but the number of steps
    and all privacy parameters are fixed beforehand. ``ValueError`` for no parts, a mix of zCDP with
    other definitions, a total delta of 1/2 or more, and a total beyond float64. Dwork-Roth 2014,
    Theorem 3.16; Bun-Steinke 2016, Lemma 1.7; formula sheet GEN-2.

    Examples
    --------
    >>> import geomdp as gd
    >>> print(gd.privacy.basic_composition([gd.PureDP(0.5), gd.ApproxDP(0.25, 1e-6)]))
    (0.75, 1e-06)-DP
    """
    if not parts:
        raise ValueError("parts must hold at least 1 step, got 0")
    for part in parts:
        check_privacy(part, name="parts")
    rhos = [part.rho for part in parts if isinstance(part, ZCDP)]
    if len(rhos) == len(parts):
        return ZCDP(sum_of_costs(rhos))
    if rhos:
        raise ValueError(
            f"parts must be all zCDP or contain no zCDP, got {len(rhos)} zCDP of {len(parts)} "
            "parts; convert with pure_to_zcdp or zcdp_to_approx"
        )
    epsilon = sum_of_costs([part.epsilon for part in parts if not isinstance(part, ZCDP)])
    deltas = [part.delta for part in parts if isinstance(part, ApproxDP)]
    return ApproxDP(epsilon, sum_of_costs(deltas)) if deltas else PureDP(epsilon)


def sum_of_costs(costs: Sequence[float]) -> float:
    """The sum of the parameters of several steps, rounded up; infinite if beyond float64."""
    return rounded_up(lambda *parts: sum(parts), *costs)


def group_privacy(privacy: Privacy, size: int) -> Privacy:
    """Guarantee for two data sets that are joined by a chain of `size` neighbouring pairs.

    For k = `size` >= 1, epsilon becomes k epsilon, rho becomes k^2 rho, and delta becomes
    delta (1 + e^epsilon + ... + e^((k-1) epsilon)). ``ValueError`` if the new delta is 1/2 or more.
    Dwork-Roth 2014, Theorem 2.2; Vadhan 2017, Lemma 2.2; Bun-Steinke 2016, Proposition 1.9; GEN-2.

    Examples
    --------
    >>> import geomdp as gd
    >>> print(gd.privacy.group_privacy(gd.ZCDP(0.5), size=3))
    4.5-zCDP
    """
    size = whole(size, "size")
    check_privacy(privacy)
    if size == 1:
        return privacy
    match privacy:
        case PureDP(epsilon=epsilon):
            return PureDP(rounded_up(lambda e: size * e, epsilon))
        case ApproxDP(epsilon=epsilon, delta=delta):
            # The sum is (e^(k epsilon) - 1) / (e^epsilon - 1).
            of_group = rounded_up(lambda e, d: d * (size * e).expm1() / e.expm1(), epsilon, delta)
            return ApproxDP(rounded_up(lambda e: size * e, epsilon), of_group)
        case ZCDP(rho=rho):
            return ZCDP(rounded_up(lambda r: size**2 * r, rho))


def member_privacy(privacy: Privacy, size: int) -> Privacy:
    """The weakest guarantee for one row that gives `privacy` for a group of k = `size` >= 1 rows.

    The inverse of `group_privacy`, rounded down: epsilon / k, rho / k^2, and for ApproxDP with
    epsilon' = epsilon / k also delta (e^epsilon' - 1) / (e^epsilon - 1). A mechanism with it
    protects a person of whose rows at most k are counted. GEN-2.

    Examples
    --------
    >>> import geomdp as gd
    >>> print(gd.privacy.member_privacy(gd.ZCDP(4.5), size=3))
    0.5-zCDP
    """

    def down(formula: Callable[..., Any], *values: float) -> float:
        return -rounded_up(lambda *balls: -formula(*balls), *values)

    size = whole(size, "size")
    check_privacy(privacy)
    if size == 1:
        return privacy
    if isinstance(privacy, ZCDP):
        return ZCDP(down(lambda r: r / size**2, privacy.rho))
    epsilon = down(lambda e: e / size, privacy.epsilon)
    if isinstance(privacy, PureDP):
        return PureDP(epsilon)
    # The factor covers the rounding error of `group_privacy`, which is far smaller.
    share = 1 - 2.0**-52
    delta = down(lambda e, d: share * d * e.expm1() / (size * e).expm1(), epsilon, privacy.delta)
    return ApproxDP(epsilon, delta)


def advanced_composition(step: PureDP | ApproxDP, steps: int, slack_delta: float) -> ApproxDP:
    """Cost of T adaptive steps of (epsilon_0, delta_0)-DP, by advanced composition.

    epsilon = sqrt(2 T ln(1/delta')) epsilon_0 + T epsilon_0 (e^epsilon_0 - 1),
    delta = T delta_0 + delta',

    where `steps` is T >= 1 and `slack_delta` is delta' in (0, 1/2). For few steps or a large
    epsilon_0, `basic_composition` gives less. ``ValueError`` for a parameter out of range, a total
    delta of 1/2 or more, or an epsilon beyond float64. Dwork-Roth 2014, Theorem 3.20; formula sheet
    GEN-2a.

    Examples
    --------
    >>> import geomdp as gd
    >>> total = gd.privacy.advanced_composition(gd.PureDP(0.01), steps=1000, slack_delta=1e-6)
    >>> round(total.epsilon, 3), total.delta
    (1.763, 1e-06)
    """
    steps, slack_delta = whole(steps, "steps"), _below_half(slack_delta, "slack_delta")
    check_privacy(step, PureDP, ApproxDP, name="step")
    step_delta = step.delta if isinstance(step, ApproxDP) else 0.0
    epsilon = _advanced_epsilon(step.epsilon, steps, slack_delta)
    delta = rounded_up(lambda each, slack: steps * each + slack, step_delta, slack_delta)
    return ApproxDP(epsilon, delta)


def largest_step_epsilon(total: ApproxDP, steps: int) -> float:
    """Largest epsilon_0 that advanced composition allows for each of T adaptive pure steps.

    For `total` = (epsilon, delta) and `steps` = T, bisection finds the largest epsilon_0, rounded
    down, for which T steps cost at most `total` by `advanced_composition` with `slack_delta` =
    delta. Basic composition allows epsilon_0 = epsilon / T, which is larger for T <= 2 ln(1/delta).
    Dwork-Roth 2014, Theorem 3.20; formula sheet GEN-2a, GEN-2b (library rule).

    Examples
    --------
    >>> import geomdp as gd
    >>> round(gd.privacy.largest_step_epsilon(gd.ApproxDP(1.0, 1e-6), steps=1000), 5)
    0.00581
    """
    steps = whole(steps, "steps")
    check_privacy(total, ApproxDP, name="total")
    # Upper end of the bisection: each summand alone must be at most epsilon. If epsilon_0 > 1, the
    # second summand gives e^epsilon_0 - 1 <= epsilon / T. This bound keeps e^epsilon_0 finite.
    highest = min(
        total.epsilon / math.sqrt(-2 * steps * math.log(total.delta)),
        max(1.0, math.log1p(total.epsilon / steps)),
    )
    return largest_at_most(
        lambda epsilon: _advanced_epsilon(epsilon, steps, total.delta), total.epsilon, 0.0, highest
    )


def shortcut_step_epsilon(total: ApproxDP, steps: int) -> float:
    """The textbook step epsilon_0 = epsilon / sqrt(8 T ln(1/delta)), proved for epsilon <= 1.

    Use it only to compare with published constants: `largest_step_epsilon` gives a larger step. The
    formula needs T epsilon_0 (e^epsilon_0 - 1) <= epsilon / 2, which holds for epsilon <= 1 and
    delta <= 1/2, but not in general (DISC-5). ``ValueError`` for an epsilon above 1. Dwork-Roth
    2014, Corollary 3.21; formula sheet GEN-2b.

    Examples
    --------
    >>> import geomdp as gd
    >>> round(gd.privacy.shortcut_step_epsilon(gd.ApproxDP(1.0, 1e-6), steps=1000), 5)
    0.00301
    """
    steps = whole(steps, "steps")
    check_privacy(total, ApproxDP, name="total")
    if total.epsilon > 1:
        raise ValueError(f"epsilon must be at most 1 for the shortcut, got {total.epsilon!r}")
    # The constant 8 makes each summand in `advanced_composition` at most epsilon / 2.
    return total.epsilon / math.sqrt(-8 * steps * math.log(total.delta))


def _advanced_epsilon(step_epsilon: float, steps: int, slack_delta: float) -> float:
    return rounded_up(
        lambda step, slack: (-2 * steps * slack.log()).sqrt() * step + steps * step * step.expm1(),
        step_epsilon,
        slack_delta,
    )


# Conversions between privacy definitions, and between neighbour relations.


def pure_to_zcdp(privacy: PureDP) -> ZCDP:
    """epsilon-DP implies (epsilon tanh(epsilon / 2))-zCDP, for the same adjacency.

    No smaller rho holds for all epsilon-DP mechanisms: randomised response needs this one. It is
    below epsilon^2 / 2 (Bun-Steinke 2016, Proposition 1.4) and below epsilon. ``ValueError`` if
    epsilon is outside [1e-150, 1e150], where its square may not fit in float64.
    Harrison-Manurangsi 2025 (arXiv 2510.25746); formula sheet X-TANH.

    Examples
    --------
    >>> import geomdp as gd
    >>> print(gd.privacy.pure_to_zcdp(gd.PureDP(1.0)))
    0.462118-zCDP
    """
    check_privacy(privacy, PureDP)
    if not 1e-150 <= privacy.epsilon <= 1e150:
        raise ValueError(f"epsilon must be from 1e-150 to 1e150, got {privacy.epsilon}")
    return ZCDP(rho_of_pure(privacy.epsilon))


def rho_of_pure(epsilon: float, step: float = 1.0) -> float:
    """The least rho of epsilon-DP noise, rounded up; infinite beyond float64.

    By default, this is rho for the worst epsilon-DP mechanism, epsilon tanh(epsilon / 2). For noise
    with probabilities proportional to e^(-epsilon |z|) on the multiples z of `step`, moved by a
    multiple of at most 1, or Laplace noise (`step` = 0), it is

        rho = epsilon - t / sinh(t) (1 - e^-epsilon)  with t = `step` epsilon,

    where t / sinh(t) = 1 for t = 0. As a function of a change c in place of 1, rho is convex and 0
    at c = 0. So it also holds for independent noise on many numbers whose changes add up to at most
    1, and it increases with `step`, so the largest of several steps holds for all (X-TANH).
    """
    # Proof. Let L be the privacy loss, and E the integral or sum over the root of the product of
    # the two laws. Both laws are symmetric about their centres, so for k = 2 a - 1 the Renyi
    # divergence of order a is ln(F(k^2)) / (a - 1) with F(k^2) = E cosh(k L / 2) and F(1) = 1. If
    # ln F is concave, the divergence is at most 4 a F'(1), which is a times that of order 1, rho.
    # Randomised response is the worst mechanism at every order. Its F is cosh(k epsilon / 2) /
    # cosh(epsilon / 2), and ln cosh(sqrt(u) x) has the derivative x tanh(sqrt(u) x) /
    # (2 sqrt(u)) in u, which falls. For noise on a lattice, F is a positive multiple of
    #     2 cosh(k j t / 2) / (1 - q) + sum over 0 < i < j of cosh(k t (i - j / 2)),
    # with q = e^-t, if it is moved by j steps. For k = iw and z = e^(iwt), it is 0 only if z^j
    # times (z - q) / (1 - q z) is 1, which has j + 1 solutions, all with |z| = 1. So all zeros
    # u = k^2 of F are real and below 0, and F has order 1/2: ln F(u) is a constant plus a sum of
    # ln(1 + u / c) over positive c, which is concave. The limit j to infinity is Laplace noise.
    if step == 1:
        return rounded_up(lambda e: e * (e / 2).tanh(), epsilon)
    if step == 0:
        return rounded_up(lambda e: e + (-e).expm1(), epsilon)
    return rounded_up(lambda e, s: e + s * e / (s * e).sinh() * (-e).expm1(), epsilon, step)


def largest_epsilon(rho: float, step: float = 1.0) -> float:
    """The largest epsilon whose `rho_of_pure` for the same `step` is at most `rho`."""
    # For every step, rho(epsilon) is at most epsilon and epsilon^2 / 2, and at least
    # epsilon^2 / (2 + epsilon), which is at least rho at the upper end.
    root = math.sqrt(2) * math.sqrt(rho)
    least, most = max(rho, root) * (1 - 1e-12), (rho + root) * (1 + 1e-12)
    return largest_at_most(lambda epsilon: rho_of_pure(epsilon, step), rho, least, most)


def calibrated_epsilon(privacy: PureDP | ZCDP, step: float) -> float:
    """The epsilon with which noise as in `rho_of_pure` gives `privacy`."""
    return privacy.epsilon if isinstance(privacy, PureDP) else largest_epsilon(privacy.rho, step)


def pure_implying(privacy: Privacy) -> PureDP:
    """The largest epsilon for which epsilon-DP implies `privacy` (GEN-2, X-TANH)."""
    check_privacy(privacy)
    match privacy:
        case PureDP():
            return privacy
        case ApproxDP(epsilon=epsilon):
            return PureDP(epsilon)
        case ZCDP(rho=rho):
            return PureDP(largest_epsilon(rho))


def zcdp_to_approx(privacy: ZCDP, delta: float) -> ApproxDP:
    """rho-zCDP implies (rho + 2 sqrt(rho ln(1/delta)), delta)-DP, for the same adjacency.

    ``ValueError`` for a `delta` outside 0 < delta < 1/2. Bun-Steinke 2016, Proposition 1.3; GEN-2.

    Examples
    --------
    >>> import geomdp as gd
    >>> round(gd.privacy.zcdp_to_approx(gd.ZCDP(0.1), delta=1e-6).epsilon, 3)
    2.451
    """
    check_privacy(privacy, ZCDP)
    delta = _below_half(delta, "delta")
    epsilon = rounded_up(lambda r, d: r + 2 * (-r * d.log()).sqrt(), privacy.rho, delta)
    return ApproxDP(epsilon, delta)


def zcdp_to_approx_optimal_order(privacy: ZCDP, delta: float) -> ApproxDP:
    """The smallest epsilon that rho-zCDP gives through a single Renyi order.

        epsilon = min over a > 1 of  a rho + ln((a - 1) / a) - (ln delta + ln a) / (a - 1).

    It is never larger than the epsilon of `zcdp_to_approx`; the adjacency stays the same. For a
    delta of about sqrt(rho) or more, the minimum can be below rho or not positive; then
    epsilon = rho. ``ValueError`` for a `delta` outside 0 < delta < 1/2.

    Notes
    -----
    Proof for every order a > 1. Let P and Q be the output laws on neighbouring inputs, and Z the
    privacy loss ln(P/Q) under P. The least delta for epsilon is E max(0, 1 - e^(epsilon - Z)). Let
    c be the maximum over z of e^(-(a-1) z) (1 - e^(epsilon - z)), so that
    max(0, 1 - e^(epsilon - z)) <= c e^((a-1) z) for all z. It is attained where
    e^(epsilon - z) = (a - 1) / a, so c = e^(-(a-1) epsilon) (1 - 1/a)^a / (a - 1). By zCDP,
    E e^((a-1) Z) <= e^((a-1) a rho). Hence the least delta is at most
    e^((a-1) (a rho - epsilon)) (1 - 1/a)^a / (a - 1). Set this equal to delta, solve for epsilon.

    In t = a - 1, the derivative has the sign of rho t^2 + ln(1 + t) + ln delta, which increases. So
    there is one minimum, at a t of at most sqrt(ln(1/delta) / rho), and a rounded t is still valid.

    Canonne-Kamath-Steinke 2020, Corollary 13 (proved above); formula sheet GEN-2.

    Examples
    --------
    >>> import geomdp as gd
    >>> round(gd.privacy.zcdp_to_approx_optimal_order(gd.ZCDP(0.1), delta=1e-6).epsilon, 3)
    2.142
    """
    check_privacy(privacy, ZCDP)
    delta = _below_half(delta, "delta")
    rho, log_delta = privacy.rho, math.log(delta)
    t = largest_at_most(
        lambda t: rho * t * t + math.log1p(t),
        -log_delta,
        0.0,
        math.sqrt(-log_delta) / math.sqrt(rho),
    )
    epsilon = rounded_up(
        lambda t, r, d: (1 + t) * r - (1 / t).log1p() - (d.log() + t.log1p()) / t, t, rho, delta
    )
    return ApproxDP(max(epsilon, rho), delta)


def convert_adjacency(privacy: Privacy, source: Adjacency, target: Adjacency) -> Privacy:
    """The guarantee `privacy` implies under `target`; a replacement is a group of 2 (GEN-1)."""
    check_privacy(privacy)
    if checked_adjacency(source) is checked_adjacency(target):
        return privacy
    if target is Adjacency.ADD_REMOVE:
        raise ValueError(
            "a guarantee under replace-one gives none under add/remove: a mechanism with a "
            "replace-one guarantee may publish the number of records"
        )
    return group_privacy(privacy, 2)


# Scales of noise for a sensitivity. A scale is for one coordinate, in the units of the answers. Phi
# and phi are the distribution function and the density of N(0, 1).


def laplace_scale(sensitivity: float, privacy: PureDP) -> float:
    """Scale b = Delta_1 / epsilon of independent Laplace noise on every coordinate.

    `sensitivity` is Delta_1, the largest l1 distance of the answers of neighbours, finite and above
    0 (else ``ValueError``). The density is e^(-|x|/b) / (2b), with variance 2 b^2. The quotient is
    rounded up: epsilon b >= Delta_1 holds for the float64 values exactly. Dwork-Roth 2014, Theorem
    3.6; formula sheet GEN-3.

    Examples
    --------
    >>> import geomdp as gd
    >>> gd.privacy.laplace_scale(2.0, gd.PureDP(0.5))
    4.0
    """
    check_privacy(privacy, PureDP)
    sensitivity = positive(sensitivity, "sensitivity")
    return _scale(rounded_up(lambda change, e: change / e, sensitivity, privacy.epsilon))


def gaussian_scale(sensitivity: float, privacy: ZCDP | ApproxDP) -> float:
    """Smallest standard deviation of Gaussian noise that gives the guarantee, rounded up.

    For `ZCDP` it is Delta_2 / sqrt(2 rho) (Bun-Steinke 2016, Proposition 1.6), for `ApproxDP` the
    least at any epsilon (Balle-Wang 2018, Theorem 8). `sensitivity` is Delta_2, the largest
    Euclidean distance of the answers of neighbours. ``ValueError`` unless it is finite and above 0,
    and for `PureDP`, which Gaussian noise never gives. Formula sheet JL-GAUSS.

    Examples
    --------
    >>> import geomdp as gd
    >>> round(gd.privacy.gaussian_scale(1.0, gd.ApproxDP(1.0, 1e-6)), 3)
    4.225
    """
    match privacy:
        case ZCDP():
            return zcdp_gaussian_scale(sensitivity, privacy)
        case ApproxDP():
            return analytic_gaussian_scale(sensitivity, privacy)
        case _:
            raise ValueError(f"privacy must be ZCDP or ApproxDP for Gaussian noise, got {privacy}")


def zcdp_gaussian_scale(sensitivity: float, privacy: ZCDP) -> float:
    """`gaussian_scale` for zCDP; 2 rho sigma^2 >= Delta_2^2 holds for the float64 values."""
    check_privacy(privacy, ZCDP)
    sensitivity = positive(sensitivity, "sensitivity")
    return _scale(rounded_up(lambda change, r: change / (2 * r).sqrt(), sensitivity, privacy.rho))


def analytic_gaussian_scale(sensitivity: float, privacy: ApproxDP) -> float:
    """`gaussian_scale` for (epsilon, delta)-DP: the least sigma with `gaussian_delta` <= delta."""
    check_privacy(privacy, ApproxDP)
    sensitivity, epsilon = positive(sensitivity, "sensitivity"), privacy.epsilon
    # Bisection in a = theta/2 - epsilon/theta, with theta = Delta_2 / sigma. The lower end has
    # Phi(a) = delta, where the noise has a delta of at most Phi(a). The upper end has
    # Phi(a) = 3/4, where delta is at least Phi(a) - Phi(-a) = 1/2, and `ApproxDP` has less.
    a = largest_at_most(
        lambda a: _log_delta(a, epsilon),
        math.log(privacy.delta),
        # `ndtri` has a relative error of 1e-14. The margin keeps Phi(lower end) below delta.
        float(scipy.special.ndtri(privacy.delta)) * (1 + 1e-12) - 1e-12,
        float(scipy.special.ndtri(0.75)),
    )
    # The factor 1 + 2^-50 rounds up: the few operations before it have rounding errors of about
    # half a unit in the last place each.
    return _scale(sensitivity / _theta(a, epsilon) * (1 + 4 * np.finfo(np.float64).eps))


def gaussian_delta(sensitivity: float, scale: float, epsilon: float) -> float:
    """The least delta in [0, 1] for which Gaussian noise is (epsilon, delta)-DP.

    delta = Phi(theta/2 - epsilon/theta) - e^epsilon Phi(-theta/2 - epsilon/theta) for
    theta = Delta_2 / sigma, where `sensitivity` is Delta_2 and `scale` is sigma. ``ValueError`` for
    an argument, or a theta in float64, that is not finite and above 0. Balle-Wang 2018, Theorem 8;
    formula sheet JL-GAUSS.

    Examples
    --------
    >>> import geomdp as gd
    >>> [float(f"{gd.privacy.gaussian_delta(1.0, scale, 1.0):.2g}") for scale in (1.0, 2.0, 4.0)]
    [0.13, 0.0068, 2.9e-06]
    """
    theta = positive(sensitivity, "sensitivity") / positive(scale, "scale")
    epsilon, theta = positive(epsilon, "epsilon"), positive(theta, "sensitivity / scale")
    a = theta / 2 - epsilon / theta
    # delta <= Phi(a), and Phi(-39) is below half the smallest positive float64.
    return 0.0 if a < -39 else math.exp(_log_delta(a, epsilon))


def _scale(value: float) -> float:
    """`value`; ``ValueError`` if it is 0 or infinite."""
    return positive(value, "the noise scale (from the sensitivity and the guarantee)")


def _theta(a: float, epsilon: float) -> float:
    """Positive root theta of a = theta/2 - epsilon/theta, without cancellation."""
    b = math.hypot(a, math.sqrt(2) * math.sqrt(epsilon))
    return a + b if a > 0 else 2 * epsilon / (b - a)


def _log_delta(a: float, epsilon: float) -> float:
    """ln delta of Gaussian noise with a = theta/2 - epsilon/theta, precise even for tiny delta.

    With b = a + theta and R(x) = Phi(-x) / phi(x), delta = phi(a) (R(-a) - R(b)). For theta < 1,
    the difference is an integral without cancellation. For theta >= 1 and 0 < -a <= 39, it is at
    least R(-a) / 41, so the subtraction loses at most two digits; for -a > 39, delta underflows.
    """
    theta, b = _theta(a, epsilon), math.hypot(a, math.sqrt(2) * math.sqrt(epsilon))
    if theta < 1:
        return -a * a / 2 - math.log(2 * math.pi) / 2 + _log_mills_difference(-a, theta)
    if a < 0:
        upper, lower = scipy.special.erfcx(np.array([-a, b]) / math.sqrt(2))
        return -a * a / 2 + math.log((upper - lower) / 2)
    log_upper = float(scipy.special.log_ndtr(a))
    # ln(e^epsilon Phi(-b)) = ln(phi(a) R(b)).
    log_lower = -a * a / 2 + math.log(float(scipy.special.erfcx(b / math.sqrt(2))) / 2)
    return log_upper + math.log1p(-math.exp(log_lower - log_upper))


def _log_mills_difference(x: float, theta: float) -> float:
    """ln(R(x) - R(x + theta)) for -1/2 < x, theta < 1, by a positive integrand: no cancellation."""
    c = max(1.0, x)
    v, weights = _quadrature()
    integrand = np.exp(-((v / c) ** 2) / 2 - x / c * v) * -np.expm1(-theta / c * v)
    return math.log(float(weights @ integrand) / c)


@functools.cache
def _quadrature() -> tuple[FloatArray, FloatArray]:
    """Gauss-Legendre nodes and weights on [0, 40]; 64 nodes agree with adaptive rules to 2e-14."""
    nodes, weights = np.polynomial.legendre.leggauss(80)
    return 20 * (nodes + 1), 20 * weights
