"""The noise of the two parts of a private covariance, compared with the noise in Theorem 3.

Formula sheet JL-T3, JL-WIS, JL-L15.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

import geomdp as gd
from experiments.engine.claims import Claim
from experiments.engine.statistics import LEVEL, MeanSquare, quantile

#: The measured noise must be at least this share of the noise in the bound.
LEAST = 0.9


def lengths(
    d: int, n: int, epsilon: float, draws: int, rng: np.random.Generator
) -> npt.NDArray[np.float64]:
    """Independent draws of ||Z|| + 2 ||z||, with each noise at epsilon / 2.

    Z is the noise on the second moments, and z is the noise on the mean.
    """
    privacy = gd.PureDP(epsilon / 2)
    Z = gd.mechanisms.Cone(gd.workloads.SecondMoment(d), n=n, privacy=privacy).noise
    z = gd.mechanisms.Ball(gd.workloads.Means(d), n=n, privacy=privacy).noise
    long, short = (np.linalg.norm(noise.sample(rng, draws), axis=1) for noise in (Z, z))
    return np.asarray((long + 2 * short) / n)


def is_that_of_theorem_3(points: Mapping[int, tuple[MeanSquare, float]]) -> Claim:
    """Mean lengths are `LEAST` to 1 times the bound of Theorem 3 without its term 3 / n^(1/2)."""
    level = LEVEL / (2 * len(points))
    shares = {d: mean.value / noise for d, (mean, noise) in points.items()}
    reach = {d: quantile(level, m.count) * m.stderr / noise for d, (m, noise) in points.items()}
    return Claim(
        f"the mean length of noise, ||Z|| + 2 ||z||, is {LEAST:g} to 1 times the noise term of "
        "Theorem 3",
        all(shares[d] + reach[d] >= LEAST and shares[d] - reach[d] <= 1 for d in points),
        f"{len(points)} dimensions, ratio {min(shares.values()):.3f} to {max(shares.values()):.3f}",
        f"{LEAST:g} to 1; Z is the noise on the second moments, z the noise on the mean",
        "JL-T3, JL-WIS, JL-L15",
        used=max(shares.values()),
    )
