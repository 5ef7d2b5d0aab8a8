"""Theorem 5 of Roth's lecture, with nearly the worst distinguisher that it allows (DISC-13).

The theorem on the iterative construction is stated for every private distinguisher that, with high
probability, chooses a query whose gap is at most F(epsilon) below the largest gap. The gap of a
query is the error of the hypothesis on this query. The distinguisher here meets this condition, but
chooses a query with a gap that is nearly as small as F(epsilon) permits.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

import geomdp as gd
from experiments.privacy.corrected.statement import Measured, Version
from experiments.shared.known_shares import KnownShares
from geomdp.mechanisms.interactive.iterative import CORRECTED
from geomdp.mechanisms.printed import PRINTED_STOPPING
from geomdp.noise.scalar import ScalarNoise

BITS, BETA, PRIVACY = 3, 0.05, gd.PureDP(1.0)
#: Number of records, so large that the noise is negligible and cannot be the cause of a failure.
RECORDS = 10**15
#: Largest error of the uniform start, bit mask of the parity with this error, and bit mask of a
#: parity with a smaller error.
START, STRONG, WEAK = 0.25, 1, 2
#: The score of a query falls with the distance between its gap and the target (see
#: `LazyDistinguisher`). Above the target it falls at this multiple of the rate below the target.
TILT = 0.05
DESIGNS = {Version.PRINTED: PRINTED_STOPPING, Version.CORRECTED: CORRECTED}


class LazyDistinguisher(KnownShares):
    """Chooses a query whose gap is about `slack` below the largest gap.

    The gap of a query is the distance between its true answer and the hypothesis' answer. The score
    of a query is -(target - gap) for a gap below target = largest gap - `slack`, and
    -TILT (gap - target) for a gap above. The score changes by at most 2 / n between neighbours, as
    the query's gap and the largest gap change by at most 1 / n each. The exponential mechanism with
    scale 4 / (n eps) is therefore eps-DP. The query with the largest gap scores -TILT `slack`. Let
    |C| be the number of queries. Hence with probability at least 1 - gamma the gap chosen is at
    most F(eps) = (1 + TILT) slack + 4 ln(|C| / gamma) / (n eps) below the largest gap (IC-DIST).
    """

    def __init__(self, shares: npt.NDArray[np.float64], slack: float) -> None:
        super().__init__(shares)
        self.slack = slack

    def loss(self, epsilon: float, gamma: float, n: int) -> float:
        """F(eps): with probability 1 - `gamma`, the chosen gap is this close to the largest."""
        return (1 + TILT) * self.slack + 4 * math.log(self.size / gamma) / (n * epsilon)

    def choose(
        self,
        truths: npt.NDArray[np.float64],
        hypothesis: Any,
        *,
        epsilon: float,
        n: int,
        noise: ScalarNoise,
    ) -> int:
        """The exponential mechanism for the score above; returns the index of a query."""
        gaps = np.abs(truths - self.estimates(hypothesis))
        above = gaps - (gaps.max() - self.slack)
        scores = np.minimum(above, 0) - TILT * np.maximum(above, 0)
        return noise.noisy_argmax(scores, 4 / (n * epsilon))


def two_parities(weaker: float) -> npt.NDArray[np.float64]:
    """Shares of 2^BITS elements that differ from uniform shares in the means of two parities.

    These two means are 1/2 + `START` and 1/2 + `weaker`. All other parities have the same means as
    under uniform shares.
    """
    elements = np.arange(1 << BITS)
    signs = [1 - 2.0 * (np.bitwise_count(elements & S) % 2) for S in (STRONG, WEAK)]
    # A coefficient a of a sign moves the mean of its parity (1 + sign) / 2 by a / 2.
    return np.asarray((1 + 2 * START * signs[0] + 2 * weaker * signs[1]) / len(elements))


def construction(version: Version, ratio: float) -> gd.IterativeConstruction[Any]:
    """The construction with alpha = START / `ratio`."""
    design = DESIGNS[version]
    slack = design.loss * START / (ratio * (1 + TILT))
    return gd.IterativeConstruction(
        gd.mechanisms.MultiplicativeWeights(1 << BITS),
        LazyDistinguisher(two_parities(START - slack), slack),
        n=RECORDS,
        privacy=PRIVACY,
        beta=BETA,
        design=design,
    )


def stopped(version: Version, ratio: float, runs: int, rng: np.random.Generator) -> Measured:
    """Largest error on all parities, and the alpha promised."""
    built = construction(version, ratio)
    truths = built.distinguisher.truths(None, RECORDS)
    errors = [
        float(np.abs(built.distinguisher.estimates(release.hypothesis) - truths).max())
        for release in (built.release(range(RECORDS), rng=child) for child in rng.spawn(runs))
    ]
    return Measured(min(errors) if version is Version.PRINTED else max(errors), built.alpha)
