"""Privacy lost through imperfect noise: errors in total variation, in density and in float64.

Formula sheet SAM-1, SAM-2, SAM-6; Mironov 2012, "On significance of the least significant bits for
differential privacy".

Claim: noise within total variation tau of the Laplace law of scale 1 / epsilon makes an answer of
sensitivity 1 (epsilon, (1 + e^epsilon) tau)-DP, but in general not purely private. The exact delta
is e^epsilon tau if draws are clamped from one side, tau if a Markov chain stays at its start with
probability tau, and tau (e^epsilon - 1) / (2 (1 - tau)) if draws beyond a limit are drawn again. In
all three cases some outputs are impossible for the neighbour. If the density is off by a factor of
at most e^(+-tau), privacy stays pure: the answer is (epsilon + 2 tau)-DP. A staircase with steps of
width h in place of the exponential has tau = epsilon h / 2 and loses exactly epsilon h ceil(1 / h).
All of this holds in real arithmetic only. In float64, more than four of five noisy versions of the
answer 0 cannot arise from the answer 1 by any draw. The guarantee of float64 noise therefore states
a caveat. Correctly rounded releases on a public grid have no such outputs (X-GRID): with Laplace,
cone and K-norm noise, neighbouring data sets can give the same releases.

All numbers are exact except simulated frequencies. Run time on one core: quick 4 s, full 100 s.
"""

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
import scipy.stats

import experiments.engine.tools as ex
import geomdp as gd
from experiments.privacy.published_bugs import float_outputs, rounded_outputs
from geomdp.noise import LaplaceNoise

EPSILON = 1.0


class Flaw(ex.Curve):
    """Flaws of the noise, in the order of the legend."""

    CLAMPED = "clamped from one side", "C4", "^"
    STUCK = "chain stays at its start", "C0", "o"
    TRUNCATED = "drawn again beyond a limit", "C2", "v"
    STAIRS = "staircase density", "C5", "s"
    FLOATS = "float64", ex.GREY, "D", ex.HOLLOW
    ROUNDED = "correctly rounded", "C0", "P"


TV = (Flaw.CLAMPED, Flaw.STUCK, Flaw.TRUNCATED)


@dataclass(frozen=True)
class Config:
    flaw: Flaw  # Flaw of the noise
    size: float  # Total variation tau, width h of a step, or scale of the noise
    draws: int  # Simulated draws; 0 for staircases, whose loss is computed exactly


def limit(flaw: Flaw, tau: float) -> float:
    """The limit beyond which draws are clamped or drawn again, for total variation tau."""
    return -math.log(2 * tau if flaw is Flaw.CLAMPED else tau) / EPSILON


def exact_delta(flaw: Flaw, tau: float) -> float:
    """The delta at epsilon, which is the probability of outputs that the neighbour cannot give."""
    return {
        Flaw.CLAMPED: math.exp(EPSILON) * tau,
        Flaw.STUCK: tau,
        Flaw.TRUNCATED: tau * math.expm1(EPSILON) / (2 * (1 - tau)),
    }[flaw]


def flawed_draws(config: Config, rng: np.random.Generator) -> ex.FloatArray:
    """Independent draws of the flawed noise, as an array (draws,)."""
    tau, n = config.size, config.draws
    draws = LaplaceNoise(1, 1 / EPSILON).sample(rng, n)[:, 0]
    if config.flaw is Flaw.STUCK:
        return np.where(rng.random(n) < tau, 0.0, draws)
    reach = limit(config.flaw, tau)
    if config.flaw is Flaw.CLAMPED:
        return np.maximum(draws, -reach)
    while (beyond := np.abs(draws) > reach).any():
        draws[beyond] = LaplaceNoise(1, 1 / EPSILON).sample(rng, int(beyond.sum()))[:, 0]
    return draws


def compute(config: Config, rng: np.random.Generator) -> ex.Row:
    """Outputs for the answer 0 that the answer 1 cannot give, or the loss of a staircase."""
    if config.flaw is Flaw.FLOATS:
        return float_outputs(config.size, config.draws, rng)
    if config.flaw is Flaw.ROUNDED:
        # Without a seed, the operating system supplies the random bits.
        return rounded_outputs(EPSILON / config.size, config.draws)
    return stairs(config) if config.flaw is Flaw.STAIRS else variation(config, rng)


def variation(config: Config, rng: np.random.Generator) -> ex.Row:
    """The number of impossible outputs, the exact delta and its bound."""
    draws = flawed_draws(config, rng)
    reach = limit(config.flaw, config.size)
    impossible = draws == 0 if config.flaw is Flaw.STUCK else draws < 1 - reach
    record = gd.privacy.Guarantee(
        gd.PureDP(EPSILON),
        gd.Adjacency.REPLACE_ONE,
        gd.privacy.Approximate(config.size, "closed form"),
    )
    bound = record.effective
    assert isinstance(bound, gd.ApproxDP)
    exact = exact_delta(config.flaw, config.size)
    return {"hits": int(impossible.sum()), "exact": exact, "bound": bound.delta}


