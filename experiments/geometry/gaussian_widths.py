"""Gaussian widths of sensitivity polytopes, which set the price of pure differential privacy.

Paper: Nikolov 2022 (arXiv 2208.07410), Theorem 2, equations (2) and (14), Lemma 22; formula sheet
JL-T2, JL-MARG, JL-14, JL-COV.

Claim: for k queries with answers in [-1, 1] over N elements, widths stay below sqrt(2 k ln N). For
N random sign vectors this bound is tight up to a constant. The width of l-way marginals grows with
the number of attributes d as d^((l+1)/2), so their sample complexity is at most a constant times
d^((l+1)/2) / (alpha epsilon). The width of the second moment body is at most sqrt(2d); the ratio
tends to 1 as d grows.

Widths are exact for 1-way marginals and for second moments at d = 2. The other widths are
simulated, with a certified interval (Gaussian concentration). Run time on one core: quick 4 s, full
1 minute.
"""

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

import experiments.engine.tools as ex
import geomdp as gd
from experiments.shared import workloads as shared
from experiments.shared.workloads import Kind

#: Number of random sign queries, which are asked about a growing universe.
SIGN_QUERIES = 64
#: Level of each certified interval: a thousand of them all hold with probability at least 1 - 1e-6.
CERTIFIED = ex.LEVEL / 1000


class Family(ex.Curve):
    """Bodies, in the order of the legend."""

    MARGINALS_1 = "1-way marginals", "C0", "o"
    MARGINALS_2 = "2-way marginals", "C5", "s"
    MARGINALS_3 = "3-way marginals", "C2", "v"
    SECOND_MOMENT = "second moment", "C6", "D"
    SIGNS = "random signs", "C4", "^"


KINDS = {
    Family.MARGINALS_1: Kind.MARGINALS_1,
    Family.MARGINALS_2: Kind.MARGINALS_2,
    Family.MARGINALS_3: Kind.MARGINALS_3,
    Family.SECOND_MOMENT: Kind.MOMENTS,
}
WAYS = {Family.MARGINALS_1: 1, Family.MARGINALS_2: 2, Family.MARGINALS_3: 3}


@dataclass(frozen=True)
class Config:
    family: Family  # Body
    size: int  # Attributes d, dimension d of the data, or log2 of the universe's size
    directions: int  # Number of Gaussian directions


def workload(config: Config) -> gd.workloads.Workload:
    """The workload of one point of the figure. The universe of sign queries has 2^size elements."""
    if config.family is Family.SIGNS:
        return shared.workload(Kind.SIGNS, SIGN_QUERIES, 2**config.size)
    return shared.workload(KINDS[config.family], config.size)


def bound(config: Config, queries: int) -> float:
    """sqrt(2 d) for second moments, sqrt(2 k ln N) for all others."""
    if config.family is Family.SECOND_MOMENT:
        return math.sqrt(2 * config.size)
    return math.sqrt(2 * queries * config.size * math.log(2))


def compute(config: Config, rng: np.random.Generator) -> ex.Row:
    """Width of the sensitivity polytope with its certified interval."""
    Q = workload(config)
    width = gd.gaussian_width(
        gd.sensitivity_polytope(Q), rng=rng, samples=config.directions, level=CERTIFIED
    )
    return {
        "queries": Q.n_queries,
        "width": width.value,
        "stderr": width.stderr,
        "low": width.interval[0],
        "high": width.interval[1],
        "exact": width.samples == 0,
        "bound": bound(config, Q.n_queries),
    }


def growth(table: pd.DataFrame, family: Family) -> pd.Series:
    """Width of l-way marginals divided by sqrt(d C(d, l)), for d at least half of its maximum."""
    mine = table[(table.family == family) & (table["size"] >= table["size"].max() / 2)]
    shares = mine.width / np.sqrt(mine["size"] * mine.queries)
    return pd.Series(shares.to_numpy(), mine["size"])


def claims(table: pd.DataFrame) -> ex.Claims:
    rest = table[table.family != Family.SECOND_MOMENT]
    name = "the Gaussian width of marginals and signs is at most sqrt(2 k ln N)"
    verdict = ex.Verdict((rest.low <= rest.bound).all(), (rest.width / rest.bound).max())
    measured = f"{len(rest)} bodies, at most {(rest.width / rest.bound).max():.3f} of the bound"
    yield ex.Claim(name, verdict, measured, "at most 1", "JL-14")
    yield second_moments(table[table.family == Family.SECOND_MOMENT])
    yield signs(table[table.family == Family.SIGNS])
    marginals = table[table.family.isin(WAYS)]
    for family, ways in WAYS.items():
        shares = growth(marginals, family)
        yield ex.Claim(
            f"{family}: the Gaussian width grows as sqrt(d C(d, {ways})), that is as "
            f"d^{(ways + 1) / 2:g}",
            ex.at_most(shares.max() / shares.min() - 1, 0.1),
            f"width over sqrt(d C(d, {ways})) {shares.min():.4f} to {shares.max():.4f} for d "
            f"= {shares.index.min()} to {shares.index.max()}",
            "constant to 10%",
            "JL-MARG",
        )


