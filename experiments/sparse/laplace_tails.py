"""Tails of weighted sums of Laplace noise: the lemma behind the accuracy of sparse projection.

Paper: Blum and Roth 2011, "Fast private data release algorithms for sparse queries", Lemma 4.8;
formula sheet BR-L4.8, BR-PROJ.

Claim: let Y be the sum of q_i Y_i over T independent Y_i ~ Lap(b), with |q_i| <= B. Then |Y|
exceeds a B b with probability at most exp(-a^2 / (6 T)) for a <= T, and exp(-a / 6) for a > T.
Equal weights q_i = B are the worst (Birnbaum: the larger the weights, the less peaked is a sum of
symmetric log-concave variables). For them the tail is known exactly: the density of a sum of T
terms is a mixture of T Gamma densities on each side of 0. No exact tail is above the lemma's bound.
The exponent of a tail or of a bound is minus its logarithm. For tails of a hundredth or less, the
lemma's exponent is between a sixth and three quarters of the exact exponent. The share is a sixth
for large deviations of a single term. For sums of many terms, the exact exponent is about
a^2 / (4 T) for small a. At a = T the exact exponent is about (theta + ln(1 - theta^2)) T with
theta = sqrt(2) - 1, and there the lemma's exponent T / 6 is closest to the exact one.

Tails of uneven weights are simulated. The other tails are exact, and simulated as a check. Run time
on one core: quick 2 s, full 20 s.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import scipy.special
import scipy.stats

import experiments.engine.tools as ex
from geomdp.bounds.upper.theorems import laplace_sum_tail
from geomdp.noise import LaplaceNoise

#: Deviations in units of sqrt(2 T) b, the standard deviation of a sum with all weights 1.
DEVIATIONS = np.concatenate([np.linspace(0.25, 6, 24), np.geomspace(7, 30, 10)])
#: A tail of at most this probability is called small.
SMALL = 0.01
#: A hit is a simulated sum whose absolute value is at least the deviation. Simulated tails with
#: fewer hits than this are not drawn, and claims do not state their ratios to exact tails.
SHOWN = 10
#: The lemma's exponent divided by the exponent of Chernoff's bound, at a = T.
CLOSEST = 1 / (6 * (math.sqrt(2) - 1 + math.log(2 * math.sqrt(2) - 2)))
#: Tails below this are left out of the figure.
SMALLEST = 1e-12


class Weights(ex.Curve):
    """Coefficients q_i with B = 1. Tails for signs at random are checked but not drawn."""

    EQUAL = "equal weights", "0.2", "o"
    UNEVEN = "uneven weights, $q_i=i/T$", "0.2", "v", ex.HOLLOW
    SIGNS = "signs at random"


@dataclass(frozen=True)
class Config:
    """Simulated sums with the same coefficients."""

    weights: Weights  # Coefficients
    rows: int  # Number of terms T
    draws: int  # Simulated sums


def exact_tail(rows: int, deviations: ex.FloatArray) -> ex.FloatArray:
    """Pr[|Y_1 + ... + Y_T| >= y] for Y_i ~ Lap(1), at every y in `deviations`.

    For y > 0 the density is sum_{k < T} w_k y^k e^-y / k! with w_k = C(2T-2-k, T-1) 2^(k+1-2T).
    """
    k = np.arange(rows)
    logs = scipy.special.gammaln(2 * rows - 1 - k) - scipy.special.gammaln(rows)
    logs += (k + 1 - 2 * rows) * math.log(2) - scipy.special.gammaln(rows - k)
    tails = scipy.special.gammaincc(k + 1, deviations[:, None])
    return np.asarray(2 * tails @ np.exp(logs))


def compute(config: Config, rng: np.random.Generator) -> list[ex.Row]:
    """Counts of sums beyond each deviation, the lemma's bound, and exact tails of equal weights."""
    T = config.rows
    coefficients = {
        Weights.EQUAL: lambda: np.ones(T),
        Weights.UNEVEN: lambda: np.arange(1, T + 1) / T,
        Weights.SIGNS: lambda: rng.choice([-1.0, 1.0], T),
    }[config.weights]()
    sums = np.zeros(config.draws)
    one = LaplaceNoise(1, 1.0)
    for q in coefficients:
        sums += q * one.sample(rng, config.draws)[:, 0]
    deviations = DEVIATIONS * math.sqrt(2 * T)
    exact = exact_tail(T, deviations)
    sizes = np.abs(sums)
    return [
        {
            "deviation": float(a),
            "hits": int((sizes >= a).sum()),
            "exact": float(tail),
            "lemma": laplace_sum_tail(bound=1.0, scale=1.0, rows=T, deviation=float(a)),
        }
        for a, tail in zip(deviations, exact, strict=True)
    ]


