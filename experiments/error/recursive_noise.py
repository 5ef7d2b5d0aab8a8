"""Errors of recursive noise and of K-norm noise, on boxes from the cube to long boxes.

Papers: Hardt and Talwar 2010, "On the geometry of differential privacy", section 7; Nikolov 2022
(arXiv 2208.07410), Lemmas 16, 18 and 19; formula sheet JL-L16, JL-L18, JL-L19, JL-SPLIT.

Claim: scale the i-th of 16 one-way marginals by r^i. The sums of answers of neighbours then differ
by vectors in the box of half-widths r^i. Recursive noise splits the space into orthogonal subspaces
V, one for each level of the recursion. Its part in V is the K-norm noise of the box's projection on
V ("intrinsic"), or K-norm noise in a larger subspace W, projected on V ("projected", as in the
published proof). With the best split of the budget and the best level to stop at, both variants err
exactly as predicted and never more than K-norm noise. On the cube (r = 1) they are K-norm noise.
Their error relative to K-norm noise never rises as r falls, and is below 1/2 at the least r. At
r = 1/2 the squared errors of all stop levels equal the values in the formula sheet. The recursion
must be able to stop early: on the cube, the full recursion errs 1.3 (intrinsic) and 2.2 (projected)
times as much as K-norm noise.

In dimension 2 to 256 the error of the full recursion is at most twice the sum over volume radii of
Lemma 19. It is at least half of that sum on cubes, and at least an eighth on long boxes (r = 0.9).
On cubes the error is the width of Lemma 16 up to a factor 2.5.

All noise has an exact sampler. Run time on one core: quick 6 s, full 2 min.
"""

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
import pandas as pd

import experiments.engine.tools as ex
import geomdp as gd
from geomdp.noise import Variant, decompose
from geomdp.noise.recursive import RecursiveNoise, stopped


