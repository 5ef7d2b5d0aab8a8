"""The best event of an audit, from the exact laws of outputs on two neighbouring inputs.

Let p and q be the laws. By the lemma of Neyman and Pearson, no event of the same probability under
q is likelier under p than {p / q >= t}. The best event is therefore of this form, and its
probabilities are sums of known masses. These probabilities give the least number of draws that can
refute a claim. No sample is drawn here. This module shares with audits only the confidence bounds
on counts and the conversion of zCDP claims. So its numbers are an almost independent standard for
audits.
"""

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.stats

import experiments.engine.tools as ex
import geomdp as gd

#: Values of ln(p / q) are rounded to this many decimals. Exact ratios can be constant on whole
#: regions, and rounding errors must not split a region.
DECIMALS = 9
#: Largest number of events {p / q >= t} that are tried for two laws.
EVENTS = 400
#: Number of cells along one side of a square in the plane, and the largest length of this side in
#: units of the standard deviation of a coordinate. Noise is outside with probability below e^-9.
CELLS, SIDE = 240, 20.0
#: Number of finite edges of the cells for the law of one normal variable. The edges reach at least
#: `NORMAL_REACH` standard deviations beyond the means of both laws.
NORMAL_CELLS, NORMAL_REACH = 4000, 9.0
#: Largest number of draws in a search.
MOST_DRAWS = 1e12
#: Deltas at which a zCDP claim is tested, finer than those of an audit.
DELTAS = tuple(float(delta) for delta in np.geomspace(1e-8, 0.4, 80))
#: A search ends when the number of draws, or 1 - factor, is known up to this ratio.
PRECISION = 1.02


