"""Report-noisy-max with Laplace noise, and with exponential noise (permute-and-flip)."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np
from scipy.optimize import brentq

from geomdp._typing import FloatArray
from geomdp._validation import probability
from geomdp.mechanisms.selection import Selection
from geomdp.noise.scalar import EXPONENTIAL, LAPLACE

#: Noise above this many scales has probability below 1e-17 and is left out of the integrals.
FAR = 40.0
#: Length of the longest piece of an integral, in scales of the noise, and number of nodes of the
#: Gauss rule on each piece.
LONGEST, NODES = 2.0, 24


class ReportNoisyMax(Selection):
    """Choose the query with the largest sum after adding Laplace noise of scale R / eps.

    R is the spread of the scores. The mechanism is Dwork-Roth's report-noisy-max (Claim 3.9).
    `PermuteAndFlip` uses exponential noise instead, and its bound `loss` is never larger.

    Privacy: eps-DP. For a query j, fix the noise on all other sums. Query j is chosen if its noise
    is above a threshold, which moves by at most R between neighbours. On the computer, and for the
    parameters, see `Selection`.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> towns = gd.workloads.Explicit(np.eye(4))
    >>> choice = gd.mechanisms.ReportNoisyMax(towns, n=100, privacy=gd.PureDP(0.5))
    >>> choice.probabilities(np.array([0.1, 0.2, 0.25, 0.45])).round(3)
    array([0.   , 0.003, 0.011, 0.985])
    >>> round(choice.loss(0.01), 3)
    0.258
    """

    perturbation = LAPLACE

    def loss(self, gamma: float) -> float:
        """(R / (n eps)) t for m queries, where (m - 1) (1 + t / 2) e^-t / 2 = gamma.

        It is 0 if (m - 1) / 2 <= gamma. This is a union bound: the difference D of two Laplace
        variables of scale 1 has Pr[D > t] = (1 + t / 2) e^-t / 2.
        """
        rivals = self.workload.n_queries - 1
        share = probability(gamma, "gamma")
        if rivals / 2 <= share:
            return 0.0

        def excess(t: float) -> float:
            return float(np.log(rivals * (1 + t / 2) / 2 / share) - t)

        return self.scale / self.n * float(brentq(excess, 0.0, 2000.0))

    def _law(self, scores: FloatArray) -> FloatArray:
        return _law_of_largest(scores, _laplace_density, _laplace_distribution, -FAR)


class PermuteAndFlip(Selection):
    """Choose the query with the largest sum after adding exponential noise of scale R / eps.

    R is the spread of the scores. This is report-noisy-max with one-sided noise. The choice has the
    distribution of permute-and-flip (McKenna and Sheldon 2020). For all data the expected loss (the
    largest answer minus the chosen answer) is at most that of the exponential mechanism.

    Privacy: eps-DP, as for `ReportNoisyMax`.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> towns = gd.workloads.Explicit(np.eye(4))
    >>> choice = gd.mechanisms.PermuteAndFlip(towns, n=100, privacy=gd.PureDP(0.5))
    >>> choice.probabilities(np.array([0.1, 0.2, 0.25, 0.45])).round(3)
    array([0.   , 0.001, 0.003, 0.996])
    >>> round(choice.loss(0.01), 3)
    0.2
    """

    perturbation = EXPONENTIAL

    def loss(self, gamma: float) -> float:
        """(R / (n eps)) ln((m - 1) / (2 gamma)) for m queries, or 0 if this is negative.

        This is a union bound: the difference D of two exponential variables of scale 1 has
        Pr[D > t] = e^-t / 2.
        """
        ratio = (self.workload.n_queries - 1) / (2 * probability(gamma, "gamma"))
        return self.scale / self.n * max(0.0, math.log(ratio))

    def _law(self, scores: FloatArray) -> FloatArray:
        return _law_of_largest(scores, _exponential_density, _exponential_distribution, 0.0)


def _law_of_largest(
    scores: FloatArray,
    density: Callable[[FloatArray], FloatArray],
    distribution: Callable[[FloatArray], FloatArray],
    least: float,
) -> FloatArray:
    """Probability (m,) that score s_j plus its noise is the largest; scores in units of the scale.

    It is the integral over v of f(v - s_j) prod over i != j of F(v - s_i), for the density f and
    the distribution function F of noise above `least`. Cost: O(m^2).
    """
    # The largest noisy score is at least the largest score plus the least noise.
    begin, end = scores.max() + least, scores.max() + FAR
    inside = np.unique(scores[(scores > begin) & (scores < end)])
    pieces = math.ceil((end - begin) / LONGEST)
    corners = np.unique(np.concatenate([np.linspace(begin, end, pieces + 1), inside]))
    # Between two scores the integrand is smooth, so a Gauss rule on short pieces is exact up to
    # rounding.
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    law = np.zeros(len(scores))
    for low, high in pairwise(corners):
        levels = (high + low) / 2 + (high - low) / 2 * nodes
        apart = levels[:, None] - scores
        below = distribution(apart)
        others = np.ones_like(below)
        others[:, 1:] *= np.cumprod(below[:, :-1], axis=1)
        others[:, :-1] *= np.cumprod(below[:, :0:-1], axis=1)[:, ::-1]
        law += (high - low) / 2 * (weights @ (density(apart) * others))
    return np.asarray(law / law.sum())


def _laplace_density(x: FloatArray) -> FloatArray:
    return np.exp(-np.abs(x)) / 2


def _laplace_distribution(x: FloatArray) -> FloatArray:
    return np.where(x > 0, 1 - np.exp(-np.abs(x)) / 2, np.exp(-np.abs(x)) / 2)


def _exponential_density(x: FloatArray) -> FloatArray:
    return np.where(x > 0, np.exp(-np.abs(x)), 0.0)


def _exponential_distribution(x: FloatArray) -> FloatArray:
    return np.where(x > 0, -np.expm1(-np.abs(x)), 0.0)
