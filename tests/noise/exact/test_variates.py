"""Laws of the random variables that exact noise is computed from, against known distributions."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from flint import arb, ctx

from geomdp.noise.points import (
    bartlett_factor,
    decided_below,
    direction,
    dirichlet,
    gamma,
    half_gamma,
    power_exponentials,
    whole_number,
)
from geomdp.noise.rounding import Draw, Undecided, UniformBits, exponentials, gaussians, laplaces
from tests.noise.exact.reference import floats, seeded
from tests.stats import LEVEL, ks_uniform, mean_agrees

DRAWS = 4000
pytestmark = pytest.mark.statistical


def generalised(p):
    """Distribution on x > 0 with density proportional to exp(-x^p)."""
    return scipy.stats.gengamma(a=1 / p, c=p)


#: For each name, a function that draws independent variables, and the distribution of each.
LAWS = {
    "exponential": (lambda draw: exponentials(2, draw), scipy.stats.expon),
    "laplace": (lambda draw: laplaces(3, draw), scipy.stats.laplace),
    "gaussian": (lambda draw: gaussians(3, draw), scipy.stats.norm),
    "gamma 5": (lambda draw: [gamma(5, draw)], scipy.stats.gamma(5)),
    "gamma 1/2": (lambda draw: [half_gamma(1, draw)], scipy.stats.gamma(0.5)),
    "gamma 7/2": (lambda draw: [half_gamma(7, draw)], scipy.stats.gamma(3.5)),
    "share 1": (lambda draw: dirichlet(3, 2, draw)[:1], scipy.stats.beta(1, 2)),
    "share 5/2": (lambda draw: dirichlet(3, 5, draw)[1:2], scipy.stats.beta(2.5, 5)),
    # If x is a coordinate of a uniform unit vector in R^m, then (1 + x) / 2 has the distribution
    # Beta((m - 1) / 2, (m - 1) / 2). Here m = 5.
    "direction": (lambda draw: direction(5, draw)[4:], scipy.stats.beta(2, 2, loc=-1, scale=2)),
    "power 1.25": (lambda draw: power_exponentials(2, arb(1.25), draw), generalised(1.25)),
    "power 3": (lambda draw: power_exponentials(2, arb(3), draw), generalised(3)),
}


@pytest.mark.parametrize("name", sorted(LAWS))
def test_law(name):
    vector, law = LAWS[name]
    draws = floats(vector, DRAWS, seed=1)
    for j in range(draws.shape[1]):
        ks_uniform(law.cdf(draws[:, j]), level=LEVEL / draws.shape[1])
    if draws.shape[1] > 1:
        ranks = law.cdf(draws) - 0.5
        mean_agrees(ranks[:, 0] * ranks[:, 1], 0.0)


def test_gamma_of_shape_0_is_0():
    assert half_gamma(0, Draw(UniformBits(seeded(0)), 2)).is_zero()


def test_whole_numbers_are_uniform():
    draw = Draw(UniformBits(seeded(2)), 2)
    counts = np.bincount([whole_number(7, draw) for _ in range(DRAWS)], minlength=7)
    assert len(counts) == 7
    assert scipy.stats.chisquare(counts).pvalue > LEVEL


def test_bartlett_factor_has_the_moments_of_a_wishart_matrix():
    """With k = 4 degrees of freedom, E (L L^T)_ij^2 is k (k + 2) if i = j, and k otherwise."""

    def squares(draw):
        rows = bartlett_factor(3, draw)
        return [
            sum((a * b for a, b in zip(rows[i], rows[j], strict=False)), start=arb(0)) ** 2
            for i in range(3)
            for j in range(i, 3)
        ]

    on, off = 4 * 6.0, 4.0
    mean_agrees(floats(squares, DRAWS, seed=3), np.array([on, off, off, on, off, on]))


def test_comparisons_are_decided_only_on_disjoint_balls():
    with ctx.workprec(124):
        assert decided_below(arb(1, 0.25), arb(2, 0.25))
        assert not decided_below(arb(2, 0.25), arb(1, 0.25))
        assert not decided_below(arb(1), arb(1))
        for first, second in ((arb(1, 0.75), arb(2, 0.75)), (arb("nan"), arb(1))):
            with pytest.raises(Undecided):
                decided_below(first, second)