def claims(table: pd.DataFrame) -> ex.Claims:
    once = table[table.weights == Weights.EQUAL]
    ratio = once.exact / once.lemma
    small = once[once.exact <= SMALL]
    exponents = np.log(small.lemma) / np.log(small.exact)
    full = table[table.weights != Weights.UNEVEN]
    chances = two_sided(full.hits, full.draws, full.exact)
    # For T = 1 the only uneven weight is 1, which is the equal weight.
    uneven = table[(table.weights == Weights.UNEVEN) & (table["rows"] > 1)]
    seen = uneven[uneven.hits >= SHOWN]
    above = scipy.stats.binom.sf(uneven.hits - 1, uneven.draws, uneven.exact)
    name = "no tail probability of a sum with equal weights is above the lemma's bound"
    measured = (
        f"{len(once)} tails of sums of {once['rows'].nunique()} lengths, at most "
        f"{ratio.max():.3f} of the bound"
    )
    yield ex.Claim(name, ex.at_most(ratio, 1), measured, "at most 1", "BR-L4.8")
    name = (
        "simulated sums with equal weights, and with random signs, have the exact tail "
        "probabilities"
    )
    measured = f"{len(full)} tails, smallest p-value {chances.min():.2g} (binomial)"
    theory = f"above {ex.LEVEL / len(full):.1e}"
    yield ex.Claim(name, ex.not_rare(chances, ex.LEVEL / len(full)), measured, theory, "BR-L4.8")
    name = "tail probabilities of sums with uneven weights are at most those with equal weights"
    measured = (
        f"{len(uneven)} tails; where {SHOWN} sums or more were seen, at most "
        f"{(seen.hits / seen.draws / seen.exact).max():.3f} times those of equal weights"
    )
    theory = "at most 1, up to chance"
    yield ex.Claim(name, ex.not_rare(above, ex.LEVEL / len(uneven)), measured, theory, "BR-L4.8")
    name = "for tail probabilities below 0.01, the lemma's exponent is 1/6 to 3/4 of the exact one"
    verdict = ex.Verdict(
        exponents.between(1 / 6 * (1 - 1e-9), CLOSEST).all(), ex.position(exponents, 1 / 6, CLOSEST)
    )
    measured = f"{len(small)} tails below {SMALL:g}, {exponents.min():.4f} to {exponents.max():.4f}"
    yield ex.Claim(name, verdict, measured, f"{1 / 6:.4f} to {CLOSEST:.4f}", "BR-L4.8")


def two_sided(hits: pd.Series, draws: pd.Series, chance: pd.Series) -> ex.FloatArray:
    """Binomial p-values, twice the smaller tail."""
    low = scipy.stats.binom.cdf(hits, draws, chance)
    high = scipy.stats.binom.sf(hits - 1, draws, chance)
    return np.minimum(2 * np.minimum(low, high), 1.0)


COLOURS = ("C0", "C5", "C2", ex.GREY, "C4")
LOOKS = Weights.looks()
EXACT = "exact, equal weights"
LEMMA = "Lemma 4.8"


def plot(table: pd.DataFrame) -> ex.Figure:
    figure = ex.Figure(figsize=(7.2, 4.8))
    tails, exponents = figure.subplots(1, 2)
    lengths = sorted(table["rows"].unique())
    for rows, colour in zip(lengths, COLOURS, strict=False):
        mine = table[table["rows"] == rows].assign(x=lambda t: t.deviation / np.sqrt(2 * t["rows"]))
        exact = mine[(mine.weights == Weights.EQUAL) & (mine.exact >= SMALLEST)]
        tails.plot(exact.x, exact.exact, color=colour, label=f"$T={rows}$")
        ex.draw_theory(tails, exact.x, exact.lemma, colour, "_")
        for weights, look in LOOKS.items():
            seen = mine[(mine.weights == weights) & (mine.hits >= SHOWN)]
            shares, coloured = seen.hits / seen.draws, replace(look, colour=colour)
            ex.draw_points(tails, seen.x, shares, coloured, "_", line="none", size=4, every=4)
        exponents.plot(exact.x, np.log(exact.lemma) / np.log(exact.exact), color=colour)
    for weights, look in LOOKS.items():
        ex.draw_points(tails, [], [], look, str(weights), line="none")
    tails.plot([], [], color="black", label=EXACT)
    ex.draw_theory(tails, [], [], "black", LEMMA)
    tails.set(yscale="log", ylim=(SMALLEST, 2), ylabel=r"$\Pr[\,|Y|\geq y\,]$", title="(a) tails")
    exponents.set(ylim=(0, 1), ylabel="exponent, lemma over exact")
    exponents.set_title("(b) what the lemma loses")
    for axes in (tails, exponents):
        axes.set_xlabel(r"deviation $y$ over $\sqrt{2T}\,b$")
    columns = {
        "length": [f"$T={rows}$" for rows in lengths],
        "simulated": [*LOOKS],
        "theory": [EXACT, LEMMA],
    }
    ex.shared_legend(figure, columns)
    result = "The exponent of the lemma's tail bound is up to six times too small"
    settings = "Weighted sums of $T$ Laplace variables. Marks: every fourth simulated tail."
    return ex.headline(figure, result, settings)


QUICK = ex.Sweep(ex.product(Config, Weights, (1, 10, 100), 20_000))
FULL = ex.Sweep(ex.product(Config, Weights, (1, 4, 16, 100, 1000), 200_000))
