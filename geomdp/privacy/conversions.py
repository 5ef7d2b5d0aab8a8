"""Conversions between privacy definitions, and between neighbour relations, rounded up."""

from __future__ import annotations

import math

from geomdp._numerics.bisection import largest_at_most
from geomdp.privacy.composition import group_privacy
from geomdp.privacy.definitions import (
    ZCDP,
    Adjacency,
    ApproxDP,
    Privacy,
    PureDP,
    below_half,
    check_privacy,
    checked_adjacency,
    rounded_up,
)


def pure_to_zcdp(privacy: PureDP) -> ZCDP:
    """epsilon-DP implies (epsilon^2 / 2)-zCDP, for the same adjacency.

    ``ValueError`` if epsilon is outside [1e-150, 1e150]: its square may not fit in float64.
    Bun-Steinke 2016, Proposition 1.4; formula sheet GEN-2.

    Examples
    --------
    >>> import geomdp as gd
    >>> print(gd.privacy.pure_to_zcdp(gd.PureDP(1.0)))
    0.5-zCDP
    """
    check_privacy(privacy, PureDP)
    if not 1e-150 <= privacy.epsilon <= 1e150:
        raise ValueError(f"epsilon must be from 1e-150 to 1e150, got {privacy.epsilon}")
    return ZCDP(rho_of_pure(privacy.epsilon))


def rho_of_pure(epsilon: float) -> float:
    """epsilon^2 / 2, rounded up; infinite beyond float64."""
    return rounded_up(lambda e: e * e / 2, epsilon)


def pure_implying(privacy: Privacy) -> PureDP:
    """The largest epsilon for which epsilon-DP implies `privacy` by one of two rules.

    epsilon-DP implies (epsilon, delta)-DP for every delta, and (epsilon^2 / 2)-zCDP. For rho-zCDP,
    the result sqrt(2 rho) is rounded down: epsilon^2 / 2 <= rho holds for the float64 values in
    exact arithmetic. The adjacency stays the same. Bun-Steinke 2016, Proposition 1.4; formula sheet
    GEN-2.

    Examples
    --------
    >>> import geomdp as gd
    >>> print(gd.privacy.pure_implying(gd.ZCDP(0.5)))
    1-DP
    >>> print(gd.privacy.pure_implying(gd.ApproxDP(1.0, 1e-6)))
    1-DP
    """
    check_privacy(privacy)
    match privacy:
        case PureDP():
            return privacy
        case ApproxDP(epsilon=epsilon):
            return PureDP(epsilon)
        case ZCDP(rho=rho):
            return PureDP(-rounded_up(lambda r: -(2 * r).sqrt(), rho))


def zcdp_to_approx(privacy: ZCDP, delta: float) -> ApproxDP:
    """rho-zCDP implies (rho + 2 sqrt(rho ln(1/delta)), delta)-DP, for the same adjacency.

    ``ValueError`` for a `delta` outside 0 < delta < 1/2. Bun-Steinke 2016, Proposition 1.3; GEN-2.

    Examples
    --------
    >>> import geomdp as gd
    >>> privacy = gd.privacy.zcdp_to_approx(gd.ZCDP(0.1), delta=1e-6)
    >>> round(privacy.epsilon, 3), privacy.delta
    (2.451, 1e-06)
    """
    check_privacy(privacy, ZCDP)
    delta = below_half(delta, "delta")
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

    References
    ----------
    Canonne-Kamath-Steinke 2020, Corollary 13 (proved above); formula sheet GEN-2.

    Examples
    --------
    >>> import geomdp as gd
    >>> round(gd.privacy.zcdp_to_approx_optimal_order(gd.ZCDP(0.1), delta=1e-6).epsilon, 3)
    2.142
    >>> round(gd.privacy.zcdp_to_approx(gd.ZCDP(0.1), delta=1e-6).epsilon, 3)
    2.451
    """
    check_privacy(privacy, ZCDP)
    delta = below_half(delta, "delta")
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
    """Return the guarantee under `target` that `privacy` under `source` implies.

    Replacing a record means removing one and adding another. So a guarantee under add/remove
    implies `group_privacy` of size 2 under replace-one: epsilon becomes 2 epsilon. There is no
    conversion in the other direction, as publishing the number of records is private under
    replace-one only. The type stays the same. ``ValueError`` for that direction, and for a new
    delta of 1/2 or more. Formula sheet GEN-1, GEN-2.

    Examples
    --------
    >>> import geomdp as gd
    >>> add_remove, replace_one = gd.Adjacency.ADD_REMOVE, gd.Adjacency.REPLACE_ONE
    >>> print(gd.privacy.convert_adjacency(gd.PureDP(0.5), add_remove, replace_one))
    1-DP
    """
    check_privacy(privacy)
    if checked_adjacency(source) is checked_adjacency(target):
        return privacy
    if target is Adjacency.ADD_REMOVE:
        raise ValueError(
            "a guarantee under replace-one gives none under add/remove: a mechanism with a "
            "replace-one guarantee may publish the number of records"
        )
    return group_privacy(privacy, 2)