#: The width of the second moment body is E max(lambda, 0), where lambda is the largest eigenvalue
#: of a Gaussian symmetric matrix. From d = LARGE on, the width agrees with the mean of the limit
#: law of lambda, to a relative error NEAR.
LARGE, NEAR = 32, 0.02


def second_moments(table: pd.DataFrame) -> ex.Claim:
    """The width divided by its bound sqrt(2d) is at most 1 and rises towards 1."""
    table = table.sort_values("size")
    shares = (table.width / table.bound).to_numpy()
    # For large d the mean of the largest eigenvalue is near sqrt(2 d) (1 - 0.6033 d^(-2/3))
    # (Tracy and Widom, 1996).
    expected = 1 - 0.6033 * table["size"].to_numpy() ** (-2 / 3)
    off = float(np.abs(shares / expected - 1)[table["size"] >= LARGE].max())
    return ex.Claim(
        "second moments: the Gaussian width is at most sqrt(2d), and nearer to it for larger d",
        ex.in_order((table.low <= table.bound).all() and (np.diff(shares) > 0).all())
        & ex.at_most(off, NEAR),
        f"width over bound {shares[0]:.3f} to {shares[-1]:.3f}; for d >= {LARGE} at most {off:.1%} "
        "away from 1 - 0.6033 d^(-2/3)",
        f"at most 1, rising, off by at most {NEAR:.0%}",
        "JL-COV",
    )


def signs(table: pd.DataFrame) -> ex.Claim:
    """The width for random sign queries is at least 0.6 times its bound."""
    shares = (table.width / table.bound).to_numpy()
    name = "random signs: the Gaussian width is at least 0.6 sqrt(2 k ln N)"
    measured = f"width over bound {shares.min():.3f} to {shares.max():.3f}"
    return ex.Claim(name, ex.at_least(shares, 0.6), measured, "at least 0.6", "JL-14")


LOOKS = Family.looks()
PANELS = (
    ("(a) marginals", "attributes $d$", tuple(WAYS)),
    ("(b) second moments", "dimension $d$", (Family.SECOND_MOMENT,)),
    ("(c) random signs", "elements $N$", (Family.SIGNS,)),
)


def plot(table: pd.DataFrame) -> ex.Figure:
    figure = ex.Figure(figsize=(7.2, 3.6))
    panels = figure.subplots(1, 3, width_ratios=(1.1, 1, 1))
    for axes, (title, label, families) in zip(panels, PANELS, strict=True):
        for family in families:
            draw(axes, table[table.family == family].sort_values("size"), family)
        axes.set_title(title)
        axes.set_xlabel(label)
        axes.set_yscale("log", base=2)
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.yaxis.set_major_formatter("{x:g}")
    panels[0].set_xticks([4, 6, 8, 12, 16])
    panels[2].set_xticks([4, 64, 1024, 16_384], ["4", "64", "1k", "16k"])
    panels[2].set_yticks([8, 16, 32])
    panels[0].set_ylabel("Gaussian width")
    ex.label_curves(panels[0])
    return ex.headline(
        figure,
        "The width of marginals grows as a power of the number of attributes",
        r"Dashed: bounds $\sqrt{2k\ln N}$, $\sqrt{2d}$ in (b). Dotted: $d^{(\ell+1)/2}$. "
        f"(c): {SIGN_QUERIES} queries.",
    )


def draw(axes: ex.Axes, table: pd.DataFrame, family: Family) -> None:
    """One body: markers, certified intervals, its bound and, for marginals, the rate."""
    look = LOOKS[family]
    x = table["size"].to_numpy(float)
    x = 2**x if family is Family.SIGNS else x
    ex.draw_theory(axes, x, table.bound, look.colour, "_")
    if family in WAYS:
        rate = np.sqrt(x * table.queries)
        ex.draw_theory(
            axes, x, rate * table.width.iloc[-1] / rate.iloc[-1], look.colour, "_", (1, 2)
        )
    ex.draw_points(axes, x, table.width, look, family, band=(table.low, table.high))


def grid(
    marginals: tuple[int, ...], moments: tuple[int, ...], logs: tuple[int, ...], count: int
) -> tuple[Config, ...]:
    """One configuration for each body and each of its sizes, with `count` Gaussian directions."""
    ways = (Family.MARGINALS_1, Family.MARGINALS_2, Family.MARGINALS_3)
    return (
        *ex.product(Config, ways, marginals, count),
        *ex.product(Config, Family.SECOND_MOMENT, moments, count),
        *ex.product(Config, Family.SIGNS, logs, count),
    )


QUICK = ex.Sweep(grid((4, 6, 8, 10, 12), (2, 4, 8, 16, 32), (2, 4, 6, 8, 10), 500))
FULL = ex.Sweep(
    grid((4, 6, 8, 10, 12, 14, 16), (2, 4, 8, 16, 32, 64, 128), (2, 4, 6, 8, 10, 12, 14), 4000)
)
