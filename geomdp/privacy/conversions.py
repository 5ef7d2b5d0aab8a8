"""Conversions between privacy definitions, and between neighbour relations."""

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
)


def pure_to_zcdp(privacy: PureDP) -> ZCDP:
    """epsilon-DP implies (epsilon^2 / 2)-zCDP, for the same adjacency.

    Bun-Steinke 2016, Proposition 1.4; formula sheet GEN-2.
    """
    check_privacy(privacy, PureDP)
    return ZCDP(privacy.epsilon**2 / 2)


def zcdp_to_approx(privacy: ZCDP, delta: float) -> ApproxDP:
    """rho-zCDP implies (rho + 2 sqrt(rho ln(1/delta)), delta)-DP, for the same adjacency.

    ``ValueError`` for a `delta` outside 0 < delta < 1/2. Bun-Steinke 2016, Proposition 1.3; formula
    sheet GEN-2.
    """
    check_privacy(privacy, ZCDP)
    delta, rho = below_half(delta, "delta"), privacy.rho
    return ApproxDP(rho + 2 * math.sqrt(rho) * math.sqrt(-math.log(delta)), delta)


def zcdp_to_approx_optimal_order(privacy: ZCDP, delta: float) -> ApproxDP:
    """The smallest epsilon that rho-zCDP gives through a single Renyi order.

    epsilon = min over a > 1 of  a rho + ln((a - 1) / a) - (ln delta + ln a) / (a - 1),

    never above that of `zcdp_to_approx`, for the same adjacency. A minimum below rho is returned as
    rho: for delta of about sqrt(rho) or more the minimum may not be positive, and epsilon must be.
    ``ValueError`` for a `delta` outside 0 < delta < 1/2.

    Notes
    -----
    Proof, for every order a > 1. Let Z be the privacy loss ln(P/Q) under P. The least delta for
    epsilon is E max(0, 1 - e^(epsilon - Z)), and max(0, 1 - e^(epsilon - z)) <= c e^((a-1) z)
    with c = max over z of e^(-(a-1) z) (1 - e^(epsilon - z)), attained where
    e^(epsilon - z) = (a - 1) / a; so c = e^(-(a-1) epsilon) (1 - 1/a)^a / (a - 1). By the
    definition of zCDP E e^((a-1) Z) <= e^((a-1) a rho), hence
    delta <= e^((a-1) (a rho - epsilon)) (1 - 1/a)^a / (a - 1); solve for epsilon.
    In t = a - 1 the derivative has the sign of rho t^2 + ln(1 + t) + ln delta, which increases. So
    there is one minimum, at a t of at most sqrt(ln(1/delta) / rho). A rounded t is a valid order.

    References
    ----------
    Canonne-Kamath-Steinke 2020, Corollary 13 (proved above); formula sheet GEN-2.
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
    epsilon = (1 + t) * rho + math.log(t / (1 + t)) - (log_delta + math.log1p(t)) / t
    return ApproxDP(max(epsilon, rho), delta)


def convert_adjacency(privacy: Privacy, source: Adjacency, target: Adjacency) -> Privacy:
    """The guarantee under `target` that `privacy` under `source` implies, of the same kind.

    Replacing a record is removing one and adding one, so a guarantee under add/remove implies
    `group_privacy` for 2 under replace-one: epsilon becomes 2 epsilon. Nothing follows in the other
    direction, because publishing the number of records costs nothing under replace-one and is not
    private under add/remove. ``ValueError`` from replace-one to add/remove, or if the delta of the
    group reaches 1/2. Formula sheet GEN-1, GEN-2.
    """
    check_privacy(privacy)
    if checked_adjacency(source) is checked_adjacency(target):
        return privacy
    if target is Adjacency.ADD_REMOVE:
        raise ValueError(
            "a guarantee under replace-one gives none under add/remove: such a mechanism may "
            "publish the number of records"
        )
    return group_privacy(privacy, 2)
