"""The inequalities that a privacy claim implies for the probabilities of one event."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from geomdp.privacy import (
    ZCDP,
    ApproxDP,
    Approximate,
    Guarantee,
    Privacy,
    PureDP,
    zcdp_to_approx_optimal_order,
)
from geomdp.privacy.definitions import check_privacy

#: Deltas at which a zCDP claim is tested. rho-zCDP implies (epsilon, delta)-DP for every delta,
#: with an epsilon that depends on delta. Smaller deltas would not help, because events of
#: probability below 10^-7 hardly ever occur in an affordable number of trials. There are four
#: deltas in each decade. With one delta in each decade, audits missed noise that is only a little
#: too small. A test of all deltas would gain little. At rho = 1/2 the epsilons of neighbouring
#: deltas differ by at most 0.33, a fifth of the smaller epsilon, and the gain would be less than
#: this difference. The learned scores would be the same, because learners use neither deltas nor
#: epsilons.
ZCDP_DELTAS = tuple(float(delta) for delta in np.geomspace(1e-7, 0.1, 25))


class Claim(NamedTuple):
    """Pr_a(S) <= e^epsilon Pr_b(S) + delta for neighbours a and b and every event S."""

    epsilon: float
    delta: float


def claims_of(privacy: Privacy) -> tuple[Claim, ...]:
    """The pairs (epsilon, delta) to test: one, or for zCDP one for each of `ZCDP_DELTAS`."""
    match privacy:
        case PureDP(epsilon=epsilon):
            return (Claim(epsilon, 0.0),)
        case ApproxDP(epsilon=epsilon, delta=delta):
            return (Claim(epsilon, delta),)
        case ZCDP() as concentrated:
            return _implied(concentrated)


def definition(guarantee: Guarantee | Privacy) -> Privacy:
    """The proved privacy of a guarantee, or its target if its sampler is heuristic."""
    if not isinstance(guarantee, Guarantee):
        check_privacy(guarantee, name="guarantee")
        return guarantee
    approximate = isinstance(guarantee.sampler, Approximate)
    return guarantee.effective if approximate else guarantee.privacy


@lru_cache
def _implied(privacy: ZCDP) -> tuple[Claim, ...]:
    return tuple(
        Claim(zcdp_to_approx_optimal_order(privacy, delta).epsilon, delta) for delta in ZCDP_DELTAS
    )
