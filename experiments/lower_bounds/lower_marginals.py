"""Marginals of width 1, 2, 3: certified lower bounds against Theorems 1 and 23.

Papers: Nikolov 2022 (arXiv 2208.07410), equation (2), Theorems 23 and 25; formula sheet JL-MARG,
JL-T23, JL-T25, JL-L6.

Claim: let d be the number of attributes and l the width. At a small error the certified lower
bounds grow with d as d / (alpha eps) for width 1, and as d^((l+1)/2) / (alpha eps) for widths 2 and
3. These are the rates that Theorem 1 promises: the ratio of Theorem 1 to the lower bounds, as a
function of the n of Theorem 1, has a log-log slope within 0.1 of 0. At a fixed d and larger errors,
the best packing uses some but not all Hadamard blocks; there the lower bounds for widths 2 and 3
grow as 1 / alpha^2. The upper bounds with explicit constants are those of the formula sheet: ball
noise for all widths, and the Wishart mechanism (Theorem 23) for width 2. The figure shows how far
the lower bounds are below these upper bounds. In contrast to the figure of random signs
(`lower_worst_case`), every statement here is certain: the separations are proved, the minimum
distances of the codes are computed, and every certificate is checked again from its file.

Nothing here is random. Run time on one core: quick 4 s, full 15 s.
"""

import enum
import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

import experiments.engine.tools as ex
from experiments.lower_bounds import certified_bounds
from geomdp import bounds
from geomdp.bounds import upper

EPSILON = 0.1
WIDTHS = (1, 2, 3)


class Along(enum.StrEnum):
    """The parameter that grows along a panel."""

    ATTRIBUTES = "attributes"
    ERROR = "1 / alpha"


@dataclass(frozen=True)
class Config:
    along: Along  # The row of panels
    width: int  # l
    attributes: int  # d
    alpha: float  # Mean l2 error per query


def compute(config: Config, _: np.random.Generator) -> ex.Row:
    """The certified lower bound, checked from its file, and the upper bounds."""
    d, width, alpha = config.attributes, config.width, config.alpha
    bound = bounds.marginal_bound(
        d, width, epsilon=EPSILON, alpha=alpha, metric=certified_bounds.METRIC
    )
    queries = math.comb(d, width)
    wishart = upper.two_way_marginals(d, epsilon=EPSILON, alpha=alpha) if width == 2 else None
    return {
        **certified_bounds.certified_columns(bound),
        "theorem_1": upper.monotone_marginals(d, width, epsilon=EPSILON, alpha=alpha, constant=1.0),
        "ball": upper.ball_bounded(queries, epsilon=EPSILON, alpha=alpha),
        "wishart": wishart,
    }


def claims(table: pd.DataFrame) -> ex.Claims:
    growing = table[table.along == Along.ATTRIBUTES]
    yield from (rate_in_attributes(growing[growing.width == width], width) for width in WIDTHS)
    yield from (rate_in_error(partly_used(table, width), width) for width in (2, 3))
    yield certified_bounds.certificates_hold(table)
    yield upper_bounds_in_closed_form(table)


def rate_in_attributes(table: pd.DataFrame, width: int) -> ex.Claim:
    """At a small error, the ratio of Theorem 1 to the lower bound hardly changes with d."""
    ratio = table.theorem_1 / table.lower
    found = certified_bounds.exact_slope(table.theorem_1, ratio)
    return ex.Claim(
        f"width {width}: at a small error, the ratio of Theorem 1 to the lower bound hardly "
        "changes as d grows",
        ex.at_most(abs(found), certified_bounds.SLOPE),
        f"ratio {ratio.min():.0f} to {ratio.max():.0f} for d = {table.attributes.min()} to "
        f"{table.attributes.max()}, slope {found:+.3f} in n",
        f"slope within {certified_bounds.SLOPE:g} of 0",
        "JL-T25, JL-MARG",
    )


#: Number of Hadamard blocks by width l, at the d of the panels along 1 / alpha. The attributes form
#: l parts of d / l each, so there are (d / l - 1)^(l - 1) blocks.
BLOCKS = {2: 127, 3: 15**2}


def partly_used(table: pd.DataFrame, width: int) -> pd.DataFrame:
    """Points along 1 / alpha where the best packing uses several blocks, but not most of them."""
    mine = table[(table.along == Along.ERROR) & (table.width == width)]
    return mine[(mine.set_size >= 4) & (mine.set_size <= BLOCKS[width] / 2)]


def rate_in_error(table: pd.DataFrame, width: int) -> ex.Claim:
    """Lower bounds grow as 1 / alpha^2 where the best packing uses several but not most blocks."""
    found = certified_bounds.exact_slope(1 / table.alpha, table.lower)
    return ex.Claim(
        f"width {width}: lower bounds grow as 1/alpha^2 while several blocks are used",
        # n grows as 1 / alpha^2, so the tolerance 0.1 for a slope against ln n becomes 0.2 here.
        ex.near(found, 2, 2 * certified_bounds.SLOPE),
        f"slope {found:.3f} over {len(table)} points, {table.set_size.min()} to "
        f"{table.set_size.max()} blocks",
        f"2, within {2 * certified_bounds.SLOPE:g}",
        "JL-T25, third term",
    )