def by_volume_radii(half_widths: ex.FloatArray) -> float:
    """The sum of Lemma 19, (sum over i of (D_i vr_j)^(2/3))^(3/2) / k^(1/2), with j = D_i / 2.

    D_1 is the dimension k, and each further D_i is half of the one before, until it is 1. All
    halves are rounded down, but j is at least 1. Here vr_j is the volume radius of the projection
    on the j longest sides. Lemma 19 itself takes the largest volume radius of all projections on j
    dimensions, which can be larger.
    """
    longest = np.sort(half_widths)[::-1]
    D, terms = len(longest), []
    while D > 0:
        terms.append(math.pow(D * volume_radius(longest[: max(1, D // 2)]), 2 / 3))
        D //= 2
    return math.pow(math.fsum(terms), 1.5) / math.sqrt(len(longest))


def volume_radius(half_widths: ex.FloatArray) -> float:
    """Radius of the ball with the volume of a box."""
    j = len(half_widths)
    log_ball = j / 2 * math.log(math.pi) - math.lgamma(j / 2 + 1)
    return math.exp((float(np.log(2 * half_widths).sum()) - log_ball) / j)


def width(half_widths: ex.FloatArray) -> float:
    """Gaussian width of a box: the bound of Lemma 16, up to a constant factor."""
    return float(half_widths.sum()) * math.sqrt(2 / math.pi)


def by_dimension(rows: pd.DataFrame) -> pd.DataFrame:
    """Errors of the recursion without early stop, and both bounds; a row per box and family."""
    keys = ["ratio", "family", "dimension"]
    bounds = rows.groupby(keys)[["lemma_16", "lemma_19"]].first()
    means = ex.pooled_by(rows, keys)
    return bounds.assign(error=[means[key].root for key in bounds.index]).reset_index()


def within_a_constant(
    name: str, id: str, rows: pd.DataFrame, bound: str, ends: tuple[float, float]
) -> ex.Claim:
    """The claim that the error is between two multiples of a bound, in every dimension."""
    share, (low, high) = rows.error / rows[bound], ends
    return ex.Claim(
        f"the error of the full recursion is {low:g} to {high:g} times {name}",
        ex.at_least(share, low) & ex.at_most(share, high),
        f"dimension {rows.dimension.min()} to {rows.dimension.max()}, ratio "
        f"{share.min():.3f} to {share.max():.3f}",
        f"{low:g} to {high:g}",
        id,
    )


DIMENSION = 16
N = 100
#: Special values of `stop`; levels count from 1. With `BEST` the mechanism chooses the level, and
#: with `NEVER` the recursion does not stop early.
BEST, NEVER = 0, -1


class Family(ex.Curve):
    """Noise, in the order of the legend."""

    KNORM = "K-norm", "C5", "s"
    PROJECTED = "recursive, projected", "C2", "v", ex.HOLLOW
    INTRINSIC = "recursive, intrinsic", "C0", "o"


VARIANTS = {Family.PROJECTED: Variant.PROJECTED, Family.INTRINSIC: Variant.INTRINSIC}


@dataclass(frozen=True)
class Config:
    ratio: float  # Ratio r of a half-width to the one before it
    family: Family  # Noise
    stop: int  # Level at which the recursion stops, from 1; 0 for the best, -1 for never
    draws: int  # Releases, or draws of noise, in one cell
    dimension: int = DIMENSION


@cache
def workload(ratio: float) -> gd.workloads.Workload:
    """One-way marginals of 16 attributes. The i-th marginal, i = 0 to 15, is multiplied by r^i."""
    scales = np.diag(ratio ** np.arange(DIMENSION))
    return gd.workloads.LinearMap(gd.workloads.Marginals(DIMENSION, 1), scales)


def compute(config: Config, rng: np.random.Generator) -> ex.Row:
    """Mean squared error per query over the releases of one trial, with the prediction."""
    return (of_mechanism if config.stop == BEST else of_stop_level)(config, rng)


def of_mechanism(config: Config, rng: np.random.Generator) -> ex.Row:
    """Measured and predicted errors of a mechanism of the library, on uniform records."""
    Q, privacy = workload(config.ratio), gd.PureDP(1.0)
    M: gd.mechanisms.KNorm | gd.mechanisms.Recursive
    if config.family is Family.KNORM:
        M, levels = gd.mechanisms.KNorm(Q, n=N, privacy=privacy, exact=True), 1
    else:
        M = gd.mechanisms.Recursive(Q, n=N, privacy=privacy, variant=VARIANTS[config.family])
        levels = len(M.noise.levels)
    measured = ex.release_columns(M, Q.universe.sample(N, rng), config.draws, rng)
    return {**measured, "levels": levels, "sampler": str(M.guarantee.sampler)}


def of_stop_level(config: Config, rng: np.random.Generator) -> ex.Row:
    """Measured and predicted errors of means, for noise whose recursion stops at a given level."""
    sides = config.ratio ** np.arange(config.dimension)
    stages = decompose(gd.bodies.Box.centred(sides), VARIANTS[config.family], exact=True)
    noise = RecursiveNoise(stopped(stages)[config.stop - (config.stop > 0)], 1.0)
    draws = noise.sample(rng, config.draws) / N
    exact = float(np.sqrt(noise.second_moment().value / config.dimension) / N)
    return {
        **ex.MeanSquare.of((draws**2).mean(axis=1)).columns(),
        **ex.predicted_columns(
            gd.mechanisms.Prediction(exact, gd.mechanisms.PredictionKind.EXACT, "JL-SPLIT")
        ),
        "levels": len(noise.levels),
        "sampler": str(noise.sampler),
        "lemma_16": width(sides) / N,
        "lemma_19": by_volume_radii(sides) / N,
    }


#: E||Z||^2 for r = 1/2 and epsilon = 1, at the stop levels 1 to 5 (JL-SPLIT), to two decimals.
SHEET = {
    Family.PROJECTED: (136.00, 44.64, 27.92, 35.82, 56.91),
    Family.INTRINSIC: (136.00, 43.05, 22.57, 23.06, 32.46),
}
#: Roots of E||Z||^2 on the cube of dimension 16, for full recursion and K-norm noise (JL-SPLIT).
CUBE = {Family.PROJECTED: 88.364, Family.INTRINSIC: 53.251, Family.KNORM: 40.398}


def claims(table: pd.DataFrame) -> ex.Claims:
    best, stops = table[table.stop == BEST], table[table.stop > 0]
    whole = by_dimension(table[table.stop == NEVER])
    cubes, long = whole[whole.ratio == 1], whole[whole.ratio < 1]
    name = "mechanisms have the predicted errors"
    yield ex.agrees_with_prediction(name, "JL-L14, JL-SPLIT", best, ("ratio", "family"))
    name = "recursive noise has the predicted error at every stop level"
    yield ex.agrees_with_prediction(
        name, "JL-SPLIT", table[table.stop != BEST], ("ratio", "family", "stop", "dimension")
    )
    yield never_worse(best)
    yield gains_grow(best)
    yield sheet_is_met(stops)
    yield within_a_constant("the sum of Lemma 19 on cubes", "JL-L19", cubes, "lemma_19", (0.5, 2))
    yield within_a_constant(
        "the sum of Lemma 19 on long boxes", "JL-L19", long, "lemma_19", (0.125, 2)
    )
    yield within_a_constant(
        "the width of Lemma 16 on cubes", "JL-L16", cubes, "lemma_16", (0.4, 2.5)
    )


def predictions(table: pd.DataFrame) -> pd.DataFrame:
    """Predicted errors, one row per ratio, one column per family."""
    return table.groupby(["ratio", "family"]).predicted.first().unstack()


def never_worse(best: pd.DataFrame) -> ex.Claim:
    """Neither variant errs more than K-norm noise, and on the cube both are K-norm noise."""
    errors = predictions(best)
    shares = pd.concat([errors[family] / errors[Family.KNORM] for family in VARIANTS])
    on_cube = best[(best.ratio == 1) & best.family.isin(VARIANTS)].levels
    name = "recursive noise never errs more than K-norm noise, and on the cube it is K-norm noise"
    verdict = ex.at_most(shares, 1 + 1e-12) & ex.each_case(set(on_cube) == {1})
    measured = f"ratio at most {shares.max():.6f}; {sorted(set(on_cube))} levels on the cube"
    return ex.Claim(name, verdict, measured, "at most 1; 1 level", "JL-SPLIT, early stopping")


def gains_grow(best: pd.DataFrame) -> ex.Claim:
    """A smaller ratio r never lowers the gain: the K-norm error over the recursive error."""
    errors = predictions(best).sort_index(ascending=False)
    gains = [errors[Family.KNORM] / errors[family] for family in VARIANTS]
    growing = all((gain.diff().dropna() >= -1e-12).all() for gain in gains)
    largest = ", ".join(f"{gain.iloc[-1]:.3f}" for gain in gains)
    return ex.Claim(
        "as the box gets longer, recursive noise never errs more relative to K-norm noise",
        ex.each_case(growing) & ex.above([gain.iloc[-1] for gain in gains], 2),
        f"K-norm error over recursive error at r = {errors.index[-1]:g}: {largest} (projected, "
        "intrinsic)",
        "never falling, above 2 at the end",
        "JL-L18",
    )


def sheet_is_met(stops: pd.DataFrame) -> ex.Claim:
    """Errors at r = 1/2, and errors of the full recursion on the cube, match the formula sheet."""
    energy = (stops.predicted * N) ** 2 * DIMENSION
    half = [
        abs(energy[(stops.ratio == 0.5) & (stops.family == family) & (stops.stop == stop)] - value)
        for family, values in SHEET.items()
        for stop, value in enumerate(values, start=1)
    ]
    cube = [
        abs(
            np.sqrt(energy[(stops.ratio == 1) & (stops.family == family)].iloc[[-1]]) - CUBE[family]
        )
        for family in VARIANTS
    ]
    off, off_cube = float(pd.concat(half).max()), float(pd.concat(cube).max())
    return ex.Claim(
        "squared errors at each stop level, and errors on the cube, equal those of the formula "
        "sheet",
        # The sheet rounds to two and to three decimals.
        ex.at_most([off, off_cube], [0.005, 0.0005]),
        f"off by {off:.4f} at most, and by {off_cube:.5f} on the cube",
        "0.005 and 0.0005, by rounding",
        "JL-SPLIT",
    )


LOOKS = Family.looks()


def plot(table: pd.DataFrame) -> ex.Figure:
    level = "stop level"
    titles = ["best stop level", "$r=1/2$", "cube, $r=1$"]
    labels = ["ratio $r$ of half-widths $r^i$", level, level]
    ylabel = "error per query (RMSE of means)"
    figure, panels = ex.panels((7.2, 3.9), titles, labels, ylabel, sharey=True)
    draw(panels[0], table[table.stop == BEST], "ratio")
    panels[0].invert_xaxis()
    for axes, ratio in zip(panels[1:], (0.5, 1.0), strict=True):
        draw(axes, table[(table.stop > 0) & (table.ratio == ratio)], "stop")
        axes.set_xticks([1, 2, 3, 4, 5])
    for axes in panels:
        ex.log_axes(axes, "y")
    ex.label_curves(panels[0])
    result = "The longer the box, the more recursive noise gains over K-norm noise"
    settings = "16 one-way marginals, the i-th scaled by $r^i$. Marks: measured; dashed: predicted."
    return ex.headline(figure, result, settings)


def draw(axes: ex.Axes, table: pd.DataFrame, x: str) -> None:
    """Draw the measured and the exact errors of all families against the column `x`."""
    for family, look in LOOKS.items():
        mine = table[table.family == family]
        if not mine.empty:
            ex.draw_predicted(axes, mine, x, look, family)


def grid(ratios: tuple[float, ...], releases: int, draws: int) -> tuple[Config, ...]:
    """Mechanisms at all ratios, stop levels at r = 1/2 and 1, full recursion in all dimensions."""
    mechanisms = ex.product(Config, ratios, Family, BEST, releases)
    levels = ex.product(Config, (0.5, 1.0), VARIANTS, range(1, 6), draws)
    lemmas = ex.product(Config, (0.9, 1.0), VARIANTS, NEVER, draws, (2, 4, 16, 64, 256))
    return (*mechanisms, *levels, *lemmas)


QUICK = ex.Sweep(grid((1.0, 0.9, 0.8, 0.7, 0.6, 0.5), 200, 1000))
FULL = ex.Sweep(
    grid((1.0, 0.95, 0.9, 0.85, 0.8, 0.75, 0.7, 0.65, 0.6, 0.55, 0.5, 0.45, 0.4), 500, 10_000),
    trials=4,
)
