"""Probabilities of comparisons with one noisy threshold, by quadrature over its noise."""

from __future__ import annotations

import itertools
import math

import scipy.integrate
import scipy.stats


def outcomes(above: int, below: int, gap: float, threshold: float, query: float) -> float:
    """Probability that `above` queries reach a noisy threshold and `below` other queries do not.

    Without noise every query is `gap` below the threshold. Every query gets Laplace noise of scale
    `query`. The threshold gets one draw of Laplace noise of scale `threshold`.
    """
    law, noise = scipy.stats.laplace(scale=threshold), scipy.stats.laplace(scale=query)

    def density(t: float) -> float:
        return float(law.pdf(t) * noise.sf(gap + t) ** above * noise.cdf(gap + t) ** below)

    # The integrand has kinks at 0 and at -gap. Noise beyond 40 scales has probability below 1e-17.
    ends = sorted({-40 * threshold, min(-gap, 0.0), 0.0, 40 * threshold})
    parts = [
        scipy.integrate.quad(density, low, high, epsabs=1e-10)[0]
        for low, high in itertools.pairwise(ends)
    ]
    return math.fsum(parts)


def all_reach(count: int, gap: float, threshold: float, query: float) -> float:
    """Probability that `count` queries, each `gap` below a threshold, all reach the threshold."""
    return outcomes(count, 0, gap, threshold, query)
