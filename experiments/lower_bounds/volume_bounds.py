"""The volume lower bound on error, compared with the error of K-norm noise on the same bodies.

Papers: Hardt and Talwar 2010, "On the geometry of differential privacy"; Nikolov 2022 (arXiv
2208.07410), Lemmas 17 and 18. Formula sheet JL-VR, JL-L18.

Claim: let K be the hull of the answers and their negatives, and vr_i(K) the largest volume radius
of its projections on i dimensions. Take any mechanism that answers all histograms with real counts
and is epsilon-DP under add/remove. For the worst histogram, its expected l2 error in counts is at
least max_i i vr_i(K) / (8 e^2 epsilon). For the unit ball, K-norm noise has E ||Z|| = k / epsilon.
This error is 8 e^2 = 59.1 times the bound; the proof of the bound loses this factor. The other
round bodies are cubes and the bodies of 1-way marginals, second moments and histograms: their
widths in two directions differ by a factor of order sqrt(k) at most. For them the ratio of the
error of K-norm noise to the bound is 1 to 1.6 times 8 e^2 up to dimension 32. For boxes with
half-widths 2^-i, and in the figure also for prefixes, this ratio grows with the dimension. On the
largest such box, recursive noise errs less than half as much as K-norm noise.

All noise has an exact sampler. Run time on one core: quick 3 s, full 30 s.
"""

from __future__ import annotations

import enum
import itertools
import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pandas as pd

import experiments.engine.tools as ex
import geomdp as gd
from experiments.shared.volume_bodies import EVEN, LOOKS, STRETCHED, Family, short, symmetric_body
from geomdp.bounds import volume_radii
from geomdp.bounds.widths import count_error
from geomdp.geometry.sampling import ExactSampler
from geomdp.noise import KNormNoise, RecursiveNoise
from geomdp.noise.recursive import Variant, best_stop, decompose

#: The factor that the proof loses: the error of K-norm noise of a ball divided by the bound.
CONSTANT = 8 * math.e**2
#: Round bodies: their widths in two directions differ by a factor of order sqrt(k) at most. The
#: random signs of `EVEN` are drawn, but not tested.
ROUND = (Family.MEANS, Family.CUBE, Family.MARGINALS, Family.MOMENTS, Family.HISTOGRAM)


class Method(enum.StrEnum):
    """Kinds of noise."""

    KNORM = "K-norm noise"
    RECURSIVE = "recursive noise"


@dataclass(frozen=True)
class Config:
    family: Family  # Body
    method: Method  # Noise
    size: int  # Number of queries k; dimension of the records for second moments
    draws: int  # Draws of the noise


class Noise(Protocol):
    """Noise with an exact sampler."""

    def sample(self, rng: np.random.Generator, size: int) -> ex.FloatArray: ...


def noise_of(method: Method, K: gd.bodies.Body) -> Noise:
    """The noise at epsilon = 1. Recursive noise stops at the stage with the least E ||Z||_2^2."""
    if method is Method.KNORM:
        return KNormNoise(K, 1.0, ExactSampler(K))
    return RecursiveNoise(best_stop(decompose(K, Variant.INTRINSIC, exact=True)), 1.0)


def compute(config: Config, rng: np.random.Generator) -> ex.Row:
    """Mean length of the noise, and the lower bound for mechanisms on real counts."""
    K = symmetric_body(config.family, config.size)
    radii = volume_radii(K, rng)
    lengths = np.linalg.norm(noise_of(config.method, K).sample(rng, config.draws), axis=1)
    return {
        "dimension": radii[-1].dimension,
        "least": max(count_error(radius, epsilon=1.0) for radius in radii),
        "error": float(lengths.mean()),
        "error_stderr": float(lengths.std(ddof=1)) / math.sqrt(config.draws),
    }


def ratios(table: pd.DataFrame, level: float) -> pd.DataFrame:
    """Errors divided by the bound, with intervals that all hold except with probability `level`."""
    reach = ex.quantile(level / (2 * len(table)), int(table.draws.min())) * table.error_stderr
    ends = {"": table.error, "_low": table.error - reach, "_high": table.error + reach}
    columns = {f"ratio{name}": end / table.least for name, end in ends.items()}
    return table.assign(**columns).sort_values("dimension")


def claims(table: pd.DataFrame) -> ex.Claims:
    found = ratios(table, ex.LEVEL)
    near, balls = (found[found.family.isin(names)] for names in (ROUND, (Family.MEANS,)))
    # For the unit ball, E||Z|| = k. The bound is k / (8 e^2), rounded down by a small margin.
    inside = (balls.ratio_low <= CONSTANT * (1 + 1e-8)) & (balls.ratio_high >= CONSTANT)
    half = (balls.ratio_high - balls.ratio_low) / 2 + 1e-8 * CONSTANT
    yield ex.Claim(
        "the error of K-norm noise of a ball is 8 e^2 times the volume bound",
        ex.Verdict(inside.all(), ex.share((balls.ratio - CONSTANT).abs(), half)),
        f"ratios {balls.ratio.min():.2f} to {balls.ratio.max():.2f}; the least ratio of all "
        f"bodies and kinds of noise is {found.ratio.min():.1f}",
        f"{CONSTANT:.2f}, inside the interval of every ratio",
        "JL-VR",
    )
    yield round_bodies(near)
    yield long_boxes(found[found.family == Family.LONG])


