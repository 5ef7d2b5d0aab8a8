"""Probabilities of comparisons with one noisy threshold, by quadrature over its noise."""

from __future__ import annotations

import itertools
import math

import scipy.integrate
import scipy.stats


def outcomes(above: int, below: int, gap: float, threshold: float, query: float) -> float:
    """Pr[`above` given queries reach a threshold, and `below` other ones do not].

    Every query lies by `gap` below the threshold and gets Laplace noise of scale `query`; the
    threshold gets one draw of scale `threshold`.
    """
    law, noise = scipy.stats.laplace(scale=threshold), scipy.stats.laplace(scale=query)

    def density(t: float) -> float:
        return float(law.pdf(t) * noise.sf(gap + t) ** above * noise.cdf(gap + t) ** below)

    # Kinks of the two densities; 40 scales leave less than 1e-17.
    ends = sorted({-40 * threshold, min(-gap, 0.0), 0.0, 40 * threshold})
    parts = [
        scipy.integrate.quad(density, low, high, epsabs=1e-10)[0]
        for low, high in itertools.pairwise(ends)
    ]
    return math.fsum(parts)


def all_reach(count: int, gap: float, threshold: float, query: float) -> float:
    """Pr[all of `count` queries by `gap` below a threshold reach it]."""
    return outcomes(count, 0, gap, threshold, query)