@dataclass(frozen=True, eq=False)
class Laws:
    """Two laws on the same outcomes."""

    first: ex.FloatArray  # Masses (k,) on one input
    second: ex.FloatArray  # Masses (k,) on its neighbour

    def events(self) -> tuple[ex.FloatArray, ex.FloatArray]:
        """Probabilities of the events {first / second >= t} under the two laws."""
        with np.errstate(divide="ignore", invalid="ignore"):
            losses = np.round(np.log(self.first / self.second), DECIMALS)
        order = np.argsort(-losses, kind="stable")
        ordered = losses[order]
        ends = np.flatnonzero(np.append(ordered[1:] != ordered[:-1], True))
        inside = np.cumsum(self.first[order])[ends], np.cumsum(self.second[order])[ends]
        if len(ends) > EVENTS:
            # Events of probability near 0 or near 1 are kept in smaller steps.
            steps = np.geomspace(1e-5, 0.5, EVENTS // 2)
            wanted = np.concatenate([steps, 1 - steps])
            kept = np.unique(np.searchsorted(inside[0], wanted).clip(max=len(ends) - 1))
            inside = inside[0][kept], inside[1][kept]
        return inside[0].clip(0, 1), inside[1].clip(0, 1)


#: A function of the factor by which noise is multiplied (the noise factor). Its values are the
#: pairs of laws to try, one for each change between neighbours.
LawsAt = Callable[[float], Sequence[Laws]]


@functools.cache
def implied(privacy: gd.privacy.Privacy) -> tuple[tuple[float, float], ...]:
    """Pairs (epsilon, delta) that the claim implies."""
    match privacy:
        case gd.PureDP(epsilon=epsilon):
            return ((epsilon, 0.0),)
        case gd.ZCDP() as concentrated:
            convert = gd.privacy.zcdp_to_approx_optimal_order
            return tuple((convert(concentrated, delta).epsilon, delta) for delta in DELTAS)
    raise ValueError(f"privacy must be PureDP or ZCDP, got {privacy!r}")


def refutes(laws: Sequence[Laws], privacy: gd.privacy.Privacy, draws: float) -> bool:
    """Whether the best event refutes the claim with this number of draws per input."""
    events = [pair.events() for pair in laws]
    p, q = (np.concatenate(side) for side in zip(*events, strict=True))
    total = math.ceil(draws)
    low_p, low_q = (gd.audit.lower_bound(np.floor(s * total), total, ex.LEVEL / 4) for s in (p, q))
    high_p, high_q = (gd.audit.upper_bound(np.ceil(s * total), total, ex.LEVEL / 4) for s in (p, q))
    # An event and its complement, each with both orders of the inputs.
    tests = ((low_p, high_q), (low_q, high_p), (1 - high_p, 1 - low_q), (1 - high_q, 1 - low_p))
    return any(
        bool((low - delta > math.exp(epsilon) * high).any())
        for epsilon, delta in implied(privacy)
        for low, high in tests
    )


def least(works: Callable[[float], bool], low: float, high: float) -> float:
    """The least logarithm between `low` and `high` that works, up to `PRECISION`; else `high`."""
    while high - low > math.log(PRECISION):
        middle = (low + high) / 2
        low, high = (low, middle) if works(middle) else (middle, high)
    return high


def draws_needed(laws: Sequence[Laws], privacy: gd.privacy.Privacy) -> float:
    """Draws per input with which the best event refutes the claim, at most `MOST_DRAWS`."""
    return math.exp(
        least(lambda log: refutes(laws, privacy, math.exp(log)), 0.0, math.log(MOST_DRAWS))
    )


def best_factor(laws_at: LawsAt, privacy: gd.privacy.Privacy, draws: float) -> float:
    """The largest noise factor that the best event refutes with this number of draws."""
    return largest_factor(lambda factor: refutes(laws_at(factor), privacy, draws))


def largest_factor(refuted: Callable[[float], bool]) -> float:
    """The largest noise factor that is refuted, searched between 0.05 and 0.999."""
    largest = math.log(0.95)
    found = least(lambda log: refuted(1 - math.exp(log)), math.log(1e-3), largest)
    return 0.0 if found == largest else 1 - math.exp(found)


def normal_laws(length: float, factor: float) -> Laws:
    """Normal noise of standard deviation `factor`, and the same noise moved by `length`.

    Gaussian noise in any dimension has these laws along the change between neighbours, in units in
    which the correct noise has variance 1.
    """
    reach = NORMAL_REACH + length / factor
    inner = np.linspace(-reach, reach, NORMAL_CELLS)
    edges = np.concatenate([[-np.inf], inner, [np.inf]])
    # On the right of 0 the cdf is near 1, so differences of survival functions lose fewer digits.
    far = edges[:-1] > 0

    def masses(moved: float) -> ex.FloatArray:
        below, above = scipy.stats.norm.cdf(edges - moved), scipy.stats.norm.sf(edges - moved)
        return np.asarray(np.where(far, above[:-1] - above[1:], below[1:] - below[:-1]))

    return Laws(masses(0.0), masses(length / factor))


def planar_laws(
    ratio: Callable[[ex.FloatArray, ex.FloatArray], ex.FloatArray],
    deviation: float,
    changes: ex.FloatArray,
    factor: float,
) -> list[Laws]:
    """Noise in the plane, scaled by `factor`, and the same noise moved by each row of `changes`.

    `ratio(z, s)` is log f(z) - log f(z - s) for the density f of the correct noise, and `changes`
    are whole numbers. `deviation` is the largest standard deviation of a coordinate of the correct
    noise. The laws are on the centres of square cells. The change between neighbours is a whole
    number of cells, so both laws are the same masses moved by some cells.
    """
    # Outputs divided by `factor` are the correct noise, moved by changes / factor.
    per_unit = math.ceil(CELLS / (SIDE * deviation * factor))
    line = (np.arange(CELLS) + 0.5 - CELLS / 2) / (factor * per_unit)
    cells = np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)
    logs = ratio(cells, cells - cells[len(cells) // 2 + CELLS // 2])
    masses = np.exp(logs - logs.max())
    masses /= masses.sum()
    found = []
    for change in changes:
        losses = ratio(cells, np.broadcast_to(change / factor, cells.shape))
        found.append(Laws(masses, masses * np.exp(-np.round(losses, DECIMALS))))
    return found