#: The ratio of round bodies may grow or fall at most as this power of the dimension.
FLAT = 0.15


def round_bodies(table: pd.DataFrame) -> ex.Claim:
    """The ratio is 1 to 1.6 times the ratio of a ball, and hardly depends on the dimension."""
    shares = np.array([table.ratio_low, table.ratio_high]) / CONSTANT
    slopes = {
        str(family): float(np.polyfit(np.log(rows.dimension), np.log(rows.ratio), 1)[0])
        for family, rows in table.groupby("family")
    }
    steepest = max(slopes, key=lambda family: abs(slopes[family]))
    return ex.Claim(
        "on round bodies, the ratio of error to bound is 1 to 1.6 times 8 e^2 and changes by at "
        "most the power 0.15 of the dimension",
        ex.at_most(shares[0], 1.6)
        & ex.at_least(shares[1], 1)
        & ex.at_most(abs(slopes[steepest]), FLAT),
        f"{len(table)} bodies, {table.ratio.min() / CONSTANT:.3f} to "
        f"{table.ratio.max() / CONSTANT:.3f} times 8 e^2; the power of the dimension furthest "
        f"from 0 is {slopes[steepest]:+.3f} ({steepest})",
        f"1 to 1.6, up to chance; powers of the dimension within {FLAT:g} of 0",
        "JL-VR",
    )


def long_boxes(table: pd.DataFrame) -> ex.Claim:
    """The K-norm ratio grows with the dimension. Recursive noise at least halves the last ratio."""
    plain, split = (table[table.method == method] for method in Method)
    grows = (plain.ratio_low.to_numpy()[1:] > plain.ratio_high.to_numpy()[:-1]).all()
    gain = plain.ratio_low.iloc[-1] / split.ratio_high.iloc[-1]
    return ex.Claim(
        "on long boxes, the ratio of error to bound grows for K-norm noise; on the longest box, "
        "recursive noise at least halves it",
        ex.each_case(grows) & ex.above(gain, 2),
        f"K-norm noise {plain.ratio.iloc[0]:.0f} to {plain.ratio.iloc[-1]:.0f}, recursive noise "
        f"{split.ratio.iloc[0]:.0f} to {split.ratio.iloc[-1]:.0f}",
        "growing for K-norm noise, and then more than twice that of recursive noise",
        "JL-L18",
    )


RECURSIVE = "long box,\nrecursive noise"


def plot(table: pd.DataFrame) -> ex.Figure:
    titles = ["round bodies: a constant is lost", "stretched bodies: more is lost"]
    figure, panels = ex.panels((7.2, 3.7), titles, "dimension $k$", "error over bound", sharey=True)
    found = ratios(table, ex.BAND_LEVEL * len(table))
    for axes, families in zip(panels, (EVEN, STRETCHED), strict=True):
        draw_bodies(axes, found[found.family.isin(families)])
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_formatter("{x:g}")
        axes.set(yscale="log", ylim=(50, 1000))
        axes.set_yticks(*ex.ticks(50, 100, 200, 500, 1000))
        axes.minorticks_off()
        ex.label_curves(axes)
    result = "K-norm noise of round bodies errs by a constant times the volume bound"
    settings = r"Pure DP, any mechanism for histograms. Dotted: the factor $8e^2$ of a ball."
    return ex.headline(figure, result, settings)


def draw_bodies(axes: ex.Axes, found: pd.DataFrame) -> None:
    """Errors of some bodies over their bounds."""
    for family, method in itertools.product(LOOKS, Method):
        mine = found[(found.family == family) & (found.method == method)]
        if not mine.empty:
            plain = method is Method.KNORM
            look = LOOKS[family] if plain else ex.Look("C0", "h", filled=False)
            name = short(family) if plain else RECURSIVE
            ex.draw_points(axes, mine.dimension, mine.ratio, look, name)
    axes.axhline(CONSTANT, color=ex.GREY, lw=1.1, ls=(0, (1, 2)))


def grid(
    sizes: tuple[int, ...], moments: tuple[int, ...], signs: tuple[int, ...], draws: int
) -> tuple[Config, ...]:
    """K-norm noise of all bodies at their sizes, and recursive noise of the long box."""
    special = {Family.MOMENTS: moments, Family.SIGNS: signs}
    return (
        *[Config(family, Method.KNORM, k, draws)
          for family in Family for k in special.get(family, sizes)],
        *ex.product(Config, Family.LONG, Method.RECURSIVE, sizes, draws),
    )  # fmt: skip


QUICK = ex.Sweep(grid((2, 4, 8, 16), (1, 2, 3), (2, 3, 4), 2000))
FULL = ex.Sweep(grid((2, 3, 4, 6, 8, 12, 16, 24, 32), (1, 2, 3, 4, 5, 7), (2, 3, 4, 5, 6), 20_000))