def stairs(config: Config) -> ex.Row:
    """Largest log ratio of a staircase density to itself shifted by 1.

    On [j h, (j + 1) h) the density is the exponential density at the middle, times a constant that
    is the same for all steps. Up to this constant, the staircase and the exponential density
    therefore differ by a factor of at most e^(+-epsilon h / 2).
    """
    h = config.size
    # A shift by 1 moves a point just below the end of a step by 1 / h steps, rounded up.
    points = (np.arange(round(8 / h)) + 1 - 1e-9) * h
    steps = np.floor(np.abs(np.stack([points, points + 1])) / h)
    return {"exact": float(EPSILON * h * (steps[1] - steps[0]).max()), "bound": EPSILON * (1 + h)}


def claims(table: pd.DataFrame) -> ex.Claims:
    flawed = table[table.flaw.isin(TV)]
    shares = flawed.exact / flawed.bound
    chances = np.minimum(
        2 * scipy.stats.binom.cdf(flawed.hits, flawed.draws, flawed.exact),
        2 * scipy.stats.binom.sf(flawed.hits - 1, flawed.draws, flawed.exact),
    )
    stair = table[table.flaw == Flaw.STAIRS]
    used = stair.exact / stair.bound
    mine, safe = (table[table.flaw == flaw] for flaw in (Flaw.FLOATS, Flaw.ROUNDED))
    least = min(float(clopper_pearson(int(h), int(n), ex.LEVEL / len(mine))[0])
                for h, n in zip(mine.hits, mine.draws, strict=True))  # fmt: skip
    yield ex.Claim(
        "the exact delta stays below the bound (1 + e^epsilon) tau, and one flaw attains "
        "e^epsilon tau",
        ex.Verdict(shares.max() < 1 and shares.max() > 0.7, shares.max()),
        f"{len(flawed)} values, at most {shares.max():.4f} of the bound",
        f"at most 1; e^epsilon / (1 + e^epsilon) = {1 / (1 + math.exp(-EPSILON)):.4f} attained",
        "SAM-1",
    )
    yield ex.Claim(
        "flawed noise gives outputs that are impossible for the neighbour, as often as the "
        "exact delta says",
        ex.not_rare(chances, ex.LEVEL / len(flawed)) & ex.each_case((flawed.hits > 0).all()),
        f"{int(flawed.hits.sum())} of {int(flawed.draws.sum())} draws, smallest p-value "
        f"{chances.min():.2g} (binomial)",
        f"p-values above {ex.LEVEL / len(flawed):.1e}; some such outputs at every tau",
        "SAM-2",
    )
    name = "noise whose density is off by a factor of at most e^tau loses at most epsilon + 2 tau"
    verdict = ex.at_most([used.max(), 0.9 / used.max()], 1 + 1e-9)
    measured = f"{len(stair)} staircases, {used.min():.3f} to {used.max():.3f} of the bound"
    yield ex.Claim(name, verdict, measured, "at most 1, and the largest above 0.9", "SAM-2")
    yield ex.Claim(
        "most float64 outputs for the answer 0 are impossible for the answer 1, and all are "
        "possible for 0",
        ex.above(least, 0.5) & ex.each_case((mine.unexplained == 0).all()),
        f"{(mine.hits / mine.draws).min():.3f} to {(mine.hits / mine.draws).max():.3f} of "
        f"{int(mine.draws.min())} outputs at {len(mine)} scales, lower confidence bounds at "
        f"least {least:.3f}; {int(mine.unexplained.sum())} impossible for 0 itself",
        "lower bounds above 1/2; none impossible for 0",
        "SAM-6",
    )
    name = "every release without a seed could also come from the neighbouring data set"
    verdict = ex.each_case((safe.hits == 0).all() and (safe.unexplained == 0).all())
    measured = f"{int(safe.hits.sum())} of {int(safe.draws.sum())} releases could not"
    yield ex.Claim(name, verdict, measured, "none, for Laplace, cone and K-norm noise", "X-GRID")


def clopper_pearson(hits: int, draws: int, level: float) -> tuple[float, float]:
    """Interval that misses the true probability of a hit with probability at most `level`."""
    found = scipy.stats.binomtest(hits, draws).proportion_ci(1 - level, "exact")
    return float(found.low), float(found.high)


