"""Runs of the iterative construction on known data, or on parities with chosen gaps.

Data are known by the share of the records at each element. The gap of a query is the error of the
current hypothesis on it.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

import geomdp as gd
from experiments.engine.cells import Row
from experiments.engine.statistics import MeanSquare
from geomdp.mechanisms.interactive.iterative import CORRECTED
from geomdp.mechanisms.printed import PRINTED_STOPPING
from geomdp.noise.scalar import GeneratorNoise

BITS, BETA = 5, 0.05
PRIVACY: dict[str, gd.PureDP | gd.ApproxDP] = {
    "pure": gd.PureDP(1.0),
    "approximate": gd.ApproxDP(1.0, 1e-6),
}


class Constants(enum.StrEnum):
    """Constants of Theorem 5 of Roth's lecture on iterative construction, as in the legend."""

    CORRECTED = "corrected constants"
    PRINTED = "printed constants"


DESIGNS = {Constants.CORRECTED: CORRECTED, Constants.PRINTED: PRINTED_STOPPING}


class Data(enum.StrEnum):
    """How the true answers are chosen."""

    SHARES = "shares"  # The share of records at an element is proportional to 1 / rank
    LADDER = "ladder"  # Gaps to the uniform hypothesis fall by a fixed step from parity to parity
    CLIFF = "cliff"  # All gaps but the largest are smaller than it by `AllParities.loss`


@dataclass(frozen=True)
class Config:
    """One point of the figure."""

    data: Data  # True answers
    privacy: str  # Key of `PRIVACY`
    constants: Constants  # Constants of the stopping rule
    n: int  # Number of records
    runs: int  # Independent runs in one cell


#: Largest gap of the ladder and of the cliff, well below 1/2, so that answers stay within [0, 1].
TOP = 0.4


class Ladder(gd.mechanisms.AllParities):
    """Parities j = 1, 2, ... with the true answers 1/2 + TOP - (j - 1) `step`.

    A uniform hypothesis answers 1/2, so the gap of parity j is TOP - (j - 1) `step`.

    Parity 0, which is 1 on every record, has no gap.

    Parameters
    ----------
    d : int
        Number of bits.
    step : float
        Difference between one gap and the next.
    """

    def __init__(self, d: int, step: float) -> None:
        super().__init__(d)
        self.step = step

    def truths(self, records: Any, n: int) -> npt.NDArray[np.float64]:
        """The true answers of the class; `records` and `n` are not read."""
        del records, n
        return np.array([1.0, *(0.5 + TOP - self.step * np.arange(self.size - 1))])


class Cliff(gd.mechanisms.AllParities):
    """Parity 1 has the gap TOP to a uniform hypothesis; all other gaps are smaller by `drop`.

    Parameters
    ----------
    d : int
        Number of bits.
    drop : float
        Difference between the largest gap and each other gap.
    """

    def __init__(self, d: int, drop: float) -> None:
        super().__init__(d)
        self.drop = drop

    def truths(self, records: Any, n: int) -> npt.NDArray[np.float64]:
        """The true answers of the class; `records` and `n` are not read."""
        del records, n
        gap = TOP - self.drop
        # The uniform hypothesis answers 1 for parity 0 and 1/2 for the others.
        return np.array([1 - gap, 0.5 + TOP, *np.full(self.size - 2, 0.5 + gap)])


def construction(
    config: Config, distinguisher: gd.mechanisms.AllParities
) -> gd.IterativeConstruction[Any]:
    """The mechanism of one point."""
    return gd.IterativeConstruction(
        gd.mechanisms.MultiplicativeWeights(1 << BITS),
        distinguisher,
        n=config.n,
        privacy=PRIVACY[config.privacy],
        beta=BETA,
        design=DESIGNS[config.constants],
    )


def spent(built: gd.IterativeConstruction[Any]) -> float:
    """Epsilon of 2 private steps for each update allowed, by basic or advanced composition."""
    step, count = gd.PureDP(built.step_epsilon), 2 * built.updates_allowed
    match built.privacy:
        case gd.ApproxDP(delta=delta):
            return gd.privacy.advanced_composition(step, count, delta).epsilon
        case _:
            return count * step.epsilon


def first_choices(built: gd.IterativeConstruction[Any], runs: int, rng: np.random.Generator) -> Row:
    """How often the first query of a run has the largest gap, and the exact chance of that."""
    top, hits = built.distinguisher.query(1), 0
    for child in rng.spawn(runs):
        first, _ = built.release(range(built.n), rng=child).exchanges[0]
        hits += bool((first.values == top.values).all())
    # From parity 2 on, each parity is half as likely as the parity before. Parity 0 is hardly ever
    # chosen.
    return {"hits": hits, "chance": 1 / (2 - 2.0 ** (2 - built.distinguisher.size))}


#: gamma, the probability with which the proof lets the distinguisher choose a query whose gap is
#: more than F(epsilon) below the largest gap. `worse_choices` defines F(epsilon).
WORSE = 0.5


def worse_choices(built: gd.IterativeConstruction[Any], runs: int, rng: np.random.Generator) -> Row:
    """How often the choice from a `Cliff` misses the largest gap, and the exact chance of that.

    Let |C| be the number of parities. If F(epsilon) = 2 ln(|C| / gamma) / (n epsilon) is right,
    each of the |C| - 1 other parities is gamma / |C| times as likely as the parity with the largest
    gap.
    """
    epsilon, n = built.step_epsilon, built.n
    cliff = Cliff(BITS, built.distinguisher.loss(epsilon, WORSE, n))
    truths, start = cliff.truths(None, n), built.rule.start(built.alpha / 2)
    noise = GeneratorNoise(rng)
    chosen = [cliff.choose(truths, start, epsilon=epsilon, n=n, noise=noise) for _ in range(runs)]
    others = (cliff.size - 1) * WORSE / cliff.size
    return {"worse": sum(index != 1 for index in chosen), "chance": others / (1 + others)}


def errors_and_noise(
    built: gd.IterativeConstruction[Any], runs: int, rng: np.random.Generator
) -> Row:
    """Mean square of the largest error, and the sum of |noise| in units of the noise's scale."""
    truths = built.distinguisher.truths(None, built.n)
    unit = 1 / (built.step_epsilon * built.n)
    numbers = {
        built.distinguisher.query(i).values.tobytes(): i for i in range(built.distinguisher.size)
    }
    errors, steps, noise = [], [], []
    for child in rng.spawn(runs):
        release = built.release(range(built.n), rng=child)
        estimates = built.distinguisher.estimates(release.hypothesis)
        errors.append(float(np.abs(estimates - truths).max()))
        steps.append(len(release.exchanges))
        noise += [
            abs(answer.value - truths[numbers[query.values.tobytes()]]) / unit
            for query, answer in release.exchanges
        ]
    start = built.distinguisher.estimates(built.rule.start(built.alpha / 2))
    return {
        **MeanSquare.of(np.square(errors)).columns(),
        "within": sum(error <= built.accuracy for error in errors),
        "alpha": built.alpha,
        "guaranteed": built.accuracy,
        "steps": max(steps),
        "answers": len(noise),
        "noise": sum(noise),
        "updates_allowed": built.updates_allowed,
        "spent": spent(built),
        "untouched": float(np.abs(start - truths).max()),
    }
