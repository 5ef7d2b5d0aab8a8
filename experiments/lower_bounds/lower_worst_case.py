"""Random sign queries: certified lower bounds against Theorem 1, in its three regimes.

Papers: Nikolov 2022 (arXiv 2208.07410), Theorems 1 and 24; formula sheet JL-T1, JL-T24, JL-L6.

Claim: for at least half of all workloads of k random sign queries on N elements, every private
mechanism of error alpha needs as many records as Theorem 1 promises, up to a constant factor. The
theorem has three regimes, by which of k, sqrt(k ln N) and ln N / alpha is the smallest. The number
of queries k varies in the first two regimes, and 1 / alpha varies in the third. In each regime,
take the ratio of Theorem 1 (with constant 1) to the certified lower bound. As a function of the
number of records in Theorem 1, the ratio has a log-log slope within 0.1 of 0. One constant serves
all regimes: the ratios are at most 64, and the largest is at most 5 times the smallest. In the
first regime the best packing consists of single elements. In the other two regimes it is a
Reed-Solomon family of sets. The size of the sets grows roughly in proportion to k in the second
regime, and to 1 / alpha^2 in the third. A family has e^370 to e^(4 x 10^6) sets, which are never
listed. Every certificate is written to a file and checked again by code that shares nothing with
the construction. The older bounds (SmallDB, projection) are drawn for comparison, with constant 1
too.

Run time on one core: quick 3 s, full 5 s.
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
#: A lower bound may fail for this share of all workloads. Theorem 24 only says that the bound holds
#: for some workload.
FAILURE = 0.5
#: Largest allowed ratio of Theorem 1, with constant 1, to the lower bound; and largest allowed
#: quotient of two such ratios.
LARGEST, SPREAD = 64, 5


class Regime(enum.StrEnum):
    """Which term of Theorem 1 is the smallest."""

    QUERIES = "k"
    MIXED = "sqrt(k ln N)"
    UNIVERSE = "ln N / alpha"


@dataclass(frozen=True)
class Config:
    regime: Regime  # The panel
    queries: int  # k
    bits: int  # The universe has N = 2^bits elements
    alpha: float  # Mean l2 error per query


def compute(config: Config, rng: np.random.Generator) -> ex.Row:
    """The certified lower bound, checked from its file, and the upper bounds in closed form."""
    k, alpha = config.queries, config.alpha
    bound = bounds.random_sign_bound(
        k,
        config.bits * math.log(2),
        epsilon=EPSILON,
        alpha=alpha,
        metric=certified_bounds.METRIC,
        failure=FAILURE,
        seed=int(rng.integers(1 << 31)),
    )
    assert isinstance(bound.certificate, bounds.Certificate)
    size = 1 << config.bits
    scale = {"epsilon": EPSILON, "alpha": alpha, "constant": 1.0}
    return {
        **certified_bounds.certified_columns(bound),
        "rungs": len(bound.certificate.rungs),
        "theorem_1": upper.bounded_queries(k, size, **scale).least,
        "small_db": upper.small_db(k, size, **scale),
        "projection": upper.older_projection(k, size, **scale),
        "ball": upper.ball_bounded(k, epsilon=EPSILON, alpha=alpha),
    }


def position(table: pd.DataFrame, regime: str) -> pd.Series:
    """The parameter that grows along a panel: k, or 1 / alpha."""
    return 1 / table.alpha if regime == Regime.UNIVERSE else table.queries


def claims(table: pd.DataFrame) -> ex.Claims:
    yield from (ratio_is_flat(table[table.regime == regime], regime) for regime in Regime)
    yield one_constant(table)
    yield set_size_grows(table[table.regime == Regime.MIXED], Regime.MIXED, 1.0)
    yield set_size_grows(table[table.regime == Regime.UNIVERSE], Regime.UNIVERSE, 2.0)
    yield certified_bounds.certificates_hold(table)
    logs, k = table.bits * math.log(2), table.queries
    third = logs / (table.alpha**2 * EPSILON)
    stated = {"small_db": np.log(k) / table.alpha, "projection": np.log(k) ** 2 * np.sqrt(logs)}
    off = max(
        float((table[name] / third / factor - 1).abs().max()) for name, factor in stated.items()
    )
    statement = (
        "SmallDB needs ln k / alpha times the third term of Theorem 1, and the older projection "
        "ln^2 k (ln N)^(1/2) times this term"
    )
    measured = f"{len(table)} points, relative differences at most {off:.0e}"
    yield ex.Claim(statement, ex.at_most(off, 1e-9), measured, "equal", "JL-T1")


def ratio_is_flat(table: pd.DataFrame, regime: Regime) -> ex.Claim:
    """The ratio of Theorem 1 to the lower bound hardly changes with the number of records."""
    ratio = table.theorem_1 / table.lower
    found = certified_bounds.exact_slope(table.theorem_1, ratio)
    decades = math.log10(table.theorem_1.max() / table.theorem_1.min())
    return ex.Claim(
        f"where {regime} is the smallest, the ratio of Theorem 1 to the lower bound hardly "
        "changes with n",
        ex.at_most(abs(found), certified_bounds.SLOPE),
        f"ratio {ratio.min():.1f} to {ratio.max():.1f}, slope {found:+.3f} in n over "
        f"{decades:.1f} decades",
        f"slope within {certified_bounds.SLOPE:g} of 0",
        "JL-T24",
    )


def one_constant(table: pd.DataFrame) -> ex.Claim:
    """The ratio of Theorem 1 to the lower bound hardly depends on the regime."""
    ratio = table.theorem_1 / table.lower
    spread = ratio.max() / ratio.min()
    return ex.Claim(
        f"the ratio of Theorem 1 to the lower bound varies by at most a factor {SPREAD} "
        "over all regimes",
        ex.at_most([spread, ratio.max()], [SPREAD, LARGEST]) & ex.each_case(ratio.min() >= 1),
        f"ratios {ratio.min():.1f} to {ratio.max():.1f}, the largest {spread:.2f} times the "
        f"smallest; lower bounds are at most {(table.lower / table.ball).max():.4f} times the "
        "number of records for ball noise",
        f"ratios from 1 to {LARGEST}, the largest at most {SPREAD} times the smallest",
        "JL-T24, JL-T1",
    )


def set_size_grows(table: pd.DataFrame, regime: Regime, power: float) -> ex.Claim:
    """The size of the best sets grows roughly in proportion to k, or to 1 / alpha^2."""
    found = certified_bounds.exact_slope(position(table, regime), table.set_size)
    name = "1/alpha" if regime is Regime.UNIVERSE else "k"
    return ex.Claim(
        f"smallest term {regime}: the size of the best sets grows as ({name})^{power:g}",
        # Where k grows, the size s of the best sets is about a constant times k / ln(N / s). As s
        # grows, ln(N / s) falls, which raises the power of k by about 0.03. Only some sizes are
        # tried, each about 2^(1/4) times the size before. This changes both powers a little.
        ex.near(found, power, 0.15 * power),
        f"slope {found:.3f}, sizes {table.set_size.min()} to {table.set_size.max()}",
        f"{power:g}, within {0.15 * power:g}",
        "JL-T24",
    )


THEOREM_1 = "Theorem 1"
SMALL_DB = "SmallDB"
PROJECTION = "projection"
BALL = "ball noise"
UPPER = (
    ("theorem_1", THEOREM_1, "C0", (4, 2)),
    ("ball", BALL, "C2", (1, 1)),
    ("projection", PROJECTION, ex.GREY, (2, 1)),
    ("small_db", SMALL_DB, ex.GREY, (6, 1, 1, 1)),
)


def plot(table: pd.DataFrame) -> ex.Figure:
    labels = ["queries $k$"] * 2 + [r"$1/\alpha$, the inverse error"]
    titles = [TITLES[regime] for regime in Regime]
    figure, panels = ex.panels((7.2, 3.9), titles, labels, "number of records $n$")
    for axes, regime in zip(panels, Regime, strict=True):
        mine = table[table.regime == regime]
        certified_bounds.draw_bounds(axes, position(mine, regime), mine, UPPER)
        # Upper bounds that are thousands of times larger would squeeze all other curves.
        axes.set_ylim(top=SHOWN * float(mine.theorem_1.max()))
    few = table[table.regime == Regime.QUERIES].sort_values("queries").iloc[-3]
    ex.note(panels[0], (few.queries, few.ball), BALL, "C2", (0, 8), "right")
    ex.label_curves(panels[-1], [certified_bounds.LOWER, THEOREM_1, SMALL_DB, PROJECTION])
    return ex.headline(
        figure,
        "In each of its three regimes, Theorem 1 is best up to a constant",
        "Random sign queries, pure DP. Dashed: numbers of records that suffice, with constant 1\n"
        "except for ball noise.",
    )


#: The vertical axis ends at this multiple of the largest value of Theorem 1 in the panel.
SHOWN = 100
TITLES = {
    Regime.QUERIES: "few queries:\n$k$ is least",
    Regime.MIXED: "small universe:\n$\\sqrt{k\\ln N}$ is least",
    Regime.UNIVERSE: "many queries:\n$\\ln N/\\alpha$ is least",
}


def grid(steps: int) -> tuple[Config, ...]:
    """Each regime over its range, `steps` points in each.

    First regime: k from 2^8 to 2^14, with ln N = 22713 and alpha = 10^-3. Second: k from 10^4 to
    10^8, with ln N = 40 and alpha = 10^-4, so that sqrt(k ln N) < ln N / alpha. Third: alpha from
    0.056 to 0.001, with ln N = 40 and k = 10^9.
    """
    return (
        *(Config(Regime.QUERIES, round(k), 32768, 1e-3) for k in np.geomspace(2**8, 2**14, steps)),
        *(Config(Regime.MIXED, round(k), 58, 1e-4) for k in np.geomspace(1e4, 1e8, steps)),
        *(
            Config(Regime.UNIVERSE, 10**9, 58, round(float(alpha), 9))
            for alpha in np.geomspace(0.056, 0.001, steps)
        ),
    )


QUICK = ex.Sweep(grid(5))
FULL = ex.Sweep(grid(13))
