"""What noise that is not quite right costs: in total variation, in density, in floating point.

Formula sheet SAM-1, SAM-2, SAM-6; Mironov 2012, "On significance of the least significant bits for
differential privacy".

Claim: Laplace noise of scale 1 / epsilon within total variation tau of its law makes an answer of
sensitivity 1 (epsilon, (1 + e^epsilon) tau)-DP and not purely private. Exact values of delta:
e^epsilon tau where draws are clamped from one side, tau where a chain stays at its start with
probability tau, tau (e^epsilon - 1) / (2 (1 - tau)) where draws beyond a limit are drawn again; in
all three some outputs are impossible for the neighbour. Where the density is off by a factor
e^(+-tau) at most, privacy stays pure, (epsilon + 2 tau)-DP: a staircase of steps h in place of the
exponential, tau = epsilon h / 2, loses exactly epsilon h ceil(1 / h). All of this holds in real
arithmetic only. In float64, four of five noisy answers to 0 cannot arise from the answer 1 by any
draw, so every privacy record of float64 noise carries that caveat. Releases without a seed are
correctly rounded to a public grid (X-GRID): of Laplace, cone and K-norm noise, no release of one
data set is out of reach of its neighbour.

All numbers are exact except simulated frequencies. Run time on one core: quick 4 s, full 100 s.
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd
import scipy.stats
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import geomdp as gd
from experiments.engine.cells import Row, Sweep
from experiments.engine.claims import Claim
from experiments.engine.drawing import (
    BAND_LEVEL,
    Look,
    draw_points,
    draw_theory,
    log_axes,
    shared_legend,
)
from experiments.engine.statistics import LEVEL
from geomdp.noise import LaplaceNoise

FloatArray = npt.NDArray[np.float64]
EPSILON = 1.0
#: Uniform numbers behind `Generator.laplace` are multiples of this in [0, 1).
GRID = 2.0**-53
#: Records of a correctly rounded release; a power of two, so that means show their grid exactly.
RELEASED = 64
#: Mechanisms that share the releases of a cell.
KINDS = 3


class Flaw(enum.StrEnum):
    """What is wrong, in the order of the legend."""

    CLAMPED = "clamped from one side"
    STUCK = "chain stays at its start"
    TRUNCATED = "drawn again beyond a limit"
    STAIRS = "staircase density"
    FLOATS = "float64"
    ROUNDED = "correctly rounded"


TV = (Flaw.CLAMPED, Flaw.STUCK, Flaw.TRUNCATED)


@dataclass(frozen=True)
class Config:
    """One point of the figure."""

    flaw: Flaw  # What is wrong
    size: float  # Total variation tau, width h of a step, or scale of the noise
    draws: int  # Simulated draws; 0 for steps, where all is exact


def limit(flaw: Flaw, tau: float) -> float:
    """The limit beyond which draws are clamped or drawn again, for total variation tau."""
    return -math.log(2 * tau if flaw is Flaw.CLAMPED else tau) / EPSILON


def exact_delta(flaw: Flaw, tau: float) -> float:
    """Probability of the outputs that the neighbour cannot give: delta at epsilon."""
    return {
        Flaw.CLAMPED: math.exp(EPSILON) * tau,
        Flaw.STUCK: tau,
        Flaw.TRUNCATED: tau * math.expm1(EPSILON) / (2 * (1 - tau)),
    }[flaw]


def flawed_draws(config: Config, rng: np.random.Generator) -> FloatArray:
    """Noise (draws,) of the flawed law."""
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


def compute(config: Config, rng: np.random.Generator) -> list[Row]:
    """Outputs for the answer 0 that the answer 1 cannot give, or the loss of a staircase."""
    routes = {Flaw.STAIRS: stairs, Flaw.FLOATS: floats, Flaw.ROUNDED: rounded}
    return [routes.get(config.flaw, variation)(config, rng)]


def variation(config: Config, rng: np.random.Generator) -> Row:
    """Impossible outputs beside delta and its bound."""
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


def stairs(config: Config, rng: np.random.Generator) -> Row:
    """Largest log ratio of a staircase density to itself shifted by 1.

    On [j h, (j + 1) h) the density is that of the middle up to a constant, so within
    e^(+-epsilon h / 2) of the exponential one; the constant is the same for all steps.
    """
    del rng
    h = config.size
    # A shift by 1 moves a point by 1 / h steps, rounded up at the ends of a step.
    points = (np.arange(round(8 / h)) + 1 - 1e-9) * h
    steps = np.floor(np.abs(np.stack([points, points + 1])) / h)
    return {"exact": float(EPSILON * h * (steps[1] - steps[0]).max()), "bound": EPSILON * (1 + h)}


def floats(config: Config, rng: np.random.Generator) -> Row:
    """Count noisy answers to 0 that no draw can give: from the answer 0 itself, and from 1."""
    released = 0.0 + LaplaceNoise(1, config.size).sample(rng, config.draws)[:, 0]
    explained = {a: [possible(y, a, config.size) for y in released.tolist()] for a in (0.0, 1.0)}
    return {"hits": explained[1.0].count(False), "unexplained": explained[0.0].count(False)}


def rounded(config: Config, rng: np.random.Generator) -> Row:
    """Count releases without a seed that are off the grid of the data set, or of its neighbour.

    Any multiple of the unit is a draw of the noise, so that the answers within reach of a data set
    are its sums plus all multiples of the unit.
    """
    del rng  # the bits are the operating system's
    privacy, off = gd.PureDP(EPSILON / config.size), np.zeros(2, dtype=int)
    records = np.zeros((RELEASED, 3), dtype=int)
    neighbour = records.copy()
    neighbour[0] = 1
    for mechanism in (
        gd.mechanisms.Laplace(gd.workloads.Marginals(3, 2), n=RELEASED, privacy=privacy),
        gd.mechanisms.Cone(gd.workloads.Marginals(3, 2), n=RELEASED, privacy=privacy),
        gd.mechanisms.KNorm(gd.workloads.Parities(3, 1), n=RELEASED, privacy=privacy),
    ):
        mechanism.set_up()
        assert mechanism.grid is not None
        sums = [mechanism.workload.totals(each).sums for each in (neighbour, records)]
        count = config.draws // KINDS
        answers = np.array([mechanism.release(records).answers for _ in range(count)])
        for i, reached in enumerate(sums):
            steps = (answers * RELEASED - reached) * 2.0**mechanism.grid
            off[i] += int((steps != np.rint(steps)).any(axis=1).sum())
    return {"hits": int(off[0]), "unexplained": int(off[1])}


def possible(output: float, answer: float, scale: float) -> bool:
    """Whether some draw of `Generator.laplace` added to `answer` gives `output` in float64.

    A uniform number v gives scale ln(2 v) below 1/2, and -scale ln(2 - v - v) from there on.
    """
    noise = output - answer
    middle = math.exp(-abs(noise) / scale)
    # All draws for which the sum can round to the output: half a unit in its last place to each
    # side, and one in the noise's for the rounding of logarithm and product.
    width = middle / scale * (math.ulp(output) + 2 * math.ulp(noise) + 2 * math.ulp(scale))
    reach = math.ceil(width / GRID) + 4
    centre = round((1 - middle / 2 if noise > 0 else middle / 2) / GRID)
    for k in range(max(centre - reach, 1), min(centre + reach + 1, round(1 / GRID))):
        v = k * GRID
        found = -scale * math.log(2 - v - v) if v >= 0.5 else scale * math.log(v + v)
        if answer + found == output:
            return True
    return False


def claims(table: pd.DataFrame) -> list[Claim]:
    """Exact values against bounds and simulated frequencies, and what floats give away."""
    flawed = table[table.flaw.isin(TV)]
    shares = flawed.exact / flawed.bound
    chances = np.minimum(
        2 * scipy.stats.binom.cdf(flawed.hits, flawed.draws, flawed.exact),
        2 * scipy.stats.binom.sf(flawed.hits - 1, flawed.draws, flawed.exact),
    )
    stair = table[table.flaw == Flaw.STAIRS]
    used = stair.exact / stair.bound
    mine = table[table.flaw == Flaw.FLOATS]
    safe = table[table.flaw == Flaw.ROUNDED]
    least = min(float(clopper_pearson(int(h), int(n), LEVEL / len(mine))[0])
                for h, n in zip(mine.hits, mine.draws, strict=True))  # fmt: skip
    return [
        Claim(
            "delta stays below (1 + e^epsilon) tau, which one flaw nearly attains",
            bool(shares.max() < 1 and shares.max() > 0.7),
            f"{len(flawed)} values, at most {shares.max():.4f} of the bound",
            f"at most 1; e^epsilon / (1 + e^epsilon) = {1 / (1 + math.exp(-EPSILON)):.4f} attained",
            "SAM-1",
        ),
        Claim(
            "outputs that the neighbour cannot give come as often as stated: no pure privacy",
            bool((chances > LEVEL / len(flawed)).all() and (flawed.hits > 0).all()),
            f"{int(flawed.hits.sum())} of {int(flawed.draws.sum())} draws, smallest p-value "
            f"{chances.min():.2g} (binomial)",
            f"above {LEVEL / len(flawed):.1e}, and some at every tau",
            "SAM-2",
        ),
        Claim(
            "a density within e^(+-tau) loses at most epsilon + 2 tau, a staircase all of it",
            bool((used <= 1 + 1e-9).all() and used.max() > 0.9),
            f"{len(stair)} staircases, {used.min():.3f} to {used.max():.3f} of the bound",
            "at most 1",
            "SAM-2",
        ),
        Claim(
            "in float64 most noisy answers 0 cannot come from 1, and each comes from 0 by a draw",
            bool(least > 0.5 and (mine.unexplained == 0).all()),
            f"{(mine.hits / mine.draws).min():.3f} to {(mine.hits / mine.draws).max():.3f} of "
            f"{int(mine.draws.min())} answers at {len(mine)} scales, above {least:.3f} beyond "
            f"chance; {int(mine.unexplained.sum())} unexplained",
            "above 1/2; 0 unexplained",
            "SAM-6",
        ),
        Claim(
            "no release without a seed is out of reach of its neighbour",
            bool((safe.hits == 0).all() and (safe.unexplained == 0).all()),
            f"{int(safe.hits.sum())} of {int(safe.draws.sum())}",
            "0, for Laplace, cone and K-norm noise",
            "X-GRID",
        ),
    ]


def clopper_pearson(hits: int, draws: int, level: float) -> tuple[float, float]:
    """Interval of a probability that misses it with probability at most `level`."""
    found = scipy.stats.binomtest(hits, draws).proportion_ci(1 - level, "exact")
    return float(found.low), float(found.high)


LOOKS = {
    Flaw.CLAMPED: Look("C3", "^"),
    Flaw.STUCK: Look("C0", "o"),
    Flaw.TRUNCATED: Look("C2", "v"),
    Flaw.STAIRS: Look("C1", "s"),
    Flaw.FLOATS: Look("C6", "D", filled=False),
    Flaw.ROUNDED: Look("C4", "P"),
}
EXACT = "exact"
VARIATION = r"SAM-1: $(1+e^\varepsilon)\,\tau$"
RATIO = r"SAM-2: $\varepsilon+2\tau$"


def plot(table: pd.DataFrame) -> Figure:
    """delta against tau, loss against the step, and impossible outputs against the scale."""
    figure = Figure(figsize=(7.2, 4.0))
    variations, losses, outputs = figure.subplots(1, 3)
    for flaw in TV:
        mine = table[table.flaw == flaw].sort_values("size")
        draw_theory(variations, mine["size"], mine.exact, LOOKS[flaw].colour, "_")
        frequencies(variations, mine, flaw)
        draw_theory(variations, mine["size"], mine.bound, "black", VARIATION, (1, 2))
    draw_theory(variations, [], [], "0.4", EXACT)
    log_axes(variations)
    variations.set_xlabel(r"total variation $\tau$")
    variations.set_ylabel(r"$\delta$ at $\varepsilon=1$")
    variations.set_title("(a) in variation")
    stair = table[table.flaw == Flaw.STAIRS].sort_values("size")
    look = LOOKS[Flaw.STAIRS]
    draw_points(losses, stair["size"] / 2, stair.exact, look, Flaw.STAIRS, line="none", size=3)
    draw_theory(losses, stair["size"] / 2, stair.bound, "black", RATIO, (4, 1, 1, 1))
    losses.set_xlabel(r"log of density off by $\tau$")
    losses.set_ylabel("privacy loss")
    losses.set_ylim(bottom=0)
    losses.set_title("(b) in density")
    for flaw in (Flaw.FLOATS, Flaw.ROUNDED):
        frequencies(outputs, table[table.flaw == flaw].sort_values("size"), flaw)
    outputs.set_xscale("log", base=2)
    outputs.set_ylim(0, 1)
    outputs.set_xlabel(r"scale of the noise")
    outputs.set_ylabel("impossible for the neighbour")
    outputs.set_title("(c) on a computer")
    names = [*LOOKS]
    columns = {"flaw": names[:3], " ": names[3:], "theory": [EXACT, VARIATION, RATIO]}
    shared_legend(figure, (variations, losses, outputs), columns)
    return figure


def frequencies(axes: Axes, mine: pd.DataFrame, flaw: Flaw) -> None:
    """Shares of impossible outputs with 95% intervals."""
    pairs = zip(mine.hits.astype(int), mine.draws, strict=True)
    bands = np.array([clopper_pearson(h, n, BAND_LEVEL) for h, n in pairs])
    line, band = "-" if flaw in (Flaw.FLOATS, Flaw.ROUNDED) else "none", (bands[:, 0], bands[:, 1])
    draw_points(axes, mine["size"], mine.hits / mine.draws, LOOKS[flaw], flaw, line, band)


def grid(draws: int, outputs: int, releases: int) -> tuple[Config, ...]:
    """All flaws at their sizes."""
    taus = (0.001, 0.003, 0.01, 0.03, 0.1)
    steps = [round(0.015 * k, 3) for k in range(1, 67)]
    scales = tuple(2.0**k for k in range(-2, 7))
    return (
        *[Config(flaw, tau, draws) for flaw in TV for tau in taus],
        *[Config(Flaw.STAIRS, h, 0) for h in steps],
        *[Config(Flaw.FLOATS, scale, outputs) for scale in scales],
        *[Config(Flaw.ROUNDED, scale, releases) for scale in scales],
    )


QUICK = Sweep(grid(30_000, 1000, 300), trials=1, seed=0)
FULL = Sweep(grid(1_000_000, 20_000, 12_000), trials=1, seed=0)