def upper_bounds_in_closed_form(table: pd.DataFrame) -> ex.Claim:
    """The upper bounds equal formulas that are written out here.

    For ball noise and k queries: 2 (k (k + 1))^(1/2) / (alpha epsilon). For the Wishart mechanism
    at width 2: the smaller of (2 d)^(1/2) (d + 1) and (4 d + 3) / alpha', divided by alpha'
    epsilon, where alpha' = alpha ((d - 1) / d)^(1/2).
    """
    k = table.apply(lambda row: math.comb(int(row.attributes), int(row.width)), axis=1)
    ball = 2 * np.sqrt(k * (k + 1.0)) / (table.alpha * EPSILON)
    pairs = table[table.width == 2]
    d, inner = pairs.attributes, pairs.alpha * np.sqrt((pairs.attributes - 1) / pairs.attributes)
    wishart = np.minimum((d + 1) * np.sqrt(2 * d), (4 * d + 3) / inner) / (inner * EPSILON)
    off = max(
        float((table.ball / ball - 1).abs().max()), float((pairs.wishart / wishart - 1).abs().max())
    )
    name = "the explicit upper bounds are those of the formula sheet"
    measured = (
        f"{len(table)} points, relative differences at most {off:.0e}; lower bounds are at most "
        f"{(table.lower / table.ball).max():.4f} times the number of records for ball noise, and "
        f"{(table.lower / table.wishart).max():.4f} times that of Theorem 23"
    )
    return ex.Claim(name, ex.at_most(off, 1e-9), measured, "equal", "JL-L15, JL-T23")


THEOREM_1 = "Theorem 1"
BALL = "ball noise"
WISHART = "Wishart noise,\nTheorem 23"
UPPER = (
    ("theorem_1", THEOREM_1, "C0", (4, 2)),
    ("ball", BALL, "C2", (1, 1)),
    ("wishart", WISHART, "C4", (6, 1, 1, 1)),
)
#: Widths of the marginals in the figure.
DRAWN = (2, 3)


def plot(table: pd.DataFrame) -> ex.Figure:
    places = [(along, width) for along in Along for width in DRAWN]
    parts = [table[(table.along == along) & (table.width == width)] for along, width in places]
    titles = [
        rf"width {width}, $\alpha=10^{{{math.log10(mine.alpha.iloc[0]):.0f}}}$"
        if along is Along.ATTRIBUTES
        else f"width {width}, $d={mine.attributes.iloc[0]}$"
        for (along, width), mine in zip(places, parts, strict=True)
    ]
    labels = ["attributes $d$"] * 2 + [r"$1/\alpha$, the inverse error"] * 2
    figure, panels = ex.panels((7.2, 5.4), titles, labels, "number of records $n$", rows=2)
    for axes, (along, _), mine in zip(panels, places, parts, strict=True):
        x = 1 / mine.alpha if along is Along.ERROR else mine.attributes
        certified_bounds.draw_bounds(axes, x, mine, UPPER)
        if along is Along.ATTRIBUTES:
            ex.label_ticks(axes, sorted(set(mine.attributes)))
    wide = parts[0].iloc[0]
    ex.note(
        panels[0], (wide.attributes, wide.wishart), "Wishart noise, Thm 23", "C4", (0, -18), "left"
    )
    for axes in panels[1::2]:
        ex.label_curves(axes)
    result = "Marginals: no mechanism beats the rate of Theorem 1 by more than a constant"
    settings = r"Pure DP. Dashed: numbers of records that suffice; Theorem 1 with constant 1."
    return ex.headline(figure, result, settings)


def grid(
    attributes: dict[int, tuple[int, ...]], errors: dict[int, tuple[float, ...]]
) -> tuple[Config, ...]:
    """By width: each d in `attributes` at alpha = 10^-5, and each alpha in `errors` at one d."""
    growing = [
        Config(Along.ATTRIBUTES, width, d, 1e-5) for width, ds in attributes.items() for d in ds
    ]
    falling = [
        Config(Along.ERROR, width, FIXED[width], float(f"{alpha:.4g}"))
        for width, alphas in errors.items()
        for alpha in alphas
    ]
    return (*growing, *falling)


#: Number of attributes d, by width, in the panels along 1 / alpha.
FIXED = {1: 128, 2: 256, 3: 48}
QUICK = ex.Sweep(
    grid(
        {1: (128, 512), 2: (32, 64), 3: (24, 96)},
        {1: (1e-1, 1e-2), 2: (0.012, 0.007), 3: (0.005, 0.0023)},
    )
)
FULL = ex.Sweep(
    grid(
        {1: (128, 256, 512, 1024), 2: (32, 64, 128, 256), 3: (24, 48, 96)},
        {
            1: tuple(np.geomspace(1e-1, 1e-4, 7)),
            2: tuple(np.geomspace(1.8e-2, 5e-4, 19)),
            3: tuple(np.geomspace(7e-3, 2e-4, 19)),
        },
    )
)