LOOKS = Flaw.looks()
EXACT = "exact"
VARIATION = r"SAM-1: $(1+e^\varepsilon)\,\tau$"
RATIO = r"SAM-2: $\varepsilon+2\tau$"


def plot(table: pd.DataFrame) -> ex.Figure:
    figure = ex.Figure(figsize=(7.2, 4.9))
    variations, losses, outputs = figure.subplots(1, 3)
    draw_variations(variations, table)
    draw_losses(losses, table[table.flaw == Flaw.STAIRS].sort_values("size"))
    draw_outputs(outputs, table)
    names = [*LOOKS]
    columns = {
        "law of the noise (a), (b)": names[:4],
        "arithmetic (c)": names[4:],
        "theory": [EXACT, VARIATION, RATIO],
    }
    ex.shared_legend(figure, columns)
    result = "Imperfect noise loses privacy, and float64 gives most answers away"
    return ex.headline(figure, result, r"Noise for one answer of sensitivity 1, $\varepsilon=1$.")


def draw_variations(axes: ex.Axes, table: pd.DataFrame) -> None:
    """delta of each flaw: the exact value, simulated frequencies and the bound."""
    for flaw in TV:
        mine = table[table.flaw == flaw].sort_values("size")
        ex.draw_theory(axes, mine["size"], mine.exact, LOOKS[flaw].colour, "_")
        frequencies(axes, mine, flaw)
        ex.draw_theory(axes, mine["size"], mine.bound, "black", VARIATION, (1, 2))
    ex.draw_theory(axes, [], [], "0.4", EXACT)
    ex.log_axes(axes)
    axes.set(xlabel=r"total variation $\tau$", ylabel=r"least $\delta$ at $\varepsilon=1$")
    axes.set_title("(a) total variation $\\tau$:\nnot pure")


def draw_losses(axes: ex.Axes, stair: pd.DataFrame) -> None:
    """Privacy loss of staircases against the error of their log density."""
    look = LOOKS[Flaw.STAIRS]
    ex.draw_points(axes, stair["size"] / 2, stair.exact, look, Flaw.STAIRS, line="none", size=3)
    ex.draw_theory(axes, stair["size"] / 2, stair.bound, "black", RATIO, (4, 1, 1, 1))
    axes.set(xlabel=r"error $\tau$ of the log density", ylabel=r"largest privacy loss (nats)")
    axes.set_ylim(0.95, 2.05)
    axes.set_title("(b) density within\n$e^{\\pm\\tau}$: still pure")


def draw_outputs(axes: ex.Axes, table: pd.DataFrame) -> None:
    """Shares of outputs that the neighbour cannot give; a text names each line."""
    for flaw, height in ((Flaw.FLOATS, 0.62), (Flaw.ROUNDED, 0.06)):
        mine = table[table.flaw == flaw].sort_values("size")
        frequencies(axes, mine, flaw)
        note = f"{flaw}:\n{mine.hits.sum() / mine.draws.sum():.0%}"
        if flaw is Flaw.ROUNDED:
            note = f"{flaw}:\n{mine.hits.sum():.0f} of {mine.draws.sum():,}"
        axes.text(mine["size"].median(), height, note, ha="center", size=ex.SMALL)
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set(ylim=(-0.03, 1), xlabel="scale of the noise")
    axes.set_ylabel("outputs that give data away")
    axes.set_title("(c) rounding:\nexact or float64")


def frequencies(axes: ex.Axes, mine: pd.DataFrame, flaw: Flaw) -> None:
    """Shares of impossible outputs with 95% intervals."""
    pairs = zip(mine.hits.astype(int), mine.draws, strict=True)
    bands = np.array([clopper_pearson(h, n, ex.BAND_LEVEL) for h, n in pairs])
    line, band = "-" if flaw in (Flaw.FLOATS, Flaw.ROUNDED) else "none", (bands[:, 0], bands[:, 1])
    ex.draw_points(axes, mine["size"], mine.hits / mine.draws, LOOKS[flaw], flaw, line, band)


def grid(draws: int, outputs: int, releases: int) -> tuple[Config, ...]:
    """All flaws at their sizes."""
    taus = (0.001, 0.003, 0.01, 0.03, 0.1)
    steps = [round(0.015 * k, 3) for k in range(1, 67)]
    scales = tuple(2.0**k for k in range(-2, 7))
    return (
        *ex.product(Config, TV, taus, draws),
        *ex.product(Config, Flaw.STAIRS, steps, 0),
        *ex.product(Config, Flaw.FLOATS, scales, outputs),
        *ex.product(Config, Flaw.ROUNDED, scales, releases),
    )


QUICK = ex.Sweep(grid(30_000, 1000, 300))
FULL = ex.Sweep(grid(1_000_000, 20_000, 12_000))
