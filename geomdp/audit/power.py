"""The smallest violation of a claim that a sample can show."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from scipy.special import expit, ndtr

from geomdp._validation import whole
from geomdp.audit.binomial import checked_level, epsilon_bounds
from geomdp.audit.claims import claims_of, definition
from geomdp.audit.renyi import ORDERS, REACHES, rho_bound
from geomdp.privacy import ZCDP, ApproxDP, Guarantee, Privacy, PureDP

#: Parameters of a violation are searched up to this factor times the claim plus `FARTHEST`.
FARTHEST = 50.0
#: Gaussian noise of standard deviation 1 is cut into cells that reach this far, 1/100 wide. What is
#: beyond has probability below 1e-22.
CUT, CELLS = 10.0, 2001


def smallest_violation(
    guarantee: Guarantee | Privacy, *, trials: int, level: float = 1e-6
) -> float:
    """The smallest true epsilon, or rho for a zCDP claim, that an audit of this size could show.

    The number is the least parameter of a mechanism that the best test refutes if all counts are at
    their expected values; infinite if no violation can be shown. Most of the time, an audit does
    not find a smaller violation. For pure and approximate DP, the mechanism is randomised response
    (with probability delta, it gives its input away). No mechanism is easier to refute. For zCDP,
    it is Gaussian noise. Other mechanisms, and events that are learned, need more outputs.
    ``ValueError`` if a parameter is out of range.

    Parameters
    ----------
    guarantee : Guarantee, PureDP, ApproxDP or ZCDP
        The claim.
    trials : int
        Number of outputs per input that test the claim: half of the outputs of an audit.
    level : float
        As for `audit`.

    References
    ----------
    Clopper-Pearson 1934; Maurer-Pontil 2009.

    Examples
    --------
    >>> import geomdp as gd
    >>> [round(gd.audit.smallest_violation(gd.PureDP(1.0), trials=n), 2) for n in (100, 10_000)]
    [2.67, 1.12]
    """
    whole(trials, "trials")
    return _smallest(definition(guarantee), trials, checked_level(level))


@lru_cache
def _smallest(privacy: Privacy, trials: int, level: float) -> float:
    match privacy:
        case PureDP(epsilon=claimed):
            return _least(claimed, lambda epsilon: _response(epsilon, 0.0, privacy, trials, level))
        case ApproxDP(epsilon=claimed, delta=delta):
            return _least(
                claimed, lambda epsilon: _response(epsilon, delta, privacy, trials, level)
            )
        case ZCDP(rho=claimed):
            return _least(claimed, lambda rho: _gaussian(rho, privacy, trials, level))


def _least(claimed: float, excess: Callable[[float], float]) -> float:
    """The least parameter with a positive excess, up to 1e-4 of it; infinite if there is none."""
    low, high = claimed, FARTHEST * (claimed + 1)
    if excess(high) <= 0:
        return math.inf
    while high - low > 1e-4 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if excess(middle) > 0 else (middle, high)
    return high


def _response(epsilon: float, delta: float, privacy: Privacy, trials: int, level: float) -> float:
    """The excess of randomised response over the claim, at expected counts."""
    rare = (1 - delta) * float(expit(-epsilon))
    hits = np.rint(trials * np.array([1 - rare, delta])), np.rint(trials * np.array([rare, 0.0]))
    bounds = epsilon_bounds(*hits, trials, level, claims_of(privacy))
    return float(bounds.max()) - privacy.epsilon if isinstance(privacy, PureDP | ApproxDP) else 0.0


def _gaussian(rho: float, privacy: ZCDP, trials: int, level: float) -> float:
    """The excess over rho of Gaussian noise that is rho-zCDP, at expected means and counts."""
    shift = math.sqrt(2 * rho)
    points = np.linspace(-CUT, CUT + shift, CELLS)
    ends = (points[1:] + points[:-1]) / 2
    above = [np.concatenate([[1.0], ndtr(centre - ends), [0.0]]) for centre in (shift, 0.0)]
    laws = [each[:-1] - each[1:] for each in above]
    losses = shift * points - rho
    found = -math.inf
    for order in ORDERS:
        for reach in REACHES:
            limited = np.clip(losses, -reach, reach)
            values = np.exp((order - 1) * limited), np.exp(order * limited)
            first, second = (
                (float(law @ x), max(float(law @ x**2 - (law @ x) ** 2), 0.0))
                for law, x in zip(laws, values, strict=True)
            )
            found = max(found, rho_bound(order, first, second, reach, trials, level / 2))
    claims = claims_of(privacy)
    hits_a, hits_b = (np.rint(trials * each[::10]) for each in above)
    bounds = epsilon_bounds(hits_a, hits_b, trials, level / 2, claims)
    epsilons = np.array([claim.epsilon for claim in claims])[:, None]
    return max(found - privacy.rho, float((bounds - epsilons).max()))
